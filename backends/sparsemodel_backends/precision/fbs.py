"""Forward selection of edges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, cast, final

import numpy as np

from sparsemodel.interfaces import (
    Capabilities,
    Context,
    IntArray,
    IterativeBackend,
    Objective,
    Point,
    Prior,
    Role,
    check_options,
)
from sparsemodel.interfaces.precision import SparsePrecision
from sparsemodel_backends.precision._search import best_first, edge_scores, with_edges
from sparsemodel_backends.precision.grahtp import edge_units

_NONE: IntArray = np.empty(0, dtype=np.intp)


@final
@dataclass(frozen=True, slots=True, eq=False)
class PrecisionFBSState:
    """The optimum on the edges chosen so far."""

    point: Point
    full: bool = False
    done: bool = False


@final
@dataclass(frozen=True, slots=True)
class PrecisionFBS(IterativeBackend[PrecisionFBSState]):
    r"""Add the best edge, solve on the support, repeat (Yuan and Yan, 2013).

    Parameters
    ----------
    score
        ``"gradient"``: the edge with the largest :math:`|(S - \Omega^{-1})_{ij}|`, in units of the
        standard deviations (the published method); ``"gain"``: the edge that lowers the objective
        most when its block is optimised.
    batch
        Edges added at a time.
    tol
        Accuracy of the restricted solves on the way, as a Newton decrement; the last one is exact.

    Notes
    -----
    ``k / batch`` warm-started restricted minimisations. Literal mode solves them all exactly.
    """

    score: Literal["gradient", "gain"] = "gradient"
    batch: int = 1
    tol: float = 0.1
    max_iter: int = 1_000_000

    name: ClassVar[str] = "precision_fbs"
    reference: ClassVar[str] = "Yuan and Yan (IEEE TPAMI 2013), forward basis selection"
    guarantee: ClassVar[str] = (
        "the likelihood rises with every edge; how far the best support is has not been proved"
    )
    purpose: ClassVar[str] = "adds edges one by one by exact gains: another start"
    roles: ClassVar[frozenset[Role]] = frozenset({Role.GREEDY})
    prior: ClassVar[Prior | None] = Prior(close=0.52, excess=0.015)
    published: ClassVar[Mapping[str, Any] | None] = {"tol": 1e-13}
    capabilities: ClassVar[Capabilities] = Capabilities(forms=(SparsePrecision,), groups=False)

    def __post_init__(self) -> None:
        check_options(self, score="'gradient' or 'gain'", batch="at least 1", tol="positive")

    def init(self, objective: Objective, context: Context) -> PrecisionFBSState:
        point = context.first_point(objective)
        return PrecisionFBSState(point)

    def step(
        self, objective: Objective, state: PrecisionFBSState, context: Context
    ) -> PrecisionFBSState:
        point = state.point
        if state.full:
            exact = context.restricted(objective, point.support, point)
            return PrecisionFBSState(exact, True, done=True)
        sparsity = objective.cardinality
        counted = np.setdiff1d(point.support, sparsity.free, assume_unique=True)
        room = min(sparsity.budget, sparsity.units) - counted.size
        if room <= 0:
            return replace(state, full=True)
        added = best_edges(objective, point, min(self.batch, room), self.score)
        support = with_edges(point.support, added, _NONE)
        return PrecisionFBSState(context.restricted(objective, support, point, tol=self.tol))


def best_edges(objective: Objective, point: Point, number: int, score: str) -> IntArray:
    """Return the best ``number`` of counted edges that are not in the support."""
    if score == "gain":
        scores = edge_scores(objective, point)
        return scores.outside[best_first(scores.gains, number)]
    form = cast("SparsePrecision", objective.form)
    outside = form.sparsity.counted
    outside[point.support] = False
    candidates = np.flatnonzero(outside)
    g = np.abs(objective.gradient(point)[candidates]) / edge_units(form, True)[candidates]
    return candidates[best_first(g, number)]
