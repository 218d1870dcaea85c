"""The numbers of the backends that no printed iterate has: first steps, halvings, ends."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest

from sparsemodel.designs import DenseDesign
from sparsemodel.interfaces import Cardinality, Context, SparseRegression, Stop, Term
from sparsemodel.losses import HingeLoss, PoissonLoss
from sparsemodel.numerics import RegressionObjective, minimise_restricted
from sparsemodel_backends.arht import ARHT
from sparsemodel_backends.chtp import CHTP
from sparsemodel_backends.diht import DIHT, dual_curvature
from sparsemodel_backends.foba import FoBa
from sparsemodel_backends.gomp import GOMP
from sparsemodel_backends.grahtp import GraHTP
from sparsemodel_backends.ht_svrg import HTSVRG
from sparsemodel_backends.nhtp import NHTP
from sparsemodel_backends.pgd import PGD
from sparsemodel_backends.sdiht import _share


def begun(backend, objective):
    context = Context(minimise_restricted, rng=np.random.default_rng(0))
    return backend.init(objective, context), context


def objective_of(loss, A, y, k, ridge=0.1):
    n, p = A.shape
    term = Term(DenseDesign(A), loss, y, np.full(n, 1.0 / n))
    return RegressionObjective(SparseRegression((term,), np.full(p, ridge), Cardinality(p, k)))


@pytest.mark.parametrize("p", [30, 3000, 100_000])
def test_the_first_step_of_nhtp(problem_of, p):
    """Zhou, Xiu and Qi (2021), section 4: ``10 (1 + s/n) / min(10, ln n)``."""
    A = np.random.default_rng(0).standard_normal((3, p))
    state = begun(NHTP(), problem_of(A, A[:, 0], 2).objective())[0]
    first = 10.0 * (1.0 + 2 / p) / min(10.0, math.log(p))
    assert state.eta == pytest.approx(first * state.unit, rel=1e-12)


def test_a_cycle_of_nhtp_halves_its_step(hard):
    objective = hard.objective()
    backend = NHTP(update_every=10**6)
    state, context = begun(backend, objective)
    weary = replace(state, worse=backend.patience, best=state.point)
    assert backend.step(objective, weary, context).eta == 0.5 * state.eta


def test_the_step_of_two_over_l_is_exact(problem_of):
    """An estimate of the norm, from below, leaves the printed iterates by up to a thousandth."""
    A = np.random.default_rng(0).standard_normal((90, 120))
    objective = problem_of(A, A[:, 0], 2).objective()
    step = 2.0 / np.linalg.eigvalsh(A.T @ A)[-1]
    assert begun(PGD.as_published(), objective)[0].step_size == pytest.approx(step, rel=1e-12)
    # The objective of HT-SVRG is the mean, a 90th of this sum.
    drawn = begun(HTSVRG.as_published(), objective)[0].step_size
    assert drawn == pytest.approx(step / 90.0, rel=1e-12)


def test_the_steps_of_chtp_begin_at_twice_the_exact_one_and_are_halved(halved, run, H):
    """The first support that is better, of the steps ``2 eta, eta, eta / 2, ...``."""
    x, lengths = np.zeros(halved.A.shape[1]), set()
    for state in run(CHTP(), halved):
        g, h = halved.g(x), halved.hessian(x)
        along = H(g, halved.k)
        eta = along @ along / (along @ h @ along)
        for length in 2.0 * 0.5 ** np.arange(8):
            following = halved.argmin(np.flatnonzero(H(x - length * eta * g, halved.k)))
            if halved.f(following) < halved.f(x) * (1.0 - 1e-10):
                lengths.add(length)
                break
        else:
            following = x
        np.testing.assert_allclose(state.point.x, following, rtol=1e-7, atol=1e-9)
        x = following
    assert lengths == {2.0, 1.0}


@pytest.mark.parametrize("hard", ["squared"], indirect=True)
def test_the_ridge_of_arht_is_twice_the_diagonal_and_guesses_are_halved(hard):
    objective = hard.objective()
    backend = ARHT(repeats=1, patience=1)
    state, context = begun(backend, objective)
    diagonal = np.diag(hard.hessian(np.zeros(hard.A.shape[1])))
    assert state.strength == pytest.approx(2.0 * diagonal)
    states = [state]
    while backend.stopped(objective, states[-1]) is None:
        states.append(backend.step(objective, states[-1], context))
    rises = [(a, b) for a, b in pairwise(states) if a.filled and b.lower > a.lower]
    assert len(rises) > 3
    assert all(b.lower == 0.5 * (a.lower + a.upper) for a, b in rises)


def test_arht_gives_a_start_up_after_so_many_swaps(hard):
    """Axiotis and Sviridenko (2020), Algorithm 5: ``2 k log((f(0) - B) / eps)``."""
    objective, backend = hard.objective(), ARHT()
    state, context = begun(backend, objective)
    while state.core is None:
        state = backend.step(objective, state, context)
    limit = 2 * hard.k * math.log(1.0 / backend.tol) + 2
    guess = state.lower  # so low that no swap is enough, and the ridge is released instead
    late = replace(state.core, iteration=math.ceil(limit))
    early = replace(state.core, iteration=math.ceil(limit) - 1)
    assert backend._iterate(objective, state, late, guess, context) is None
    assert backend._iterate(objective, state, early, guess, context) is not None


def test_the_factor_of_diht_s_steps_is_searched():
    """Yuan et al. (2020), section 5: ``c / (t + 2)`` with ``c`` of a short search."""
    rng = np.random.default_rng(0)
    A = 30.0 * rng.standard_normal((60, 30))
    y = np.where(A[:, 0] + 30.0 * rng.standard_normal(60) > 0.0, 1.0, -1.0)
    objective, backend = objective_of(HingeLoss(), A, y, 5), DIHT()
    state, context = begun(backend, objective)
    assert backend.step(objective, state, context).scale == 0.01


def test_the_curvature_of_the_dual_has_a_tenth_to_spare():
    rng = np.random.default_rng(0)
    A, support = rng.standard_normal((40, 12)), np.array([1, 4, 7])
    form = objective_of(PoissonLoss(), A, np.ones(40), 3, ridge=0.5).form
    largest = np.linalg.eigvalsh(A[:, support].T @ A[:, support] / 40 / 0.5)[-1]
    assert largest <= dual_curvature(form, support) <= 1.1001 * largest
    n, k, count = 40, 3, 8
    ratio = (math.sqrt(n / count) + math.sqrt(k)) / (math.sqrt(n) + math.sqrt(k))
    assert _share(form, k, count) == pytest.approx(2.0 * ratio**2)
    assert _share(form, k, 1) == 1.0


def test_diht_ends_where_the_gap_is_the_tolerance(problem_of):
    rng = np.random.default_rng(1)
    A = rng.standard_normal((50, 20))
    problem = problem_of(A, A[:, 0] + rng.standard_normal(50), 4, ridge=500.0)
    objective, backend = problem.objective(), DIHT(tol=1e-3, patience=10**6, restarts=False)
    state, context = begun(backend, objective)
    size = abs(objective.origin().value)
    before = np.inf
    while (why := backend.stopped(objective, state)) is None and state.iteration < 3000:
        before, state = state.gap, backend.step(objective, state, context)
    assert why is Stop.CONVERGED
    assert state.gap <= 1e-3 * size < before


def test_a_step_of_ht_svrg_that_rises_is_halved(hard):
    objective, backend = hard.objective(), HTSVRG()
    state, context = begun(backend, objective)
    long = replace(state, step_size=1e4 * state.step_size)
    with np.errstate(all="ignore"):
        assert backend.step(objective, long, context).step_size == 0.5 * long.step_size


def test_the_first_step_of_pgd_where_no_bound_is_known():
    """Twice the exact step of the quadratic model along the gradient's largest entries."""
    rng = np.random.default_rng(0)
    A = 0.3 * rng.standard_normal((80, 12))
    y = rng.poisson(np.exp(A[:, 0] - A[:, 1])).astype(float)
    objective = objective_of(PoissonLoss(), A, y, 3)
    backend = PGD(relaxation=2.0)
    state, context = begun(backend, objective)
    g = A.T @ (1.0 - y) / 80
    largest = np.argsort(-np.abs(g))[:3]
    h = A[:, largest].T @ A[:, largest] / 80 + 0.1 * np.eye(3)
    step = 2.0 * (g[largest] @ g[largest]) / (g[largest] @ h @ g[largest])
    x, kept = np.zeros(12), np.argsort(-np.abs(g))[:6]
    x[kept] = -step * g[kept]
    found = backend.step(objective, state, context)
    assert found.relaxed.x == pytest.approx(x)


def test_gomp_takes_a_twentieth_at_a_time(problem_of):
    A = np.random.default_rng(0).standard_normal((60, 120))
    assert begun(GOMP(), problem_of(A, A[:, 0], 41).objective())[0].block == 3


def test_grahtp_s_estimate_is_below_the_restricted_smoothness(quadratic):
    objective = quadratic.objective()
    backend = GraHTP(step_size="theory")
    estimate = float(backend.notes(begun(backend, objective)[0])[0].split()[2])
    H = quadratic.hessian(np.zeros(quadratic.A.shape[1]))
    top = np.linalg.eigvalsh(H)[-1]
    single = max(np.linalg.eigvalsh(H[np.ix_(s, s)])[-1] for s in combinations(range(len(H)), 3))
    assert single * (1.0 - 1e-3) <= estimate <= top * (1.0 + 1e-3)


def test_foba_goes_on_to_small_gains(problem_of):
    A = np.eye(12)[:, :8]
    y = A @ np.array([1.0, 0.0, 1e-5, 0.0, 0.0, 0.0, 0.0, 0.0])
    objective = problem_of(A, y, 2).objective()
    state, context = begun(FoBa(), objective)
    for _ in range(4):
        state = FoBa().step(objective, state, context)
    assert np.flatnonzero(state.point.x).tolist() == [0, 2]
