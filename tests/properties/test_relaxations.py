"""The relaxation engine against a conic solver and against brute force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sparsemodel.certificates.dual_bounds.curvature import curvature, safe, simple_diagonals
from sparsemodel.certificates.dual_bounds.diagonal_shift import certainly_psd, hessian
from sparsemodel.certificates.dual_bounds.witness import evaluate
from sparsemodel.certificates.relaxation import relax, relax_extracted
from sparsemodel.cvx.relaxations import relaxation_value
from sparsemodel.designs import DenseDesign, OnesDesign, StackedDesign
from sparsemodel.interfaces import Box, Cardinality, SparseRegression, Term
from sparsemodel.losses import (
    AbsoluteLoss,
    EpsilonInsensitiveLoss,
    HingeLoss,
    HuberLoss,
    LogisticLoss,
    MultinomialLoss,
    QuantileLoss,
    SmoothedHingeLoss,
    SquaredLoss,
)
from sparsemodel.numerics.ksupport import ksupport_prox, ksupport_value

SMOOTH = [SquaredLoss(), LogisticLoss(), HuberLoss(0.7), SmoothedHingeLoss(0.5)]
VARIANTS = ["plain", "intercept", "always in", "groups", "nonnegative", "box", "price", "matrix"]


def make(loss, variant, rng, n=30, p=12, k=3):
    a = rng.standard_normal((n, p)) + 0.5 * rng.standard_normal((n, 1))
    u = a[:, 0] - a[:, 1] + 0.5 * a[:, 2] + rng.standard_normal(n)
    labelled = isinstance(loss, LogisticLoss | SmoothedHingeLoss | HingeLoss)
    y = np.where(u > 0, 1.0, -1.0) if labelled else u
    design, ridge, free = DenseDesign(a), np.full(p, 0.1), np.empty(0, dtype=np.intp)
    groups, box, price, outputs = None, None, 0.0, 1
    if variant == "intercept":
        design = StackedDesign(n, p + 1, ((np.arange(p), design), (np.array([p]), OnesDesign(n))))
        ridge, free = np.append(ridge, 0.0), np.array([p])
    if variant == "two free":
        columns = DenseDesign(np.stack([np.ones(n), rng.standard_normal(n)], axis=1))
        blocks = ((np.arange(p), design), (np.array([p, p + 1]), columns))
        design = StackedDesign(n, p + 2, blocks)
        ridge, free = np.append(ridge, [0.0, 0.0]), np.array([p, p + 1])
    if variant == "always in":
        free = np.array([4])
    if variant == "groups":
        groups = np.repeat(np.arange(p // 2), 2)
    if variant == "nonnegative":
        box = Box(np.zeros(p), np.full(p, np.inf))
    if variant == "box":
        box = Box(np.full(p, -0.2), np.full(p, 0.3))
    if variant == "price":
        price, k = 0.02, p
    if variant == "matrix":
        y, outputs = np.stack([u, rng.standard_normal(n)], axis=1), 2
    term = Term(design, loss, y, np.full(n, 1.0 / n))
    sparsity = Cardinality(ridge.size, k, free, groups, price)
    return SparseRegression((term,), ridge, sparsity, outputs, outputs > 1, box)


CASES = [(loss, v) for loss in SMOOTH for v in VARIANTS if v != "matrix"]
CASES += [(SquaredLoss(), "matrix")]


@pytest.mark.parametrize(("loss", "variant"), CASES, ids=lambda c: getattr(c, "name", c))
def test_the_engine_agrees_with_a_conic_solver(loss, variant):
    form = make(loss, variant, np.random.default_rng(7))
    found = relax(form, np.zeros(form.shape))
    expected = relaxation_value(form)
    scale = 1.0 + abs(expected)
    assert found.value == pytest.approx(expected, abs=2e-5 * scale)
    assert found.bound <= expected + 1e-6 * scale
    bound = evaluate(form, found.witness)
    assert bound.value == pytest.approx(found.bound, abs=1e-9 * scale)
    assert bound.value >= expected - 2e-5 * scale


@pytest.mark.parametrize(  # each variant with two losses, and in the slow suite with the others
    ("loss", "variant"),
    [
        pytest.param(loss, variant, marks=[pytest.mark.slow] * ((i + j) % 2))
        for i, variant in enumerate(("plain", "intercept", "two free", "nonnegative", "price"))
        for j, loss in enumerate(
            (HingeLoss(), AbsoluteLoss(), QuantileLoss(0.2), EpsilonInsensitiveLoss(0.3))
        )
    ],
    ids=lambda one: getattr(one, "name", one),
)
def test_kinks_cost_no_accuracy(loss, variant):
    form = make(loss, variant, np.random.default_rng(3))
    found = relax(form, np.zeros(form.shape))
    expected = relaxation_value(form)
    bound = evaluate(form, found.witness).value
    assert bound <= expected + 1e-6
    assert bound >= expected - 3e-6
    assert found.value >= expected - 1e-6
    assert bound == pytest.approx(found.bound, abs=1e-9)


@pytest.mark.parametrize("loss", [HingeLoss(), AbsoluteLoss()], ids=lambda loss: loss.name)
def test_rounds_that_close_little_are_left_out(loss):
    form = make(loss, "plain", np.random.default_rng(3))
    exact, rough = (relax(form, np.zeros(form.shape), min_progress=share) for share in (0.0, 1e-2))
    term = form.terms[0]
    opened = term.loss.total(np.zeros(30), term.target, term.weights) - exact.bound
    assert rough.iterations < exact.iterations
    assert exact.bound - 0.03 * opened <= evaluate(form, rough.witness).value <= exact.value


def test_labels_on_one_side_leave_no_loss():
    """Labels on one side: the intercept alone separates them, and no loss is left."""
    form = make(HingeLoss(), "intercept", np.random.default_rng(3))
    term = replace(form.terms[0], target=np.ones(30))
    found = relax(replace(form, terms=(term,)), np.zeros(form.shape))
    assert found.value == pytest.approx(0.0, abs=1e-6)


def test_multinomial_bounds_are_valid_and_tight():
    rng = np.random.default_rng(1)
    n, p, m = 40, 8, 3
    a = rng.standard_normal((n, p))
    y = np.argmax(a[:, :3] + 0.5 * rng.standard_normal((n, 3)), axis=1).astype(float)
    term = Term(DenseDesign(a), MultinomialLoss(), y, np.full(n, 1.0 / n))
    form = SparseRegression((term,), np.full(p, 0.1), Cardinality(p, 3), m, True)
    found = relax(form, np.zeros(form.shape))
    expected = relaxation_value(form)
    bound = evaluate(form, found.witness).value
    assert bound <= expected + 1e-6
    assert bound >= expected - 1e-4


def test_curvature_from_the_data_closes_gaps_and_is_proved():
    rng = np.random.default_rng(0)
    form = make(SquaredLoss(), "intercept", rng, n=120, p=12)
    h = hessian(form)
    taken = curvature(form, h)
    best = relax_extracted(form, taken, simple_diagonals(taken), np.zeros(form.shape))
    plain = relax(form, np.zeros(form.shape))
    bound = evaluate(form, best.witness)
    assert bound.finite
    assert bound.value > plain.bound
    too_much = 1.01 * np.linalg.eigvalsh(taken.schur)[0] + 1e-9
    assert safe(taken, np.full(12, too_much)) is None
    full = np.zeros(13)
    full[taken.counted] = too_much
    assert not certainly_psd(h.copy(), full, 120)


def test_proximal_points_minimise():
    rng = np.random.default_rng(5)
    for _ in range(20):
        q, ridge = np.abs(rng.standard_normal(6)), rng.uniform(0.1, 2.0, 6)
        step, price = rng.uniform(0.1, 2.0), float(rng.choice([0.0, 0.1]))
        x, _ = ksupport_prox(q, step, ridge, 2, price=price)

        def cost(v, q=q, step=step, ridge=ridge, price=price):
            return np.sum((v - q) ** 2) / (2 * step) + ksupport_value(v, ridge, 2, price=price)

        best = cost(x)
        for _ in range(20):
            assert best <= cost(np.abs(x + 0.05 * rng.standard_normal(6))) + 1e-12
