"""Which backends are run for a kind of problem, in which order, from where, and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import singledispatch
from math import comb
from typing import final

import numpy as np

from sparsemodel.compiler.adapters import adapt
from sparsemodel.compiler.choice.ranking import Forecast, table
from sparsemodel.compiler.choice.recipes import backends_of, parse
from sparsemodel.compiler.choice.side_by_side import together
from sparsemodel.compiler.facts.analysis import Facts
from sparsemodel.compiler.facts.fact_sheet import FactSheet
from sparsemodel.compiler.facts.features import Features
from sparsemodel.compiler.plans.plan import Stage
from sparsemodel.interfaces import (
    Backend,
    Cardinality,
    FloatArray,
    Form,
    Quadratic,
    Role,
    SparseRegression,
)
from sparsemodel.numerics import has_kinks
from sparsemodel.registry import backend_class

SMALL = 2000
"""Supports up to which enumeration is cheaper than being clever."""

PATIENCE = 5.0
"""Forecast seconds up to which a thorough plan is taken unasked. The table holds small problems:
where its best plan would take longer, forecasts are far from what was measured, and the table's
brief plan is run instead."""

INCOHERENT = 0.5
"""Correlation among promising columns up to which one cannot stand for two others."""


@final
@dataclass(frozen=True, slots=True)
class Choice:
    """The stages that are run, with the forecasts that decided where there are any."""

    stages: tuple[Stage, ...]
    forecasts: tuple[Forecast, ...] = ()
    """Of all recipes that could be run, the chosen one first."""
    until_clear: bool = False
    """Whether the plan may end where the support stands out."""


@singledispatch
def choose(
    form: Form,
    able: dict[str, Backend],
    facts: FactSheet,
    gradient: FloatArray | None = None,
    time_limit: float | None = None,
) -> Choice:
    """Return the stages for the reduced ``form``, given the backends that can solve it.

    ``gradient`` is its gradient at zero. ``facts`` are asked for what the choice depends on.
    """
    return _by_prior(able)


@choose.register
def _(
    form: SparseRegression,
    able: dict[str, Backend],
    facts: FactSheet,
    gradient: FloatArray | None = None,
    time_limit: float | None = None,
) -> Choice:
    sparsity = form.sparsity
    k = min(sparsity.budget, sparsity.units)
    quadratic = all(isinstance(term.loss, Quadratic) for term in form.terms)
    slow = form.region is not None or has_kinks(form) or (form.outputs > 1 and not quadratic)
    # The exhaustive backend refuses astronomical numbers, which would be slow to compute.
    limit = SMALL // 10 if slow else SMALL
    enumerating = with_role(Role.ENUMERATION, able)
    if enumerating is not None and (supports := _enumerated(sparsity, k)) <= limit:
        why = f"there are only {supports} supports; all are tried"
        return Choice((Stage(able[enumerating], why, enumerating),))
    refining = with_role(Role.REFINEMENT, able)
    if sparsity.price > 0.0 and refining is not None:  # others would follow the same path again
        why = "a path along k finds the best number of units; gradient steps refine it there"
        return Choice((Stage(able[refining], why, refining),))
    known = table()
    recipes = frozenset(r for r in known.recipes if backends_of(r) <= able.keys())
    entries = sum(term.design.entries for term in form.terms)
    features = facts.features(form, gradient) if isinstance(facts, Facts) else Features.of(form)
    ranked = [*known.rank(features, recipes, entries), *_declared(able, features, entries)]
    ranked.sort(key=lambda f: (f.cost, f.recipe))
    if not ranked:
        return _by_prior(able)
    best = ranked[0]
    if time_limit is not None and best.seconds > time_limit:
        best = min(ranked, key=lambda f: (max(f.seconds - time_limit, 0.0), f.cost, f.recipe))
    elif time_limit is None and best.seconds > PATIENCE and backends_of(known.brief) <= able.keys():
        brief = together(known.brief, ranked)
        return Choice(stages_of(known.brief, form), () if brief is None else (brief, *ranked))
    others = tuple(forecast for forecast in ranked if forecast is not best)
    return Choice(stages_of(best.recipe, form), (best, *others), can_stand_out(features))


def can_stand_out(features: Features) -> bool:
    """Return whether a support whose units are worth far more than others is the right one.

    The loss must be quadratic, for which worths are exact (where classes are nearly separable
    those of the second-order model mislead), and the promising columns hardly correlated, so
    that none stands for two others.
    """
    coherence = features.coherence
    return features.loss == "quadratic" and coherence is not None and coherence <= INCOHERENT


def stages_of(recipe: str, form: Form) -> tuple[Stage, ...]:
    """Return the stages of a recipe, with the adapters that ``form`` asks for."""
    return tuple(
        Stage(
            adapt(step.apply(backend_class(step.backend)()), form).backend,
            _purpose(backend_class(step.backend)),
            step.backend,
            start=step.start,
        )
        for step in parse(recipe)
    )


def with_role(role: Role, names: Iterable[str]) -> str | None:
    """Return the backend among ``names`` that is given a job, None where none takes it.

    Of several the one whose author expects most of it; the first by name of equals.
    """
    taking = [name for name in names if role in backend_class(name).roles]
    return min(taking, key=_expected, default=None)


def _declared(able: dict[str, Backend], features: Features, entries: int) -> list[Forecast]:
    """Return the forecasts of backends that were never measured and declare what they expect."""
    known = table()
    measured = {name for recipe in known.recipes for name in backends_of(recipe)}
    found = []
    for name in able:
        prior = backend_class(name).prior
        if prior is not None and name not in measured:
            found.append(known.declared(name, prior, features, entries))
    return found


def _by_prior(able: dict[str, Backend]) -> Choice:
    """Return the backend that its author expects most of, where nothing was measured."""
    name = min(able, key=_expected)
    return Choice((Stage(able[name], _purpose(backend_class(name)), name),))


def _expected(name: str) -> tuple[float, float, str]:
    """Return what sorts backends by their priors, those without one last."""
    prior = backend_class(name).prior
    return (np.inf, np.inf, name) if prior is None else (-prior.close, prior.excess, name)


def _purpose(backend: type[Backend]) -> str:
    return backend.purpose or "the first that can"


def _enumerated(sparsity: Cardinality, k: int) -> int:
    """Return how many supports enumeration tries: of every size where a unit has a price."""
    sizes = range(k + 1) if sparsity.price > 0.0 else (k,)
    return sum(comb(sparsity.units, size) for size in sizes)


__all__ = ["SMALL", "Choice", "can_stand_out", "choose", "stages_of", "with_role"]
