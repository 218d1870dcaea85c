"""Run recipes on the corpus and keep what they did, a file a problem.

Every run is a fresh problem through the same driver; the CPU time covers analysis, planning (for
the compiler's own choice) and the run. Passes are those the objective counts.
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import sparsemodel as sm
from benchmarks.choosing.corpus import Case
from benchmarks.measure import unit_of
from sparsemodel.compiler.adapters import adapt
from sparsemodel.compiler.choice.portfolios import can_stand_out
from sparsemodel.compiler.choice.recipes import backends_of, parse
from sparsemodel.compiler.facts.analysis import Facts
from sparsemodel.compiler.plans.plan import Plan, Stage
from sparsemodel.compiler.services import objective_of
from sparsemodel.driver import RunOptions, run
from sparsemodel.interfaces import Quadratic, SparseModelError, SparseRegression
from sparsemodel.numerics import has_kinks
from sparsemodel.registry import backend_class, usable_backends

CPU_LIMIT = 1.0
"""CPU seconds after which a run is ended at its next iteration."""

CPU_LIMIT_OF_LARGE = 4.0
"""The same for large problems."""

CHOSEN = "solve()"
"""The name of the compiler's own choice among the recipes."""

_SWAPS = "local_search"
_ALL = "local_search:removal=all"
_NEWTON = "nhtp:patience=10"

_SHORT = "nhtp:patience=3"
_PRICED = "newton_swaps"

RECIPES = (
    _NEWTON,
    _ALL,
    *(f"{start} > {_SWAPS}" for start in (_NEWTON, "omp", "sp", "fgrahtp")),
    *(f"{start} > {_ALL}" for start in ("nhtp", _SHORT, "gomp", "omp", "chtp")),
    *(f"{start} > {_ALL} | {_ALL}" for start in ("nhtp", _SHORT, "grahtp", "sp", "gp")),
    f"{_ALL} | gomp > {_ALL}",
    f"omp > {_ALL} | grahtp > {_ALL}",
    f"nhtp > {_ALL} | gp > {_ALL} | {_ALL}",
    f"nhtp > {_ALL} | gomp > {_ALL}",
    f"{_SHORT} > {_ALL} | sp > {_ALL} | gp > {_ALL} | {_ALL}",
    *(f"{start} > {_ALL} | omp > {_ALL} | grahtp > {_ALL}" for start in ("nhtp", _SHORT)),
    f"nhtp > {_ALL} | {_PRICED} | omp > {_ALL} | grahtp > {_ALL}",
    f"nhtp > {_ALL} | {_PRICED} | {_ALL} | gomp > {_ALL} | sp > {_ALL}",
    f"{_NEWTON} | gomp",
    f"gomp | {_NEWTON} | best {_SWAPS}",
)
"""Plans of several stages that are tried on squared losses beside the single backends."""

RECIPES_OF_OTHERS = (
    _NEWTON,
    *(f"{start} > {_PRICED}" for start in ("gomp", "omp", "gp", "sp", "grahtp", _NEWTON)),
    f"{_PRICED} | gomp > {_PRICED}",
    f"{_NEWTON} > {_PRICED} | omp > {_SWAPS}",
    f"gp > {_PRICED} | gomp > {_PRICED}",
    f"gomp > {_PRICED} | sp > {_PRICED}",
    f"{_NEWTON} > {_PRICED} | sp > {_PRICED} | omp > {_PRICED}",
    f"gp > {_PRICED} | gomp > {_PRICED} | sp > {_PRICED}",
    f"gp > {_PRICED} | gomp > {_PRICED} | sp > {_PRICED} | {_PRICED}",
    f"gp > {_PRICED} | {_NEWTON} > {_PRICED} | gomp > {_PRICED} | sp > {_PRICED}",
    f"gp > {_PRICED} | {_NEWTON} > {_PRICED} | sp > {_PRICED} | {_PRICED} | omp > {_SWAPS}",
    f"gp | gomp | sp | best {_PRICED}",
    f"gomp | {_NEWTON} | best {_PRICED}",
    f"gp > {_PRICED} | {_SWAPS}",
    f"gp > {_PRICED} | chtp > {_PRICED} | {_SWAPS}",
    f"{_NEWTON} > {_PRICED} | sp > {_PRICED} | {_SWAPS}",
    f"gp > {_PRICED} | {_NEWTON} > {_PRICED} | gomp > {_PRICED} | sp > {_PRICED} | {_SWAPS}",
)
"""The same for other losses, where swaps are priced by the second-order model."""

RECIPES_OF_STRUCTURE = (
    _NEWTON,
    *(f"{start} > {_SWAPS}" for start in (_NEWTON, "omp", "gp", "chtp")),
    *(f"{start} > {_ALL}" for start in ("gomp", "chtp")),
    f"gomp | {_NEWTON} | best {_SWAPS}",
    f"chtp > {_SWAPS} | gomp > {_SWAPS}",
    f"chtp > {_ALL} | omp > {_SWAPS}",
    f"{_SWAPS} | chtp > {_ALL}",
    f"{_NEWTON} | gomp",
    f"{_NEWTON} | gomp | omp | best {_SWAPS}",
)
"""The same where swaps have no closed form: groups, matrices, bounds, constraints."""

RECIPES_WITH_KINKS = (
    *(f"{start} > {_PRICED}" for start in ("gomp", "gp", "chtp", "sdiht")),
    f"gomp > {_PRICED} | sp > {_PRICED}",
    f"gomp | {_NEWTON} | best {_PRICED}",
    f"{_PRICED} | gomp > {_PRICED}",
    f"{_PRICED} | chtp > {_PRICED}",
)
"""Fewer where every stage is run on smoothed losses in turn."""

RECIPES_OF_LARGE = (
    f"gomp > {_SWAPS}",
    f"{_SHORT} > {_SWAPS}",
    "fgrahtp > nhtp",
    f"fgrahtp > {_NEWTON} > {_PRICED}",
    "sdiht > nhtp",
)
"""What is tried on large problems, too."""


def reduced_form(problem: sm.Problem) -> Any:
    """Return the form that backends see."""
    return problem._compiled().analysis()[1].form


def candidates(problem: sm.Problem, *, large: bool = False) -> list[str]:
    """Return every backend that can solve the problem, and the recipes made of such."""
    form = reduced_form(problem)
    able = [name for name, cls in usable_backends() if not adapt(cls(), form).objections]
    kept = set(able) - {"cosamp", "iht"}  # other names of grasp and fgrahtp
    quadratic = all(isinstance(term.loss, Quadratic) for term in form.terms)
    recipes = RECIPES if quadratic else RECIPES_OF_OTHERS
    if has_kinks(form):
        recipes = RECIPES_WITH_KINKS
    elif "newton_swaps" not in kept:
        recipes = RECIPES_OF_STRUCTURE
    if large:
        recipes += tuple(recipe for recipe in RECIPES_OF_LARGE if recipe not in recipes)
    return [*sorted(kept), *(recipe for recipe in recipes if backends_of(recipe) <= kept)]


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
        plan = problem.plan() if recipe == CHOSEN else _plan(problem, recipe)
        compiled = problem._compiled()
        facts, reduced = compiled.analysis()
        outcome = run(
            compiled.form,
            reduced,
            plan,
            RunOptions(
                time_limit=4.0 * limit,
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


def _plan(problem: sm.Problem, recipe: str) -> Plan:
    """Return the recipe as a plan; one of several stages ends early as the compiler's own does."""
    first = problem.plan(parse(recipe)[0].backend)
    facts, reduced = problem._compiled().analysis()
    form = cast("SparseRegression", reduced.form)
    stages = tuple(
        Stage(
            adapt(step.apply(backend_class(step.backend)()), form).backend,
            "measured",
            step.backend,
            start=step.start,
        )
        for step in parse(recipe)
    )
    if len(stages) == 1:
        return replace(first, stages=stages)
    features = cast("Facts", facts).features(form, reduced.gradient)
    return replace(first, stages=stages, until_agreement=True, until_clear=can_stand_out(features))


def run_case(case: Case, folder: Path, *, again: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return the records of a case by recipe; what the folder holds is not run again.

    Recipes in ``again`` are measured anew.
    """
    file = folder / f"{case.name}.json"
    kept: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    if not kept:
        kept = {"case": case.name, "family": case.family, "runs": {}, **_about(case)}
    wanted = (*candidates(case.problem(), large=case.large), CHOSEN)
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
