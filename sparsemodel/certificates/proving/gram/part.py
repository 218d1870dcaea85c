"""Nodes of squared losses, bounded with their Gram matrix by compiled code."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, final

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from sparsemodel.certificates.arithmetic.dualised_rows import DualisedRows
from sparsemodel.certificates.arithmetic.multipliers import refutation
from sparsemodel.certificates.arithmetic.rounding import CAUTION, U
from sparsemodel.certificates.dual_bounds.gains import merged
from sparsemodel.certificates.proving.bounder import COPIED, Aim, Finished, NodeBounder, Relaxed
from sparsemodel.certificates.proving.bounder import RecordedCurvature as Recorded
from sparsemodel.certificates.proving.gram.enumeration import LIMIT as FEW
from sparsemodel.certificates.proving.gram.enumeration import WHOLE, applies, enumerate_supports
from sparsemodel.certificates.proving.gram.kernels.node_problem import Limits, NodeProblem
from sparsemodel.certificates.proving.gram.quadratic import Quadratic, minorant
from sparsemodel.certificates.proving.gram.stage import Gram, Slacks, Stage, best_stage
from sparsemodel.certificates.proving.gram.working_set import on_few
from sparsemodel.certificates.proving.node import IN, OUT, UNDECIDED, Minorant, Node
from sparsemodel.interfaces import FloatArray, IntArray, Knapsack, SparseRegression
from sparsemodel.numerics.minimisers.dispatch import minimise_restricted
from sparsemodel.numerics.minimisers.feasible import satisfied

_ROUNDS = 200
_AT_ONCE = 2
"""Units left to choose up to which a node is enumerated without a relaxation first."""

_STEPS, _MANY_STEPS, _LITTLE = 8, 100, 0.05
"""Steps of the slopes of linear constraints at a node, and at one where nothing is left to decide;
the share of what is to be proved that another one has to be worth."""

_VANISHING = 1e-16
"""The least price, in units of the largest, where there is one for some units only."""

_SHRINK = 0.8
"""Curvature is taken out again when this share of the undecided units (or less) is left."""


@final
class GramPart(NodeBounder):
    """Some units of a problem with squared losses, others in for good."""

    def __init__(
        self, gram: Gram, units: IntArray, inside: IntArray, stage: Stage | None = None
    ) -> None:
        self._gram, self._inside = gram, inside
        self.units = units
        self.inside_units = np.searchsorted(gram.counted, inside)
        self.rounding = CAUTION * gram.q.unit * gram.q.aim**2
        self._coordinates = gram.counted[units]
        always = np.union1d(gram.ridged, inside)
        self._active: IntArray = np.union1d(self._coordinates, always)
        sparsity = gram.form.sparsity
        self.sparsity, self.fewer = sparsity.after(self.inside_units, units), gram.form.fewer
        self._paid = sparsity.charge(self.inside_units)
        self._places = np.searchsorted(self._active, self._coordinates)
        self._stage, self._ready = stage, stage is not None
        self._recorded: Recorded | None = None

    @classmethod
    def root(
        cls,
        form: SparseRegression,
        points: SparseRegression,
        quadratic: Quadratic | None = None,
        declared: SparseRegression | None = None,
    ) -> GramPart:
        """Return the part that is the whole problem.

        ``points`` is the problem itself, where ``form`` has narrower bounds; ``quadratic`` is that
        of both, where it is known. Where these bounds hold for the slopes that linear constraints
        have in ``form`` alone, ``declared`` is the problem without them.
        """
        gram = Gram.of(form, points, quadratic)
        gram = gram if declared is None else gram.at_its_slopes(declared.box)
        return cls(gram, np.arange(gram.counted.size), np.empty(0, dtype=np.intp))

    @property
    def quadratic(self) -> Quadratic:
        """Return the quadratic of the whole problem."""
        return self._gram.q

    def curved(self, deadline: float | None) -> bool:
        """Return whether nodes have a relaxation: a ridge, curvature in the data, or bounds."""
        return self._staged(deadline) is not None

    def _staged(self, deadline: float | None) -> Stage | None:
        """Return the data of the relaxation, with the curvature that can be taken out."""
        if not self._ready:
            gram = self._gram
            counted = bool(self.sparsity.knapsacks or self.sparsity.crossing)
            self._stage = best_stage(
                gram.q, self._active, gram.balanced, gram.box, deadline, whole=counted
            )
            self._ready = True
        return self._stage

    @property
    def delay(self) -> float:
        """Return the seconds that compiling took."""
        return self._gram.delay

    @property
    def operations(self) -> float:
        """Return about how many operations relaxations took so far."""
        return self._gram.operations

    def at_start(self, node: Node, aim: Aim) -> Relaxed | None:
        """Return what the start itself proves, O(p k)."""
        stage = self._staged(aim.deadline)
        if stage is None:
            return None
        return self._at(stage, stage.scaled(node.start), 0.0)

    def relax(self, node: Node, aim: Aim) -> Relaxed | None:
        """Return the relaxation by coordinate descent and Newton steps."""
        if aim.exact and self._gram.wide is not None:
            return self._with_own_slopes(node, aim, self._gram.wide)
        self._gram.deadline = aim.deadline
        stage = self._staged(aim.deadline)
        if stage is None:
            return None
        if stage.slacks is None and not (self.sparsity.knapsacks or self.sparsity.crossing):
            w, t = self._solved(stage, node, aim, stage.scaled(node.start), node.hint, stage.linear)
            return self._at(stage, w, t)
        if stage.slacks is None:
            return self._within_budget(stage, node, aim)
        slopes = self._slopes if node.slopes is None else node.slopes
        slopes = last = self._refuting(node, stage.slacks, slopes, aim) if aim.exact else slopes
        w, t = stage.scaled(node.start), node.hint
        best, most = self._at(stage, w, t, slopes), -math.inf
        for step in range(_MANY_STEPS if aim.exact else _STEPS):
            linear = stage.slacks.linear(stage.linear, slopes)
            w, t = self._solved(stage, node, aim, w, t, linear)
            found = self._at(stage, w, t, slopes)
            proved = None if found.minorant is None else node.decided(found.minorant)
            bound = -math.inf if proved is None else proved.bound
            worth = (1e-6 if aim.exact else _LITTLE) * (aim.cutoff - bound)
            little = step > 0 and not bound > most + worth
            if bound > most:
                best, most = found, bound
            here = stage.slacks.slopes(w, slopes)
            if bound >= aim.cutoff or not stage.slacks.moved(here, slopes) > worth:
                break
            if little and not aim.exact:
                break
            slopes, last = here + step / (step + 3.0) * (here - last), here
        return best

    def _with_own_slopes(self, node: Node, aim: Aim, gram: Gram) -> Relaxed | None:
        """Return the relaxation of a node where nothing is left to choose, at slopes of its own.

        The units that are in have curvature enough for it, as they are few.
        """
        inside = np.flatnonzero(node.status == IN)
        part = GramPart(gram, self.units[inside], self._inside)
        own = replace(node, part=part, status=node.status[inside], slopes=None)
        found = part.relax(own, aim)
        if found is None or found.minorant is None:
            return found
        gains, sizes = np.zeros(self.units.size), np.zeros(self.units.size)
        gains[inside], sizes[inside] = found.minorant.gains, found.sizes
        return replace(found, sizes=sizes, minorant=Minorant(found.minorant.base, gains))

    def _refuting(self, node: Node, slacks: Slacks, slopes: FloatArray, aim: Aim) -> FloatArray:
        """Return slopes to begin with where all is decided; steep ones where nothing is feasible.

        Steps from others climb without end there.
        """
        term = self._gram.q.prices
        if term is None or not isinstance(term.loss, DualisedRows):
            return slopes
        on = self._active[self._full(node.status)[: self._active.size] == IN]
        box = self._gram.box
        away = refutation(term.loss.rows, box and box.chosen, on, aim.upper)
        return slopes if away is None else slacks.signed(slopes + away)

    def _within_budget(self, stage: Stage, node: Node, aim: Aim) -> Relaxed:
        """Return the relaxation of a node where costs have a budget, or with ``k`` in its place.

        ``k`` is looked at where more units than that would fit the budget. Several budgets are
        merged by the gains at the start.
        """
        start = stage.scaled(node.start)
        best, highest = self._at(stage, start, node.hint), -math.inf
        gains = np.zeros(node.status.size) if best.minorant is None else best.minorant.gains
        knapsack = merged(self.sparsity, gains, np.flatnonzero(node.status == IN), node.undecided)
        for costs in (None,) if knapsack is None else (knapsack, None):
            w, t = self._solved(
                stage, node, aim, start, node.hint if costs else 0.0, stage.linear, costs=costs
            )
            found = self._at(stage, w, t if costs else node.hint)
            proved = None if found.minorant is None else node.decided(found.minorant)
            bound = -math.inf if proved is None else proved.bound
            if bound > highest:
                best, highest = found, bound
            if bound >= aim.cutoff or (costs and self._implied(node, costs)):
                break
        return best

    def _implied(self, node: Node, knapsack: Knapsack) -> bool:
        """Return whether no more units fit the budget than may be chosen anyway."""
        room = knapsack.left(np.flatnonzero(node.status == IN))
        cheapest = np.sort(knapsack.costs[node.undecided])[: node.k + 1]
        return bool(cheapest.size <= node.k or cheapest.sum() > room)

    def _solved(
        self,
        stage: Stage,
        node: Node,
        aim: Aim,
        start: FloatArray,
        hint: float,
        linear: FloatArray,
        *,
        costs: Knapsack | None = None,
    ) -> tuple[FloatArray, float]:
        """Return the point of a node's relaxation, scaled, and the multiplier of its budget.

        That of ``costs``, or of the number of units.
        """
        scale = max(abs(aim.cutoff), abs(aim.upper), 1e-300)
        prices, floor, paid = self._prices(node, alike=costs is None)
        each, most = np.ones(prices.size), float(node.k)
        if costs is not None:
            each[self._places] = costs.costs
            most = max(costs.left(np.flatnonzero(node.status == IN)), 0.0)
        status = self._full(self._open(node))
        lower, upper = stage.ends(self._gram.box, status == IN)
        enough = math.inf if aim.exact else aim.cutoff + 1e-9 * scale
        least = 1e-15 * scale if aim.exact else max(0.02 * (aim.upper - aim.cutoff), 1e-10 * scale)
        limits = Limits(enough, least, 4 if aim.exact else _ROUNDS)
        q = np.empty((0, 0)) if stage.matrix is None else stage.matrix
        constant, d = stage.constant + paid, stage.curvature
        problem = NodeProblem(
            q, linear, constant, d, lower, upper, status, most, each, prices, floor
        )
        start, solve = np.clip(start, lower, upper), self._gram.solved
        if stage.matrix is None:
            return on_few(solve, stage, problem, start, hint, limits)
        w, t, _, _, _ = solve(problem, start, hint, limits)
        return w, float(t)

    def _prices(self, node: Node, *, alike: bool) -> tuple[FloatArray, float, float]:
        """Return prices of coordinates, the multiplier of one that all have, and what is paid.

        Where units are ``alike`` to the budget the least price is a multiplier of it.
        """
        out = np.zeros(0 if self._stage is None else self._stage.lower.size)
        if not self.sparsity.priced:
            return out, 0.0, 0.0
        prices = np.broadcast_to(self.sparsity.unit_price, self.units.shape)
        # Which must not vanish.
        least = float(prices.min(initial=math.inf)) if alike else 0.0
        least = max(least, _VANISHING * float(prices.max(initial=0.0)))
        out[self._places] = np.maximum(prices - least, 0.0)
        paid = self._paid + self.sparsity.charge(np.flatnonzero(node.status == IN))
        return out, math.sqrt(2.0 * least), paid

    @property
    def _slopes(self) -> FloatArray:
        """Return the slopes of linear constraints to begin with."""
        prices = self._gram.q.prices
        return np.zeros(0) if prices is None else prices.target

    def _at(
        self, stage: Stage, w: FloatArray, hint: float, slopes: FloatArray | None = None
    ) -> Relaxed:
        """Return a scaled point with what it proves in exact arithmetic."""
        gram, q, own = self._gram, self._gram.q, None
        at = stage.point(w)
        if stage.slacks is not None:
            own = stage.slacks.slopes(w, self._slopes if slopes is None else slopes)
            q = q.at(own)
        # Taken with CAUTION, so that a check of it proves no less.
        low = minorant(q, stage.active, stage.balanced, at, stage.delta, gram.box, caution=CAUTION)
        x = np.zeros(gram.form.shape)
        x[stage.active] = at[: stage.active.size]
        x[stage.balanced] = at[stage.active.size :]
        x = x if gram.q.shifts is None else gram.q.shifts.restore(x)
        if low is not None:
            away = np.delete(low.gains, self._places)
            base = math.fsum([low.base, self._paid, *(-away).tolist()])
            base = math.nextafter(base - 2.0 * U * self._paid, -math.inf)
            low = Minorant(base, low.gains[self._places])
        sizes = np.abs(w[self._places])
        if self._recorded is None:
            self._recorded = Recorded(stage.active, stage.delta)
        return Relaxed(x, hint, sizes, low, stage=self._recorded, slopes=own)

    def _open(self, node: Node) -> Any:
        """Return the status of a node's units where those that nothing has room for are out."""
        if self.sparsity.plain:
            return node.status
        status = np.where(node.status == IN, IN, OUT).astype(np.int8)
        status[node.undecided] = UNDECIDED
        return status

    def _full(self, status: Any) -> Any:
        """Return the status of all active coordinates, and of slacks."""
        slacks = None if self._stage is None else self._stage.slacks
        full = np.full(self._active.size + (0 if slacks is None else slacks.root.size), IN, np.int8)
        full[self._places] = status
        return full

    @property
    def enumerable(self) -> bool:
        """Return whether supports may be looked at one by one.

        On a support where declared bounds hold coefficients the minimum is another one.
        """
        return self.sparsity.bare and self._gram.points is None

    def finishes(self, node: Node) -> bool:
        """Return whether one or two units are left to choose, and all of them may be."""
        return self.sparsity.bare and 1 <= node.k <= _AT_ONCE

    def finish(self, node: Node, *, roughly: bool = False) -> Finished | None:
        """Return the best of all supports of a node where they are few enough to look at.

        Where constraints may hold coefficients their minima without them are what is known.
        """
        gram = self._gram
        rough = gram.points is not None
        if rough and not (roughly and gram.q.prices is None):
            return None
        # Nothing else bounds a problem that has no relaxation.
        limit = FEW if node.link is not None else WHOLE
        if not self.sparsity.bare or not applies(int(node.undecided.size), node.k, limit):
            return None
        gram.compiled()
        found = enumerate_supports(
            gram.q,
            self._active,
            self._full(node.status),
            gram.balanced,
            node.k,
            caution=CAUTION,
            deadline=gram.deadline,
        )
        if found is None:
            return None
        inside = np.isin(gram.counted, found.support)
        return Finished(found.bound, units=np.flatnonzero(inside), rough=rough)

    def shrunk(self, node: Node, before: int) -> GramPart | None:
        """Return the part again with more curvature, while fixing shrinks the whole problem."""
        left = self.units[node.status == UNDECIDED]
        if node.depth or left.size > _SHRINK * before:
            return None
        taken = self._coordinates[node.status == IN]
        return GramPart(self._gram, left, np.union1d(self._inside, taken))

    def copied(self, node: Node) -> GramPart | None:
        """Return the part on the columns that are left where they are much fewer; else None."""
        alive = node.status != OUT
        stage = self._stage
        if stage is None or int(alive.sum()) > COPIED * alive.size:
            return None
        keep = np.ones(self._active.size, dtype=bool)
        keep[self._places[~alive]] = False
        part = GramPart(self._gram, self.units[alive], self._inside, stage.on(keep))
        part._recorded = self._recorded
        return part

    def on(self, status: Any) -> GramPart:
        """Return the part on the units that are not out."""
        return GramPart(self._gram, np.flatnonzero(status != OUT), np.empty(0, dtype=np.intp))

    def minimiser(self, support: IntArray, below: float) -> FloatArray | None:
        """Return the minimiser on a support, from the Gram matrix."""
        q = self._gram.q
        x = np.zeros(self._gram.form.shape)
        if not support.size:
            return x
        matrix = q.hessian[np.ix_(support, support)]
        matrix[np.diag_indices_from(matrix)] += q.ridge[support]
        try:
            values = cho_solve(cho_factor(matrix, lower=True), q.linear[support])
        except np.linalg.LinAlgError:
            return None
        value = q.lowest_constant - 0.5 * float(q.linear[support] @ values)
        if not value < below:
            return None
        x[support] = values
        x = x if q.shifts is None else q.shifts.restore(x)
        points = self._gram.points
        if points is None or satisfied(points.form, x, 0.0):
            return x
        return minimise_restricted(points, support, points.origin()).x
