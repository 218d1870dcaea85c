"""A branch and bound that is over soon, or is left: what a solve can afford."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from sparsemodel import loading
from sparsemodel.certificates.arithmetic.tall import Survey, plain_survey
from sparsemodel.certificates.dual_bounds.root import contradicts
from sparsemodel.certificates.statements.claims import OPTIMAL_GAP, relative_gap_of
from sparsemodel.certificates.statements.objective_interval import (
    constant_part,
    feasible_upper,
    null_value,
)
from sparsemodel.interfaces import FloatArray, MissingDependencyError, SparseRegression
from sparsemodel.numerics.budget import budget

_OPERATIONS, _NODES = 1e9, 1000
"""Operations that a root may take, and nodes that are looked at."""
_FACTORISATIONS = 4.0
"""Of all columns, in the root."""
_HOPELESS = 0.5
"""Share of what the point explains that the first bound may leave open."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Short:
    """What a short proof came to."""

    x: FloatArray
    """The best point, in the form's coordinates."""
    upper: float
    """Its objective, rounded up."""
    bound: float
    """No feasible point has an objective below."""
    closed: bool
    """Whether that proves the point globally optimal, as a certificate would say."""


@np.errstate(all="ignore")  # a bound that overflows is not finite, and none
def short_proof(form: SparseRegression, x: FloatArray) -> Short | None:
    """Search supports for a better point, within a few nodes; None where no proof would be short.

    Only for squared losses, with Numba and without a deadline: its code may have to be compiled,
    once on a machine. The bound is that of :func:`prove`, valid in the same way.

    Parameters
    ----------
    form
        The problem as the user declared it.
    x
        A feasible point.
    """
    if _root_cost(form) > _OPERATIONS or budget().deadline is not None:
        return None
    try:
        loading.numba()
    except MissingDependencyError:
        return None
    from sparsemodel.certificates.proving.gram.part import GramPart
    from sparsemodel.certificates.proving.gram.searchable import objections, own_slopes
    from sparsemodel.certificates.proving.incumbent import Incumbent
    from sparsemodel.certificates.proving.node import UNDECIDED, Node
    from sparsemodel.certificates.proving.records.writing import Recorder
    from sparsemodel.certificates.proving.search import Search

    seen: Survey | None = plain_survey(form, x)
    if form.region is not None and seen is not None:
        seen = None if seen.at_point.violations else own_slopes(seen, x)
    if seen is None or objections(seen.below) or not (form.sparsity.budget and _curved(form)):
        return None
    root = GramPart.root(seen.below, form)
    incumbent = Incumbent(form.sparsity, x, lambda point: feasible_upper(form, point))
    constant, too_long = constant_part(form), hopeless(form)
    if not math.isfinite(incumbent.upper):
        return None

    def allowed(upper: float) -> float:
        size = min(abs(upper), abs(upper - constant))
        return max(0.5 * OPTIMAL_GAP * size, root.rounding)

    search = Search(
        root,
        incumbent,
        Recorder(gram=True, boxed=False),
        allowed=allowed,
        deadline=None,
        progress=lambda now: too_long(now.value, now.bound, now.nodes),
        max_nodes=_NODES,
    )
    undecided = np.full(form.sparsity.units, UNDECIDED, dtype=np.int8)
    search.begin([Node(root, undecided, form.sparsity.budget, x)])
    search.run()
    bound = min(search.bound, incumbent.upper)
    if not math.isfinite(bound) or contradicts(seen.ceiling(incumbent.x), search.bound):
        return None
    share = relative_gap_of(incumbent.upper, bound, constant)
    return Short(incumbent.x, incumbent.upper, bound, share <= OPTIMAL_GAP)


def hopeless(form: SparseRegression) -> Callable[[float, float, int], bool]:
    """Return what tells that a search will not be short, by its value, its bound and its nodes."""
    constant, above = constant_part(form), null_value(form)

    def left(value: float, bound: float, nodes: int) -> bool:
        # Nothing need be feasible at zero beside linear constraints.
        room = above - value if form.region is None else value - constant
        return nodes > 0 and value - bound > _HOPELESS * room

    return left


def _root_cost(form: SparseRegression) -> float:
    """Return the operations of the Gram matrix and of taking curvature out of it."""
    p = float(form.sparsity.size)
    rows = sum(term.design.shape[0] for term in form.terms)
    return p * p * (rows + _FACTORISATIONS * p)


def _curved(form: SparseRegression) -> bool:
    """Return whether the objective may be strictly convex, without which bounds say little."""
    rows = sum(term.design.shape[0] for term in form.terms)
    return rows > form.sparsity.size or bool(np.all(form.ridge[form.sparsity.counted] > 0.0))
