"""OMP, OMPR, local search, FoBa, CoSaMP, SP, GP and ARHT against the printed algorithms."""

from __future__ import annotations

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel_backends.arht import ARHT
from sparsemodel_backends.foba import FoBa
from sparsemodel_backends.gomp import GOMP
from sparsemodel_backends.gp import GP
from sparsemodel_backends.grasp import GraSP
from sparsemodel_backends.local_search import LocalSearch
from sparsemodel_backends.omp import OMP
from sparsemodel_backends.ompr import OMPR
from sparsemodel_backends.sp import SP


def size(problem):
    return problem.A.shape[1]


def outside(scores, S):
    """The largest of ``scores`` off the support."""
    scores = np.abs(scores).copy()
    scores[list(S)] = -np.inf
    return int(np.argmax(scores))


def first_support(problem):
    """``S^0 = [s]`` of the papers, as a start."""
    start = np.zeros(size(problem))
    start[: problem.k] = 1.0
    return start


def test_omp(problem, run, with_k, same):
    """Axiotis and Sviridenko (2020), Algorithm 2."""
    problem = with_k(problem, 10)
    x, S, theirs = np.zeros(size(problem)), [], []
    for _ in range(10):
        S.append(outside(problem.g(x), S))  # lines 6, 7
        x = problem.argmin(S)  # line 8
        theirs.append(x)
    same([s.point.x for s in run(OMP.as_published(), problem)], theirs, least=10)


def test_generalised_omp(quadratic, run, with_k, same):
    """Wang, Kwon and Shim (2012), Table I, with N = 2."""
    problem = with_k(quadratic, 20)
    x, S, theirs = np.zeros(size(problem)), set(), []
    for _ in range(10):
        g = np.abs(problem.g(x))
        g[list(S)] = -np.inf
        S |= set(np.argsort(-g, kind="stable")[:2].tolist())  # identification
        x = problem.argmin(sorted(S))  # estimation
        theirs.append(x)
    same([s.point.x for s in run(GOMP.as_published(block=2), problem)], theirs, least=10)


def test_ompr(hard, run, same):
    """Axiotis and Sviridenko (2020), Algorithm 3."""
    S, theirs = set(range(hard.k)), []
    x = hard.argmin(sorted(S))  # line 5
    for _ in range(10):
        i = outside(hard.g(x), S)  # line 8
        j = min(S, key=lambda j: abs(x[j]))  # line 9
        following = hard.argmin(sorted((S | {i}) - {j}))  # lines 10, 11
        if hard.f(following) >= hard.f(x):  # lines 12, 13
            theirs += [x] * (10 - len(theirs))
            break
        x, S = following, (S | {i}) - {j}
        theirs.append(x)
    states = run(OMPR.as_published(), hard, start=first_support(hard))
    same([s.point.x for s in states], theirs, least=4)


@pytest.mark.parametrize("hard", ["squared"], indirect=True)
def test_exhaustive_local_search(hard, run, same):
    """Axiotis and Sviridenko (2020), Algorithm 4; other losses rank insertions by a model."""
    S, theirs = set(range(hard.k)), []
    x = hard.argmin(sorted(S))
    for _ in range(10):
        j = min(S, key=lambda j: x[j] ** 2)  # line 7
        rest = [i for i in range(size(hard)) if i not in S]
        trials = [hard.argmin(sorted((S - {j}) | {i})) for i in rest]
        best = int(np.argmin([hard.f(trial) for trial in trials]))  # line 8
        if hard.f(trials[best]) >= hard.f(x):  # lines 11, 12
            theirs += [x] * (10 - len(theirs))
            break
        x, S = trials[best], (S - {j}) | {rest[best]}
        theirs.append(x)
    states = run(LocalSearch.as_published(), hard, start=first_support(hard))
    same([s.point.x for s in states], theirs, least=4)


def test_foba(correlated, run, same):
    """Zhang (2011), Algorithm 1, with nu = 1/2; the model of a logistic loss ranks these alike."""
    problem = correlated
    x, S, gains, theirs, removed = np.zeros(size(problem)), [], [], [], 0
    for _ in range(10):
        S = [*S, outside(problem.g(x), S)]  # forward
        following = problem.argmin(S)
        gains.append(problem.f(x) - problem.f(following))
        x = following
        while True:  # backward
            rests = [[j for j in S if j != out] for out in S]
            costs = [problem.f(problem.argmin(rest)) - problem.f(x) for rest in rests]
            if min(costs) > 0.5 * gains[-1]:
                break
            S = rests[int(np.argmin(costs))]
            x, removed = problem.argmin(S), removed + 1
            gains.pop()
        theirs.append(x)
    assert removed
    same([s.point.x for s in run(FoBa.as_published(), problem)], theirs, least=8, rtol=1e-5)


def test_grasp(hard, run, same, H):
    """Bahmani, Raj and Boufounos (2013), Algorithm 1; CoSaMP (2009) for the squared loss."""
    k, x, theirs = hard.k, np.zeros(size(hard)), []
    for _ in range(10):
        Z = np.flatnonzero(H(hard.g(x), 2 * k))
        T = np.union1d(Z, np.flatnonzero(x))
        x = H(hard.argmin(T), k)
        theirs.append(x)
    same([s.point.x for s in run(GraSP.as_published(), hard)], theirs)


def test_subspace_pursuit(hard, run, same, H):
    """Dai and Milenkovic (2009), Algorithm 1, with the gradient for the correlations."""
    k = hard.k
    S = np.flatnonzero(H(hard.g(np.zeros(size(hard))), k))  # initialisation
    x = hard.argmin(S)
    theirs = [x]
    for _ in range(9):
        scores = hard.g(x)
        scores[S] = 0.0
        merged = np.union1d(S, np.flatnonzero(H(scores, k)))  # step 1
        T = np.flatnonzero(H(hard.argmin(merged), k))  # steps 2, 3
        following = hard.argmin(T)  # step 4
        if hard.f(following) >= hard.f(x):  # step 5
            theirs += [x] * (10 - len(theirs))
            break
        x, S = following, T
        theirs.append(x)
    same([s.point.x for s in run(SP.as_published(), hard)], theirs, least=2)


def test_gradient_pursuit(quadratic, run, with_k, same):
    """Blumensath and Davies (2008): a step along the gradient on the support, of exact length."""
    problem = with_k(quadratic, 10)
    h = problem.hessian(np.zeros(size(problem)))
    x, S, theirs = np.zeros(size(problem)), set(), []
    for _ in range(10):
        g = problem.g(x)
        S.add(int(np.argmax(np.abs(g))))
        d = np.zeros_like(g)
        d[list(S)] = g[list(S)]
        x = x - (d @ d) / (d @ h @ d) * d
        theirs.append(x)
    same([s.point.x for s in run(GP.as_published(), problem)], theirs, least=10)


def arht_core(problem, start, rho, opt, progress, rng):
    """Axiotis and Sviridenko (2020), Algorithm 5, with the stop of section 6.3.2."""
    s, p = problem.k, size(problem)
    R, S = np.ones(p), set(start)  # lines 7, 8
    R[list(problem.free)] = 0.0
    x = problem.argmin(sorted(S), rho * R)  # line 9
    while True:
        yield x, R
        if problem.f(problem.argmin(sorted(S))) <= opt:  # lines 12, 13
            return

        def g_R(z, R=R):
            return problem.f(z) + 0.5 * rho * np.sum(R * z**2)

        i = outside(problem.g(x) + rho * R * x, S | set(problem.free))  # line 15
        j = min(S, key=lambda j: abs(x[j]))  # line 16
        swapped = (S | {i}) - {j}  # line 17
        following = problem.argmin(sorted(swapped), rho * R)  # line 18
        if g_R(x) - g_R(following) < progress / s * (g_R(x) - opt):  # line 19, (17)
            if 2 * sum(R[list(S)] == 0.0) >= s:
                return
            weights = R * x**2
            R = R.copy()
            R[rng.choice(p, p=weights / weights.sum())] = 0.0  # lines 21, 22
            x = problem.argmin(sorted(S), rho * R)  # line 23
        else:
            x, S = following, swapped


@pytest.mark.parametrize("progress", [1.0, 1e-3])
@pytest.mark.parametrize("seed", [0])
def test_arht(hard, run, same, seed, progress):
    """The core towards a value that is out of reach: swaps, and coordinates that leave R."""
    same_core(hard, run, same, seed, progress)


@pytest.mark.parametrize("progress", [1.0, 1e-3])
def test_arht_with_weights_and_an_intercept(weighted_hard, run, same, progress):
    same_core(weighted_hard, run, same, 0, progress)


def same_core(hard, run, same, seed, progress):
    top = np.linalg.eigvalsh(hard.hessian(np.zeros(size(hard))))[-1]
    rho, opt = 0.3 * top, 0.1 * hard.f(hard.argmin(range(hard.k)))
    start = range(hard.k)
    core = arht_core(hard, start, rho, opt, progress, np.random.default_rng(seed))
    theirs = [x for x, _ in zip(core, range(11), strict=False)]
    given = {"smoothness": rho, "target": opt, "progress": progress}
    backend = ARHT.as_published(**given, tol=1e-9, units="declared")
    states = run(backend, hard, 24, start=first_support(hard), seed=seed)
    ours = []
    for state in states:
        if state.attempts:
            break
        if state.core is not None and state.core.checked and len(ours) < state.core.iteration + 1:
            ours.append((state.core.point.x, state.core.regularised.astype(float)))
    count = min(len(ours), len(theirs))
    assert count >= 6
    assert len(ours) == len(theirs) or count == 11, "both end at the same iterate"
    assert any(np.any(R == 0.0) for _, R in theirs[:count]) or progress < 1.0
    same([x for x, _ in ours[:count]], [x for x, _ in theirs[:count]], least=4)
    counted = np.setdiff1d(range(size(hard)), hard.free)
    for (_, mine), (_, other) in zip(ours, theirs, strict=False):
        np.testing.assert_array_equal(mine[counted], other[counted])


def test_arht_takes_the_restricted_smoothness_of_pairs(quadratic, run):
    """Without columns of one norm rho is rho_2^+, from below."""
    h = quadratic.hessian(np.zeros(size(quadratic)))
    p = size(quadratic)
    pairs = [h[np.ix_([i, j], [i, j])] for i in range(p) for j in range(i)]
    top = max(np.linalg.eigvalsh(pair)[-1] for pair in pairs)
    state = run(ARHT(scaled=False), quadratic, 0, first=True)[0]
    assert 0.9 * top <= state.strength[0] <= top * (1.0 + 1e-12)


def test_arht_as_published_has_identity_rows(quadratic, run, problem_of):
    """Section 6.2.2: rows of the identity below the columns are half the squared norm."""
    for weight in (1.0, 0.2, 30.0):
        problem = problem_of(quadratic.A, quadratic.y, quadratic.k, weight=weight)
        state = run(ARHT.as_published(), problem, 0, first=True)[0]
        np.testing.assert_allclose(state.strength, 1.0 / weight, rtol=1e-12)


def test_arht_searches_the_value_as_printed(hard, run):
    """Algorithm 6, lines 21 to 29: all runs of every guess, the slack of a third of epsilon."""
    backend = ARHT.as_published(repeats=3, patience=3, tol=0.1)
    guesses, state = [], None
    for following in run(backend, hard, 2000, seed=1):
        if (
            state is not None
            and state.filled
            and following.attempts == 0
            and state.core is not None
        ):
            middle = 0.5 * (state.lower + state.upper)
            if (following.lower, following.upper) != (state.lower, state.upper):
                reached = following.upper < state.upper
                assert following.lower == (state.lower if reached else middle)
                assert not reached or following.upper <= middle + state.precision / 3.0
                assert state.attempts == 2, "the third run ended the guess"
                guesses.append(reached)
        state = following
        if backend.stopped(hard.objective(), state) is not None:
            break
    assert len(guesses) >= 3
    assert state.upper - state.lower <= state.precision


def test_the_exchange_of_the_search_is_no_worse_than_that_of_ompr(quadratic, run):
    """What local search says of itself, for the squared loss of stored columns."""
    for seed in range(5):
        start = np.zeros(size(quadratic))
        chosen = np.random.default_rng(seed).choice(size(quadratic), quadratic.k, replace=False)
        start[chosen] = 1.0
        ours = run(LocalSearch(), quadratic, 1, start=start)[0].point.value
        theirs = run(OMPR(), quadratic, 1, start=start)[0].point.value
        assert ours <= theirs * (1.0 + 1e-12)


@pytest.mark.parametrize("loss", [sm.smoothed_hinge_loss, sm.huber_loss])
def test_arht_minimises_losses_of_pieces_from_points_of_its_own_objective(loss) -> None:
    rng = np.random.default_rng(4)
    A = rng.standard_normal((30, 6))
    w = sm.Variable(6)
    signs = np.where(A[:, 0] - A[:, 3] > 0.0, 1.0, -1.0)
    goal = sm.minimize(loss(A @ w, signs) + sm.ridge(w, 0.1))
    problem = sm.Problem(goal, sm.card(w) <= 2)
    assert problem.solve("arht").value >= problem.solve("exhaustive").value * (1.0 - 1e-9)
