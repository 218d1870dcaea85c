"""NHTP, Table 1 of Zhou, Xiu and Qi (2021), against ten iterates written out here."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.interfaces import Context, ModelError, Stop
from sparsemodel.numerics import minimise_restricted
from sparsemodel_backends.nhtp import NHTP


def table_1(problem, steps, H, *, eta, every=10, sigma=5e-5, beta=0.5, gamma=None):
    """Return the iterates, and how often each kind of direction and step length occurred."""
    p, s = problem.A.shape[1], problem.k
    x, out = np.zeros(p), []
    seen = dict.fromkeys(("newton", "gradient", "shortened", "dropped", "thresholded"), 0)
    if not np.any(problem.g(x)):
        x = np.ones(p)  # section 4
    for k in range(steps):
        g, h = problem.g(x), problem.hessian(x)
        T = np.flatnonzero(H(x - eta * g, s))  # Step 1
        rest = np.setdiff1d(np.arange(p), T)
        F = np.sqrt(np.sum(g[T] ** 2) + np.sum(x[rest] ** 2))  # (13)
        d = np.zeros(p)
        d[rest] = -x[rest]
        d[T] = np.linalg.solve(h[np.ix_(T, T)], h[np.ix_(T, rest)] @ x[rest] - g[T])  # (18)
        out_square = np.sum(x[rest] ** 2)
        g_k = gamma or (1e-10 if out_square == 0.0 else 1e-4)
        if g[T] @ d[T] <= -g_k * d @ d + out_square / (4.0 * eta):  # (20)
            seen["newton"] += 1
        else:
            d[T] = -g[T]  # (21)
            seen["gradient"] += 1
        seen["dropped"] += int(out_square > 0.0)
        alpha = 1.0
        while alpha > 1e-18:  # Step 4; with entries to drop it need not end
            following = np.zeros(p)
            following[T] = x[T] + alpha * d[T]  # (26)
            bound = problem.f(x) + sigma * alpha * (g @ d)  # (27)
            if problem.f(following) <= bound + 1e-15 * problem.f(x):
                break
            alpha *= beta
            seen["shortened"] += 1
        else:  # not in the paper; the authors' later code takes this step
            following = np.zeros(p)
            following[T] = x[T] - eta * g[T]
            seen["thresholded"] += 1
        x = following
        out.append(x)
        if k > 0 and k % every == 0:  # section 4; k^-2 asks for k > 0
            eta = eta / 1.05 if k**-2.0 < F else eta * 1.05
    return out, seen


def published_eta(problem):
    p = problem.A.shape[1]
    return 10.0 * (1.0 + problem.k / p) / min(10.0, np.log(p))


@pytest.mark.parametrize("eta", [None, 1.0, 0.2])
def test_iterates(hard, run, H, same, eta):
    theirs, seen = table_1(hard, 10, H, eta=eta or published_eta(hard))
    least = 1 if eta is None else 3  # the paper's eta is long for data with noise
    states = run(NHTP.as_published(eta=eta), hard)
    same([s.point.x for s in states], theirs, rtol=1e-6, least=least)
    assert seen["newton"]
    assert seen["dropped"] or eta is None


def test_other_constants(hard, run, H, same):
    """Of the line search and of (20): they decide which direction is taken, and how far."""
    seen = {}
    for sigma, beta, gamma in ((0.3, 0.7, 0.3), (0.01, 0.2, 3.0), (0.4999, 0.5, 1e-10)):
        constants = {"sigma": sigma, "beta": beta, "gamma": gamma}
        theirs, found = table_1(hard, 10, H, eta=1.0, **constants)
        ours = run(NHTP.as_published(eta=1.0, **constants), hard)
        same([s.point.x for s in ours], theirs, rtol=1e-6, least=2)
        seen = {key: seen.get(key, 0) + value for key, value in found.items()}
    assert min(seen.values()) > 0, f"all branches are taken: {seen}"


@pytest.mark.parametrize("every", [1, 2])
def test_the_rule_for_eta(hard, run, H, same, every):
    theirs, _ = table_1(hard, 10, H, eta=1.0, every=every)
    states = run(NHTP.as_published(eta=1.0, update_every=every), hard)
    same([s.point.x for s in states], theirs, rtol=1e-6)
    assert len({s.eta for s in states}) >= 2


def test_a_direction_is_judged_by_the_eta_of_its_selection(borderline, run, H, same):
    """(20) is about ``T_k`` and ``eta_k``, also in the iteration that finds another eta."""
    options = {"eta": 1.0, "gamma": 0.5}
    theirs, seen = table_1(borderline, 10, H, every=1, **options)
    states = run(NHTP.as_published(update_every=1, **options), borderline)
    same([s.point.x for s in states], theirs, rtol=1e-6)
    assert seen["newton"]
    assert seen["gradient"]


def test_the_constant_of_20_where_entries_are_dropped(flat, run, H, same):
    """1e-4: with so little curvature and so long an eta a tenth takes another direction."""
    theirs, seen = table_1(flat, 10, H, eta=30.0)
    states = run(NHTP.as_published(eta=30.0), flat)
    same([s.point.x for s in states], theirs, rtol=1e-6, least=2)
    assert seen["dropped"]
    assert table_1(flat, 10, H, eta=30.0, gamma=0.1)[1]["gradient"] > seen["gradient"]


def test_the_measure_of_stationarity(hard, run):
    """``Tol`` of (15): ``||F||`` and what gradients outside of T exceed ``x_(k) / eta`` by."""
    eta, p = 0.7, hard.A.shape[1]
    excess = 0
    for state in run(NHTP.as_published(eta=eta), hard, 6):
        x, T = state.point.x, state.following
        g, rest = hard.g(x), np.setdiff1d(np.arange(p), state.following)
        F = np.sqrt(np.sum(g[T] ** 2) + np.sum(x[rest] ** 2))
        beyond = np.abs(g[rest]).max() - np.sort(np.abs(x))[p - hard.k] / eta
        excess += beyond > 0.0
        expected = F + max(beyond, 0.0)
        assert state.residual == pytest.approx(expected, rel=1e-6, abs=1e-10)
        assert state.equation == pytest.approx(F, rel=1e-6, abs=1e-10)


@pytest.fixture
def balanced(problem_of):
    """Every row with both labels: the gradient at zero vanishes, with integers exactly so."""
    rng = np.random.default_rng(1)
    B = rng.integers(-3, 4, (30, 12)).astype(float)
    return problem_of(np.vstack((B, B)), np.repeat([1.0, -1.0], 30), 4, "logistic", ridge=0.05)


@pytest.mark.parametrize("eta", [0.2, 0.02])
def test_the_start_where_the_gradient_at_zero_vanishes(balanced, run, H, eta):
    theirs, seen = table_1(balanced, 10, H, eta=eta)
    states = run(NHTP.as_published(eta=eta), balanced, first=True)
    # Newton's steps lead to zero, where all digits are rounding.
    found = np.array([s.point.x for s in states])
    np.testing.assert_allclose(found, [np.ones(12), *theirs], rtol=1e-6, atol=1e-9)
    assert len({np.round(x, 6).tobytes() for x in theirs}) >= 4
    assert seen["dropped"]
    assert seen["shortened"]


def test_that_start_is_for_literal_mode_without_another_and_no_answer(balanced, run):
    start = np.zeros(12)
    start[2] = 1.0
    given = run(NHTP.as_published(), balanced, 0, start=start, first=True)[0]
    np.testing.assert_array_equal(given.point.x, start)
    assert not np.any(run(NHTP(), balanced, 0, first=True)[0].point.x)
    first, second = run(NHTP.as_published(eta=0.2), balanced, 1, first=True)
    assert not np.any(NHTP.as_published().iterate(first).x)
    assert 0 < np.count_nonzero(NHTP.as_published().iterate(second).x) <= balanced.k


@pytest.mark.parametrize("eta", [1.0, 0.1])
@pytest.mark.parametrize("tol", [0.0, 1e-6])
def test_the_printed_ends(hard, H, same, eta, tol):
    """``Tol`` at most 1e-6, or ``f`` changed by less than ``1e-6 (1 + |f|)``: the first of both."""
    theirs, _ = table_1(hard, 20, H, eta=eta)
    values = [hard.f(x) for x in (np.zeros(hard.A.shape[1]), *theirs)]
    small = [abs(b - a) < 1e-6 * (1.0 + abs(a)) for a, b in pairwise(values)]
    steps = small.index(True) + 1
    backend = NHTP.as_published(eta=eta)
    assert backend.tol == backend.value_tol == 1e-6
    backend = replace(backend, tol=tol)
    objective, context = hard.objective(), Context(minimise_restricted)
    states = [backend.init(objective, context)]
    while (why := backend.stopped(objective, states[-1])) is None and len(states) <= 20:
        states.append(backend.step(objective, states[-1], context))
    assert why is Stop.CONVERGED
    found = len(states) - 1
    assert found == steps if tol == 0.0 else found <= steps
    same([s.point.x for s in states[1:]], theirs[:found], rtol=1e-6, least=2)
    assert min(s.residual for s in states[:-1]) > tol
    assert found == steps or states[-1].residual <= 1e-6


def test_constants_are_checked():
    with pytest.raises(ModelError, match="value_tol"):
        NHTP(value_tol=-1.0)
    with pytest.raises(ModelError, match="sigma"):
        NHTP(sigma=0.5)
    with pytest.raises(ModelError, match="gamma"):
        NHTP(gamma=0.0)


def test_a_gradient_at_zero_that_is_rounding_is_no_scale():
    """Each row stands in both classes: zero is the minimum, where sums cancel but for rounding."""
    rows = np.random.default_rng(1).integers(-3, 4, (30, 12)).astype(float)
    w = sm.Variable(12)
    loss = sm.logistic_loss(np.vstack([rows, rows]) @ w, np.repeat([1.0, -1.0], 30))
    solution = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.05)), sm.card(w) <= 4).solve(NHTP())
    assert solution.stop is Stop.CONVERGED
    assert not np.any(w.value)
