"""``k`` and the ridge chosen together by cross-validation."""

from __future__ import annotations

import copy
import inspect
import warnings
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self, cast

import numpy as np
from joblib import Parallel, delayed  # type: ignore[import-untyped]
from sklearn.base import is_classifier
from sklearn.metrics import get_scorer
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)

from sparsemodel.interfaces import FloatArray, IntArray, Loss, TargetKind
from sparsemodel.losses.counts.risk_sets import survival
from sparsemodel.modelling.loss_terms.terms import ridge_weight
from sparsemodel.progress import counted, showing
from sparsemodel.selection.choice import (
    HeldOutLosses,
    at_the_end,
    chosen_cell,
    mean_over_folds,
    refused_by_test,
)
from sparsemodel.selection.criteria import carried
from sparsemodel.selection.regressions import fall_towards
from sparsemodel.selection.weights import Weighting, checked_meaning, independent_terms
from sparsemodel.sklearn._base import Data, Options
from sparsemodel.sklearn._declared import (
    Declared,
    Fold,
    a_number,
    candidates_of,
    predict_linear,
    splitter,
)
from sparsemodel.sklearn._hints import rejects_unknown_parameters

RIDGES = (1e-3, 0.1, 1.0)
"""The ridges that are tried unless others are given."""

_MOST = 89
"""The largest k that is tried unless others are given."""

_FIRST = 13
"""The largest k that is tried first, where observations carry as many; others are tried as long as
the best is in the larger half."""

_NEARBY = 4
"""How many k between the best and its neighbours are tried afterwards."""

_NONE: IntArray = np.empty(0, dtype=np.intp)


@dataclass(eq=False, repr=False)
class ChosenK(Options):
    """``k`` and the ridge are those that predict held-out samples best."""

    ks: Any = None
    _: KW_ONLY
    ridges: Any = None
    cv: Any = None
    scoring: Any = None
    one_standard_error: bool = False
    effort: str = "low"
    n_jobs: Any = None
    weights_are: str = "precision"

    @rejects_unknown_parameters
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Self:
        """Choose and fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The features; not copied, not changed, never made dense.
        y : array-like of shape (n_samples,) or as the estimator says
            The target; without it scikit-learn's error for a missing target is raised.
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights of the losses; ``weights_are`` says what they mean. Scorers that
            take weights are given them.
        **params : dict
            ``groups`` of the samples, for splitters that keep groups together; with
            scikit-learn's metadata routing whatever splitter and scorer request.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        _raise_for_params(params, self, "fit", allow=["groups"])
        checked_meaning(self.weights_are)
        data = self._read(X, y, sample_weight)
        scorer = None if self.scoring is None else get_scorer(self.scoring)
        to_split, to_score = self._routed(scorer, sample_weight, params)
        folds = list(self._splitter().split(data.X, self._dealt_by(data), **to_split))
        with showing("Fitting"):
            self._choose(data, _Scoring(scorer, to_score, folds, apart=not to_split))
            return self._fitted(data)

    # ---- choosing ----------------------------------------------------------------------------

    def _choose(self, data: Data, scoring: _Scoring) -> None:
        """Keep ``k_``, ``ridge_`` and the scores behind them."""
        self._whole = whole = self._declared(data)
        parts = [_Part(self, data, whole, *rows) for rows in scoring.folds]
        scoring = scoring._replace(parts=parts)
        n, units = Weighting.of(data.c, self.weights_are).n, whole.units
        candidates = candidates_of("ks", self.ks, usual_ks(n, units))
        self.ridges_ = ridges_of(self.ridges)
        ks = candidates
        if self.ks is None:
            ks = candidates[: np.searchsorted(candidates, min(_FIRST, carried(n, units))) + 1]
        scores, shares, falls = self._scores(data, scoring, ks)
        while self.ks is None:
            best = chosen_cell(-scores, one_standard_error=self.one_standard_error, shares=shares)
            more = candidates[candidates > ks[-1]][:1]
            if not (more.size and 2 * ks[best[0]] > ks[-1]):
                more = between(ks, best[0])
            if not more.size:
                break
            is_last = more[-1] < ks[-1]
            found = self._scores(data, scoring, more, beside=ks[ks < more[-1]])[0]
            order = np.argsort(np.concatenate([ks, more]))
            ks = np.concatenate([ks, more])[order]
            scores = np.concatenate([scores, found], axis=1)[:, order]
            if is_last:
                break
        held = HeldOutLosses.of(falls, self._held(data, scoring)) if falls else None
        null = bool(ks[0] == 0)
        place, column = chosen_cell(
            -scores,
            one_standard_error=self.one_standard_error,
            null=null,
            shares=shares,
            held=held,
        )
        self.ks_, self.k_ = ks, int(ks[place])
        self.ridge_ = float(self.ridges_[column])
        self.all_scores_ = scores
        self.scores_ = np.ascontiguousarray(scores[:, :, column])
        self.best_score_ = float(mean_over_folds(self.scores_, shares)[place])
        said = at_the_end(ks.tolist(), place, by="cross-validation", units=units)
        refused = refused_by_test(-scores, ks.tolist(), shares=shares, held=held) if null else None
        for words in (said, refused):
            if words is not None:
                warnings.warn(words, stacklevel=4)

    def _held(self, data: Data, scoring: _Scoring) -> float:
        """Return how many samples are held out, each counted once at most."""
        each = Weighting.of(self._counting(data), self.weights_are).copies
        return min(float(each.sum()), sum(float(each[test].sum()) for _, test in scoring.folds))

    def _scores(
        self, data: Data, scoring: _Scoring, ks: IntArray, *, beside: IntArray = _NONE
    ) -> tuple[FloatArray, FloatArray, list[tuple[FloatArray, FloatArray]]]:
        """Return scores of shape (folds, ks, ridges), the share of each fold, and how losses fall.

        The last from the first ``k``, with weights, for each fold: nothing where that is not known.
        The paths go through the ``k`` of ``beside``, too.
        """
        along, folds = np.union1d(ks, beside), counted(scoring.parts, "fold")
        work = (delayed(_scored)(self, data, scoring, ks, along, part) for part in folds)
        scores, shares, falls = zip(*Parallel(n_jobs=self.n_jobs)(work), strict=True)
        known = [fall for fall in falls if fall is not None]
        return np.array(scores), np.array(shares) / sum(shares), known

    def _solved(self, data: Data) -> tuple[Declared, Any]:
        """Solve on all samples as it is done in the folds: along k, and along the ridges."""
        whole = self._whole
        del self._whole
        every = _Part(self, data, whole, np.arange(data.X.shape[0]), None)
        every.follow(self.ks_[self.ks_ <= self.k_], self.ridges_[self.ridges_ <= self.ridge_])
        start = every.coefficients(self.k_, self.ridge_)
        return whole, whole.solve(self.k_, self.ridge_, seed=self._seed(), start=start)

    # ---- splitting and routing ---------------------------------------------------------------

    def _splitter(self) -> Any:
        alike = is_classifier(self) or self._loss().target_kind is TargetKind.TIMES
        return splitter(self.cv, self._seed(), classes=alike)

    def _dealt_by(self, data: Data) -> Any:
        """Return what folds are split by: of times the events where the folds are our own."""
        times = self._loss().target_kind is TargetKind.TIMES
        return survival(data.target).event if times and a_number(self.cv) else data.y

    def _routed(
        self, scorer: Any, sample_weight: Any, params: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what splitter and scorer are given beside the data."""
        if _routing_enabled():
            routed = process_routing(self, "fit", sample_weight=sample_weight, **params)
            return dict(routed.splitter.split), dict(routed.scorer.score) if scorer else {}
        takes = scorer is not None and sample_weight is not None and _takes_weights(scorer)
        return dict(params), {"sample_weight": sample_weight} if takes else {}

    def get_metadata_routing(self) -> MetadataRouter:
        """Return what is passed on to the splitter and to the scorer.

        Returns
        -------
        routing : MetadataRouter
            As scikit-learn describes it.
        """
        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(
            splitter=self._splitter(),
            method_mapping=MethodMapping().add(caller="fit", callee="split"),
        )
        if self.scoring is not None:
            router.add(
                scorer=get_scorer(self.scoring),
                method_mapping=MethodMapping().add(caller="fit", callee="score"),
            )
        return router


class _Scoring(NamedTuple):
    """How folds are scored."""

    scorer: Any
    """None for minus the mean loss."""
    params: dict[str, Any]
    folds: list[Any]
    """The samples to fit on and those that are held out."""
    apart: bool
    """Whether samples are independent, as far as is known: no groups were given."""
    parts: list[_Part] = []  # noqa: RUF012
    """The paths of each fold."""


class _Part:
    """The paths on the samples of one fold, all at once or each ``k`` searched on its own."""

    def __init__(self, model: Any, data: Data, whole: Declared, train: Any, test: Any) -> None:
        self.train, self.test = train, test
        self._model, self._data, self._whole = model, data, whole
        self._declared: Declared | None = None

    @cached_property
    def _fold(self) -> Fold | None:
        data = self._data
        c = self._model._weights(data.y[self.train], data.c[self.train])
        return self._whole.fold(self.train, c)

    def follow(self, ks: IntArray, ridges: FloatArray) -> None:
        """Have the solutions for all ``ks`` and ``ridges`` ready."""
        if self._fold is not None:
            self._fold.follow(int(ks[-1]), ridges)
            return
        self._declared = self._declared or self._model._declared(self._data, self.train)
        self._path = self._declared.path(ks, ridges)

    def coefficients(self, k: int, ridge: float) -> tuple[FloatArray, Any]:
        """Return ``(coef, intercept)`` of a solution."""
        if self._fold is not None:
            return self._fold.coefficients(k, ridge)
        return cast("Declared", self._declared).coefficients_at(self._path, k, ridge)


def _scored(
    model: Any, data: Data, scoring: _Scoring, ks: IntArray, along: IntArray, part: _Part
) -> tuple[FloatArray, float, tuple[FloatArray, FloatArray] | None]:
    """Return scores of shape (ks, ridges) on the held-out samples, and the samples' share.

    Then how fast their losses fall from the first ``k`` towards the others with the largest ridge,
    and their weights: None where that is not known, or samples depend on each other.
    """
    train, test = part.train, part.test
    share = float(data.c[test].sum())
    if not (data.c[train].sum() > 0.0 and share > 0.0):
        raise ValueError("A fold of the cross-validation holds samples of weight zero only.")
    fitted = copy.copy(model)
    held_out, y, c = data.X[test], data.y[test], data.c[test] / share
    target = model._targets(data.target[test], data.outputs)
    params = {name: _part(value, test, data.X.shape[0]) for name, value in scoring.params.items()}
    scores = np.empty((ks.size, model.ridges_.size))
    loss, reached = model._loss(), list[FloatArray]()
    known = scoring.scorer is None and scoring.apart and isinstance(loss, Loss)
    part.follow(along, model.ridges_)
    for column, ridge in enumerate(model.ridges_):
        reached = []
        for row, k in enumerate(ks):
            found = part.coefficients(int(k), float(ridge))
            if scoring.scorer is None:
                reached.append(predict_linear(held_out, *found))
                scores[row, column] = -float(loss.total(reached[-1], target, c))
            else:
                fitted._take(found, data.outputs)
                scores[row, column] = float(scoring.scorer(fitted, held_out, y, **params))
                if np.isnan(scores[row, column]):
                    raise ValueError(
                        f"scoring={model.scoring!r} is nan with k = {k} on a fold of {y.shape[0]} "
                        "held-out samples, and cannot be compared; pass a scorer that has a value "
                        "there, or larger or stratified folds, or ks without 0, whose predictions "
                        "are constant."
                    )
    # The largest ridge is the last one.
    if not known:
        return scores, share, None
    counting = model._counting(data)[test]
    falls = independent_terms(fall_towards(loss, reached, target), counting, model.weights_are)
    return scores, share, falls


def _part(value: Any, rows: Any, n: int) -> Any:
    """Return the rows of what there is one of per sample."""
    per_sample = np.ndim(value) > 0 and np.shape(value)[0] == n
    return np.asarray(value)[rows] if per_sample else value


def _takes_weights(scorer: Any) -> bool:
    """Return whether a scorer can be given ``sample_weight``."""
    named = inspect.signature(getattr(scorer, "_score_func", scorer)).parameters
    return "sample_weight" in named


def usual_ks(n: float, p: int) -> IntArray:
    """Return the candidates for ``n`` samples of ``p`` units: the Fibonacci numbers from 0 on.

    Up to half of the samples, the features or groups there are to choose from, and 89: coarse
    where few more hardly matter, and refined around the best afterwards.

    Examples
    --------
    >>> from sparsemodel.sklearn._chosen import usual_ks
    >>> usual_ks(60, 300), usual_ks(60, 4)
    (array([ 0,  1,  2,  3,  5,  8, 13, 21, 30]), array([0, 1, 2, 3, 4]))
    """
    most = max(int(min(p, n // 2, _MOST)), 1)
    ks = [0, 1, 2]
    while ks[-1] < most:
        ks.append(ks[-1] + ks[-2])
    return np.unique(np.minimum(ks, most))


def between(ks: IntArray, best: int) -> IntArray:
    """Return up to four whole numbers between the neighbours of ``ks[best]``."""
    low, high = ks[max(best - 1, 0)], ks[min(best + 1, ks.size - 1)]
    inside = np.setdiff1d(np.arange(low + 1, high), ks)
    if inside.size <= _NEARBY:
        return inside
    return inside[np.round(np.linspace(0, inside.size - 1, _NEARBY)).astype(np.intp)]


def ridges_of(given: Any) -> FloatArray:
    """Return the ridges to try, increasing."""
    values = np.atleast_1d(np.asarray(RIDGES if given is None else given))
    if values.ndim != 1 or values.dtype.kind not in "biuf" or values.size == 0:
        raise ValueError(f"ridges must be numbers, for example [1e-3, 0.1, 1.0], not {given!r}.")
    return np.unique(ridge_weight(values))
