"""IHT, GraHTP, NIHT, PGD, NTGP: ten iterates of the backends and of the printed algorithms."""

from __future__ import annotations

import numpy as np
import pytest

from sparsemodel.interfaces import ModelError
from sparsemodel_backends.chtp import CHTP
from sparsemodel_backends.grahtp import GraHTP
from sparsemodel_backends.iht import IHT
from sparsemodel_backends.iiht import IIHT
from sparsemodel_backends.niht import NIHT
from sparsemodel_backends.ntgp import NTGP
from sparsemodel_backends.pgd import PGD


def longest(problem):
    """The largest eigenvalue of the Hessian at zero, where both losses bend most."""
    return np.linalg.eigvalsh(problem.hessian(np.zeros(problem.A.shape[1])))[-1]


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_fgrahtp(problem, run, H, same, share):
    """Yuan, Li and Zhang (2018), Algorithm 1, bottom."""
    eta, x, theirs = share / longest(problem), np.zeros(problem.A.shape[1]), []
    for _ in range(10):
        x = H(x - eta * problem.g(x), problem.k)  # (S1), (S2)
        theirs.append(x)
    states = run(IHT.as_published(step_size=eta), problem)
    same([s.point.x for s in states], theirs, least=8)


def test_iht(run, H, same, quadratic):
    """Blumensath and Davies (2009), eq. (8): the step is 1 for a design of norm below 1."""
    small = type(quadratic)(quadratic.A / 4.0, quadratic.y, quadratic.k)
    x, theirs = np.zeros(small.A.shape[1]), []
    for _ in range(10):
        x = H(x + small.A.T @ (small.y - small.A @ x), small.k)
        theirs.append(x)
    same([s.point.x for s in run(IHT.as_published(), small)], theirs, least=8)


@pytest.mark.parametrize("eta", [0.4, 1.0])
def test_grahtp(hard, run, H, same, eta):
    """Yuan, Li and Zhang (2018), Algorithm 1, top; for the squared loss Foucart's HTP."""
    eta *= 1.0 if hard.loss == "squared" else 10.0
    x, theirs = np.zeros(hard.A.shape[1]), []
    for _ in range(10):
        z = x - eta * hard.g(x)  # (S1)
        x = hard.argmin(np.flatnonzero(H(z, hard.k)))  # (S2), (S3)
        theirs.append(x)
    states = run(GraHTP.as_published(step_size=eta, units="sum"), hard)
    same([s.point.x for s in states], theirs)


@pytest.mark.parametrize("inner", [1, 3])
@pytest.mark.parametrize("kind", ["gradient", "newton"])
def test_fast_variants_of_grahtp(hard, run, H, same, kind, inner):
    """(S3) as gradient steps, for the squared loss Foucart's FHTP (2011), or as Newton steps."""
    eta = 1.0 if hard.loss == "squared" else 10.0
    options = {"debiasing": kind, "inner_steps": inner, "step_size": eta, "units": "sum"}
    x, theirs = np.zeros(hard.A.shape[1]), []
    states = run(GraHTP.as_published(**options), hard)
    for state in states:  # each from the one before: halving makes much of the last digits
        x = H(x - eta * hard.g(x), hard.k)  # (S1), (S2)
        F = np.flatnonzero(x)
        for _ in range(inner):
            g, h = hard.g(x)[F], hard.hessian(x)[np.ix_(F, F)]
            d = np.linalg.solve(h, g) if kind == "newton" else (g @ g) / (g @ h @ g) * g
            step = np.zeros_like(x)
            step[F] = d
            while hard.f(x - step) > hard.f(x) * (1.0 + 1e-14):  # ours: the paper has no rule
                step /= 2.0
            x = x - step
        theirs.append(x)
        x = state.point.x
    same([s.point.x for s in states], theirs, least=4, rtol=1e-6)


def test_steps_that_would_rise_are_halved(problem_of, run):
    """A Newton step of a logistic loss may overshoot: the iterates go down all the same."""
    A = 9.0 * np.random.default_rng(1).standard_normal((40, 6))
    hard = problem_of(A, np.sign(A[:, 0] + A[:, 1]), 2, "logistic", ridge=1e-4)
    start = np.array([-3.0, 2.0, 0.0, 0.0, 0.0, 0.0])
    S = [0, 1]
    full = start.copy()
    full[S] -= np.linalg.solve(hard.hessian(start)[np.ix_(S, S)], hard.g(start)[S])
    assert not hard.f(full) < hard.f(start), "the full step would rise"
    options = {"debiasing": "newton", "step_size": 1e-12}
    values = [s.point.value for s in run(GraHTP.as_published(**options), hard, start=start)]
    assert values == sorted(values, reverse=True)
    assert values[0] < hard.f(start)


@pytest.mark.parametrize("backend", [GraHTP, IHT])
def test_relaxed_iterates(hard, run, H, same, backend):
    """Remark 9 of Yuan, Li and Zhang: k > kbar on the way, the top kbar at the end."""
    wide, x, theirs = 2 * hard.k, np.zeros(hard.A.shape[1]), []
    eta = 0.4 if hard.loss == "squared" else 10.0
    for _ in range(10):
        x = H(x - eta * hard.g(x), wide)
        if backend is GraHTP:
            x = hard.argmin(np.flatnonzero(x))
        theirs.append(x)
    states = run(backend.as_published(step_size=eta, relaxation=2.0, units="sum"), hard)
    same([s.relaxed.x for s in states], theirs)
    for state, x in zip(states, theirs, strict=True):
        best = hard.argmin(np.flatnonzero(H(x, hard.k)))
        np.testing.assert_allclose(state.point.x, best, rtol=1e-6, atol=1e-8)


def test_options_of_variants_are_checked():
    for backend, options in (
        (GraHTP, {"debiasing": "none"}),
        (GraHTP, {"inner_steps": 0}),
        (GraHTP, {"relaxation": 0.5}),
        (IHT, {"relaxation": 0.5}),
    ):
        with pytest.raises(ModelError, match=next(iter(options))):
            backend(**options)


def test_the_step_of_the_theory(problem, run):
    """Theorem 5(a): ``1 / (2 M_2k)``."""
    tiny = type(problem)(problem.A[:, :5], problem.y, 2, problem.loss, problem.ridge)
    h = tiny.hessian(np.zeros(5))
    M = max(np.linalg.eigvalsh(np.delete(np.delete(h, j, axis=0), j, axis=1))[-1] for j in range(5))
    state = run(GraHTP.as_published(), tiny, 0, first=True)[0]
    assert 0.95 * M <= 1.0 / (2.0 * state.step_size) <= M * (1.0 + 1e-12)


def test_niht(quadratic, run, H, same):
    """Blumensath and Davies (2010), Algorithm 1, with c = 0.01 and kappa = 2."""
    c, kappa, k, A = 0.01, 2.0, quadratic.k, quadratic.A
    h = quadratic.hessian(np.zeros(A.shape[1]))
    x, theirs, shrunk = np.zeros(A.shape[1]), [], 0
    S = np.flatnonzero(H(quadratic.g(x), k))
    for _ in range(10):
        g = quadratic.g(x)
        gs = np.zeros_like(g)
        gs[S] = g[S]
        mu = gs @ gs / (gs @ h @ gs)  # (12)
        following = H(x - mu * g, k)
        if set(np.flatnonzero(following)) != set(S):
            d = following - x
            while mu > (1.0 - c) * (d @ d) / (d @ h @ d):  # (13), (14)
                mu /= kappa * (1.0 - c)
                shrunk += 1
                following = H(x - mu * g, k)
                d = following - x
        x, S = following, np.flatnonzero(following)
        theirs.append(x)
    same([s.point.x for s in run(NIHT.as_published(), quadratic)], theirs, least=8)


def test_the_backtracking_of_iht(problem, run, H, same):
    """The default of IHT: halve until the quadratic with curvature 1/eta lies above ``f``."""
    k, x, theirs, halved = problem.k, np.zeros(problem.A.shape[1]), [], 0
    S = np.flatnonzero(H(problem.g(x), k))
    for _ in range(10):
        g, h = problem.g(x), problem.hessian(x)
        gs = np.zeros_like(g)
        gs[S] = g[S]
        eta = gs @ gs / (gs @ h @ gs)
        while True:
            following = H(x - eta * g, k)
            d = following - x
            bound = problem.f(x) + g @ d + d @ d / (2.0 * eta)
            if problem.f(following) <= bound + 1e-13 * problem.f(x):  # equal at an exact step
                break
            eta, halved = eta / 2.0, halved + 1
        x, S = following, np.flatnonzero(following)
        theirs.append(x)
    assert halved or problem.loss == "logistic"
    same([s.point.x for s in run(IHT(), problem)], theirs, least=8)


@pytest.mark.parametrize("literal", [True, False])
def test_iiht(hard, run, H, same, literal):
    """Pan et al. (2017): Armijo's rule from a fixed step; by default from Barzilai-Borwein's."""
    k, sigma, beta, halved = hard.k, 0.3, 0.5, 0
    backend = IIHT(sigma=sigma, beta=beta, tol=0.0)
    if literal:  # as printed, from a first step that is too long for these data
        sigma, longer = 1e-4, 1.0 if hard.loss == "squared" else 20.0
        backend = IIHT.as_published(**({} if longer == 1.0 else {"step_size": longer}))
    states = run(backend, hard, 11)
    x = [np.zeros(hard.A.shape[1])]
    if not literal:
        x.append(states[0].point.x)
    while len(x) <= 11:
        g = hard.g(x[-1])
        if literal:
            first, unit = longer, 1.0
        else:
            s = x[-1] - x[-2]
            first = unit = s @ s / (s @ (g - hard.g(x[-2])))
        alpha = first
        while True:
            following = H(x[-1] - alpha * g, k)
            d = following - x[-1]
            if hard.f(following) <= hard.f(x[-1]) - sigma / (2.0 * unit) * (d @ d):
                break
            alpha, halved = beta * alpha, halved + 1
        x.append(following)
    assert halved
    same([s.point.x for s in states], x[1:], least=9)


@pytest.mark.parametrize("step", ["lipschitz", 0.4])
def test_pgd(problem, run, H, same, step):
    """Shen and Li (2018), section 5: k = 9 K (here 3 K) and eta = 2 / L, without a line search."""
    eta = 2.0 / longest(problem) if step == "lipschitz" else step / longest(problem)
    x, theirs = np.zeros(problem.A.shape[1]), []
    for _ in range(10):
        x = H(x - eta * problem.g(x), 3 * problem.k)
        theirs.append(x)
    backend = PGD.as_published(relaxation=3.0, step_size=step if step == "lipschitz" else eta)
    states = run(backend, problem)
    same([s.relaxed.x for s in states], theirs, least=8)
    for state, x in zip(states, theirs, strict=True):
        best = problem.argmin(np.flatnonzero(H(x, problem.k)))
        np.testing.assert_allclose(state.point.x, best, rtol=1e-6, atol=1e-8)
    assert PGD.as_published().relaxation == 9.0


@pytest.mark.parametrize("inner", [1, 2, 5])
def test_ntgp(hard, run, H, inner):
    """Yuan and Liu (2014): hard thresholding on the quadratic model, steps exact on the support."""
    problem, rose, different = hard, 0, set()
    k, x = problem.k, np.zeros(problem.A.shape[1])
    for state in run(NTGP.as_published(inner_iter=inner), problem):
        g, h, y = problem.g(x), problem.hessian(x), x
        slope, S = g, np.flatnonzero(x)
        for _ in range(inner):
            along = S if S.size else np.flatnonzero(H(slope, k))
            v = np.zeros_like(y)
            v[along] = slope[along]
            if v @ v <= 1e-12 * slope @ slope:
                v = H(slope, k)
            eta = v @ v / (v @ h @ v)
            while True:
                z = H(y - eta * slope, k)
                d = z - y
                if eta * (d @ h @ d) <= d @ d * (1.0 + 1e-12):
                    break
                eta /= 2.0
            y, slope, S = z, g + h @ (z - x), np.flatnonzero(z)  # the gradient of Q at y
        if np.linalg.norm(y - x) < 1e-3 * np.linalg.norm(x):
            break  # rounding decides about halving now
        np.testing.assert_allclose(state.point.x, y, rtol=1e-7, atol=1e-9)
        rose += problem.f(y) > problem.f(x) * (1.0 + 1e-9)
        x = state.point.x  # each from the one before
        different.add(np.round(x, 6).tobytes())
    assert rose == 0, "it may rise; these do not"
    assert len(different) >= 3


def test_what_no_paper_prints_has_no_literal_mode():
    with pytest.raises(ModelError, match="no literal mode"):
        CHTP.as_published()
    with pytest.raises(ModelError, match="step_size"):
        IIHT(step_size=0.0)
    with pytest.raises(ModelError, match="retries"):
        NTGP(retries=-1)
    with pytest.raises(ModelError, match="lipschitz"):
        PGD(step_size="long")
