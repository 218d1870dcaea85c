"""From the outcome of a run to the solution that the user sees."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, TypeVar, cast

from sparsemodel.compiler import Plan
from sparsemodel.driver import Outcome, RunOptions, run
from sparsemodel.interfaces import Stop
from sparsemodel.modelling.formulations.formulation import CompiledProblem
from sparsemodel.modelling.results.solution import Solution
from sparsemodel.reporting.solve_log import solve_log

T = TypeVar("T")


def solved(
    compiled: CompiledProblem,
    plan: Plan,
    options: RunOptions,
    *,
    verbose: bool,
    began: float,
    known: float,
) -> tuple[Outcome, Solution]:
    """Run a plan; return the outcome and the solution.

    ``began`` is when the user asked, ``known`` what the analysis had cost before.
    """
    facts, reduced = compiled.analysis()
    ready = time.perf_counter()
    with solve_log(verbose, plan) as log:
        if log is not None:
            options = replace(options, on_stage=log.stage)
        outcome = run(compiled.form, reduced, plan, options)
    timings = {
        "compile": ready - began,
        "solve": time.perf_counter() - ready,
        "total": time.perf_counter() - began,
    }
    return outcome, packaged(compiled, outcome, plan, timings, facts.passes - known)


def packaged(
    compiled: CompiledProblem,
    outcome: Outcome,
    plan: Plan,
    timings: dict[str, float],
    analysed: float,
) -> Solution:
    """Return the solution of an outcome; ``analysed`` are the passes that the analysis cost."""
    stop = outcome.stop
    ran = [end.label for end in outcome.stages if not end.skipped]
    answer = compiled.answer(outcome.x)
    return Solution(
        **answer._asdict(),
        value=outcome.value,
        status=_status(outcome),
        stop=stop,
        backend=" + ".join(ran or [stage.label for stage in plan.stages]),
        iterations=outcome.iterations,
        history=outcome.history,
        timings=timings,
        passes=outcome.passes + analysed,
        bound=max(compiled.free_bound(outcome), outcome.bound),
        notes=(*outcome.notes, *compiled.notes(outcome)),
        nodes=compiled.nodes,
        counts=compiled.counts,
        chosen=_chosen(compiled, outcome),
        units=compiled.form.cardinality.units + compiled.form.cardinality.forced_units,
    )


def _chosen(compiled: CompiledProblem, outcome: Outcome) -> int:
    sparsity = compiled.form.cardinality
    return sparsity.count(outcome.x) + sparsity.forced_units


def _status(outcome: Outcome) -> str:
    if outcome.stop is not Stop.CONVERGED:
        return "stopped early"
    return "optimal (proved)" if outcome.optimal else "solved"


def with_readings(found: T, compiled: CompiledProblem, before: int) -> T:
    """Return a result that says how often data in files were read since ``before`` bytes were."""
    read, held = compiled.stored
    if not read > before:
        return found
    counted: Any = found
    return cast("T", replace(counted, readings=(read - before) / held, bytes_read=read - before))


def improved(compiled: CompiledProblem, outcome: Outcome, last: Solution, bound: float) -> Solution:
    """Return the solution for a better point met by a proof."""
    return replace(
        last,
        **compiled.answer(outcome.x)._asdict(),
        chosen=_chosen(compiled, outcome),
        value=outcome.value,
        backend=f"{last.backend} + branch and bound",
        bound=bound,
        notes=(*last.notes, "the proof found a better point than the solver"),
    )
