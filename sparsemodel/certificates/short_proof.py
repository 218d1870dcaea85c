"""A branch and bound that is over soon, or is left: what a solve can afford."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np

from sparsemodel.certificates.dual_bounds.root import contradicts
from sparsemodel.certificates.statements.claims import OPTIMAL_GAP, relative_gap_of
from sparsemodel.certificates.statements.objective_interval import (
    constant_part,
    feasible_upper,
    null_value,
    primal,
)
from sparsemodel.interfaces import FloatArray, MissingDependencyError, SparseRegression
from sparsemodel.numerics.budget import budget

_QUICK, _PATIENT = (2e7, 12), (1e9, 1000)
"""Operations that a root may take, and nodes: where a search goes on without a proof, and where
patience was asked for."""
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
def short_proof(form: SparseRegression, x: FloatArray, *, patient: bool = False) -> Short | None:
    """Search supports for a better point, within a few nodes; None where no proof would be short.

    Only for squared losses, by compiled code that is in memory already or in a cache on disk:
    nothing is compiled. The bound is that of :func:`prove`, valid in the same way.

    Parameters
    ----------
    form
        The problem as the user declared it.
    x
        A feasible point.
    patient
        Whether the proof may take longer than a search of a small problem.
    """
    operations, nodes = _PATIENT if patient else _QUICK
    if _root_cost(form) > operations or not _compiled():
        return None
    from sparsemodel.certificates.proving.gram.part import GramPart, objections

    if objections(form) or not (form.sparsity.budget and _curved(form)):
        return None
    from sparsemodel.certificates.proving.incumbent import Incumbent
    from sparsemodel.certificates.proving.node import UNDECIDED, Node
    from sparsemodel.certificates.proving.records.writing import Recorder
    from sparsemodel.certificates.proving.search import Search, Snapshot

    root = GramPart.root(form, form)
    incumbent = Incumbent(form.sparsity, x, lambda point: feasible_upper(form, point))
    constant, above = constant_part(form), null_value(form)
    if not math.isfinite(incumbent.upper):
        return None

    def allowed(upper: float) -> float:
        size = min(abs(upper), abs(upper - constant))
        return max(0.5 * OPTIMAL_GAP * size, root.rounding)

    def hopeless(now: Snapshot) -> bool:
        return now.nodes > 0 and now.value - now.bound > _HOPELESS * (above - now.value)

    search = Search(
        root,
        incumbent,
        Recorder(gram=True, boxed=False),
        allowed=allowed,
        deadline=budget().deadline,
        progress=hopeless,
        max_nodes=nodes,
    )
    undecided = np.full(form.sparsity.units, UNDECIDED, dtype=np.int8)
    search.run([Node(root, undecided, form.sparsity.budget, x)])
    bound = min(search.bound, incumbent.upper)
    if not math.isfinite(bound) or contradicts(primal(form, incumbent.x), search.bound):
        return None
    share = relative_gap_of(incumbent.upper, bound, constant)
    return Short(incumbent.x, incumbent.upper, bound, share <= OPTIMAL_GAP)


def _root_cost(form: SparseRegression) -> float:
    """Return the operations of the Gram matrix and of taking curvature out of it."""
    p = float(form.sparsity.size)
    rows = sum(term.design.shape[0] for term in form.terms)
    return p * p * (rows + _FACTORISATIONS * p)


def _curved(form: SparseRegression) -> bool:
    """Return whether the objective may be strictly convex, without which bounds say little."""
    rows = sum(term.design.shape[0] for term in form.terms)
    return rows > form.sparsity.size or bool(np.all(form.ridge[form.sparsity.counted] > 0.0))


def _compiled() -> bool:
    """Return whether the code of nodes is compiled, in memory or in Numba's cache on disk."""
    try:
        from sparsemodel.certificates.proving.gram import node_compiled
    except MissingDependencyError:
        return False
    if node_compiled.solve_node.signatures:
        return True
    source = Path(node_compiled.__file__)
    folder = node_compiled.solve_node.stats.cache_path
    cached = Path(folder or source.parent).glob("node_compiled.solve_node-*.nbi")
    return any(index.stat().st_mtime > source.stat().st_mtime for index in cached)


__all__ = ["Short", "short_proof"]
