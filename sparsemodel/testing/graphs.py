"""Small precision-matrix problems as plain arrays, with answers found without the library."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from typing import final

import numpy as np

from sparsemodel.interfaces import BoolArray, Cardinality, FloatArray, IntArray
from sparsemodel.interfaces.precision import SparsePrecision
from sparsemodel.numerics.precision import PrecisionObjective, precision_objective


@final
@dataclass(frozen=True, slots=True, eq=False)
class GraphInstance:
    r"""Minimise :math:`w(-\log\det\Omega + \langle S,\Omega\rangle) + c` with at most ``k`` edges
    beside the required ones and all eigenvalues in ``[alpha, beta]``.
    """

    name: str
    covariance: FloatArray
    k: int
    alpha: float = 0.0
    beta: float = np.inf
    required: BoolArray | None = None
    forbidden: BoolArray | None = None
    weight: float = 1.0
    constant: float = 0.0
    planted: BoolArray | None = None
    """Edges (above the diagonal) that generated the data, where any sensible method finds them."""

    @property
    def order(self) -> int:
        """Return the number of variables."""
        return int(self.covariance.shape[0])

    def form(self) -> SparsePrecision:
        """Return the canonical form."""
        return SparsePrecision.build(
            self.covariance,
            self.k,
            alpha=self.alpha,
            beta=self.beta,
            required=self.required,
            forbidden=self.forbidden,
            weight=self.weight,
            constant=self.constant,
        )

    @property
    def sparsity(self) -> Cardinality:
        """Return which coordinates count, and how many may be nonzero."""
        return self.form().sparsity

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the coordinates."""
        return self.form().shape

    def objective(self) -> PrecisionObjective:
        """Return a new objective over :meth:`form`."""
        return precision_objective(self.form())

    @property
    def origin(self) -> float:
        """Return the objective where a run without a start begins."""
        return self.objective().origin().value

    def value(self, x: FloatArray) -> float:
        """Return the objective at coordinates."""
        return self.value_of(self.form().matrix(x))

    def value_of(self, omega: FloatArray) -> float:
        """Return the objective at a positive definite matrix, from its formula."""
        sign, logdet = np.linalg.slogdet(omega)
        if sign <= 0.0:
            return np.inf
        return self.weight * float(np.sum(self.covariance * omega) - logdet) + self.constant

    def arrays(self) -> dict[str, FloatArray | BoolArray]:
        """Return every array of the instance by name."""
        named: dict[str, FloatArray | BoolArray] = {"covariance": self.covariance}
        if self.required is not None:
            named["required"] = self.required
        if self.forbidden is not None:
            named["forbidden"] = self.forbidden
        return named

    # ---- the same problem in other words -----------------------------------------------------

    def with_k(self, k: int) -> GraphInstance:
        """Return the instance with another number of edges."""
        return replace(self, k=k, planted=None)

    def permuted(self, order: IntArray) -> GraphInstance:
        """Return the instance whose solution is ``Omega[order][:, order]``."""
        at = np.ix_(order, order)
        return replace(
            self,
            covariance=np.ascontiguousarray(self.covariance[at]),
            required=None if self.required is None else _symmetric(self.required)[at],
            forbidden=None if self.forbidden is None else _symmetric(self.forbidden)[at],
            planted=None,
        )

    def rescaled(self, d: FloatArray) -> GraphInstance:
        """Return the instance of the variables times ``d``; its solution is ``Omega / (d d^T)``.

        Only without eigenvalue bounds, which the scaling does not respect.
        """
        return replace(self, covariance=self.covariance * np.outer(d, d))

    def with_objective_times(self, c: float) -> GraphInstance:
        """Return the instance with the objective multiplied by ``c``; same solution."""
        return replace(self, weight=self.weight * c, constant=self.constant * c)


def _symmetric(mask: BoolArray) -> BoolArray:
    out: BoolArray = mask | mask.T
    return out


# ---- instances -------------------------------------------------------------------------------


def _sample(p: int, n: int, seed: int) -> FloatArray:
    """Return the covariance of ``n`` samples of a chain of ``p`` variables of unequal scales."""
    rng = np.random.default_rng(seed)
    truth = np.eye(p) + 0.45 * (np.eye(p, k=1) + np.eye(p, k=-1))
    d = np.exp(rng.uniform(-0.7, 0.7, p))
    X = np.linalg.solve(np.linalg.cholesky(truth).T, rng.standard_normal((p, n))).T * d
    X -= X.mean(axis=0)
    S: FloatArray = X.T @ X / n
    return S


def _mask(p: int, *pairs: tuple[int, int]) -> BoolArray:
    mask = np.zeros((p, p), dtype=bool)
    for i, j in pairs:
        mask[i, j] = True
    return mask


def chain() -> GraphInstance:
    """Five variables in a chain, many samples."""
    return GraphInstance("chain", _sample(5, 400, 0), 4, planted=np.eye(5, k=1) != 0.0)


def longer_chain() -> GraphInstance:
    """Twelve variables in a chain."""
    return GraphInstance("longer chain", _sample(12, 600, 1), 11, planted=np.eye(12, k=1) != 0.0)


def masked() -> GraphInstance:
    """One edge required, one forbidden."""
    return GraphInstance(
        "masked",
        _sample(5, 200, 2),
        3,
        required=_mask(5, (0, 4)),
        forbidden=_mask(5, (2, 1)),
    )


def weighted() -> GraphInstance:
    """A likelihood with a weight and a constant."""
    return GraphInstance("weighted", _sample(5, 300, 3), 4, weight=0.3, constant=-7.0)


def bounded() -> GraphInstance:
    """Both eigenvalue bounds are active."""
    S = _sample(6, 60, 4)
    spectrum = np.linalg.eigvalsh(np.linalg.inv(S))
    return GraphInstance("bounded", S, 5, alpha=1.3 * spectrum[0], beta=0.6 * spectrum[-1])


def few_samples() -> GraphInstance:
    """Fewer samples than variables; only the upper bound keeps the likelihood bounded."""
    return GraphInstance("few samples", _sample(8, 5, 5), 6, beta=1e3)


def duplicated() -> GraphInstance:
    """Two variables are the same."""
    S = _sample(4, 100, 6)
    S = S[np.ix_([0, 1, 2, 3, 3], [0, 1, 2, 3, 3])]
    return GraphInstance("duplicated", S, 3, beta=1e3)


def two_variables() -> GraphInstance:
    """The smallest problem with an edge."""
    return GraphInstance("two variables", _sample(2, 50, 7), 1, planted=np.eye(2, k=1) != 0.0)


@cache
def graph_instance(make: object) -> GraphInstance:
    """Return an instance that is made once."""
    return make()  # type: ignore[operator,no-any-return]


# ---- answers ---------------------------------------------------------------------------------


def fit_on(S: FloatArray, edges: BoolArray) -> FloatArray:
    """Return the maximum-likelihood matrix on a graph by one regression after the other.

    Hastie, Tibshirani and Friedman (The Elements of Statistical Learning, 2nd ed., Algorithm
    17.1); nothing in common with the library's Newton method.
    """
    p = S.shape[0]
    joined = edges | edges.T
    W = S.copy()
    coefficients = np.zeros((p, p))
    for _ in range(2000):
        before = W.copy()
        for j in range(p):
            near = np.flatnonzero(joined[j])
            rest = np.delete(np.arange(p), j)
            beta = np.zeros(p)
            if near.size:
                beta[near] = np.linalg.solve(W[np.ix_(near, near)], S[near, j])
            W[rest, j] = W[j, rest] = W[np.ix_(rest, rest)] @ beta[rest]
            coefficients[j] = beta
        if np.abs(W - before).max() <= 1e-14 * np.abs(S).max():
            break
    omega = np.zeros((p, p))
    for j in range(p):
        omega[j, j] = 1.0 / (S[j, j] - W[j] @ coefficients[j])
        near = joined[j]
        omega[j, near] = -coefficients[j, near] * omega[j, j]
    return 0.5 * (omega + omega.T)


@cache
def best_graph(instance: GraphInstance) -> tuple[FloatArray, float]:
    """Return the best matrix over all graphs of an instance without active bounds, and its value.

    By trying every set of ``k`` counted edges; for a handful of variables.
    """
    p = instance.order
    required = np.zeros((p, p), dtype=bool)
    allowed = np.triu(np.ones((p, p), dtype=bool), 1)
    if instance.required is not None:
        required = np.triu(_symmetric(instance.required), 1)
        allowed &= ~required
    if instance.forbidden is not None:
        allowed &= ~_symmetric(instance.forbidden)
    pairs = np.argwhere(allowed)
    best, where = np.inf, np.eye(p)
    for chosen in combinations(range(len(pairs)), min(instance.k, len(pairs))):
        edges = required.copy()
        for i, j in pairs[list(chosen)]:
            edges[i, j] = True
        omega = fit_on(instance.covariance, edges)
        value = instance.value_of(omega)
        if value < best:
            best, where = value, omega
    return where, best
