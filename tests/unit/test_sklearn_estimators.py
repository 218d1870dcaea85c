"""Estimators of other targets: outliers, quantiles, amounts, exposures, several, times."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import GammaRegressor, QuantileRegressor, Ridge
from sklearn.metrics import d2_tweedie_score

import sparsemodel as sm
from sparsemodel.losses import GammaLoss
from sparsemodel.sklearn import (
    SparseCoxRegression,
    SparseCoxRegressionCV,
    SparseGammaRegression,
    SparseGeneralizedRegression,
    SparseGeneralizedRegressionCV,
    SparseHuberRegression,
    SparseLinearRegression,
    SparseLinearRegressionCV,
    SparseLogisticRegression,
    SparsePoissonRegression,
    SparsePoissonRegressionCV,
    SparsePrecision,
    SparseQuantileRegression,
)
from sparsemodel.sklearn.survival import concordance

# Few candidates are quick, and the truth is often the last of them.
pytestmark = pytest.mark.filterwarnings("ignore:cross-validation chooses:UserWarning")

N, P = 90, 6
RNG = np.random.default_rng(8)
X = RNG.standard_normal((N, P))
U = X[:, 1] - X[:, 4]


def test_with_all_features_it_is_gamma_regression() -> None:
    y = RNG.gamma(2.0, np.exp(U) / 2.0)
    ours = SparseGammaRegression(k=P, ridge=0.1, plain_ridge=True).fit(X, y)
    theirs = GammaRegressor(alpha=0.1, tol=1e-10, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-6)
    with pytest.raises(ValueError, match="needs positive numbers"):
        ours.fit(X, y - y.max())


def test_with_all_features_it_is_quantile_regression() -> None:
    y = U + 0.5 * RNG.standard_normal(N)
    ours = SparseQuantileRegression(k=P, ridge=1e-6, quantile=0.7).fit(X, y)
    theirs = QuantileRegressor(quantile=0.7, alpha=0.0).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    assert np.mean(y <= ours.predict(X)) == pytest.approx(0.7, abs=0.05)
    assert 0.0 < ours.score(X, y) < 1.0


@pytest.mark.parametrize(
    "model", [SparseLinearRegression(2), SparseLinearRegressionCV(), SparseCoxRegression(2)]
)
def test_a_missing_target_has_the_error_of_scikit_learn(model: BaseEstimator) -> None:
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        model.fit(X)


def test_outliers_do_not_decide() -> None:
    y = U + 0.1 * RNG.standard_normal(N)
    y[:6] += 100.0
    model = SparseHuberRegression(k=2, delta=0.5).fit(X, y)
    np.testing.assert_allclose(model.coef_[[1, 4]], [1.0, -1.0], atol=0.15)
    assert clone(model).get_params()["delta"] == 0.5
    w, c = sm.Variable(P), sm.Variable()
    goal = sm.huber_loss(X @ w + c, y, delta=0.5) + sm.ridge(w, 1e-3)
    plain = clone(model).set_params(plain_ridge=True).fit(X, y)
    value = sm.Problem(sm.minimize(goal), sm.card(w) <= 2).solve().value
    assert plain.objective_ == pytest.approx(value, rel=1e-9)


def test_exposures_are_weights_of_rates() -> None:
    exposure = RNG.uniform(0.5, 4.0, N)
    counts = RNG.poisson(exposure * np.exp(U / 2)).astype(float)
    model = SparsePoissonRegression(k=2, ridge=0.0)
    model.fit(X, counts / exposure, sample_weight=exposure)
    w, c = sm.Variable(P), sm.Variable()
    goal = sm.minimize(sm.poisson_loss(X @ w + c + np.log(exposure), counts))
    sm.Problem(goal, sm.card(w) <= 2).solve()
    np.testing.assert_allclose(model.coef_, w.value, atol=1e-6)


def test_several_targets_share_their_features() -> None:
    Y = np.column_stack([U, X[:, 1] + 0.1 * X[:, 2], -U]) + 0.01 * RNG.standard_normal((N, 3))
    model = SparseLinearRegression(k=2).fit(X, Y)
    assert model.get_support(indices=True).tolist() == [1, 4]
    assert model.coef_.shape == (3, P)
    assert model.predict(X).shape == (N, 3)
    assert model.score(X, Y) > 0.9
    ours = SparseLinearRegression(k=P, ridge=0.1, plain_ridge=True).fit(X, Y)
    theirs = Ridge(alpha=0.1 * N).fit(X, Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-9)


def test_times_and_events() -> None:
    time = RNG.exponential(np.exp(-1.5 * U))
    y = np.column_stack([np.minimum(time, 2.0), time < 2.0])
    model = SparseCoxRegression(k=2, ridge=1e-2, plain_ridge=True).fit(X, y)
    assert model.get_support(indices=True).tolist() == [1, 4]
    assert model.coef_[1] > 0.0 > model.coef_[4]
    assert model.intercept_ == 0.0
    assert model.score(X, y) > 0.8
    w = sm.Variable(P)
    weights = np.full(N, 1.0 / N)
    goal = sm.cox_loss(X @ w, y, weights=weights, reduction="sum") + sm.ridge(w, 1e-2)
    value = sm.Problem(sm.minimize(goal), sm.card(w) <= 2).solve().value
    assert model.objective_ == pytest.approx(value, rel=1e-9)
    chosen = SparseCoxRegressionCV([0, 1, 2], ridges=1e-2, cv=3).fit(X, y)
    assert chosen.k_ == 2
    # Ten events, two in each of five folds: shuffled without them some fold has none.
    rare = np.column_stack([time, np.arange(N) < 10])
    dealt = chosen._dealt_by(chosen._read(X, rare, None))
    folds = SparseCoxRegressionCV(random_state=3)._splitter().split(X, dealt)
    assert [int(rare[test, 1].sum()) for _, test in folds] == [2] * 5
    fields = np.array(list(zip(y[:, 1] == 1.0, y[:, 0], strict=True)), "?,f8")
    np.testing.assert_array_equal(clone(model).fit(X, fields).coef_, model.coef_)
    assert model.score(X, fields) == model.score(X, y)
    with pytest.raises(ValueError, match="two fields, truth values for the events"):
        model.fit(X, np.array([(1.0, 2.0)] * N, "f8,f8"))
    with pytest.raises(sm.DataError, match="two columns"):
        model.fit(X, time)


def test_times_with_ties_in_strata() -> None:
    """A stratum whose events all come later says as much as it would by itself."""
    time = np.ceil(4.0 * RNG.exponential(np.exp(-1.5 * U)))
    late = np.arange(N) % 2
    y = np.column_stack([time + 1000.0 * late, np.ones(N), late])
    same = np.column_stack([time, np.ones(N), late])
    model = SparseCoxRegression(k=2, ridge=1e-2, plain_ridge=True, ties="efron").fit(X, y)
    np.testing.assert_allclose(model.coef_, clone(model).fit(X, same).coef_, atol=1e-9)
    assert model.get_support(indices=True).tolist() == [1, 4]
    halves = [concordance(model.predict(X)[late == i], y[late == i, :2]) for i in (0, 1)]
    assert min(halves) <= model.score(X, y) <= max(halves)
    with pytest.raises(sm.DataError, match="ties must be"):
        SparseCoxRegression(k=2, ties="exact").fit(X, y)


def test_any_loss_of_numbers() -> None:
    """The same fits and scores as the estimators of one loss; predictions are means."""
    y = RNG.poisson(np.exp(0.5 * U)) + 1.0
    pairs = (
        ("poisson", SparsePoissonRegression, 1),
        (GammaLoss(), SparseGammaRegression, 2),
    )
    for loss, kind, power in pairs:
        one = SparseGeneralizedRegression(k=2, loss=loss).fit(X, y)
        other = kind(k=2).fit(X, y)
        np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-9)
        np.testing.assert_allclose(one.predict(X), other.predict(X))
        weights = np.arange(N) % 3 + 0.5
        expected = d2_tweedie_score(y, one.predict(X), sample_weight=weights, power=power)
        assert one.score(X, y, weights) == pytest.approx(expected, rel=1e-9)
        assert other.score(X, y, weights) == pytest.approx(expected, rel=1e-9)
    assert np.isnan(other.score(X, np.ones(N)))  # no prediction is worse than this constant's
    for loss in ("negative-binomial", "tweedie", "expectile"):
        model = SparseGeneralizedRegression(k=2, loss=loss).fit(X, y)
        assert model.get_support(indices=True).tolist() == [1, 4]
        assert 0.0 < model.score(X, y) < 1.0
        constant = SparseGeneralizedRegression(k=0, loss=loss).fit(X, y)
        assert constant.score(X, y) == pytest.approx(0.0, abs=1e-9)
    chosen = SparseGeneralizedRegressionCV([0, 2], loss="tweedie", ridges=1e-2, cv=3)
    assert chosen.fit(X, np.exp(U)).k_ == 2
    for wrong in ("logistic", "cox", 3):
        with pytest.raises(ValueError, match="loss must be the name of a loss of numbers"):
            SparseGeneralizedRegression(loss=wrong).fit(X, y)


@pytest.mark.parametrize("several", [False, True])
def test_bounds_and_features_that_are_always_in(several: bool) -> None:
    y = U + 0.1 * RNG.standard_normal(N)
    y = np.column_stack([y, 2.0 * y]) if several else y
    upper = np.where(np.arange(P) == 1, 0.2, np.inf)
    model = SparseLinearRegression(k=1, always=[0, P - 1], bounds=(-0.3, upper)).fit(X, y)
    coef = np.atleast_2d(model.coef_)
    assert model.get_support(indices=True).tolist() in ([0, 1, P - 1], [0, 4, P - 1])
    assert coef.min() >= -0.3
    assert coef[:, 1].max() <= 0.2
    mask = np.isin(np.arange(P), [0, P - 1])
    again = clone(model).set_params(always=mask).fit(X, y)
    np.testing.assert_allclose(again.coef_, model.coef_)
    labels = np.arange(P) // 2
    grouped = SparseLinearRegression(k=1, always=[4], groups=labels, ridge=1e-6).fit(X, y)
    assert grouped.get_support(indices=True).tolist() == [0, 1, 4]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"always": ["z"]}, "always names 'z'.*has no names"),
        ({"always": [P]}, "features 0 to"),
        ({"always": range(P)}, "nothing is left"),
        ({"always": [True]}, "truth values"),
        ({"bounds": 3.0}, "a pair"),
        ({"bounds": (0.1, None)}, "of feature 0 have not"),
        ({"groups": [1, 2], "always": [0]}, f"each of the {P} entries"),
    ],
)
def test_constraints_that_do_not_fit_say_so(given: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        SparseLinearRegression(k=1, **given).fit(X, U)


def test_delayed_entry() -> None:
    """Those with long times are seen only late: only comparisons while both are there count."""
    time = 1.0 + RNG.exponential(np.exp(-1.5 * U))
    start = np.where(np.arange(N) % 2, 0.5, 0.9) * time * RNG.uniform(size=N)
    event = np.arange(N) % 5 > 0
    y = np.column_stack([start, time, event])
    model = SparseCoxRegression(k=2, ridge=1e-2, plain_ridge=True).fit(X, y)
    w = sm.Variable(P)
    weights = np.full(N, 1.0 / N)
    goal = sm.cox_loss(X @ w, y, weights=weights, reduction="sum") + sm.ridge(w, 1e-2)
    value = sm.Problem(sm.minimize(goal), sm.card(w) <= 2).solve().value
    assert model.objective_ == pytest.approx(value, rel=1e-9)
    np.testing.assert_array_equal(model.get_support(indices=True), np.flatnonzero(w.value))
    fields = np.array(list(zip(event, start, time, strict=True)), "?,f8,f8")
    np.testing.assert_array_equal(clone(model).fit(X, fields).coef_, model.coef_)
    risk, right, total = model.predict(X), 0.0, 0.0
    for i in np.flatnonzero(event):
        for j in range(N):
            if start[j] < time[i] < time[j]:
                total += 1.0
                right += float(risk[i] > risk[j])
    assert model.score(X, y) == pytest.approx(right / total)
    assert SparseCoxRegressionCV([0, 1, 2], ridges=1e-2).fit(X, y).k_ == 2
    with pytest.raises(sm.DataError, match="row 1 starts at 9 and stops at"):
        model.fit(
            X, np.column_stack([np.where(np.arange(N) == 1, 9.0, start), time.clip(0, 8), event])
        )


def test_concordance_counts_pairs() -> None:
    rng = np.random.default_rng(0)
    risk = rng.integers(0, 4, 25).astype(float)
    y = np.column_stack([rng.integers(1, 9, 25), rng.integers(0, 2, 25)]).astype(float)
    c = rng.uniform(size=25)
    right = total = 0.0
    for i in range(25):
        for j in range(25):
            before = y[i, 0] < y[j, 0] or (y[i, 0] == y[j, 0] and not y[j, 1])
            if y[i, 1] and before:
                total += c[i] * c[j]
                right += c[i] * c[j] * (1.0 if risk[i] > risk[j] else 0.5 * (risk[i] == risk[j]))
    assert concordance(risk, y, c) == pytest.approx(right / total)
    assert concordance(risk, np.column_stack([np.ones(25), np.zeros(25)])) == 0.5


def test_targets_of_several_columns_are_refused_with_what_takes_them() -> None:
    targets = np.column_stack([U > 0.0, U <= 0.0]).astype(int)
    with pytest.raises(ValueError, match=r"MultiOutputRegressor\(SparseHuberRegression\(...\)\)"):
        SparseHuberRegression().fit(X, targets)
    with pytest.raises(ValueError, match=r"np.argmax\(y, axis=1\)"):
        SparseLogisticRegression().fit(X, targets)


def test_a_sum_over_columns_is_the_huber_loss_of_several_targets() -> None:
    W = sm.Variable((P, 2), name="W")
    B = np.zeros((P, 2))
    B[[1, 4]] = [[1.0, 2.0], [-1.0, 1.0]]
    Y = X @ B + 0.1 * np.random.default_rng(3).standard_normal((N, 2))
    Y[:3, 0] += 1000.0
    with pytest.raises(sm.DataError, match=r"sm.huber_loss\(A @ W\[:, j\], Y\[:, j\]\)"):
        sm.huber_loss(X @ W, Y)
    with pytest.raises(sm.DataError, match=r"np.argmax\(Y, axis=1\)"):
        sm.multinomial_loss(X @ W, Y)
    loss = sum(sm.huber_loss(X @ W[:, j], Y[:, j], delta=0.5) for j in range(2))
    problem = sm.Problem(sm.minimize(loss + sm.ridge(W, 1e-3)), sm.card(W, axis=1) <= 2)
    problem.solve()
    np.testing.assert_allclose(W.value, B, atol=0.1)


@pytest.mark.parametrize("kind", [SparsePoissonRegression, SparseQuantileRegression])
def test_scores_refuse_weights_that_are_none(kind: type):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 4)), rng.poisson(2.0, 30)
    model = kind(k=2).fit(X, y)
    for weights, words in (
        (np.zeros(30), "at least one non-zero"),
        (-np.ones(30), "Negative values"),
        (np.ones(29), "expected \\(30,\\)"),
    ):
        with pytest.raises(ValueError, match=words):
            model.score(X, y, sample_weight=weights)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.score(X, y[:29])


@pytest.mark.filterwarnings("ignore:The least populated class:UserWarning")
def test_one_event_is_too_few_to_cross_validate_with():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 4)), np.column_stack([rng.exponential(size=40), np.zeros(40)])
    y[7, 1] = 1.0
    SparseCoxRegression(k=1).fit(X, y)
    with pytest.raises(ValueError, match=r"training part of a fold.*no more folds than there are"):
        SparseCoxRegressionCV(range(3), cv=5).fit(X, y)
    with pytest.raises(ValueError, match="positive sample_weight has an event; SparseCox"):
        SparseCoxRegression(k=1).fit(X, y, sample_weight=1.0 - y[:, 1])
    model = SparseCoxRegression(k=1).fit(X, y)
    with pytest.raises(ValueError, match="at least one non-zero"):
        model.score(X, y, sample_weight=np.zeros(40))


def test_labels_of_several_types_are_named():
    X = np.random.default_rng(0).standard_normal((20, 3))
    labels = np.array(["a", 1] * 10, dtype=object)
    with pytest.raises(TypeError, match=r"several types, int and str.*y\.astype\(str\)"):
        SparseLogisticRegression(k=1).fit(X, labels)


@pytest.mark.parametrize(
    ("model", "given", "words"),
    [
        (SparsePoissonRegression(k=2), "exposure", "y / exposure, sample_weight=exposure"),
        (SparsePoissonRegressionCV([2]), "exposure", "y / exposure, sample_weight=exposure"),
        (SparsePoissonRegression(k=2), "offset", "A @ w . c . offset"),
        (SparseLinearRegressionCV([2]), "weights", "sample_weight="),
        (SparseLinearRegression(k=2), "weight", "sample_weight="),
        (SparseLinearRegression(k=2), "eval_set", "it has X, y, sample_weight"),
        (SparseCoxRegression(k=2), "event", "columns of y"),
        (SparsePrecision(edges=2), "sample_weight", "it has X, y"),
    ],
)
def test_data_that_fit_does_not_take_are_refused_with_what_to_write(
    model: BaseEstimator, given: str, words: str
) -> None:
    with pytest.raises(sm.DataTypeError, match=f"{type(model).__name__}.fit has no .*{words}"):
        model.fit(X, U, **{given: np.ones(N)})


def test_a_model_of_times_has_no_intercept_to_ask_for() -> None:
    with pytest.raises(sm.DataTypeError, match="baseline hazard"):
        SparseCoxRegression(fit_intercept=True)


def test_graphs_are_asked_for_edges() -> None:
    with pytest.raises(sm.DataTypeError, match="number of edges is `edges=`"):
        SparsePrecision(k=3)
