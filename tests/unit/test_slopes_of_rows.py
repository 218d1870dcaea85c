"""Slopes of linear constraints and norms, one choice for all parts or part by part."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import Certificate, Claim, verify
from sparsemodel.certificates.arithmetic.multipliers import slopes_at, violation
from sparsemodel.certificates.dual_bounds.witness import from_point
from sparsemodel.certificates.statements.numbers import Rows, rows_of
from sparsemodel.checker.__main__ import main
from sparsemodel.interfaces import Box


def test_certificates_about_an_equation_and_a_norm_are_read_again():
    rng = np.random.default_rng(0)
    A, w = rng.standard_normal((10, 6)), sm.Variable(6, name="w")
    loss = sm.squared_loss(A @ w, A @ np.ones(6)) + sm.ridge(w, 0.1)
    rules = [w.sum() == 1.0, sm.norm(w, 2) <= 0.52]
    problem = sm.Problem(sm.minimize(loss), [sm.card(w, groups=[0, 0, 1, 1, 2, 2]) <= 2, *rules])
    certificate = problem.certify()
    assert len(certificate.witness.duals) == 4
    verify(Certificate.from_json(certificate.to_json()), problem.form)


@pytest.mark.parametrize(("ridge", "k"), [(0.1, 2), (0.0, 3)])
def test_rows_of_problems_with_few_observations_have_slopes_part_by_part(ridge, k):
    rng = np.random.default_rng(5)
    A, c, w = rng.standard_normal((6, 8)), rng.standard_normal(8), sm.Variable(8, name="w")
    y = A @ np.r_[2.0, -1.0, 1.0, np.zeros(5)] + rng.standard_normal(6)
    loss = sm.squared_loss(A @ w, y) + (sm.ridge(w, ridge) if ridge else 0.0)
    problem = sm.Problem(sm.minimize(loss), [sm.card(w) <= k, c @ w <= -0.5, w.sum() == 0.3])
    proof = problem.prove()
    supports = map(np.array, itertools.combinations(range(8), k))
    solved = [problem.restricted(s).solve(solver="CLARABEL") for s in supports]
    best = min(v for v in solved if v is not None and np.isfinite(v))
    assert proof.relative_gap <= 1e-4
    assert proof.bound <= best * (1.0 + 1e-7)
    assert proof.value == pytest.approx(best, rel=1e-6)


def test_slopes_at_a_point_are_those_of_the_positions_that_are_not_held():
    rng = np.random.default_rng(1)
    A, w = rng.standard_normal((9, 5)), sm.Variable(5, name="w")
    y = A @ np.r_[0.9, 0.3, 0.02, 0.0, 0.0]
    loss = sm.squared_loss(A @ w, y) + sm.ridge(w, 1e-3)
    rules = [w.sum() == 1.3, sm.semicontinuous(w, 0.5, np.inf)]
    problem = sm.Problem(sm.minimize(loss), [sm.card(w) <= 3, *rules])
    problem.solve()
    x = w.value
    gradient = A.T @ (A @ x - y) / 9 + 1e-3 * x
    np.testing.assert_allclose(x, [0.8, 0.5, 0.0, 0.0, 0.0], rtol=1e-9)  # the second is held
    duals = from_point(problem.form, x).duals
    slopes, _ = slopes_at(problem.form, rows_of(problem.form), x, duals)
    assert slopes[0] == pytest.approx(-gradient[0], rel=1e-6)


def test_what_rounding_leaves_of_zero_is_held_by_a_bound_there():
    rng = np.random.default_rng(2)
    A, w = rng.standard_normal((9, 4)), sm.Variable(4, name="w")
    x, gradient = np.array([0.8, 0.5, 2e-14, 0.0]), np.array([-1.0, -1.0, 5.0, 0.0])
    y = A @ x - 9.0 * np.linalg.pinv(A.T) @ gradient
    rules = [sm.card(w) <= 3, w.sum() == 1.3, w >= 0.0]
    form = sm.Problem(sm.minimize(sm.squared_loss(A @ w, y)), rules).form
    slopes, _ = slopes_at(form, rows_of(form), x, from_point(form, x).duals)
    assert slopes == pytest.approx([1.0], rel=1e-9)  # that of the third stays at the bound


def test_hinges_that_vanish_up_to_rounding_are_zero_to_the_checker(tmp_path):
    judged = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        A, w, c = rng.standard_normal((7, 5)), sm.Variable(5, name="w"), sm.Variable(name="c")
        y = np.where(A[:, 0] - A[:, 1] > 0.0, 1.0, -1.0)
        loss = sm.squared_hinge_loss(A @ w + c, y)
        proof = sm.Problem(sm.minimize(loss), [sm.card(w) <= 2]).prove()
        if proof.claim is Claim.ZERO:
            np.savez(tmp_path / "data.npz", A=A, y=y)
            path = proof.save(tmp_path / "c.json")
            assert main([str(path), str(tmp_path / "data.npz")]) == 0
            judged += 1
    assert judged


def test_a_part_whose_bounds_exclude_each_other_has_a_violation() -> None:
    rows = Rows(np.array([[1.0, 1.0]]), np.array([3.0]), np.array([5.0]))
    empty = Box(np.array([1.0, 0.0]), np.array([0.5, 1.0]))  # a least size above a limit
    found = violation(rows, empty, np.array([0, 1]))
    assert found == pytest.approx([-1.0])
