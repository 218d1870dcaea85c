"""The cardinality of a variable: what is bounded, or has a price."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any, NoReturn, final

import numpy as np

from sparsemodel.arguments import rejects_unknown_arguments
from sparsemodel.interfaces import FloatArray, IntArray, ModelError
from sparsemodel.interfaces.errors import closest
from sparsemodel.interfaces.numeric import described, real_number
from sparsemodel.modelling.expressions.affine import Affine, AffineLike
from sparsemodel.modelling.expressions.comparisons import (
    AtLeast,
    CardinalityConstraint,
    Counted,
    OneOf,
    Picked,
    Requirement,
    at_most,
    requirement,
)
from sparsemodel.modelling.expressions.foreign import is_cvxpy, parts_as_ours, taken
from sparsemodel.modelling.expressions.objective_terms import Objective, Price
from sparsemodel.modelling.expressions.parameters import Quantity
from sparsemodel.modelling.expressions.symbolic import Symbolic
from sparsemodel.modelling.expressions.symmetric import EdgeCount, offdiag
from sparsemodel.modelling.expressions.values import (
    cardinality_bound,
    checked_prices,
    group_codes,
    names_of_groups,
)
from sparsemodel.modelling.expressions.variables import indices_of, names_in


@final
class card(Symbolic):
    """The number of nonzero entries, rows or groups of a variable; compare it with ``<=``.

    ``gamma * sm.card(w)`` in an objective is an L0 penalty.

    Parameters
    ----------
    expression
        A variable, a slice or an affine expression of one, such as ``w - w0``; entries outside a
        slice are not counted. Others raise a ``ModelError``. ``sm.offdiag(Omega)`` counts the
        entries off the diagonal of a symmetric matrix, each edge twice; ``sm.offdiag(A, B)`` those
        where any of the matrices is not zero.
    groups
        A label per entry: entries with one label count together, once.
        For a matrix one label per row (groups of rows), or one per entry, in its shape.
    axis
        1 counts the rows of a matrix variable: a row counts once if any of its entries is nonzero.
        By default the entries of a matrix are counted; columns and rows are slices, ``W[:, j]``
        and ``W[i, :]``.

    Examples
    --------
    >>> import sparsemodel as sm
    >>> w = sm.Variable(500, name="w")
    >>> sm.card(w) <= 20
    card(w) <= 20
    """

    _instead = "After solving, the number of nonzeros is len(solution.support)."

    @rejects_unknown_arguments
    def __init__(self, expression: Any, *, groups: Any = None, axis: int | None = None) -> None:
        self._edges = expression if isinstance(expression, offdiag) else None
        self._counted: tuple[Counted, ...] = ()
        if self._edges is not None:
            if groups is not None or axis is not None:
                raise ModelError("card(offdiag(Omega)) takes neither groups nor axis.")
            return
        if not (axis is None or (np.isscalar(axis) and axis == 1)):
            raise _unknown_axis()
        if is_cvxpy(expression) and not expression.is_affine():
            raise ModelError(
                f"card counts entries of variables and of affine expressions, not of {expression}: "
                "sm.card(w) for abs(w), sm.card(W, axis=1) for norms of rows."
            )
        parts = parts_as_ours(expression)
        if len(parts) > 1 and (groups is not None or axis is not None):
            raise ModelError(
                "card of a stack takes neither groups nor axis; write a sum, "
                "`sm.card(u, groups=g) + sm.card(v, groups=h) <= k`."
            )
        self._counted = tuple(_counted(part, groups, axis) for part in parts)

    @property
    def parts(self) -> tuple[Counted, ...]:
        """Return what is counted; nothing for the edges of a graph."""
        return self._counted

    @property
    def value(self) -> int | None:
        """Return how many are not zero; None before the variable has a value."""
        if self._edges is not None:
            return self._edges.value
        counts = [part.value for part in self._counted]
        return None if None in counts else sum(c for c in counts if c is not None)

    def __le__(self, k: Any) -> CardinalityConstraint | EdgeCount:
        limit = at_most(self._counted, k)
        return limit if self._edges is None else EdgeCount(self._edges, limit.k)

    def __lt__(self, k: Any) -> NoReturn:
        raise ModelError("Write `card(w) <= k`; for card(w) < k that is `card(w) <= k - 1`.")

    def __ge__(self, k: Any) -> AtLeast:
        number = cardinality_bound(taken(k))
        if self._edges is not None:
            raise ModelError(
                "At least so many edges are not a limit on a graph: it has as many as its "
                "likelihood asks for. sm.required_edges(Omega, pairs) holds edges in."
            )
        return AtLeast(self._counted, number)

    def __gt__(self, k: Any) -> NoReturn:
        raise ModelError("Write `card(w[some]) >= k`; for more than k that is `>= k + 1`.")

    def __eq__(self, k: object) -> NoReturn:
        raise ModelError(
            "Write `card(w) <= k`: a better fit uses all k anyway. Exactly k of a part are "
            "`[sm.card(w[part]) <= k, sm.card(w[part]) >= k]` beside a limit on all."
        )

    def __sub__(self, other: Any) -> NoReturn:
        raise ModelError(
            "Counts stand on one side of a limit: `sm.card(u) + sm.card(v) <= k` for "
            "`sm.card(u) <= k - sm.card(v)`."
        )

    __rsub__ = __sub__

    def __hash__(self) -> int:
        return object.__hash__(self)

    def as_terms(self) -> Objective:
        """Return a price of one on each nonzero."""
        return self * 1.0

    def __mul__(self, gamma: Any) -> Objective:
        if self._edges is not None:
            raise ModelError("A price on edges is not supported; write card(offdiag(X)) <= 2 * k.")
        gamma = taken(gamma)
        if not isinstance(gamma, Quantity):
            gamma = real_number(gamma, where="The price of card", minimum=0.0)
        return Objective(tuple(Price(part, gamma) for part in self._counted))

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> Objective:
        return self * (1.0 / real_number(divisor, where="The divisor of card", minimum=1e-300))

    def __matmul__(self, _: Any) -> NoReturn:
        raise ModelError(
            "card(w) is one number, and has one price. With a price of its own for each entry "
            "write `costs @ sm.chosen(w)`: in the objective, or `costs @ sm.chosen(w) <= budget`."
        )

    __rmatmul__ = __matmul__

    def __add__(self, other: Any) -> Objective:
        return self.as_terms().__add__(other)

    __radd__ = __add__

    def __repr__(self) -> str:
        if self._edges is not None:
            return f"card({self._edges!r})"
        return " + ".join(map(repr, self._counted))


@final
class chosen(Symbolic):
    r"""Which entries of a variable are nonzero: :math:`z_j = 1` where :math:`w_j \neq 0`, else 0.

    ``costs @ sm.chosen(w)`` is the total cost of the nonzero entries, for an objective or for a
    constraint ``costs @ sm.chosen(w) <= budget``. Costs must not be negative.

    ``sm.chosen(w)[kids] <= sm.chosen(w)[parents]`` is a hierarchy, :math:`z_c \le z_p` for each
    pair: a child may be nonzero only if its parent is. ``z[c] <= z[p] + z[q]`` requires one of two
    parents, ``z[c] <= sm.card(w[some])`` any of several.

    Parameters
    ----------
    expression
        A variable, a slice of one or an expression of one, as in :class:`card`; with one index.
    groups
        A label per entry: entries with one label are selected together, and their cost is paid
        once. Costs are in the order of the sorted labels, and a hierarchy of groups is written by
        their labels, ``z["a:b"] <= z["a"]``.
    axis
        1 for the rows of a matrix variable, with a cost for each row.

    Raises
    ------
    ModelError
        When ``expression`` is not a vector of entries, groups or rows, or the sides of a hierarchy
        have different numbers of entries.

    Examples
    --------
    >>> import numpy as np
    >>> import sparsemodel as sm
    >>> w = sm.Variable(3, name="w")
    >>> np.array([1.0, 2.0, 5.0]) @ sm.chosen(w) <= 6.0
    costs @ chosen(w) <= 6
    >>> sm.chosen(w)[1:] <= sm.chosen(w)[0]
    chosen(w[...]) <= chosen(w[...])
    """

    _instead = "After solving, sm.chosen(w).value has the zeros and ones."

    @rejects_unknown_arguments
    def __init__(self, expression: Any, *, groups: Any = None, axis: int | None = None) -> None:
        self._card = card(expression, groups=groups, axis=axis)
        parts = self._card.parts
        if len(parts) != 1:
            raise ModelError(
                "chosen takes one variable, or a slice of one; for several write a sum, "
                "`costs @ sm.chosen(u) + prices @ sm.chosen(v)`."
            )
        (self._counted,) = parts
        shape: tuple[int, ...] = getattr(expression, "shape", ())
        if len(shape) == 2 and shape[1] > 1 and groups is None and axis is None:
            raise ModelError(
                "chosen(W) of a matrix has a cost for each column or each row: "
                "`costs @ sm.chosen(W[:, j])`, or `costs @ sm.chosen(W, axis=1)`."
            )
        self._places: IntArray | None = None
        self._sliced = expression if groups is None and axis is None else None
        self._labels = None if groups is None else names_of_groups(groups)

    @property
    def value(self) -> FloatArray | None:
        """Return the zeros and ones; None before the variable has a value."""
        found = self._counted.chosen
        return found if found is None or self._places is None else found[self._places]

    def sum(self, axis: int | None = None, out: None = None) -> card:
        """Return the number of chosen entries, the same as ``sm.card``; ``np.sum`` calls it."""
        if axis not in (None, 0) or out is not None:
            raise ModelError("chosen(w).sum() is one number, and takes neither axis nor out.")
        self._once()
        return self._card

    def _once(self) -> None:
        if self._places is not None:
            raise ModelError(
                f"{self!r} stands in a hierarchy alone. What is counted, or has a cost, is listed "
                "once and in increasing order, and of groups all are."
            )

    def __getitem__(self, key: Any) -> chosen:
        """Return some of the entries, groups or rows: in any order, for a hierarchy."""
        names = names_in(key)
        if names is not None:
            if self._labels is not None:
                key = _places_of(names, self._labels)
            elif self._sliced is None:
                raise ModelError("chosen of rows has no names; take them by number.")
            else:
                key = np.concatenate([self._sliced[name].rows for name in names])
        places = indices_of(key, self._counted.size, repr(self))
        if self._places is None and self._sliced is not None and np.all(np.diff(places) > 0):
            return chosen(self._sliced[places])
        found = copy(self)
        found._places = places if self._places is None else self._places[places]
        return found

    def __rmatmul__(self, costs: Any) -> Objective:
        self._once()
        costs = taken(costs)
        if not isinstance(costs, Quantity):
            if isinstance(self._sliced, AffineLike):
                self._sliced._in_order(costs, "The vector of costs")
            costs = checked_prices(costs, self._counted.size)
        elif costs.shape != (self._counted.size,):
            raise ModelError(
                f"costs @ {self!r} needs a cost for each of the {self._counted.size} entries, and "
                f"{costs!r} has the shape {costs.shape}."
            )
        if not np.ndim(costs) and not isinstance(costs, Quantity):
            raise ModelError(f"One price for all is `{costs:g} * sm.card(w)`.")
        return Objective((Price(self._counted, costs),))

    __matmul__ = __rmatmul__

    def __mul__(self, _: Any) -> NoReturn:
        raise ModelError(
            "chosen(w) is a vector. With a price for each entry write `costs @ sm.chosen(w)`, with "
            "one for all `price * sm.card(w)`; `w <= M * z` is the bound `w <= M`."
        )

    __rmul__ = __mul__

    @property
    def alternatives(self) -> tuple[Picked, ...]:
        """Return what may be chosen, of which another entry may need one."""
        if getattr(self._sliced, "reordered", False):
            raise ModelError(
                f"{self!r} has its entries in the order of the variable, not in that of the names. "
                "Write sm.chosen(w)[names] in a hierarchy."
            )
        return (Picked(self._counted, self._places),)

    def __add__(self, other: Any) -> OneOf:
        if not isinstance(other, (chosen, OneOf)):
            raise ModelError(
                "chosen(w) is a vector, and stands in `costs @ sm.chosen(w)` and `sm.chosen(c) <= "
                "sm.chosen(p) + sm.chosen(q)` alone; the number of its ones is sm.card(w)."
            )
        return OneOf((*self.alternatives, *other.alternatives))

    __radd__ = __sub__ = __rsub__ = __add__

    def __le__(self, other: Any) -> Requirement:
        if isinstance(other, card):
            return requirement(self.alternatives[0], tuple(map(Picked, other.parts)), pooled=True)
        if isinstance(other, (chosen, OneOf)):
            return requirement(self.alternatives[0], other.alternatives)
        raise ModelError(
            "Which entries may be nonzero together is declared by limits and budgets: "
            "`sm.card(w[pair]) <= 1` for one of a pair, `costs @ sm.chosen(w) <= budget`, "
            "`sm.card(w[others]) <= k - 1` beside `sm.card(w) <= k` for at least one that is not "
            "among the others; that w[i] comes only with w[j], `sm.chosen(w[i]) <= "
            "sm.chosen(w[j])`, or with one of two, `<= sm.chosen(w[j]) + sm.chosen(w[l])`."
        )

    def __ge__(self, other: Any) -> Requirement:
        return other <= self if isinstance(other, chosen) else self.__le__(None)

    def __eq__(self, _: object) -> NoReturn:
        raise ModelError(
            "What is in or out together counts as one, `sm.card(w, groups=labels) <= k` with one "
            "label for all of it. To have an entry in, leave it out of what is counted; to have it "
            "out, write `w[j] == 0`."
        )

    __lt__ = __gt__ = __eq__

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __repr__(self) -> str:
        return repr(Picked(self._counted, self._places))


def _places_of(names: list[str], labels: tuple[str, ...]) -> IntArray:
    """Return the places of groups by their labels."""
    for name in names:
        if name not in labels:
            close = closest(name, labels)
            hint = f"; is {close!r} meant?" if close else f"; they are {', '.join(labels[:6])}."
            raise ModelError(f"There is no group named {name!r}{hint}")
    return np.array([labels.index(name) for name in names])


def _counted(expression: Any, groups: Any, axis: int | None) -> Counted:
    """Return what is counted of one expression."""
    if not isinstance(expression, AffineLike):
        raise ModelError(
            "What is counted is a variable, a slice or an affine expression of one, not "
            f"{described(expression)}. Of several variables write `sm.card(u) + sm.card(v) <= k`."
        )
    affine = expression.as_affine()
    if groups is not None:
        expression._in_order(groups, "groups")
    if not affine.pieces:
        raise ModelError(f"card takes a variable, and {affine} has none.")
    if not Counted(affine).plain:
        return _of_expression(affine, groups, axis)
    shape = affine.pieces[0].shape
    if not shape:
        raise ModelError(f"{affine} is a single number; there is nothing to count.")
    if axis == 1 and len(shape) != 2:
        raise _unknown_axis()
    labels = None if groups is None else group_codes(groups, shape, whole=axis is None)
    rows = axis == 1 or len(shape) < 2 or shape[1] == 1
    if not rows and (labels is None or labels.size != shape[0]):
        affine = Affine((affine.pieces[0].by_entries(),))
    return Counted(affine, labels)


def _of_expression(affine: Affine, groups: Any, axis: int | None) -> Counted:
    """Return what is counted of an expression such as ``D @ w - c``: its entries."""
    shape, piece = affine.value_shape(), affine.pieces[0]
    rows = axis == 1 and len(shape) == 2
    if rows and (affine.offset is not None or not all(one.bare for one in affine.pieces)):
        raise ModelError(
            f"card({affine}, axis=1) is not understood; rows are counted of a matrix variable and "
            "of differences of its rows, sm.card(sm.diff(W), axis=1)."
        )
    if axis is not None and not rows:
        raise ModelError(f"card({affine}) counts entries; axis=1 is for a matrix variable itself.")
    if not shape:
        raise ModelError(f"{affine} is a single number; there is nothing to count.")
    if rows:
        labels = None if groups is None else group_codes(groups, shape, whole=False)
        return Counted(affine, labels)
    if len(shape) == 2:
        if len(affine.pieces) > 1 or not piece.bare:
            raise ModelError(
                f"card({affine}) of a matrix expression is not understood; count its rows, "
                "sm.card(sm.diff(W), axis=1), W minus a constant, or columns, "
                "sm.card(D @ W[:, j])."
            )
        if isinstance(affine.offset, Quantity):
            raise ModelError(f"card({affine}): the constant beside a matrix takes no parameter.")
        offset = np.broadcast_to(np.asarray(affine.offset), shape).ravel()
        affine = Affine((replace(piece.by_entries(), factor=piece.factor),), offset)
    labels = None if groups is None else group_codes(groups, affine.value_shape(), whole=True)
    return Counted(affine, labels)


def _unknown_axis() -> ModelError:
    return ModelError(
        "axis=1 counts the rows of a matrix variable; no other axis is known. For columns write a "
        "limit for each: `[sm.card(W[:, j]) <= k for j in range(m)]`."
    )
