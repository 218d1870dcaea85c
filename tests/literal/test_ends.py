"""Where the methods end, and what their options take in the place of the printed steps."""

from __future__ import annotations

import numpy as np
import pytest

from sparsemodel.interfaces import Context, Stop
from sparsemodel.numerics import minimise_restricted
from sparsemodel_backends.foba import FoBa
from sparsemodel_backends.gomp import GOMP
from sparsemodel_backends.gp import GP
from sparsemodel_backends.iiht import IIHT
from sparsemodel_backends.local_search import LocalSearch
from sparsemodel_backends.omp import OMP
from sparsemodel_backends.ompr import OMPR
from sparsemodel_backends.sp import SP


@pytest.fixture
def ended():
    """Return a function: the last state of a run, why it ended, and after how many steps."""

    def end(backend, problem, *, start=None, most=400):
        objective = problem.objective()
        context = Context(minimise_restricted, rng=np.random.default_rng(0), start=start)
        state, steps = backend.init(objective, context), 0
        while (why := backend.stopped(objective, state)) is None and steps < most:
            state, steps = backend.step(objective, state, context), steps + 1
        return state, why, steps

    return end


@pytest.mark.parametrize("correlated", ["logistic"], indirect=True)
@pytest.mark.parametrize(
    "backend", [OMP(), GOMP(block=5), OMPR(), SP(), GP(), FoBa(), LocalSearch()], ids=str
)
def test_the_end_is_the_minimiser_on_its_support(correlated, ended, backend):
    x = ended(backend, correlated)[0].point.x
    slope = np.abs(correlated.g(x))[x != 0.0].max()
    assert slope <= 1e-9 * np.abs(correlated.g(np.zeros_like(x))).max()


@pytest.mark.parametrize("seed", range(6))
def test_the_end_of_omp_is_minimised_in_full(problem_of, ended, seed):
    """Those on the way are done to eight digits; at the end no more is found on the support."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((80, 30))
    y = np.where(A[:, :8] @ rng.choice([-1.0, 1.0], 8) + rng.standard_normal(80) > 0.0, 1.0, -1.0)
    problem = problem_of(A, y, 8, "logistic", ridge=1e-3)
    point = ended(OMP(), problem)[0].point
    found = minimise_restricted(problem.objective(), point.support, point)
    assert found.value > point.value or np.allclose(found.x, point.x, rtol=1e-13, atol=0.0)


@pytest.mark.parametrize("share", [0.6, 0.45])
def test_omp_ends_at_a_share_of_the_first_gradient(hard, ended, share):
    S, x = [], np.zeros(hard.A.shape[1])
    first = np.abs(hard.g(x)).max()
    while np.abs(g := hard.g(x)).max() > share * first:
        S.append(int(np.argmax(np.abs(g))))
        x = hard.argmin(S)
    state, why, _ = ended(OMP(scaled=False, tol=share), hard)
    assert why is Stop.CONVERGED
    assert 0 < len(S) < hard.k
    assert np.flatnonzero(state.point.x).tolist() == sorted(S)


def test_ompr_may_remove_what_costs_least(quadratic, run, same):
    k, p = quadratic.k, quadratic.A.shape[1]
    S, theirs = set(range(k)), []
    x = quadratic.argmin(sorted(S))
    start = x.copy()
    for _ in range(10):
        scores = np.abs(quadratic.g(x))
        scores[list(S)] = -np.inf
        i = int(np.argmax(scores))
        j = min(S, key=lambda j: quadratic.f(quadratic.argmin(sorted(S - {j}))))
        following = quadratic.argmin(sorted((S | {i}) - {j}))
        if quadratic.f(following) >= quadratic.f(x):
            theirs += [x] * (10 - len(theirs))
            break
        x, S = following, (S | {i}) - {j}
        theirs.append(x)
    assert len(S) == k < p
    states = run(OMPR.as_published(removal="cheapest"), quadratic, start=start)
    same([s.point.x for s in states], theirs, least=2)


def test_ompr_goes_on_while_it_gains_little(correlated, ended):
    """At the end its own exchange does not lower the objective, however little before."""
    start = np.zeros(correlated.A.shape[1])
    start[: correlated.k] = 1.0
    x = ended(OMPR.as_published(), correlated, start=start)[0].point.x
    S = set(np.flatnonzero(x).tolist())
    scores = np.abs(correlated.g(x))
    scores[list(S)] = -np.inf
    swapped = (S | {int(np.argmax(scores))}) - {min(S, key=lambda j: abs(x[j]))}
    assert correlated.f(correlated.argmin(sorted(swapped))) >= correlated.f(x) * (1.0 - 1e-9)


def test_subspace_pursuit_ends_where_the_objective_does_not_fall(hard, ended):
    state, why, steps = ended(SP.as_published(), hard)
    assert why is Stop.CONVERGED
    assert steps < 30
    before = [ended(SP.as_published(), hard, most=i)[0].point.value for i in range(1, steps)]
    assert state.point.value == min(before)


def test_iiht_ends_where_nothing_moves(hard, ended):
    state, why, _ = ended(IIHT(), hard, most=1000)
    assert why is Stop.CONVERGED
    assert state.change <= IIHT().tol


def test_the_room_of_generalised_omp_is_for_new_units(problem_of, ended):
    """Two columns fit; the gradient is rounding then, and the support is filled all the same."""
    A = np.linalg.qr(np.random.default_rng(0).standard_normal((12, 8)))[0]
    problem = problem_of(A, A[:, 5] - 2.0 * A[:, 6], 6)
    state, _, _ = ended(GOMP(block=2), problem)
    assert state.point.support.size == 6


@pytest.mark.parametrize("correlated", ["logistic"], indirect=True)
def test_local_search_exchanges_what_helps_most_with_other_losses(correlated, ended):
    """With as many candidates as there are columns every exchange of the smallest is judged."""
    start = np.zeros(correlated.A.shape[1])
    start[: correlated.k] = 1.0
    S, x = set(range(correlated.k)), correlated.argmin(range(correlated.k))
    for _ in range(50):
        kept = S - {min(S, key=lambda j: abs(x[j]))}
        trials = [kept | {i} for i in range(start.size) if i not in S]
        best = min(trials, key=lambda T: correlated.f(correlated.argmin(sorted(T))))
        following = correlated.argmin(sorted(best))
        if correlated.f(following) >= correlated.f(x):
            break
        S, x = best, following
    backend = LocalSearch.as_published(candidates=start.size)
    state, _, steps = ended(backend, correlated, start=start)
    assert steps > 2
    assert state.point.value == pytest.approx(correlated.f(x), rel=1e-9)
