"""The independent check by CVXPY, limits on time, and allowances of sparse products."""

from __future__ import annotations

import time
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

import sparsemodel as sm
from sparsemodel.certificates import verify
from sparsemodel.certificates.arithmetic.products import predictions
from sparsemodel.designs import SparseDesign
from sparsemodel.interfaces import CertificateError, UnsupportedProblemError


def declared(loss=sm.squared_loss, n=40, p=8, seed=0, **options):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((n, p))
    u = a[:, 0] - a[:, 1] + rng.standard_normal(n)
    y = np.sign(u) if loss is sm.logistic_loss else u
    w = sm.Variable(p, name="w")
    return sm.Problem(sm.minimize(loss(a @ w, y, **options) + sm.ridge(w, 0.1)), sm.card(w) <= 2)


@pytest.mark.parametrize("loss", [sm.squared_loss, sm.logistic_loss, sm.huber_loss])
@pytest.mark.parametrize("n", [40, 6])
def test_a_conic_solver_agrees(loss, n):
    problem = declared(loss, n=n)
    told = verify(problem.certify(), problem.form, cross_check=True)
    line = dict(told.lines)["cross-check"]
    assert "is not above it" in line
    assert "cross-check" not in dict(verify(problem.certify(), problem.form).lines)


def test_extracted_curvature_is_part_of_the_check():
    problem = declared(seed=2)
    c = problem.certify()
    assert c.witness.extraction is not None
    assert "is not above it" in str(verify(c, problem.form, cross_check=True))
    proof = problem.prove(gap=1e-6)
    assert "root of the proof" in str(verify(proof, problem.form, cross_check=True))


def test_a_bound_above_the_relaxation_is_caught(monkeypatch):
    problem = declared(n=6)
    c = problem.certify()
    module = pytest.importorskip("sparsemodel.cvx.relaxations")
    monkeypatch.setattr(module, "relaxation_value", lambda form, extraction=None: c.bound - 0.1)
    with pytest.raises(CertificateError, match="line 'bound'"):
        verify(c, problem.form, cross_check=True)


def test_precision_matrices_have_no_cross_check():
    omega = sm.Variable((3, 3), symmetric=True)
    goal = sm.minimize(sm.gaussian_nll(omega, np.eye(3)))
    graph = sm.Problem(goal, [sm.card(sm.offdiag(omega)) <= 2, omega >> 0.1, omega << 10.0])
    with pytest.raises(UnsupportedProblemError, match="regressions"):
        verify(graph.certify(), graph.form, cross_check=True)


def test_certify_keeps_its_time_limit():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((100, 400)) * 10.0 ** rng.uniform(-3.0, 3.0, 400)
    w = sm.Variable(400)
    goal = sm.minimize(sm.absolute_loss(a @ w, a[:, 0]) + sm.ridge(w, 1e-3))
    problem = sm.Problem(goal, sm.card(w) <= 5)
    problem.solve(time_limit=2.0)
    began = time.perf_counter()
    c = problem.certify(time_limit=0.3)
    assert time.perf_counter() - began < 8.0
    assert c.bound <= c.upper
    assert verify(c, problem.form).claim is c.claim


@pytest.mark.parametrize("form", ["csr", "csc"])
def test_allowances_of_sparse_products_are_tight_and_enough(form):
    rng = np.random.default_rng(1)
    a = rng.standard_normal((30, 12)) * 10.0 ** rng.uniform(-6.0, 6.0, 12)
    a[rng.random(a.shape) < 0.5] = 0.0
    design = SparseDesign(sp.csr_array(a) if form == "csr" else sp.csc_array(a))
    x = rng.standard_normal(12) / np.maximum(np.abs(a).max(axis=0), 1e-9)
    support = np.arange(12)
    u, error = predictions(design, x, support)
    sizes = np.abs(a) @ np.abs(x)
    for i in range(30):
        row = zip(a[i].tolist(), x.tolist(), strict=True)
        exact = sum((Fraction(v) * Fraction(w) for v, w in row), Fraction(0))
        assert abs(Fraction(float(u[i])) - exact) <= Fraction(float(error[i]))
    assert np.all(error <= 1e-14 * sizes + 1e-300)
