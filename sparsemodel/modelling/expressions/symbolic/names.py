"""What to write in place of names that CVXPY, NumPy and other packages have."""

from __future__ import annotations

from collections.abc import Iterable

from sparsemodel.interfaces.errors import closest

_FORMULA = (
    "write `A, features = sm.encode(df, formula='age * colour')`, and `sm.squared_loss(A @ w + c, "
    "df['price'])`"
)
_ROBUST = (
    "it is not convex, which bounds rest on; sm.huber_loss(A @ w, b, delta=...) and "
    "sm.absolute_loss(A @ w, b) bound the pull of outliers"
)
_NORMS = "add the constraint `sm.norm(w, 1) <= r` to sm.card(w) <= k, or the term sm.ridge(w, lam)"
_TWO_PARTS = (
    "fit its two parts: sm.logistic_loss(A @ w, y > 0) for whether, and for how many "
    "sm.poisson_loss(A[y > 0] @ v, y[y > 0]); sm.negative_binomial_loss and sm.tweedie_loss take "
    "zeros as they are"
)
HINTS = {
    "Minimize": "write sm.minimize(...)",
    "abs": "write sm.absolute_loss(A @ w, b), or sm.norm(w, 1)",
    "count_nonzero": "write sm.card(w) <= k",
    "cross_entropy": "write sm.logistic_loss(A @ w, y), or sm.multinomial_loss(A @ W, y)",
    "concatenate": "keep the variables apart: A1 @ u + A2 @ v, sm.card(u) + sm.card(v) <= k",
    "cumsum": "write `np.tril(np.ones((p, p))) @ w`",
    "diff": "write sm.diff(w)",
    "dot": "write A @ w",
    "exp": "write sm.poisson_loss(A @ w, y), the sum of exp(u) - y u",
    "fused_lasso": "count jumps, sm.card(sm.diff(w)) <= k",
    "group_lasso": "count groups, sm.card(w, groups=labels) <= k",
    "huber": "write sm.huber_loss(A @ w, b, delta=...)",
    "log": "write the loss it is part of, such as sm.logistic_loss(A @ w, y) or -sm.log_det(Omega)",
    "log_cosh": "write sm.huber_loss(A @ w, b, delta=...), a parabola near zero and linear beyond",
    "logistic": "write sm.logistic_loss(A @ w, y)",
    "maximize": "write sm.minimize(...) of the negative, for example of a negative log-likelihood",
    "mae": "write sm.absolute_loss(A @ w, b)",
    "maximum": "write sm.hinge_loss(A @ w, y), the mean of max(0, 1 - y u), or a bound `w >= 0`",
    "mse": "write sm.squared_loss(A @ w, b), half of the mean of the squares",
    "norm1": "write sm.norm(w, 1)",
    "probit": "write sm.logistic_loss(A @ w, y), or its likelihood as a sm.custom_loss",
    "pinball": "write sm.quantile_loss(A @ w, b, tau=...)",
    "quad_form": "write sm.norm(F @ w)**2 with F = np.linalg.cholesky(Q).T",
    "sqrt": "bound the square: sm.norm(w) <= r",
    "square": "write sm.squared_loss(A @ w, b) (the mean of half the squares), or sm.ridge(w, lam)",
    "sum": "write w.sum(), or reduction='sum' in a loss",
    "total_variation": "count jumps, sm.card(sm.diff(w)) <= k",
    "tr": "write sm.trace(S @ Omega)",
    "verify": "write from sparsemodel.certificates import verify",
    "vstack": "keep the variables apart: A1 @ u + A2 @ v",
}
"""What to write in place of names that CVXPY and NumPy have and this language has not."""

_ESTIMATORS = (
    "estimators are in sparsemodel.sklearn, SparseLinearRegression and others; here a fit is "
    "sm.Problem(sm.minimize(loss), sm.card(w) <= k).solve()"
)
_ALGORITHMS = "algorithms have names, problem.solve('omp'); sm.available_backends() lists them"
_CHOICES = (
    "write sm.card(w[pair]) <= 1 for one of a pair, sm.chosen(w[i]) <= sm.chosen(w[j]) for one "
    "only beside another"
)
_ALTERNATIVES = (
    (HINTS["logistic"], "logit bce binary_cross_entropy binomial bernoulli cloglog"),
    (HINTS["cross_entropy"], "softmax categorical nll kl_div multinomial_logit"),
    (HINTS["mse"], "gaussian normal rss"),
    (HINTS["mae"], "lad"),
    (HINTS["norm1"], "l1 l1_norm"),
    ("write sm.ridge(w, lam)", "l2 l2_penalty"),
    (HINTS["quad_form"], "quadratic quadratic_form markowitz"),
    ("a linear term is written as it is: squared_loss(...) - mu @ w", "linear linear_term"),
    (HINTS["verify"] + "; it reads the file", "load certificate load_certificate"),
    ("results draw themselves: path.plot(), or sparsemodel.reporting.plots", "plot plots"),
    ("write problem.certify().save('report.html')", "report save to_html"),
    (HINTS["log_cosh"], "logcosh smooth_l1 fair pseudo_huber"),
    (
        _TWO_PARTS,
        "hurdle zip zinb zeroinfl zero_inflated_poisson zero_inflated_negative_binomial",
    ),
    ("write sm.norm(w)", "norm norm2 norm_inf l2_norm"),
    (HINTS["total_variation"], "tv trend_filter trend_filtering"),
    (HINTS["count_nonzero"], "l0 l0_norm nnz cardinality best_subset subset_selection"),
    (_ROBUST, "student t student_t welsch tukey bisquare biweight cauchy exponential_squared"),
    (_FORMULA, "formula from_formula glm ols"),
    (HINTS["abs"], "absolute"),
    (_NORMS, "lasso elastic_net"),
    (HINTS["maximum"], "pos"),
    (HINTS["square"], "sum_squares"),
    (HINTS["maximize"], "Maximize"),
    (HINTS["concatenate"], "hstack"),
    ("write sm.negative_binomial_loss(A @ w, y, theta=...)", "negbin nbinom nb2 nb"),
    ("write sm.poisson_loss(A @ w, y)", "quasi_poisson quasipoisson poisson_nll"),
    ("write sm.ordinal_loss(A @ w, y)", "ordered_logit proportional_odds polr"),
    (
        "write sm.cox_loss(A @ w, np.column_stack([time, event]))",
        "coxph survival partial_likelihood phreg",
    ),
    (
        "write sm.gamma_loss(A @ w, time) without censoring, sm.cox_loss, or a sm.custom_loss",
        "weibull aft exponential_survival",
    ),
    ("write sm.hinge_loss((A[i] - A[j]) @ w, np.ones(m)) of pairs i before j", "rank ranking"),
    (_CHOICES, "sos1 implies indicator logical_or if_then either_or"),
    (
        "which entries are nonzero is sm.chosen(w); values are real numbers",
        "binary integer boolean bool indicator_variable",
    ),
    ("write c = sm.Variable() and A @ w + c", "intercept add_constant constant"),
    ("scale the data before, or use sm.encode(df)", "standardize scale normalize one_hot"),
    ("add it to the prediction: A @ w + np.log(exposure)", "offset exposure"),
    ("write sm.Problem(sm.minimize(loss), sm.card(w) <= k)", "model addvar addconstr constraint"),
    (_ALGORITHMS, "omp iht cosamp niht htp splicing abess forward stepwise mio miqp l0bnb gurobi"),
    (
        _ESTIMATORS,
        "linearregression logisticregression lassocv ridgecv elasticnet estimator fit scopesolver",
    ),
)
HINTS |= {name: hint for hint, names in _ALTERNATIVES for name in names.split()}

METHODS = {
    **{name: HINTS[name] for name in ("abs", "cumsum", "diff", "dot")},
    "copy": "declare another sm.Variable",
    **dict.fromkeys(("flatten", "ravel"), "write W[i, j]; sm.card(W) counts entries"),
    "max": "an upper bound on all entries is `w <= 1`; of sizes sm.norm(w, np.inf) <= 1",
    "min": "a lower bound on all entries is `w >= 0`",
    "nonzero": "after solving, solution.support",
    "reshape": "declare the variable in the shape in which it meets the data",
    "transpose": "declare the variable in the other shape, or transpose the data",
}
"""What to write in place of methods of arrays."""


def hint_for(name: str, known: Iterable[str]) -> str:
    """Return what to write in place of a name of the package that it has not; "" for none."""
    close = closest(name, known, cutoff=0.75)
    base = name.removesuffix("_loss").removesuffix("_regression")
    hint = HINTS.get(base) or HINTS.get(base.lower()) or METHODS.get(base)
    if f"{base.lower()}_loss" in known:
        hint = f"write sm.{base.lower()}_loss(A @ w, y)"
    return f": {hint}" if hint else f"; is {close!r} meant?" if close else ""
