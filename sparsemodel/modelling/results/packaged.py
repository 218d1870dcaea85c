"""From the outcome of a run to the solution that the user sees."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from sparsemodel.compiler import Plan
from sparsemodel.driver import Outcome, RunOptions, run
from sparsemodel.interfaces import Stop
from sparsemodel.modelling.precision_matrices.compiled_precision import CompiledPrecision
from sparsemodel.modelling.regression.compiled import Compiled
from sparsemodel.modelling.results.solution import Solution
from sparsemodel.reporting.solve_log import solve_log


def solved(
    compiled: Compiled | CompiledPrecision,
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
            options = replace(options, progress=log.iteration, on_stage=log.stage)
        outcome = run(compiled.form, reduced, plan, options)
    timings = {
        "compile": ready - began,
        "solve": time.perf_counter() - ready,
        "total": time.perf_counter() - began,
    }
    return outcome, packaged(compiled, outcome, plan, timings, facts.passes - known)


def packaged(
    compiled: Compiled | CompiledPrecision,
    outcome: Outcome,
    plan: Plan,
    timings: dict[str, float],
    analysed: float,
) -> Solution:
    """Return the solution of an outcome; ``analysed`` are the passes that the analysis cost."""
    layout = compiled.layout
    x, stop = outcome.x, outcome.stop
    ran = [end.label for end in outcome.stages if not end.skipped]
    nonzero = x != 0.0 if x.ndim == 1 else np.any(x != 0.0, axis=1)
    indices, support_names = compiled.support(np.flatnonzero(nonzero & compiled.counted))
    coefficients = {
        layout.name(j): float(x[j]) if x.ndim == 1 else x[j].copy()
        for j in np.flatnonzero(nonzero).tolist()
    }
    return Solution(
        value=outcome.value,
        status="solved" if stop is Stop.CONVERGED else "stopped early",
        stop=stop,
        backend=" + ".join(ran or [stage.label for stage in plan.stages]),
        iterations=outcome.iterations,
        indices=indices,
        support_names=support_names,
        coefficients=coefficients,
        values={
            spec.label: value for spec, value in zip(layout.variables, layout.split(x), strict=True)
        },
        history=outcome.history,
        timings=timings,
        passes=outcome.passes + analysed,
        bound=compiled.free_bound(outcome),
        notes=(*outcome.notes, *compiled.notes(outcome)),
        nodes=getattr(compiled.form, "names", None),
    )


__all__ = ["packaged", "solved"]
