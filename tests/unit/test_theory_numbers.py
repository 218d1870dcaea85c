"""Every number that ``theory()`` gives, against the papers' formulas with constants known by hand.

The designs are diagonal, so that restricted constants are extreme entries, at any level.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import certify
from sparsemodel.certificates.theory import theory
from sparsemodel.designs import DenseDesign
from sparsemodel.interfaces import Cardinality, SparseRegression, Term
from sparsemodel.losses import (
    HuberLoss,
    LogisticLoss,
    SmoothedHingeLoss,
    SquaredHingeLoss,
    SquaredLoss,
)


def diagonal(curvature, k, ridge, *, y=None, loss=None):
    """``f = sum_j (s_j x_j - y_j / sqrt n)^2 / 2 + ridge ||x||^2 / 2`` with ``s_j^2`` given."""
    curvature = np.asarray(curvature, dtype=float)
    n = curvature.size
    y = np.ones(n) if y is None else np.asarray(y, dtype=float)
    term = Term(
        DenseDesign(np.diag(np.sqrt(n * curvature))),
        SquaredLoss() if loss is None else loss,
        y,
        np.full(n, 1.0 / n),
    )
    return SparseRegression((term,), np.full(n, ridge), Cardinality(n, k))


def spread(n, M, m):
    """Half of the entries are ``M``, half ``m``: a support of two meets both."""
    return np.where(np.arange(n) % 2 == 0, M, m)


def told(form, source, x=None):
    at = np.zeros(form.sparsity.size) if x is None else x
    return next(g for g in theory(form, at).guarantees if g.source == source)


@pytest.mark.parametrize(
    ("condition", "a", "b"),
    [
        (1.0, "holds", "holds"),
        (1.154, "holds", "holds"),
        (1.156, "fails", "holds"),
        (1.259, "fails", "holds"),
        (1.261, "fails", "fails"),
        (3.0, "fails", "fails"),
    ],
)
def test_grahtp_2(condition, a, b):
    """``M_3k / m_3k`` below 2 / sqrt 3 and 1.26; the best step m / M^2 gives rho."""
    m, M = 2.0 + 0.5, condition * 2.5
    form = diagonal(spread(20, M - 0.5, m - 0.5), 2, 0.5)
    first, second = told(form, "GraHTP, Theorem 2(a)"), told(form, "GraHTP, Theorem 2(b)")
    assert (first.status, second.status) == (a, b)
    eta = m / M**2
    rho = math.sqrt(max(0.0, 1.0 - 2.0 * eta * m + eta**2 * M**2))
    for guarantee, rate in ((first, rho / (1.0 - rho)), (second, 1.62 * rho)):
        if guarantee.status == "holds":
            step, contraction, error, found = guarantee.numbers.values()
            assert step == pytest.approx(eta, rel=1e-9)
            assert contraction == pytest.approx(rate, rel=1e-6, abs=1e-5)
            assert contraction < 1.0
            unit = 2.83 / (1.0 - 2.0 * rho) if guarantee is first else 2.81 / (1.0 - 1.62 * rho)
            assert error == pytest.approx(unit * eta * math.sqrt(2), rel=1e-4)
            assert found == 2.0 * error  # Corollary 3: 5.66 and 5.62


@pytest.mark.parametrize(("k", "kbar"), [(19, 0), (20, 1)])
def test_grahtp_5(k, kbar):
    """``k >= (2 + 16 (M/m)^2) kbar``, step 1 / (2 M), rate 1 - eta m (1 - eta M) / 2."""
    m, M = 2.0, 2.1  # 2 + 16 * 1.05^2 = 19.64
    found = told(diagonal(spread(2 * k + 8, M - 1.0, m - 1.0), k, 1.0), "GraHTP, Theorem 5(a)")
    assert found.status == ("holds" if kbar else "fails")
    assert found.numbers["targets up to this sparsity"] == kbar
    if kbar:
        eta = 1.0 / (2.0 * M)
        assert found.numbers["step eta"] == pytest.approx(eta, rel=1e-9)
        rate = 1.0 - 0.5 * eta * m * (1.0 - eta * M)
        assert found.numbers["contraction of the objective an iteration"] == pytest.approx(rate)
        error = 2.83 * math.sqrt(k) / m
        assert found.numbers["error per unit of the gradient"] == pytest.approx(error)


def test_the_target_of_grahtp_5_fits_beside_two_supports():
    """The theorem asks for 2 k + kbar < p."""
    form = diagonal(np.ones(42), 20, 1.0)
    assert told(form, "GraHTP, Theorem 5(a)").numbers["targets up to this sparsity"] == 1
    form = diagonal(np.ones(41), 20, 1.0)
    assert told(form, "GraHTP, Theorem 5(a)").status == "fails"


@pytest.mark.parametrize(("M", "m"), [(2.1, 2.0), (0.6, 0.3), (9.0, 0.2)])
def test_nhtp(M, m):
    """The largest step of (24), with sigma = 5e-5 and beta = 1/2 as in section 4."""
    form = diagonal(spread(20, M - 0.1, m - 0.1), 3, 0.1)

    def eta_bar(gamma, sigma=5e-5, beta=0.5):
        alpha = min((1.0 - 2.0 * sigma) / (M / gamma - sigma), 1.0)
        return min(gamma * alpha * beta / M**2, alpha * beta, 1.0 / (4.0 * M))

    first, second = told(form, "NHTP, Theorem 8"), told(form, "NHTP, Theorem 9")
    assert (first.status, second.status) == ("holds", "holds")
    gamma = min(1.0, 2.0 * M)  # (23)
    assert first.numbers["largest step eta"] == pytest.approx(eta_bar(gamma), rel=1e-9)
    gamma = min(1.0, m)
    assert second.numbers["gamma"] == pytest.approx(gamma, rel=1e-9)
    assert second.numbers["largest step eta"] == pytest.approx(eta_bar(gamma), rel=1e-9)
    flat = diagonal(np.where(np.arange(20) < 3, 0.0, 1.0), 3, 0.0)
    assert told(flat, "NHTP, Theorem 9").status == "fails"


@pytest.mark.parametrize(("k", "most"), [(24, 0), (25, 1)])
def test_arht(k, most):
    """``k >= s* max(4 kappa + 7, 12 kappa + 6)`` with kappa = M_2 / m: 24.6 here."""
    m, M = 1.0, 1.55
    found = told(diagonal(spread(2 * k + 2, M - 0.5, m - 0.5), k, 0.5), "ARHT, Theorem 3.1")
    assert found.numbers["targets up to this sparsity"] == most
    assert found.status == ("holds" if most else "fails")


def nu(k, K):
    """TIGHT, Theorem 1, far from p."""
    rho = K / k
    return 1.0 + (rho + math.sqrt((4.0 + rho) * rho)) / 2.0


@pytest.mark.parametrize("K", [1, 2, 3])
@pytest.mark.parametrize("side", [-1, 1])
def test_tight_6_and_7(K, side):
    """``delta <= 1 / sqrt(8 nu)`` for IHT, and the root of Theorem 7 for CoSaMP, at k = 6."""
    k = 6
    v = nu(k, K)
    limits = {
        "TIGHT, Theorem 6": 1.0 / math.sqrt(8.0 * v),
        "TIGHT, Theorem 7": math.sqrt((math.sqrt(32.0 * v + 49.0) - 9.0) / (16.0 * (v - 1.0))),
    }
    for source, limit in limits.items():
        delta = limit * (1.0 + 1e-6 * side)
        sizes = spread(40, 1.0 + delta, 1.0 - delta)
        found = told(diagonal(sizes, k, 0.0), source)
        assert found.numbers.get("targets up to this sparsity", 0) == (K if side < 0 else K - 1)
        assert told(diagonal(sizes, k, 0.3), source).status == "fails"  # not what is minimised


@pytest.mark.parametrize(("k", "K"), [(12, 0), (13, 1), (24, 1), (26, 2)])
def test_tight_10(k, K):
    """``nu < 4L / (4L - alpha)``, which is 4/3 or ``k > 12 K`` where L is alpha; eta < 1/(4L)."""
    ridge = 1e9
    found = told(diagonal(np.ones(60), k, ridge), "TIGHT, Theorem 10")
    assert found.numbers["targets up to this sparsity"] == K
    assert found.status == ("holds" if K else "fails")
    if K:
        L = 60.0 + ridge  # a row has one entry, sqrt 60
        assert found.numbers["L"] == pytest.approx(L, rel=1e-12)
        assert found.numbers["alpha"] == pytest.approx(1.0 + ridge, rel=1e-9)
        assert found.numbers["largest step eta"] == pytest.approx(1.0 / (4.0 * L), rel=1e-12)


def test_tight_10_asks_for_curvature_of_level_k_plus_k():
    """Assumption (A1): here the columns add up to zero, which matters at level 3 k alone."""
    q, k, ridge = 39, 14, 1000.0
    a = np.eye(q) - 1.0 / q  # m_s = 1 - s / q
    term = Term(DenseDesign(math.sqrt(q) * a), SquaredLoss(), np.ones(q), np.full(q, 1.0 / q))
    form = SparseRegression((term,), np.full(q, ridge), Cardinality(q, k))
    found = told(form, "TIGHT, Theorem 10")
    assert found.numbers["targets up to this sparsity"] == 1
    assert found.numbers["alpha"] == pytest.approx(ridge + 1.0 - 2 * k / q, rel=1e-9)
    at_most = theory(form, np.zeros(q)).level(3 * k if 3 * k <= q else q).convexity[1]
    assert at_most == pytest.approx(ridge, rel=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_grahtp_10_is_true(seed):
    """Where it holds, no other pair of coordinates is as good (every pair is tried)."""
    rng = np.random.default_rng(seed)
    n, p, k = 60, 7, 2
    A = rng.standard_normal((n, p)) + 0.3 * rng.standard_normal((n, 1))
    y = A[:, :2] @ [3.0, -4.0] + 10.0 ** -(seed % 4) * rng.standard_normal(n)
    term = Term(DenseDesign(A), SquaredLoss(), y, np.full(n, 1.0 / n))
    form = SparseRegression((term,), np.full(p, 1e-6), Cardinality(p, k))
    best = {}
    for pair in itertools.combinations(range(p), k):
        B = A[:, pair]
        x = np.linalg.solve(B.T @ B / n + 1e-6 * np.eye(k), B.T @ y / n)
        best[0.5 * np.mean((B @ x - y) ** 2) + 5e-7 * x @ x] = pair, x
    (first, x), (second, z) = (best[value] for value in sorted(best)[:2])
    for pair, values in ((first, x), (second, z)):
        at = np.zeros(p)
        at[list(pair)] = values
        found = told(form, "GraHTP, Theorem 10(1)", at)
        assert pair == first or found.status != "holds"
    if seed % 4 == 3:
        at = np.zeros(p)
        at[list(first)] = x
        assert told(form, "GraHTP, Theorem 10(1)", at).status == "holds"


def best_pair(form):
    """The best pair of coordinates of a squared loss with a ridge, and its minimiser."""
    A, y = form.terms[0].design.to_array(), form.terms[0].target
    n, p = A.shape
    best = math.inf, np.zeros(p)
    for pair in itertools.combinations(range(p), 2):
        x, B = np.zeros(p), A[:, pair]
        x[list(pair)] = np.linalg.solve(B.T @ B / n + form.ridge[0] * np.eye(2), B.T @ y / n)
        value = 0.5 * np.mean((A @ x - y) ** 2) + 0.5 * form.ridge[0] * x @ x
        best = min(best, (value, x), key=lambda pair: pair[0])
    return best


@pytest.mark.parametrize("seed", range(3))
def test_grahtp_10_2_is_true(seed):
    """The largest entry of the best six of orthogonal columns is that of every single target."""
    rng = np.random.default_rng(seed)
    form = diagonal(np.ones(14), 6, 0.5, y=np.sqrt(14.0) * rng.standard_normal(14))
    b = form.terms[0].target / np.sqrt(14.0)  # f = sum (x - b)^2 / 2 + x^2 / 4
    sizes = np.sort(np.abs(b))[::-1]
    numbers = told(form, "GraHTP, Theorem 10(2)").numbers
    assert numbers["targets up to this sparsity"] == 1
    least = 0.5 * b @ b - np.sum(sizes[:6] ** 2) / 3.0
    for j, value in itertools.product(range(14), np.linspace(-3.0, 3.0, 13)):
        excess = 0.5 * b @ b - value * b[j] + 0.75 * value**2 - least
        if abs(value) > numbers["smallest coefficient per root of the excess"] * math.sqrt(excess):
            assert abs(b[j]) == sizes[0]


@pytest.mark.parametrize("loss", [SquaredLoss(), LogisticLoss()])
def test_nhtp_29_is_true_for_every_point(loss, rng):
    A = rng.standard_normal((40, 6))
    y = np.sign(A[:, 0] + 0.5 * rng.standard_normal(40))
    term = Term(DenseDesign(A), loss, y, np.full(40, 1.0 / 40))
    form = SparseRegression((term,), np.full(6, 0.05), Cardinality(6, 2))
    w = sm.Variable(6)
    told_loss = (sm.squared_loss if isinstance(loss, SquaredLoss) else sm.logistic_loss)(A @ w, y)
    sm.Problem(sm.minimize(told_loss + sm.ridge(w, 0.05)), sm.card(w) <= 2).solve("grahtp")
    x = w.value
    found = told(form, "NHTP, Theorem 8, (29)", x)
    assert found.status == "holds"
    slope = found.numbers["largest excess per unit of the l1 norm off the support"]

    def f(z):
        return loss.value(A @ z, y).mean() + 0.025 * z @ z

    off = x == 0.0
    near = []
    for scale in (1e-3, 0.1, 1.0):
        for z in x + scale * rng.standard_normal((30, 6)):
            assert f(x) <= f(z) + slope * np.abs(z[off]).sum() + 1e-12
            near.append((f(x) - f(z)) / np.abs(z[off]).sum())
    assert max(near) > 0.1 * slope  # it is not loose


def test_the_threshold_of_remark_4():
    """With the columns of the identity strong duality begins at y_(k+1) / (N (y_(k) - y_(k+1)))."""
    y = np.array([5.0, -4.0, 3.0, 1.0])
    threshold = 3.0 / (4 * (4.0 - 3.0))
    for ridge, held in ((1.01 * threshold, True), (0.99 * threshold, False)):
        term = Term(DenseDesign(np.eye(4)), SquaredLoss(), y, np.full(4, 0.25))
        form = SparseRegression((term,), np.full(4, ridge), Cardinality(4, 2))
        value, x = best_pair(form)
        assert np.flatnonzero(x).tolist() == [0, 1]
        found = told(form, "DIHT, Theorem 9", x)
        assert found.status == ("holds" if held else "open")
        # The slopes r at x: sum of the conjugates and of the two largest squares.
        r = x - y
        h = np.sort(np.square(r / 4.0))[::-1]
        dual = np.mean(-0.5 * r**2 - r * y) - h[:2].sum() / (2.0 * ridge)
        assert (value - dual < 1e-12) == held
        assert (value - certify(form, x).bound < 1e-9) == held
        if held:
            assert found.numbers["distance of the two"] == pytest.approx(
                4.0 / (1.0 + 4.0 * ridge) - 3.0 / (4.0 * ridge), rel=1e-9
            )


@pytest.mark.parametrize("ridge", [0.01, 0.1, 1.0])
def test_the_gap_of_diht_13_holds_for_a_logistic_loss(ridge, rng):
    A = rng.standard_normal((50, 6))
    y = np.sign(A[:, 0] - A[:, 1] + rng.standard_normal(50))
    term = Term(DenseDesign(A), LogisticLoss(), y, np.full(50, 0.02))
    form = SparseRegression((term,), np.full(6, ridge), Cardinality(6, 2))
    w = sm.Variable(6)
    loss = sm.logistic_loss(A @ w, y) + sm.ridge(w, ridge)
    found = sm.Problem(sm.minimize(loss), sm.card(w) <= 2).solve("exhaustive")
    bound = told(form, "DIHT, Theorem 13", w.value)
    g = np.abs(A.T @ LogisticLoss().derivative(A @ w.value, y) / 50).max()
    assert bound.numbers["gap at most"] == pytest.approx(2 / ridge * g**2, rel=1e-9)
    assert found.value - certify(form, w.value).bound <= bound.numbers["gap at most"]


def test_no_saddle_point_is_claimed_at_zero():
    form = diagonal(np.ones(6), 2, 0.5)
    for source in ("DIHT, Theorem 17", "DIHT, Theorem 22"):
        assert told(form, source).status == "open"
    form = diagonal(np.ones(6), 2, 0.5, y=np.ones(6), loss=SmoothedHingeLoss(0.5))
    for source in ("DIHT, Theorem 15", "DIHT, Theorem 19"):
        assert told(form, source).status in {"open", "fails"}


@pytest.mark.parametrize(
    ("loss", "bounded"),
    [
        (SmoothedHingeLoss(0.5), True),
        (HuberLoss(0.7), True),
        (SquaredLoss(), False),
        (SquaredHingeLoss(), False),
        (LogisticLoss(), False),  # the variables are, the slopes are not
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_diht_15_and_19_are_for_bounded_duals(loss, bounded):
    """Section 4.1 of the paper, before Theorem 15."""
    form = diagonal(np.ones(6), 2, 0.5, y=np.array([1.0, -1.0, 1.0, 1.0, -1.0, 1.0]), loss=loss)
    for source in ("DIHT, Theorem 15", "DIHT, Theorem 19"):
        found = told(form, source)
        assert ("not bounded" in found.condition) != bounded
        assert bounded or found.status == "fails"


def saddle(ridge, off, k=2):
    """Two coefficients of size about 2, and gradients of size ``off`` beside them."""
    curvature = np.array([1.0, 1.0, 0.8, 0.8, 0.8, 0.8])
    n = curvature.size
    y = np.sqrt(n) * np.array([2.0, -2.0, off, -off, 0.0, 0.0]) / np.sqrt(curvature)
    form = diagonal(curvature, k, ridge, y=y)
    w = np.zeros(n)
    w[0], w[1] = 2.0 / (1.0 + ridge), -2.0 / (1.0 + ridge)
    return form, w


@pytest.mark.parametrize("ridge", [0.05, 0.1, 0.3])
def test_diht_13(ridge):
    """``k / lambda (2 + M / (m + lambda))^2 g^2`` with g the largest gradient of the losses."""
    form, w = saddle(ridge, 0.01)
    M, m, k = 1.0, 0.8, 2  # of the losses alone
    g = max(ridge * 2.0 / (1.0 + ridge), 0.01)
    norm, root = np.linalg.norm(w), math.sqrt(k)
    holds = (
        np.abs(w[:2]).min() * M > g
        and M * norm > root * g
        and ridge * (M * norm - root * g) <= m * root * g
    )
    found = told(form, "DIHT, Theorem 13", w)
    assert (found.status == "holds") == holds
    if holds:
        gap = k / ridge * (2.0 + M / (m + ridge)) ** 2 * g**2
        assert found.numbers["gap at most"] == pytest.approx(gap, rel=1e-9)


def test_diht_13_holds_somewhere():
    form, w = saddle(0.1, 0.3)
    found = told(form, "DIHT, Theorem 13", w)
    assert found.status == "holds"
    gap = 2 / 0.1 * (2.0 + 1.0 / 0.9) ** 2 * 0.3**2
    assert found.numbers["gap at most"] == pytest.approx(gap, rel=1e-9)


@pytest.mark.parametrize(("ridge", "off"), [(0.5, 0.1), (1.0, 0.3), (0.1, 0.15)])
def test_diht_15_and_17(ridge, off):
    """``epsilon = w_min - ||P'(w)||_inf / lambda``; the step mu_D / l_D^2 and its contraction."""
    form, w = saddle(ridge, off)
    n = 6
    epsilon = 2.0 / (1.0 + ridge) - off / ridge
    assert epsilon > 0.0
    mu_D = 1.0 / n
    slopes = form.terms[0].design.matvec(w) - form.terms[0].target
    X = np.sqrt(n)  # the square is n times the largest curvature
    longer = 1.0 + 4.0 * X * np.linalg.norm(slopes) / (ridge * n * epsilon)  # Lemma 31(b)
    l_D = 1.0 / n + n * 1.0 / (ridge * n**2) * longer
    drawn = told(form, "DIHT, Theorem 22", w).numbers
    assert drawn["decrease a draw of m blocks, times m"] == pytest.approx(
        (mu_D / l_D) ** 2, rel=1e-6
    )
    found = told(form, "DIHT, Theorem 17", w)
    assert found.status == "holds"
    assert found.numbers["epsilon"] == pytest.approx(epsilon, rel=1e-9)
    assert found.numbers["step eta"] == pytest.approx(mu_D / l_D**2, rel=1e-6)
    rate = 1.0 - (mu_D / l_D) ** 2
    assert found.numbers["contraction an iteration"] == pytest.approx(rate, rel=1e-6)
    near, at = saddle(ridge, 1.01 * 2.0 * ridge / (1.0 + ridge))
    assert told(near, "DIHT, Theorem 17", at).status == "open"  # epsilon is negative


def test_the_constants_of_a_logistic_loss_are_a_quarter():
    form = diagonal(np.full(8, 4.0), 2, 0.5, y=np.ones(8), loss=LogisticLoss())
    constants = theory(form, np.zeros(8)).level(2)
    assert constants.smoothness[1] == pytest.approx(4.0 / 4.0 + 0.5, rel=1e-9)
    assert constants.convexity[0] == pytest.approx(0.5, rel=1e-9)
