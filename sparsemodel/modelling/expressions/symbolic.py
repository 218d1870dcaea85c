"""What the parts of a model refuse: to be taken for numbers or for sequences."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from inspect import CO_VARARGS
from types import FrameType
from typing import Any, ClassVar, NoReturn, ParamSpec, TypeVar

import numpy as np

from sparsemodel.interfaces import DataTypeError, ModelError
from sparsemodel.interfaces.errors import Signposted, closest

P = ParamSpec("P")
R = TypeVar("R")

_OPERATORS: dict[np.ufunc, tuple[str, str]] = {
    np.add: ("__add__", "__radd__"),
    np.subtract: ("__sub__", "__rsub__"),
    np.multiply: ("__mul__", "__rmul__"),
    np.true_divide: ("__truediv__", "__rtruediv__"),
    np.matmul: ("__matmul__", "__rmatmul__"),
    np.power: ("__pow__", "__rpow__"),
    np.less_equal: ("__le__", "__ge__"),
    np.greater_equal: ("__ge__", "__le__"),
    np.less: ("__lt__", "__gt__"),
    np.greater: ("__gt__", "__lt__"),
    np.equal: ("__eq__", "__eq__"),
    np.not_equal: ("__ne__", "__ne__"),
    np.negative: ("__neg__", "__neg__"),
    np.absolute: ("__abs__", "__abs__"),
}
"""The ufuncs behind operators: the method for an operand on the left, and on the right."""


def refuse_cvxpy(thing: Any, depth: int = 2) -> None:
    """Raise an error where CVXPY wants the caller's object as a constant of its own."""
    if str(sys._getframe(depth).f_globals.get("__name__", "")).startswith("cvxpy."):
        raise ModelError(
            f"{thing!r} is sparsemodel's, and CVXPY cannot put it into an expression of its own. "
            "Write sparsemodel's part first, as in sm.minimize(sm.card(w) * gamma + "
            "cp.sum_squares(A @ w - b)) and `w <= u` for a variable w of sparsemodel's, or all of "
            "it in one language."
        )


class NoneOfCvxpys:
    """What ``cp.Problem`` asks of what class it is, and is told that ``sm.Problem`` takes it."""

    __slots__ = ()

    @property  # type: ignore[misc]
    def __class__(self) -> type[Any]:
        asking = sys._getframe(1) if "cvxpy" in sys.modules else None
        if asking is not None and asking.f_globals.get("__name__") == "abc":
            asking = asking.f_back  # cp.Minimize is an abstract class, which asks for itself
        if asking is not None and asking.f_globals.get("__name__", "")[:6] == "cvxpy.":
            raise ModelError(
                f"{self!r} is sparsemodel's, and cp.Problem knows nothing of it. Write "
                "`sm.Problem(cp.Minimize(...), [sm.card(w) <= k, *constraints])`: it takes CVXPY's "
                "variables, objectives and constraints, and a whole cp.Problem in the first place."
            )
        return type(self)


def refuse_pandas(frame: FrameType, label: str) -> None:
    """Raise an error where a DataFrame or a Series of pandas wants what stands right of its ``@``.

    Both take an array of it, whatever it says of itself.
    """
    if str(frame.f_globals.get("__name__", "")).startswith(("pandas.", "polars.")):
        raise DataTypeError(
            "The matrix product of a data frame does not accept variables. Write "
            f"`sm.as_design(df) @ {label}`; for text, categories or missing values write "
            f"`A, features = sm.encode(df)` and `A @ {label}`; for a Series "
            f"`s.to_numpy() @ {label}`."
        )


def asked_by_sparse() -> bool:
    """Return whether SciPy's sparse arithmetic wants to know what stands beside a matrix.

    It leaves ``A @ w`` to us (``__rmatmul__``) only when NumPy makes a single object of us. For
    DataFrames and LinearOperators, which ask in the same words, that would end in an error about
    shapes.
    """
    module = str(sys._getframe(2).f_globals.get("__name__", ""))
    return module.startswith("scipy.sparse.") and not module.startswith("scipy.sparse.linalg")


def no_numbers(thing: Any, label: str) -> NoReturn:
    """Raise an error where somebody wants an unknown as an array: NumPy, pandas, CVXPY."""
    refuse_cvxpy(thing, depth=3)
    frame = sys._getframe(2)
    refuse_pandas(frame, label)
    hint = HINTS.get(frame.f_code.co_name)
    advice = f"Instead, {hint}." if hint else "Write `A @ w` for np.dot, sm.norm(w) for a norm."
    raise DataTypeError(
        f"{thing} has no numerical value here. NumPy's functions do not take unknowns. {advice} "
        f"After solving, {label}.value has the numbers. LinearOperators multiply by themselves: "
        f"write `sm.as_design(A) @ {label}`."
    )


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


_BOUND = "write it as a constraint: `w >= 0`, `w <= 1`"
_BACKEND = "name the algorithm with `backend=`; sm.available_backends() lists them"
_SURVIVAL = "the target has two columns: `np.column_stack([time, event])`"
_WEIGHTS = "observations are weighted by `weights=`, an array with a number for each of them"
_ARGUMENTS = {
    "always": "do not count the entries that are always in the model: sm.card(w[3:]) <= k",
    "alpha": "add the ridge to the objective: `+ sm.ridge(w, lam)`",
    "boolean": "constrain the nonzero entries with sm.card(w) and sm.chosen(w)",
    **dict.fromkeys(("bounds", "lb", "ub"), _BOUND),
    "dispersion": "the variance is mean + mean^2 / theta: `theta=1 / dispersion`",
    **dict.fromkeys(("time", "durations", "event", "events", "event_observed"), _SURVIVAL),
    "epsilon": "the residual from which a Huber loss is linear is `delta=`",
    "class_weight": _WEIGHTS + ": `weights=np.where(y == 1, 2.0, 1.0)`",
    "exposure": "exposures are an offset of the prediction: `A @ w + c + np.log(exposure)`",
    "fit_intercept": "add a variable for the intercept: `A @ w + c` with `c = sm.Variable()`",
    "integer": "the values of variables are real numbers; only the nonzero entries are selected",
    "k": "the limit is a constraint, `sm.card(w) <= k`",
    "link": "it has one link; sm.poisson_loss has log, identity and sqrt, sm.gamma_loss log and "
    "inverse. Others are not convex, or a sm.custom_loss",
    "offset": "add it to the prediction: `A @ w + offset`",
    "quantile": "the level is `tau=`",
    **dict.fromkeys(("solver", "method", "algorithm"), _BACKEND),
    **dict.fromkeys(("timeout", "max_time", "TimeLimit"), "write `time_limit=`, in seconds"),
    **dict.fromkeys(
        ("tol", "tolerance", "eps"),
        "`effort=` says how long it searches, and "
        "problem.prove(gap=...) how close to the optimum it ends",
    ),
    **dict.fromkeys(("random_state", "random_seed"), "write `seed=`"),
    **dict.fromkeys(("n_jobs", "n_threads", "threads"), "write `sm.config.threads = 4` before"),
    "sample_weight": _WEIGHTS,
    "strata": "they are a third column of the target: `np.column_stack([time, event, stratum])`",
}
"""What to write in place of arguments that functions of this language have not."""
_ARGUMENTS_OF = {
    ("sm.negative_binomial_loss", "alpha"): _ARGUMENTS["dispersion"],
    ("solution.predict", "offset"): "of new rows write `(new @ w + c + offset).value`",
    ("solution.predict", "exposure"): "of new rows write `(new @ w + c + np.log(exposure)).value`",
}
_POSITIONS = {
    "sm.cox_loss": "Times, events and strata are columns: `np.column_stack([time, event])`.",
    "sm.Variable": "The shape of a matrix is a tuple, `sm.Variable((p, m))`.",
    "sm.Parameter": "The shape of a matrix is a tuple, `sm.Parameter((n, p))`.",
}
"""What to write in place of more values than there are places."""


def hint_for(name: str, known: Iterable[str]) -> str:
    """Return what to write in place of a name of the package that it has not; "" for none."""
    close = closest(name, known, cutoff=0.75)
    base = name.removesuffix("_loss").removesuffix("_regression")
    hint = HINTS.get(base) or HINTS.get(base.lower()) or METHODS.get(base)
    if f"{base.lower()}_loss" in known:
        hint = f"write sm.{base.lower()}_loss(A @ w, y)"
    return f": {hint}" if hint else f"; is {close!r} meant?" if close else ""


def taking_only_its_own(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with an error that says what to write for an argument it has not."""
    code = function.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    places = math.inf if code.co_flags & CO_VARARGS else code.co_argcount
    own = [name for name in known[: code.co_argcount] if name != "self"]
    needed = own[: len(own) - len(function.__defaults__ or ())]
    selves = code.co_argcount - len(own)
    name = function.__qualname__.removesuffix(".__init__")
    what = f"sm.{name}".replace("sm.Fitted.", "solution.")

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        if not kwargs.keys() <= set(known):
            refuse_argument(next(name for name in kwargs if name not in known), known, what)
        if len(args) > places:
            hint = _POSITIONS.get(what, "Write the names of the others, `name=value`.")
            takes = f"{', '.join(own) or 'nothing'} by position"
            given = f"{len(args) - selves} values were given"
            raise DataTypeError(f"{what} takes {takes}, and {given}. {hint}")
        missing = [name for name in needed[max(len(args) - selves, 0) :] if name not in kwargs]
        if missing:
            raise DataTypeError(f"{what}({', '.join(needed)}) needs {' and '.join(missing)}.")
        return function(*args, **kwargs)

    return called


def refuse_argument(name: str, known: Iterable[str], what: str) -> NoReturn:
    """Raise an error that says what to write for an argument that there is not."""
    listed = [one for one in known if one != "self"]
    close = closest(name, listed)
    hint = f"is {close!r} meant?" if close else f"it has {', '.join(listed)}."
    if (what, name) in _ARGUMENTS_OF:
        raise DataTypeError(f"{what} has no argument {name!r}; {_ARGUMENTS_OF[what, name]}.")
    wished = name if name in _ARGUMENTS else closest(name, () if close else _ARGUMENTS)
    hint = f"{_ARGUMENTS[wished]}." if wished else hint
    raise DataTypeError(f"{what} has no argument {name!r}; {hint}")


class Symbolic(Signposted):
    """A part of a model: it has operators, and no value that Python or NumPy could read.

    Without this an unknown would be true in ``if w:``.
    """

    __slots__ = ()

    _instead: ClassVar[str] = ""
    """Where the numbers are."""

    __pandas_priority__: ClassVar[int] = 5000
    """Leaves `series * w` and `series >= w` to us; `df @ w` pandas keeps to itself."""

    _elsewhere = METHODS

    def _refuse(self, what: str, advice: str = "") -> NoReturn:
        raise DataTypeError(
            f"{what}: {self!r} is part of a model and has no numerical value here. "
            f"{advice or self._instead}"
        )

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Leave ``array * expression`` to the expression's operators, and refuse the rest."""
        if method == "__call__" and not options and ufunc in _OPERATORS:
            left, right = _OPERATORS[ufunc]
            name, others = (left, inputs[1:]) if inputs[0] is self else (right, inputs[:1])
            operator = getattr(type(self), name, None)
            result = NotImplemented if operator is None else operator(self, *others)
            if result is not NotImplemented:
                return result
        called = "" if method == "__call__" else f".{method}"
        return self._refuse(f"np.{ufunc.__name__}{called}(...)", self._hint(ufunc.__name__))

    def __array__(self, *_args: Any, **_kwargs: Any) -> Any:
        refuse_cvxpy(self)
        refuse_pandas(sys._getframe(1), repr(self))
        return self._refuse("An array of it")

    def _hint(self, function: str) -> str:
        """Return what to write in place of a function of NumPy, "" where nothing is known."""
        return ""

    def __bool__(self) -> bool:
        raise ModelError(f"{self!r} is neither true nor false. {self._instead}")

    def __float__(self) -> float:
        self._refuse("float(...)")

    def __int__(self) -> int:
        self._refuse("int(...)")

    def __complex__(self) -> complex:
        self._refuse("complex(...)")

    def __round__(self, ndigits: int | None = None) -> NoReturn:
        self._refuse("round(...)")

    def __len__(self) -> int:
        self._refuse("len(...)")

    def __iter__(self) -> NoReturn:
        self._refuse("A loop, sum(...), min(...) or max(...)")

    def __format__(self, spec: str) -> str:
        if spec:
            self._refuse(f"The format {spec!r}")
        return str(self)
