"""Two columns that differ by little, without a ridge: the loss is that of what they span."""

from __future__ import annotations

import itertools
from unittest.mock import patch

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.numerics import ExchangeSearch, RegressionObjective, quadratic_of
from sparsemodel.numerics.exchange.quadratics.close_columns import _pairs
from sparsemodel.numerics.exchange.quadratics.pricing import Exchanges

DIFFERENCES = (1e-3, 1e-5, 1e-6, 3e-7, 1e-7, 5e-8)


def _columns(seed, difference, units=1.0, n=40, p=5):
    """Return columns of which the first two are close, and the same span without close ones."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, p))
    A[:, 1] = A[:, 0] + difference * A[:, 1]
    A *= units
    clear = A / units
    clear[:, 1] = A[:, 1] - A[:, 0]  # of floats that are close: exact
    clear[:, 1] /= np.linalg.norm(clear[:, 1])
    return rng, A, clear


def _rest(A, y, weights):
    root = np.sqrt(weights)
    fit = np.linalg.lstsq(root[:, None] * A, root * y, rcond=None)[0]
    return 0.5 * float(np.mean(weights * (y - A @ fit) ** 2))


def _accuracy(difference):
    """Predictions from coefficients of 1 / difference are rounded, and so is what they leave."""
    return 1e-10 + 5e-15 / difference


@pytest.mark.parametrize("difference", DIFFERENCES)
@pytest.mark.parametrize("units", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("k", [3, 5])
def test_a_squared_loss_is_that_of_the_span(difference, units, intercept, k):
    rng, A, clear = _columns(int(-np.log10(difference)), difference, units)
    y = clear[:, 0] + clear[:, 2] + 9.0 * clear[:, 1] + 0.3 * rng.standard_normal(40)
    y += 2.0 * intercept
    weights = rng.uniform(0.2, 2.0, 40)
    w, b = sm.Variable(5, name="w"), sm.Variable(name="b")
    goal = A @ w + b if intercept else A @ w
    loss = sm.squared_loss(goal, y, weights=weights)
    found = sm.Problem(sm.minimize(loss), sm.card(w) <= k).solve()
    clear = np.column_stack([clear, np.full(40, float(intercept))])
    others = itertools.combinations(range(2, 5), k - 2)
    best = min(_rest(clear[:, [0, 1, *s, 5]], y, weights) for s in others)
    assert found.value == pytest.approx(best, rel=_accuracy(difference))


@pytest.mark.parametrize("difference", DIFFERENCES)
@pytest.mark.parametrize("units", [1e-8, 1.0, 1e8])
def test_a_logistic_loss_is_that_of_the_span(difference, units):
    rng, A, clear = _columns(7, difference, units, n=80)
    clear[:, 1] *= 9.0
    chances = 1.0 / (1.0 + np.exp(-clear[:, 1] - clear[:, 2]))
    y = (rng.random(80) < chances).astype(float)
    values = []
    for columns in (A, clear):
        w, b = sm.Variable(5, name="w"), sm.Variable(name="b")
        goal = sm.minimize(sm.logistic_loss(columns @ w + b, y))
        values.append(sm.Problem(goal, sm.card(w) <= 5).solve().value)
    assert values[0] == pytest.approx(values[1], rel=_accuracy(difference))


@pytest.mark.parametrize("loss", [sm.squared_loss, sm.logistic_loss])
def test_only_close_columns_are_factored_themselves(loss):
    roots = []
    for difference in (1e-2, 1e-7):
        rng, A, _ = _columns(3, difference)
        y = (rng.random(40) < 0.5).astype(float)
        w = sm.Variable(5, name="w")
        root = RegressionObjective.hessian_root
        with patch.object(RegressionObjective, "hessian_root", autospec=True) as asked:
            asked.side_effect = root
            sm.Problem(sm.minimize(loss(A @ w, y)), sm.card(w) <= 5).solve()
        roots.append(asked.call_count)
    assert roots[0] == 0 < roots[1]


@pytest.mark.parametrize("far", [0.0, 1e3, 1e6])
@pytest.mark.parametrize("loss", [sm.squared_loss, sm.logistic_loss])
@pytest.mark.parametrize("units", [1e-8, 1.0, 1e8])
def test_the_rounding_of_dependent_columns_explains_nothing(far, loss, units):
    """Sums of columns with large means are rounded, and centring shows it."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((60, 4)) + far
        more = np.column_stack([A, A[:, 0] - A[:, 1], A.mean(1)]) * units
        y = (rng.random(60) < 1.0 / (1.0 + np.exp(far - A[:, 0]))).astype(float)
        values = []
        for columns in (A - far, more):
            w, b = sm.Variable(columns.shape[1], name="w"), sm.Variable(name="b")
            goal = sm.minimize(loss(columns @ w + b, y))
            values.append(sm.Problem(goal, sm.card(w) <= columns.shape[1]).solve().value)
        assert values[1] == pytest.approx(values[0], rel=1e-9)
        assert np.abs(w.value).max() * units < 10.0


def test_columns_that_are_sums_of_others_keep_the_shortest_coefficients():
    rng, A, _ = _columns(4, 1e-2)
    A = np.column_stack([A, A[:, 2] + A[:, 3]])
    y = A[:, 2] + rng.standard_normal(40)
    w = sm.Variable(6, name="w")
    found = sm.Problem(sm.minimize(sm.squared_loss(A @ w, y)), sm.card(w) <= 6).solve()
    assert found.value == pytest.approx(_rest(A[:, :5], y, np.ones(40)), rel=1e-10)
    assert np.abs(w.value).max() < 1e4


@pytest.mark.parametrize("difference", [1e-3, 1e-4, 1e-5, 1e-6, 1e-7])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_exchanges_find_what_no_smaller_support_beats(difference, intercept, weighted):
    """Brute force over all supports; those of both close columns from a clear basis."""
    n, p, k = 40, 11, 3
    rng, A, clear = _columns(int(-np.log10(difference)) + weighted, difference, n=n, p=p)
    y = 9.0 * clear[:, 1] + 0.3 * clear[:, 5] + 0.1 * rng.standard_normal(n)
    weights = rng.uniform(0.2, 2.0, n) if weighted else np.ones(n)
    ones = np.full((n, 1), float(intercept))
    supports = itertools.combinations(range(p), k)
    best = min(
        _rest(np.hstack([(clear if {0, 1} <= set(s) else A)[:, s], ones]), y, weights)
        for s in supports
    )
    w, b = sm.Variable(p, name="w"), sm.Variable(name="b")
    loss = sm.squared_loss(A @ w + b if intercept else A @ w, y, weights=weights)
    found = sm.Problem(sm.minimize(loss), sm.card(w) <= k).solve(backend="exchange")
    assert found.value == pytest.approx(best, rel=_accuracy(difference))


@pytest.mark.parametrize("difference", [1e-3, 1e-7])
@pytest.mark.parametrize("turned", [1.0, -3.0])
def test_a_pair_is_found_of_which_neither_gains_anything_alone(difference, turned):
    rng = np.random.default_rng(5)
    A = rng.standard_normal((60, 250))
    A[:, 200] = turned * (A[:, 7] + difference * A[:, 200])
    A[:, 100:110] = A[:, 110:120]  # equal ones are no pairs
    y = (A[:, 200] - turned * A[:, 7]) / difference
    w = sm.Variable(250, name="w")
    found = sm.Problem(sm.minimize(sm.squared_loss(A @ w, y)), sm.card(w) <= 2).solve()
    assert np.flatnonzero(w.value).tolist() == [7, 200]
    assert found.value < 1e-12 * np.mean(y**2)


@pytest.mark.parametrize("difference", [1e-3, 1e-7])
def test_a_column_is_found_that_nearly_depends_on_two(difference):
    rng = np.random.default_rng(6)
    A = rng.standard_normal((60, 80))
    more = A[:, 2].copy()
    A[:, 2] = A[:, 0] + A[:, 1] + difference * more
    y = 2.0 * A[:, 0] - A[:, 1] + 3.0 * (A[:, 2] - A[:, 0] - A[:, 1]) / difference
    w = sm.Variable(80, name="w")
    found = sm.Problem(sm.minimize(sm.squared_loss(A @ w, y)), sm.card(w) <= 3).solve()
    assert np.flatnonzero(w.value).tolist() == [0, 1, 2]
    assert found.value < 1e-12 * np.mean(y**2)


def _year_and_age(seed):
    """Return a search, columns of which two add up to nothing but for 2e-8 of them, a target."""
    rng = np.random.default_rng(seed)
    n, p = 80, 30
    year = rng.integers(0, 100, n) - 50.0
    A = rng.standard_normal((n, p))
    A[:, 0], A[:, 5] = year, -year + 1e-6 * rng.standard_normal(n)
    A -= A.mean(axis=0)
    A /= np.linalg.norm(A, axis=0)
    y = 0.1 * year + 10.0 * A[:, 1:5].sum(axis=1) + 0.5 * rng.standard_normal(n)
    w = sm.Variable(p, name="w")
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, y)), sm.card(w) <= 5)
    rows, linear = quadratic_of(RegressionObjective(problem.form))
    return ExchangeSearch(rows, linear, most=5), A, y


@pytest.mark.parametrize("support", [[0, 5], [0, 1, 2, 5, 9]])
@pytest.mark.parametrize("seed", range(3))
def test_what_close_columns_explain_does_not_cancel(seed, support):
    search, A, y = _year_and_age(seed)
    search.start(np.array(support))
    A[:, 5] += A[:, 0]
    A[:, 5] /= np.linalg.norm(A[:, 5])
    explained = np.mean(y**2) - 2.0 * _rest(A[:, support], y, np.ones(len(y)))
    assert search.gain == pytest.approx(explained, rel=1e-6)


@pytest.mark.parametrize("sharp", [True, False])
@pytest.mark.parametrize("seed", range(2))
def test_a_descent_ends_where_rounding_looks_like_a_gain(seed, sharp):
    search = _year_and_age(seed)[0]
    with patch.object(Exchanges, "_sharpen", Exchanges._sharpen if sharp else lambda *_: None):
        assert search.descend(100, lambda: False)
    assert search.exchanges < 20


@np.errstate(all="ignore")  # as in a run
def test_sparse_columns_that_few_rows_of_the_hessian_know_are_no_pairs():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((300, 800)) * (rng.random((300, 800)) < 0.02)
    y = A[:, :8] @ rng.standard_normal(8) + rng.standard_normal(300)
    w = sm.Variable(800, name="w")
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, y)), sm.card(w) <= 4)
    rows, linear = quadratic_of(RegressionObjective(problem._compiled().analysis()[1].form))
    search = Exchanges(rows, linear)
    search.reset(np.arange(4))
    assert not _pairs(search)
