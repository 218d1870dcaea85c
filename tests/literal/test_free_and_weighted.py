"""The printed algorithms with what no paper prints: weights of observations, and an intercept.

A weight multiplies a loss. A free coordinate is not thresholded and is in every support; steps and
minimisations move it as the others.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sparsemodel_backends.diht import DIHT
from sparsemodel_backends.foba import FoBa
from sparsemodel_backends.gomp import GOMP
from sparsemodel_backends.gp import GP
from sparsemodel_backends.grahtp import GraHTP
from sparsemodel_backends.grasp import GraSP
from sparsemodel_backends.ht_svrg import HTSVRG
from sparsemodel_backends.iht import IHT
from sparsemodel_backends.iiht import IIHT
from sparsemodel_backends.local_search import LocalSearch
from sparsemodel_backends.nhtp import NHTP
from sparsemodel_backends.niht import NIHT
from sparsemodel_backends.ntgp import NTGP
from sparsemodel_backends.omp import OMP
from sparsemodel_backends.ompr import OMPR
from sparsemodel_backends.pgd import PGD
from sparsemodel_backends.sdiht import SDIHT
from sparsemodel_backends.sp import SP


def counted(problem, scores, S=()):
    """The sizes of counted scores off the support."""
    out = np.abs(scores)
    out[[*problem.free, *S]] = -np.inf
    return out


@pytest.fixture
def first(weighted_hard):
    """The support [s] as a start."""
    start = np.zeros(weighted_hard.A.shape[1])
    start[: weighted_hard.k] = 1.0
    return start


def test_iht(weighted_hard, run, same):
    f, theirs = weighted_hard, []
    x, eta = np.zeros(f.A.shape[1]), 0.1 if f.loss == "squared" else 0.5
    for _ in range(10):
        x = f.H(x - eta * f.g(x), f.k)
        theirs.append(x)
    same(
        [s.point.x for s in run(IHT.as_published(step_size=eta, units="declared"), f)],
        theirs,
        least=8,
    )


@pytest.mark.parametrize("weighted_hard", ["squared"], indirect=True)
def test_niht(weighted_hard, run, same):
    f, theirs, halved = weighted_hard, [], 0
    x = np.zeros(f.A.shape[1])
    h = f.hessian(x)
    S = np.flatnonzero(f.H(f.g(x), f.k))
    for _ in range(10):
        g, gs = f.g(x), np.zeros_like(x)
        gs[S] = g[S]
        mu = gs @ gs / (gs @ h @ gs)
        following = f.H(x - mu * g, f.k)
        if set(np.flatnonzero(following)) != set(S):
            d = following - x
            while mu > 0.99 * (d @ d) / (d @ h @ d):
                mu, halved = mu / (2.0 * 0.99), halved + 1
                following = f.H(x - mu * g, f.k)
                d = following - x
        x, S = following, np.flatnonzero(following)
        theirs.append(x)
    assert halved
    same([s.point.x for s in run(NIHT.as_published(), f)], theirs, least=8)


def test_iiht(weighted_hard, run, same):
    f, theirs, halved = weighted_hard, [], 0
    x, longer = np.zeros(f.A.shape[1]), 1.0 if f.loss == "squared" else 20.0
    for _ in range(10):
        g, alpha = f.g(x), longer
        while True:
            d = (following := f.H(x - alpha * g, f.k)) - x
            if f.f(following) <= f.f(x) - 0.5e-4 * (d @ d):
                break
            alpha, halved = 0.5 * alpha, halved + 1
        x = following
        theirs.append(x)
    assert halved
    same([s.point.x for s in run(IIHT.as_published(step_size=longer, beta=0.5), f)], theirs)


@pytest.mark.parametrize("weighted_hard", ["squared"], indirect=True)
def test_gradient_pursuit(weighted_hard, run, same):
    f, S, theirs = weighted_hard, list(weighted_hard.free), []
    x = f.argmin([])  # the intercept first
    h = f.hessian(x)
    for _ in range(10):
        g, d = f.g(x), np.zeros_like(x)
        S = [*S, int(np.argmax(counted(f, g)))]
        d[S] = g[S]
        x = x - (d @ d) / (d @ h @ d) * d
        theirs.append(x)
    same([s.point.x for s in run(GP.as_published(), f)], theirs, least=10)


def test_pgd(weighted_hard, run, same):
    f, theirs = weighted_hard, []
    x, eta = np.zeros(f.A.shape[1]), 0.05 if f.loss == "squared" else 0.2
    for _ in range(10):
        x = f.H(x - eta * f.g(x), 3 * f.k)
        theirs.append(x)
    states = run(PGD.as_published(relaxation=3.0, step_size=eta, units="declared"), f)
    same([s.relaxed.x for s in states], theirs, least=8)


def test_grahtp(weighted_hard, run, same):
    f, theirs = weighted_hard, []
    x, eta = np.zeros(f.A.shape[1]), 0.4 if f.loss == "squared" else 4.0
    for _ in range(10):
        x = f.argmin(np.flatnonzero(f.H(x - eta * f.g(x), f.k)))
        theirs.append(x)
    same([s.point.x for s in run(GraHTP.as_published(step_size=eta, units="declared"), f)], theirs)


def test_omp(weighted_hard, run, same):
    f, S, theirs = weighted_hard, [], []
    x = f.argmin(S)
    for _ in range(10):
        S.append(int(np.argmax(counted(f, f.g(x), S))))
        x = f.argmin(S)
        theirs.append(x)
    same([s.point.x for s in run(OMP.as_published(), f)], theirs, least=10)


@pytest.mark.parametrize("weighted_hard", ["squared"], indirect=True)
def test_generalised_omp(weighted_hard, run, same):
    f, S, theirs = weighted_hard, [], []
    x = f.argmin(S)
    for _ in range(5):
        S += np.argsort(-counted(f, f.g(x), S), kind="stable")[:2].tolist()
        x = f.argmin(S)
        theirs.append(x)
    same([s.point.x for s in run(GOMP.as_published(block=2), f, 5)], theirs, least=5)


def test_foba(weighted_hard, run, same):
    f, S, gains, theirs = weighted_hard, [], [], []
    x = f.argmin(S)
    for _ in range(9):
        S = [*S, int(np.argmax(counted(f, f.g(x), S)))]
        following = f.argmin(S)
        gains.append(f.f(x) - f.f(following))
        x = following
        while True:
            rests = [[j for j in S if j != out] for out in S]
            costs = [f.f(f.argmin(rest)) - f.f(x) for rest in rests]
            if min(costs) > 0.5 * gains[-1]:
                break
            S = rests[int(np.argmin(costs))]
            x = f.argmin(S)
            gains.pop()
        theirs.append(x)
    same([s.point.x for s in run(FoBa.as_published(), f, 9)], theirs, least=8, rtol=1e-5)


def test_ompr(weighted_hard, first, run, same):
    f, S, theirs = weighted_hard, set(range(weighted_hard.k)), []
    x = f.argmin(sorted(S))
    for _ in range(10):
        i = int(np.argmax(counted(f, f.g(x), S)))
        j = min(S, key=lambda j: abs(x[j]))
        following = f.argmin(sorted((S | {i}) - {j}))
        if f.f(following) >= f.f(x):
            theirs += [x] * (10 - len(theirs))
            break
        x, S = following, (S | {i}) - {j}
        theirs.append(x)
    same([s.point.x for s in run(OMPR.as_published(), f, start=first)], theirs, least=4)


@pytest.mark.parametrize("weighted_hard", ["squared"], indirect=True)
def test_exhaustive_local_search(weighted_hard, first, run, same):
    f, S, theirs = weighted_hard, set(range(weighted_hard.k)), []
    x = f.argmin(sorted(S))
    for _ in range(6):
        rest = S - {min(S, key=lambda j: abs(x[j]))}
        into = [i for i in range(f.A.shape[1]) if i not in S and i not in f.free]
        trials = [f.argmin(sorted(rest | {i})) for i in into]
        best = int(np.argmin([f.f(trial) for trial in trials]))
        if f.f(trials[best]) >= f.f(x):
            theirs += [x] * (6 - len(theirs))
            break
        x, S = trials[best], rest | {into[best]}
        theirs.append(x)
    same([s.point.x for s in run(LocalSearch.as_published(), f, 6, start=first)], theirs, least=4)


def test_grasp(weighted_hard, run, same):
    f, theirs = weighted_hard, []
    x = f.argmin([])  # the intercept first: gradients would select what imitates it
    for _ in range(10):
        Z = np.argsort(-counted(f, f.g(x)), kind="stable")[: 2 * f.k]
        x = f.H(f.argmin(np.union1d(Z, np.flatnonzero(x))), f.k)
        theirs.append(x)
    same([s.point.x for s in run(GraSP.as_published(), f)], theirs)


def test_subspace_pursuit(weighted_hard, run, same):
    f, theirs = weighted_hard, []
    S = np.argsort(-counted(f, f.g(f.argmin([]))), kind="stable")[: f.k]
    x = f.argmin(S)
    theirs.append(x)
    for _ in range(9):
        into = np.argsort(-counted(f, f.g(x), S.tolist()), kind="stable")[: f.k]
        merged = f.argmin(np.union1d(S, into))
        T = np.setdiff1d(np.flatnonzero(f.H(merged, f.k)), f.free)
        following = f.argmin(T)
        if f.f(following) >= f.f(x):
            theirs += [x] * (10 - len(theirs))
            break
        x, S = following, T
        theirs.append(x)
    same([s.point.x for s in run(SP.as_published(), f)], theirs, least=2)


@pytest.mark.parametrize("eta", [1.0, 0.2])
def test_nhtp(weighted_hard, run, same, eta):
    f, p, sigma, beta = weighted_hard, weighted_hard.A.shape[1], 5e-5, 0.5
    x, theirs = np.zeros(p), []
    for k in range(10):
        g, h = f.g(x), f.hessian(x)
        T = np.union1d(np.flatnonzero(f.H(x - eta * g, f.k)), f.free).astype(int)
        rest = np.setdiff1d(np.arange(p), T)
        F = np.sqrt(np.sum(g[T] ** 2) + np.sum(x[rest] ** 2))
        d = np.zeros(p)
        d[rest] = -x[rest]
        d[T] = np.linalg.solve(h[np.ix_(T, T)], h[np.ix_(T, rest)] @ x[rest] - g[T])
        out = np.sum(x[rest] ** 2)
        gamma = 1e-10 if out == 0.0 else 1e-4
        if not g[T] @ d[T] <= -gamma * d @ d + out / (4.0 * eta):
            d[T] = -g[T]
        alpha = 1.0
        while alpha > 1e-18:
            following = np.zeros(p)
            following[T] = x[T] + alpha * d[T]
            if f.f(following) <= f.f(x) + sigma * alpha * (g @ d) + 1e-15 * f.f(x):
                break
            alpha *= beta
        else:  # no length descends: a thresholded gradient step
            following = np.zeros(p)
            following[T] = x[T] - eta * g[T]
        x = following
        theirs.append(x)
        if k > 0 and k % 10 == 0:
            eta = eta / 1.05 if k**-2.0 < F else eta * 1.05
    states = run(NHTP.as_published(eta=eta, units="declared"), f)
    same([s.point.x for s in states], theirs, rtol=1e-6, least=2)


@pytest.mark.parametrize("inner", [1, 2, 5])
def test_ntgp(weighted_hard, run, inner):
    """Steps are exact along the support and the free coordinate; where that is alone, along the
    k largest gradients as well."""
    f, x, different = weighted_hard, np.zeros(weighted_hard.A.shape[1]), set()
    for state in run(NTGP.as_published(inner_iter=inner), f):
        g, h, y = f.g(x), f.hessian(x), x
        slope, S = g, np.union1d(np.flatnonzero(x), f.free).astype(int)
        for _ in range(inner):
            v = np.zeros_like(y)
            v[S] = slope[S]
            if len(S) == len(f.free) or v @ v <= 1e-12 * slope @ slope:
                v = f.H(slope, f.k)
            eta = v @ v / (v @ h @ v)
            while True:
                d = (z := f.H(y - eta * slope, f.k)) - y
                if eta * (d @ h @ d) <= d @ d * (1.0 + 1e-12):
                    break
                eta /= 2.0
            y, slope = z, g + h @ (z - x)
            S = np.union1d(np.flatnonzero(z), f.free).astype(int)
        if np.linalg.norm(y - x) < 1e-3 * np.linalg.norm(x):
            break  # rounding decides about halving now
        np.testing.assert_allclose(state.point.x, y, rtol=1e-7, atol=1e-9)
        x = state.point.x  # each from the one before
        different.add(np.round(x, 6).tobytes())
    assert len(different) >= 3


def test_ht_svrg(weighted_hard, run, same):
    """f is the mean of f_i with the weights n c_i; every observation is drawn as often."""
    f, n, rng = weighted_hard, len(weighted_hard.y), np.random.default_rng(11)
    c = n / f.weight
    eta = 0.02 if f.loss == "squared" else 0.1

    def gradient(i, x):
        u = f.A[i] @ x
        slope = u - f.y[i] if f.loss == "squared" else -f.y[i] / (1.0 + np.exp(f.y[i] * u))
        return c[i] * slope * f.A[i] + f.ridges * x

    reference, theirs = np.zeros(f.A.shape[1]), []
    for _ in range(10):
        mu = sum(gradient(i, reference) for i in range(n)) / n
        j = int(rng.integers(3 * n))
        x = reference
        for _ in range(j):
            i = int(rng.integers(n))
            x = f.H(x - eta * (gradient(i, x) - gradient(i, reference) + mu), 2 * f.k)
        reference = x
        theirs.append(x)
    states = run(HTSVRG.as_published(step_size=eta, relaxation=2.0, units="declared"), f, seed=11)
    same([s.reference.x for s in states], theirs, least=8)


@pytest.mark.parametrize("m", [1, 5])
def test_diht_and_sdiht(mean_loss, run, same, m):
    """With weights c_i for the 1/N of the paper, whose steps are N times ours; none is free."""
    f, rng = mean_loss("squared"), np.random.default_rng(3)
    n, lam = len(f.y), f.ridge
    c = np.random.default_rng(0).uniform(0.3, 2.7, n) / n
    f = replace(f, weight=1.0 / c)
    a, w, theirs, blocks = np.zeros(n), np.zeros(f.A.shape[1]), [], np.array_split(range(n), m)
    for t in range(10 * m):
        B = blocks[int(rng.integers(m))] if m > 1 else blocks[0]
        a[B] += (m / (t + 2.0) * (f.A @ w - a - f.y))[B]  # the conjugate's slope is a + y
        w = f.H(-f.A.T @ (c * a) / lam, f.k)
        if t % m == m - 1:
            theirs.append((a.copy(), w))
    backend = SDIHT.as_published(batches=m) if m > 1 else DIHT.as_published()
    states = run(backend, f, seed=3)
    same([s.a[0] for s in states], [a for a, _ in theirs], least=8, rtol=1e-8)
    same([s.current.x for s in states], [w for _, w in theirs], least=8, rtol=1e-8)
