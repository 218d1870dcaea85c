"""NHTP, Table 1 of Zhou, Xiu and Qi (2021), against ten iterates written out here."""

from __future__ import annotations

import numpy as np
import pytest

from sparsemodel.interfaces import ModelError
from sparsemodel_backends.nhtp import NHTP


def table_1(problem, steps, H, *, eta, every=10, sigma=5e-5, beta=0.5, gamma=None):
    """Return the iterates, and how often each kind of direction and step length occurred."""
    p, s = problem.A.shape[1], problem.k
    x, out, seen = np.zeros(p), [], {"newton": 0, "gradient": 0, "shortened": 0, "dropped": 0}
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
        else:
            return out + [x] * (steps - len(out)), seen
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


def test_constants_are_checked():
    with pytest.raises(ModelError, match="sigma"):
        NHTP(sigma=0.5)
    with pytest.raises(ModelError, match="gamma"):
        NHTP(gamma=0.0)
