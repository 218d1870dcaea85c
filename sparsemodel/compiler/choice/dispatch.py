"""Choose the backends: who can, who is best, and why not the others."""

from __future__ import annotations

from dataclasses import replace

from sparsemodel.compiler.adapters import adapt, adapter_words
from sparsemodel.compiler.choice.portfolios import PATIENCE, Choice, choose, stages_of, with_role
from sparsemodel.compiler.choice.precision_plans import choose_precision
from sparsemodel.compiler.choice.recipes import is_recipe, parse
from sparsemodel.compiler.facts.fact_sheet import FactSheet
from sparsemodel.compiler.plans.plan import Plan, Rejection, Stage
from sparsemodel.compiler.plans.reasons import figures, seconds_words, tradeoffs, why_not
from sparsemodel.compiler.plans.wording import (
    closeness_words,
    describe,
    notes_for,
    restricted_words,
)
from sparsemodel.compiler.reductions import Reduced
from sparsemodel.interfaces import (
    Backend,
    BackendUnavailableError,
    Form,
    Role,
    SparseRegression,
    UnsupportedProblemError,
)
from sparsemodel.interfaces.precision import SparsePrecision
from sparsemodel.numerics import require_steps
from sparsemodel.registry import backend_class, usable_backends

choose.register(SparsePrecision, choose_precision)


def make_plan(
    form: Form,
    reduced: Reduced,
    facts: FactSheet,
    backend: str | Backend | None,
    time_limit: float | None = None,
) -> Plan:
    """Return the plan for a problem; an explicit choice is obeyed or refused, never replaced.

    A time limit changes the choice only where the best plan is expected to take longer.
    """
    if isinstance(form, SparseRegression):
        require_steps(form)
    choice = Choice(())
    rejected: tuple[Rejection, ...] = ()
    if backend is None:
        choice, rejected = _choose(reduced, facts, time_limit)
        stages = choice.stages
    elif isinstance(backend, str) and is_recipe(backend):
        stages = _explicit_recipe(reduced.form, backend)
    else:
        stages = (_explicit(reduced.form, backend),)
    words = [word for stage in stages for word in adapter_words(stage.backend)]
    return Plan(
        problem=describe(form),
        stages=stages,
        rejected=rejected,
        told=facts.told(reduced.form, reduced.gradient),
        reductions=tuple(r.describe() for r in reduced.reductions),
        adapters=tuple(dict.fromkeys(words)),
        restricted=restricted_words(reduced.form),
        notes=(*notes_for(form), *tradeoffs(choice.forecasts), *_impatience(choice, time_limit)),
        forecast=choice.forecasts[0] if choice.forecasts else None,
        closeness=closeness_words(form),
        until_agreement=backend is None,
        until_clear=choice.until_clear,
    )


def resolve(backend: str | Backend) -> tuple[str, Backend]:
    """Return a backend's name and value."""
    if isinstance(backend, Backend):
        return backend.name, backend
    if isinstance(backend, type) and issubclass(backend, Backend):
        return backend.name, backend()
    if not isinstance(backend, str):
        raise BackendUnavailableError(
            f"A backend is a name such as 'nhtp' or a value such as sm.backends.NHTP(), "
            f"not {type(backend).__name__}."
        )
    return backend, backend_class(backend)()


def backend_for(role: Role, form: Form) -> str | None:
    """Return the name of the backend that does a job for ``form``; None where none can."""
    names = [name for name, cls in usable_backends() if role in cls.roles]
    return with_role(role, [n for n in names if not adapt(backend_class(n)(), form).objections])


def _explicit(form: Form, backend: str | Backend) -> Stage:
    name, value = resolve(backend)
    adapted = adapt(value, form)
    reasons = adapted.objections
    if reasons:
        able = [n for n, cls in usable_backends() if not adapt(cls(), form).objections]
        raise UnsupportedProblemError(
            f"The backend {name!r} cannot solve this problem: {'; '.join(reasons)}. "
            + (f"These can: {', '.join(able)}." if able else "No installed backend can."),
            reasons,
        )
    return Stage(adapted.backend, "asked for", name)


def _explicit_recipe(form: Form, recipe: str) -> tuple[Stage, ...]:
    for step in parse(recipe):
        _explicit(form, step.apply(resolve(step.backend)[1]))
    return tuple(replace(stage, why="asked for") for stage in stages_of(recipe, form))


def _choose(
    reduced: Reduced, facts: FactSheet, time_limit: float | None
) -> tuple[Choice, tuple[Rejection, ...]]:
    form = reduced.form
    able: dict[str, Backend] = {}
    rejected = []
    for name, cls in usable_backends():
        adapted = adapt(cls(), form)
        if adapted.objections:
            rejected.append(Rejection(name, adapted.objections))
        else:
            able[name] = adapted.backend
    if not able:
        reasons = tuple(f"{r.backend}: {'; '.join(r.reasons)}" for r in rejected)
        raise UnsupportedProblemError(
            "No installed backend can solve this problem:\n  " + "\n  ".join(reasons), reasons
        )
    choice = choose(form, able, facts, reduced.gradient, time_limit)
    used = {stage.label for stage in choice.stages}
    forecasts = {forecast.recipe: forecast for forecast in choice.forecasts}
    chosen = choice.forecasts[0] if choice.forecasts else None
    passed_over = [
        Rejection(name, why_not(forecasts.get(name), chosen), able=True)
        for name in [*forecasts, *(name for name in sorted(able) if name not in forecasts)]
        if name in able and name not in used
    ]
    return choice, (*passed_over, *sorted(rejected, key=lambda r: r.backend))


def _impatience(choice: Choice, time_limit: float | None) -> tuple[str, ...]:
    """Return what is not run because it would take long, where that decided."""
    if time_limit is not None or len(choice.forecasts) < 2:
        return ()
    chosen, *others = choice.forecasts
    best = min(others, key=lambda forecast: forecast.cost)
    if best.cost >= chosen.cost or best.seconds <= PATIENCE:
        return ()
    note = (
        f"unasked, nothing is run that would take more than {PATIENCE:g} s by forecast: "
        f"solve(time_limit={2.0 * best.seconds:.1g}) takes {best.recipe!r}, "
        f"{seconds_words(best.seconds)}: {figures(best)}"
    )
    return (note,)


__all__ = ["backend_for", "make_plan", "resolve"]
