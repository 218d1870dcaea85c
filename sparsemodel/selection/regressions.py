"""Choosing k for regressions: what is left out, and how well a model fits."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any, NamedTuple, cast, final

import numpy as np

from sparsemodel.compiler.facts.analysis import Facts
from sparsemodel.compiler.reductions.chain import reduce_form
from sparsemodel.interfaces import (
    BoolArray,
    Cardinality,
    DataError,
    FloatArray,
    Likelihood,
    ModelError,
    Point,
    SparseRegression,
    Stop,
    TargetKind,
    Term,
)
from sparsemodel.losses.counts.risk_sets import survival
from sparsemodel.numerics import RegressionObjective, margins
from sparsemodel.numerics.budget import budget
from sparsemodel.selection.criteria import Candidate, Criterion, carried, criterion_function
from sparsemodel.selection.folds import Observed
from sparsemodel.selection.parts import Parts, parts_of
from sparsemodel.selection.path import PathPoint, PathResult, Search, sizes_to_follow, with_prices
from sparsemodel.selection.searched_path import limited_path
from sparsemodel.selection.solve_path import solve_path
from sparsemodel.selection.weights import Weighting, independent_terms

_ROUNDING = 1e-8
"""Residuals smaller than this share of the target are rounding."""

_NO_WEIGHT = (
    "A fold, or what is left without it, holds observations of weight zero only. Leave these out, "
    "or ask for fewer folds."
)


def fall_towards(loss: Any, predictions: Sequence[FloatArray], y: FloatArray) -> FloatArray:
    """Return how fast each loss falls from the first predictions towards the sum of the others."""
    first = predictions[0]
    falls = -loss.derivative(first, y) * (sum(predictions) - len(predictions) * first)
    return np.asarray(falls if falls.ndim == 1 else falls.sum(axis=1))


@final
class RegressionObservations(Observed):
    """The observations of a regression's terms.

    A term of a single row, such as ``mu @ w``, is part of the model: it counts in every fit and in
    no held-out loss. What is left out has weight zero, so that the data are not copied.

    Parameters
    ----------
    store
        Where the facts about the observations that were kept last are held: another ridge on
        the same observations finds them there.
    along
        The constraint at each ``k``, where ``k`` is not the only limit.
    weights
        Those of each term's observations as they were declared, and what they mean; None takes
        those of the form as precisions.
    together
        Whether all terms are of the same observations, which are then left out of all.
    """

    def __init__(
        self,
        form: SparseRegression,
        store: dict[Hashable, Any],
        along: Mapping[int, Cardinality] | None = None,
        weights: Sequence[DeclaredWeights] | None = None,
        *,
        together: bool = False,
    ) -> None:
        self._form, self._store, self._along = form, store, along
        self._weights = declared_weights(form) if weights is None else weights
        self._together = together

    @property
    def sizes(self) -> tuple[int, ...]:
        found = tuple(term.target.shape[0] for term in self._form.terms if _observed(term))
        return found[:1] if self._together else found

    def classes(self, number: int) -> FloatArray:
        if self._together:
            return np.asarray(sum(term.target for term in self._form.terms))
        term = [term for term in self._form.terms if _observed(term)][number]
        if term.loss.target_kind is TargetKind.TIMES:
            return survival(term.target).event.astype(np.float64)  # whatever strata there are
        return term.target if term.target.ndim == 1 else term.target[:, -1]

    def solutions(self, kept: Sequence[BoolArray], ks: Sequence[int], how: Search) -> PathResult:
        masks = self._masks(kept)
        part = on_observations(self._form, masks)
        if how.backend is None and self._along is None and (parts := self._parts()) is not None:
            return _swept(parts, part, ks)
        key = b"".join(mask.tobytes() for mask in masks)
        if self._store.get("kept", (b"", {}))[0] != key:
            self._store["kept"] = (key, {})
        known = self._store["kept"][1]
        if self._along is not None or not part.sparsity.plain:
            return limited_path(part, ks, self._along, how, known).uninterrupted()
        facts = Facts(part, known)
        found = solve_path(part, reduce_form(part, facts), facts, sizes_to_follow(ks, part), how)
        return with_prices(found, part.sparsity, ks).uninterrupted()

    def _parts(self) -> Parts | None:
        """Return the problem on parts of its observations, the same for all ridges."""
        if "parts" not in self._store:
            self._store["parts"] = parts_of(self._form)
        return cast("Parts | None", self._store["parts"])

    def held_out_losses(
        self, kept: Sequence[BoolArray], points: Sequence[PathPoint]
    ) -> list[float]:
        form = self._form
        pairs = zip(form.terms, self._masks(kept), strict=True)
        weights = [np.where(mask, 0.0, term.weights) for term, mask in pairs]
        if not any(map(np.any, weights)):
            raise DataError(_NO_WEIGHT)
        objective = RegressionObjective(form)
        return [_mean_loss(form, objective.point_from(p.x).state, weights) for p in points]

    def held_out_falls(
        self, kept: Sequence[BoolArray], points: Sequence[PathPoint]
    ) -> tuple[FloatArray, FloatArray] | None:
        form = self._form
        if not form.traits.by_observation:
            return None
        weights = [
            np.where(m, 0.0, t.weights) for t, m in zip(form.terms, self._masks(kept), strict=True)
        ]
        objective = RegressionObjective(form)
        states = [objective.point_from(point.x).state for point in points]
        falls = []
        for term, at in zip(form.terms, zip(*states, strict=True), strict=True):
            reached = [margins(term, z) for z in at]
            falls.append(fall_towards(term.loss, reached, term.target))
        meanings = [one.meaning for one in self._weights]
        if self._together:  # all terms say something of the same observations
            return independent_terms(np.asarray(sum(falls)), weights[0], meanings[0])
        values = np.concatenate(falls)
        meaning = "frequency" if set(meanings) == {"frequency"} else "precision"
        return independent_terms(values, np.concatenate(weights), meaning)

    @property
    def count(self) -> float:
        pairs = zip(self._form.terms, self._weights, strict=True)
        found = [one.weighting.n for term, one in pairs if _observed(term)]
        return found[0] if self._together else sum(found)

    def _masks(self, kept: Sequence[BoolArray]) -> list[BoolArray]:
        """Return a mask for every term: those that are part of the model are kept."""
        masks = repeat(kept[0]) if self._together else iter(kept)
        every = np.ones(1, dtype=bool)
        return [next(masks) if _observed(term) else every for term in self._form.terms]


def _swept(parts: Parts, form: SparseRegression, ks: Sequence[int]) -> PathResult:
    """Return the path of a part, with its ridge; the first point alone where time is up."""
    late, forced = budget().over(), form.sparsity.forced_units
    ks = ks[:1] if late else ks
    weights = [term.weights for term in form.terms]
    most = min(max(ks) - forced, form.sparsity.units)
    found = parts.along_k(weights, form.ridge, most)
    if budget().interrupted:
        raise KeyboardInterrupt
    objective = RegressionObjective(form)
    points = []
    for k in ks:
        size = min(k - forced, most)
        if size >= len(found):
            late = True
            break
        x = found[size]
        points.append(PathPoint(k, x, objective.point_from(x).value))
    passes = float(form.sparsity.size)
    return PathResult(points, passes, Stop.TIME_LIMIT if late else Stop.CONVERGED)


def on_observations(form: SparseRegression, kept: Sequence[BoolArray]) -> SparseRegression:
    """Return the form on some of each term's observations; means become theirs."""
    terms = []
    for term, mask in zip(form.terms, kept, strict=True):
        weights = np.where(mask, term.weights, 0.0)
        if not weights.any():
            raise DataError(_NO_WEIGHT)
        weights *= term.weights.sum() / weights.sum()
        terms.append(replace(term, weights=weights))
    return replace(form, terms=tuple(terms))


def _observed(term: Term) -> bool:
    """Return whether a term's rows are observations, of which some can be left out."""
    return bool(term.target.shape[0] > 1)


def regression_criterion_values(
    form: SparseRegression,
    points: Sequence[PathPoint],
    criterion: Criterion,
    weights: Sequence[DeclaredWeights] | None = None,
) -> FloatArray:
    r"""Return the criterion for each point of a path; smaller is better.

    Parameters
    ----------
    criterion
        With ``gamma`` None, that of EBIC is 1. Where it is ``shrunk``, ``d`` is
        :math:`\operatorname{tr}(H (H + R)^{-1})`, with the Hessian ``H`` of the losses on the
        support and the ridge ``R`` (Hastie, Tibshirani and Friedman, The Elements of Statistical
        Learning, 2009, equation 3.50).
    weights
        Those of each term's observations as they were declared, and what they mean, for the number
        of observations; None takes those of the form as precisions.

    Notes
    -----
    Residuals below ``1e-8`` of what the model of zeros leaves are rounding, not fit: they count as
    that size, so that of several models without noise the smallest is chosen.

    Raises
    ------
    ModelError
        For an unknown criterion, for losses that are no likelihoods (a hinge loss, say), and where
        losses without second derivatives would have to be ``shrunk``.
    """
    value, units = criterion_function(criterion), criterion.units(form.sparsity.units)
    losses = [term.loss for term in form.terms]
    loss = losses[0]
    if not isinstance(loss, Likelihood) or any(other != loss for other in losses[1:]):
        names = " + ".join(sorted({one.name for one in losses}))
        raise ModelError(
            f"{names} is not a likelihood, so {criterion.name} is not defined for it; use "
            "cross_validate(). If your own loss is a likelihood, let it inherit "
            "sparsemodel.interfaces.Likelihood."
        )
    if criterion.shrunk and not form.traits.has_hessian:
        raise ModelError(
            f"{loss.name} has no second derivatives, by which {criterion.name} compares ridges; "
            "use cross_validate()."
        )
    y = np.concatenate([term.target for term in form.terms])
    at_hand = _observations(form, weights)
    objective, n = RegressionObjective(form), loss.sample_size(y, at_hand.copies)
    inside = [term.weights for term in form.terms]
    least = -np.inf
    if loss.degree is not None:
        origin = objective.point_from(np.zeros_like(points[0].x))
        least = _ROUNDING**loss.degree * _mean_loss(form, origin.state, inside)
    out = []
    for point in points:
        at = objective.point_from(point.x)
        k = form.sparsity.count(point.x)
        d = _effective(objective, at) if criterion.shrunk else float(estimated(form, point.x))
        mean = max(_mean_loss(form, at.state, inside), least)
        fit = loss.minus_twice_log(mean, y, at_hand.precision, at_hand.copies)
        out.append(value(Candidate(fit, n, units, k, d, loss.scales)))
    return np.array(out)


def estimated(form: SparseRegression, x: FloatArray) -> int:
    """Return how many coefficients are estimated: those not zero, or always in.

    Adding a constant to all classes of a feature changes no probability, so that of its
    coefficients one less than there are classes are estimated.
    """
    counted, free = x[form.sparsity.counted], x[form.sparsity.free]
    if not form.traits.simplex:
        return int(np.count_nonzero(counted)) + int(free.size)
    most = int(x.shape[1]) - 1
    nonzero = np.count_nonzero(counted, axis=1)
    return int(np.minimum(nonzero, most).sum()) + int(free.shape[0]) * most


def _effective(objective: RegressionObjective, at: Point) -> float:
    """Return the effective number of coefficients."""
    form, support = objective.form, at.support
    outputs = int(at.x[0].size)
    ridge = np.repeat(form.ridge[support], outputs)
    if not ridge.any():
        return float(estimated(form, at.x))
    hessian = objective.hessian(at, support)
    d = float(ridge.size - np.diag(np.linalg.pinv(hessian, hermitian=True)) @ ridge)
    # Without a ridge nothing shrinks the constant that all classes share.
    return d - np.count_nonzero(form.ridge[support] == 0.0) if form.traits.simplex else d


def most_carried(
    form: SparseRegression,
    weights: Sequence[DeclaredWeights] | None = None,
    criterion: Criterion | None = None,
) -> int | None:
    """Return the largest ``k`` that an information criterion may choose, None for any.

    ``n`` is the number of observations or events, never more than observations where a loss counts
    every number of several responses, and ``p`` that of units.
    """
    loss = form.terms[0].loss
    if not isinstance(loss, Likelihood):
        return None
    copies = _observations(form, weights).copies
    y = np.concatenate([term.target for term in form.terms])
    n = min(loss.sample_size(y, copies), float(copies.sum()))
    units = form.sparsity.units if criterion is None else criterion.units(form.sparsity.units)
    return form.sparsity.forced_units + carried(n, units)


class DeclaredWeights(NamedTuple):
    """Weights of a loss's observations as they were declared."""

    weights: FloatArray
    meaning: str
    """One of :data:`~sparsemodel.selection.weights.WeightsAre`."""

    @property
    def weighting(self) -> Weighting:
        """Return how many observations they are."""
        return Weighting.of(self.weights, self.meaning)


def declared_weights(form: SparseRegression) -> list[DeclaredWeights]:
    """Return the weights of a form of which no declaration is known; the mean of each is one."""
    inside = [term.weights for term in form.terms]
    return [DeclaredWeights(c * (np.count_nonzero(c) / c.sum()), "precision") for c in inside]


def _observations(form: SparseRegression, weights: Sequence[DeclaredWeights] | None) -> Weighting:
    """Return precisions and copies of the observations of all terms."""
    parts = declared_weights(form) if weights is None else weights
    inside = np.concatenate([term.weights for term in form.terms])
    return Weighting.joined([one.weighting for one in parts], inside)


def _mean_loss(
    form: SparseRegression, predictions: Sequence[FloatArray], weights: Sequence[FloatArray]
) -> float:
    """Return the weighted mean loss over the observations of all terms."""
    total = 0.0
    for term, z, c in zip(form.terms, predictions, weights, strict=True):
        total += term.loss.total(margins(term, z), term.target, c)
    return total / sum(float(c.sum()) for c in weights)
