"""The choice of k, against formulas and loops written out by hand."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

import sparsemodel as sm

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


@pytest.mark.parametrize("name", ["squared", "logistic"])
def test_cross_validation_by_hand(name: str) -> None:
    loss, target = LOSSES[name]
    folds = np.arange(N) % 4
    path, _ = path_of(loss, np.arange(N), target)
    found = path.cross_validation(folds=folds)
    for fold in range(4):
        inside, out = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        part, _ = path_of(loss, inside, target)  # never sees the rows that are left out
        for column, k in enumerate(KS):
            at = part._chosen(column, "hand", np.zeros(1))
            assert at.k == k
            expected = mean_loss(name, predictions(at, out), target[out])
            assert found.losses[fold, column] == pytest.approx(expected, rel=1e-6)
    mean = found.losses.mean(axis=0)
    best = int(np.argmin(mean))
    error = found.losses[:, best].std(ddof=1) / np.sqrt(4)
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
            w = part._chosen(column, "hand", np.zeros(1)).values["w"]
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
