"""Choose the backends: who can, who is best, and why not the others."""

from __future__ import annotations

from sparsemodel.compiler.adapters import adapt, adapter_words
from sparsemodel.compiler.analysis import FactSheet
from sparsemodel.compiler.plan import Plan, Rejection, Stage
from sparsemodel.compiler.portfolios import stages_for
from sparsemodel.compiler.reductions import Reduced
from sparsemodel.compiler.wording import describe, notes_for, restricted_words
from sparsemodel.interfaces import (
    Backend,
    BackendUnavailableError,
    Form,
    UnsupportedProblemError,
)
from sparsemodel.registry import backend_class, usable_backends


def make_plan(
    form: Form, reduced: Reduced, facts: FactSheet, backend: str | Backend | None
) -> Plan:
    """Return the plan for a problem; an explicit choice is obeyed or refused, never replaced."""
    if backend is None:
        stages, rejected = _choose(reduced.form)
    else:
        stages, rejected = (_explicit(reduced.form, backend),), ()
    words = [word for stage in stages for word in adapter_words(stage.backend)]
    return Plan(
        problem=describe(form),
        stages=stages,
        rejected=rejected,
        facts=facts.recorded,
        reductions=tuple(r.describe() for r in reduced.reductions),
        adapters=tuple(dict.fromkeys(words)),
        restricted=restricted_words(reduced.form),
        notes=notes_for(form),
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


def _choose(form: Form) -> tuple[tuple[Stage, ...], tuple[Rejection, ...]]:
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
    stages = stages_for(form, able)
    used = {stage.label for stage in stages}
    for other in able:
        if other not in used:
            reason = f"can solve this too; {' + '.join(sorted(used))} is preferred here"
            rejected.append(Rejection(other, (reason,)))
    rejected.sort(key=lambda r: r.backend)
    return stages, tuple(rejected)


__all__ = ["make_plan", "resolve"]
