"""Which backends are run for a kind of problem, in which order, from where."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from math import comb

from sparsemodel.compiler.plan import Stage
from sparsemodel.interfaces import (
    Access,
    Backend,
    Cardinality,
    Form,
    Quadratic,
    SparseRegression,
)
from sparsemodel.interfaces.precision import SparsePrecision
from sparsemodel.numerics import has_kinks

SMALL = 2000
"""Supports up to which enumeration is cheaper than being clever."""

SWAP_LIMIT_QUADRATIC = 500
"""Unknowns up to which a squared loss is polished by swaps (about ``k / 2`` passes, in blocks)."""

SWAP_LIMIT = 200
"""The same for other losses, where every removal is a minimisation of its own."""

OMP_LIMIT = 50
"""Units up to which forward selection one by one (``k / 2`` passes) is another start."""

PREFERENCE = ("nhtp", "grahtp", "iht")
"""Order among those that can, by recovery rate and time on the comparison in the benchmarks."""


PRECISION_PREFERENCE = ("precision_swap", "precision_exchange", "precision_grahtp")


@singledispatch
def stages_for(form: Form, able: dict[str, Backend]) -> tuple[Stage, ...]:
    """Return the stages for ``form``, given the backends that can solve it."""
    name = next((name for name in PREFERENCE if name in able), min(able))
    return (Stage(able[name], _REASONS.get(name, "the first that can"), name),)


@stages_for.register
def _(form: SparsePrecision, able: dict[str, Backend]) -> tuple[Stage, ...]:
    name = next((name for name in PRECISION_PREFERENCE if name in able), min(able))
    return (Stage(able[name], _REASONS.get(name, "the first that can"), name),)


@stages_for.register
def _(form: SparseRegression, able: dict[str, Backend]) -> tuple[Stage, ...]:
    sparsity = form.sparsity
    k = min(sparsity.k, sparsity.units)
    quadratic = all(isinstance(term.loss, Quadratic) for term in form.terms)
    slow = form.region is not None or has_kinks(form) or (form.outputs > 1 and not quadratic)
    # The exhaustive backend refuses astronomical numbers, which would be slow to compute.
    limit = SMALL // 10 if slow else SMALL
    if "exhaustive" in able and (supports := _enumerated(sparsity, k)) <= limit:
        why = f"there are only {supports} supports; all are tried"
        return (Stage(able["exhaustive"], why, "exhaustive"),)
    if sparsity.price > 0.0 and "grahtp" in able:  # others would climb the same path again
        why = "a path along k finds the best number of units; gradient steps refine it there"
        return (Stage(able["grahtp"], why, "grahtp"),)
    if "nhtp" not in able and {"chtp", "local_search"} <= able.keys():
        first = Stage(able["chtp"], _REASONS["chtp"], "chtp", start="zero")
        swaps = Stage(able["local_search"], "swaps lower the loss further", "local_search")
        return (first, swaps) if k <= SWAP_LIMIT else (first,)
    if not {"nhtp", "gomp", "omp", "local_search"} <= able.keys():
        name = next((name for name in PREFERENCE if name in able), min(able))
        return (Stage(able[name], _REASONS.get(name, "the first that can"), name),)
    nhtp, gomp, omp = (
        Stage(able[name], _REASONS[name], name, start="zero") for name in ("nhtp", "gomp", "omp")
    )
    swaps = Stage(able["local_search"], "swaps lower the loss further", "local_search")
    stored = all(Access.COLUMNS in term.design.access for term in form.terms)
    if not stored or k * form.outputs > (SWAP_LIMIT_QUADRATIC if quadratic else SWAP_LIMIT):
        return (nhtp, gomp)  # without cheap columns a swap costs many passes
    if quadratic:
        again = replace(swaps, why="the same from another start")
        others = (omp, again, gomp, again) if k <= OMP_LIMIT else (gomp, again)
        return (nhtp, swaps, *others)
    starts = (gomp, nhtp, omp) if k <= OMP_LIMIT else (gomp, nhtp)
    return (*starts, replace(swaps, why="swaps from the best so far", start="best"))


def _enumerated(sparsity: Cardinality, k: int) -> int:
    """Return how many supports enumeration tries: of every size where a unit has a price."""
    sizes = range(k + 1) if sparsity.price > 0.0 else (k,)
    return sum(comb(sparsity.units, size) for size in sizes)


_REASONS = {
    "nhtp": "the loss is twice differentiable; Newton steps on the support take few passes",
    "omp": "adds the best coordinate a pass: correlated columns ask for care",
    "gomp": "adds several coordinates a pass, which nearly separable classes ask for",
    "chtp": "its steps stay within the constraints",
    "grahtp": "the loss is smooth, and debiasing on the support is cheap",
    "iht": "the loss is smooth",
    "precision_exchange": "adds edges, fits again, drops as many: thorough and slow",
    "precision_swap": "exchanges shrinking blocks of edges by exact one-edge gains",
    "precision_grahtp": "gradient steps on the edges with a restricted likelihood fit",
}


__all__ = ["PREFERENCE", "SMALL", "stages_for"]
