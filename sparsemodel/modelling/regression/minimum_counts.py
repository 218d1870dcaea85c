"""At least so many of a set, ``card(w[rows]) >= r``.

Entries as small as one likes count where nothing keeps them from zero, and then it is a limit on
what is not in the set. Entries that have a least size where they are not zero are counted by linear
constraints.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from sparsemodel.designs import as_design
from sparsemodel.interfaces import FloatArray, InfeasibleError, IntArray, ModelError
from sparsemodel.modelling.expressions.affine import Affine, Piece
from sparsemodel.modelling.expressions.comparisons import (
    AtLeast,
    CardinalityConstraint,
    Constraint,
    Counted,
    Semicontinuous,
    at_most,
)
from sparsemodel.modelling.expressions.objective_terms import Objective, Price, counted_in
from sparsemodel.modelling.expressions.parameters import Quantity
from sparsemodel.modelling.expressions.variables import Variable

_MOST = 6
"""Sets beside one limit: their unions are 63."""


def without_minimum_counts(
    objective: Objective, constraints: tuple[Constraint, ...]
) -> tuple[Constraint, ...]:
    """Return the constraints with ``card(w[some]) >= r`` said as others.

    Where all of the set have a least size (:func:`~sparsemodel.semicontinuous`) as linear
    constraints, :func:`_sized`. Elsewhere entries as small as one likes count, so that at least
    ``r`` of a set beside at most ``k`` of more than the set leave ``k - r`` to the rest: limits on
    what is not in the set. Several such sets may not overlap.

    Raises
    ------
    ModelError
        Where anything else decides about a set without sizes: prices, budgets, groups, hierarchies,
        sizes of a part of it.
    InfeasibleError
        When the set is not as large, or the limit is smaller.
    """
    asked = [c for c in constraints if isinstance(c, AtLeast)]
    others = tuple(c for c in constraints if not isinstance(c, AtLeast))
    made: list[Constraint] = list(others)
    for least in tuple(asked):
        counted_by = _sized(least, [c for c in others if isinstance(c, Semicontinuous)])
        if counted_by is not None:
            made += counted_by
            asked.remove(least)
    counted = [term.counted for term in objective.terms if isinstance(term, Price)]
    for c in others:
        single = isinstance(c, CardinalityConstraint) and len(c.counted) == 1
        counted += [] if single else counted_in(c)
    for least in asked:
        some = least.counted[0]
        beside = [a for a in asked if a is not least and _variable(a.counted[0]) is _variable(some)]
        alone = not any(_meet(some, other.counted[0]) for other in beside)
        known = (
            alone
            and len(least.counted) == 1
            and _plain(some)
            and not any(_meet(some, part) for part in counted)
        )
        if known:
            _check_size(least)
        for limit in others if known else ():
            if isinstance(limit, CardinalityConstraint) and _meet(some, limit.counted[0]):
                known = known and _holds(some, limit.counted[0])
        if not known:
            raise ModelError(
                f"{least!r} is understood where every entry has a least size, "
                "`sm.semicontinuous(w, 0.01, 1.0)`; or where limits on entries alone decide about "
                "them: card(w) <= k for all, and others on entries that are not among these. "
                "Without sizes prices, budgets, groups, hierarchies and a second such constraint "
                "on some of the same entries are not kept beside it. To have an entry in, leave it "
                "out of what is counted, `sm.card(w[2:]) <= k`, or bound it away from zero, "
                "`w[0] >= 0.1`."
            )
    for limit in others if asked else ():
        if isinstance(limit, CardinalityConstraint) and len(limit.counted) == 1:
            made += _left(limit, [a for a in asked if _meet(a.counted[0], limit.counted[0])])
    return tuple(made)


def _sized(least: AtLeast, sizes: list[Semicontinuous]) -> list[Constraint] | None:
    r"""Return linear constraints by which entries with a least size are counted, else None.

    Where :math:`w_j = 0` or :math:`w_j \ge l_j > 0`, the number of nonzeros is :math:`\sum_j
    \min(w_j / l_j, 1)`. It is concave, so that at least so many is a convex constraint: there are
    :math:`g_j \le 1` with :math:`l_j g_j \le w_j` whose sum is no less.
    """
    from scipy.sparse import diags_array

    made: list[Constraint] = []
    tallies: list[Variable] = []
    for part in least.counted:
        if not _plain(part):
            return None
        variable, rows = _variable(part), _rows(part)
        near = _least_sizes(variable, sizes)[rows]
        if not np.all(near):
            return None
        tally = Variable(rows.size, name=f"tally of {variable.label}")
        tally.tallied = variable, rows, near
        shares = Affine((Piece(variable, rows, as_design(diags_array(1.0 / near))),))
        made += [tally <= 1.0, tally <= shares]
        tallies.append(tally)
    _check_size(least)
    total = tallies[0].sum()
    for tally in tallies[1:]:
        total = total + tally.sum()
    return [*made, total >= least.number]


def _least_sizes(variable: Variable, sizes: list[Semicontinuous]) -> FloatArray:
    """Return how far each entry of a variable is from zero where it is not zero; 0 is any size."""
    near = np.zeros(variable.shape[0])
    for one in sizes:
        (piece,) = one.expression.pieces
        if piece.variable is variable and one.expression.offset is None:
            rows = piece.row_places
            ends = np.where(one.lower > 0.0, one.lower, one.upper)
            near[rows] = np.where(np.abs(ends) > np.abs(near[rows]), ends, near[rows])
    return near


def _check_size(least: AtLeast) -> None:
    size = sum(part.size for part in least.counted)
    if least.number > size:
        raise InfeasibleError(f"{least!r}: there are {size} entries to choose from.")


def _left(limit: CardinalityConstraint, asked: list[AtLeast]) -> list[Constraint]:
    """Return what ``limit`` leaves to its entries outside of every union of the sets asked for.

    A support can be completed to one with enough of every set if and only if for all of these
    unions it has no more entries outside than the limit less what the sets need.
    """
    if len(asked) > _MOST:
        raise ModelError(
            f"{limit!r}: at least so many of each of {len(asked)} sets are {2 ** len(asked) - 1} "
            f"limits; up to {_MOST} sets beside one limit are understood."
        )
    made: list[Constraint] = []
    rows, piece = _rows(limit.counted[0]), limit.counted[0].expression.pieces[0]
    for size in range(1, len(asked) + 1):
        for some in combinations(asked, size):
            left = limit.k - sum(one.number for one in some)
            if not isinstance(left, Quantity) and left < 0:
                raise InfeasibleError(
                    f"{' and '.join(map(repr, some))} and {limit!r} cannot both hold."
                )
            rest = np.setdiff1d(rows, np.concatenate([_rows(one.counted[0]) for one in some]))
            if rest.size:
                made.append(at_most((Counted(Affine((Piece(piece.variable, rest, None),))),), left))
    return made


def _variable(part: Counted) -> Variable:
    return part.expression.pieces[0].variable


def _plain(part: Counted) -> bool:
    """Return whether entries of a vector are counted one by one."""
    return part.plain and part.groups is None and len(part.expression.value_shape()) == 1


def _rows(part: Counted) -> IntArray:
    return part.expression.pieces[0].row_places


def _meet(some: Counted, other: Counted) -> bool:
    """Return whether a count is about the same entries, among others perhaps."""
    own = [piece for piece in other.expression.pieces if piece.variable is _variable(some)]
    if not own or not _plain(other):
        return bool(own)
    return bool(np.isin(_rows(some), _rows(other)).any())


def _holds(some: Counted, other: Counted) -> bool:
    """Return whether all entries of ``some`` are among those of ``other``."""
    return _plain(other) and bool(np.isin(_rows(some), _rows(other)).all())
