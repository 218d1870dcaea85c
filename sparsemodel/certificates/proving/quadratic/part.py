"""Nodes of a quadratic with linear constraints: multipliers, signs and least sizes inside."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from sparsemodel.certificates.dual_bounds.diagonal_shift import certainly_psd
from sparsemodel.certificates.proving.bounder import (
    COPIED,
    Aim,
    Finished,
    NodeBounder,
    RecordedCurvature,
    Relaxed,
)
from sparsemodel.certificates.proving.compiling import QUADRATIC, warmed
from sparsemodel.certificates.proving.node import IN, OUT, UNDECIDED, Minorant, Node
from sparsemodel.certificates.proving.quadratic.exchange import Exchange
from sparsemodel.certificates.proving.quadratic.problem import QuadraticProblem
from sparsemodel.certificates.proving.quadratic.relaxation import Curvature, Relaxation
from sparsemodel.interfaces import FloatArray, IntArray, SparseRegression
from sparsemodel.numerics import best_units

D, TAU = 1, 2
"""Columns of the kernel: curvature of coordinates, stiffness of rows."""

_ROUNDS, _CHILD_ROUNDS, _LEAF_ROUNDS = 8, 3, 40
"""Rounds of multipliers at a node, at a child that may be branched on, and at one where nothing is
left to choose."""

_EXACT, _ROUGH = 1e-10, 1e-8
"""Gradients that are zero, in units of the largest curvature."""

_ITERATIONS, _EVERY = 300, 20
"""Of the method of multipliers at the root, and how many of them before the bound is looked at."""

_RATE, _SECONDS, _LEAST = 1e9, 0.5, 0.01
"""Operations a second of plain compiled loops; the seconds that a call may take, and those that it
may after the end."""

_TIME = 0.5
"""Share of the time left that curvature may take: nodes need the rest."""

_LITTLE, _OFTEN = 0.02, 2
"""The share of the gap that so many iterations have to be worth, ``_OFTEN`` times in a row."""

_CLOSE = 0.03
"""Gap, relative, up to which branching does well with a diagonal alone: pairs are of no use to
nodes in which both are in, so that they are for roots that are far from closed."""

_PAIRED = 550
"""Coordinates up to which there are pairs: all that fixing leaves of them fit into a record."""

_SHRINK = 0.8
"""Curvature is found again when this share of the undecided units (or less) is left."""

_TRIED = 4
"""Units that are tried before a node is branched on one."""

_RELIABLE = 4
"""Trials of a unit after which what it raised the bound by, for each part of it that was rounded,
is taken for what it will."""

_FEWER = 3
"""Units less than there is room for that exchanges begin with as well."""

_NEXT = 32
"""Nodes after which points are sought by exchanges again, and then after twice as many."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """The coordinates that are left, with the curvature that is taken out of them."""

    on: IntArray
    """Which of the problem's coordinates, slacks among them."""
    matrix: FloatArray
    """``M``."""
    rows: FloatArray
    of: FloatArray
    row: FloatArray
    record: RecordedCurvature
    paired: bool
    relaxation: Relaxation | None = None

    def restricted(self, keep: Any) -> Stage:
        """Return the same on some of the coordinates."""
        matrix = np.ascontiguousarray(self.matrix[np.ix_(keep, keep)])
        rows = np.ascontiguousarray(self.rows[:, keep])
        return replace(self, on=self.on[keep], matrix=matrix, rows=rows, of=self.of[keep].copy())


@final
class SharedKernel:
    """The problem, the compiled code and points known so far: what all parts have in common."""

    def __init__(self, problem: QuadraticProblem) -> None:
        self.problem = problem
        self.delay = 0.0
        self.deadline: float | None = None
        """When the search has to end, as the last relaxation was told."""
        self.exchange = Exchange(problem, self.solve)
        self.relaxed, self.next_exchanges = 0, _NEXT
        units = problem.counted.size
        self.rises, self.trials = np.zeros((2, units)), np.zeros(units)
        """What units raised the bound by when they were tried in and out, for a whole unit each,
        summed over their trials."""
        self._solve: Any = None

    def solve(
        self, stage: Any, status: Any, k: int, start: Any, cutoff: float, *, rounds: int, tol: float
    ) -> Any:
        """Solve a node; ``start`` are ``w``, ``y`` and ``t``."""
        if self._solve is None:
            self._solve = self._compiled()
        w, y, t = start
        return self._solve(
            *(
                stage.matrix,
                stage.rows,
                stage.of,
                stage.row,
                status,
                k,
                w,
                y,
                t,
                cutoff,
                rounds,
                tol,
                self._operations,
            )
        )

    def expected(self, units: IntArray) -> FloatArray:
        """Return what each unit raises the bound by when it is in, and when it is out.

        That of units that were never tried is the average of the others.
        """
        tried = self.trials > 0
        means = self.rises / np.maximum(self.trials, 1)
        usual = means[:, tried].mean(axis=1) if tried.any() else np.ones(2)
        return np.where(tried[units], means[:, units], usual[:, None])

    def learned(self, unit: int, rises: FloatArray) -> None:
        """Take what a unit raised the bound by."""
        self.rises[:, unit] += rises
        self.trials[unit] += 1

    @property
    def _operations(self) -> float:
        """Return what one call may take: compiled code asks no clock and no Ctrl-C ends it."""
        if self.deadline is None:
            return _SECONDS * _RATE
        left = max(self.deadline - time.perf_counter(), _LEAST)
        return min(left, _SECONDS) * _RATE

    def _compiled(self) -> Any:
        """Compile, on first use on a machine; return what is compiled."""
        from sparsemodel.certificates.proving.quadratic.kernel import solve_node
        from sparsemodel.certificates.proving.quadratic.nearest import entries

        one, ones = np.ones(1), np.array([[0.0, 1.0, 0.0, 1.0]])
        row = np.array([[1.0, np.inf, 1.0]])

        def small() -> None:
            entries(one, one, 0.0, 0.0 * one, one, np.zeros(1, np.int8), 1, one.copy(), one.copy())
            solve_node(
                np.eye(1),
                np.eye(1),
                ones,
                row,
                np.zeros(1, np.int8),
                1,
                one,
                one.copy(),
                0.0,
                0.0,
                1,
                1e-8,
                1.0,
            )

        self.delay += warmed(QUADRATIC, small)
        return solve_node


@final
class QuadraticPart(NodeBounder):
    """Some units of a quadratic with linear constraints, others in for good."""

    needs_record = True

    def __init__(
        self,
        shared: SharedKernel,
        units: IntArray,
        inside: IntArray,
        stage: Stage | None = None,
        before: Stage | None = None,
    ) -> None:
        """``before`` is the stage of more units, to begin with where ``stage`` is not known."""
        self._shared, self.units, self.inside_units = shared, units, inside
        problem = shared.problem
        sparsity = problem.form.sparsity
        self.sparsity = sparsity.after(inside, units)
        self._sized = bool((problem.low[problem.counted] > 0.0).any())
        self._paid = sparsity.charge(inside)
        self.rounding = 8.0 * problem.q.unit * problem.q.aim**2
        self._coordinates = problem.counted[units]
        self._stage, self._before = stage, before
        self._last: Any = None
        self._leaf: Stage | None = None
        always = np.concatenate([problem.always, problem.counted[inside]])
        self._on = np.sort(np.concatenate([self._coordinates, always]))

    @classmethod
    def root(cls, form: SparseRegression, points: SparseRegression) -> QuadraticPart:
        """Return the part that is the whole problem, constraints in the objective of ``form``."""
        shared = SharedKernel(QuadraticProblem.of(form, points))
        return cls(shared, np.arange(shared.problem.counted.size), np.empty(0, np.intp))

    @property
    def delay(self) -> float:
        """Return the seconds that compiling took."""
        return self._shared.delay

    # ---- stages ------------------------------------------------------------------------------

    def _staged(self, node: Node, aim: Aim) -> Stage:
        """Return the stage of this part, found when it is first asked for."""
        if self._stage is None:
            self._stage = self._found(node, aim, _ITERATIONS)
        return self._stage

    def _relaxation(self, status: Any, k: int) -> Relaxation:
        """Return the relaxation of this part, with some units decided."""
        problem, on = self._shared.problem, self._on
        full = self._full(status, on)
        return Relaxation(
            problem.matrix[np.ix_(on, on)],
            problem.linear[on],
            problem.rows[:, on],
            problem.right,
            problem.low[on],
            problem.high[on],
            full,
            k,
            problem.q.rows,
        )

    def _found(self, node: Node, aim: Aim, iterations: int) -> Stage:
        """Return a stage with the curvature of the doubly nonnegative relaxation."""
        relaxation = self._relaxation(node.status, node.most)
        best = self._made(relaxation, relaxation.plain(), paired=False)
        start = self._start(best, node)
        highest, upper = self._bounded(best, node, start), aim.upper
        now, end = time.perf_counter(), aim.deadline
        end = None if end is None else now + _TIME * (end - now)
        if self._before is not None:
            kept = np.isin(self._before.on, self._on)
            stage = self._before.restricted(kept)
            bound = self._bounded(stage, node, start)
            if bound > highest:
                best, highest = stage, bound
            if self._before.relaxation is not None:
                relaxation.begun_as(self._before.relaxation, kept)
        for paired in (False, True):
            close = upper - highest <= _CLOSE * abs(upper)
            if (paired and (close or self._on.size > _PAIRED)) or not relaxation.worth(end):
                break
            own, stalls = -math.inf, 0

            def enough(curvature: Curvature, paired: bool = paired, upper: float = upper) -> bool:
                nonlocal best, highest, own, stalls
                stage = self._made(relaxation, curvature, paired=paired)
                bound = self._bounded(stage, node, start)
                little = _LITTLE * (upper - max(bound, highest))
                stalls = stalls + 1 if own > -math.inf and abs(bound - own) <= little else 0
                own = bound
                if bound > highest:
                    best, highest = stage, bound
                return stalls >= _OFTEN or bound >= aim.cutoff

            relaxation.improve(iterations, _EVERY, enough, paired=paired, deadline=end)
            if not node.depth and not paired:
                node.sizes = self._read(best, self._last, node).sizes
                self._explore(node)
                upper = min(upper, self._shared.exchange.best)
        return self._certain(best, relaxation)

    def _certain(self, stage: Stage, relaxation: Relaxation) -> Stage:
        """Return the stage with so little less curvature that a check of its record finds it.

        The check is in the form's units, in which other entries are the largest.
        """
        problem, on = self._shared.problem, stage.on
        unit = problem.unit[on]
        d, tau = stage.of[:, D], stage.row[:, TAU]
        bare = stage.matrix + np.diag(d) + (stage.rows.T * tau) @ stage.rows
        bare = 2.0 * bare / np.outer(unit, unit)
        sums, less = problem.q.rows + 2 * tau.size + 128, 0.0
        pairs = relaxation.matrix - np.diag(d) - stage.matrix
        for step in range(8):
            if certainly_psd(bare, 2.0 * (d - less) / np.square(unit), sums):
                break
            less = 4.0**step * relaxation.given_away
        if less == 0.0:
            return stage
        return self._made(relaxation, Curvature(d - less, pairs, tau), paired=stage.paired)

    def _made(self, relaxation: Relaxation, curvature: Curvature, *, paired: bool) -> Stage:
        """Return a stage with given curvature."""
        problem, on = self._shared.problem, self._on
        unit, d = problem.unit[on], curvature.d
        matrix = relaxation.matrix - np.diag(d) - curvature.pairs
        of = np.column_stack([problem.linear[on], d, problem.low[on], problem.high[on]])
        row = np.column_stack([problem.right, problem.caps, curvature.tau])
        i, j = np.nonzero(np.triu(curvature.pairs))
        record = RecordedCurvature(
            on,
            2.0 * d / np.square(unit),
            stiffness=2.0 * curvature.tau * np.square(problem.scale),
            pairs=(on[i], on[j], 2.0 * curvature.pairs[i, j] / (unit[i] * unit[j])),
        )
        rows = np.ascontiguousarray(problem.rows[:, on])
        return Stage(on, np.ascontiguousarray(matrix), rows, of, row, record, paired, relaxation)

    def _bounded(self, stage: Stage, node: Node, start: Any) -> float:
        """Return the bound of a node with a stage, whose point and multipliers are kept."""
        status = self._full(node.status, stage.on)
        found = self._shared.solve(stage, status, node.most, start, math.inf, rounds=30, tol=_ROUGH)
        start[0][:], start[1][:], start[2] = found[4], found[2], found[3]
        self._last = found
        return float(found[0])

    # ---- nodes -------------------------------------------------------------------------------

    def _full(self, status: Any, on: IntArray) -> Any:
        """Return the status of coordinates, of those that are not in this part for good."""
        full = np.full(self._shared.problem.linear.size, IN, np.int8)
        full[self._shared.problem.counted] = OUT
        full[self._shared.problem.counted[self.inside_units]] = IN
        full[self._coordinates] = status
        return full[on]

    def _start(self, stage: Stage, node: Node) -> list[Any]:
        """Return where a node's relaxation starts: the point, the multipliers, the budget's."""
        problem = self._shared.problem
        at = np.zeros(problem.linear.size)
        at[: node.start.size] = node.start
        w = at[stage.on] / problem.unit[stage.on]
        y = np.zeros(problem.right.size) if node.slopes is None else self._inner(node.slopes)
        return [w, y, node.hint]

    def _inner(self, slopes: FloatArray) -> FloatArray:
        """Return multipliers from slopes of the declared rows."""
        problem = self._shared.problem
        return -slopes * problem.extended.sign / problem.scale

    def _outer(self, y: FloatArray) -> FloatArray:
        """Return slopes of the declared rows."""
        problem = self._shared.problem
        return np.asarray(-y * problem.extended.sign * problem.scale)

    def _open(self, node: Node) -> Any:
        """Return the status of a node's units where those that nothing has room for are out."""
        if self.sparsity.plain:
            return node.status
        status = np.where(node.status == IN, IN, OUT).astype(np.int8)
        status[node.undecided] = UNDECIDED
        return status

    def at_start(self, node: Node, aim: Aim) -> Relaxed | None:
        """Return None: a relaxation takes no longer."""
        return None

    def relax(self, node: Node, aim: Aim) -> Relaxed | None:
        """Return the relaxation of a node."""
        self._shared.deadline = aim.deadline
        convex = self._convex(node)
        if aim.exact or convex:
            return self._at_leaf(node, aim, convex)
        stage = self._staged(node, aim)
        status = self._full(self._open(node), stage.on)
        cutoff = aim.cutoff - self._charge(node)
        cutoff += 1e-9 * abs(cutoff)
        start = self._start(stage, node)
        found = self._shared.solve(
            stage, status, node.most, start, cutoff, rounds=_ROUNDS, tol=_ROUGH
        )
        return self._read(stage, found, node)

    def _convex(self, node: Node) -> bool:
        """Return whether any of the undecided units may be in, and being in costs them nothing."""
        undecided = node.undecided
        free = self._shared.problem.low[self._coordinates[undecided]] <= 0.0
        return bool(not self.sparsity.priced and free.all() and node.allows(undecided))

    def _at_leaf(self, node: Node, aim: Aim, convex: bool) -> Relaxed:
        """Return the relaxation of a node where nothing is left to choose, which has no gap."""
        if self._leaf is None:
            relaxation = self._relaxation(np.full(self.units.size, UNDECIDED, np.int8), 1)
            leaf = self._made(relaxation, relaxation.plain(), paired=False)
            self._leaf = self._certain(leaf, relaxation)
        own = np.where(node.status == IN, IN, OUT).astype(np.int8)
        own[node.undecided] = IN if convex else UNDECIDED
        status = self._full(own, self._leaf.on)
        keep = status >= 0
        stage = self._leaf.restricted(keep)
        start = self._start(stage, node)
        cutoff = aim.cutoff - self._charge(node)
        cutoff += 1e-9 * abs(cutoff)
        found = self._shared.solve(
            stage, status[keep], node.most, start, cutoff, rounds=_LEAF_ROUNDS, tol=_EXACT
        )
        return self._read(stage, found, node)

    def _charge(self, node: Node) -> float:
        """Return what the units that are in cost."""
        if not self.sparsity.priced:
            return self._paid
        return self._paid + self.sparsity.charge(np.flatnonzero(node.status == IN))

    def _read(self, stage: Stage, found: Any, node: Node) -> Relaxed:
        """Return what was found in the coordinates of the form, and what it proves."""
        problem = self._shared.problem
        _, base, y, t, w, gains, shares = found
        at, own, z = (np.zeros(problem.linear.size) for _ in range(3))
        at[stage.on] = w * problem.unit[stage.on]
        own[stage.on], z[stage.on] = gains, shares + 1e-3 * np.abs(w)
        places = self._coordinates
        away = own[np.concatenate([problem.always, problem.counted[self.inside_units]])].sum()
        base = base - away + self._paid
        self._shared.relaxed += 1
        return Relaxed(
            at[: problem.size],
            t,
            z[places],
            Minorant(base, own[places]) if math.isfinite(base) else None,
            at=at,
            stage=stage.record,
            slopes=self._outer(y),
        )

    def branching(self, node: Node, aim: Aim) -> int | None:
        """Return the unit whose two sides raise the bound most together, of a few.

        Each side of a unit is tried by a few rounds until it was often enough; from then on what
        it raised the bound by on average is expected of it (reliability branching).
        """
        stage, shared = self._stage, self._shared
        undecided = node.undecided
        if stage is None or undecided.size < 2:
            return None
        z = np.clip(node.sizes[undecided], 1e-9, 1.0 - 1e-9)
        rounded = np.stack([1.0 - z, z])
        units = self.units[undecided]
        known = shared.trials[units]
        cutoff = aim.cutoff - self._charge(node)
        room, least = cutoff - node.bound + self._paid, 1e-9 * abs(cutoff)
        rises = shared.expected(units) * rounded
        scores = np.prod(np.clip(rises, least, max(room, least)), axis=0)
        best, most = None, -1.0
        for number in np.argsort(-scores, kind="stable")[:_TRIED]:
            place, score = int(undecided[number]), float(scores[number])
            if known[number] < _RELIABLE:
                own = self._tried(stage, node, place, cutoff)
                shared.learned(int(units[number]), own / rounded[:, number])
                score = float(np.prod(np.clip(own, least, max(room, least))))
                if own.min() >= room:
                    return place
            if score > most:
                best, most = place, score
        return best

    def _tried(self, stage: Stage, node: Node, place: int, cutoff: float) -> FloatArray:
        """Return what a few rounds raise the bound by with a unit in, and with it out."""
        rises = np.zeros(2)
        for side, decision in enumerate((IN, OUT)):
            child = node.child(place, decision, node.bound, (0, 0))
            status = self._full(self._open(child), stage.on)
            found = self._shared.solve(
                *(stage, status, child.most, self._start(stage, node), cutoff),
                rounds=_CHILD_ROUNDS,
                tol=_ROUGH,
            )
            rises[side] = max(min(float(found[0]), cutoff) - node.bound + self._paid, 0.0)
        return rises

    def proposals(self, node: Node, upper: float) -> list[FloatArray]:
        """Return the best point of exchanges, where it is better than ``upper``."""
        exchange = self._shared.exchange
        shared = self._shared
        if not node.depth or shared.relaxed >= shared.next_exchanges:
            self._explore(node)
            shared.next_exchanges = max(2 * shared.relaxed, _NEXT)
        known = exchange.x
        return [known] if known is not None and exchange.best < upper else []

    def _explore(self, node: Node) -> None:
        """Exchange units, beginning with those that a relaxation points at.

        Beside least sizes also with fewer of them, as many as there is room for need not be best.
        """
        sizes, undecided = node.sizes, node.undecided
        inside = np.concatenate([self.inside_units, self.units[node.status == IN]])
        most = node.most
        for size in range(max(most - (_FEWER if self._sized else 0), 1), most + 1):
            choice = replace(node.choice, k=size)
            best = undecided[best_units(choice, sizes[undecided])]
            self._shared.exchange.improve(
                np.concatenate([inside, self.units[best]]), self._shared.deadline
            )

    # ---- parts -------------------------------------------------------------------------------

    def finishes(self, node: Node) -> bool:
        """Return False: nodes are bounded by their relaxation alone."""
        return False

    def finish(self, node: Node, *, roughly: bool = False) -> Finished | None:
        """Return None, as above."""
        return None

    def shrunk(self, node: Node, before: int) -> QuadraticPart | None:
        """Return the part again with more curvature, while fixing shrinks the whole problem."""
        left = self.units[node.status == UNDECIDED]
        if node.depth or left.size > _SHRINK * before:
            return None
        taken = self.units[node.status == IN]
        inside = np.union1d(self.inside_units, taken)
        return QuadraticPart(self._shared, left, inside, before=self._stage)

    def copied(self, node: Node) -> QuadraticPart | None:
        """Return the part on the columns that are left where they are much fewer; else None."""
        alive = node.status != OUT
        if self._stage is None or int(alive.sum()) > COPIED * alive.size:
            return None
        keep = np.ones(self._shared.problem.linear.size, bool)
        keep[self._coordinates[~alive]] = False
        stage = self._stage.restricted(keep[self._stage.on])
        return QuadraticPart(self._shared, self.units[alive], self.inside_units, stage)

    def on(self, status: Any) -> QuadraticPart:
        """Return the part on the units that are not out."""
        units = np.flatnonzero(status != OUT)
        return QuadraticPart(self._shared, units, np.empty(0, dtype=np.intp))

    def minimiser(self, support: IntArray, below: float) -> FloatArray | None:
        """Return the minimiser on a support."""
        exchange = self._shared.exchange
        found = exchange.fitted(support)
        return None if found is None or not found.value < below else exchange.point(found)
