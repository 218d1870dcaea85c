"""Comparisons and the constraints they make: counts, bounds on entries, linear relations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NoReturn, final

import numpy as np

from sparsemodel.arguments import rejects_unknown_arguments
from sparsemodel.interfaces import DataError, FloatArray, IntArray, ModelError
from sparsemodel.interfaces.numeric import plain_array
from sparsemodel.modelling.expressions.foreign import as_ours, taken
from sparsemodel.modelling.expressions.parameters import Quantity
from sparsemodel.modelling.expressions.symbolic import (
    NotOfCvxpy,
    Symbolic,
)
from sparsemodel.modelling.expressions.values import (
    array_of,
    cardinality_bound,
    flag,
    real_array,
)

if TYPE_CHECKING:
    from sparsemodel.modelling.expressions.affine import Affine, AffineLike


class Constraint(NotOfCvxpy):
    """What a comparison makes. It has no truth value: ``0 <= w <= 1`` must be written as two."""

    def __bool__(self) -> NoReturn:
        raise ModelError(
            "A constraint is neither true nor false. Write a chained comparison such as "
            "`0 <= w <= 1` as two constraints: `[w >= 0, w <= 1]`."
        )

    @property
    def limit_on_units(self) -> tuple[Any, int] | None:
        """Return the limit on nonzero entries, and how many a unit has; None without such one."""
        return None


@final
@dataclass(frozen=True, slots=True, eq=False)
class Bound(Constraint):
    """``lower <= expression <= upper`` for the entries of a variable, scaled by ``factor``."""

    expression: Affine
    lower: float | FloatArray | Quantity | None
    upper: float | FloatArray | Quantity | None

    def __repr__(self) -> str:
        low = "" if self.lower is None else f"{limit_text(self.lower, np.min)} <= "
        high = "" if self.upper is None else f" <= {limit_text(self.upper, np.max)}"
        return f"{low}{self.expression}{high}"


@final
@dataclass(frozen=True, slots=True, eq=False)
class Semicontinuous(Constraint):
    """Every entry of a variable, less a constant, is zero or between bounds on a side of zero."""

    expression: Affine
    lower: FloatArray
    upper: FloatArray
    both_signs: bool = False
    """Whether the bounds are those of the sizes."""

    def __repr__(self) -> str:
        low, high = limit_text(self.lower, np.min), limit_text(self.upper, np.max)
        signs = ", both_signs=True" if self.both_signs else ""
        return f"semicontinuous({self.expression}, {low}, {high}{signs})"


@rejects_unknown_arguments
def semicontinuous(
    expression: Any, lower: Any, upper: Any = np.inf, *, both_signs: bool = False
) -> Semicontinuous:
    r"""Constrain every entry to be zero or within bounds: :math:`w_j = 0` or
    :math:`l_j \le w_j \le u_j`.

    For example, a position of a portfolio is either not held or has at least 5 %; or a weight is
    that of the old portfolio or changes by at least 2 %. Limits ``sm.card(expression) <= k`` and
    ``sm.card(expression) >= m`` may be added.

    Parameters
    ----------
    expression
        A variable (a vector), a slice of one, or one less a constant, ``w - w0``.
    lower, upper
        Numbers, or one for each entry; both positive or both negative. Only the bound farther from
        zero may be infinite.
    both_signs
        True bounds the sizes, :math:`l_j \le |w_j| \le u_j`. Entries are then differences of two
        nonnegative variables, ``w up - w down``, which the solution is about; ``w.value`` is there.

    Returns
    -------
    Semicontinuous
        The constraint.

    Raises
    ------
    ModelError
        When zero lies between the bounds, or the expression is none of these.

    Examples
    --------
    >>> import sparsemodel as sm
    >>> w = sm.Variable(20, name="w")
    >>> sm.semicontinuous(w, 0.05, 0.3)
    semicontinuous(w, 0.05, 0.3)
    """
    affine: Any = getattr(expression, "as_affine", lambda: None)()
    piece = affine.pieces[0] if affine is not None and len(affine.pieces) == 1 else None
    plain = piece is not None and piece.bare and piece.factor == 1.0
    if not plain or len(affine.value_shape()) != 1 or isinstance(affine.offset, Quantity):
        raise ModelError(
            f"semicontinuous takes a vector variable, a slice of one, or one less numbers, "
            f"`w - w0`, not {expression!r}. Of a matrix take columns, "
            "`sm.semicontinuous(W[:, j], 0.05)`; for an expression declare a variable that equals "
            "it, `u == A @ w`."
        )
    shape = affine.value_shape()
    for end in (lower, upper):
        expression._in_order(end, "A bound of semicontinuous")
    low, high = (np.broadcast_to(_limit(end, shape), shape) for end in (lower, upper))
    near = np.minimum(np.abs(low), np.abs(high))
    if np.any(low > high) or np.any(low * np.sign(high) <= 0.0) or np.any(np.isinf(near)):
        raise ModelError(
            "semicontinuous needs bounds on one side of zero, lower <= upper, the nearer one "
            "finite: `sm.semicontinuous(w, 0.05, 0.3)`. For sizes on both sides, |w| >= 0.05, "
            "write `sm.semicontinuous(w, 0.05, 0.3, both_signs=True)`."
        )
    both_signs = flag(both_signs, "both_signs")
    if both_signs and np.any(low < 0.0):
        raise ModelError("semicontinuous with both_signs=True bounds sizes: both are positive.")
    return Semicontinuous(affine, low, high, both_signs)


@final
@dataclass(frozen=True, slots=True, eq=False)
class LinearConstraint(Constraint):
    """``expression <= 0`` or ``expression == 0``, row by row."""

    expression: Affine
    relation: Literal["<=", "=="]

    def __repr__(self) -> str:
        return f"{self.expression} {self.relation} 0"


@final
@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """What is counted of an expression: its entries (rows, of a matrix), or groups of them."""

    expression: Affine
    groups: IntArray | None = None
    """A label for each entry (row); those with one label count together, once."""

    @property
    def plain(self) -> bool:
        """Return whether it is (a slice of) a variable itself that is counted."""
        pieces, offset = self.expression.pieces, self.expression.offset
        return len(pieces) == 1 and pieces[0].bare and offset is None

    @property
    def size(self) -> int:
        """Return how many units there are to count."""
        if self.groups is not None:
            return int(self.groups.max(initial=-1)) + 1
        return self.expression.value_shape()[0]

    @property
    def value(self) -> int | None:
        """Return how many are not zero; None before the variables have values."""
        chosen = self.chosen
        return None if chosen is None else int(np.count_nonzero(chosen))

    @property
    def chosen(self) -> FloatArray | None:
        """Return 1 for what is not zero and 0 for the rest; None before the variables have values.

        An entry of an expression that is zero up to rounding counts as zero.
        """
        v, pieces = self.expression.value, self.expression.pieces
        if v is None:
            return None
        sizes = [
            np.abs(piece.value).max(initial=0.0) for piece in pieces if piece.value is not None
        ]
        largest = max(sizes, default=0.0)
        nonzero = v != 0.0 if self.plain else np.abs(v) > 1e-12 * largest
        if nonzero.ndim > 1 and (self.groups is None or self.groups.size == nonzero.shape[0]):
            nonzero = nonzero.any(axis=1)
        groups = np.arange(nonzero.size) if self.groups is None else self.groups
        found = np.zeros(int(groups.max(initial=-1)) + 1)
        found[groups[nonzero.ravel()]] = 1.0
        return found

    def __repr__(self) -> str:
        rows = len(self.expression.value_shape()) == 2 and self.groups is None
        groups = ", groups" if self.groups is not None else ", axis=1" if rows else ""
        return f"card({self.expression}{groups})"


@final
@dataclass(frozen=True, slots=True, eq=False)
class CardinalityConstraint(Constraint):
    """``card(u) + card(v) + ... <= k``, of one summand most often."""

    counted: tuple[Counted, ...]
    k: int | Quantity

    @property
    def limit_on_units(self) -> tuple[Any, int]:
        return self.k, 1

    def __repr__(self) -> str:
        return f"{' + '.join(map(repr, self.counted))} <= {self.k!r}"


@final
@dataclass(frozen=True, slots=True, eq=False)
class AtLeast(Constraint):
    """``card(w[rows]) >= number``: said as limits on other entries before anything is compiled."""

    counted: tuple[Counted, ...]
    number: int

    def __repr__(self) -> str:
        return f"{' + '.join(map(repr, self.counted))} >= {self.number}"


@final
@dataclass(frozen=True, slots=True, eq=False)
class Picked:
    """What is counted, or some of its units in any order, with repetitions."""

    counted: Counted
    places: IntArray | None = None

    @property
    def size(self) -> int:
        """Return how many units are meant."""
        return self.counted.size if self.places is None else int(self.places.size)

    def __repr__(self) -> str:
        shown = repr(self.counted).replace("card(", "chosen(", 1)
        return shown if self.places is None else f"{shown}[{self.size} of them]"


@final
@dataclass(frozen=True, slots=True, eq=False)
class Requirement(Constraint):
    """``chosen(child) <= chosen(p) + chosen(q) + ...``, entry by entry."""

    child: Picked
    parents: tuple[Picked, ...]
    pooled: bool = False
    """Whether any entry of ``parents`` will do for each of ``child``: ``<= card(p)``."""

    def __repr__(self) -> str:
        right = " + ".join(map(repr, self.parents))
        right = right.replace("chosen(", "card(") if self.pooled else right
        return f"{self.child!r} <= {right}"


def requirement(child: Picked, parents: tuple[Picked, ...], *, pooled: bool = False) -> Requirement:
    """Return the constraint that what is nonzero in ``child`` has a nonzero parent beside it."""
    sizes = {child.size, *(part.size for part in parents if not pooled)}
    if not parents or len(sizes - {1}) > 1:
        shown = ", ".join(str(part.size) for part in parents)
        raise ModelError(
            f"chosen(...) <= chosen(...): the sides have {child.size} and {shown} entries, and are "
            "compared one by one. Give each child its parent, `sm.chosen(w)[kids] <= "
            "sm.chosen(w)[parents]` with as many parents as kids; or have one entry on one side."
        )
    return Requirement(child, parents, pooled)


@final
class OneOf(Symbolic):
    """``chosen(p) + chosen(q)``: of what an entry needs one."""

    _instead = "It stands in `sm.chosen(c) <= sm.chosen(p) + sm.chosen(q)` alone."

    def __init__(self, alternatives: tuple[Picked, ...]) -> None:
        self.alternatives = alternatives

    def __add__(self, other: Any) -> OneOf:
        more = getattr(other, "alternatives", ())
        return OneOf((*self.alternatives, *more)) if more else self._unknown(other)

    def __ge__(self, other: Any) -> Any:
        return other <= self if hasattr(other, "alternatives") else self._unknown(other)

    def __le__(self, number: Any) -> CardinalityConstraint:
        counted = tuple(part.counted for part in self.alternatives if part.places is None)
        alone = all(part.size == 1 for part in self.alternatives)
        if isinstance(number, Symbolic) or not alone or len(counted) < len(self.alternatives):
            self._unknown(number)
        return at_most(counted, number)

    def _unknown(self, _: Any) -> NoReturn:
        raise ModelError(
            f"{self!r} stands on the right of `sm.chosen(c) <= sm.chosen(p) + sm.chosen(q)` alone: "
            "c only with p or q. At most one of each pair is `sm.card(w[pair]) <= 1`, a cost for "
            "each `costs @ sm.chosen(u) + prices @ sm.chosen(v)`."
        )

    __lt__ = __gt__ = __eq__ = __mul__ = __rmul__ = _unknown
    __matmul__ = __rmatmul__ = __sub__ = __rsub__ = __radd__ = _unknown

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.alternatives))


def at_most(counted: tuple[Counted, ...], k: Any) -> CardinalityConstraint:
    """Return the constraint that at most ``k`` of all that is counted are nonzero."""
    k = taken(k)
    if not isinstance(k, Quantity):
        k = cardinality_bound(k)
    elif k.shape:
        raise ModelError(
            f"The k of card(...) <= k is one number, and {k!r} has several. "
            "A parameter with a value is sm.Parameter(value=3)."
        )
    return CardinalityConstraint(counted, k)


def compare(left: AffineLike, relation: Literal["<=", ">=", "=="], right: Any) -> Constraint:
    """Return the constraint ``left relation right``."""
    right = taken(right)
    right = as_ours(right)
    if hasattr(right, "as_affine"):
        return compare(left - right, relation, 0.0)
    if isinstance(right, Symbolic) and not isinstance(right, Quantity):
        raise ModelError(f"{right!r} cannot be compared with a variable.")
    affine = left.as_affine()
    if not isinstance(right, Quantity):
        left._in_order(right, "A bound")
        right = _limit(right, affine.value_shape())
    elif right.shape not in ((), affine.value_shape()):
        raise ModelError(
            f"A bound of shape {right.shape} does not fit {affine} of shape {affine.value_shape()}."
        )
    piece = affine.pieces[0]
    if len(affine.pieces) == 1 and piece.bare:
        limit = right if affine.offset is None else right - affine.offset
        limit = limit if piece.factor == 1.0 else limit * (1.0 / piece.factor)
        bare = type(affine)((replace(piece, factor=1.0),))
        upper = (relation == "<=") == (piece.factor > 0.0) or relation == "=="
        lower = not upper or relation == "=="
        return Bound(bare, limit if lower else None, limit if upper else None)
    if not isinstance(right, Quantity) and not np.all(np.isfinite(right)):
        raise ModelError("The right-hand side of a linear constraint must be finite.")
    moved = affine - right
    if relation == "==":
        return LinearConstraint(moved, "==")
    return LinearConstraint(moved if relation == "<=" else -moved, "<=")


def _limit(right: Any, shape: tuple[int, ...]) -> float | FloatArray:
    """Return the numbers of a comparison; infinite ones are allowed, NaN is not."""
    if hasattr(right, "to_numpy"):
        right = array_of(right, "A bound")
    array = plain_array(right, "A bound")
    if array.dtype.kind not in "biuf":
        array = real_array(right, where="A bound", ndim=(0, 1, 2))  # or says what is wrong
    with np.errstate(all="ignore"):  # longer floats that overflow are infinite, which is allowed
        array = array.astype(np.float64)
    if np.any(np.isnan(array)):
        raise DataError("A bound must not be NaN.")
    if array.ndim == 0:
        return float(array)
    if shape[:1] == (1,) and array.shape == shape[1:]:  # of the columns of a matrix, summed
        array = array[None, :]
    if array.shape != shape:
        raise DataError(f"A bound of shape {array.shape} does not fit an expression of {shape}.")
    return array


def limit_text(limit: Any, pick: Any) -> str:
    """Return a limit as it is printed: an array by one of its entries, which ``pick`` takes."""
    return repr(limit) if isinstance(limit, Quantity) else f"{pick(limit):g}"
