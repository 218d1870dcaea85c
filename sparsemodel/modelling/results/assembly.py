"""From the outcome of a run to the solution that the user sees."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np

from sparsemodel.compiler.choice.dispatch import counts_in_own_units, make_plan
from sparsemodel.compiler.choice.effort import Effort
from sparsemodel.compiler.plans.plan import Plan
from sparsemodel.driver import FoundBound, LowerBound, Outcome, RunOptions, run
from sparsemodel.interfaces import Backend, DataError
from sparsemodel.loading import uninterrupted
from sparsemodel.modelling.declared import Reading
from sparsemodel.modelling.formulations.formulation import CompiledProblem
from sparsemodel.modelling.results.failures import computation
from sparsemodel.modelling.results.fitted import ModelContext
from sparsemodel.modelling.results.solution import Solution
from sparsemodel.reporting.solve_log import solve_log

T = TypeVar("T")

_SAME = 1e-9
"""Relative difference of two values of one point on the same data, at most."""

_LEAST = 0.1
"""Seconds that the search for a bound may take in any case: a look that nobody waits for."""


def run_plan(
    reading: Reading,
    compiled: CompiledProblem,
    options: RunOptions,
    backend: str | Backend | None,
    effort: Effort,
    *,
    verbose: bool,
    began: float,
    reductions: bool | None = None,
) -> tuple[Outcome, Solution]:
    """Make a plan and run it; return the outcome and the solution.

    ``began`` is when the user asked.
    """
    known, read = compiled.analysed, compiled.stored[0]
    if reductions is None:
        reductions = not counts_in_own_units(backend)
    facts, reduced = compiled.analysis(reductions=reductions)
    limit = None if options.is_one_of_several else options.time_limit
    plan = make_plan(compiled.form, reduced, facts, backend, limit, effort)
    ready = time.perf_counter()
    with solve_log(verbose, plan) as log:
        if log is not None:
            options = replace(options, on_stage=log.stage)
        with compiled.explaining():
            outcome = run(compiled.form, reduced, plan, options)
    timings = {
        "compile": ready - began,
        "solve": time.perf_counter() - ready,
        "total": time.perf_counter() - began,
    }
    found = make_solution(reading, compiled, outcome, plan, timings, facts.passes - known)
    return outcome, with_readings(found, compiled, read)


def make_solution(
    reading: Reading,
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
    backend = " + ".join(ran or [stage.label for stage in plan.stages])
    known, search = outcome.bound, None
    if compiled.at_hand:
        seconds = max(_LEAST, timings["total"])  # reading takes no longer than solving did
        search = partial(_found_bound, compiled, outcome, backend, seconds)
    else:  # data that are read later may have changed
        known = max(known, compiled.free_bound(outcome))
    return Solution(
        **answer._asdict(),
        value=outcome.value,
        stop=stop,
        backend=backend,
        iterations=outcome.iterations,
        history=outcome.history,
        timings=timings,
        passes=outcome.passes + analysed,
        lower=LowerBound(known, outcome.optimal, search),
        notes=(*outcome.notes, *compiled.notes(outcome)),
        nodes=compiled.nodes,
        counts=compiled.counts,
        chosen=_chosen(compiled, outcome),
        units=_units(compiled),
        use=ModelContext.of(reading, compiled, outcome.x),
    )


def _chosen(compiled: CompiledProblem, outcome: Outcome) -> int:
    """Return how many units of what is counted are nonzero; without a limit all may be.

    Where nothing is limited from above nothing is left to choose, and the coordinates of the
    support are what there is to count.
    """
    sparsity = compiled.form.cardinality
    if sparsity.units + sparsity.forced_units == 0:
        nonzero = outcome.x != 0.0 if outcome.x.ndim == 1 else (outcome.x != 0.0).any(axis=1)
        return int(np.count_nonzero(nonzero & compiled.counted))
    return sparsity.count(outcome.x) + sparsity.forced_units


def _units(compiled: CompiledProblem) -> int:
    """Return how many units may be nonzero."""
    sparsity = compiled.form.cardinality
    return sparsity.units + sparsity.forced_units or int(np.count_nonzero(compiled.counted))


def import_certificates() -> None:
    """Import what certificates and proofs need: before a solve takes all the time there is."""
    with uninterrupted():
        import sparsemodel.certificates.precision_matrices.proving.proof_of_graph
        import sparsemodel.certificates.proving.prove  # noqa: F401


def _found_bound(
    compiled: CompiledProblem, outcome: Outcome, backend: str, seconds: float
) -> FoundBound:
    """Return the best bound that costs little, and whether it proves the outcome optimal.

    None, ``-inf``, where ``certify()`` would raise an error about the data, and where they have
    changed since: the point has another value then.
    """
    import_certificates()
    from sparsemodel.certificates.statements.claims import OPTIMAL_GAP

    try:
        with computation("Looking for a bound"):
            found = compiled.search_bound(outcome, backend, seconds)
    except DataError:
        return FoundBound(-np.inf, False)
    own = [c for c in found if np.array_equal(c.x, outcome.x)]
    alike = max(abs(own[0].value), abs(outcome.value))
    if abs(own[0].value - outcome.value) > _SAME * alike:
        return FoundBound(-np.inf, False)
    best = min(c.value for c in found)
    return FoundBound(
        max(c.bound for c in found if c.claim.optimal or c in own),
        any(c.claim.optimal for c in own),
        best if outcome.value - best > OPTIMAL_GAP * alike else np.inf,
    )


def with_readings(found: T, compiled: CompiledProblem, before: int | None) -> T:
    """Return a result that says how often data in files were read since ``before`` bytes were."""
    read, held = compiled.stored
    counted: Any = found
    if read is None or before is None:
        return cast("T", replace(counted, readings=None, bytes_read=None))
    if read == before:
        return found
    return cast("T", replace(counted, readings=(read - before) / held, bytes_read=read - before))


def improved_solution(
    reading: Reading,
    compiled: CompiledProblem,
    outcome: Outcome,
    last: Solution,
    lower: LowerBound,
) -> Solution:
    """Return the solution for a better point met by a proof."""
    return replace(
        last,
        **compiled.answer(outcome.x)._asdict(),
        chosen=_chosen(compiled, outcome),
        value=outcome.value,
        backend=f"{last.backend} + branch and bound",
        lower=lower,
        notes=(*last.notes, "the proof found a better point than the solver"),
        use=ModelContext.of(reading, compiled, outcome.x),
    )
