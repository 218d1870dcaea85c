"""What the parts of a model refuse: to be taken for numbers or for sequences."""

from __future__ import annotations

import sys
from typing import Any, ClassVar, NoReturn

import numpy as np

from sparsemodel.interfaces import DataTypeError, ModelError

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


def refuse_cvxpy(thing: Any) -> None:
    """Raise an error where CVXPY wants the caller's object as a constant of its own."""
    if str(sys._getframe(2).f_globals.get("__name__", "")).startswith("cvxpy."):
        raise ModelError(
            f"{thing!r} is sparsemodel's, and CVXPY cannot put it into an expression of its own. "
            "Write sparsemodel's part first, as in sm.minimize(sm.card(w) * gamma + "
            "cp.sum_squares(A @ w - b)) and `w <= u` for a variable w of sparsemodel's, or all of "
            "it in one language."
        )


HINTS = {
    "Maximize": "minimise the negative: sm.minimize(...) of a negative log-likelihood is a loss",
    "Minimize": "write sm.minimize(...)",
    "abs": "write sm.absolute_loss(A @ w, b), or sm.norm(w, 1)",
    "absolute": "write sm.absolute_loss(A @ w, b), or sm.norm(w, 1)",
    "exp": "write sm.poisson_loss(A @ w, y), the sum of exp(u) - y u",
    "hstack": "keep the variables apart: A1 @ u + A2 @ v",
    "huber": "write sm.huber_loss(A @ w, b, delta=...)",
    "log": "write the loss it is part of, such as sm.logistic_loss(A @ w, y) or -sm.log_det(Omega)",
    "logistic": "write sm.logistic_loss(A @ w, y)",
    "maximize": "minimise the negative: sm.minimize(...) of a negative log-likelihood is a loss",
    "maximum": "write sm.hinge_loss(A @ w, y), the mean of max(0, 1 - y u), or a bound `w >= 0`",
    "norm1": "write sm.norm(w, 1)",
    "norm2": "write sm.norm(w)",
    "pos": "write sm.hinge_loss(A @ w, y), the mean of max(0, 1 - y u)",
    "quad_form": "write sm.custom_loss(lambda u: u @ Q @ u / 2, lambda u: Q @ u, of=w)",
    "sqrt": "bound the square: sm.norm(w) <= r",
    "square": "write sm.squared_loss(A @ w, b) (the mean of half the squares), or sm.ridge(w, lam)",
    "sum": "write w.sum(), or reduction='sum' in a loss",
    "sum_squares": "write sm.squared_loss(A @ w, b) (the mean of half the squares), or sm.ridge",
    "tr": "write sm.trace(S @ Omega)",
    "verify": "write from sparsemodel.certificates import verify",
    "vstack": "keep the variables apart: A1 @ u + A2 @ v",
}
"""What to write in place of names that CVXPY and NumPy have and this language has not."""


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
