"""Nodes of any problem, bounded by dual points of its relaxation."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, final

import numpy as np

from sparsemodel.certificates.arithmetic.dualised_rows import row_term, with_slopes, with_stiffness
from sparsemodel.certificates.arithmetic.products import column_norms
from sparsemodel.certificates.arithmetic.rounding import CAUTION, U
from sparsemodel.certificates.dual_bounds.bound import Bound, dual_bound
from sparsemodel.certificates.dual_bounds.curvature import curvature, simple_diagonals
from sparsemodel.certificates.dual_bounds.diagonal_shift import (
    LIMIT,
    Extraction,
    applies,
    hessian,
    squares_hold,
)
from sparsemodel.certificates.dual_bounds.witness import extracted
from sparsemodel.certificates.proving.bounder import (
    COPIED,
    Aim,
    Finished,
    NodeBounder,
    RecordedCurvature,
    Relaxed,
    goal_of,
    proved_of,
)
from sparsemodel.certificates.proving.dual.linear_program import dual_point
from sparsemodel.certificates.proving.dual.shared import SharedData, loose_coordinates, reading_cost
from sparsemodel.certificates.proving.dual.slopes import at_minimum, refuting, witness_at
from sparsemodel.certificates.proving.dual.subproblem import restricted, scattered, sizes_of_rows
from sparsemodel.certificates.proving.node import IN, OUT, UNDECIDED, Minorant, Node
from sparsemodel.certificates.relaxation import relax, relax_extracted
from sparsemodel.certificates.relaxation.extracted import ExtractedRelaxation
from sparsemodel.certificates.relaxation.state import State
from sparsemodel.certificates.statements.certificate import Witness
from sparsemodel.interfaces import FloatArray, IntArray, Point, SparseRegression
from sparsemodel.numerics.budget import Budget

_SHRINK = 0.7
"""A part becomes a problem of its own when fixing leaves this share of its units."""

_AGAIN = 0.9
"""The same where every node is a problem of its own anyway."""

_LITTLE = 0.1
"""Share of what there is to prove below which a minimum without limit is not sought again soon."""

_ROUGH, _CLOSE = 1e-5, 1e-8
"""Share of the slopes left at minima on supports: of candidates, of what is a bound."""


@final
class DualPart(NodeBounder):
    """Some coordinates of a problem, with some units in for good."""

    def __init__(
        self,
        shared: SharedData,
        coordinates: IntArray,
        inside: IntArray,
        matrix: FloatArray | None = None,
        norms: tuple[FloatArray, ...] | None = None,
    ) -> None:
        """``matrix`` and ``norms`` are the Gram matrix and the columns' norms, where known."""
        self._shared, self._coordinates, self._inside = shared, coordinates, inside
        self._form: SparseRegression = restricted(shared.form, coordinates, inside)
        self._matrix = matrix
        self._fast: ExtractedRelaxation | None = None
        self._ready = False
        self._delta: FloatArray | None = None
        self._stage: RecordedCurvature | None = None
        self._norms = norms
        self._last: tuple[bytes, Relaxed | None] = (b"", None)
        self.sparsity, self.fewer = self._form.sparsity, self._form.fewer
        unit = shared.unit[coordinates]
        self.inside_units = np.unique(shared.unit[inside])
        marked = np.zeros(shared.form.sparsity.units + 1, dtype=bool)
        marked[unit] = True  # the last one stands for the free ones
        marked[self.inside_units] = False
        self.units = np.flatnonzero(marked[:-1])

    @classmethod
    def root(cls, form: SparseRegression, points: SparseRegression) -> DualPart:
        """Return the part that is the whole problem.

        ``points`` is the problem itself, where ``form`` has narrower bounds.
        """
        shared = SharedData.of(form, points)
        return cls(shared, np.arange(form.sparsity.size), np.empty(0, dtype=np.intp))

    # ---- the relaxation ----------------------------------------------------------------------

    def at_start(self, node: Node, aim: Aim) -> Relaxed | None:
        """Return None: a dual point costs a pass over the data."""
        return None

    def relax(self, node: Node, aim: Aim) -> Relaxed | None:
        """Return the relaxation of a node, solved until it decides something.

        By a linear program where nothing has curvature, else by first-order steps.
        """
        if self._shared.linear:
            return self._by_linear_program(node, node.status, aim.deadline)
        start = self._shared.start(node.start)[self._coordinates]
        self._prepare(start, aim)
        if self._fast is None:
            loose = bool(np.any(loose_coordinates(self._form)[self._form.sparsity.counted]))
            return self._unlimited(node, aim) if loose else self._alone(node, start, aim)
        counted = np.flatnonzero(self._form.sparsity.counted)
        keep = np.flatnonzero(node.status != OUT)
        diagonal = self._delta
        if diagonal is None:
            diagonal = np.zeros(self._form.sparsity.size)
        enough = goal_of(node, aim)

        def goal(state: State) -> bool:
            return bool(enough(state.value, state.bound))

        state, _ = self._fast.solve(
            diagonal,
            start[counted][keep],
            goal=goal,
            deadline=aim.deadline,
            keep=keep,
            fixed=node.status == IN,
        )
        point = state.bound_point if state.bound_point is not None else state.x
        x, at = np.zeros(counted.size), np.zeros(counted.size)
        x[keep], at[keep] = state.x, point
        witness = extracted(self._form, self._fast.at(at), diagonal)
        if self._delta is None:
            witness = Witness(witness.duals, at=witness.at)
        return self._relaxed(self._fast.at(x), witness, state.interrupted)

    def _alone(self, node: Node, start: FloatArray, aim: Aim) -> Relaxed | None:
        """Solve a node as a problem of its own, and return what that says about this part."""
        if Budget(aim.deadline).over():
            return None  # the first steps alone take a dozen products
        alone = self if np.all(node.status == UNDECIDED) else self._reduced(node.status)
        x = start if alone is self else self._shared.start(node.start)[alone._coordinates]
        form = with_slopes(alone._form, node.slopes)
        # Slopes of linear constraints are a loss, another one in every part.
        models = self._shared.models.on(alone._coordinates) if self._shared.rows is None else None
        found = relax(form, x, report=goal_of(node, aim), deadline=aim.deadline, models=models)
        if isinstance(found, str) or found.witness is None:
            return None
        witness = replace(found.witness, duals=with_stiffness(form, found.witness.duals))
        return self._seen_from_here(
            node, alone, alone._relaxed(found.x, witness, found.interrupted)
        )

    def _by_linear_program(self, node: Node, status: Any, deadline: float | None) -> Relaxed | None:
        """Return what the multipliers of a node's linear program prove."""
        alone = self if np.all(status == UNDECIDED) else self._reduced(status)
        rows = alone._shared.rows
        rows = None if rows is None else rows.on(alone._coordinates)
        found = dual_point(alone._form, rows, deadline)
        if found is None:
            return None
        relaxed = alone._relaxed(found[0], Witness(found[1]), False)
        if relaxed.minorant is None:
            return None
        return self._seen_from_here(node, alone, relaxed)

    def _seen_from_here(self, node: Node, alone: DualPart, relaxed: Relaxed) -> Relaxed:
        """Return what the relaxation of a node as a problem of its own says in these units."""
        low = relaxed.minorant
        places = np.searchsorted(self.units, alone.units)
        gains, sizes = np.zeros(self.units.size), np.zeros(self.units.size)
        sizes[places] = relaxed.sizes
        if low is not None:
            # What the units that are in gain is in the base already.
            gains[places] = low.gains
            paid = self.sparsity.charge(np.flatnonzero(node.status == IN))
            base = low.base if paid == 0.0 else math.nextafter(low.base - paid, -math.inf)
            base -= 2.0 * U * paid
            low = Minorant(base, gains)
        return replace(relaxed, sizes=sizes, minorant=low)

    def _unlimited(self, node: Node, aim: Aim) -> Relaxed | None:
        """Return what is left of a node's problem without the limit on its units.

        Where even that has no minimum, the infimum of the losses is what is known. Where it says
        little the hint is the number of units, and it is sought again once enough of them are out.
        """
        inside = node.status == IN
        inside[node.undecided] = True
        size, found = float(inside.sum()), None
        if node.k <= 0 or not node.hint or size <= _AGAIN * node.hint:
            found = self._fitted(inside, node.status)
        rows = [t.design.shape[0] for t in self._form.terms]
        zero = Witness(tuple(np.zeros((n, *self._form.shape[1:])) for n in rows))
        start = self._shared.start(node.start)[self._coordinates]
        bare = self._relaxed(
            start, zero, False, np.flatnonzero(sizes_of_rows(loose_coordinates(self._form)))
        )
        best = [proved_of(node, one) for one in (found, bare)]
        if found is not None and best[0] > best[1]:
            little = best[0] - best[1] < _LITTLE * (aim.cutoff - best[1])
            return replace(found, hint=size if little else 0.0)
        return replace(bare, hint=node.hint if found is None and node.hint else size)

    def _fitted(self, inside: Any, status: Any) -> Relaxed | None:
        """Return the minimum on the units ``inside``, whose loose slopes vanish; None for none."""
        key = np.where(self._shared.semicontinuous & (status == IN), 2, inside).tobytes()
        if self._last[0] != key:  # one of a node's children has the same problem
            self._last = key, self._minimised(inside, status)
        return self._last[1]

    def _minimised(self, inside: Any, status: Any) -> Relaxed | None:
        shared, form = self._shared, self._form
        if shared.semicontinuous:
            inner = np.union1d(self.inside_units, self.units[status == IN])
            shared = shared.with_minimum_sizes(inner)
            form = restricted(shared.form, self._coordinates, self._inside)
        units = np.union1d(self.inside_units, self.units[inside])
        chosen = shared.points.form.sparsity.coordinates(units)
        loose, box = loose_coordinates(form), form.box
        loose = (loose.T & np.isin(self._coordinates, chosen)).T
        if np.sum(sizes_of_rows(loose) > 0.0) >= sum(t.design.shape[0] for t in self._form.terms):
            return None
        sloped, point = form, None
        if shared.rows is not None:
            rows = shared.rows.on(self._coordinates)
            on = np.isin(self._coordinates, chosen)
            point = shared.minimum(chosen, shared.points, _CLOSE)
            if point is not None:
                sloped = at_minimum(sloped, rows, point, point.x[self._coordinates], on)
            else:
                scale = shared.ends.origin().value
                sloped = refuting(sloped, rows, np.flatnonzero(on), scale)
        if point is None:
            point = shared.minimum(chosen, shared.ends, _CLOSE)
        if point is None:
            return None
        own = point.x[self._coordinates]
        inner = loose if box is None else loose & (own > box.lower) & (own < box.upper)
        balanced = np.flatnonzero(sizes_of_rows(inner))
        found: Relaxed | None = self._balanced(sloped, point, own, balanced)
        if found is None or found.minorant is None:
            return found
        # At a bound as well, where rounding would lead the slope on without end.
        endless = self.units[inside & np.isinf(found.minorant.gains)]
        more = (sizes_of_rows(loose) > 0.0) & np.isin(shared.unit[self._coordinates], endless)
        every = np.union1d(balanced, np.flatnonzero(more))
        again: Relaxed | None = self._balanced(sloped, point, own, every) if more.any() else None
        return found if again is None or again.minorant is None else again

    def _balanced(self, sloped: SparseRegression, point: Point, own: Any, at: Any) -> Any:
        """Return what a minimum proves where the slopes ``at`` vanish; None for nothing."""
        for ends in (False, True):
            witness = witness_at(sloped, point, own, at, ends=ends)
            found = witness and self._relaxed(own, witness, False, at)
            if found is None or found.minorant is not None:
                break
        return found

    def _relaxed(
        self, x: FloatArray, witness: Witness, interrupted: bool, balanced: IntArray | None = None
    ) -> Relaxed:
        """Return what a point and a witness in this part's coordinates prove."""
        shared, size = self._shared, self._shared.form.sparsity.size
        bound = self._evaluate(witness, balanced)
        low = Minorant(bound.base, bound.gains) if math.isfinite(bound.base) else None
        sizes = np.sqrt(self._form.sparsity.unit_scores(np.square(sizes_of_rows(x))))
        full = shared.restored(scattered(x, self._coordinates, size))
        # Units that are in for good are free here, and counted for whoever reads the record.
        loose = sizes_of_rows(loose_coordinates(self._form)) > 0.0
        kept = np.isin(self._coordinates, self._inside) & loose
        kept[np.empty(0, dtype=np.intp) if balanced is None else balanced] = True
        place = row_term(self._form)
        found = Relaxed(
            full,
            0.0,
            sizes,
            low,
            balanced=self._coordinates[kept],
            slopes=None if place is None else witness.duals[place],
            interrupted=interrupted,
        )
        if witness.extraction is None or witness.at is None:
            return replace(found, duals=tuple(a for a in witness.duals if a is not None))
        at = shared.restored(scattered(witness.at, self._coordinates, size))
        return replace(found, at=at, stage=self._stage)

    def _evaluate(self, witness: Witness, balanced: IntArray | None = None) -> Bound:
        """Return the bound of a witness on this part, rounded down.

        The curvature was proved to be in the data when the part was made.
        """
        if self._norms is None:
            self._norms = tuple(column_norms(t.design) for t in self._form.terms)
        taken = None if witness.extraction is None else Extraction(witness.extraction)
        at = witness.at if taken is not None else None
        return dual_bound(
            self._form,
            witness.duals,
            at=at,
            extraction=taken,
            norms=self._norms,
            caution=CAUTION,
            balanced=balanced,
        )

    def _prepare(self, start: FloatArray, aim: Aim) -> None:
        """Compute what makes nodes cheap, and choose the curvature to take out."""
        if self._ready:
            return
        self._ready = True
        form = self._form
        simple = applies(form) and form.box is None and form.sparsity.groups is None
        if not simple or form.matrix or form.sparsity.size > LIMIT or not self.units.size:
            return
        if self._matrix is None and not Budget(aim.deadline).fits(reading_cost(form)):
            return
        if not squares_hold(form):
            return
        if self._matrix is None:
            self._matrix = hessian(form)
        taken = curvature(form, self._matrix)
        if taken is None:
            return
        fast = ExtractedRelaxation(form, taken)
        if sum(t.design.shape[0] for t in form.terms) > form.sparsity.size:

            def enough(value: float, bound: float) -> bool:
                return bound >= aim.cutoff

            found = relax_extracted(
                form,
                taken,
                simple_diagonals(taken),
                start,
                report=enough,
                deadline=aim.deadline,
            )
            if found is not None and found.witness is not None:
                self._set(found.witness.extraction)
        counted = form.sparsity.counted
        if self._delta is not None or not np.any(form.ridge[counted] <= 0.0):
            self._fast = fast

    def _set(self, delta: FloatArray | None) -> None:
        """Use proved curvature."""
        self._delta = delta
        if delta is None:
            return
        if self._shared.scaling is not None:
            whole = scattered(delta, self._coordinates, self._shared.form.sparsity.size)
            witness = self._shared.scaling.witness(Witness((), extraction=whole))
            if witness.extraction is not None:
                delta = witness.extraction[self._coordinates]
        self._stage = RecordedCurvature(self._coordinates, delta)

    # ---- smaller parts -----------------------------------------------------------------------

    def finishes(self, node: Node) -> bool:
        """Return True: what is one convex problem is solved as such."""
        return True

    def finish(self, node: Node, *, roughly: bool = False) -> Finished | None:
        """Return the bound of a node where nothing is left to choose: one convex problem."""
        undecided = node.undecided
        everything = node.allows(undecided) and not self.fewer
        if undecided.size and not everything:
            return None
        inside = node.status == IN
        inside[undecided] = True
        if self._shared.linear:
            found = self._by_linear_program(node, np.where(inside, IN, OUT), None)
        else:
            found = self._fitted(inside, node.status)
        if found is None:
            return None
        value = max(node.bound, proved_of(node, found))
        return Finished(value, x=found.x, duals=found.duals, balanced=found.balanced)

    def shrunk(self, node: Node, before: int) -> DualPart | None:
        """Return a part of fewer units, or this one where nodes are problems of their own."""
        alive = int(np.sum(node.status != OUT))
        if self._fast is not None:
            return self._reduced(node.status) if alive <= _SHRINK * self.units.size else None
        return self if node.undecided.size <= _AGAIN * before else None

    def copied(self, node: Node) -> DualPart | None:
        """Return the part on the units that are left where they are much fewer; else None."""
        out = node.status == OUT
        if self._fast is not None or int(out.sum()) < (1.0 - COPIED) * out.size:
            return None
        part = self._reduced(np.where(out, OUT, UNDECIDED))
        part._ready = True  # its nodes are problems of their own, as they were
        return part

    def on(self, status: Any) -> DualPart:
        """Return the part on the units that are not out."""
        return self._reduced(np.where(status == OUT, OUT, UNDECIDED))

    def _reduced(self, status: Any) -> DualPart:
        """Return the part without the units that are out, those that are in for good."""
        shared = self._shared
        own = shared.unit[self._coordinates]
        decided = np.full(shared.form.sparsity.units + 1, UNDECIDED, dtype=np.int8)
        decided[self.units] = status
        keep, taken = decided[own] != OUT, self._coordinates[decided[own] == IN]
        matrix = None if self._matrix is None else self._matrix[np.ix_(keep, keep)]
        norms = None if self._norms is None else tuple(norm[keep] for norm in self._norms)
        inside = np.union1d(self._inside, taken)
        return DualPart(shared, self._coordinates[keep], inside, matrix, norms)

    # ---- points ------------------------------------------------------------------------------

    def minimiser(self, support: IntArray, below: float) -> FloatArray | None:
        """Return the minimiser on a support, roughly where the value is not below ``below``."""
        shared = self._shared
        point = shared.minimum(support, shared.points, _ROUGH)
        if point is not None and point.value < below and shared.models.known:
            point = shared.minimum(support, shared.points, start=point)
        return None if point is None else shared.restored(point.x)
