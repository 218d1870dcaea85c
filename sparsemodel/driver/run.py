"""Run a plan: solve the reduced form stage by stage, keep the best point, finish it."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import final

import numpy as np

from sparsemodel.compiler.plans.plan import Plan
from sparsemodel.compiler.plans.stage import Stage
from sparsemodel.compiler.reductions.base import Reduced
from sparsemodel.compiler.services import (
    bounding_point,
    check_start,
    convex_starts_of,
    objective_of,
    restricted_of,
)
from sparsemodel.driver.finish import debiased_point, first_point, restored, restored_dual
from sparsemodel.driver.judging import better, check_contract
from sparsemodel.driver.outcome import Outcome, RunOptions, ShortProof, StageEnd
from sparsemodel.driver.sampled import sampled_start
from sparsemodel.interfaces import (
    BackendContractError,
    Context,
    FloatArray,
    Form,
    IntArray,
    Limits,
    Objective,
    Point,
    Result,
    Stop,
    Work,
    priced,
)
from sparsemodel.numerics import satisfied, separation
from sparsemodel.numerics.budget import ending_by
from sparsemodel.numerics.objectives.optimality import OptimalityTest
from sparsemodel.threads import small_work

_ROUNDING = 1e-12
_SAME = 1e-8
"""Relative difference up to which two starts have come to the same objective."""


@small_work()
@np.errstate(all="ignore")  # the result shows what overflowed
def run(
    form: Form,
    reduced: Reduced,
    plan: Plan,
    options: RunOptions | None = None,
    *,
    sample: bool = True,
) -> Outcome:
    """Run the stages of ``plan`` on the reduced form and return the outcome on ``form``.

    Without a start, data that are read from a file are first solved on a ``sample`` of the rows.
    """
    options = RunOptions() if options is None else options
    began = time.perf_counter()
    limit = options.time_limit
    with (
        ending_by(None if limit is None else began + limit) as left,
        reduced.restoring(form),
    ):
        if options.start is None and sample:
            first = sampled_start(reduced, partial(run, options=RunOptions(seed=options.seed)))
            if first is not None:
                options = replace(options, start=reduced.restore(first))
                plan = plan.from_near()
        current = _Run(form, reduced, plan, options, left.deadline)
        current.run_stages()
        if current.diverged_from_start():
            zero = replace(options, start=None, time_limit=None)
            again = run(form, reduced, plan, zero, sample=False)
            note = "the start led to a point worse than zero, so the run began again there"
            if current.from_zero() or again.value < current.outcome(began).value:
                return replace(again, notes=(note, *again.notes))
        found = current.outcome(began)
        if left.cut and found.stop is Stop.CONVERGED:  # a minimisation was broken off
            found = replace(found, stop=Stop.TIME_LIMIT)
        return found


@final
class _Run:
    """One run of a plan: what its stages found so far."""

    def __init__(
        self,
        form: Form,
        reduced: Reduced,
        plan: Plan,
        options: RunOptions,
        deadline: float | None,
    ) -> None:
        self._form, self._reduced, self._plan = form, reduced, plan
        self._options, self._deadline = options, deadline
        self._work = Work()
        self._objective = objective_of(reduced.form, reduced.gradient, self._work)
        self._restricted = restricted_of(reduced.form)
        start = None if options.start is None else reduced.carry(options.start)
        self._convex = convex_starts_of(self._objective, self._restricted)
        self._first = first_point(self._objective, self._restricted, start, self._convex)
        check_start(self._objective, self._restricted)
        self._optimality = OptimalityTest(self._objective, options.enclosure)
        self._results: list[Result] = []
        self._best: Result | None = None
        self._before: Result | None = None  # the best when the last fresh start was made
        self._improved = False  # by the last stage: a point is judged once
        self._found_by = ""
        self._ends: list[StageEnd] = []
        self._notes: list[str] = []
        self._duals: list[tuple[FloatArray, ...]] = []
        self._proof: ShortProof | None = None
        self._proofs = 0
        self._last: tuple[Point, tuple[FloatArray, float]] | None = None

    def run_stages(self) -> None:
        """Run the stages in order, until one of them leaves nothing to do."""
        for number, stage in enumerate(self._plan.stages, start=1):
            needless = self._needless(stage)
            if needless:
                self._report(StageEnd(number, stage.label, skipped=needless))
                return
            if stage.start == "zero":
                self._before = self._best
            if self._run_stage(number, stage).stop.requested:
                return

    def _needless(self, stage: Stage) -> str:
        """Return why ``stage`` and those after it are not run; empty where it is."""
        if self._best is None:
            return ""
        if self._optimality.passed(self._best.point, self._found_by):
            self._notes.append(
                f"skipped {stage.label}: the objective already equals its lower bound"
            )
            return "nothing is left to gain"
        if (
            self._improved
            and np.isfinite(self._plan.clear_from)
            and separation(self._objective, self._best.point) > self._plan.clear_from
        ):
            return "the support stands out"
        fresh = stage.start == "zero"
        if fresh and self._plan.until_agreement and self._starts_agree():
            return "two starts came to the same point"
        return ""

    def _starts_agree(self) -> bool:
        """Return whether the last start ended as low as the best before it, and no lower."""
        if not self._results or self._before is None:
            return False
        new = priced(self._objective, self._results[-1].point)
        old = priced(self._objective, self._before.point)
        return abs(new - old) <= _SAME * abs(old)

    def _run_stage(self, number: int, stage: Stage) -> Result:
        """Run one stage from where it starts, check what it returned, keep the best."""
        objective, options = self._objective, self._options
        clock, passes = time.perf_counter(), self._work.passes
        last = self._results[-1] if self._results else None
        source = {"zero": None, "last": last, "best": self._best}[stage.start]
        context = Context(
            restricted=self._counted,
            limits=Limits(
                stage.max_iter if options.max_iter is None else options.max_iter, self._deadline
            ),
            rng=np.random.default_rng(options.seed),
            start=self._first if source is None else source.point.x,
            on_iterate=options.listener(self._reduced.restore),
            proof=None if options.proof is None else self._prove,
            starts=None if self._convex is None else self._starts,
            neighbourhood=self._neighbourhood if self._linked else None,
        )
        result = stage.backend.solve(objective, context)
        check_contract(stage.label, result, objective)
        self._take(result, stage.label)
        self._report(
            StageEnd(
                number,
                stage.label,
                value=priced(objective, result.point),
                improved=self._improved,
                iterations=result.iterations,
                passes=(self._work.passes - passes) * self._reduced.shrinkage,
                seconds=time.perf_counter() - clock,
                stop=result.stop,
            )
        )
        return result

    def _counted(
        self, objective: Objective, support: IntArray, start: Point, *, tol: float | None = None
    ) -> Point:
        """Minimise on a support for a backend, and count it."""
        objective.work.restricted_solves += 1
        return self._restricted(objective, support, start, tol=tol)

    def _take(self, result: Result, found_by: str) -> None:
        self._results.append(result)
        self._notes += result.notes
        if result.dual is not None and self._reduced.keeps_predictions:
            self._duals.append(result.dual)
        self._improved = self._best is None or better(self._objective, result, self._best)
        if self._best is None or self._improved:
            self._best, self._found_by = result, found_by
        if result.stop.requested:
            self._best = replace(self._best, stop=result.stop)

    def _prove(self, point: Point) -> tuple[Point, bool]:
        """Return the best point that a short proof meets, and whether it is proved optimal."""
        self._proofs += 1
        prove, objective, reduced = self._options.proof, self._objective, self._reduced
        if prove is None or not point.support.size:
            return point, False
        x, _ = self._restored(point)
        found = prove(x)
        if found is None:
            return point, False
        self._proof = found
        if found.x is x:
            return point, found.closed
        following = objective.point_from(reduced.carry(found.x))
        return following if following.value < point.value else point, found.closed

    def _starts(self) -> list[FloatArray]:
        """Return what the convex problem is rounded to."""
        return [] if self._convex is None else [point.x for point in self._convex.points()]

    @property
    def _linked(self) -> bool:
        """Return whether constraints link units, which are then searched together."""
        there = self._convex is not None and self._options.neighbourhood is not None
        return there and self._objective.form.region is not None

    def _neighbourhood(self, objective: Objective, point: Point) -> Point | None:
        """Return a better point on the units that constraints and prices put near ``point``."""
        search, convex = self._options.neighbourhood, self._convex
        if search is None or convex is None:
            return None
        x = search(objective.form, point.x, convex.linked(objective, point))
        if x is None:
            return None
        found = objective.point_from(x)
        found = self._restricted(objective, found.support, found)
        return found if priced(objective, found) < priced(objective, point) else None

    def _restored(self, point: Point) -> tuple[FloatArray, float]:
        """Return a point and its value on the unreduced form, which is read once for each."""
        if self._last is None or self._last[0] is not point:
            self._last = point, restored(self._form, self._reduced, point)
        return self._last[1]

    def _report(self, end: StageEnd) -> None:
        self._ends.append(end)
        if self._options.on_stage is not None:
            self._options.on_stage(end)

    def diverged_from_start(self) -> bool:
        """Return whether a given start led to a point worse than zero.

        Where zero is not feasible, to one ten times worse: other data may throw a last solution
        where losses are flat.
        """
        best, objective = self._found(), self._objective
        if self._options.start is None or best.stop.requested:
            return False
        value, there = priced(objective, best.point), priced(objective, objective.origin())
        if self.from_zero():
            return not value <= there
        return 0.0 < there < 0.1 * value < np.inf

    def from_zero(self) -> bool:
        """Return whether zero is feasible."""
        return satisfied(self._objective.form, self._objective.origin().x)

    def _found(self) -> Result:
        if self._best is None:
            raise BackendContractError("The plan has no stages.")
        return self._best

    def outcome(self, began: float) -> Outcome:
        """Return the best point, debiased and evaluated on the unreduced form."""
        best, objective, reduced = self._found(), self._objective, self._reduced
        point = debiased_point(objective, self._restricted, best)
        if self._options.proved_last and not self._proofs and not best.stop.requested:
            point, _ = self._prove(point)
        bounding = bounding_point(objective, point)
        promise = np.inf if self._duals else -np.inf
        if bounding is not None:
            self._duals.append(restored_dual(self._form, reduced, objective, bounding[0]))
            promise = max(promise, bounding[1])
        x, value = self._restored(point)
        proof = self._proof
        return Outcome(
            x=x,
            value=value,
            stop=best.stop,
            iterations=sum(result.iterations for result in self._results),
            history=tuple(event for result in self._results for event in result.history),
            passes=self._work.passes * reduced.shrinkage,
            factorizations=self._work.factorizations,
            seconds=time.perf_counter() - began,
            notes=tuple(self._notes),
            duals=tuple(self._duals),
            promise=promise,
            stages=tuple(self._ends),
            bound=-np.inf if proof is None else min(proof.bound, _moved(value, -1.0)),
            optimal=proof is not None and proof.closed and value <= _moved(proof.upper, 1.0),
            backends=tuple(stage.backend for stage in self._plan.stages),
            keeps_steps=reduced.keeps_steps,
            keeps_predictions=reduced.keeps_predictions,
        )


def _moved(value: float, sign: float) -> float:
    """Return a value with, or without, what another evaluation of it may differ by."""
    return value + sign * _ROUNDING * abs(value)
