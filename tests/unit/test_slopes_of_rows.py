"""Slopes of linear constraints and norms, one choice for all parts or part by part."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import Certificate, verify


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
