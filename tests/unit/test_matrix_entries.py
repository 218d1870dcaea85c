"""Entries, columns and slices of matrix variables, and matrices on both sides of them."""

from __future__ import annotations

from itertools import combinations

import cvxpy as cp
import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.designs import KroneckerDesign, as_design
from sparsemodel.interfaces import ModelError
from tests.referee import judge

RNG = np.random.default_rng(5)
N, P, M = 25, 4, 3
A = RNG.standard_normal((N, P))
W0 = RNG.standard_normal((P, M))
B = A @ W0 + 0.3 * RNG.standard_normal((N, M))
WHOLE = np.kron(A, np.eye(M))
"""The design of all entries, row by row."""


def fit(W: sm.Variable):
    return sm.squared_loss(A @ W, B)


def least(columns, matrix=WHOLE, target=None) -> float:
    """Return the least loss, a mean over the rows of B, with these entries."""
    target = B.ravel() if target is None else target
    part = matrix[:, list(columns)]
    rest = target - part @ np.linalg.lstsq(part, target, rcond=None)[0]
    return 0.5 * float(rest @ rest) / N


@pytest.mark.parametrize(
    "limits",
    [
        lambda W: sm.card(W) <= 5,
        lambda W: [sm.card(W) <= 5, sm.card(W[:, 0]) <= 1, sm.card(W[:, 1]) <= 2],
        lambda W: [sm.card(W[:, j]) <= 2 for j in range(M)],
        lambda W: [sm.card(W[i, :]) <= 1 for i in range(P)],
        lambda W: [sm.card(W[:2]) <= 2, sm.card(W[2:, :]) <= 1],
        lambda W: [sm.card(W, groups=np.arange(P * M).reshape(P, M) // 2) <= 3],
        lambda W: [sm.card(W[:, 0]) + sm.card(W[:, 2]) <= 2, W[0, 1] == 0.0],
    ],
)
def test_entries_are_counted(limits):
    W = sm.Variable((P, M), name="W")
    problem = sm.Problem(sm.minimize(fit(W)), limits(W))
    solution = problem.solve()
    assert not judge(problem, solution).faults
    value = 0.5 * np.sum((A @ W.value - B) ** 2) / N
    assert np.isclose(solution.value, value)
    nonzero = np.flatnonzero(W.value)
    assert np.isclose(value, least(nonzero))
    counted = nonzero[problem.form.cardinality.counted[nonzero]]
    assert solution.indices.tolist() == counted.tolist()
    assert solution.support == [f"W[{j // M}, {j % M}]" for j in counted]


def test_the_best_entries_are_found():
    W = sm.Variable((P, M))
    solution = sm.Problem(sm.minimize(fit(W)), sm.card(W) <= 3).solve()
    assert np.isclose(solution.value, min(map(least, combinations(range(P * M), 3))))
    columns = sm.Problem(sm.minimize(fit(W)), [sm.card(W[:, j]) <= 2 for j in range(M)]).solve()
    best = sum(
        min(0.5 * np.linalg.lstsq(A[:, s], B[:, j], rcond=None)[1][0] / N for s in pairs)
        for j in range(M)
        for pairs in [[list(s) for s in combinations(range(P), 2)]]
    )
    assert np.isclose(columns.value, best)


def test_rows_are_counted_beside_losses_of_columns():
    W = sm.Variable((P, M))
    each = [sm.squared_loss(A @ W[:, j], B[:, j]) for j in range(M)]
    apart = sm.Problem(sm.minimize(each[0] + each[1] + each[2]), sm.card(W, axis=1) <= 2)
    V = sm.Variable((P, M))
    together = sm.Problem(sm.minimize(fit(V)), sm.card(V, axis=1) <= 2)
    assert np.isclose(apart.solve().value, together.solve().value)
    assert np.allclose(W.value, V.value)
    assert np.count_nonzero(W.value.any(axis=1)) == 2


def test_both_spellings_of_rows_stay():
    for options in ({"axis": 1}, {"groups": np.arange(P)}):
        W = sm.Variable((P, M))
        problem = sm.Problem(sm.minimize(fit(W)), sm.card(W, **options) <= 2)
        assert problem.form.matrix
        problem.solve()
        assert np.count_nonzero(W.value.any(axis=1)) == 2


def test_an_intercept_row_a_ridge_and_bounds_stand_beside_entries():
    W, c = sm.Variable((P, M)), sm.Variable(M)
    goal = sm.squared_loss(A @ W + c, B, weights=np.arange(1.0, N + 1)) + sm.ridge(W, 0.3)
    ends = np.arange(P * M).reshape(P, M) / 10.0
    problem = sm.Problem(sm.minimize(goal), sm.card(W) <= P * M, ends >= W, W[1:] >= -0.5)
    solution = problem.solve()
    V, d = cp.Variable((P, M)), cp.Variable(M)
    weights = np.sqrt(np.arange(1.0, N + 1))[:, None]
    rows = A @ V + np.ones((N, 1)) @ cp.reshape(d, (1, M), order="C")
    squares = cp.sum_squares(cp.multiply(weights, rows - B))
    goal = 0.5 * squares / N + 0.15 * cp.sum_squares(V)
    expected = cp.Problem(cp.Minimize(goal), [ends >= V, V[1:] >= -0.5]).solve()
    assert np.isclose(solution.value, expected, rtol=1e-5)
    assert not judge(problem, solution).faults


def test_a_matrix_on_each_side():
    R, target = RNG.standard_normal((M, 2)), RNG.standard_normal((N, 2))
    W = sm.Variable((P, M))
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ W @ R, target)), sm.card(W) <= 2)
    solution = problem.solve()
    whole = np.kron(A, R.T)
    best = min(least(s, whole, target.ravel()) for s in combinations(range(P * M), 2))
    assert np.isclose(solution.value, best)
    assert not judge(problem, solution).faults
    vector = sm.Problem(sm.minimize(sm.squared_loss(W @ R[:, 0], W0[:, 0])), sm.card(W) <= P * M)
    assert vector.solve().value < 1e-20


def test_a_vector_may_stand_to_the_left():
    w, b = sm.Variable(P), B[:, 0]
    left = sm.Problem(sm.minimize(sm.squared_loss(w @ A.T, b)), sm.card(w) <= 2).solve()
    right = sm.Problem(sm.minimize(sm.squared_loss(A @ w, b)), sm.card(w) <= 2).solve()
    assert left.value == right.value


def test_linear_constraints_on_matrices_are_kept():
    W = sm.Variable((P, M))
    limits = sm.card(W) <= 8, np.ones((1, P)) @ W == 1.0, W @ np.ones(M) <= 0.9
    problem = sm.Problem(sm.minimize(fit(W)), *limits)
    solution = problem.solve()
    assert np.allclose(W.value.sum(axis=0), 1.0)
    assert np.all(W.value.sum(axis=1) <= 0.9 + 1e-8)
    assert not judge(problem, solution).faults


def test_other_losses_act_on_every_entry():
    W, labels = sm.Variable((P, M)), np.arange(N) % 3
    with pytest.raises(ModelError, match="axis=1"):
        sm.Problem(sm.minimize(sm.multinomial_loss(A @ W, labels)), sm.card(W) <= 2).solve()
    whole = sm.custom_loss(lambda v: float((v**2).sum()), gradient=lambda v: 2.0 * v)
    with pytest.raises(ModelError, match="axis=1"):
        sm.Problem(sm.minimize(whole + sm.squared_loss(A @ W, B)), sm.card(W) <= 2).solve()


def test_cvxpy_columns_stacks_and_vec():
    def solved(limits, goal=lambda W: cp.sum_squares(A @ W - B)):
        W = cp.Variable((P, M))
        sm.Problem(cp.Minimize(goal(W)), limits(W)).solve()
        return W.value

    columns = solved(lambda W: [sm.card(W[:, j]) <= 2 for j in range(M)])
    assert np.count_nonzero(columns, axis=0).tolist() == [2] * M
    apart = solved(
        lambda W: [sm.card(W[:, j]) <= 2 for j in range(M)],
        lambda W: sum(cp.sum_squares(A @ W[:, j] - B[:, j]) for j in range(M)),
    )
    assert np.allclose(columns, apart)
    vec = solved(lambda W: [sm.card(cp.vec(W, order="F")) <= 4, cp.sum(W) == 1.0])
    assert np.count_nonzero(vec) == 4
    assert np.isclose(vec.sum(), 1.0)
    sums = solved(lambda W: [cp.sum(W, axis=0) == 1.0, cp.sum(W, axis=1) >= 0.1])
    assert np.allclose(sums.sum(axis=0), 1.0)
    assert np.all(sums.sum(axis=1) >= 0.1 - 1e-8)
    W = sm.Variable((P, M))
    weights = RNG.standard_normal((2, M))
    for sums in (W, W[1:3], 2.0 * W, A @ W + 1.0, W @ weights.T + weights[0, :2]):
        value = np.arange(P * M).reshape(P, M) * 1.0
        W.value = value
        assert sums.sum(axis=0).shape == sums.shape[1:]
        assert np.allclose(sums.sum(axis=0).value, sums.value.sum(axis=0))
        assert np.allclose(sums.mean(axis=0).value, sums.value.mean(axis=0))
    stack = solved(lambda W: [sm.card(cp.hstack([W[:, 0], W[:, 1]])) <= 1])
    assert np.count_nonzero(stack[:, :2]) == 1


def test_a_square_matrix_is_multiplied_from_its_own_side():
    W, v = cp.Variable((3, 3)), np.array([1.0, 2.0, 3.0])
    T = RNG.standard_normal((3, 3))
    goal = cp.Minimize(cp.sum_squares(W - T))
    sm.Problem(goal, [W @ v == 1.0, sm.card(W) <= 9]).solve()
    assert np.allclose(W.value @ v, 1.0)


def test_the_certificate_is_verified():
    W = sm.Variable((P, M))
    problem = sm.Problem(sm.minimize(fit(W) + sm.ridge(W, 0.1)), sm.card(W) <= 3)
    problem.solve()
    certificate = problem.certify()
    assert sm.certificates.verify(certificate, problem.form).claim is certificate.claim
    assert certificate.claim.value == "globally optimal"


@pytest.mark.parametrize("right", [M, RNG.standard_normal((M, 2))])
def test_the_kronecker_design_is_its_matrix(right):
    design = KroneckerDesign(as_design(A), right)
    matrix = np.kron(A, np.eye(M) if isinstance(right, int) else right.T)
    n, p = matrix.shape
    x, r, h = RNG.standard_normal(p), RNG.standard_normal(n), RNG.random(n)
    support, rows = np.array([0, 2, 5, p - 1]), np.array([1, 3, 4, n - 1])
    assert design.shape == (n, p)
    assert np.allclose(design.matvec(x), matrix @ x)
    assert np.allclose(design.rmatvec(r), matrix.T @ r)
    assert np.allclose(design.restrict(support).to_array(), matrix[:, support])
    assert np.allclose(design.restrict_rows(rows).to_array(), matrix[rows])
    assert np.allclose(np.concatenate([b for _, b in design.row_blocks(4)]), matrix)
    assert np.allclose(design.column_square_norms(h), h @ matrix**2)
    assert np.allclose(design.sampled_square_norms(N), np.mean(matrix**2, axis=0))


@pytest.mark.parametrize("seed", range(3))
def test_rows_whose_entries_have_bounds_are_certified(seed: int) -> None:
    """Curvature of the data was taken out with one limit for all entries of a row."""
    rng = np.random.default_rng(seed)
    A, Y, W = rng.standard_normal((11, 3)), rng.standard_normal((11, 3)), sm.Variable((3, 3))
    Y += A[:, [0]] + A[:, [1]]
    goal = sm.squared_loss(A @ W, Y) + sm.ridge(W, 1.0)
    problem = sm.Problem(sm.minimize(goal), sm.card(W, axis=1) <= 1, W <= 0.5, W >= -0.3)
    best = np.inf
    for a in A.T:
        x = np.clip(a @ Y / 11 / (a @ a / 11 + 1.0), -0.3, 0.5)
        best = min(best, 0.5 * np.sum((Y - np.outer(a, x)) ** 2) / 11 + 0.5 * x @ x)
    for certificate in (problem.certify(), problem.prove()):
        assert certificate.value == pytest.approx(best, rel=1e-9)
        assert best * (1 - 1e-4) <= certificate.bound <= best * (1 + 1e-12)


def test_bounds_of_entries_in_single_precision_are_no_higher_than_the_optimum() -> None:
    rng = np.random.default_rng(0)
    a = np.round(rng.standard_normal((6, 5)), 2).astype(np.float32)
    y = np.column_stack([a[:, 0] + 0.3 * rng.standard_normal(6), rng.standard_normal(6)])
    W = sm.Variable((5, 2), name="W")
    goal = sm.minimize(sm.squared_loss(a @ W, y) + sm.ridge(W, 1.0))
    certificate = sm.Problem(goal, sm.card(W) <= 2).prove(gap=1e-7)
    assert certificate.claim.optimal
