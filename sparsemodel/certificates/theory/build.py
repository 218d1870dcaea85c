"""Put a problem's constants and its theorems together."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np

from sparsemodel.certificates.arithmetic.products import predictions
from sparsemodel.certificates.statements.stationarity import gradient, stationarity
from sparsemodel.certificates.theory.constants import enclose
from sparsemodel.certificates.theory.hessians import (
    curvatures,
    objections,
    row_smoothness,
    smooth,
)
from sparsemodel.certificates.theory.summary import Theory
from sparsemodel.interfaces import (
    Backend,
    FloatArray,
    IntervalConjugable,
    SparseRegression,
    UnsupportedProblemError,
)
from sparsemodel.interfaces.self_description import Constants, Guarantee, Setting, levels
from sparsemodel.numerics.budget import ending_by
from sparsemodel.registry import usable_backends


def theory(
    form: SparseRegression,
    x: FloatArray,
    backends: Sequence[Backend] = (),
    *,
    rescaled: bool = False,
    combined: bool = False,
) -> Theory:
    r"""Return restricted constants of ``form`` and what the papers' theorems say with them.

    Parameters
    ----------
    form
        Losses of one observation each, ridge, at most ``k`` counted coordinates. Free coordinates
        are minimised out.
    x
        The solution; DIHT's theorems are about it, and its support is tried for the constants.
    backends
        What found it: their options are judged, those of other backends as they are by default.
    rescaled, combined
        Whether they worked on scaled columns, or on combinations of the observations.

    Raises
    ------
    UnsupportedProblemError
        When the problem is of a kind that the theorems do not treat; every reason is listed.

    Notes
    -----
    O(n p^2) for the Gram matrix (up to 4000 coordinates; of a choice of columns beyond), O(p^3)
    for its eigenvalues (up to 1500), and a few dozen eigenvalue problems of size ``4k``.
    """
    reasons = objections(form)
    if reasons:
        raise UnsupportedProblemError(
            "The theorems that problem.theory() evaluates do not cover this problem: "
            + "; ".join(reasons)
            + ". problem.certify() bounds the distance to the optimum instead.",
            reasons,
        )
    counted = form.sparsity.counted
    k, p = form.sparsity.budget, int(np.count_nonzero(counted))
    if k < 1 or p < 1:
        raise UnsupportedProblemError(
            "There is no theory to report: k is 0, so that zero is the only point.", ()
        )
    differentiable = smooth(form)
    most = max([1.0, *(float(getattr(each, "relaxation", 1.0)) for each in backends)])
    wide = min(math.ceil(most * k), p)  # what iterates keep
    with ending_by(None) as left:
        asked = sorted({*levels(k, p), *levels(wide, p)})
        constants = enclose(curvatures(form, x), asked) if differentiable else {}
    ridges = form.ridge[counted]
    span = float(ridges.min()), float(ridges.max())
    rows = sum(t.design.shape[0] for t in form.terms)
    weights = np.concatenate([t.weights for t in form.terms])
    equal = weights.size > 0 and bool(np.ptp(weights) <= 1e-12 * weights.max())
    facts = stationarity(form, x)
    whole = gradient(form, x)
    slopes = whole - form.ridge * x
    sizes = np.abs(x[counted])
    setting = Setting(
        k=k,
        p=p,
        constants=constants,
        data={level: _less(c, span) for level, c in constants.items()},
        smooth=differentiable,
        quadratic=form.traits.quadratic,
        loss_curvature=(form.traits.lower, form.traits.upper),
        ridge=span[0] if span[0] == span[1] else 0.0,
        penalised=span[1] > 0.0,
        free=int(form.sparsity.free.size),
        observations=rows,
        weight=float(rows * weights[0]) if equal else 0.0,
        row_smoothness=row_smoothness(form, min(4 * k, p)) if differentiable else np.inf,
        norm=_frobenius(form),
        coefficients=(facts.smallest, float(np.linalg.norm(sizes))),
        slopes=(float(np.abs(slopes[counted]).max(initial=0.0)), facts.largest),
        stationary=facts.stationary,
        target=(
            float(sizes[sizes > 0.0].min(initial=np.inf)),
            float(np.abs(whole[counted]).max(initial=0.0)),
        ),
        rescaled=rescaled,
        combined=combined,
        total=float(weights.sum()),
        dual=_dual_norm(form, x),
        dual_bounds=_dual_bounds(form),
        relaxed_row_smoothness=row_smoothness(form, min(4 * wide, p)) if differentiable else np.inf,
    )
    return Theory(
        k=k,
        coordinates=p,
        observations=rows,
        ridge=span,
        constants=tuple(constants[level] for level in sorted(constants)),
        guarantees=_guarantees(setting, {type(each): each for each in backends}),
        complete=not left.cut,
    )


def _guarantees(setting: Setting, used: Mapping[type[Backend], Backend]) -> tuple[Guarantee, ...]:
    """Return what the theorems of all installed backends say, sorted by paper and number."""
    theorems = {
        theorem.source: theorem
        for _, cls in usable_backends()
        for theorem in used.get(cls, cls()).theorems()
    }
    return tuple(theorems[source].on(setting) for source in sorted(theorems, key=_in_order))


def _in_order(source: str) -> tuple[str, tuple[int, ...], str]:
    """Return the paper's name, then the numbers in the theorem's, so that 8 precedes 10."""
    numbers = tuple(int(digits) for digits in re.findall(r"\d+", source))
    return source.partition(",")[0], numbers, source


def _less(c: Constants, span: tuple[float, float]) -> Constants:
    """Return the constants without the ridge, which lies in ``span``."""
    low, high = span
    return Constants(
        c.level,
        (max(0.0, c.smoothness[0] - high), max(0.0, c.smoothness[1] - low)),
        (max(0.0, c.convexity[0] - high), max(0.0, c.convexity[1] - low)),
    )


def _dual_norm(form: SparseRegression, x: FloatArray) -> float:
    """Return the norm of the derivatives of the losses at a point, without their weights."""
    support, total = np.flatnonzero(x), 0.0
    for term in form.terms:
        z, _ = predictions(term.design, x, support)
        z = z if term.offset is None else z + term.offset
        slopes = np.asarray(term.loss.gradient(z, term.target, np.ones_like(term.weights)))
        total += float(np.vdot(slopes, slopes))
    return math.sqrt(total) if math.isfinite(total) else math.inf


def _dual_bounds(form: SparseRegression) -> tuple[float, float]:
    """Return the largest sizes of dual variables, and of the slopes of their conjugates.

    A slope that grows without end towards an end of the domain grows by a summand each time the
    distance to the end is divided by ten thousand, as that of the logistic loss does.
    """
    largest = steepest = 0.0
    for term in form.terms:
        loss = term.loss
        if not isinstance(loss, IntervalConjugable):
            return math.inf, math.inf
        y = term.target
        low, high = loss.dual_interval(y)
        largest = max(largest, float(np.max(np.maximum(np.abs(low), np.abs(high)), initial=0.0)))
        if not math.isfinite(largest):
            return math.inf, math.inf
        width = high - low
        for end, inwards in ((low, 1.0), (high, -1.0)):
            near, far = (
                (loss.conjugate(end + inwards * h * width, y) - loss.conjugate(end, y))
                / np.where(width > 0.0, h * width, 1.0)
                for h in (1e-8, 1e-4)
            )
            if np.any(np.abs(near - far) > 1.0 + 1e-3 * np.abs(far)):
                return largest, math.inf
            steepest = max(steepest, float(np.abs(near).max(initial=0.0)))
    return largest, steepest


def _frobenius(form: SparseRegression) -> float:
    """Return an upper bound on the spectral norm of the stacked designs."""
    total = 0.0
    for term in form.terms:
        norm = term.design.spectral_norm()
        own = float(term.design.column_square_norms().sum())
        total += min(own, norm.value**2) if norm.kind != "estimate" else own
    return float(np.sqrt(total))
