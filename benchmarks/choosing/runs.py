"""Run recipes on the corpus and keep what they did, a file a problem.

Every run is a fresh problem through the same driver; the CPU time covers analysis, planning (for
the compiler's own choice) and the run. Passes are those the objective counts.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import sparsemodel as sm
from benchmarks.choosing.corpus import Case
from benchmarks.measure import unit_of
from sparsemodel.compiler.adapters.adapt import adapt
from sparsemodel.compiler.services import objective_of
from sparsemodel.driver import RunOptions, run
from sparsemodel.interfaces import SparseModelError
from sparsemodel.registry import usable_backends

CPU_LIMIT = 1.0
"""CPU seconds after which a run is ended at its next iteration."""

CPU_LIMIT_OF_LARGE = 4.0
"""The same for large problems."""

CHOSEN = "solve()"
"""The name of the compiler's own choice among the recipes."""

OPENINGS = ("nhtp", "gomp", "ompr", "gp", "diht")
"""Backends that the finish is also started from, to see which opening helps where."""

FINISH = "exchange"


def reduced_form(problem: sm.Problem) -> Any:
    """Return the form that backends see."""
    return problem._compiled().analysis()[1].form


def candidates(problem: sm.Problem, *, openings: bool = False) -> list[str]:
    """Return every backend that can solve the problem; with openings before the finish, too."""
    form = reduced_form(problem)
    able = [name for name, cls in usable_backends() if not adapt(cls(), form).objections]
    kept = set(able) - {"cosamp", "iht"}  # other names of grasp and fgrahtp
    recipes = [f"{name} > {FINISH}" for name in OPENINGS if {name, FINISH} <= kept]
    return [*sorted(kept), *(recipes if openings else [])]


def measure(case: Case, recipe: str, repeats: int = 2) -> dict[str, Any]:
    """Return value, passes and CPU seconds (the least of the repetitions) of one recipe."""
    kept: dict[str, Any] = {}
    limit = CPU_LIMIT_OF_LARGE if case.large else CPU_LIMIT
    for _ in range(repeats):
        record = _once(case.problem(), recipe, limit)
        if not kept or record["cpu"] < kept["cpu"]:
            kept = record
        if record["cpu"] > 0.03:
            break
    return kept


def _once(problem: sm.Problem, recipe: str, limit: float) -> dict[str, Any]:
    began = time.process_time()
    try:
        plan = problem.plan(None if recipe == CHOSEN else recipe)
        compiled = problem._compiled()
        facts, reduced = compiled.analysis()
        outcome = run(
            compiled.form,
            reduced,
            plan,
            RunOptions(
                time_limit=20.0 * limit,  # of the wall, where other programs run as well
                callback=lambda _: time.process_time() - began > limit,
            ),
        )
    except SparseModelError as error:
        return {"failure": str(error)[:200], "cpu": time.process_time() - began}
    record = {
        "value": outcome.value,
        "passes": outcome.passes + facts.passes,
        "cpu": time.process_time() - began,
        "stop": outcome.stop.value,
        "iterations": outcome.iterations,
    }
    if recipe == CHOSEN:
        record["plan"] = " + ".join(stage.label for stage in plan.stages)
    return record


def run_case(
    case: Case, folder: Path, *, again: frozenset[str] = frozenset(), openings: bool = False
) -> dict[str, Any]:
    """Return the records of a case by recipe; what the folder holds is not run again.

    Recipes in ``again`` are measured anew.
    """
    file = folder / f"{case.name}.json"
    kept: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    if not kept:
        kept = {"case": case.name, "family": case.family, "runs": {}, **_about(case)}
    wanted = (*candidates(case.problem(), openings=openings), CHOSEN)
    # Recipes that are no longer tried are forgotten: they could be the best known of a problem.
    kept["runs"] = runs = {r: run for r, run in kept["runs"].items() if r in wanted}
    missing = [r for r in wanted if r not in runs or r in again]
    if missing:
        runs |= {recipe: measure(case, recipe) for recipe in missing}
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(kept, indent=1) + "\n")
    return kept


def _about(case: Case) -> dict[str, Any]:
    """Return the objective at zero and the CPU seconds of a pass over the reduced data."""
    form = reduced_form(case.problem())
    objective = objective_of(form)
    designs = [term.design for term in form.terms]
    unit = sum(unit_of(d.matvec, d.rmatvec, d.shape[1]) for d in designs)
    return {"zero": objective.origin().value, "unit": unit}
