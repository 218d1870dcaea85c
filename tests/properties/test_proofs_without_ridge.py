"""Proofs with little or no ridge against brute force: intercepts, weights, boxes, signs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.optimize

from sparsemodel.certificates import verify
from sparsemodel.certificates.dual_bounds.coefficient_bounds.bounds import from_data
from sparsemodel.certificates.proving.prove import prove
from sparsemodel.certificates.statements.objective_interval import primal
from sparsemodel.designs import DenseDesign, OnesDesign, StackedDesign
from sparsemodel.interfaces import Box, Cardinality, SparseRegression, Term
from sparsemodel.losses import SquaredLoss

KINDS = ["plain", "intercept", "box", "signs"]


def make(kind, seed):
    rng = np.random.default_rng(seed)
    p, n, k = int(rng.integers(5, 9)), int(rng.integers(6, 30)), int(rng.integers(1, 4))
    a = rng.standard_normal((n, p)) + rng.choice([0.0, 0.3, 1.0]) * rng.standard_normal((n, 1))
    y = a[:, 0] - a[:, 1] + rng.uniform(0.1, 1.5) * rng.standard_normal(n)
    design, free, box = DenseDesign(a), np.empty(0, dtype=np.intp), None
    ridge = np.full(p, rng.choice([0.0, 0.0, 1e-4, 1e-2]))
    if kind == "intercept":
        design = StackedDesign(n, p + 1, ((np.arange(p), design), (np.array([p]), OnesDesign(n))))
        ridge, free = np.append(ridge, 0.0), np.array([p])
    elif kind == "box":
        box = Box(-rng.uniform(0.0, 0.8, p), rng.uniform(0.01, 0.8, p))
    elif kind == "signs":
        box = Box(np.zeros(p), np.full(p, np.inf))
    term = Term(design, SquaredLoss(), y, rng.uniform(0.3, 1.5, n) / n)
    return SparseRegression((term,), ridge, Cardinality(ridge.size, k, free), box=box)


def brute_force(form):
    (term,), sparsity = form.terms, form.sparsity
    root = np.sqrt(term.weights)
    a = root[:, None] * term.design.restrict(np.arange(sparsity.size)).to_array()
    best = np.inf
    for chosen in itertools.combinations(np.flatnonzero(sparsity.counted), sparsity.k):
        s = np.sort(np.concatenate([sparsity.free, chosen]).astype(np.intp))
        m = np.vstack([a[:, s], np.diag(np.sqrt(form.ridge[s]))])
        b = np.concatenate([root * term.target, np.zeros(s.size)])
        if form.box is None:
            v = np.linalg.lstsq(m, b, rcond=None)[0]
        else:
            box = (form.box.lower[s], form.box.upper[s])
            v = scipy.optimize.lsq_linear(m, b, box, tol=1e-13).x
        best = min(best, 0.5 * float(np.sum(np.square(m @ v - b))))
    return best


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", KINDS)
def test_proofs_within_coefficient_bounds_agree_with_brute_force(kind, seed):
    form = make(kind, seed)
    truth, zero = brute_force(form), np.zeros(form.shape)
    bounds = from_data(form, primal(form, zero), work=1e8, deadline=None)
    assert not isinstance(bounds, str)
    certificate = prove(form, zero, gap=1e-6, time_limit=20.0, bounds=bounds)
    slack = 1e-9 * (1.0 + abs(truth))
    assert certificate.proof["tree"]["gram"] is True
    assert certificate.bound <= truth + slack
    assert truth - slack <= certificate.value <= truth * (1.0 + 2e-6) + slack
    assert certificate.relative_gap <= 1.1e-6
    verify(certificate, form)
