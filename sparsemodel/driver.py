"""Run a plan: reduce, solve stage by stage, invert, polish, check, report."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast, final

import numpy as np

from sparsemodel.compiler import Plan, Reduced
from sparsemodel.compiler.services import objective_of, restricted_of
from sparsemodel.interfaces import (
    BackendContractError,
    Callback,
    Context,
    DataError,
    FloatArray,
    Form,
    Iteration,
    Limits,
    Objective,
    Point,
    RestrictedSolver,
    Result,
    SparseRegression,
    Stop,
    priced,
)
from sparsemodel.numerics import (
    RegressionObjective,
    check_attained,
    check_bounded,
    check_range,
    feasible_start,
    satisfied,
    separation,
)

_FEASIBLE = 1e-9
"""How far a point may be outside a bound, relative to the bound's size."""
_FEASIBLE_CVXPY = 1e-6
"""The same where CVXPY keeps the constraints, whose solvers stop at such an accuracy."""

_SHORT = (Stop.INTERRUPTED, Stop.TIME_LIMIT, Stop.CALLBACK)
"""Stops that somebody asked for: what was found so far is returned."""

CLEAR = 5.0
"""Times that every chosen unit is worth what another would gain, from which the rest of a plan is
left out where promising columns are hardly correlated. A wrong unit in the support is worth about
what the right one outside would gain."""

_SAME = 1e-8
"""Relative difference up to which two starts have come to the same objective."""

_EXACT = 1e-28
"""Share of the objective at zero below which a squared residual is rounding."""


@final
@dataclass(frozen=True, slots=True)
class StageEnd:
    """What a stage of the plan did."""

    number: int
    label: str
    value: float = np.nan
    """Objective it ended with, price included."""
    improved: bool = False
    """Whether that is the best so far."""
    iterations: int = 0
    passes: float = 0.0
    seconds: float = 0.0
    stop: Stop = Stop.CONVERGED
    skipped: str = ""
    """Why it was not run; empty when it was."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """A finished run, in the coordinates of the unreduced form."""

    x: FloatArray
    value: float
    """Objective on the original data, price included."""
    stop: Stop
    iterations: int
    history: tuple[Iteration, ...]
    passes: float
    factorizations: int
    seconds: float
    notes: tuple[str, ...]
    duals: tuple[tuple[FloatArray, ...], ...]
    """Dual points worth trying as bounds, a loss gradient per term each."""
    stages: tuple[StageEnd, ...] = ()
    """What each stage did."""


@np.errstate(all="ignore")  # what overflows is told from the result
def run(
    form: Form,
    reduced: Reduced,
    plan: Plan,
    *,
    start: FloatArray | None = None,
    seed: int = 0,
    time_limit: float | None = None,
    max_iter: int | None = None,
    callback: Callback | None = None,
    progress: Callable[[Iteration], None] | None = None,
    on_stage: Callable[[StageEnd], None] | None = None,
) -> Outcome:
    """Run the stages of ``plan`` on the reduced form and return the outcome on ``form``.

    Limits, seed and callback hold for all stages together: one deadline, the seed for each
    stage, and a callback that ends the run ends the plan. ``on_stage`` hears of each stage's end.
    """
    began = time.perf_counter()
    deadline = None if time_limit is None else began + time_limit
    objective = objective_of(reduced.form, reduced.gradient)
    restricted = restricted_solver(reduced.form)
    first = _first_point(objective, restricted, None if start is None else reduced.carry(start))
    if isinstance(objective, RegressionObjective):
        check_bounded(objective, restricted)
    history: list[Iteration] = []
    notes: list[str] = []
    duals: list[tuple[FloatArray, ...]] = []
    last: Result | None = None
    best: Result | None = None
    before: Result | None = None  # the best when the last fresh start was made
    improved = False  # by the last stage: a point is looked at once
    iterations = 0
    ends: list[StageEnd] = []

    def report(end: StageEnd) -> None:
        ends.append(end)
        if on_stage is not None:
            on_stage(end)

    for number, stage in enumerate(plan.stages, start=1):
        if best is not None and _closed(objective, best.point):
            notes.append(f"{stage.label} was not needed: nothing is left to gain")
            report(StageEnd(number, stage.label, skipped="nothing is left to gain"))
            break
        if best is not None and improved and plan.until_clear and _clear(objective, best.point):
            report(StageEnd(number, stage.label, skipped="the support stands out"))
            break
        if stage.start == "zero":
            if plan.until_agreement and _agree(objective, last, before):
                report(StageEnd(number, stage.label, skipped="two starts came to the same point"))
                break
            before = best
        clock, passes = time.perf_counter(), objective.passes
        source = {"zero": None, "last": last, "best": best}[stage.start]
        context = Context(
            restricted=restricted,
            limits=Limits(stage.max_iter if max_iter is None else max_iter, deadline),
            rng=np.random.default_rng(seed),
            start=first if source is None else source.point.x,
            on_iterate=_listener(callback, progress),
        )
        last = stage.backend.solve(objective, context)
        _check_contract(stage.label, last, objective)
        history += last.history
        notes += last.notes
        iterations += last.iterations
        if last.dual is not None and reduced.keeps_predictions:
            duals.append(last.dual)
        improved = best is None or _better(objective, last, best)
        if best is None or improved:
            best = last
        report(
            StageEnd(
                number,
                stage.label,
                value=priced(objective, last.point),
                improved=improved,
                iterations=last.iterations,
                passes=(objective.passes - passes) * reduced.shrinkage,
                seconds=time.perf_counter() - clock,
                stop=last.stop,
            )
        )
        if last.stop in _SHORT:
            best = replace(best, stop=last.stop)
            break
    if best is None:
        raise BackendContractError("The plan has no stages.")
    ended = best.stop not in _SHORT
    if start is not None and ended and _led_astray(objective, best):
        left = None if deadline is None else max(deadline - time.perf_counter(), 0.0)
        again = run(
            form,
            reduced,
            plan,
            seed=seed,
            time_limit=left,
            max_iter=max_iter,
            callback=callback,
            progress=progress,
            on_stage=on_stage,
        )
        note = "the start led to a point worse than zero, so the run began again there"
        return replace(again, notes=(note, *again.notes))
    point = _polish(objective, restricted, best)
    if isinstance(objective, RegressionObjective):
        check_range(objective, point)
        check_attained(objective, point)
        objective.bound_at(point)
        if objective.best_bound_point is not None:
            duals.append(_dual(form, reduced, objective, objective.best_bound_point))
    x, value = _original(form, reduced, objective, point)
    return Outcome(
        x=x,
        value=value,
        stop=best.stop,
        iterations=iterations,
        history=tuple(history),
        passes=objective.passes * reduced.shrinkage,
        factorizations=objective.factorizations,
        seconds=time.perf_counter() - began,
        notes=tuple(notes),
        duals=tuple(duals),
        stages=tuple(ends),
    )


def restricted_solver(form: Form) -> RestrictedSolver:
    """Return the service that minimises on a support: CVXPY where a constraint asks for it."""
    if isinstance(form, SparseRegression) and form.region is not None and form.region.others:
        from sparsemodel.cvx import minimise_with_cvxpy

        return minimise_with_cvxpy
    return restricted_of(form)


def _first_point(
    objective: Objective, restricted: RestrictedSolver, start: FloatArray | None
) -> FloatArray | None:
    """Return a feasible start, None where zero is one; a start that is not is fitted first."""
    form = objective.form
    if start is not None and isinstance(form, SparseRegression) and not satisfied(form, start):
        at = objective.point_from(start)
        fitted = restricted(objective, at.support, at)
        start = fitted.x if np.isfinite(fitted.value) else None
    if start is not None:
        return start
    first = feasible_start(objective, restricted)
    return None if first is None else first.x


def _better(objective: Objective, last: Result, best: Result) -> bool:
    """Return whether ``last`` replaces ``best``: lower, or as low and come to its own end."""
    new, old = priced(objective, last.point), priced(objective, best.point)
    if last.stop is Stop.CONVERGED and best.stop is not Stop.CONVERGED:
        return new <= old + 1e-12 * abs(old)
    return new < old


def _led_astray(objective: Objective, best: Result) -> bool:
    """Return whether zero is feasible and better than what was found from a given start."""
    form, origin = objective.form, objective.origin()
    if isinstance(form, SparseRegression) and not satisfied(form, origin.x):
        return False
    return not priced(objective, best.point) <= priced(objective, origin)


def _agree(objective: Objective, last: Result | None, before: Result | None) -> bool:
    """Return whether the last start ended as low as the best before it, and no lower."""
    if last is None or before is None:
        return False
    new, old = priced(objective, last.point), priced(objective, before.point)
    return abs(new - old) <= _SAME * abs(old)


def _listener(
    callback: Callback | None, progress: Callable[[Iteration], None] | None
) -> Callable[[Iteration], bool] | None:
    if callback is None and progress is None:
        return None

    def listen(event: Iteration) -> bool:
        if progress is not None:
            progress(event)
        return callback is not None and callback(event) is True

    return listen


def _closed(objective: Objective, point: Point) -> bool:
    """Return whether the free bound leaves nothing to gain beyond rounding."""
    floor = objective.infimum()
    if isinstance(objective, RegressionObjective):
        floor = max(floor, objective.best_bound)
    if not np.isfinite(floor):
        return False
    return point.value - floor <= 1e-14 * max(abs(objective.origin().value - floor), abs(floor))


def _clear(objective: Objective, point: Point) -> bool:
    """Return whether every chosen unit is worth far more than any other would gain."""
    return separation(objective, point) > CLEAR


def _polish(objective: Objective, restricted: RestrictedSolver, result: Result) -> Point:
    """Minimise on the final support to full accuracy, where that can be done."""
    point = result.point
    if result.stop in _SHORT or not objective.twice_differentiable:
        return point
    floor = objective.infimum()
    if np.isfinite(floor) and point.value - floor <= _EXACT * (objective.origin().value - floor):
        return point  # the residual is rounding
    polished = restricted(objective, point.support, point)
    return polished if polished.value <= point.value else point


def _dual(
    form: Form, reduced: Reduced, objective: RegressionObjective, at: Point
) -> tuple[FloatArray, ...]:
    """Return the gradients in the predictions at ``at``, those of the unreduced form."""
    if reduced.keeps_predictions:
        return objective.prediction_gradients(at)
    fresh = cast("RegressionObjective", objective_of(form))
    return fresh.prediction_gradients(fresh.point_from(reduced.restore(at.x)))


def _original(
    form: Form, reduced: Reduced, objective: Objective, point: Point
) -> tuple[FloatArray, float]:
    """Return the point and its value on the unreduced form, evaluated afresh if it changed."""
    sparsity = form.cardinality
    x = point.x.copy() if not reduced.reductions else reduced.restore(point.x)
    value = point.value
    if isinstance(form, SparseRegression) and form.box is not None:
        x = np.where(x == 0.0, x, np.clip(x, form.box.lower, form.box.upper))
    if reduced.reductions:
        fresh = objective_of(form)
        value = fresh.point_from(x).value
    if sparsity.price > 0.0:
        value += sparsity.price * sparsity.count(x)
    if not np.isfinite(value):
        raise DataError(
            "The objective overflows at the solution; rescale the data matrix or the target."
        )
    return x, value


def _check_contract(name: str, result: Result, objective: Objective) -> None:
    """Recompute feasibility; a backend that breaks it is named."""
    if not (isinstance(result, Result) and isinstance(result.point, Point)):
        raise BackendContractError(
            f"The backend {name!r} returned no Result with a Point, but {repr(result)[:80]}. "
            "This is a bug in the backend."
        )
    sparsity = objective.cardinality
    x = result.point.x
    if x.shape != objective.shape or not np.all(np.isfinite(x)):
        raise BackendContractError(f"The backend {name!r} returned a point that is not finite.")
    count = sparsity.count(x)
    if count > sparsity.k:
        raise BackendContractError(
            f"The backend {name!r} returned {count} nonzero units, more than k = {sparsity.k}. "
            "This is a bug in the backend."
        )
    form = objective.form
    if isinstance(form, SparseRegression):
        if not satisfied(replace(form, region=None), x, _FEASIBLE):
            raise BackendContractError(f"The backend {name!r} returned a point outside the bounds.")
        loose = form.region is not None and form.region.others
        if not satisfied(form, x, _FEASIBLE_CVXPY if loose else 10.0 * _FEASIBLE):
            raise BackendContractError(
                f"The backend {name!r} returned a point that violates a constraint."
            )


__all__ = ["Outcome", "StageEnd", "restricted_solver", "run"]
