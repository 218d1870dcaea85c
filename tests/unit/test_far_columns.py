"""Columns with means of 1e7 deviations: an intercept absorbs them, and no digit is lost."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

import sparsemodel as sm
from sparsemodel.certificates import verify
from sparsemodel.checker.__main__ import main
from sparsemodel.checker.proof.arithmetic import Ball, number
from sparsemodel.checker.proof.bound import predictions
from sparsemodel.compiler.reductions.shift_columns import ShiftColumns, shifted, shifts
from sparsemodel.designs import as_design

N, P, K = 40, 9, 3


def _columns(seed, offset, only=slice(None)):
    """Return columns far from zero, and what they hold beside the offset, exactly."""
    rng = np.random.default_rng(seed)
    near = rng.standard_normal((N, P))
    far = near.copy()
    far[:, only] += offset
    near[:, only] = far[:, only] - offset
    return rng, far, near


def _held(kind, A, tmp_path):
    if kind == "sparse":
        return sp.csr_array(A)
    if kind == "mapped":
        np.save(tmp_path / "A.npy", A)
        return np.load(tmp_path / "A.npy", mmap_mode="r")
    return A


def _problem(A, y, loss, ridge, weights=None):
    w, c = sm.Variable(P, name="w"), sm.Variable(name="c")
    goal = loss(A @ w + c, y, weights=weights)
    return sm.Problem(sm.minimize(goal + sm.ridge(w, ridge) if ridge else goal), sm.card(w) <= K)


@pytest.mark.parametrize(
    ("kind", "ridge", "loss", "some"),
    [
        ("dense", 0.0, sm.squared_loss, False),
        ("dense", 0.1, sm.squared_loss, True),
        ("sparse", 0.0, sm.squared_loss, True),
        ("mapped", 0.1, sm.squared_loss, False),
        ("dense", 0.0, sm.logistic_loss, False),
        ("sparse", 0.1, sm.logistic_loss, True),
    ],
)
def test_values_and_bounds_are_those_of_columns_near_zero(kind, ridge, loss, some, tmp_path):
    only = [0, 1, 4] if some else slice(None)
    rng, far, near = _columns(1, 1e7, only)
    y = near[:, 0] - 2.0 * near[:, 1] + 1.5 * near[:, 2] + 2.5 * rng.standard_normal(N)
    y = y if loss is sm.squared_loss else (y > 0.0).astype(float)
    weights = rng.uniform(0.2, 2.0, N)
    plain = _problem(near, y, loss, ridge, weights)
    problem = _problem(_held(kind, far, tmp_path), y, loss, ridge, weights)
    value = plain.solve().value
    assert problem.solve().value == pytest.approx(value, rel=1e-8)
    here, there = problem.certify(), plain.certify()
    assert here.upper == pytest.approx(value, rel=1e-8)
    assert here.bound >= there.bound - 2e-6 * value
    assert verify(here, problem.form).claim is here.claim
    if kind == "dense" and loss is sm.squared_loss:
        np.savez(tmp_path / "data.npz", A=far, b=y, weights=weights / N)
        here.save(tmp_path / "c.json")
        assert main([str(tmp_path / "c.json"), str(tmp_path / "data.npz")]) == 0


@pytest.mark.parametrize(
    "loss", [sm.squared_loss, pytest.param(sm.huber_loss, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("kind", ["equation", "losses", "losses and rows"])
def test_constraints_and_further_losses_change_nothing_of_it(kind, loss, tmp_path):
    rng, far, near = _columns(2, 1e7, [0, 1, 4])
    y = near[:, 0] - 2.0 * near[:, 1] + 1.5 * near[:, 2] + 2.5 * rng.standard_normal(N)
    z = y + rng.standard_normal(N)
    found = []
    for A, B in ((near, near[::-1]), (far, far[::-1])):
        w, c = sm.Variable(P, name="w"), sm.Variable(name="c")
        goal = loss(A @ w + c, y)
        if "losses" in kind:
            goal = goal + 0.5 * sm.squared_loss(B @ w + c, z)
        limits = [w.sum() == 0.3] if kind != "losses" else []
        problem = sm.Problem(sm.minimize(goal), sm.card(w) <= K, *limits)
        problem.solve()
        found.append(problem.certify())
        verify(found[-1], problem.form)
        found[-1].save(tmp_path / "c.json")
        np.savez(tmp_path / "data.npz", A=A, b=y, B=B, c=z)
        assert main([str(tmp_path / "c.json"), str(tmp_path / "data.npz")]) == 0
    plain, shifted_ = found
    assert shifted_.upper == pytest.approx(plain.upper, rel=1e-7)
    assert shifted_.bound == pytest.approx(plain.bound, rel=1e-5)


def test_only_columns_that_are_far_in_every_loss_are_shifted():
    rng, far, _ = _columns(7, 1e7, [0, 1, 4])
    other = far - 1e7 * np.isin(np.arange(P), [4])
    w, c = sm.Variable(P), sm.Variable()
    y = rng.standard_normal(N)
    goal = sm.squared_loss(other @ w + c, y) + sm.squared_loss(far @ w + c, y)
    form = sm.Problem(sm.minimize(goal), sm.card(w) <= K).form
    shift = ShiftColumns.find(form)
    x = rng.standard_normal(P + 1)
    for term, moved in zip(form.terms, shift.apply(form).terms, strict=True):
        u, v = term.design.matvec(x), moved.design.matvec(shift.carry(x))
        np.testing.assert_allclose(u, v, rtol=1e-6)
        assert np.abs(moved.design.to_array()[:, :2]).max() < 10.0
    assert np.abs(shift.apply(form).terms[0].design.to_array()[:, 4]).max() < 10.0
    assert ShiftColumns.find(sm.Problem(sm.minimize(goal), w.sum() + c <= 1.0).form) is None


@pytest.mark.parametrize("unit", [1.0, 1e8])
def test_the_checker_encloses_exact_predictions(unit):
    rng, far, _ = _columns(6, 1e7)
    A, x = np.column_stack([unit * far, np.ones(N)]), rng.standard_normal(P + 1)
    x[:P] /= unit
    x[P] -= A[0, :P] @ x[:P]  # near zero
    u = predictions(SimpleNamespace(A=Ball(A), o=Ball(np.zeros(N))), x)
    exact = (number(A, True) @ number(x, True)).mid
    off = np.array([abs(float(e - Fraction(m))) for e, m in zip(exact, u.mid, strict=True)])
    assert np.all(off <= u.rad)
    assert np.all(u.rad <= 1e-13)
    assert np.all(np.abs(u.mid) < 20.0)


@pytest.mark.parametrize("kind", ["dense", "sparse", "mapped"])
def test_shifted_designs_multiply_differences(kind, tmp_path):
    rng, far, near = _columns(3, 1e7, [0, 3])
    design = as_design(_held(kind, far, tmp_path))
    t, digits = shifts(design)
    assert set(np.flatnonzero(t)) == {0, 3}
    assert 8 <= digits <= 9
    moved = shifted(design, t)
    exact = near - np.where(t != 0.0, near[0], 0.0)
    np.testing.assert_array_equal(moved.to_array(), exact)
    x, r, h = rng.standard_normal(P), rng.standard_normal(N), rng.uniform(0.1, 2.0, N)
    some = np.array([0, 2, 3])
    for d, e in [(moved, exact), (moved.restrict(some), exact[:, some])]:
        np.testing.assert_allclose(d.matvec(x[: e.shape[1]]), e @ x[: e.shape[1]], atol=1e-13)
        np.testing.assert_allclose(d.rmatvec(r), e.T @ r, atol=1e-13)
        np.testing.assert_allclose(d.rmatvec_in_double(r), e.T @ r, atol=1e-13)
        np.testing.assert_allclose(d.column_square_norms(h), h @ e**2, rtol=1e-13)
        np.testing.assert_allclose(d.gram(h), e.T @ (h[:, None] * e), atol=1e-12)
    rows = np.array([1, 5, 6])
    np.testing.assert_array_equal(moved.restrict_rows(rows).to_array(), exact[rows])


def test_columns_near_zero_constant_or_sparse_stay_as_they_are():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((N, 3)) * [1.0, 1.0, 0.0] + [5.0, 0.0, 7.0]
    assert shifts(as_design(A)) is None
    halves = np.zeros((N, 1))
    halves[::2] = 1e7 + rng.standard_normal((N // 2, 1))
    assert shifts(as_design(sp.csr_array(halves))) is None
    one = 1e7 + rng.standard_normal((500, 1))
    one[1] = 0.0  # in no sample of the rows
    assert shifts(as_design(sp.csr_array(one))) is None


def test_the_plan_says_where_float64_holds_few_digits():
    rng, far, _ = _columns(4, 1e12)
    y = far[:, 0] - 1e12 + rng.standard_normal(N)
    assert "float64 holds 4 digits" in str(
        _problem(far, y, sm.squared_loss, 0.0).explain(full=True)
    )
    near = _problem(_columns(4, 1e5)[1], y, sm.squared_loss, 0.0).explain(full=True)
    assert "columns far from zero shifted" in str(near)
    assert "digits" not in str(near)


def test_a_search_over_supports_proves_the_optimum_far_from_zero():
    rng, far, near = _columns(5, 1e7)
    y = near @ rng.standard_normal(P) + 3.0 * rng.standard_normal(N)
    plain, problem = (_problem(A, y, sm.squared_loss, 0.0) for A in (near, far))
    assert problem.prove().bound == pytest.approx(plain.prove().bound, rel=2e-6)


def test_a_target_far_from_zero_costs_a_certificate_no_digits(tmp_path):
    rng, _, near = _columns(5, 0.0)
    y = 100.0 + 0.1 * rng.standard_normal(N)
    problem = _problem(near, y, sm.squared_loss, 0.0)
    certificate = problem.certify()
    assert problem.solve().status == "optimal (proved)"
    assert certificate.relative_gap < 1e-10
    assert verify(certificate, problem.form).claim is certificate.claim
    np.savez(tmp_path / "data.npz", A=near, y=y)
    assert main([str(certificate.save(tmp_path / "c.json")), str(tmp_path / "data.npz")]) == 0
    weighted = _problem(near, y, sm.squared_loss, 0.1, rng.integers(0, 3, N)).certify()
    assert weighted.claim.optimal
    assert weighted.relative_gap < 1e-10


def test_infinite_entries_beside_an_intercept_are_named():
    a = np.array([[np.inf], [-np.inf], [np.inf]])
    w, c = sm.Variable(1), sm.Variable()
    with pytest.raises(sm.DataError, match="infinite"):
        sm.Problem(sm.minimize(sm.gamma_loss(a @ w + c, [1.0, 2.0, 3.0])), sm.card(w) <= 1).solve()
