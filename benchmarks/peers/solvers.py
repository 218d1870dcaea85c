"""The peers as functions from data to coefficients, set up as favourably as we know how."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def scikit_learn_omp(A: Any, b: Any, k: int) -> Any:
    from sklearn.linear_model import orthogonal_mp

    return orthogonal_mp(A, b, n_nonzero_coefs=k)


def abess_linear(A: Any, b: Any, k: int) -> Any:
    from abess.linear import LinearRegression

    # Not scale-equivariant: a larger target makes its stopping rule work on noiseless data.
    model = LinearRegression(support_size=[k], fit_intercept=False)
    return model.fit(A, 1000.0 * b, is_normal=False).coef_ / 1000.0


def abess_logistic(A: Any, y: Any, k: int) -> Any:
    from abess.linear import LogisticRegression

    model = LogisticRegression(support_size=[k], fit_intercept=False)
    return np.ravel(model.fit(A, (y > 0).astype(float)).coef_)


def abess_multinomial(A: Any, y: Any, k: int) -> Any:
    from abess.linear import MultinomialRegression

    return MultinomialRegression(support_size=[k]).fit(A, np.eye(y.max() + 1)[y]).coef_


_COMPILED: dict[tuple[int, str], Any] = {}


def _functions(A: Any, b: Any, loss: str) -> Any:
    """Return value and gradient, compiled once for the data: later runs are timed warm."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    if (id(A), loss) not in _COMPILED:
        data, target = jnp.asarray(A), jnp.asarray(b)

        def squared(x: Any) -> Any:
            return 0.5 * jnp.sum((data @ x - target) ** 2)

        def logistic(x: Any) -> Any:
            return jnp.mean(jnp.logaddexp(0.0, -target * (data @ x)))

        function = {"squared": squared, "logistic": logistic}[loss]
        value, gradient = jax.jit(function), jax.jit(jax.grad(function))
        # skscope looks at the code object, which a compiled function does not have.
        _COMPILED[id(A), loss] = (lambda x: value(x)), (lambda x: gradient(x))
    return _COMPILED[id(A), loss]


def _skscope(name: str, loss: str, **options: Any) -> Callable[[Any, Any, int], Any]:
    def solve(A: Any, b: Any, k: int) -> Any:
        import skscope

        value, gradient = _functions(A, b, loss)
        solver = getattr(skscope, name)(A.shape[1], sparsity=k, **options)
        solver.solve(value, gradient=gradient)
        return np.asarray(solver.get_estimated_params())

    return solve


def skglm_mcp(A: Any, b: Any, k: int) -> Any:
    """Bisect the penalty to k nonzeros; the caller refits on the support."""
    from skglm import GeneralizedLinearEstimator
    from skglm.datafits import Quadratic
    from skglm.penalties import MCPenalty

    high = float(np.abs(A.T @ b).max()) / A.shape[0]
    low, best = 1e-4 * high, np.zeros(A.shape[1])
    for _ in range(12):
        alpha = np.sqrt(low * high)
        model = GeneralizedLinearEstimator(Quadratic(), MCPenalty(alpha, 3.0))
        w = np.ravel(model.fit(A, b).coef_)
        if np.count_nonzero(w) <= k:
            best, high = w, alpha
        else:
            low = alpha
    return best


def lasso_cv(A: Any, b: Any, k: int) -> Any:
    from sklearn.linear_model import LassoCV

    return LassoCV(cv=5, fit_intercept=False).fit(A, b).coef_


def l1_logistic(A: Any, y: Any, k: int) -> Any:
    """Bisect the penalty to k nonzeros; the caller refits on the support."""
    from sklearn.linear_model import LogisticRegression

    low, high, best = 1e-4, 10.0, np.zeros(A.shape[1])
    for _ in range(8):
        c = np.sqrt(low * high)
        model = LogisticRegression(C=c, l1_ratio=1.0, solver="liblinear", fit_intercept=False)
        w = np.ravel(model.fit(A, y).coef_)
        if np.count_nonzero(w) <= k:
            best, low = w, c
        else:
            high = c
    return best


LINEAR = {
    "scikit-learn OMP": scikit_learn_omp,
    "abess": abess_linear,
    "skscope HTP (step 0.5)": _skscope("HTPSolver", "squared", step_size=0.5),
    "skscope Scope": _skscope("ScopeSolver", "squared"),
    "skglm MCP": skglm_mcp,
    "scikit-learn LassoCV": lasso_cv,
}
LOGISTIC = {
    "abess": abess_logistic,
    "skscope HTP": _skscope("HTPSolver", "logistic", step_size=0.5),
    "scikit-learn L1": l1_logistic,
}
MULTINOMIAL = {"abess": abess_multinomial}


def _skscope_graph(name: str) -> Callable[[Any, Any, int], Any]:
    """Minimise -log det + trace over the entries on and above the diagonal, which is always in."""

    def solve(S: Any, _: Any, k: int) -> Any:
        import jax
        import jax.numpy as jnp
        import skscope

        jax.config.update("jax_enable_x64", True)
        p = S.shape[0]
        rows, cols = np.triu_indices(p)
        diagonal = np.flatnonzero(rows == cols)
        data = jnp.asarray(S)

        def likelihood(x: Any) -> Any:
            upper = jnp.zeros((p, p)).at[rows, cols].set(x)
            omega = upper + jnp.triu(upper, 1).T
            factor = jnp.linalg.cholesky(omega)
            value = jnp.sum(data * omega) - 2.0 * jnp.sum(jnp.log(jnp.diagonal(factor)))
            return jnp.where(jnp.isfinite(value), value, 1e10)

        value, gradient = jax.jit(likelihood), jax.jit(jax.grad(likelihood))
        start = np.zeros(rows.size)
        start[diagonal] = 1.0 / np.diagonal(S)
        solver = getattr(skscope, name)(rows.size, sparsity=p + k, preselect=diagonal.tolist())
        solver.solve(
            lambda x: value(x), init_params=start, gradient=lambda x: jnp.nan_to_num(gradient(x))
        )
        omega = np.zeros((p, p))
        omega[rows, cols] = np.asarray(solver.get_estimated_params())
        return omega + np.triu(omega, 1).T

    return solve


GRAPHS = {"splicing (skscope Scope)": _skscope_graph("ScopeSolver")}


def l0bnb_proof(A: Any, b: Any, task: dict[str, Any]) -> tuple[Any, float]:
    vars(np)["Inf"] = np.inf  # its name in the NumPy that l0bnb was written for
    from l0bnb import BNBTree

    result = BNBTree(A, b).solve(
        task["price"],
        0.5 * task["ridge"],
        task["bound"],
        gap_tol=task["gap"],
        time_limit=task["seconds"],
    )
    return result.beta, float(result.gap)


def okridge_proof(A: Any, b: Any, task: dict[str, Any]) -> tuple[Any, float]:
    from okridge.tree import BNBTree

    tree = BNBTree(A, b, lambda2=task["ridge"])
    _, w, gap, _, _ = tree.solve(task["k"], gap_tol=task["gap"], time_limit=task["seconds"])
    return w, float(gap)


def el0ps_proof(A: Any, b: Any, task: dict[str, Any]) -> tuple[Any, float]:
    import pybnb
    from el0ps.datafit import Leastsquares
    from el0ps.penalty import L2norm
    from el0ps.solver.bnb import ProblemWrapper

    penalty = L2norm(0.5 * task["ridge"])
    problem = ProblemWrapper(Leastsquares(b), penalty, A, task["price"])
    result = pybnb.Solver(comm=None).solve(
        problem,
        relative_gap=task["gap"],
        time_limit=task["seconds"],
        queue_strategy="bound",
        log=None,
    )
    best = result.best_node
    w = np.zeros(A.shape[1]) if best is None else best.state.x_upper
    return w, float(result.relative_gap or 0.0)


PROOFS = {"l0bnb": l0bnb_proof, "OKRidge": okridge_proof, "El0ps": el0ps_proof}
