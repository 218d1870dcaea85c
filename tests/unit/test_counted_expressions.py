"""card of an expression: trades, jumps, rows of a matrix times a variable."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import combinations, product

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse

import sparsemodel as sm
from sparsemodel.certificates import verify
from sparsemodel.designs import StepsDesign
from sparsemodel.interfaces import ModelError
from tests.referee import judge

RNG = np.random.default_rng(8)
N, P = 24, 6
A = RNG.standard_normal((N, P))
W0 = RNG.standard_normal(P)
B = A @ (W0 + np.array([1.0, 0.0, -0.5, 0.0, 0.0, 0.7])) + 0.2 * RNG.standard_normal(N)
RIDGE = 0.2


def declared(count, *more, ridge: float = RIDGE):
    w = sm.Variable(P, name="w")
    goal = sm.squared_loss(A @ w, B) + sm.ridge(w, ridge)
    return w, sm.Problem(sm.minimize(goal), count(w), *(m(w) for m in more))


def value(v) -> float:
    return 0.5 * np.mean((A @ v - B) ** 2) + 0.5 * RIDGE * v @ v


def best_of(D, c, k: int) -> float:
    """Return the least objective with at most k nonzero entries of D w + c."""
    found = np.inf
    gram, right = A.T @ A / N + RIDGE * np.eye(P), A.T @ B / N
    for zero in combinations(range(len(c)), len(c) - k):
        rows = list(zero)
        system = np.block([[gram, D[rows].T], [D[rows], np.zeros((len(rows), len(rows)))]])
        w = np.linalg.solve(system, np.concatenate([right, -c[rows]]))[:P]
        found = min(found, value(w))
    return found


DIFF = np.diff(np.eye(P), axis=0)
WIDE = RNG.standard_normal((4, P))
SQUARE = RNG.standard_normal((P, P))
TREE = np.zeros((4, P))
for row, (i, j) in enumerate([(0, 1), (0, 2), (2, 3), (3, 4)]):
    TREE[row, [i, j]] = 1.0, -1.0


@pytest.mark.parametrize(
    ("expression", "D", "c"),
    [
        (lambda w: w - W0, np.eye(P), -W0),
        (lambda w: 2.0 * w - W0, 2.0 * np.eye(P), -W0),
        (lambda w: W0 - w, -np.eye(P), W0),
        (lambda w: w[2:] - 1.0, np.eye(P)[2:], -np.ones(P - 2)),
        (lambda w: sm.diff(w), DIFF, np.zeros(P - 1)),
        (lambda w: sm.diff(w) - 0.1, DIFF, np.full(P - 1, -0.1)),
        (lambda w: -3.0 * sm.diff(w), -3.0 * DIFF, np.zeros(P - 1)),
        (lambda w: DIFF @ w, DIFF, np.zeros(P - 1)),
        (lambda w: sparse.csr_array(DIFF) @ w, DIFF, np.zeros(P - 1)),
        (lambda w: sm.diff(w, 2), np.diff(np.eye(P), 2, axis=0), np.zeros(P - 2)),
        (lambda w: sm.diff(w[1:]), DIFF[1:], np.zeros(P - 2)),
        (lambda w: WIDE @ w + 1.0, WIDE, np.ones(4)),
        (lambda w: SQUARE @ w, SQUARE, np.zeros(P)),
        (lambda w: TREE @ w, TREE, np.zeros(4)),
        (lambda w: WIDE[:, :3] @ w[:3] + WIDE[:, 3:] @ w[3:], WIDE, np.zeros(4)),
    ],
)
def test_the_best_of_all_choices_is_found(expression, D, c):
    w, problem = declared(lambda w: sm.card(expression(w)) <= 2)
    solution = problem.solve()
    assert np.isclose(solution.value, value(w.value))
    assert np.isclose(solution.value, best_of(D, c, 2))
    nonzero = np.flatnonzero(np.abs(D @ w.value + c) > 1e-9)
    first = 2 if len(c) == P - 2 and c[0] == -1.0 else 0  # a slice is indexed in its variable
    assert np.isin(nonzero, solution.indices - first).all()
    assert not judge(problem, solution).faults
    certificate = problem.certify()
    assert certificate.claim.value == "globally optimal"
    verify(certificate, problem.form)


def test_what_is_not_traded_keeps_its_value_to_the_last_digit():
    w, problem = declared(lambda w: sm.card(w - W0) <= 2)
    solution = problem.solve()
    assert np.flatnonzero(w.value != W0).tolist() == solution.indices.tolist()


def test_bounds_linear_constraints_and_norms_hold_beside_trades():
    more = [lambda w: w >= -0.4, lambda w: w.sum() == 0.5, lambda w: sm.norm(w - 0.1) <= 2.0]
    low = np.maximum(W0, -0.4)
    w, problem = declared(lambda w: sm.card(w - low) <= 3, *more)
    solution = problem.solve()
    assert not judge(problem, solution).faults
    assert np.isclose(w.value.sum(), 0.5)
    assert w.value.min() >= -0.4 - 1e-9
    assert np.linalg.norm(w.value - 0.1) <= 2.0 + 1e-6
    assert np.count_nonzero(w.value != low) <= 3


def test_bounds_and_linear_constraints_hold_beside_jumps():
    more = [lambda w: w <= 0.3, lambda w: w[0] == 0.1]
    w, problem = declared(lambda w: sm.card(sm.diff(w)) <= 2, *more)
    solution = problem.solve()
    assert not judge(problem, solution).faults
    assert w.value.max() <= 0.3 + 1e-8
    assert np.isclose(w.value[0], 0.1)
    v = cp.Variable(P)
    fit = 0.5 * cp.sum_squares(A @ v - B) / N + 0.5 * RIDGE * cp.sum_squares(v)
    held = [j for j in range(P - 1) if j not in solution.indices]
    expected = cp.Problem(cp.Minimize(fit), [v <= 0.3, v[0] == 0.1, DIFF[held] @ v == 0]).solve()
    assert np.isclose(solution.value, expected, rtol=1e-5)


def test_cvxpy_differences_and_a_price_on_jumps():
    t = np.repeat([0.0, 2.0, 1.0, 3.0], 5) + 0.1 * RNG.standard_normal(20)
    w = cp.Variable(20)
    sm.Problem(cp.Minimize(cp.sum_squares(w - t)), [sm.card(cp.diff(w)) <= 3]).solve()
    jumps = np.flatnonzero(np.abs(np.diff(w.value)) > 1e-9)
    assert jumps.tolist() == [4, 9, 14]
    v = sm.Variable(20)
    goal = sm.squared_loss(v, t) + 0.05 * sm.card(sm.diff(v))
    sm.Problem(sm.minimize(goal)).solve()
    assert np.flatnonzero(np.abs(np.diff(v.value)) > 1e-9).tolist() == [4, 9, 14]


def test_entries_of_a_matrix_less_a_matrix():
    W, center = sm.Variable((P, 2)), RNG.standard_normal((P, 2))
    target = A @ center + 1.0
    sm.Problem(sm.minimize(sm.squared_loss(A @ W, target)), sm.card(W - center) <= 3).solve()
    assert np.count_nonzero(W.value != center) == 3


def test_a_start_and_another_solve_go_through_the_coordinates():
    center = sm.Parameter(P, value=W0)
    w = sm.Variable(P)
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, B)), sm.card(w - center) <= 2)
    problem.solve(start=W0)
    assert np.count_nonzero(w.value != W0) <= 2
    center.value = W0 + 1.0
    problem.solve()
    assert np.count_nonzero(w.value != W0 + 1.0) <= 2


def test_a_variable_may_stand_for_an_expression():
    center = np.maximum(W0, 0.0)
    w, d = sm.Variable(P, name="w"), sm.Variable(P, name="d")
    goal = sm.minimize(sm.squared_loss(A @ w, B) + sm.ridge(w, RIDGE))
    problem = sm.Problem(goal, d == w - center, sm.card(d) <= 2, d <= 0.4, w.sum() == 0.5)
    solution = problem.solve()
    direct = [lambda w: w - center <= 0.4, lambda w: w.sum() == 0.5]
    v, other = declared(lambda w: sm.card(w - center) <= 2, *direct)
    assert np.isclose(solution.value, other.solve().value)
    assert np.allclose(w.value, v.value)
    assert np.allclose(d.value, w.value - center)
    assert np.flatnonzero(d.value).tolist() == solution.indices.tolist()
    assert not judge(problem, solution).faults

    u, jumps = cp.Variable(P), cp.Variable(P - 1, nonneg=True)
    fit = cp.sum_squares(A @ u - B) + cp.sum_squares(u)
    sm.Problem(cp.Minimize(fit), [jumps == DIFF @ u, sm.card(jumps) <= 2]).solve()
    assert np.diff(u.value).min() >= -1e-8
    assert np.count_nonzero(jumps.value) <= 2
    assert np.allclose(np.diff(u.value), jumps.value, atol=1e-8)


def test_a_variable_with_a_loss_of_its_own_is_written_as_what_it_is():
    w, d = sm.Variable(P), sm.Variable(P)
    goal = sm.minimize(sm.squared_loss(A @ w, B) + sm.squared_loss(d, np.zeros(P)))
    plain = sm.Problem(goal, sm.card(w) <= 2, d == w)
    counted = sm.Problem(goal, sm.card(d) <= 2, d == w)
    assert len(plain.variables) == len(counted.variables) == 1
    assert counted.solve().value == pytest.approx(plain.solve().value, rel=1e-9)
    np.testing.assert_allclose(d.value, w.value)


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (lambda w: sm.card(np.vstack([SQUARE, WIDE]) @ w) <= 2, "at most 6 rows"),
        (lambda w: sm.card(np.vstack([WIDE, WIDE[:1]]) @ w) <= 2, "depend on each other"),
        (lambda w: [sm.card(w - W0) <= 2, sm.card(w) <= 2], "what may be bought"),
        (lambda w: [sm.card(w - W0) <= 2, sm.card(w + W0) <= 2], "different constants"),
        (lambda w: [sm.card(sm.diff(w)) <= 2, sm.card(w) <= 2], "Keep one of the limits"),
        (lambda w: [sm.card(sm.diff(w)) <= 2, sm.card(w[1:4] - w[:3]) <= 2], None),
        (lambda w: [sm.card(w - W0) <= 2, sm.semicontinuous(w, 0.1)], "different constants"),
        (lambda w: [sm.card(sm.diff(w)) <= 2, sm.norm(w) <= 1.0], "Put a ridge"),
    ],
)
def test_what_cannot_be_counted_is_refused_with_a_reason(count, words):
    with nullcontext() if words is None else pytest.raises(ModelError, match=words):
        declared(count)[1].solve()


SOLD = np.where(np.arange(P) % 2, 0.0, W0)
NEW, FIRST = np.flatnonzero(SOLD == 0.0), np.eye(P)[:1]
SECOND = np.diff(DIFF, axis=0)


@pytest.mark.parametrize(
    "parts",
    [
        [(lambda w: w - SOLD, np.eye(P), -SOLD, 3), (lambda w: w[NEW], np.eye(P)[NEW], None, 1)],
        [(lambda w: sm.diff(w), DIFF, None, 3), (lambda w: -sm.diff(w[:4]), DIFF[:3], None, 1)],
        [(lambda w: sm.diff(w[:3]), DIFF[:2], None, 1), (lambda w: w[3:], np.eye(P)[3:], None, 1)],
        [(lambda w: sm.diff(w, 2), SECOND, None, 1), (lambda w: w[0], FIRST, None, 0)],
    ],
)  # fmt: skip
def test_several_expressions_of_one_variable_are_counted(parts):
    """All of them are coordinates together, and what two of them share is one coordinate."""
    w, problem = declared(lambda w: [sm.card(e(w)) <= k for e, *_, k in parts])
    solution = problem.solve()
    D = np.concatenate([matrix for _, matrix, _, _ in parts])
    c = np.concatenate([np.zeros(len(m)) if c is None else c for _, m, c, _ in parts])
    left = np.split(np.arange(len(c)), np.cumsum([len(m) for _, m, _, _ in parts])[:-1])
    gram, right = A.T @ A / N + RIDGE * np.eye(P), A.T @ B / N
    found = np.inf
    for zeros in product(
        *(combinations(rows, len(rows) - k) for rows, (*_, k) in zip(left, parts, strict=True))
    ):
        rows = [row for some in zeros for row in some]
        system = np.block([[gram, D[rows].T], [D[rows], np.zeros((len(rows), len(rows)))]])
        v = np.linalg.lstsq(system, np.concatenate([right, -c[rows]]), rcond=None)[0][:P]
        if np.allclose(D[rows] @ v, -c[rows]):
            found = min(found, value(v))
    assert solution.value == pytest.approx(found, rel=1e-9)
    assert value(w.value) == pytest.approx(found, rel=1e-9)
    judge(problem, solution)
    certificate = problem.prove(gap=1e-6)
    assert certificate.bound == pytest.approx(found, rel=1e-5)
    verify(certificate, problem.form)


def test_the_steps_are_their_matrix():
    design, n = StepsDesign(5), 5
    matrix = np.column_stack([*(np.arange(n) > j for j in range(n - 1)), np.ones(n)]).astype(float)
    x, support, rows = RNG.standard_normal((n, 2)), np.array([0, 3, 4]), np.array([1, 4])
    assert np.allclose(design.matvec(x), matrix @ x)
    assert np.allclose(design.rmatvec(x), matrix.T @ x)
    assert np.allclose(design.matvec(design.inverse(x)), x)
    assert np.array_equal(design.restrict(support).to_array(), matrix[:, support])
    assert np.array_equal(design.restrict_rows(rows).to_array(), matrix[rows])
    assert np.allclose(np.concatenate([b for _, b in design.row_blocks(2)]), matrix)
    assert np.allclose(design.column_square_norms(x[:, 0] ** 2), x[:, 0] ** 2 @ matrix**2)
    assert np.allclose(design.sampled_square_norms(5), (matrix**2).mean(axis=0))


def test_differences_of_differences_in_either_language() -> None:
    with pytest.raises(sm.ModelError, match=r"sm\.diff\(w, 2\)"):
        sm.diff(sm.diff(sm.Variable(9)))
    y = np.abs(np.arange(9.0) - 4.0) + 0.01 * np.arange(9.0) ** 2
    found = []
    for w, second in ((sm.Variable(9), sm.diff), (cp.Variable(9), cp.diff)):
        goal = sm.minimize(sm.squared_loss(w - y))
        found.append(sm.Problem(goal, sm.card(second(w, 2)) <= 1).solve())
    assert found[0].indices.tolist() == found[1].indices.tolist() == [3]
    assert found[0].value == pytest.approx(found[1].value)


@pytest.mark.parametrize("seed", [2, *(pytest.param(s, marks=pytest.mark.slow) for s in (0, 1))])
def test_trades_within_a_budget_leave_the_start(seed):
    # No asset can be traded alone, so that nothing is better than no trade one at a time.
    rng = np.random.default_rng(seed)
    n, p, k = 40, 14, 4
    a = rng.standard_normal((n, p))
    b = a @ (rng.standard_normal(p) * (rng.random(p) < 0.4)) + 0.5 * rng.standard_normal(n)
    held = np.repeat([0.2, 0.0], [5, p - 5])
    w = sm.Variable(p)
    goal = sm.minimize(sm.squared_loss(a @ w, b))
    one = sm.Problem(goal, [sm.card(w - held) <= k, w.sum() == 1, w >= 0])
    buy, sell = sm.Variable(p, nonneg=True), sm.Variable(p, nonneg=True)
    after = held + buy - sell
    goal = sm.minimize(sm.squared_loss(a @ after, b))
    both = sm.card(buy) + sm.card(sell) <= k
    two = sm.Problem(goal, [both, (buy - sell).sum() == 0, after >= 0])
    proof = one.prove(time_limit=20)
    assert proof.relative_gap <= 1e-4
    assert one.solve("exchange").value == pytest.approx(proof.value, rel=2e-4)
    assert two.solve().value == pytest.approx(proof.value, rel=2e-4)


def test_entries_whose_difference_is_zero_are_equal_to_the_last_digit() -> None:
    rng = np.random.default_rng(3)
    A, b = rng.standard_normal((40, 6)), rng.standard_normal(40)
    w = sm.Variable(6)
    tree = [(1, 0), (2, 1), (4, 1), (5, 4), (3, 5)]
    differences = [w[i] - w[j] for i, j in tree]
    goal = sm.minimize(sm.squared_loss(A @ w, b))
    for counted, k in (([*differences, 3.0 * w[0]], 2), (differences, 1)):
        solution = sm.Problem(goal, sum(sm.card(each) for each in counted) <= k).solve()
        v = np.asarray(w.value)
        different = sum(v[i] != v[j] for i, j in tree)
        assert different + (len(counted) > len(tree) and v[0] != 0.0) <= k
        rounded = np.round(v, 9)
        assert different == sum(rounded[i] != rounded[j] for i, j in tree)
        assert solution.value == pytest.approx(np.mean((A @ v - b) ** 2) / 2.0, rel=1e-9)


def test_changes_from_period_to_period() -> None:
    P, A = 5, np.random.default_rng(11).standard_normal((24, 5))
    W, changes = sm.Variable((3, P)), [sm.Variable(P) for _ in range(3)]
    held = [np.eye(P)[0], np.eye(P)[0] + np.eye(P)[3], np.eye(P)[0] + np.eye(P)[3] - np.eye(P)[1]]
    targets = [A @ w for w in held]
    loss = sm.minimize(sum(sm.squared_loss(A @ W[t], targets[t]) for t in range(3)))
    assert sm.Problem(loss, [sm.card(W[t] - W[t - 1]) <= 1 for t in (1, 2)]).solve().value < 1e-12
    changed = np.abs(np.diff(W.value, axis=0)) > 1e-12
    assert [np.flatnonzero(d).tolist() for d in changed] == [[3], [1]]
    sums = [sum(changes[1 : t + 1], changes[0]) for t in range(3)]
    loss = sm.minimize(sum(sm.squared_loss(A @ sums[t], targets[t]) for t in range(3)))
    assert sm.Problem(loss, [sm.card(d) <= 1 for d in changes[1:]]).solve().value < 1e-12
    assert [np.flatnonzero(d.value).tolist() for d in changes[1:]] == [[3], [1]]


@pytest.mark.parametrize("counted", [True, False])
def test_constants_are_multiplied_in_double_precision(counted) -> None:
    rng = np.random.default_rng(0)
    single = rng.integers(-3, 4, (40, 5)).astype(np.float32)
    double, w0 = single.astype(np.float64), 1e4 * rng.standard_normal(5)
    y = double @ w0 + rng.standard_normal(40)
    w = sm.Variable(5, name="w")
    if counted:
        u, count = single @ w, sm.card(w - w0) <= 2
    else:
        u, count, y = single @ (w - w0), sm.card(w) <= 2, y - double @ w0
    problem = sm.Problem(sm.minimize(sm.squared_loss(u, y)), count)
    solution = problem.solve()
    left = double @ w.value - y - (0.0 if counted else double @ w0)
    expected = pytest.approx(0.5 * np.mean(left**2), rel=1e-11)
    assert (solution.value, problem.goal.value) == (expected, expected)
