"""What is not an exact fit: penalties, offsets of free columns, hinges, a few huge targets."""

from __future__ import annotations

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import Claim, verify
from sparsemodel.certificates.statements.exact_fit import exact_fit
from sparsemodel.certificates.statements.objective_interval import primal
from sparsemodel.checker.__main__ import main
from sparsemodel.designs import DenseDesign
from sparsemodel.interfaces import Cardinality, SparseRegression, Term
from sparsemodel.losses import HingeLoss, SquaredHingeLoss, SquaredLoss


def form_of(A, y, *, loss=None, ridge=0.0, free=(), constant=0.0):
    n, p = A.shape
    term = Term(DenseDesign(A), SquaredLoss() if loss is None else loss, y, np.ones(n))
    sparsity = Cardinality(p, p - len(free), free=np.array(free, dtype=np.intp))
    return SparseRegression((term,), np.full(p, ridge), sparsity, constant=constant)


def judged(form, x):
    return exact_fit(form, x, primal(form, x).value)


def test_a_penalty_is_not_rounding():
    A = np.random.default_rng(0).standard_normal((30, 3))
    x = np.array([1.0, -1.0, 0.0])
    assert judged(form_of(A, A @ x), x)
    assert not judged(form_of(A, A @ x, ridge=1e-3), x)


def test_what_a_free_column_fits_does_not_make_residuals_small():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 2))
    noise = 1e-6 * rng.standard_normal(30)
    for size, exact in ((1.0, False), (1e9, False)):
        x = np.array([1.0, size])
        assert judged(form_of(A, A @ x + noise, free=(1,)), x) is exact
    assert judged(form_of(A, A @ np.array([1.0, 2.0]), free=(1,)), np.array([1.0, 2.0]))


def test_a_hinge_must_be_zero_itself():
    A, y = np.ones((4, 1)), np.ones(4)
    assert judged(form_of(A, y, loss=HingeLoss()), np.array([1.5]))
    assert not judged(form_of(A, y, loss=HingeLoss(), constant=-2.0), np.array([0.5]))


def test_a_few_huge_targets_do_not_make_the_others_large():
    rng = np.random.default_rng(0)
    A = np.column_stack([np.ones(40), np.eye(40)[0]])
    y = 1e6 + 1e-8 * rng.standard_normal(40)
    y[0] = 1e15
    x = np.array([1e6, 1e15 - 1e6])
    assert not judged(form_of(A, y), x)


@pytest.mark.parametrize("fitted", [True, False])
def test_nothing_left_beside_linear_constraints_is_zero_and_not_far_from_it(fitted, tmp_path):
    a = np.random.default_rng(0).standard_normal((20, 6))
    w = sm.Variable(6)
    loss = sm.squared_loss(a @ w, (a[:, 0] - a[:, 1]) * fitted)
    problem = sm.Problem(sm.minimize(loss), sm.card(w) <= 2, w.sum() <= 1)
    problem.solve()
    for certificate in (problem.certify(), problem.prove()):
        assert (certificate.claim, certificate.bound) == (Claim.ZERO, 0.0)
        assert verify(certificate, problem.form).claim is Claim.ZERO
    path = certificate.save(tmp_path / "c.json")
    np.savez(tmp_path / "data.npz", A=a, b=(a[:, 0] - a[:, 1]) * fitted)
    assert main([str(path), str(tmp_path / "data.npz")]) == 0


@pytest.mark.parametrize(("loss", "level"), [("squared", 0.1), ("absolute", 7.3), ("huber", -1.7)])
def test_equal_targets_beside_an_intercept_are_an_exact_fit(loss, level, tmp_path):
    a = np.random.default_rng(0).standard_normal((20, 3))
    w, c = sm.Variable(3), sm.Variable()
    term = getattr(sm, f"{loss}_loss")(a @ w + c, np.full(20, level))
    problem = sm.Problem(sm.minimize(term), sm.card(w) <= 1)
    problem.solve()
    certificate = problem.certify()
    assert certificate.claim is Claim.ZERO
    path = certificate.save(tmp_path / "c.json")
    np.savez(tmp_path / "data.npz", A=a, b=np.full(20, level))
    assert main([str(path), str(tmp_path / "data.npz")]) == 0


@pytest.mark.parametrize("units", [1.0, 900.0, 1200.0])
def test_residuals_of_equal_targets_are_measured_by_them(units):
    y = np.full(8, 0.7)
    x = np.array([0.7 * (1.0 + units * 2.0**-52)])
    assert judged(form_of(np.ones((8, 1)), y, free=(0,)), x) is (units < 1024.0)
    # One target that differs by more than rounding leaves something to be explained.
    y[3] += 1e-14
    assert not judged(form_of(np.ones((8, 1)), y, free=(0,)), x)


@pytest.mark.parametrize("loss", [HingeLoss(), SquaredHingeLoss()])
@pytest.mark.parametrize("units", [1.0, 900.0, 1200.0])
def test_margins_may_lack_rounding(loss, units):
    x = np.array([1.0 - units * 2.0**-52])
    form = form_of(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), loss=loss)
    assert primal(form, x).value > 0.0
    assert judged(form, x) is (units < 1024.0)
    assert not judged(form_of(np.ones((1, 1)), np.ones(1), loss=loss, ridge=1e-3), x)
