"""A subproblem with what its nodes share: columns, Gram matrix, curvature taken out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from sparsemodel.certificates.arithmetic.products import column_norms
from sparsemodel.certificates.arithmetic.rounding import CAUTION
from sparsemodel.certificates.dual_bounds.bound import Bound, dual_bound, nothing
from sparsemodel.certificates.dual_bounds.curvature import Curvature, curvature, simple_diagonals
from sparsemodel.certificates.dual_bounds.diagonal_shift import (
    LIMIT,
    Extraction,
    applies,
    hessian,
    squares_hold,
)
from sparsemodel.certificates.dual_bounds.gains import best_selection
from sparsemodel.certificates.dual_bounds.witness import extracted
from sparsemodel.certificates.proving.branch_and_bound.subproblem import restricted
from sparsemodel.certificates.relaxation import relax, relax_extracted
from sparsemodel.certificates.relaxation.extracted import ExtractedRelaxation
from sparsemodel.certificates.relaxation.state import State
from sparsemodel.certificates.statements.certificate import Witness
from sparsemodel.interfaces import BoolArray, FloatArray, IntArray, SparseRegression

Goal = Callable[[float, float], bool]
"""Called with a relaxation's value and its bound; returns True when that is enough."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """A node's relaxation: where it is, its value, and the witness of its bound."""

    x: FloatArray
    """In the domain's coordinates."""
    value: float
    witness: Witness | None
    interrupted: bool = False


@final
class Domain:
    """The problem on some coordinates, with some units in for good."""

    def __init__(
        self,
        form: SparseRegression,
        coordinates: IntArray,
        inside: IntArray,
        *,
        extraction: FloatArray | None = None,
        matrix: FloatArray | None = None,
    ) -> None:
        self.coordinates: IntArray = coordinates
        self.inside: IntArray = inside
        self.form: SparseRegression = restricted(form, coordinates, inside)
        self.norms: tuple[FloatArray, ...] = tuple(column_norms(t.design) for t in self.form.terms)
        self.extraction = extraction
        self.fast: ExtractedRelaxation | None = None
        self.taken: Curvature | None = None
        self.matrix = matrix
        self.units: int = self.form.sparsity.units
        self.counted: IntArray = np.flatnonzero(self.form.sparsity.counted)

    def prepare(self, goal: Goal, start: FloatArray, deadline: float | None) -> None:
        """Compute what makes nodes cheap, and choose the curvature to take out."""
        form = self.form
        simple = applies(form) and form.box is None and form.sparsity.groups is None
        if not simple or form.matrix or form.sparsity.size > LIMIT or not self.units:
            return
        if not squares_hold(form):
            return
        if self.matrix is None:
            self.matrix = hessian(form)
        self.taken = curvature(form, self.matrix)
        if self.taken is None:
            return
        self.fast = ExtractedRelaxation(form, self.taken)
        rows = sum(t.design.shape[0] for t in form.terms)
        if self.extraction is None and rows > form.sparsity.size:
            diagonals = simple_diagonals(self.taken)
            found = relax_extracted(
                form, self.taken, diagonals, start, report=goal, deadline=deadline
            )
            if found is not None and found.witness is not None:
                self.extraction = found.witness.extraction
        if self.extraction is None and np.any(form.ridge[self.counted] <= 0.0):
            self.fast = None

    def solve(
        self,
        inside: BoolArray,
        out: BoolArray,
        start: FloatArray,
        goal: Goal,
        deadline: float | None,
    ) -> Solved | None:
        """Return the relaxation of a node: units ``inside`` are in, units ``out`` are zero."""
        if self.fast is None:
            if inside.any() or out.any():
                raise ValueError("a domain without a Gram matrix has one node")
            return self._general(start, goal, deadline)
        keep = np.flatnonzero(~out)
        diagonal = self.extraction
        if diagonal is None:
            diagonal = np.zeros(self.form.sparsity.size)

        def enough(state: State) -> bool:
            return goal(state.value, state.bound)

        state, _ = self.fast.solve(
            diagonal,
            start[self.counted][keep],
            goal=enough,
            deadline=deadline,
            keep=keep,
            fixed=inside,
        )
        point = state.bound_point if state.bound_point is not None else state.x
        x, at = np.zeros(self.counted.size), np.zeros(self.counted.size)
        x[keep], at[keep] = state.x, point
        witness = extracted(self.form, self.fast.at(at), diagonal)
        if self.extraction is None:
            witness = Witness(witness.duals, at=witness.at)
        return Solved(self.fast.at(x), state.value, witness, state.interrupted)

    def _general(self, start: FloatArray, goal: Goal, deadline: float | None) -> Solved | None:
        relaxed = relax(self.form, start, report=goal, deadline=deadline)
        if isinstance(relaxed, str):
            return None
        return Solved(relaxed.x, relaxed.value, relaxed.witness, relaxed.interrupted)

    def evaluate(self, witness: Witness | None) -> Bound:
        """Return the bound of a witness on this domain, rounded down.

        The curvature was proved to be in the data when the domain was made.
        """
        if witness is None:
            return nothing("no dual point")
        taken = None if witness.extraction is None else Extraction(witness.extraction)
        at = witness.at if taken is not None else None
        return dual_bound(
            self.form, witness.duals, at=at, extraction=taken, norms=self.norms, caution=CAUTION
        )


def node_value(bound: Bound, form: SparseRegression, inside: BoolArray, out: BoolArray) -> float:
    """Return the bound of a dual point on the part of a domain where units are in or out."""
    if not bound.finite:
        return -math.inf
    forced = inside.astype(np.float64)
    free = ~out
    chosen = best_selection(
        bound.gains[free], forced[free], form.sparsity.budget, form.sparsity.price
    )
    if chosen == -math.inf:
        return math.inf  # more units are in than k: nothing is feasible here
    return math.nextafter(bound.base - chosen, -math.inf)


def forced_values(
    bound: Bound, form: SparseRegression, inside: BoolArray, out: BoolArray
) -> tuple[FloatArray, FloatArray]:
    r"""Return the bounds on a region if one more unit were in, and if it were out; unit by unit.

    With :math:`a` the ``k``-th largest gain and :math:`b` the next, putting in a unit beyond the
    best ``k`` raises the bound by :math:`a - h_j`, leaving out one of the best by :math:`h_j - b`.
    Decided units get ``-inf``.
    """
    if_in, if_out = np.full(inside.size, -math.inf), np.full(inside.size, -math.inf)
    value = node_value(bound, form, inside, out)
    free = np.flatnonzero(~inside & ~out)
    room = form.sparsity.budget - int(inside.sum())
    if not math.isfinite(value) or not free.size:
        return if_in, if_out
    if room <= 0:
        if_in[free], if_out[free] = math.inf, value
        return if_in, if_out
    raw = bound.gains[free] - form.sparsity.price
    profits = np.maximum(raw, 0.0)
    order = np.argsort(-profits, kind="stable")
    top = np.zeros(free.size, dtype=bool)
    top[order[:room]] = True
    last = float(profits[order[room - 1]]) if room <= free.size else 0.0
    after = float(profits[order[room]]) if room < free.size else 0.0
    # Far more than the few roundings that each line commits.
    slack = 1e-12 * (abs(value) + abs(bound.base) + float(np.abs(raw).max()) * room)
    if_in[free] = value + np.where(top, np.maximum(-raw, 0.0), last - raw) - slack
    if_out[free] = value + np.where(top, profits - after, 0.0) - slack
    return if_in, if_out


__all__ = ["Domain", "Goal", "Solved", "forced_values", "node_value"]
