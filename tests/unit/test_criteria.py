"""Information criteria: who counts, how far they may go, and when a choice is an end."""

from __future__ import annotations

import warnings
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.selection.choice import at_the_end
from sparsemodel.selection.criteria import carried


def path_of(X: Any, y: Any, ks: Any, *, loss: Any = sm.squared_loss, **options: Any) -> sm.Path:
    w = sm.Variable(X.shape[1], name="w")
    goal = sm.minimize(loss(X @ w, y, **options) + sm.ridge(w, 1e-9))
    return sm.Problem(goal, sm.card(w) <= 1).path(ks)


def draw(seed: int, n: int, p: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, 2.0 * X[:, 0] - 2.0 * X[:, 1] + rng.standard_normal(n)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
def test_ebic_is_the_best_of_all_supports(gamma: float) -> None:
    n, p = 60, 7
    X, y = draw(1, n, p)
    best = np.inf, ()
    for size in range(p + 1):
        for chosen in combinations(range(p), size):
            fit = X[:, chosen] @ np.linalg.lstsq(X[:, chosen], y, rcond=None)[0] if size else 0.0
            value = n * np.log(np.mean((y - fit) ** 2) / 2.0) + size * np.log(n)
            best = min(best, (value + 2.0 * gamma * np.log(comb(p, size)), chosen))
    found = path_of(X, y, range(p + 1)).select("ebic", gamma=gamma)
    assert found.scores.min() == pytest.approx(best[0], rel=1e-6)
    assert tuple(found.support) == best[1]
    if gamma == 0.0:
        again = path_of(X, y, range(p + 1)).select("bic")
        np.testing.assert_allclose(found.scores, again.scores)


def test_each_criterion_is_its_formula() -> None:
    X, y = draw(2, 50, 20)
    path = path_of(X, y, range(4))
    n, p, k = 50, 20, np.arange(4)
    log = n * np.log(path.objective)
    parameters = k + 1  # with the variance
    wanted = {
        "aic": log + 2 * k,
        "aicc": log + 2 * k + 2 * parameters * (parameters + 1) / (n - parameters - 1),
        "bic": log + k * np.log(n),
        "mbic": log + k * np.log(n) + 2 * k * np.log(p / 4 - 1),
        "gic": log + k * np.log(np.log(n)) * np.log(p),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for name, scores in wanted.items():
            np.testing.assert_allclose(path.select(name).scores, scores, rtol=1e-6)


def test_screened_columns_are_counted() -> None:
    """Of 500 columns those that correlate most were kept: the choice was among 500."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((60, 500)), rng.standard_normal(60)
    kept = np.argsort(-np.abs(X.T @ y))[:12]
    path = path_of(X[:, kept], y, range(8))
    w = sm.Variable(500)
    some = np.ones(500, dtype=bool)
    some[kept] = False
    goal = sm.minimize(sm.squared_loss(X @ w, y) + sm.ridge(w, 1e-9))
    whole = sm.Problem(goal, w[some] == 0, sm.card(w) <= 1).path(range(3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert path.select("ebic").k > 0
        assert path.select("ebic", p=500).k == 0
        for name in ("ebic", "mbic", "gic"):
            ours = path.select(name, p=500).scores[:3]
            np.testing.assert_allclose(ours, whole.select(name).scores, rtol=1e-6)
    for wrong in (3, 500.5, True, "500"):
        with pytest.raises(sm.ModelError, match="p must be the number of columns before"):
            path.select("ebic", p=wrong)  # type: ignore[arg-type]


def test_a_criterion_of_ones_own() -> None:
    X, y = draw(2, 50, 6)
    path = path_of(X, y, range(4))

    def hannan_quinn(m: Any) -> float:
        return float(m.minus_twice_log + 2.0 * m.d * np.log(np.log(m.n)))

    found = path.select(hannan_quinn)
    assert found.chosen_by == "hannan_quinn"
    bic = path.select(lambda m: m.minus_twice_log + m.d * np.log(m.n))
    np.testing.assert_allclose(bic.scores, path.select("bic").scores)
    with pytest.raises(sm.ModelError, match="There is no criterion 'hq'; known: aic, aicc"):
        path.select("hq")
    with pytest.raises(sm.SparseModelError, match="The value of criterion at k = 0"):
        path.select(lambda _: "small")  # type: ignore[arg-type, return-value]


def test_the_ordinal_loss_has_no_criteria() -> None:
    """It took noise for features in 8 of 8 draws: its losses are of the same observations."""
    X, u = draw(7, 60, 4)
    w = sm.Variable(4, name="w")
    goal = sm.minimize(sm.ordinal_loss(X @ w, np.digitize(u, [-1.0, 1.0])) + sm.ridge(w, 0.01))
    path = sm.Problem(goal, sm.card(w) <= 1).path(range(3))
    with pytest.raises(sm.ModelError, match=r"not a likelihood of the classes.*cross_validate"):
        path.select("bic")


def test_gamma_is_a_number_of_ebic() -> None:
    path = path_of(*draw(1, 30, 4), range(3))
    for wrong in (-0.5, np.nan, "much", True):
        with pytest.raises(sm.ModelError, match="gamma must be a number from 0"):
            path.select("ebic", gamma=wrong)
    with pytest.raises(sm.ModelError, match="gamma belongs to ebic"):
        path.select("bic", gamma=0.5)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_ebic_does_not_run_to_the_end_where_columns_outnumber_observations(seed: int) -> None:
    path = path_of(*draw(seed, 30, 200), range(16))
    found = path.select("ebic")
    assert np.argmin(found.scores) == 15  # what the formula alone would take
    assert found.k == 2
    assert list(found.support) == [0, 1]


def test_what_observations_carry_by_hand() -> None:
    # 30 / (5.2983 * 1.2241) = 4.63, 60 / (5.7038 * 1.4098) = 7.46, 200 / (6.2146 * 1.6674) = 19.3
    assert (carried(30, 200), carried(60, 300), carried(200, 500)) == (4, 7, 19)
    assert carried(1e6, 10) == 10
    assert carried(2, 10**6) == 1


def test_without_noise_the_smallest_perfect_model_is_chosen() -> None:
    X, _ = draw(3, 40, 12)
    assert path_of(X, 2.0 * X[:, 0] - X[:, 1], range(7)).select("bic").k == 2


@pytest.mark.parametrize("criterion", ["aic", "bic", "ebic", "gic"])
@pytest.mark.parametrize("kind", ["squared", "gamma", "logistic", "cox"])
def test_a_weight_of_three_is_three_copies(kind: str, criterion: str) -> None:
    X, u = draw(4, 30, 4)
    y: Any = {
        "squared": u,
        "gamma": np.exp(u / 2),
        "logistic": (u > 0.5).astype(float),
        "cox": np.column_stack([np.exp(u), np.arange(30) % 3 > 0]),
    }[kind]
    loss = {"squared": sm.squared_loss, "gamma": sm.gamma_loss, "logistic": sm.logistic_loss}
    times = np.arange(30) % 4
    kept = np.repeat(np.arange(30), times)
    options: dict[str, Any] = {"loss": loss.get(kind, sm.cox_loss)}
    if kind == "logistic":  # without noise its coefficients would grow without end
        y[::5] = 1.0 - y[::5]
    options_of_weights = {"weights": times.astype(float), "weights_are": "frequency"}
    weighted = path_of(X, y, [0, 1, 2], **options_of_weights, **options)
    repeated = path_of(X[kept], y[kept], [0, 1, 2], **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        ours, theirs = weighted.select(criterion).scores, repeated.select(criterion).scores
    np.testing.assert_allclose(np.diff(ours), np.diff(theirs), rtol=1e-5)


@pytest.mark.parametrize("ridges", [None, [1e-9, 1e-8]])
def test_of_classes_one_less_is_estimated(ridges: Any) -> None:
    """Three classes counted three coefficients for a feature, though two say everything."""
    X, u = draw(7, 60, 4)
    y = np.digitize(u + np.random.default_rng(7).logistic(size=60), [-1.0, 1.0])
    w, c = sm.Variable((4, 3), name="w"), sm.Variable(3, name="c")
    loss = sm.multinomial_loss(X @ w + c, y)
    goal = sm.minimize(loss + sm.ridge(w, 1.0) if ridges else loss)
    path = sm.Problem(goal, sm.card(w, axis=1) <= 1).path(range(5), ridges=ridges)
    scores = path.select("bic").scores.reshape(5, -1)[:, 0]
    for k, score in enumerate(scores):
        fit = path.at(k, None if ridges is None else ridges[0])
        z = X @ fit.values["w"] + fit.values["c"]
        log = float((z[np.arange(60), y] - np.log(np.exp(z).sum(axis=1))).sum())
        assert score == pytest.approx(-2.0 * log + 2 * (k + 1) * np.log(60), abs=1e-4)


def test_an_end_of_the_path_is_said() -> None:
    X, y = draw(6, 40, 30)
    with pytest.warns(UserWarning, match=r"chooses k = 1, the largest of the path"):
        path_of(X, y, [0, 1]).select("bic")
    with pytest.warns(UserWarning, match=r"chooses k = 3, the smallest of the path"):
        path_of(X, y, [3, 4, 5]).select("ebic", gamma=3.0)
    with pytest.warns(UserWarning, match=r"cross-validation chooses k = 1, the largest"):
        path_of(X, y, [0, 1]).cross_validate(folds=5)
    rng = np.random.default_rng(0)
    wide = rng.standard_normal((20, 60))
    with pytest.warns(UserWarning, match=r"carry at most 4 of 60"):
        assert path_of(wide, wide[:, :9].sum(axis=1), range(8)).select("aic").k == 4


def test_what_cannot_be_passed_is_no_end() -> None:
    assert at_the_end([0, 1, 2], 0, by="bic", units=9) is None
    assert at_the_end([0, 1, 2], 1, by="bic", units=9) is None
    assert at_the_end([0, 1, 2], 2, by="bic", units=2) is None
    assert at_the_end([2], 0, by="bic", units=9) is None
