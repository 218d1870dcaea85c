"""Two exchanges together: what they gain, and what it tells that they gain nothing."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.numerics import (
    ExchangeSearch,
    ExchangeTrials,
    RegressionObjective,
    Rounds,
    quadratic_of,
)
from sparsemodel.numerics.exchange import trials
from sparsemodel.numerics.exchange.batched_newton import lowest_first
from sparsemodel.numerics.exchange.quadratics.pricing import Exchanges
from sparsemodel.numerics.exchange.quadratics.runners_up import Comparison, best_double_exchange


def alike(seed: int, n: int, p: int) -> Any:
    """Columns that share three factors, and a target of a few of them."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, 3)) @ rng.standard_normal((3, p)) + rng.standard_normal((n, p))
    return A, A[:, :3] @ np.array([1.0, -1.0, 0.5]) + rng.standard_normal(n)


def searched(A: Any, y: Any, k: int) -> ExchangeSearch:
    """Return a search that has descended to where no single exchange helps."""
    w = sm.Variable(A.shape[1], name="w")
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, y)), sm.card(w) <= k)
    search = ExchangeSearch(*quadratic_of(RegressionObjective(problem._compiled().form)), most=k)
    while not search.descend(1000, lambda: False):
        pass
    return search


def explained(A: Any, y: Any, support: Any) -> float:
    """Return twice what the support lowers the mean of half the squares by."""
    fitted = A[:, list(support)] @ np.linalg.lstsq(A[:, list(support)], y, rcond=None)[0]
    return float(fitted @ fitted) / y.size


@pytest.mark.parametrize(("seed", "p", "k"), [(seed, 7 + seed % 3, 3) for seed in range(8)])
def test_pairs_are_the_best_there_are(seed: int, p: int, k: int) -> None:
    A, y = alike(seed, 30, p)
    search = searched(A, y, k)
    here, home = search._current, set(search.support.tolist())
    double = best_double_exchange(here, 0.0)
    pairs = [set(s) for s in itertools.combinations(range(p), k) if len(set(s) - home) == 2]
    best = max(explained(A, y, s) for s in pairs) - search.gain
    np.testing.assert_allclose(double.gain, best, atol=1e-10)
    reached = explained(A, y, double.members) - search.gain
    np.testing.assert_allclose(reached, double.gain, atol=1e-10)
    assert double.expensive == (double.gain < 0.0)
    most = max(explained(A, y, home | {j}) for j in set(range(p)) - home) - search.gain
    for share, expensive in ((0.99, True), (1.01, False)):
        if double.gain < 0.0:
            assert best_double_exchange(here, -share * double.gain / most).expensive is expensive
    assert not best_double_exchange(here, np.inf).expensive


@pytest.mark.parametrize("seed", [10, 15, 22, 30, 33])
def test_a_double_exchange_goes_where_no_single_exchange_leads(seed: int) -> None:
    A, y = alike(seed, 60, 30)
    search = searched(A, y, 5)
    before, home = search.gain, set(search.support.tolist())
    assert search.try_double()
    assert search.gain > before
    assert len(set(search.support.tolist()) - home) >= 2
    np.testing.assert_allclose(search.gain, explained(A, y, search.support), rtol=1e-10)


def test_no_double_exchange_is_made_that_gains_nothing() -> None:
    A, y = alike(0, 60, 30)
    search = searched(A, y, 5)
    before = search.gain
    assert not search.try_double()
    assert search.gain == before


def perturbations(monkeypatch: pytest.MonkeyPatch, problem: sm.Problem, **how: Any) -> int:
    """Return how many times a solve perturbs."""
    calls = []
    perturb = ExchangeSearch.perturb

    def counted(self: ExchangeSearch, *args: Any) -> Any:
        calls.append(1)
        return perturb(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(ExchangeSearch, "perturb", counted)
        problem.solve("exchange", **how)
    return len(calls)


def planted(n: int, alike: float = 0.0) -> sm.Problem:
    """A target of twenty columns, correlated by ``alike``, two of which hardly count."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((n, 200)) * np.sqrt(1.0 - alike)
    A += np.sqrt(alike) * rng.standard_normal((n, 1))
    y = A[:, :20] @ np.array([1.0] * 18 + [0.16, 0.16]) + rng.standard_normal(n)
    w = sm.Variable(200, name="w")
    return sm.Problem(sm.minimize(sm.squared_loss(A @ w, y)), sm.card(w) <= 20)


def test_a_support_from_which_double_exchanges_are_expensive_is_not_perturbed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert perturbations(monkeypatch, planted(600)) == 0
    assert perturbations(monkeypatch, planted(1000, alike=0.7)) == 0
    assert perturbations(monkeypatch, planted(600), effort="high") > 0  # all the same
    assert perturbations(monkeypatch, planted(190)) > 0  # fewer than ten observations for each


def test_a_double_exchange_tells_that_there_are_other_supports() -> None:
    home = b"home"
    rounds = Rounds(1.0, 500)
    rounds.count([home] * 30, better=False)
    assert rounds.none_better(home, 7)
    rounds.left_local_optimum()
    assert not rounds.none_better(home, 7)


def test_exchanges_of_one_or_of_all_have_no_pairs() -> None:
    A, y = alike(0, 30, 7)
    one = searched(A, y, 1)
    assert best_double_exchange(one._current, 0.0).gain == -np.inf
    assert not best_double_exchange(one._current, 0.0).expensive
    assert isinstance(one._current, Exchanges)
    assert not one.try_double()
    assert not searched(A, np.zeros(30), 2).try_double()  # nothing is chosen


def chances(loss: Any, n: int, seed: int) -> sm.Problem:
    """Labels or counts of ten independent columns in a hundred, two of which hardly count."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, 100))
    z = A[:, :10] @ np.array([1.0] * 8 + [0.35, 0.35])
    if loss is sm.poisson_loss:
        y = rng.poisson(np.exp(0.3 * z)).astype(float)
    else:
        y = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-z)), 1.0, -1.0)
    w = sm.Variable(100, name="w")
    return sm.Problem(sm.minimize(loss(A @ w, y)), sm.card(w) <= 10)


@pytest.mark.parametrize(("seed", "compared"), [(0, 0), (1, 1), (2, 0)])
def test_double_exchanges_in_a_model_tell_as_much_where_curvatures_are_bounded(
    monkeypatch: pytest.MonkeyPatch, seed: int, compared: int
) -> None:
    """Nor is the support compared with others, unless a single exchange costs next to nothing."""
    calls, near = [], ExchangeTrials.near

    def counted(self: ExchangeTrials, *args: Any) -> Any:
        calls.append(1)
        return near(self, *args)

    monkeypatch.setattr(ExchangeTrials, "near", counted)
    monkeypatch.setattr(Comparison, "excludes_others_logistic", False)
    assert perturbations(monkeypatch, chances(sm.logistic_loss, 800, seed)) == 0
    assert len(calls) == compared
    monkeypatch.setattr(Comparison, "excludes_others", False)
    assert perturbations(monkeypatch, chances(sm.logistic_loss, 800, seed)) > 0


@pytest.mark.parametrize(("seed", "ends"), [(0, False), (1, False), (2, True), (3, False)])
def test_single_and_double_exchanges_must_cost_more_where_curvatures_have_no_bound(
    monkeypatch: pytest.MonkeyPatch, seed: int, ends: bool
) -> None:
    """At 1 and 3 double exchanges cost enough, single ones too little: some lead lower."""
    problem = chances(sm.poisson_loss, 400, seed)
    assert (perturbations(monkeypatch, problem) == 0) == ends
    assert (judged(monkeypatch, problem) == 0) == ends
    monkeypatch.setattr(Comparison, "excludes_others_unbounded", False)
    assert perturbations(monkeypatch, problem) > 0


def judged(monkeypatch: pytest.MonkeyPatch, problem: sm.Problem) -> int:
    """Return how many times a solve judges supports beside by the objective."""
    calls = []

    def counted(*args: Any) -> Any:
        calls.append(1)
        return lowest_first(*args)

    with monkeypatch.context() as patch:
        patch.setattr(trials, "lowest_first", counted)
        problem.solve("exchange")
    return len(calls)


@pytest.mark.parametrize("seed", [0, 3, 4])
def test_supports_beside_are_not_judged_if_double_exchanges_are_expensive_for_labels(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    labels = chances(sm.logistic_loss, 400, seed)
    assert judged(monkeypatch, labels) == 0
    with monkeypatch.context() as patch:
        for name in ("excludes_others_logistic", "excludes_others"):
            patch.setattr(Comparison, name, False)
        assert judged(patch, chances(sm.logistic_loss, 400, seed)) > 0
    few = chances(sm.logistic_loss, 90, seed)  # fewer than ten observations for each unit
    assert judged(monkeypatch, few) > 0


def test_they_are_judged_where_curvatures_may_change_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert sum(judged(monkeypatch, chances(sm.poisson_loss, 400, seed)) for seed in range(3)) > 0
    monkeypatch.setattr(Comparison, "excludes_others", False)
    for loss in (sm.huber_loss, sm.squared_hinge_loss):  # whose double exchanges have to cost more
        assert sum(judged(monkeypatch, chances(loss, 400, seed)) for seed in range(3)) > 0


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 10, 50])
def test_what_is_told_of_a_support_is_that_of_the_support_as_it_is(seed: int) -> None:
    A, y = alike(seed, 60, 30)
    search = searched(A, y, 5)
    told = search.comparison
    assert search.comparison is told
    double = best_double_exchange(search._current, 0.0)
    most = float(search._current.insertions().max())
    assert told.excludes_others_logistic is bool(
        search.contrast >= 0.05 and -double.gain > 0.2 * most
    )
    search.perturb(np.random.default_rng(seed), lambda: False)
    search.start(np.arange(5))
    fresh = Comparison(search._current)
    assert search.contrast == fresh.contrast != told.contrast
    assert search.comparison.correlation == fresh.correlation
    search.descend(1, lambda: False)
    assert search.contrast == Comparison(search._current).contrast != fresh.contrast
