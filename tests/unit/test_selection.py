"""The choice of k, against formulas and loops written out by hand."""

from __future__ import annotations

import itertools
import time
from math import comb

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize_scalar

import sparsemodel as sm
from sparsemodel.losses import CoxLoss, GammaLoss
from sparsemodel.selection.criteria import Criterion
from sparsemodel.selection.path import PathPoint
from sparsemodel.selection.regressions import regression_criterion_values

N, P = 60, 10
RNG = np.random.default_rng(21)
A = RNG.standard_normal((N, P)) * np.geomspace(0.1, 10.0, P) + 3.0
B = A[:, [1, 4, 8]] @ np.array([2.0, 1.0, -0.3]) + 0.5 * RNG.standard_normal(N)
Y = (np.median(B) < B).astype(float)
KS = range(1, 7)


def path_of(loss: object, rows: np.ndarray, target: np.ndarray) -> tuple[sm.Path, sm.Variable]:
    w, c = sm.Variable(P, name="w"), sm.Variable(name="c")
    goal = sm.minimize(loss(A[rows] @ w + c, target[rows]) + sm.ridge(w, 1e-3))
    return sm.Problem(goal, sm.card(w) <= 3).path(KS), w


def mean_loss(name: str, u: np.ndarray, y: np.ndarray) -> float:
    if name == "squared":
        return float(np.mean((u - y) ** 2) / 2.0)
    if name == "absolute":
        return float(np.mean(np.abs(u - y)))
    return float(np.mean(np.logaddexp(0.0, u) - y * u))


LOSSES = {
    "squared": (sm.squared_loss, B),
    "absolute": (sm.absolute_loss, B),
    "logistic": (sm.logistic_loss, Y),
}


def predictions(chosen: object, rows: np.ndarray) -> np.ndarray:
    return A[rows] @ chosen.values["w"] + chosen.values["c"]


@pytest.mark.parametrize("name", LOSSES)
def test_criteria_by_hand(name: str) -> None:
    loss, target = LOSSES[name]
    path, _ = path_of(loss, np.arange(N), target)
    penalties = {
        "aic": lambda k: 2.0 * (k + 1),
        "bic": lambda k: (k + 1) * np.log(N),
        "ebic": lambda k: (k + 1) * np.log(N) + 2.0 * np.log(comb(P, k)),
        "gic": lambda k: (k + 1) * np.log(np.log(N)) * np.log(P),
    }
    for criterion, penalty in penalties.items():
        best = path.select(criterion)
        mean = mean_loss(name, predictions(best, np.arange(N)), target)
        fit = {
            "squared": N * np.log(mean),
            "absolute": 2 * N * np.log(mean),
            "logistic": 2 * N * mean,
        }[name]
        score = fit + penalty(len(best.support))  # the intercept is estimated too
        assert best.scores.min() == pytest.approx(score, rel=1e-9)
        assert best.k == path.k[int(np.argmin(best.scores))]


def logistic_losses_of_all_supports(
    k: int, inside: np.ndarray, out: np.ndarray, target: np.ndarray
) -> list[float]:
    """Return the held-out losses of the minimisers with an intercept over all ``k`` features."""
    losses = []
    for support in itertools.combinations(range(P), k):
        X = np.column_stack([A[:, support], np.ones(N)])
        ridge = np.append(np.full(k, 1e-3), 0.0)

        def mean(x: np.ndarray, X: np.ndarray = X, ridge: np.ndarray = ridge) -> float:
            u = X[inside] @ x
            penalty = 0.5 * ridge @ x**2
            return float(np.mean(np.logaddexp(0.0, u) - target[inside] * u) + penalty)

        x = np.zeros(k + 1)
        for _ in range(30):
            share = 1.0 / (1.0 + np.exp(-X[inside] @ x))
            g = X[inside].T @ (share - target[inside]) / inside.size + ridge * x
            h = share * (1.0 - share) / inside.size
            step = np.linalg.solve((X[inside].T * h) @ X[inside] + np.diag(ridge), g)
            length = 1.0
            while mean(x - length * step) > mean(x) + 1e-15 and length > 1e-9:
                length *= 0.5
            x = x - length * step
            if np.abs(g).max() <= 1e-13:
                break
        losses.append(mean_loss("logistic", X[out] @ x, target[out]))
    return losses


@pytest.mark.parametrize("name", ["squared", "logistic"])
def test_cross_validation_by_hand(name: str) -> None:
    loss, target = LOSSES[name]
    folds = np.arange(N) % 3
    path, _ = path_of(loss, np.arange(N), target)
    found = path.cross_validation(folds=folds, one_standard_error=True)
    for fold in range(3):
        inside, out = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        part, _ = path_of(loss, inside, target)  # never sees the rows that are left out
        for column, k in enumerate(KS):
            at = part.at(int(part.k[column]))
            assert at.k == k
            expected = [mean_loss(name, predictions(at, out), target[out])]
            if name == "logistic":  # folds are swept along k, not searched: any minimiser may do
                expected += logistic_losses_of_all_supports(k, inside, out, target)
            assert np.min(np.abs(np.array(expected) / found.losses[fold, column] - 1.0)) <= 1e-6
    mean = found.losses.mean(axis=0)
    best = int(np.argmin(mean))
    error = found.losses[:, best].std(ddof=1) / np.sqrt(3)
    smallest = next(k for k, value in zip(KS, mean, strict=True) if value <= mean[best] + error)
    assert found.k == smallest
    assert path.cross_validate(folds=folds, one_standard_error=False).k == list(KS)[best]


@pytest.mark.parametrize("kind", ["linear", "row"])
def test_terms_of_one_row_are_in_every_fit_and_in_no_held_out_loss(kind: str) -> None:
    tilt = np.linspace(-0.3, 0.3, P)

    def problem(rows: np.ndarray) -> sm.Problem:
        w = sm.Variable(P, name="w")
        goal = sm.squared_loss(A[rows] @ w, B[rows]) + sm.ridge(w, 1e-2)
        goal = goal - tilt @ w if kind == "linear" else goal + sm.squared_loss(tilt @ w, [1.0])
        return sm.Problem(sm.minimize(goal), sm.card(w) <= 3)

    folds = np.arange(N) % 3
    path = problem(np.arange(N)).path(KS)
    found = path.cross_validation(folds=folds)
    for fold in range(3):
        part = problem(np.flatnonzero(folds != fold)).path(KS)
        out = folds == fold
        for column in range(len(KS)):
            w = part.at(int(part.k[column])).values["w"]
            expected = mean_loss("squared", A[out] @ w, B[out])
            assert found.losses[fold, column] == pytest.approx(expected, rel=1e-6)
    assert path.cross_validate(folds=3).k in KS
    assert path.stability(resamples=4).shape == (len(KS), P)
    w = sm.Variable(P, name="w")
    alone = sm.Problem(sm.minimize(sm.ridge(w, 0.1) - tilt @ w), sm.card(w) <= 3).path(KS)
    with pytest.raises(sm.DataError, match="single row"):
        alone.cross_validate()


def test_stability_counts_supports() -> None:
    path, _ = path_of(sm.squared_loss, np.arange(N), B)
    frequencies = path.stability(resamples=8, seed=3)
    assert np.array_equal(frequencies, path.stability(resamples=8, seed=3))
    counted = frequencies[:, :P]
    assert np.allclose(counted * 8, np.round(counted * 8))
    assert np.all(counted.sum(axis=1) <= np.array(KS) + 1e-12)
    assert set(np.argsort(-counted[2])[:2]) <= {1, 4, 8}


def test_stability_ends_in_time() -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((400, 300))
    w = sm.Variable(300)
    target = np.where(A[:, :5].sum(axis=1) + rng.standard_normal(400) > 0.0, 1.0, -1.0)
    goal = sm.minimize(sm.logistic_loss(A @ w, target) + sm.ridge(w, 0.1))
    path = sm.Problem(goal, sm.card(w) <= 5).path([0, 1, 2, 3, 4, 5])
    began = time.perf_counter()
    found = path.stability(resamples=200, time_limit=0.5)
    assert time.perf_counter() - began < 6.0
    sums = found.sum(axis=1)
    assert found.shape == (6, 300)
    assert np.all(np.isnan(sums) | (sums <= np.arange(6) + 1e-12))
    assert not np.isnan(sums[0])
    with pytest.raises(sm.NotSolvedError, match="fewer halves"):
        path.stability(resamples=4, time_limit=0.0)


def fits(loss: object, target: np.ndarray, x: np.ndarray) -> np.ndarray:
    """What ``aic`` says of the fit at each row of ``x``: without its penalty."""
    w = sm.Variable(x.shape[1:], name="w")
    form = sm.Problem(
        sm.minimize(loss(A @ w, target)), sm.card(w, axis=1 if x.ndim > 2 else None) <= 3
    ).form
    scores = regression_criterion_values(
        form, [PathPoint(3, point, 0.0) for point in x], Criterion("aic")
    )
    return scores - 2.0 * np.array([np.count_nonzero(point) for point in x])


def test_the_shape_of_a_gamma_distribution_is_estimated() -> None:
    x = np.zeros((4, P))
    x[:, :2] = 0.2 * RNG.standard_normal((4, 2))
    y = RNG.gamma(3.0, np.exp(A @ x[0]) / 3.0)
    expected = []
    for point in x:
        mean = np.exp(A @ point)
        best = minimize_scalar(
            lambda t, mean=mean: -stats.gamma.logpdf(y, np.exp(t), scale=mean / np.exp(t)).sum(),
            bounds=(-5.0, 8.0),
            method="bounded",
            options={"xatol": 1e-10},
        )
        expected.append(2.0 * best.fun)
    found = fits(sm.gamma_loss, y, x)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    exact = np.zeros((1, P))  # a perfect fit: the shape is beyond every number
    assert np.isfinite(fits(sm.gamma_loss, np.ones(N), exact)).all()
    # both sides of where Stirling's formula takes over
    near = [
        GammaLoss().minus_twice_log(1.0 + s, np.ones(5), np.ones(5), np.ones(5))
        for s in (0.99e-7, 1.01e-7)
    ]
    assert near[1] - near[0] == pytest.approx(5.0 * np.log(1.01 / 0.99), rel=1e-3)


def test_several_responses_have_one_scale() -> None:
    x = 0.1 * RNG.standard_normal((2, P, 3)) * (np.arange(P) < 3)[:, None]
    target = np.column_stack([B, Y, -B])
    found = fits(sm.squared_loss, target, x)
    sizes = [np.mean((A @ point - target) ** 2) for point in x]
    logs = [
        stats.norm.logpdf(A @ p - target, scale=np.sqrt(s)).sum()
        for p, s in zip(x, sizes, strict=True)
    ]
    assert found[0] - found[1] == pytest.approx(-2.0 * (logs[0] - logs[1]), rel=1e-10)


def test_penalties_of_the_cox_model_count_events() -> None:
    event = (RNG.uniform(size=N) < 0.4).astype(float)
    y = np.column_stack([RNG.exponential(size=N), event])
    assert CoxLoss().sample_size(y, np.ones(N)) == event.sum()


def test_losses_of_different_kinds_have_no_likelihood() -> None:
    w = sm.Variable(P, name="w")
    total = sm.squared_loss(A @ w, B) + sm.logistic_loss(A @ w, Y) + sm.ridge(w, 0.1)
    path = sm.Problem(sm.minimize(total), sm.card(w) <= 2).path([1, 2])
    with pytest.raises(sm.ModelError, match=r"logistic_loss \+ squared_loss is not a likelihood"):
        path.select("bic")


@pytest.mark.parametrize("weighty", [5, 20])
def test_a_fold_without_weight_is_named(weighty: int) -> None:
    """The error blamed products that overflow or vanish."""
    rng = np.random.default_rng(3)
    A, y, w = rng.standard_normal((40, 4)), rng.standard_normal(40), sm.Variable(4, name="w")
    loss = sm.squared_loss(A @ w, y, weights=np.where(np.arange(40) < weighty, 1.0, 0.0))
    path = sm.Problem(sm.minimize(loss), sm.card(w) <= 2).path(range(3))
    with pytest.raises(sm.DataError, match="observations of weight zero only"):
        path.cross_validate(folds=np.arange(40) // 8)


def test_folds_that_are_no_labels_are_refused_by_what_to_write() -> None:
    w = sm.Variable(P, name="w")
    path = sm.Problem(sm.minimize(sm.squared_loss(A @ w, B)), sm.card(w) <= 3).path([1, 2])
    splitter = type("KFold", (), {"split": lambda self, X: iter(())})()
    for folds in (splitter, np.zeros((3, 2))):
        with pytest.raises(sm.DataError, match=r"labels\[test\] = fold"):
            path.cross_validate(folds=folds)
    labels = np.where(np.arange(N) == 4, np.nan, np.arange(N) % 3)
    with pytest.raises(sm.DataError, match="that of 4 is NaN"):
        path.cross_validate(folds=labels)
