"""Parameters: numbers and arrays that may change between two solves."""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, final

import numpy as np

from sparsemodel.arguments import rejects_unknown_arguments
from sparsemodel.interfaces import DataError, FloatArray, ModelError
from sparsemodel.modelling.expressions.symbolic import Symbolic
from sparsemodel.modelling.expressions.values import checked_shape, flag, one_name, real_array

T = TypeVar("T")


class Quantity(Symbolic):
    """A number or an array that is only known when the problem is solved.

    Sums, differences, multiples and quotients of quantities and numbers are quantities.
    """

    __array_priority__: float = 900.0
    _instead = "Ask for its .value."

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the value."""

    @property
    def ndim(self) -> int:
        """Return the number of dimensions of the value."""
        return len(self.shape)

    @property
    @abstractmethod
    def value(self) -> Any:
        """Return the present value, None when a parameter has none yet."""

    @abstractmethod
    def parameters(self) -> Iterator[Parameter]:
        """Yield the parameters the quantity is made of."""

    def __add__(self, other: Any) -> Any:
        return _formula(operator.add, self, other)

    def __radd__(self, other: Any) -> Any:
        return _formula(operator.add, other, self)

    def __sub__(self, other: Any) -> Any:
        return _formula(operator.sub, self, other)

    def __rsub__(self, other: Any) -> Any:
        return _formula(operator.sub, other, self)

    def __mul__(self, other: Any) -> Any:
        return _formula(operator.mul, self, other)

    def __rmul__(self, other: Any) -> Any:
        return _formula(operator.mul, other, self)

    def __truediv__(self, other: Any) -> Any:
        return _formula(operator.truediv, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _formula(operator.truediv, other, self)

    def __neg__(self) -> Any:
        return _formula(operator.mul, -1.0, self)


@final
class Parameter(Quantity):
    """A number, a vector or a data matrix whose value may change between two solves.

    Use it for k, for weights of terms, for bounds, for a target, or for a data matrix. If the
    value changes, the next solve starts from the last solution and recomputes only what depends
    on the parameter.

    Parameters
    ----------
    shape
        Nothing (or ``()``) for a number, ``n`` for a vector, ``(n, p)`` for a matrix.
    name
        Its name in outputs.
    value
        Its initial value. It may be set later, but before solving.
    nonneg
        Refuse negative values.
    integer
        Refuse values that are not whole numbers.

    Raises
    ------
    ModelError, DataError, DataTypeError
        When a value is refused, now or when it is assigned later.

    Examples
    --------
    >>> import sparsemodel as sm
    >>> k = sm.Parameter(integer=True, value=3, name="k")
    >>> sm.card(sm.Variable(10, name="w")) <= 2 * k
    card(w) <= 2 * k
    """

    @rejects_unknown_arguments
    def __init__(
        self,
        shape: int | tuple[int, ...] = (),
        *,
        name: str | None = None,
        value: Any = None,
        nonneg: bool = False,
        integer: bool = False,
    ) -> None:
        self._shape = checked_shape(shape, "Parameter")
        self.name = None if name is None else one_name(name)
        self.nonneg = flag(nonneg, "nonneg")
        self.integer = flag(integer, "integer")
        self.proxied: Any = None
        """The constant CVXPY expression whose value this parameter always has, if any."""
        self._version = 0
        self._assumed = False
        self._value: Any = None
        self._derived: dict[Any, Any] = {}
        if value is not None:
            self.value = value

    @classmethod
    def of(cls, constant: Any, name: str) -> Parameter:
        """Return a parameter that follows the value of a constant CVXPY expression."""
        parameter = cls(tuple(constant.shape), name=name)
        parameter.proxied = constant
        return parameter

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def version(self) -> int:
        """Return a number that rises with every new value."""
        self._follow()
        return self._version

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the names of what needs a value: none when there is one."""
        if self.value is not None:
            return ()
        if self.proxied is None:
            return (repr(self),)
        return tuple(p.name() for p in self.proxied.parameters() if p.value is None)

    @property
    def label(self) -> str:
        """Return the name, or "parameter" when it has none."""
        return self.name or "parameter"

    @property
    def value(self) -> Any:
        """Return the present value: a number (an ``int`` where only whole ones are allowed), or the
        array or matrix that was given.
        """
        self._follow()
        return self._value

    @value.setter
    def value(self, value: Any) -> None:
        if self.proxied is not None:
            self.proxied.value = value  # an expression that is no bare parameter refuses it
            return
        self._take(None if value is None else self._check(value))

    def _take(self, value: Any) -> None:
        self._value = value
        self._derived.clear()
        self._version += 1

    def _follow(self) -> None:
        """Take the value of ``proxied`` over where it has changed, in place perhaps."""
        if self.proxied is None or self._assumed:
            return
        value = self.proxied.value
        if _same(value, self._value):
            return
        if value is not None:
            value = self._check(value)
            value = value.copy() if hasattr(value, "copy") else value
        self._take(value)

    @contextmanager
    def assuming(self, value: Any) -> Iterator[None]:
        """Give the parameter another value within a block; its version stays the same."""
        before = (self.value, self._version, self._derived)
        self._value, self._derived, self._assumed = self._check(value), {}, True
        self._version = -1
        try:
            yield
        finally:
            self._value, self._version, self._derived = before
            self._assumed = False

    def _check(self, value: Any) -> Any:
        where = f"The value of {self.label}"
        if len(self._shape) == 2:  # a data matrix stays what it is: dense, sparse, a DataFrame
            found = tuple(np.shape(value)) if not hasattr(value, "shape") else tuple(value.shape)
            if found != self._shape:
                raise DataError(f"{where} must have shape {self._shape}, not {found}.")
            return value
        array = real_array(value, where=where, ndim=(len(self._shape),))
        if array.shape != self._shape:
            raise DataError(f"{where} must have shape {self._shape}, not {array.shape}.")
        if self.nonneg and np.any(array < 0.0):
            raise ModelError(f"{where} must be at least 0, not {float(array.min()):g}.")
        if self.integer and np.any(array != np.floor(array)):
            broken = float(array[array != np.floor(array)].flat[0])
            raise ModelError(f"{where} must be a whole number, not {broken:g}.")
        if self._shape:
            return array.copy()
        return int(array) if self.integer else float(array)

    def parameters(self) -> Iterator[Parameter]:
        yield self

    def in_words(self) -> str:
        """Return the name with the present value, or with its shape where it is an array."""
        if self.value is None:
            return f"{self.label} without a value"
        if not self._shape:
            return f"{self.label} = {self.value:.15g}"
        return f"{self.label}, {' x '.join(map(str, self._shape))} numbers"

    def derived(self, key: Any, make: Callable[[], T]) -> T:
        """Return ``make()`` for the present value, computed once per value."""
        if key not in self._derived:
            self._derived[key] = make()
        found: T = self._derived[key]
        return found

    def __matmul__(self, other: Any) -> Any:
        if hasattr(other, "__rmatmul__"):
            return other.__rmatmul__(self)
        raise ModelError(f"{self!r} @ ... needs a variable on its right.")

    def __repr__(self) -> str:
        return self.name or f"Parameter({', '.join(map(str, self._shape))})"


@final
class _Formula(Quantity):
    """An operation on two quantities or numbers."""

    def __init__(self, operation: Callable[[Any, Any], Any], left: Any, right: Any) -> None:
        self._operation, self._left, self._right = operation, left, right

    @property
    def shape(self) -> tuple[int, ...]:
        return np.broadcast_shapes(np.shape(self._left), np.shape(self._right))

    @property
    def value(self) -> Any:
        sides = [side.value if isinstance(side, Quantity) else side for side in self._sides]
        return None if any(side is None for side in sides) else self._operation(*sides)

    @property
    def _sides(self) -> tuple[Any, Any]:
        return self._left, self._right

    def parameters(self) -> Iterator[Parameter]:
        for side in self._sides:
            if isinstance(side, Quantity):
                yield from side.parameters()

    def __repr__(self) -> str:
        symbol = {operator.add: "+", operator.sub: "-", operator.mul: "*", operator.truediv: "/"}
        left, right = (_shown(side) for side in self._sides)
        return f"{left} {symbol[self._operation]} {right}"


def _shown(side: Any) -> str:
    if isinstance(side, _Formula):
        return f"({side!r})"
    if isinstance(side, Quantity):
        return repr(side)
    return "array" if np.ndim(side) else f"{float(side):g}"


def _formula(operation: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    for side in (left, right):
        if isinstance(side, Quantity):
            if len(side.shape) == 2:
                raise ModelError(f"The data matrix {side!r} only multiplies: `{side!r} @ w`.")
            continue
        if isinstance(side, Symbolic):
            return NotImplemented  # the other side knows how, or says why not
        real_array(side, where="A number beside a parameter", ndim=(0, 1))
    return _Formula(operation, left, right)


def _same(one: Any, two: Any) -> bool:
    if one is None or two is None:
        return one is two
    if np.shape(one) != np.shape(two):
        return False
    if hasattr(one, "tocsr") or hasattr(two, "tocsr"):
        return type(one) is type(two) and (one != two).nnz == 0
    return bool(np.array_equal(one, two))


def resolve(quantity: Any, what: str) -> Any:
    """Return the present value of a quantity; anything else comes back as it is.

    Raises
    ------
    ModelError
        When a parameter has no value yet.
    """
    if not isinstance(quantity, Quantity):
        return quantity
    value = quantity.value
    if value is None:
        names = dict.fromkeys(name for p in quantity.parameters() for name in p.missing)
        missing = ", ".join(f"{name}.value" for name in names)
        raise ModelError(f"{what} needs a value: set {missing} before solving.")
    return value


def parameters_in(*quantities: Any) -> Iterator[Parameter]:
    """Yield the parameters that occur in ``quantities``; numbers and arrays have none."""
    for quantity in quantities:
        if isinstance(quantity, Quantity):
            yield from quantity.parameters()


def known(*quantities: Any) -> bool:
    """Return whether every parameter in ``quantities`` has a value."""
    return all(parameter.value is not None for parameter in parameters_in(*quantities))


def as_float(value: Any) -> float | FloatArray:
    """Return a resolved value as a float or a float64 array."""
    return float(value) if np.ndim(value) == 0 else np.asarray(value, dtype=np.float64)
