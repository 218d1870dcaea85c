"""Which backends are run for a kind of problem, in which order, from where, and why."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from math import comb
from typing import final

from sparsemodel.compiler.adapters import adapt
from sparsemodel.compiler.analysis import Facts
from sparsemodel.compiler.fact_sheet import FactSheet
from sparsemodel.compiler.features import Features
from sparsemodel.compiler.plan import Stage
from sparsemodel.compiler.ranking import Forecast, table
from sparsemodel.compiler.recipes import backends_of, parse
from sparsemodel.compiler.together import together
from sparsemodel.interfaces import (
    Backend,
    Cardinality,
    FloatArray,
    Form,
    Quadratic,
    SparseRegression,
)
from sparsemodel.numerics import has_kinks
from sparsemodel.registry import backend_class

SMALL = 2000
"""Supports up to which enumeration is cheaper than being clever."""

PATIENCE = 5.0
"""Forecast seconds up to which a thorough plan is taken unasked. The table holds small problems:
where its best plan would take longer, forecasts are far from what was measured."""

BRIEF = "nhtp:patience=10 | gomp"
"""What is run instead: a few passes each, and neither depends on swaps."""

INCOHERENT = 0.5
"""Correlation among promising columns up to which one cannot stand for two others."""

PREFERENCE = ("nhtp", "grahtp", "iht")
"""Order among those that can where nothing like the problem was measured."""


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
    return _preferred(able, PREFERENCE)


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
    if "exhaustive" in able and (supports := _enumerated(sparsity, k)) <= limit:
        why = f"there are only {supports} supports; all are tried"
        return Choice((Stage(able["exhaustive"], why, "exhaustive"),))
    if sparsity.price > 0.0 and "grahtp" in able:  # others would climb the same path again
        why = "a path along k finds the best number of units; gradient steps refine it there"
        return Choice((Stage(able["grahtp"], why, "grahtp"),))
    known = table()
    recipes = frozenset(r for r in known.recipes if backends_of(r) <= able.keys())
    entries = sum(term.design.entries for term in form.terms)
    features = facts.features(form, gradient) if isinstance(facts, Facts) else Features.of(form)
    ranked = known.rank(features, recipes, entries)
    if not ranked:
        return _preferred(able, PREFERENCE)
    best = ranked[0]
    if time_limit is not None and best.seconds > time_limit:
        best = min(ranked, key=lambda f: (max(f.seconds - time_limit, 0.0), f.cost, f.recipe))
    elif time_limit is None and best.seconds > PATIENCE and backends_of(BRIEF) <= able.keys():
        brief = together(BRIEF, ranked)
        return Choice(stages_of(BRIEF, form), () if brief is None else (brief, *ranked))
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
            _why(step.backend, step.start),
            step.backend,
            start=step.start,
        )
        for step in parse(recipe)
    )


def _preferred(able: dict[str, Backend], names: tuple[str, ...]) -> Choice:
    name = next((name for name in names if name in able), min(able))
    return Choice((Stage(able[name], _why(name, "zero"), name),))


def _why(name: str, start: str) -> str:
    if name == "local_search":
        return {
            "zero": "adds the coordinate that lowers the objective most, then swaps while that "
            "helps",
            "last": "swaps lower the objective further",
            "best": "swaps from the best so far",
        }[start]
    return _REASONS.get(name, "the first that can")


def _enumerated(sparsity: Cardinality, k: int) -> int:
    """Return how many supports enumeration tries: of every size where a unit has a price."""
    sizes = range(k + 1) if sparsity.price > 0.0 else (k,)
    return sum(comb(sparsity.units, size) for size in sizes)


_REASONS = {
    "nhtp": "Newton steps on the support take few passes, and recover exactly without noise",
    "newton_swaps": "swaps priced by a second-order model lower the objective further",
    "omp": "adds the best coordinate a pass: slow, and careful where columns are correlated",
    "gomp": "adds several coordinates a pass, so that many are in after few passes",
    "ompr": "adds coordinates one by one, then exchanges them by gradients",
    "foba": "adds coordinates one by one and drops those that stop paying",
    "gp": "adds coordinates along gradients, without a full refit each",
    "sp": "exchanges many coordinates at once and settles in a few passes",
    "chtp": "its steps stay within the constraints",
    "grahtp": "the loss is smooth, and debiasing on the support is cheap",
    "fgrahtp": "plain gradient steps give a cheap first support",
    "iht": "the loss is smooth",
    "precision_exchange": "adds edges, fits again and drops as many, while that helps",
    "precision_swap": "exchanges shrinking blocks of edges by exact one-edge gains",
    "precision_grasp": "exchanges many edges at once by the gradient: another start",
    "precision_fbs": "adds edges one by one by exact gains: another start",
    "precision_foba": "adds edges one by one and drops those that stop paying",
    "precision_grahtp": "gradient steps on the edges with a restricted likelihood fit",
}


__all__ = ["PREFERENCE", "SMALL", "Choice", "can_stand_out", "choose", "stages_of"]
