"""Entries that are zero or away from it, against bounded least squares on all supports."""

from __future__ import annotations

from itertools import combinations, product

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import lsq_linear

import sparsemodel as sm
from sparsemodel.certificates import Claim, verify
from sparsemodel.checker.__main__ import main
from sparsemodel.interfaces import CertificateError, InfeasibleError, ModelError
from tests.referee import RefereeError, judge

N, P, RIDGE = 25, 6, 0.05


def data(seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((N, P)) + 0.5 * rng.standard_normal((N, 1))
    return A, A[:, :3] @ rng.uniform(0.0, 0.5, 3) + 0.1 * rng.standard_normal(N)


def best(A, b, low, high, k=P, start=0):
    """Return the least objective over all supports of at most ``k``, those before ``start`` in."""
    found = np.inf
    for size in range(k + 1):
        for more in combinations(range(start, P), size):
            s = [*range(start), *more]
            rows = np.vstack([A[:, s] / np.sqrt(N), np.sqrt(RIDGE) * np.eye(len(s))])
            t = np.concatenate([b / np.sqrt(N), np.zeros(len(s))])
            ends = [np.where(np.array(s) < start, np.nan, e) for e in (low, high)]
            ends = [np.nan_to_num(e, nan=n) for e, n in zip(ends, (-np.inf, np.inf), strict=True)]
            x = lsq_linear(rows, t, ends, tol=1e-14).x if s else np.zeros(0)
            found = min(found, 0.5 * float(np.sum((rows @ x - t) ** 2)))
    return found


def declared(A, b):
    w = sm.Variable(P, name="w")
    goal = sm.minimize(sm.squared_loss(A @ w, b) + sm.ridge(w, RIDGE))
    return w, lambda *c: sm.Problem(goal, *c)


@pytest.mark.parametrize("backend", [None, pytest.param("exchange", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("low", "high", "k"), [(0.2, 0.4, P), (0.1, np.inf, 2), (-0.3, -0.1, 3)])
def test_the_best_of_all_supports_is_found(low, high, k, backend):
    for seed in range(3):
        A, b = data(seed)
        b = -b if high < 0.0 else b
        w, problem = declared(A, b)
        made = problem(sm.semicontinuous(w, low, high), sm.card(w) <= k)
        solution = made.solve(backend)
        assert np.isclose(solution.value, best(A, b, low, min(high, 9.0), k), rtol=1e-9)
        held = w.value[w.value != 0.0]
        assert np.all((held >= low) & (held <= high))
        judge(made, solution)


def test_sizes_on_both_sides_are_two_variables():
    """As the message says; against bounded least squares on all supports with all signs."""
    A, b = data(2)
    b = b - A[:, 3:] @ [0.5, 0.1, 0.0]
    u, v = sm.Variable(P, name="u"), sm.Variable(P, name="v")
    goal = sm.squared_loss(A @ u - A @ v, b) + sm.ridge(u, RIDGE) + sm.ridge(v, RIDGE)
    limits = [sm.card(u[[j]]) + sm.card(v[[j]]) <= 1 for j in range(P)]
    both = [sm.semicontinuous(one, 0.2, 0.4) for one in (u, v)]
    problem = sm.Problem(sm.minimize(goal), both, sm.card(u) + sm.card(v) <= 2, limits)
    solution, found = problem.solve(), []
    for signs in product((-1.0, 0.0, 1.0), repeat=P):
        s = np.flatnonzero(signs)
        if 0 < s.size <= 2:
            rows = np.vstack([A[:, s] / np.sqrt(N), np.sqrt(RIDGE) * np.eye(s.size)])
            t, side = np.concatenate([b / np.sqrt(N), np.zeros(s.size)]), np.array(signs)[s]
            x = lsq_linear(rows * side, t, (0.2, 0.4), tol=1e-14).x
            found.append(0.5 * float(np.sum((rows @ (side * x) - t) ** 2)))
    assert np.isclose(solution.value, min(found), rtol=1e-9)
    w = u.value - v.value
    assert np.all(u.value * v.value == 0.0)
    assert w.min() < 0.0 < w.max()
    assert np.all((w == 0.0) | (np.abs(w) >= 0.2))
    proof = problem.prove()
    assert proof.gap <= 1e-4 * solution.value
    judge(problem, proof)


@pytest.mark.parametrize("scale", [1.0, -1e-5, 1e5])
def test_a_proof_closes_and_both_readers_accept_it(scale, tmp_path):
    """The bound knows that an entry in the model is away from zero; so a proof ends without gap."""
    A, b = data(1)
    w = sm.Variable(P, name="w")
    goal = sm.squared_loss((scale * A) @ w, b) + sm.ridge(w, RIDGE * scale**2)
    ends = sorted([0.2 / scale, 0.35 / scale])
    problem = sm.Problem(sm.minimize(goal), sm.semicontinuous(w, *ends))
    certificate = problem.prove(gap=1e-6)
    reference = best(A, b, 0.2, 0.35)
    assert certificate.claim is Claim.OPTIMAL
    assert reference * (1.0 - 1e-5) <= certificate.bound <= reference * (1.0 + 1e-9)
    verify(certificate, problem.form)
    certificate.save(tmp_path / "c.json")
    np.savez(tmp_path / "d.npz", A=scale * A, b=b)
    assert main([str(tmp_path / "c.json"), str(tmp_path / "d.npz"), "--exact"]) == 0
    other = sm.Problem(sm.minimize(goal), sm.semicontinuous(w, 1.01 * ends[0], 0.99 * ends[1]))
    with pytest.raises(CertificateError, match="box"):
        verify(tmp_path / "c.json", other.form)


def test_entries_that_are_left_out_have_any_size():
    A, b = data(2)
    w, problem = declared(A, b)
    made = problem(sm.semicontinuous(w[2:], 0.2, 0.3))
    assert np.isclose(made.solve().value, best(A, b, 0.2, 0.3, start=2), rtol=1e-9)


def test_a_portfolio_sums_to_one_with_positions_of_a_least_size():
    A, b = data(3)
    w, problem = declared(A, b)
    made = problem(sm.semicontinuous(w, 0.15, 0.5), w.sum() == 1.0, sm.card(w) <= 3)
    found = made.solve("exchange")
    assert np.isclose(found.value, made.solve("exhaustive").value, rtol=1e-8)
    judge(made, found)
    with pytest.raises(InfeasibleError):
        problem(sm.semicontinuous(w, 0.15, 0.5), w.sum() == 1.0, sm.card(w) <= 1).solve()


def test_bounds_beside_it_hold_as_well():
    A, b = data(0)
    w, problem = declared(A, b)
    problem(sm.semicontinuous(w, 0.2, 0.5), w[0] >= 0.01, w[1] <= 0.1).solve()
    assert w.value[0] >= 0.2
    assert w.value[1] == 0.0


def test_the_referee_finds_an_entry_that_is_too_near_to_zero():
    A, b = data(1)
    w, problem = declared(A, b)
    solution = problem(sm.semicontinuous(w, 0.01)).solve()
    with pytest.raises(RefereeError, match="below"):
        judge(problem(sm.semicontinuous(w, float(w.value.max()) + 0.1)), solution)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda w: sm.semicontinuous(w, -0.1, 0.1), "both_signs=True"),
        (lambda w: sm.semicontinuous(w, 0.3, 0.1), "lower <= upper"),
        (lambda w: sm.semicontinuous(np.eye(P) @ w, 0.1), "takes a vector variable"),
        (lambda w: sm.semicontinuous(sm.Variable((3, 2)), 0.1), "take columns"),
        (
            lambda w: sm.Problem(
                sm.minimize(sm.squared_loss(np.eye(P) @ w, np.ones(P))),
                sm.semicontinuous(w[:2], 0.1),
                sm.card(w[2:], groups=[0, 0, 1, 1]) <= 1,
            ),
            "single entries",
        ),
    ],
)
def test_what_cannot_be_declared_is_refused_with_what_to_write(wrong, words):
    with pytest.raises(ModelError, match=words):
        wrong(sm.Variable(P, name="w"))


def test_coefficients_that_a_neighbour_at_its_least_size_makes_larger_are_within_their_bounds():
    rng = np.random.default_rng(0)
    gram = np.eye(6)
    gram[0, 1] = gram[1, 0] = -0.8
    gram[2:, 2:] = 0.75 + 0.25 * np.eye(4)  # too close together for dominance alone
    A = np.linalg.qr(rng.standard_normal((30, 6)))[0] @ np.linalg.cholesky(gram).T
    y = A @ np.linalg.solve(gram, np.r_[2.75, -1.84, 0.01 * rng.standard_normal(4)])
    w = sm.Variable(6, name="w")
    loss = sm.squared_loss(A @ w, y, reduction="sum")
    problem = sm.Problem(
        sm.minimize(loss),
        [sm.card(w) <= 2, sm.semicontinuous(w, np.r_[1e-3, 1.7, [1e-3] * 4], np.inf)],
    )
    proof = problem.prove()
    assert proof.claim is Claim.OPTIMAL
    # Without the second the first is 2.75, with it at its own choice 3.55, and at its least size:
    assert proof.x[1] == pytest.approx(1.7)
    assert proof.x[0] > 4.1
    assert proof.witness.bounds is None or proof.witness.bounds.radius[0] > proof.x[0]


@pytest.mark.parametrize(("least", "k", "total"), [(1.0, 2, 1.0), (0.3, 4, 1.0), (0.4, 3, 0.9)])
def test_a_sum_that_few_positions_alone_can_have_is_feasible(least, k, total):
    A, b = data(1)
    w, problem = declared(A, b)
    made = problem(sm.card(w) <= k, sm.semicontinuous(w, least, np.inf), w.sum() == total)
    judge(made, made.solve())


@pytest.mark.parametrize("total", [None, 1.0])
def test_positions_without_a_ridge_are_proved_by_compiled_nodes(tmp_path, total):
    pytest.importorskip("numba")
    rng = np.random.default_rng(2)
    A, w = rng.standard_normal((8, P)), sm.Variable(P, name="w")
    y = A @ np.r_[0.2, 0.6, 0.25, np.zeros(3)] + 0.2 * rng.standard_normal(8)
    rules = [sm.card(w) <= 2, sm.semicontinuous(w, 0.3, 2.0)]
    problem = sm.Problem(
        sm.minimize(sm.squared_loss(A @ w, y)),
        rules + ([] if total is None else [w.sum() == total]),
    )
    proof = problem.prove()
    assert proof.proof["tree"]["gram"] is True
    assert proof.relative_gap <= 1e-4
    least = 0.5 * y @ y / 8 if total is None else np.inf
    for size in (1, 2):
        for s in combinations(range(P), size):
            rows = np.vstack([A[:, s] / np.sqrt(8), 1e6 * np.ones(size) * (total is not None)])
            x = lsq_linear(
                rows, np.r_[y / np.sqrt(8), 1e6 * (total or 0.0)], (0.3, 2.0), tol=1e-14
            ).x
            if total is None or abs(x.sum() - total) < 1e-6:
                least = min(least, 0.5 * float(np.mean((A[:, s] @ x - y) ** 2)))
    assert proof.bound <= least * (1.0 + 1e-6)
    assert proof.value == pytest.approx(least, rel=1e-5)
    path = proof.save(tmp_path / "c.json")
    verify(path, problem.form)
    np.savez(tmp_path / "data.npz", A=A, y=y)
    assert main([str(path), str(tmp_path / "data.npz")]) == 0


def test_a_hinge_that_is_zero_has_a_certificate_that_the_checker_accepts(tmp_path):
    A = np.random.default_rng(0).standard_normal((60, 12))
    y = np.where(A[:, 0] > 0.0, 1.0, -1.0)
    w = sm.Variable(12)
    goal = sm.minimize(sm.hinge_loss(A @ w, y))
    problem = sm.Problem(goal, sm.card(w) <= 3, sm.semicontinuous(w, 0.2, 1e3))
    problem.solve()
    certificate = problem.certify()
    assert certificate.bound == 0.0
    path = certificate.save(tmp_path / "c.json")
    np.savez(tmp_path / "d.npz", A=A, y=y)
    assert main([str(path), str(tmp_path / "d.npz")]) == 0


def _portfolio(seed, n):
    """Return a portfolio's returns, and what tries all supports and signs by CVXPY."""
    rng = np.random.default_rng(seed)
    returns = rng.standard_normal((60, n)) * rng.uniform(0.5, 3.0, n) + rng.standard_normal((60, 1))
    covariance = cp.psd_wrap(returns.T @ returns / 60)

    def least(choices):
        x, found = cp.Variable(n), [np.inf]
        for constraints in choices(x):
            one = cp.Problem(cp.Minimize(0.5 * cp.quad_form(x, covariance)), constraints)
            found.append(one.solve(solver="CLARABEL"))
        return min(found)

    return returns, least


@pytest.mark.parametrize("seed", [0, 3])
def test_at_least_so_many_positions_of_a_least_size(seed):
    """Six or seven of seven, each of 12 % at least; without the constraint fewer are held."""
    returns, least = _portfolio(seed, 7)

    def choices(x):
        for size in (6, 7):
            for held in combinations(range(7), size):
                out = np.setdiff1d(range(7), held)
                yield [cp.sum(x) == 1, x[list(held)] >= 0.12, x[out] == 0]

    w = sm.Variable(7, name="w")
    goal = sm.minimize(sm.squared_loss(returns @ w, np.zeros(60)))
    limits = [w.sum() == 1.0, sm.semicontinuous(w, 0.12, 1.0), sm.card(w) <= 7]
    fewer = sm.Problem(goal, limits)
    fewer.solve()
    assert np.count_nonzero(w.value) < 6
    problem = sm.Problem(goal, limits, sm.card(w) >= 6)
    solution = problem.solve()
    judge(problem, solution)
    assert np.isclose(solution.value, least(choices), rtol=1e-5)
    assert np.count_nonzero(w.value) >= 6
    assert "tally" not in str(solution)
    assert solution.support.size == len(solution.coefficients) == np.count_nonzero(w.value)
    again = problem.solve(start=w.value)
    assert np.isclose(again.value, solution.value)
    x, z = cp.Variable(7), cp.Variable(7, boolean=True)
    theirs = sm.Problem(
        cp.Minimize(0.5 * cp.quad_form(x, returns.T @ returns / 60)),
        [cp.sum(x) == 1, x <= z, x >= 0.12 * z, cp.sum(z) >= 6],
    )
    assert np.isclose(theirs.solve().value, solution.value)
    assert np.array_equal(z.value != 0.0, x.value != 0.0)


def test_more_positions_of_a_least_size_than_there_are_cannot_be_asked_for():
    w = sm.Variable(4, name="w")
    goal = sm.minimize(sm.squared_loss(np.eye(4) @ w, np.ones(4)))
    with pytest.raises(InfeasibleError, match="there are 4 entries to choose from"):
        sm.Problem(goal, sm.semicontinuous(w, 0.1, 1.0), sm.card(w) >= 5)


@pytest.mark.parametrize("seed", [0, 1])
def test_trades_are_of_a_least_size(seed):
    """At most two of five weights change, by 5 % or more; against all choices of signs."""
    returns, least = _portfolio(seed, 5)
    old = np.full(5, 0.2)

    def choices(x):
        for signs in product((-1.0, 0.0, 1.0), repeat=5):
            if np.count_nonzero(signs) <= 2:
                moved, change = np.array(signs) != 0.0, x - old
                made = [cp.sum(x) == 1, x >= 0, change[~moved] == 0]
                sizes = cp.multiply(signs, change)[moved]
                yield [*made, sizes >= 0.05, sizes <= 0.5] if moved.any() else made

    w = sm.Variable(5, name="w")
    goal = sm.minimize(sm.squared_loss(returns @ w, np.zeros(60)))
    trades = sm.semicontinuous(w - old, 0.05, 0.5, both_signs=True)
    problem = sm.Problem(goal, w.sum() == 1.0, w >= 0.0, trades, sm.card(w - old) <= 2)
    solution = problem.solve()
    judge(problem, solution)
    assert np.isclose(solution.value, least(choices), rtol=1e-5)
    change = np.abs(w.value - old)
    assert np.count_nonzero(change > 1e-12) <= 2
    assert np.all((change < 1e-12) | (change >= 0.05 - 1e-12))


def test_entries_of_one_sign_are_old_or_away_from_it():
    """Each alone, as the columns are orthonormal: its best value, or the old one."""
    rng = np.random.default_rng(0)
    old, target = rng.uniform(0.0, 0.5, 6), rng.uniform(0.0, 1.5, 6)
    w = sm.Variable(6, name="w")
    goal = sm.minimize(sm.squared_loss(np.eye(6) @ w, target, reduction="sum"))
    problem = sm.Problem(goal, sm.semicontinuous(w - old, 0.4, 0.9))
    judge(problem, problem.solve())
    moved = np.clip(target, old + 0.4, old + 0.9)
    better = np.abs(moved - target) < np.abs(old - target)
    assert np.allclose(w.value, np.where(better, moved, old), atol=1e-9)
    assert 0 < better.sum() < 6


def test_both_signs_of_some_entries_and_of_a_long_short_portfolio():
    """The entries outside the slice are as free as before; least numbers count both sides."""
    rng = np.random.default_rng(1)
    A = rng.standard_normal((40, 4))
    b = A @ np.array([0.9, -0.8, 0.02, -0.03]) + 0.01 * rng.standard_normal(40)
    w = sm.Variable(4, name="w")
    goal = sm.minimize(sm.squared_loss(A @ w, b))
    some = sm.semicontinuous(w[1:], 0.1, 2.0, both_signs=True)
    sm.Problem(goal, some).solve()
    assert np.flatnonzero(w.value).tolist() == [0, 1]
    three = sm.Problem(goal, sm.semicontinuous(w, 0.1, 2.0, both_signs=True), sm.card(w) >= 3)
    judge(three, three.solve())
    assert np.count_nonzero(w.value) == 3
    found = []
    for j in (2, 3):
        for sign in (-1.0, 1.0):
            ends = [np.array([-2.0, -2.0, min(0.1 * sign, 2.0 * sign)])]
            ends.append(np.array([2.0, 2.0, max(0.1 * sign, 2.0 * sign)]))
            x = lsq_linear(A[:, [0, 1, j]], b, ends, tol=1e-14).x
            found.append(0.5 * np.mean((A[:, [0, 1, j]] @ x - b) ** 2))
    assert np.isclose(three.value, min(found), rtol=1e-6)


def test_other_counts_beside_sizes_of_both_signs_say_what_to_write():
    w = sm.Variable(4, name="w")
    goal = sm.minimize(sm.squared_loss(np.eye(4) @ w, np.ones(4)))
    trades = sm.semicontinuous(w - 0.25, 0.05, 0.5, both_signs=True)
    with pytest.raises(ModelError, match="counts w in another way"):
        sm.Problem(goal, trades, sm.card(w) <= 2)
    with pytest.raises(ModelError, match="both are positive"):
        sm.semicontinuous(w, -0.5, -0.1, both_signs=True)
    with pytest.raises(ModelError, match="both_signs=True"):
        sm.semicontinuous(w, -0.5, 0.1)
