"""What the parts of a model refuse: to be taken for numbers or for sequences."""

from __future__ import annotations

import sys
from collections.abc import Callable
from difflib import get_close_matches
from functools import wraps
from typing import Any, ClassVar, NoReturn, ParamSpec, TypeVar

import numpy as np

from sparsemodel.interfaces import DataTypeError, ModelError

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
    if str(frame.f_globals.get("__name__", "")).startswith(("pandas.", "polars.")):
        raise DataTypeError(
            "A data frame multiplies by itself, and does not know unknowns. Write "
            f"`sm.as_design(df) @ {label}`, or `sm.encode(df) @ {label}` where it has text, "
            "categories or missing values."
        )
    hint = HINTS.get(frame.f_code.co_name)
    advice = f"Instead, {hint}." if hint else "Write `A @ w` for np.dot, sm.norm(w) for a norm."
    raise DataTypeError(
        f"{thing} has no numerical value here. NumPy's functions do not take unknowns. {advice} "
        f"After solving, {label}.value has the numbers. LinearOperators multiply by themselves: "
        f"write `sm.as_design(A) @ {label}`."
    )


HINTS = {
    "Maximize": "minimise the negative: sm.minimize(...) of a negative log-likelihood is a loss",
    "Minimize": "write sm.minimize(...)",
    "abs": "write sm.absolute_loss(A @ w, b), or sm.norm(w, 1)",
    "absolute": "write sm.absolute_loss(A @ w, b), or sm.norm(w, 1)",
    "count_nonzero": "write sm.card(w) <= k",
    "diff": "write sm.diff(w)",
    "dot": "write A @ w",
    "exp": "write sm.poisson_loss(A @ w, y), the sum of exp(u) - y u",
    "hstack": "keep the variables apart: A1 @ u + A2 @ v",
    "huber": "write sm.huber_loss(A @ w, b, delta=...)",
    "inverse_gaussian_loss": "it is not convex with a mean of exp(u); sm.gamma_loss and "
    "sm.tweedie_loss are, for amounts whose spread grows with their mean",
    "log": "write the loss it is part of, such as sm.logistic_loss(A @ w, y) or -sm.log_det(Omega)",
    "logistic": "write sm.logistic_loss(A @ w, y)",
    "maximize": "minimise the negative: sm.minimize(...) of a negative log-likelihood is a loss",
    "maximum": "write sm.hinge_loss(A @ w, y), the mean of max(0, 1 - y u), or a bound `w >= 0`",
    "norm": "write sm.norm(w)",
    "norm1": "write sm.norm(w, 1)",
    "norm2": "write sm.norm(w)",
    "pos": "write sm.hinge_loss(A @ w, y), the mean of max(0, 1 - y u)",
    "probit_loss": "write sm.logistic_loss(A @ w, y), or its likelihood as a sm.custom_loss",
    "quad_form": "write sm.norm(F @ w)**2 with F = np.linalg.cholesky(Q).T",
    "sqrt": "bound the square: sm.norm(w) <= r",
    "square": "write sm.squared_loss(A @ w, b) (the mean of half the squares), or sm.ridge(w, lam)",
    "sum": "write w.sum(), or reduction='sum' in a loss",
    "sum_squares": "write sm.squared_loss(A @ w, b) (the mean of half the squares), or sm.ridge",
    "tr": "write sm.trace(S @ Omega)",
    "verify": "write from sparsemodel.certificates import verify",
    "vstack": "keep the variables apart: A1 @ u + A2 @ v",
}
"""What to write in place of names that CVXPY and NumPy have and this language has not."""


_BOUND = "write it as a constraint: `w >= 0`, `w <= 1`"
_WEIGHTS = "observations are weighted by `weights=`, an array with a number for each of them"
_ARGUMENTS = {
    "alpha": "add the ridge to the objective: `+ sm.ridge(w, lam)`",
    "boolean": "which entries are nonzero is what sm.card(w) and sm.chosen(w) are about",
    "bounds": _BOUND,
    "class_weight": _WEIGHTS + ": `weights=np.where(y == 1, 2.0, 1.0)`",
    "exposure": "exposures are an offset of the prediction: `A @ w + c + np.log(exposure)`",
    "fit_intercept": "the constant is a variable of its own: `A @ w + c` with `c = sm.Variable()`",
    "integer": "only which entries are zero is chosen here; values are real numbers",
    "lb": _BOUND,
    "link": "it has one link; sm.poisson_loss has log, identity and sqrt, sm.gamma_loss log and "
    "inverse. Others are not convex, or a sm.custom_loss",
    "offset": "add it to the prediction: `A @ w + offset`",
    "sample_weight": _WEIGHTS,
    "ub": _BOUND,
}
"""What to write in place of arguments that functions of this language have not."""


def taking_only_its_own(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with an error that says what to write for an argument it has not."""
    code = function.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    named = ", ".join(name for name in known if name != "self")

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name not in known:
                close = get_close_matches(name, known, n=1)
                hint = f"is {close[0]!r} meant?" if close else f"it has {named}"
                what = function.__qualname__.removesuffix(".__init__")
                raise DataTypeError(
                    f"sm.{what} has no argument {name!r}; {_ARGUMENTS.get(name, hint)}."
                )
        return function(*args, **kwargs)

    return called


class Symbolic:
    """A part of a model: it has operators, and no value that Python or NumPy could read.

    Without this an unknown would be true in ``if w:``, and ``np.exp(w)`` or ``float(w)`` would end
    in words about types alone.
    """

    __slots__ = ()

    _instead: ClassVar[str] = ""
    """Where the numbers are."""

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
