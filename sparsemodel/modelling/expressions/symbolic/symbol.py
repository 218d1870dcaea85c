"""What the parts of a model refuse: to be taken for numbers or for sequences."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, ClassVar, NoReturn

import numpy as np

from sparsemodel.interfaces import DataTypeError, ModelError
from sparsemodel.interfaces.errors import NameHints
from sparsemodel.modelling.expressions.symbolic.names import HINTS, METHODS

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


class NotOfCvxpy:
    """Objects that ``cp.Problem`` refuses as it asks for their class: ``sm.Problem`` takes them."""

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


class Symbolic(NameHints):
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
