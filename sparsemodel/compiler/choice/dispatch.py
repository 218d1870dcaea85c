"""Make a plan: who can solve the problem, who runs, and why not the others."""

from __future__ import annotations

import numpy as np

from sparsemodel.compiler.adapters.adapt import adapt, adapter_words
from sparsemodel.compiler.choice.candidates import Candidates, Choice
from sparsemodel.compiler.choice.effort import Effort, patience
from sparsemodel.compiler.choice.openings import choose
from sparsemodel.compiler.choice.precision_openings import choose_precision
from sparsemodel.compiler.choice.recipes import is_recipe, parse
from sparsemodel.compiler.deferred import Deferred
from sparsemodel.compiler.facts.fact_sheet import FactSheet
from sparsemodel.compiler.plans.plan import Plan, Words
from sparsemodel.compiler.plans.stage import Rejection, Stage
from sparsemodel.compiler.plans.wording import describe, notes_for, restricted_words
from sparsemodel.compiler.reductions.base import Reduced
from sparsemodel.interfaces import (
    Backend,
    BackendUnavailableError,
    Form,
    Role,
    SparseRegression,
    UnsupportedProblemError,
)
from sparsemodel.interfaces.backend import check_class
from sparsemodel.interfaces.precision import JointPrecision, SparsePrecision
from sparsemodel.numerics.minimisers.multipliers import require_steps
from sparsemodel.registry import backend_class, usable_backends

choose.register(SparsePrecision, choose_precision)
choose.register(JointPrecision, choose_precision)


def make_plan(
    form: Form,
    reduced: Reduced,
    facts: FactSheet,
    backend: str | Backend | None,
    time_limit: float | None = None,
    effort: Effort = "medium",
) -> Plan:
    """Return the plan for a problem; an explicit choice is obeyed or refused, never replaced.

    A time limit is used: searches go on longer, and also those are begun that take long.
    """
    if isinstance(form, SparseRegression):
        require_steps(form)
    notes: tuple[str, ...] = ()
    if backend is None:
        choice = _choose(reduced, facts, time_limit, effort)
        stages, clear, notes = choice.stages, choice.clear_from, choice.notes
    elif isinstance(backend, str) and is_recipe(backend):
        stages, clear = _explicit_recipe(reduced.form, backend, patience(effort)), np.inf
    else:
        stages, clear = (_explicit(reduced.form, backend, patience(effort)),), np.inf
    ran = {stage.label for stage in stages}

    def words() -> Words:
        adapted = [word for stage in stages for word in adapter_words(stage.backend)]
        return Words(
            problem=describe(form),
            reductions=tuple(r.describe() for r in reduced.reductions),
            restricted=restricted_words(reduced.form),
            notes=(*notes_for(form), *notes),
            adapters=tuple(dict.fromkeys(adapted)),
        )

    return Plan(
        stages=stages,
        others=Deferred((lambda: _others(reduced.form, ran)) if backend is None else tuple),
        known=facts.read_later(reduced.form, reduced.gradient),
        said=Deferred(words),
        until_agreement=backend is None,
        clear_from=clear,
    )


def resolve(backend: str | Backend) -> tuple[str, Backend]:
    """Return a backend's name and value."""
    if isinstance(backend, Backend):
        check_class(type(backend))
        return backend.name, backend
    if isinstance(backend, type) and issubclass(backend, Backend):
        check_class(backend)
        return backend.name, backend()
    if not isinstance(backend, str):
        raise BackendUnavailableError(
            f"A backend is a name such as 'nhtp' or a value such as sm.backends.NHTP(), "
            f"not {type(backend).__name__}."
        )
    return backend, backend_class(backend)()


def counts_in_own_units(backend: str | Backend | None) -> bool:
    """Return whether the steps of a backend, or of a stage of a plan, are in a paper's units.

    They are then steps of the declared observations and columns.
    """
    if backend is None:
        return False
    if isinstance(backend, str) and is_recipe(backend):
        named = (step.apply(resolve(step.backend)[1]) for step in parse(backend))
        return any(each.units != "declared" for each in named)
    return resolve(backend)[1].units != "declared"


def backend_for(role: Role, form: Form) -> str | None:
    """Return the name of the backend that does a job for ``form``; None where none can."""
    return Candidates(form).best(role)


def _explicit(form: Form, backend: str | Backend, factor: float) -> Stage:
    name, value = resolve(backend)
    adapted = adapt(value.with_patience(factor), form)
    reasons = adapted.objections
    if reasons:
        able = [n for n, cls in usable_backends() if not adapt(cls(), form).objections]
        raise UnsupportedProblemError(
            f"The backend {name!r} cannot solve this problem: {'; '.join(reasons)}. "
            + (f"These can: {', '.join(able)}." if able else "No installed backend can."),
            reasons,
        )
    return Stage(adapted.backend, "asked for", name)


def _explicit_recipe(form: Form, recipe: str, factor: float) -> tuple[Stage, ...]:
    stages = []
    for step in parse(recipe):
        made = _explicit(form, step.apply(resolve(step.backend)[1]), factor)
        stages.append(Stage(made.backend, made.why, step.backend, start=step.start))
    return tuple(stages)


def _choose(reduced: Reduced, facts: FactSheet, time_limit: float | None, effort: Effort) -> Choice:
    form = reduced.form
    candidates = Candidates(form, effort, time_limit)
    choice = choose(form, candidates, facts, reduced.gradient)
    if choice is None:
        known = {name: candidates.objections(name) for name in candidates.names()}
        reasons = tuple(f"{name}: {'; '.join(why)}" for name, why in known.items())
        raise UnsupportedProblemError(
            "No installed backend can solve this problem:\n  " + "\n  ".join(reasons), reasons
        )
    return choice


def _others(form: Form, ran: set[str]) -> tuple[Rejection, ...]:
    """Return the backends that are not run: those that could, then those that cannot."""
    candidates = Candidates(form)
    able, unable = [], []
    for name in candidates.names():
        objections = candidates.objections(name)
        if objections:
            unable.append(Rejection(name, objections))
        elif name not in ran:
            able.append(Rejection(name, ("run by name only",), able=True))
    return (*able, *unable)
