"""Branch and bound against brute force, for every kind of problem it accepts."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from sparsemodel.certificates import verify
from sparsemodel.certificates.branch_and_bound import prove
from sparsemodel.certificates.primal import primal
from sparsemodel.designs import DenseDesign, OnesDesign, StackedDesign
from sparsemodel.interfaces import Cardinality, CertificateError, DataError, SparseRegression, Term
from sparsemodel.losses import HuberLoss, LogisticLoss, SmoothedHingeLoss, SquaredLoss
from sparsemodel.numerics import RegressionObjective, minimise_on_support

LOSSES = [SquaredLoss(), LogisticLoss(), HuberLoss(0.7), SmoothedHingeLoss(0.5)]
VARIANTS = ["plain", "intercept", "always in", "groups", "price", "wide"]


def make(loss, variant, rng):
    n, p, k = (12, 7, 2) if variant == "wide" else (25, 6, 2)
    n = 5 if variant == "wide" else n
    a = rng.standard_normal((n, p)) + 0.7 * rng.standard_normal((n, 1))
    u = a[:, 0] - a[:, 1] + 0.8 * rng.standard_normal(n)
    labelled = isinstance(loss, LogisticLoss | SmoothedHingeLoss)
    y = np.where(u > 0.0, 1.0, -1.0) if labelled else u
    if labelled:
        y[:2] = [1.0, -1.0]
    design, ridge = DenseDesign(a), np.full(p, 0.05)
    free, groups, price = np.empty(0, dtype=np.intp), None, 0.0
    if variant == "intercept":
        design = StackedDesign(n, p + 1, ((np.arange(p), design), (np.array([p]), OnesDesign(n))))
        ridge, free = np.append(ridge, 0.0), np.array([p])
    if variant == "always in":
        free = np.array([1])
    if variant == "groups":
        groups = np.array([0, 0, 1, 1, 2, 2])
    if variant == "price":
        price, k = 0.03, p
    term = Term(design, loss, y, np.full(n, 1.0 / n))
    return SparseRegression((term,), ridge, Cardinality(ridge.size, k, free, groups, price))


def every_support(form):
    objective, sparsity = RegressionObjective(form), form.sparsity
    for size in range(min(sparsity.k, sparsity.units) + 1):
        for units in itertools.combinations(range(sparsity.units), size):
            support = sparsity.coordinates(np.array(units, dtype=np.intp))
            point = minimise_on_support(objective, support, objective.origin())
            yield point.value + sparsity.price * sparsity.count(point.x)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_proofs_agree_with_brute_force(loss, variant, seed):
    form = make(loss, variant, np.random.default_rng(seed))
    best = min(every_support(form))
    c = prove(form, np.zeros(form.shape), gap=1e-5)
    slack = 1e-9 * (1.0 + abs(best))
    assert c.bound <= best + slack
    assert c.value >= best - slack
    assert c.value - best <= 2e-5 * max(abs(best), 1e-3) + slack
    assert c.relative_gap <= 1e-5 * (1.0 + 1e-6)


def test_a_search_that_is_cut_short_still_bounds():
    rng = np.random.default_rng(5)
    a, y = rng.standard_normal((20, 30)), rng.standard_normal(20)
    term = Term(DenseDesign(a), SquaredLoss(), y, np.full(20, 0.05))
    form = SparseRegression((term,), np.full(30, 0.05), Cardinality(30, 3))
    best = min(every_support(form))
    for nodes in (1, 3, 9):
        c = prove(form, np.zeros(30), gap=1e-6, max_nodes=nodes)
        assert c.bound <= best
        assert primal(form, c.x).upper >= best - 1e-12
    assert math.isfinite(c.bound)


def test_a_proof_whose_regions_are_not_in_the_file_is_not_called_verified():
    form = make(LogisticLoss(), "intercept", np.random.default_rng(1))
    c = prove(form, np.zeros(form.shape))
    assert any("search covered every support" in a.text and not a.checked for a in c.assumptions)
    with pytest.raises(CertificateError, match="line 'proof' cannot be checked"):
        verify(c, form)


def test_a_bad_start_is_refused():
    form = make(SquaredLoss(), "plain", np.random.default_rng(0))
    with pytest.raises(DataError, match="infeasible"):
        prove(form, np.ones(form.shape))
    with pytest.raises(DataError, match="gap"):
        prove(form, np.zeros(form.shape), gap=0.0)
