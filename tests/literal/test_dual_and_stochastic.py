"""DIHT, SDIHT and HT-SVRG against ten steps of the printed algorithms, with the same draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sparsemodel.interfaces import ModelError
from sparsemodel_backends.diht import DIHT
from sparsemodel_backends.ht_svrg import HTSVRG
from sparsemodel_backends.sdiht import SDIHT

MU = {"squared": 1.0, "smoothed hinge": 0.25}
"""The losses are 1/mu-smooth."""


def conjugate(problem):
    """Return the slope of the conjugates and the projection onto their domains."""
    y = problem.y
    if problem.loss == "squared":
        return lambda a: a + y, lambda a: a
    gamma = {"smoothed hinge": 0.25, "hinge": 0.0}[problem.loss]
    return lambda a: y + gamma * a, lambda a: -y * np.clip(-y * a, 0.0, 1.0)


def diht(problem, steps, H, step, blocks=None, rng=None):
    """Algorithm 2 of Yuan et al. (2020), which with one block is Algorithm 1."""
    X, N, lam, k = problem.A, len(problem.y), problem.ridge, problem.k
    slope, project = conjugate(problem)
    parts = np.array_split(np.arange(N), blocks or 1)
    a, w, total, out = np.zeros(N), np.zeros(X.shape[1]), np.zeros(X.shape[1]), []
    for t in range(1, steps + 1):
        B = parts[int(rng.integers(len(parts)))] if blocks else parts[0]
        g = (X @ w - slope(a)) / N
        moved = a.copy()
        moved[B] = project(a + step(t - 1) * g)[B]  # (9), (11)
        total = total - X[B].T @ (moved[B] - a[B]) / (lam * N)  # (12)
        a, w = moved, H(total, k)  # (10)
        out.append((a, w))
    return out


def constant_step(problem):
    """``mu_D / l_D^2`` of Theorem 17 for the squared loss, where mu = l = 1."""
    N = len(problem.y)
    mu_D = 1.0 / N
    l_D = 1.0 / N + np.linalg.norm(problem.A, 2) ** 2 / (problem.ridge * N**2)
    return mu_D / l_D**2


@pytest.mark.parametrize("loss", ["squared", "smoothed hinge"])
def test_diht(mean_loss, run, H, same, loss):
    """Algorithm 1 with the step of Theorem 15."""
    problem = mean_loss(loss)
    N = len(problem.y)
    theirs = diht(problem, 10, H, lambda t: N / (MU[loss] * (t + 2.0)))
    states = run(DIHT.as_published(), problem)
    same([s.a[0] for s in states], [a for a, _ in theirs], least=8, rtol=1e-9)
    same([s.current.x for s in states], [w for _, w in theirs], least=8, rtol=1e-9)


def test_diht_for_the_hinge_loss(mean_loss, run, H, same):
    """Steps c / (t + 2) in units of 1/N; c is the backend's own choice of five."""
    problem = mean_loss("hinge", ridge=0.05)
    states = run(DIHT.as_published(), problem)
    c = states[0].scale
    assert c in (1e-2, 1e-1, 1.0, 1e1, 1e2)
    theirs = diht(problem, 10, H, lambda t: c * len(problem.y) / (t + 2.0))
    same([s.a[0] for s in states], [a for a, _ in theirs], least=4, rtol=1e-9)


def test_the_constant_step(mean_loss, run, H, same):
    """Algorithm 1 with the step of Theorem 17."""
    problem = mean_loss("squared")
    theirs = diht(problem, 10, H, lambda t: constant_step(problem))
    states = run(DIHT.as_published(schedule="constant"), problem)
    same([s.a[0] for s in states], [a for a, _ in theirs], least=8, rtol=1e-9)
    same([s.current.x for s in states], [w for _, w in theirs], least=8, rtol=1e-9)


def test_the_constant_step_asks_for_curvature(mean_loss):
    form = mean_loss("smoothed hinge").objective().form
    reason = "needs smooth and strongly convex losses for the constant step"
    assert DIHT(schedule="constant").objections(form) == (reason,)
    assert SDIHT(schedule="constant").objections(form) == (reason,)
    with pytest.raises(ModelError, match="schedule"):
        DIHT(schedule="fast")
    with pytest.raises(ModelError, match="sampling"):
        SDIHT(sampling="gaps")


@pytest.mark.parametrize("schedule", ["decreasing", "constant"])
@pytest.mark.parametrize(("loss", "m"), [("squared", 5), ("smoothed hinge", 24), ("squared", 7)])
def test_sdiht(mean_loss, run, H, same, loss, m, schedule):
    """Algorithm 2 with the steps of Theorems 19 and 22: ten times m blocks."""
    problem = mean_loss(loss)
    if schedule == "constant":
        problem = mean_loss("squared")
        step = constant_step(problem)
    N, rng = len(problem.y), np.random.default_rng(3)

    def eta(t):
        return step if schedule == "constant" else m * N / (MU[loss] * (t + 2.0))

    theirs = diht(problem, 10 * m, H, eta, m, rng)[m - 1 :: m]
    states = run(SDIHT.as_published(batches=m, schedule=schedule), problem, seed=3)
    same([s.a[0] for s in states], [a for a, _ in theirs], least=8, rtol=1e-8)
    same([s.current.x for s in states], [w for _, w in theirs], least=8, rtol=1e-8)


def ht_svrg(problem, stages, H, *, k, m, eta, omega, rng):
    """Shen and Li (2018), Algorithm 1; f is the mean of f_i, each with the ridge."""
    A, y, n, lam = problem.A, problem.y, len(problem.y), problem.ridge

    def gradient(i, x):
        if problem.loss == "squared":
            return A[i] * (A[i] @ x - y[i]) + lam * x
        return -y[i] * A[i] / (1.0 + np.exp(y[i] * (A[i] @ x))) + lam * x

    reference, out = np.zeros(A.shape[1]), []
    for _ in range(stages):
        mu = sum(gradient(i, reference) for i in range(n)) / n  # line 2
        j = int(rng.integers(m))  # line 6, drawn first: x^0, ..., x^(m-1)
        x = reference
        for _ in range(j):
            i = int(rng.integers(n))  # line 4
            b = x - eta * (gradient(i, x) - gradient(i, reference) + mu)
            r = H(b, k)
            x = r / max(1.0, np.linalg.norm(r) / omega)  # Pi_omega
        reference = x
        out.append(reference)
    return out


@pytest.mark.parametrize(("omega", "relaxation", "m"), [(np.inf, 1.0, None), (0.2, 2.0, 31)])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_ht_svrg(mean_loss, run, H, same, loss, omega, relaxation, m):
    problem = mean_loss(loss, k=3)
    n = len(problem.y)
    eta = 0.1 / max(np.linalg.norm(problem.A, axis=1)) ** 2
    theirs = ht_svrg(
        problem,
        10,
        H,
        k=int(relaxation * problem.k),
        m=m or 3 * n,
        eta=eta,
        omega=omega,
        rng=np.random.default_rng(11),
    )
    radius = None if omega == np.inf else omega
    backend = HTSVRG.as_published(
        step_size=eta, relaxation=relaxation, radius=radius, inner_steps=m
    )
    states = run(backend, problem, seed=11)
    same([s.reference.x for s in states], theirs, least=8)
    for state, x in zip(states, theirs, strict=True):
        best = problem.argmin(np.flatnonzero(H(x, problem.k)))
        if state.debiased:
            np.testing.assert_allclose(state.point.x, best, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_ht_saga(mean_loss, run, H, same, loss):
    """Shen and Li (2018), Algorithm 2, n steps a stage; f has no ridge, which is not remembered."""
    problem, rng = mean_loss(loss, k=3, ridge=0.0), np.random.default_rng(4)
    A, y, n = problem.A, problem.y, len(problem.y)
    eta = 1.0 / (3.0 * max(np.linalg.norm(A, axis=1)) ** 2)

    def gradient(i, x):
        if loss == "squared":
            return A[i] * (A[i] @ x - y[i])
        return -y[i] * A[i] / (1.0 + np.exp(y[i] * (A[i] @ x)))

    x, theirs = np.zeros(A.shape[1]), []
    table = np.array([gradient(i, x) for i in range(n)])
    for t in range(10 * n):
        j = int(rng.integers(n))  # line 1
        new, mean = gradient(j, x), table.mean(axis=0)
        x = H(x - eta * (new - table[j] + mean), 6)  # line 3
        table[j] = new  # line 2
        if t % n == n - 1:
            theirs.append(x)
    options = {"relaxation": 2.0, "step_size": eta, "inner_steps": n}
    states = run(HTSVRG.as_published(variance_reduction="saga", **options), problem, seed=4)
    same([s.reference.x for s in states], theirs, least=8)
    assert all(np.count_nonzero(s.point.x) <= 3 for s in states)


def test_ht_saga_with_a_ridge_ends_where_the_ridge_is(mean_loss, run):
    """The gradient of the ridge is read at the point: the limit is a minimiser on its support."""
    problem = mean_loss("logistic", k=3)
    eta = 1.0 / max(np.linalg.norm(problem.A, axis=1)) ** 2
    backend = HTSVRG.as_published(variance_reduction="saga", relaxation=1.0, step_size=eta)
    x = run(backend, problem, 60)[-1].reference.x
    np.testing.assert_allclose(x, problem.argmin(np.flatnonzero(x)), rtol=1e-8, atol=1e-10)


def test_the_parameters_of_the_paper(mean_loss, run):
    """Section 5: m = 3n single observations, k = 9 K, eta = 2 / svds(A A') of single ones.

    A step 2 / L of the gradient of the mean would be n times as long.
    """
    problem = mean_loss("squared", k=1)
    backend = HTSVRG.as_published()
    eta = 2.0 / np.linalg.norm(problem.A @ problem.A.T, 2)
    for weight in (1.0, float(len(problem.y))):  # a sum and a mean
        state = run(backend, replace(problem, weight=weight), 0, first=True)[0]
        mean = state.step_size * len(problem.y) / weight
        assert mean == pytest.approx(eta, rel=1e-9)
    assert (backend.relaxation, backend.inner_epochs, backend.pick) == (9.0, 3, "random")
    for wrong in (
        {"sampling": "none"},
        {"variance_reduction": "sag"},
        {"inner_steps": 0},
        {"relaxation": 0.5},
    ):
        with pytest.raises(ModelError):
            HTSVRG(**wrong)
