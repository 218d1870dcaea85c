"""From points and gradients to bounds: which dual point belongs to what a solver knows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from sparsemodel.certificates.arithmetic.products import predictions
from sparsemodel.certificates.arithmetic.rounding import CAUTION
from sparsemodel.certificates.dual_bounds.bound import Bound, dual_bound, infimum_bound, nothing
from sparsemodel.certificates.dual_bounds.diagonal_shift import (
    Extraction,
    applies,
    levelled,
    verified,
)
from sparsemodel.certificates.dual_bounds.steps import steps_bound
from sparsemodel.certificates.dual_bounds.unpenalised import balanced
from sparsemodel.certificates.statements.certificate import Witness
from sparsemodel.certificates.statements.objective_interval import primal
from sparsemodel.compiler.reductions.shift_columns import ShiftColumns
from sparsemodel.interfaces import Conjugable, FloatArray, IntArray, SparseRegression, Term


def evaluate(
    form: SparseRegression,
    witness: Witness,
    *,
    norms: tuple[FloatArray, ...] | None = None,
    hessian: FloatArray | None = None,
    caution: float = CAUTION,
) -> Bound:
    """Return the bound that a witness proves, from the data alone.

    Without any dual point it is the infimum of the losses, or the best steps of a sequence;
    squares without one have their gradient at the witness's point.
    Curvature that cannot be proved to be there makes the bound ``-inf``. ``caution`` is the
    multiple of the rounding allowance to subtract: more than one, so that a check on another
    machine can be strict.
    """
    if not witness.duals:
        steps = steps_bound(form, caution=caution)
        return infimum_bound(form, caution=caution) if steps is None else steps
    if len(witness.duals) != len(form.terms):
        return nothing("the witness has another number of terms than the problem")
    for term, a in zip(form.terms, witness.duals, strict=True):
        shape = (term.design.shape[0], *form.shape[1:])
        if a is not None and (a.shape != shape or not np.all(np.isfinite(a))):
            return nothing(f"a dual point of shape {a.shape} does not fit predictions {shape}")
    if witness.at is not None and (
        witness.at.shape != form.shape or not np.all(np.isfinite(witness.at))
    ):
        return nothing("the point of linearisation does not fit the problem")
    if witness.at is not None and any(a is None for a in witness.duals):
        square = (
            form.traits.square
        )  # earlier files name the point of a tangent, not its predictions
        found = extracted(form, witness.at, None) if square else from_point(form, witness.at)
        witness = replace(found, extraction=witness.extraction)
    extraction = None
    if witness.extraction is not None:
        extraction = Extraction(witness.extraction)
        fits = witness.extraction.shape == (form.sparsity.size,) and applies(form)
        if not fits or not verified(form, extraction, hessian):
            return nothing("the extracted curvature is not proved to be in the data")
    return dual_bound(
        form, witness.duals, at=witness.at, extraction=extraction, norms=norms, caution=caution
    )


def from_gradients(
    form: SparseRegression,
    gradients: Iterable[FloatArray],
    balance: IntArray | None = None,
    *,
    at: FloatArray | None = None,
    ends: bool = False,
) -> Witness | None:
    """Return the witness that belongs to gradients of the terms in their predictions.

    The gradients have the weights inside, as losses return them. A loss without a known conjugate
    has the predictions at the point ``at`` in their place; None where that is not given. ``ends``
    is for :func:`~sparsemodel.certificates.dual_bounds.unpenalised.balanced`.
    """
    duals = []
    for term, g in zip(form.terms, gradients, strict=True):
        if isinstance(term.loss, Conjugable):
            c = term.weights if g.ndim == 1 else term.weights[:, None]
            a = np.divide(g, c, out=np.zeros_like(g), where=c > 0.0)
            duals.append(term.loss.project_dual(a, term.target))
        elif at is None:
            return None
        else:
            duals.append(_predicted(term, at))
    return _settled(form, duals, balance, ends)


def from_point(
    form: SparseRegression, x: FloatArray, balance: IntArray | None = None, *, ends: bool = False
) -> Witness:
    """Return the witness at a point: derivatives of losses, predictions without a conjugate.

    Moved so that the slopes of the coordinates ``balance`` are zero, beside those that must be.
    """
    return _settled(form, derivatives(form.terms, x), balance, ends)


def derivatives(terms: Iterable[Term], x: FloatArray) -> list[FloatArray]:
    """Return the derivatives of losses at a point, and predictions without a conjugate."""
    duals = []
    for term in terms:
        z = _predicted(term, x)
        if isinstance(term.loss, Conjugable):
            a = term.loss.derivative(z, term.target)  # type: ignore[attr-defined]
            z = term.loss.project_dual(a, term.target)
        duals.append(z)
    return duals


def _settled(
    form: SparseRegression, duals: list[FloatArray], balance: IntArray | None, ends: bool
) -> Witness:
    """Return the witness with what balances coordinates that nothing holds, where that is known."""
    found = tuple(duals)
    return Witness(balanced(form, found, balance, ends=ends) if form.traits.conjugable else found)


def _predicted(term: Term, x: FloatArray) -> FloatArray:
    support = np.flatnonzero(x if x.ndim == 1 else np.any(x != 0.0, axis=1))
    z, _ = predictions(term.design, x, support)
    return z if term.offset is None else z + term.offset


def extracted(form: SparseRegression, at: FloatArray, diagonal: FloatArray | None) -> Witness:
    """Return the witness at a point of a squared-loss problem with curvature taken out.

    The residuals there are the dual point, exactly; nothing may be projected. Beside columns far
    from zero those at the best intercept are, which takes more digits than the point has.
    """
    duals = [
        term.loss.derivative(_predicted(term, at), term.target)  # type: ignore[attr-defined]
        for term in form.terms
    ]
    shifts = ShiftColumns.find(form)
    if shifts is not None:
        duals = levelled(form, duals, duals, shifts.having)
    return Witness(tuple(duals), at=at, extraction=diagonal)


@np.errstate(all="ignore")  # a bound that overflows is not finite, and none
def free_bound(
    form: SparseRegression,
    gradients: Iterable[tuple[FloatArray, ...]],
    promise: float = np.inf,
) -> Bound:
    """Return the best bound from the gradients of a run and from the infimum of the losses.

    Parameters
    ----------
    gradients
        For each point tried, the gradient of every term in its predictions, weights inside.
    promise
        What none of these proves more than.
    """
    best = infimum_bound(form)
    if promise <= best.value:
        return best
    for known in gradients:
        witness = from_gradients(form, known)
        if witness is not None:
            bound = evaluate(form, witness)
            if bound.value > best.value:
                best = bound
    return best


@np.errstate(all="ignore")  # what overflows encloses nothing
def enclosure(
    form: SparseRegression, x: FloatArray, gradients: tuple[FloatArray, ...]
) -> tuple[float, float]:
    """Return ``(lower, upper)`` around the optimal value of ``form``, valid in exact arithmetic.

    ``gradients`` are those of the terms in their predictions at any point, weights inside. The
    upper end is the objective at ``x``, infinite where ``x`` is infeasible. A few passes.
    """
    at_point = primal(form, x)
    upper = np.inf if at_point.violations else at_point.upper
    return free_bound(form, [gradients]).value, upper
