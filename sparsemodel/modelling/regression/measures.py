"""Measures of a regression's fit, and standard errors on its support."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from sparsemodel.compiler.services import objective_of, restricted_of
from sparsemodel.interfaces import (
    Conjugable,
    DataFit,
    FloatArray,
    IntArray,
    Likelihood,
    Loss,
    ModelError,
    SimplexConjugable,
    SparseModelError,
    SparseRegression,
    SquaredDistance,
    TargetKind,
)
from sparsemodel.modelling.results.summary import Estimate, Summary
from sparsemodel.numerics import margins
from sparsemodel.numerics.minimisers.unboundedness import check_attained
from sparsemodel.selection.criteria import Criterion
from sparsemodel.selection.path import PathPoint
from sparsemodel.selection.regressions import (
    DeclaredWeights,
    estimated,
    regression_criterion_values,
)

_SINGULAR = 1e-12
"""A Hessian whose eigenvalues, with a diagonal of ones, are smaller has no inverse to speak of."""


def summary_of(
    form: SparseRegression,
    x: FloatArray,
    weights: DeclaredWeights,
    name: Callable[[int], Any] | None,
) -> Summary:
    """Return the measures of the fit of ``x``.

    Parameters
    ----------
    weights
        Those of the observations as they were declared, and what they mean.
    name
        Gives that of a coordinate; None where coordinates are not the user's coefficients.

    Raises
    ------
    ModelError
        For problems with several losses.
    """
    if len(form.terms) != 1:
        raise ModelError(
            f"summary() is for problems with one loss of observations, and this one has "
            f"{len(form.terms)} losses; compute the measures from the .value of the variables."
        )
    (term,) = form.terms
    loss, y, c = term.loss, term.target, term.weights / term.weights.sum()
    u = margins(term, term.design.matvec(x))
    constant = loss.constant_of(y, weights.weights) / float(weights.weights.sum())
    support = np.flatnonzero(x != 0.0 if x.ndim == 1 else np.any(x != 0.0, axis=1))
    estimates, reason = _estimates(form, x, support, weights, name)
    return Summary(
        loss=loss.name,
        n=weights.weighting.n,
        k=form.sparsity.count(x) + form.sparsity.forced_units,
        d=estimated(form, x),
        mean_loss=loss.total(u, y, c) + constant,
        deviance_explained=deviance_explained(
            loss, u, y, c, np.zeros_like(u) if term.offset is None else term.offset
        ),
        estimates=estimates,
        without_errors=reason,
        **_of_values(loss, u, y, c),
        **_of_classes(loss, u, y, c),
        **_criteria(form, x, weights),
    )


def summary_of_levels(
    form: SparseRegression,
    x: FloatArray,
    weights: DeclaredWeights,
    name: Callable[[int], Any] | None,
) -> Summary:
    """Return the measures of the fit of ordered classes, whose thresholds have a term each."""
    c = form.terms[0].weights / form.terms[0].weights.sum()
    u = [margins(term, term.design.matvec(x)) for term in form.terms]
    losses = [t.loss.total(one, t.target, c) for t, one in zip(form.terms, u, strict=True)]
    found = sum((one > 0.0).astype(np.intp) for one in u)
    own = sum((term.target > 0.0).astype(np.intp) for term in form.terms)
    return Summary(
        loss="ordinal_loss",
        n=weights.weighting.n,
        k=form.sparsity.count(x) + form.sparsity.forced_units,
        d=estimated(form, x),
        mean_loss=float(sum(losses)),
        accuracy=float(c[found == own].sum()),
        largest_class=float(np.bincount(np.asarray(own), weights=c).max()),
        estimates=[] if name is None else _plain(x, np.flatnonzero(x), name),
        without_errors="the ordinal loss is not a likelihood of the classes",
    )


# ---- measures --------------------------------------------------------------------------------


def _of_values(loss: DataFit, u: FloatArray, y: FloatArray, c: FloatArray) -> dict[str, Any]:
    """Return R2 and the size of the errors, where predictions are values of the target."""
    if loss.target_kind is not TargetKind.NUMBERS or type(loss).mean is not DataFit.mean:
        return {}
    mean = float(np.dot(c, _squares(y - u)))
    total = float(np.dot(c, _squares(y - np.average(y, axis=0, weights=c))))
    return {"rmse": mean**0.5, "r2": 1.0 - mean / total if total > 0.0 else None}


def _squares(v: FloatArray) -> FloatArray:
    return np.square(v) if v.ndim == 1 else np.square(v).sum(axis=1)


def _of_classes(loss: DataFit, u: FloatArray, y: FloatArray, c: FloatArray) -> dict[str, Any]:
    """Return how many classes are right, and how well scores order two of them."""
    if loss.target_kind not in (TargetKind.TWO_CLASSES, TargetKind.CLASSES):
        return {}
    if u.ndim == 2:
        codes = y.astype(np.intp)
        shares = np.bincount(codes, weights=c)
        right = float(c[np.argmax(u, axis=1) == codes].sum())
        return {"accuracy": right, "largest_class": float(shares.max())}
    positive = y > 0.0
    share = float(c[positive].sum())
    right = float(c[(u > 0.0) == positive].sum())
    found = {"accuracy": right, "largest_class": max(share, 1.0 - share), "positive": "1"}
    return found | {"auc": area_under_curve(u, positive, c)}


def area_under_curve(score: FloatArray, positive: Any, c: FloatArray) -> float | None:
    """Return the weighted area under the ROC curve; None where a class is absent.

    Examples
    --------
    >>> import numpy as np
    >>> area_under_curve(np.array([3.0, 1.0, 1.0]), np.array([True, True, False]), np.ones(3))
    0.75
    """
    values, place = np.unique(score, return_inverse=True)
    ones = np.bincount(place, weights=np.where(positive, c, 0.0), minlength=values.size)
    zeros = np.bincount(place, weights=np.where(positive, 0.0, c), minlength=values.size)
    pairs = float(ones.sum() * zeros.sum())
    if pairs <= 0.0:
        return None
    return float(np.dot(ones, np.cumsum(zeros) - 0.5 * zeros)) / pairs


def deviance_explained(
    loss: DataFit, u: FloatArray, y: FloatArray, c: FloatArray, offset: FloatArray
) -> float | None:
    """Return the share of the loss of the best constant that predictions ``u`` explain."""
    if not (isinstance(loss, Loss) and isinstance(loss, Conjugable)):
        return None
    offset = np.broadcast_to(offset, u.shape)
    constant = _best_constant(loss, y, c, offset)
    if constant is None:
        return None
    used = c > 0.0  # an infinite conjugate of an observation that does not count is nothing
    least = -float(np.dot(c[used], loss.conjugate(np.zeros_like(u[used]), y[used])))
    if not np.isfinite(least):  # of a mean of zero that nothing keeps from being less
        return None
    null = loss.total(offset + constant, y, c)
    return (null - loss.total(u, y, c)) / (null - least) if null > least else None


def _best_constant(loss: Loss, y: FloatArray, c: FloatArray, offset: FloatArray) -> Any:
    """Return the constant that minimises the loss beside the offsets; None where none is known."""
    if isinstance(loss, SquaredDistance):
        return np.average(loss.centre(y) - offset, axis=0, weights=c)
    if offset.ndim == 2:
        if not isinstance(loss, SimplexConjugable) or offset.any():
            return None
        shares: FloatArray = np.zeros(offset.shape[1])
        np.add.at(shares, y.astype(np.intp), c)
        return loss.link(shares[None, :]) if np.all(shares > 0.0) else None

    def slope(t: float) -> float:
        return float(loss.gradient(offset + t, y, c).sum())

    ends = []
    for direction in (-1.0, 1.0):
        step = direction
        while direction * slope(step) < 0.0 and abs(step) < 1e15:
            step *= 2.0
        ends.append(step)
    low, high = ends
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(middle) < 0.0 else (low, middle)
    return 0.5 * (low + high)


def _criteria(form: SparseRegression, x: FloatArray, weights: DeclaredWeights) -> dict[str, Any]:
    """Return the information criteria of a likelihood."""
    if not isinstance(form.terms[0].loss, Likelihood):
        return {}
    point = PathPoint(form.sparsity.count(x), x, 0.0)
    return {
        one: float(regression_criterion_values(form, [point], Criterion(one), [weights])[0])
        for one in ("aic", "bic", "ebic")
    }


# ---- standard errors -------------------------------------------------------------------------


def _estimates(
    form: SparseRegression,
    x: FloatArray,
    support: IntArray,
    weights: DeclaredWeights,
    name: Callable[[int], Any] | None,
) -> tuple[Sequence[Estimate], str]:
    """Return the coefficients with their errors, or without them and the reason."""
    if x.ndim == 2 or name is None:
        return (), ""
    plain = _plain(x, support, name)
    own = weights.weighting
    reason = _why_not(form, support, own.n)
    if reason:
        return plain, reason
    sparsity = replace(form.sparsity, k=form.sparsity.count(x), price=0.0)
    free = replace(form, ridge=np.zeros_like(form.ridge), sparsity=sparsity)
    objective = objective_of(free)
    try:
        at = restricted_of(free)(objective, support, objective.point_from(x))
        check_attained(cast("Any", objective), at)
    except SparseModelError:
        return plain, "without the ridge the loss has no minimum on the support"
    hessian = cast("Any", objective).hessian(at, support)
    sizes = np.sqrt(np.diag(hessian))
    correlations = hessian / np.outer(sizes, sizes) if np.all(sizes > 0.0) else None
    if correlations is None or np.linalg.eigvalsh(correlations)[0] < _SINGULAR:
        return plain, "columns of the support depend on each other"
    (term,) = free.terms
    u = margins(term, term.design.matvec(at.x))
    if weights.meaning == "sampling":
        errors = np.sqrt(_sandwich(free, u, support, hessian))
    else:
        c, degrees = own.total, own.n - support.size
        spread = cast("Likelihood", term.loss).dispersion(u, term.target, c, degrees)
        share = float(term.weights.sum() / c.sum())
        errors = np.sqrt(np.diag(np.linalg.inv(correlations)) * (spread * share)) / sizes
    return [
        Estimate(one.name, one.value, float(at.x[j]), float(error))
        for one, j, error in zip(plain, support.tolist(), errors, strict=True)
    ], ""


def _sandwich(
    form: SparseRegression, u: FloatArray, support: IntArray, hessian: FloatArray
) -> FloatArray:
    r"""Return the variances of the estimates where weights say how observations were drawn.

    The diagonal of :math:`\frac{n}{n-1} H^{-1} (\sum_i c_i^2 s_i^2 a_i a_i^\top) H^{-1}`, with the
    derivatives :math:`s_i` and the number ``n`` of observations that have a weight: linearisation
    for a sample drawn with replacement (Binder, International Statistical Review 1983), as
    ``svyglm`` of R.
    """
    (term,) = form.terms
    c, loss = term.weights, cast("Loss", term.loss)
    rows = np.flatnonzero(c)
    scores = (c * loss.derivative(u, term.target))[:, None] * term.design.restrict(
        support
    ).to_array()
    half = np.linalg.solve(hessian, scores[rows].T)
    return np.asarray(rows.size / (rows.size - 1.0) * np.square(half).sum(axis=1))


def _plain(x: FloatArray, support: IntArray, name: Callable[[int], Any]) -> list[Estimate]:
    return [Estimate(str(name(j)), float(x[j]), None, None) for j in support.tolist()]


def _why_not(form: SparseRegression, support: IntArray, n: float) -> str:
    """Return why there are no standard errors; nothing where there may be some."""
    loss = form.terms[0].loss
    if not support.size:
        return "no coefficient is nonzero"
    if not isinstance(loss, Likelihood):
        return f"{loss.name} is not a likelihood"
    if not form.traits.has_hessian:
        return f"{loss.name} has no second derivatives"
    if form.box is not None or form.region is not None:
        return "constraints hold the coefficients"
    if n <= support.size:
        return "there are no more observations than coefficients"
    return ""
