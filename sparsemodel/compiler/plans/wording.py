"""What ``explain()`` says of each form: the problem, the restricted step, what to think of."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from sparsemodel.documents.numbers import not_counted
from sparsemodel.interfaces import Access, Cardinality, Form, SparseRegression
from sparsemodel.interfaces.precision import JointPrecision, SparsePrecision
from sparsemodel.numerics.minimisers.newton import DIRECT_LIMIT

_SHOWN = 4
"""Limits on parts of what is counted that a line lists."""


@singledispatch
def describe(form: Form) -> str:
    """Return one line about the problem."""
    sparsity = form.cardinality
    return f"minimise over {sparsity.size} entries, at most {sparsity.k} of them nonzero"


@describe.register
def _(form: SparsePrecision) -> str:
    bounds = ""
    if form.alpha > 0.0 or np.isfinite(form.beta):
        bounds = f", eigenvalues in [{form.alpha:.3g}, {form.beta:.3g}]"
    pairs = form.sparsity.units
    return (
        f"minimise -log det + trace over matrices of order {form.order}, at most "
        f"{form.sparsity.k} of {pairs} edges{bounds}"
    )


@describe.register
def _(form: JointPrecision) -> str:
    low, high = (
        f"{v:.3g}" for v in (min(p.alpha for p in form.parts), max(p.beta for p in form.parts))
    )
    return (
        f"minimise the sum of -log det + trace over {len(form.parts)} matrices of order "
        f"{form.order} with one pattern, at most {form.sparsity.k} of {form.sparsity.units} edges, "
        f"eigenvalues in [{low}, {high}]"
    )


@describe.register
def _(form: SparseRegression) -> str:
    sparsity = form.sparsity
    losses = " + ".join(term.loss.name for term in form.terms)
    ridged = " + ridge" if np.any(form.ridge > 0.0) else ""
    units = "groups" if sparsity.groups is not None else "rows" if form.matrix else "entries"
    forced = sparsity.forced_units
    free = int(sparsity.free.size - sparsity.forced.size)
    text = f"minimise {losses}{ridged}"
    if sparsity.prices is not None:
        dearest = float(sparsity.prices.max())
        text += f" + {sparsity.price:g} to {dearest:g} for each of the {units} that are not zero"
    elif sparsity.price > 0.0:
        text += f" + {sparsity.price:g} for each of the {units} that are not zero"
    if sparsity.budget < sparsity.units or not sparsity.priced:
        text += f", at most {sparsity.k} of {sparsity.units + forced} {units} nonzero"
    text += _parts(sparsity)
    for knapsack in sparsity.knapsacks:
        text += f", their costs at most {knapsack.most:g} together"
    if sparsity.order is not None:
        needing = np.unique(sparsity.order.child[sparsity.order.child >= 0]).size
        text += f", {needing} of them only together with others"
    text += f" ({forced} of them by their bounds)" if forced else ""
    text += f", {not_counted(free, form.matrix)}" if free else ""
    text += ", within bounds" if form.box is not None else ""
    return text + (f", under {form.region.describe()}" if form.region is not None else "")


def _parts(sparsity: Cardinality) -> str:
    """Return the limits on parts of the units: the first few, and how many there are."""
    sets = [*sparsity.limited_sets(), *sparsity.limited_sets(crossing=True)]
    shown = [f"{most} of {units.size}" for units, most in sets]
    more = f" and {len(shown) - _SHOWN} more parts" if len(shown) > _SHOWN else ""
    return f", at most {', '.join(shown[:_SHOWN])}{more} in parts" if shown else ""


@singledispatch
def restricted_words(form: Form) -> str:
    """Return how the objective is minimised on a support, in words."""
    return "as the form's own service does it"


@restricted_words.register
def _(form: SparsePrecision | JointPrecision) -> str:
    return "Newton steps on the edges, component by component; ADMM where an eigenvalue bound binds"


@restricted_words.register
def _(form: SparseRegression) -> str:
    unknowns = (form.sparsity.budget + form.sparsity.free.size) * form.outputs
    if form.matrix and form.region is not None and form.region.one_norms:
        return f"CVXPY on the chosen columns alone, for {form.region.describe()}"
    if form.region is None and form.traits.piecewise and not form.traits.has_hessian:
        return "an interior point method on the pieces of the loss"
    if form.region is not None or not form.traits.has_hessian:
        why = form.region.describe() if form.region is not None else "the kinks of the loss"
        return f"method of multipliers with Newton steps, for {why}"
    if form.box is not None:
        return "projected Newton steps, for the bounds"
    steps = "one Newton step (the loss is quadratic)" if form.traits.quadratic else "Newton steps"
    if form.sparsity.groups is None and unknowns > DIRECT_LIMIT:
        return f"{steps}, by conjugate gradients in {unknowns} unknowns"
    return f"{steps}, by Cholesky factorisation"


@singledispatch
def notes_for(form: Form) -> tuple[str, ...]:
    """Return what would change the picture, in words."""
    return ()


@notes_for.register
def _(form: SparsePrecision | JointPrecision) -> tuple[str, ...]:
    if all(part.samples is not None for part in form.parts):
        return ()
    note = (
        "the number of observations behind the covariance matrix is not given; samples=n beside it "
        "makes information criteria possible"
    )
    return (note,)


@notes_for.register
def _(form: SparseRegression) -> tuple[str, ...]:
    notes = []
    counted = form.ridge[form.sparsity.counted]
    if counted.size and not np.all(counted > 0.0):
        notes.append(
            "without a ridge on every counted entry a run has no dual bound of its own; "
            "add one, for example sm.ridge(w, 1e-3)"
        )
    if not all(Access.COLUMNS in term.design.access for term in form.terms):
        notes.append(
            "the columns of the design cannot be read; with a stored array, all exchanges of "
            "columns could be evaluated at once"
        )
    if not form.traits.smooth:
        notes.append(
            "a loss with kinks is smoothed in several runs; a smooth loss (huber_loss, "
            "smoothed_hinge_loss) takes one"
        )
    if _has_dual_ascent(form):
        notes.append(
            "the dual can be maximised without smoothing, solve('sdiht'): faster with a strong "
            "ridge, and every step gives a bound"
        )
    return tuple(notes)


def _has_dual_ascent(form: SparseRegression) -> bool:
    """Return whether a loss has kinks, and a ridge and a conjugate that make do without smoothing.

    The plans take DIHT there: ``docs/explanation/how-plans-are-chosen.md``.
    """
    counted = form.ridge[form.sparsity.counted]
    return (
        not form.traits.has_hessian
        and not form.matrix
        and form.region is None
        and bool(np.all(counted > 0.0))
        and form.traits.interval
        and all(Access.ROWS in term.design.access for term in form.terms)
    )
