"""Estimators that choose k and the ridge: candidates, folds, scorers, weights."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
import pytest
import sklearn
from joblib import parallel_config
from scipy.stats import median_abs_deviation
from sklearn.base import clone
from sklearn.metrics import make_scorer, mean_squared_error
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit, StratifiedKFold
from sklearn.utils.class_weight import compute_sample_weight

import sparsemodel as sm
from sparsemodel.losses import HuberLoss
from sparsemodel.modelling.loss_terms.squared_scales import spread, target_scale
from sparsemodel.selection.choice import HeldOutLosses, chosen_cell, refused_by_test
from sparsemodel.sklearn import (
    SparseGeneralizedRegression,
    SparseHuberRegression,
    SparseHuberRegressionCV,
    SparseLinearRegression,
    SparseLinearRegressionCV,
    SparseLogisticRegressionCV,
    SparsePoissonRegression,
    SparsePrecisionCV,
    SparseQuantileRegression,
)
from sparsemodel.sklearn._chosen import between, usual_ks
from sparsemodel.sklearn._docs import cross_validated, estimator

# Few candidates are quick, and the truth is often the last of them.
pytestmark = pytest.mark.filterwarnings("ignore:cross-validation chooses:UserWarning")

N, P = 60, 6
RNG = np.random.default_rng(3)
X = RNG.standard_normal((N, P))
Y = X[:, 1] - X[:, 4] + 0.5 * RNG.standard_normal(N)
FEW: dict[str, Any] = {"ks": [0, 1, 2], "cv": 3, "ridges": 1e-3}


# ---- candidates ----------------------------------------------------------------------------------


def test_the_usual_candidates_begin_at_zero_and_end_at_half_the_samples() -> None:
    assert usual_ks(60, 300).tolist() == [0, 1, 2, 3, 5, 8, 13, 21, 30]
    assert usual_ks(1e5, 1000)[-1] == 89
    assert usual_ks(60, 4).tolist() == [0, 1, 2, 3, 4]
    ks = usual_ks(60, 300)
    assert between(ks, 4).tolist() == [4, 6, 7]
    assert between(ks, 5).tolist() == [6, 9, 10, 12]
    assert between(ks, 0).size == between(ks, 1).size == 0


def test_groups_are_what_is_counted_up_to() -> None:
    labels = np.arange(X.shape[1]) // 2
    model = SparseLinearRegressionCV(groups=labels, always=[0, 1], cv=2, ridges=1.0).fit(X, Y)
    assert model.ks_.max() == labels.max()  # all groups but the one that is always in


def test_the_best_is_refined_and_the_table_holds_everything() -> None:
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((90, 12))
    y = Z[:, :6].sum(axis=1) + 0.2 * rng.standard_normal(90)
    model = SparseLinearRegressionCV(cv=3, ridges=[1e-3, 1.0]).fit(Z, y)
    assert set(model.ks_) > {0, 1, 2, 3, 5, 8, 12}
    assert np.all(np.diff(model.ks_) > 0)
    assert model.all_scores_.shape == (3, model.ks_.size, 2)
    column = model.ridges_.tolist().index(model.ridge_)
    np.testing.assert_array_equal(model.scores_, model.all_scores_[:, :, column])
    place = model.ks_.tolist().index(model.k_)
    assert model.best_score_ == model.scores_.mean(axis=0)[place]
    assert model.best_score_ == model.all_scores_.mean(axis=0).max()
    assert model.k_ >= 6
    assert model.ridge_ == 1e-3


def test_a_weak_signal_is_shrunk_and_a_strong_one_is_not() -> None:
    rng = np.random.default_rng(1)
    Z = rng.standard_normal((60, 10))
    mean = Z @ np.ones(10)
    weak = SparseLinearRegressionCV([10], cv=3).fit(Z, mean + 12.0 * rng.standard_normal(60))
    strong = SparseLinearRegressionCV([10], cv=3).fit(Z, mean + 0.1 * rng.standard_normal(60))
    assert (weak.ridge_, strong.ridge_) == (1.0, 1e-3)


def test_pure_noise_chooses_nothing() -> None:
    losses = np.array([[1.0, 0.95, 1.2], [1.0, 1.04, 1.1], [1.0, 0.98, 1.3]])
    cells = losses[:, :, np.newaxis]
    assert chosen_cell(cells, one_standard_error=False) == (1, 0)
    assert chosen_cell(cells, one_standard_error=False, null=True) == (0, 0)
    for folds, least in ((3, 2.920), (5, 2.132), (10, 1.833)):  # t of a table, at 5 %
        away = np.linspace(-1.0, 1.0, folds)
        away *= np.sqrt(folds) / away.std(ddof=1)  # a standard error of one
        for mean, place in ((0.999 * least, 0), (1.001 * least, 1)):
            pair = np.stack([np.zeros(folds), away - mean], axis=1)[:, :, np.newaxis]
            assert chosen_cell(pair, one_standard_error=False, null=True) == (place, 0)
    away = np.linspace(-1.0, 1.0, 40)  # what 40 observations in five folds say, in any order
    away *= np.sqrt(40) / away.std(ddof=1)  # a standard error of one, and t of 39 at 5 % is 1.685
    gain = np.stack([np.zeros(5), -np.ones(5)], axis=1)[:, :, np.newaxis]
    for mean, place in ((0.999 * 1.6849, 0), (1.001 * 1.6849, 1)):
        falls = np.random.default_rng(0).permutation(away + np.sqrt(2.0) * mean).reshape(5, 8)
        held = HeldOutLosses.of([(fall, np.ones(8)) for fall in falls], 40.0)
        assert chosen_cell(gain, one_standard_error=False, null=True, held=held) == (place, 0)
        # Whatever observations say, what predicts worse is not chosen.
        assert chosen_cell(-gain, one_standard_error=False, null=True, held=held) == (0, 0)
    chosen = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        model = SparseLinearRegressionCV([0, 1, 3], ridges=1e-2, cv=5)
        chosen.append(model.fit(rng.standard_normal((40, 8)), rng.standard_normal(40)).k_)
    assert chosen.count(0) >= 3


def test_a_smaller_ridge_is_taken_where_it_is_better_by_half_a_standard_error() -> None:
    away = np.linspace(-1.0, 1.0, 5)
    away *= np.sqrt(5) / away.std(ddof=1)  # a standard error of one
    for gain, cell in ((0.499, (1, 1)), (0.501, (2, 0))):
        losses = np.full((5, 3, 2), 9.0)
        losses[:, 1, 1] = 5.0
        losses[:, 2, 0] = 5.0 - gain + away
        assert chosen_cell(losses, one_standard_error=False) == cell
        assert chosen_cell(losses[:1] - away[0], one_standard_error=False) == (2, 0)


def test_it_is_said_where_the_test_leaves_a_lower_loss() -> None:
    losses = np.ones((5, 3, 1))
    losses[:, 2, 0] = [0.5, 0.6, 0.7, 0.6, 0.6]
    unsure = HeldOutLosses(np.full(5, 0.1), np.full(5, 10.0), 60.0)
    sure = HeldOutLosses(np.full(5, 0.1), np.full(5, 0.02), 60.0)
    for held, k in ((unsure, 0), (sure, 2)):
        assert chosen_cell(losses, one_standard_error=False, null=True, held=held) == (k, 0)
        said = refused_by_test(losses, [0, 1, 4], held=held)
        assert (said is None) == (k > 0)
    said = refused_by_test(losses, [0, 1, 4], held=unsure)
    assert said is not None
    assert "held-out loss at k = 4 is 40 % lower" in said
    assert "over the 60 held-out observations" in said
    losses[:, 2, 0] = [0.9, 1.1, 0.6, 1.3, 1.0]  # within an error of the folds
    assert refused_by_test(losses, [0, 1, 4], held=unsure) is None


def test_observations_are_compared_one_by_one_where_they_are_independent(monkeypatch: Any) -> None:
    seen: list[HeldOutLosses | None] = []

    def spy(*args: Any, held: HeldOutLosses | None = None, **options: Any) -> tuple[int, int]:
        seen.append(held)
        return chosen_cell(*args, held=held, **options)

    monkeypatch.setattr("sparsemodel.sklearn._chosen.chosen_cell", spy)
    monkeypatch.setattr("sparsemodel.selection.cross_validation.chosen_cell", spy)
    cv, weights = KFold(4), 1.0 + np.arange(X.shape[0]) % 3
    model = SparseLinearRegressionCV([0, 2], ridges=[0.1, 1.0], cv=cv, weights_are="frequency")
    model.fit(X, Y, sample_weight=weights)
    held = seen[-1]
    assert held is not None
    assert held.observations == weights.sum()
    for row, (train, test) in enumerate(cv.split(X)):
        none, two = (
            SparseLinearRegression(k, ridge=1.0, effort="high")
            .fit(X[train], Y[train], sample_weight=weights[train])
            .predict(X[test])
            for k in (0, 2)
        )
        falls = (Y[test] - none) * (two - none)
        for found, wanted in ((held.means, falls), (held.squares, np.square(falls))):
            assert found[row] == pytest.approx(np.average(wanted, weights=weights[test]), rel=1e-6)
    model.set_params(cv=GroupKFold(4)).fit(X, Y, groups=np.arange(X.shape[0]) // 3)
    assert seen[-1] is None  # samples of a group may depend on each other
    model.set_params(scoring="neg_max_error", cv=cv).fit(X, Y)
    assert seen[-1] is None  # nobody knows the scores of single samples
    w = sm.Variable(X.shape[1])
    copies: Any = partial(sm.squared_loss, weights=weights, weights_are="frequency")
    goal = sm.minimize(copies(X @ w, Y) + sm.ridge(w, 0.1))
    path = sm.Problem(goal, sm.card(w) <= 1).path([0, 2, 4])
    path.cross_validate(folds=4)
    again = seen[-1]
    assert again is not None
    assert again.observations == weights.sum()
    assert again.means.shape == again.squares.shape == (4,)
    path.cross_validate(folds=np.arange(X.shape[0]) % 4)
    assert seen[-1] is None


@pytest.mark.parametrize("ridges", ["much", [], [-1.0], [np.nan], [[1.0]]])
def test_bad_ridges(ridges: Any) -> None:
    with pytest.raises(ValueError, match="ridge"):
        SparseLinearRegressionCV([1], ridges=ridges).fit(X, Y)


# ---- units ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
def test_a_ridge_does_not_depend_on_units(intercept: bool) -> None:
    units = np.array([1.0, 1024.0, 2.0**-10, 4.0, 0.25, 1.0])
    one = SparseLinearRegression(k=2, ridge=0.1, fit_intercept=intercept).fit(X, Y)
    other = SparseLinearRegression(k=2, ridge=0.1, fit_intercept=intercept).fit(X * units, Y)
    np.testing.assert_allclose(other.coef_ * units, one.coef_, rtol=1e-8)
    plain = SparseLinearRegression(k=2, ridge=0.1, plain_ridge=True).fit(X, Y)
    moved = SparseLinearRegression(k=2, ridge=0.1, plain_ridge=True).fit(X / 100.0, Y)
    assert np.abs(moved.coef_ / 100.0 - plain.coef_).max() > 0.1


def test_units_of_a_target_do_not_matter_where_the_loss_is_no_square() -> None:
    sparse: list[Any] = [{"delta": 0.5}, {"delta": 0.5, "fit_intercept": False}]
    for number, other in enumerate([*sparse, {"quantile": 0.3}, {"fit_intercept": False}]):
        model = (SparseHuberRegression if number < 2 else SparseQuantileRegression)(k=2, ridge=0.5)
        one = clone(model.set_params(**other)).fit(X, Y)
        for unit in (2.0**-20, 2.0**20):
            if number < 2:
                model.set_params(delta=0.5 * unit)
            moved = clone(model).fit(X, unit * Y)
            np.testing.assert_allclose(moved.coef_, unit * one.coef_, rtol=1e-5)
        apart = clone(model).set_params(plain_ridge=True).fit(X, unit * Y)
        assert np.abs(apart.coef_ / unit - one.coef_).max() > 0.1 * np.abs(one.coef_).max()


@pytest.mark.parametrize("model", [SparseHuberRegression(k=2), SparseHuberRegressionCV([0, 2, 3])])
def test_what_is_ordinary_to_the_huber_loss_has_the_unit_of_the_target(model: Any) -> None:
    rough = Y.copy()
    rough[:3] += 1e3
    one = clone(model).fit(X, rough)
    assert one.delta_ == pytest.approx(1.35 * median_abs_deviation(rough, scale="normal"), rel=1e-4)
    for unit in (2.0**-14, 2.0**14):
        moved = clone(model).fit(X, unit * rough)
        np.testing.assert_allclose(moved.coef_, unit * one.coef_, rtol=1e-5)


def test_weights_are_repetitions_to_scales_of_targets() -> None:
    rng = np.random.default_rng(104)
    counts, y = rng.integers(0, 5, 12), rng.standard_normal(12)
    copies = np.repeat(y, counts)
    scales = [
        target_scale(HuberLoss(0.5), target, weights / weights.sum(), centred=True)
        for target, weights in ((y, counts), (copies, np.ones(copies.size)))
    ]
    assert scales[0] == pytest.approx(scales[1], rel=1e-9)  # the median is any of an interval
    assert spread(y, counts) == pytest.approx(spread(copies, np.ones(copies.size)), rel=1e-9)
    assert spread(np.array([0.0, 0.0, 0.0, 4.0]), np.ones(4)) == pytest.approx(1.2533)
    assert spread(np.ones(3), np.ones(3)) == 1.0


def test_rates_are_shrunk_as_counts_are() -> None:
    counts = np.random.default_rng(0).poisson(np.exp(Y / 2.0)).astype(np.float64)
    model = SparsePoissonRegression(k=2, ridge=0.5)
    one = clone(model).fit(X, counts)
    for exposure in (2.0**-12, 2.0**12):
        np.testing.assert_allclose(
            clone(model).fit(X, counts / exposure).coef_, one.coef_, rtol=1e-5
        )
    gamma = SparseGeneralizedRegression(k=2, ridge=0.5, loss="gamma")
    rates = [clone(gamma).fit(X, unit * (counts + 0.5)).coef_ for unit in (1.0, 2.0**12)]
    np.testing.assert_allclose(*rates, rtol=1e-5)


def test_an_end_of_given_candidates_is_said() -> None:
    for ks, end in (([0, 1], "k = 1, the largest"), ([3, 4, 6], "k = 3, the smallest")):
        with pytest.warns(UserWarning, match=end):
            SparseLinearRegressionCV(ks, ridges=1e-3, cv=3, one_standard_error=True).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SparseLinearRegressionCV([0, 1, 2, 4], ridges=1e-3, cv=3, one_standard_error=True).fit(X, Y)


# ---- folds ---------------------------------------------------------------------------------------


def test_folds_are_shuffled_by_the_random_state() -> None:
    order = np.argsort(Y)  # unshuffled, every fold would be of one kind
    one = SparseLinearRegressionCV(**FEW, random_state=4).fit(X[order], Y[order])
    splits = KFold(3, shuffle=True, random_state=int(np.random.RandomState(4).randint(2**31 - 1)))
    same = SparseLinearRegressionCV(**{**FEW, "cv": splits}).fit(X[order], Y[order])
    np.testing.assert_allclose(one.scores_, same.scores_, rtol=1e-9)
    other = SparseLinearRegressionCV(**FEW, random_state=5).fit(X[order], Y[order])
    assert not np.allclose(one.scores_, other.scores_)


def test_samples_of_a_group_stay_together() -> None:
    groups = np.arange(N) // 10
    few = {**FEW, "cv": GroupKFold(3)}
    model = SparseLinearRegressionCV(**few).fit(X, Y, groups=groups)
    given = list(GroupKFold(3).split(X, Y, groups))
    same = SparseLinearRegressionCV(**{**FEW, "cv": given}).fit(X, Y)
    np.testing.assert_array_equal(model.scores_, same.scores_)
    with pytest.raises((TypeError, ValueError), match="shade"):
        SparseLinearRegressionCV(**few).fit(X, Y, shade=groups)


def test_metadata_are_routed() -> None:
    groups, weights = np.arange(N) // 10, RNG.integers(1, 3, N).astype(float)
    scorer = make_scorer(mean_squared_error, greater_is_better=False)
    with sklearn.config_context(enable_metadata_routing=True):
        weighed = scorer.set_score_request(sample_weight=True)
        few = {**FEW, "cv": GroupKFold(3)}
        model = SparseLinearRegressionCV(**few, scoring=weighed).set_fit_request(sample_weight=True)
        model.fit(X, Y, sample_weight=weights, groups=groups)
    loss = SparseLinearRegressionCV(**few).fit(X, Y, sample_weight=weights, groups=groups)
    np.testing.assert_allclose(model.scores_, 2.0 * loss.scores_, rtol=1e-9)


# ---- scorers and weights -------------------------------------------------------------------------


def _worst(model: Any, Z: Any, y: Any) -> float:
    return -float(np.abs(y - model.predict(Z)).max())


@pytest.mark.filterwarnings("ignore:k = 0 is chosen although")
@pytest.mark.parametrize("weights", [None, np.arange(N) % 3 + 1.0])
def test_scorers_that_know_no_weights(weights: Any) -> None:
    named = SparseLinearRegressionCV(**FEW, scoring="neg_max_error")
    called = SparseLinearRegressionCV(**FEW, scoring=_worst)
    named.fit(X, Y, sample_weight=weights)
    called.fit(X, Y, sample_weight=weights)
    np.testing.assert_array_equal(named.scores_, called.scores_)


def test_class_weights_are_of_the_training_part_and_not_in_the_score() -> None:
    y = (Y > 0.8).astype(int)
    model = SparseLogisticRegressionCV([1], ridges=0.1, cv=3, class_weight="balanced").fit(X, y)
    seeded = StratifiedKFold(3, shuffle=True, random_state=0)
    for row, (train, test) in enumerate(seeded.split(X, y)):
        alone = SparseLogisticRegressionCV([1], ridges=0.1, cv=2)
        weights = compute_sample_weight("balanced", y[train])
        alone.fit(X[train], y[train], sample_weight=weights)
        chosen = alone.predict_proba(X[test])[np.arange(test.size), y[test]]
        assert model.scores_[row, 0] == pytest.approx(np.log(chosen).mean(), rel=1e-6)


def test_rare_classes_that_are_weighed_up_are_chosen_for_by_their_order() -> None:
    rng = np.random.default_rng(1)
    wide = rng.standard_normal((300, 12))
    chance = 1.0 / (1.0 + np.exp(4.0 - 2.0 * wide[:, 3] + 2.0 * wide[:, 8]))
    y = (rng.random(300) < chance).astype(int)
    model = SparseLogisticRegressionCV(
        [0, 1, 2, 4, 8, 12], ridges=1e-2, class_weight="balanced", scoring="roc_auc"
    )
    assert model.fit(wide, y).k_ <= 4
    assert set(model.get_support(indices=True)) >= {3, 8}


def test_the_model_is_found_as_those_in_the_folds() -> None:
    everything = [(np.arange(N), np.arange(N))]
    model = SparseLinearRegressionCV([1, 3, 5], ridges=0.1, cv=everything).fit(X, Y)
    residuals = Y - model.predict(X)
    assert -model.best_score_ == pytest.approx(np.mean(residuals**2) / 2.0, rel=1e-12)


def test_graphs_are_scored_in_parallel_alike() -> None:
    one = SparsePrecisionCV([0, 2], cv=2).fit(X)
    with parallel_config(backend="threading"):
        two = SparsePrecisionCV([0, 2], cv=2, n_jobs=2).fit(X)
    np.testing.assert_array_equal(one.scores_, two.scores_)


def test_docstrings_are_completed_however_they_are_indented() -> None:
    """From 3.13 on Python takes the indentation out when it compiles."""
    flat = "Fit.\n\nParameters\n----------\nown : int\n    More.\n\nExamples\n--------\n>>> 1\n1"
    texts = []
    for text in (flat, flat.replace("\n", "\n    ")):
        given = estimator("u_i")(type("Given", (), {"__doc__": text}))
        chosen = cross_validated(given)(type("GivenCV", (), {"__doc__": "Fit too.\n\nExamples\n"}))
        texts.append((given.__doc__, chosen.__doc__))
    assert texts[0] == texts[1]
    assert "\nk : int" in (texts[0][0] or "")
    assert "\ncoef_ : ndarray" in (texts[0][0] or "")
    assert "\nown : int" in (texts[0][0] or "")
    assert "\nks : array-like" in (texts[0][1] or "")
    assert "\nown : int" in (texts[0][1] or "")
    assert "\nk : int" not in (texts[0][1] or "")


def test_a_validation_set_is_a_predefined_split() -> None:
    rng = np.random.default_rng(2)
    Z = rng.standard_normal((60, 8))
    y = Z[:, 3] - Z[:, 7] + 0.3 * rng.standard_normal(60)
    fold = np.where(np.arange(60) < 40, -1, 0)  # the last twenty are for validation
    model = SparseLinearRegressionCV([0, 1, 2, 5], cv=PredefinedSplit(fold)).fit(Z, y)
    assert model.scores_.shape == (1, 4)
    one = SparseLinearRegression(model.k_, ridge=model.ridge_).fit(Z[:40], y[:40])
    error = 0.5 * np.mean((y[40:] - one.predict(Z[40:])) ** 2)
    assert model.best_score_ == pytest.approx(-error)
    assert model.k_ in (2, 5)


@pytest.mark.filterwarnings("ignore:k = 0 is chosen although")
def test_a_rare_class_that_is_weighed_up_counts_in_the_test_of_no_features() -> None:
    """A model of noise predicts the commoner class better: 11 of 60 draws had features, now 2."""
    found = []
    for seed in (14, 16):
        rng = np.random.default_rng(seed)
        noise, y = rng.standard_normal((60, 8)), (rng.random(60) < 0.2).astype(int)
        model = SparseLogisticRegressionCV(range(3), ridges=[1.0], class_weight="balanced")
        found.append(model.fit(noise, y).k_)
    assert found == [0, 0]
