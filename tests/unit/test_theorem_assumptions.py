"""What a theorem assumes is needed: runs that break an assumption, and with it the promise."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates.theory import theory
from sparsemodel.designs import DenseDesign
from sparsemodel.interfaces import Cardinality, Context, SparseRegression, Stop, Term
from sparsemodel.losses import SquaredLoss
from sparsemodel.numerics import RegressionObjective, minimise_restricted

DIHT, HTSVRG, IHT, NHTP = (getattr(sm.backends, name) for name in ("DIHT", "HTSVRG", "IHT", "NHTP"))


def told(form, x, backend, source):
    (found,) = (g for g in theory(form, x, (backend,)).guarantees if g.source == source)
    return found


def best_pair(X, y, lam):
    """Return the minimiser over all pairs of columns, and epsilon of DIHT's theorems."""
    N, d = X.shape
    best = np.inf
    for pair in combinations(range(d), 2):
        A = X[:, pair]
        values = np.linalg.solve(A.T @ A / N + lam * np.eye(2), A.T @ y / N)
        value = 0.5 * np.mean((A @ values - y) ** 2) + 0.5 * lam * values @ values
        if value < best:
            best, w = value, np.zeros(d)
            w[list(pair)] = values
    g = X.T @ (X @ w - y) / N + lam * w
    return w, np.abs(w[w != 0.0]).min() - np.abs(g).max() / lam


def nearly_tied():
    """N = 4, d = 6: the second largest entry exceeds the third by a millionth."""
    rng = np.random.default_rng(374)
    X = rng.standard_normal((4, 6))
    X /= np.linalg.norm(X, axis=1)[:, None]
    lam = 10.0 ** rng.uniform(-1.5, 0.5)
    first, second = 2.0 * rng.standard_normal((2, 4))
    low, high = 0.0, 1.0  # epsilon changes its sign between the two targets
    for _ in range(18):
        middle = 0.5 * (low + high)
        if best_pair(X, first + middle * (second - first), lam)[1] > 0.0:
            low = middle
        else:
            high = middle
    y = first + low * (second - first)
    term = Term(DenseDesign(X), SquaredLoss(), y, np.full(4, 0.25))
    return SparseRegression((term,), np.full(6, lam), Cardinality(6, 2)), X, y, lam


def contractions(backend, form, target, steps):
    """Return by what each step multiplies the squared distance of the dual point."""
    objective, context = RegressionObjective(form), Context(minimise_restricted)
    state, out = backend.init(objective, context), []
    last = float(np.sum((state.a[0] - target) ** 2))
    scale = float(target @ target)
    for _ in range(steps):
        state = backend.step(objective, state, context)
        now = float(np.sum((state.a[0] - target) ** 2))
        if last > 1e-16 * scale:
            out.append(now / last)
        last = now
    return np.array(out)


def test_the_step_of_diht_17_needs_the_factor_of_lemma_31b():
    """With l_D of the right support an error is multiplied by hundreds, and promised is 0.31."""
    form, X, y, lam = nearly_tied()
    w, epsilon = best_pair(X, y, lam)
    assert 0.0 < epsilon < 1e-6
    target = X @ w - y
    norm = np.linalg.norm(X, 2)
    own = 0.25 + norm**2 / (16.0 * lam)
    short = DIHT.as_published(schedule="constant")
    assert contractions(short, form, target, 300).max() > 100.0
    assert 1.0 - (0.25 / own) ** 2 < 0.32
    assert told(form, w, short, "DIHT, Theorem 17").status == "fails"
    # The theorem's step keeps its promise at every step of the same problem.
    found = told(form, w, DIHT(), "DIHT, Theorem 17")
    assert found.status == "holds"
    eta, rate = found.numbers["step eta"], found.numbers["contraction an iteration"]
    exact = DIHT.as_published(schedule="constant", step_size=eta)
    assert told(form, w, exact, "DIHT, Theorem 17").status == "holds"
    assert contractions(exact, form, target, 300).max() <= rate + 1e-12


@pytest.mark.parametrize("seed", range(4))
def test_the_step_of_diht_17_contracts(seed):
    rng, epsilon = np.random.default_rng(seed), 0.0
    while epsilon <= 0.0:
        X = rng.standard_normal((8, 6))
        y = X[:, 0] - X[:, 1] + 0.2 * rng.standard_normal(8)
        w, epsilon = best_pair(X, y, 2.0)
    term = Term(DenseDesign(X), SquaredLoss(), y, np.full(8, 0.125))
    form = SparseRegression((term,), np.full(6, 2.0), Cardinality(6, 2))
    found = told(form, w, DIHT(), "DIHT, Theorem 17")
    eta, rate = found.numbers["step eta"], found.numbers["contraction an iteration"]
    backend = DIHT.as_published(schedule="constant", step_size=eta)
    assert contractions(backend, form, X @ w - y, 100).max() <= rate + 1e-12


def test_diht_15_overflows_where_duals_are_not_bounded():
    """Squared losses: a saddle point with epsilon > 0, and the printed steps diverge."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((50, 20))
    w = sm.Variable(20)
    loss = sm.squared_loss(A @ w, 3.0 * A[:, 0] - 3.0 * A[:, 1]) + sm.ridge(w, 1e-4)
    problem = sm.Problem(sm.minimize(loss), sm.card(w) <= 2)
    with np.errstate(all="ignore"):
        solution = problem.solve(DIHT.as_published(), reductions=False, max_iter=500)
    assert solution.stop is Stop.NON_FINITE
    (found,) = (g for g in problem.theory().guarantees if g.source == "DIHT, Theorem 15")
    assert found.status == "fails"
    assert "not bounded" in found.condition


def test_grahtp_2b_with_the_printed_bound_is_no_contraction():
    """rho = 0.619 is below the printed 0.62, and 1.62 rho above one."""
    step = 1.0 - 0.619
    A = np.sqrt(9.0) * np.eye(9)
    term = Term(DenseDesign(A), SquaredLoss(), A[:, 0], np.full(9, 1.0 / 9.0))
    form = SparseRegression((term,), np.zeros(9), Cardinality(9, 2))
    x = np.eye(9)[0]
    for eta, status in ((step, "fails"), (1.0 - 0.617, "holds")):
        found = told(form, x, IHT(step_size=eta), "GraHTP, Theorem 2(b)")
        assert found.status == status
        if status == "holds":
            assert found.numbers["contraction of the error an iteration"] < 1.0
            assert found.numbers["error per unit of the gradient"] > 0.0
    assert 1.62 * 0.619 > 1.0


def test_a_ball_without_the_target_keeps_ht_svrg_away_from_it():
    """TIGHT, Theorem 10 and its corollaries: the assumption that is listed as not checked."""
    rng = np.random.default_rng(2)
    A = rng.standard_normal((60, 12))
    x = np.zeros(12)
    x[:2] = 3.0, -2.0
    term = Term(DenseDesign(A), SquaredLoss(), A @ x, np.full(60, 1.0 / 60.0))
    form = SparseRegression((term,), np.zeros(12), Cardinality(12, 2))
    ends = {}
    for radius in (1.0, 5.0):
        backend = HTSVRG.as_published(step_size=0.01, relaxation=2.0, radius=radius)
        objective = RegressionObjective(form)
        context = Context(minimise_restricted, rng=np.random.default_rng(0))
        state = backend.init(objective, context)
        for _ in range(40):
            state = backend.step(objective, state, context)
        ends[radius] = np.linalg.norm(state.reference.x - x)
    assert ends[5.0] < 1e-3
    assert ends[1.0] > 2.0
    wide = SparseRegression((term,), np.full(12, 1e4), Cardinality(12, 12))
    found = told(wide, np.ones(12), HTSVRG(), "TIGHT, Theorem 10")
    assert found.status == "holds"
    assert "ball" in found.unchecked[0]


def test_nhtp_9_needs_its_bound_on_the_step():
    """A step far above eta-bar ends at a support that is not the best; below it is stationary."""
    A = np.array([[1.0, 0.0, 0.9], [0.0, 1.0, 0.9], [0.0, 0.0, 0.3]])
    term = Term(DenseDesign(A), SquaredLoss(), np.array([1.0, 1.0, 0.2]), np.ones(3))
    form = SparseRegression((term,), np.zeros(3), Cardinality(3, 1))
    objective, context = RegressionObjective(form), Context(minimise_restricted)
    x = np.array([0.0, 0.0, 1.1])
    for eta, status in ((1e-4, "holds"), (0.9, "fails")):
        backend = NHTP(literal=True, update_every=2000, eta=eta)
        assert told(form, x, backend, "NHTP, Theorem 9").status == status
    result = NHTP(literal=True, update_every=2000, eta=1e-4).solve(objective, context)
    assert result.stop is Stop.CONVERGED
    assert np.abs(objective.gradient(result.point)[result.point.support]).max() < 1e-6
