"""Rows of linear constraints: what is violated, and what is rounding."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import sparsemodel as sm
from sparsemodel.certificates import certify, verify
from sparsemodel.cvx import minimise_with_cvxpy
from sparsemodel.designs import DenseDesign, OperatorDesign, SparseDesign
from sparsemodel.interfaces import (
    Box,
    Cardinality,
    CertificateError,
    Linear,
    OneNormBall,
    Region,
    SparseRegression,
    Term,
)
from sparsemodel.losses import LogisticLoss, QuantileLoss, SquaredLoss
from sparsemodel.numerics import RegressionObjective, minimise_restricted
from sparsemodel.numerics.minimisers.balls import threshold
from sparsemodel.numerics.minimisers.equations import minimise_with_equations
from sparsemodel.numerics.minimisers.multipliers import minimise_with_multipliers

SIZES = st.integers(-9, 9).map(lambda e: 10.0**e)


def exactly(row, x):
    return sum((Fraction(c) * Fraction(v) for c, v in zip(row, x, strict=True)), Fraction(0))


@given(seed=st.integers(0, 10**6), size=SIZES, terms=st.integers(1, 12))
@settings(max_examples=60)
def test_a_row_met_as_well_as_float64_can_is_not_violated(seed, size, terms):
    rng = np.random.default_rng(seed)
    x = np.zeros(20)
    x[rng.choice(20, terms, replace=False)] = size * rng.standard_normal(terms)
    row = rng.standard_normal((1, 20))
    bound = np.array([float(exactly(row[0], x))])  # terms cancel, the bound can be far smaller
    rows = Linear(DenseDesign(row), bound, bound)
    assert rows.violation(x) <= 1e-15
    reach = float(np.abs(row[0]) @ np.abs(x))
    off = 3e-9 * (1.0 + abs(bound[0])) + 40.0 * 2.0**-53 * reach
    for lower, upper in ((bound + off, np.array([np.inf])), (np.array([-np.inf]), bound - off)):
        assert Linear(DenseDesign(row), lower, upper).violation(x) > 1e-9


@pytest.mark.parametrize("storage", ["dense", "sparse", "operator"])
def test_large_entries_that_cancel(storage):
    ones = np.ones((70, 3))
    design = {
        "dense": lambda: DenseDesign(ones),
        "sparse": lambda: SparseDesign(sparse.csr_array(ones)),
        "operator": lambda: OperatorDesign(sparse.linalg.aslinearoperator(ones)),
    }[storage]()
    rows = Linear(design, np.ones(70), np.ones(70))
    x = np.array([-369869707.3, 0.0, 369869708.3])
    below = np.nextafter(x, -np.inf)
    assert rows.violation(x) == rows.violation(below) == 0.0
    assert rows.violation(x + np.array([0.0, 0.0, 1e-5])) > 1e-6
    assert np.isnan(rows.violation(np.array([np.nan, 0.0, 1.0])))


def test_a_feasible_start_is_kept_where_the_search_ends_outside(monkeypatch):
    rng = np.random.default_rng(0)
    term = Term(
        DenseDesign(rng.standard_normal((9, 3))),
        QuantileLoss(0.5),
        rng.standard_normal(9),
        np.full(9, 1 / 9),
    )
    one = np.ones(1)
    region = Region((Linear(DenseDesign(np.ones((1, 3))), one, one),))
    sparsity = Cardinality(3, 2)
    form = SparseRegression((term,), np.zeros(3), sparsity, region=region)
    objective = RegressionObjective(form)
    support = np.array([0, 2])
    monkeypatch.setattr("sparsemodel.numerics.minimisers.multipliers._ROUNDS", 0)
    start = objective.point(support, np.array([3.0, -2.0]))
    kept = minimise_with_multipliers(objective, support, start)
    assert kept.feasible
    assert kept.point.value == start.value
    assert kept.point.x.tolist() == [3.0, 0.0, -2.0]
    for other in (np.array([3.0, 3.0]), np.array([0.0, 0.0])):
        lost = minimise_with_multipliers(objective, support, objective.point(support, other))
        assert not lost.feasible
        assert lost.point.value == np.inf
    outside = objective.point(np.array([0, 1]), np.array([3.0, -2.0]))
    assert not minimise_with_multipliers(objective, support, outside).feasible


@given(seed=st.integers(0, 10**6), q=st.integers(1, 9), share=st.floats(0.0, 1.5))
def test_the_threshold_of_a_1_norm_leaves_the_radius(seed, q, share):
    sizes = np.abs(np.random.default_rng(seed).standard_normal(q))
    radius = share * float(sizes.sum())
    t = threshold(sizes, radius)
    left = float(np.maximum(sizes - t, 0.0).sum())
    assert left == pytest.approx(min(radius, float(sizes.sum())), abs=1e-12)
    assert t == 0.0 or radius < float(sizes.sum())


@pytest.mark.parametrize("loss", [SquaredLoss(), LogisticLoss(), QuantileLoss(0.5)])
@pytest.mark.parametrize("centred", [False, True])
def test_minimisers_in_a_1_norm_are_those_of_a_conic_solver(loss, centred):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        a, index = rng.standard_normal((20, 7)), np.array([0, 2, 3, 4, 6])
        y = a @ rng.standard_normal(7)
        y = np.sign(y) if isinstance(loss, LogisticLoss) else y
        center = 0.1 * rng.standard_normal(5) if centred else None
        region = Region(one_norms=(OneNormBall(index, 0.7, center),))
        term = Term(DenseDesign(a), loss, y, np.full(20, 0.05))
        form = SparseRegression((term,), np.full(7, 0.01), Cardinality(7, 4), region=region)
        objective = RegressionObjective(form)
        support = np.array([1, 2, 4, 6])
        found = minimise_with_multipliers(objective, support, objective.origin())
        wanted = minimise_with_cvxpy(objective, support, objective.origin())
        assert found.feasible
        assert region.violation(found.point.x) <= 1e-9
        assert found.point.value == pytest.approx(wanted.value, rel=1e-6, abs=1e-8)
        if not isinstance(loss, QuantileLoss):  # its multiplier balances the gradient
            gradient = objective.gradient(objective.point(support, found.point.x[support]))
            assert (gradient + found.point.normal)[support] == pytest.approx(np.zeros(4), abs=1e-6)


@pytest.mark.parametrize("kind", ["equations", "with bounds", "with inequalities"])
@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_one_solve_is_what_multipliers_converge_to(kind, scale):
    """Columns and rows of mixed sizes, bounds and inequalities that are active or not."""
    found = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        sizes = 10.0 ** rng.integers(-3, 4, 7)
        a, y = rng.standard_normal((20, 7)) * sizes, scale * rng.standard_normal(20)
        C = rng.standard_normal((2, 7)) * np.array([[1.0], [1e4]]) * sizes
        aims = scale * np.array([0.3, 1e4 * rng.standard_normal()])
        top = aims + np.array([0.0, 1e4 * scale * (kind == "with inequalities")])
        region = Region((Linear(DenseDesign(C), aims, top),))
        box = Box(np.full(7, -1.5 * scale) / sizes, np.full(7, np.inf))
        term = Term(DenseDesign(a), SquaredLoss(), y, np.full(20, 0.05))
        form = SparseRegression(
            (term,),
            np.zeros(7),
            Cardinality(7, 4),
            box=box if kind == "with bounds" else None,
            region=region,
        )
        objective, support = RegressionObjective(form), np.array([1, 2, 4, 6])
        one = minimise_with_equations(objective, support, objective.origin())
        other = minimise_with_multipliers(objective, support, objective.origin())
        if one is None:
            assert kind != "equations"
            continue
        found += 1
        assert other.feasible
        assert region.violation(one.x) <= 1e-12
        assert one.value == pytest.approx(other.point.value, rel=1e-9)
        slopes = (objective.restricted_gradient(one, support) + one.normal[support]) / sizes[
            support
        ]
        assert np.abs(slopes).max() <= 1e-10 * scale
    assert found == 12


def test_few_supports_are_all_tried_for_a_feasible_point():
    """One asset alone meets every constraint; the sparsest mixtures are of others."""
    w = sm.Variable(5, name="w")
    C = np.array([[1.0, 1.0, 1.0, 1.0, 1.0], [0.0, 4.0, 0.0, 4.0, 1.0], [4.0, 0.0, 4.0, 0.0, 1.0]])
    rules = [C[0] @ w == 1.0, C[1] @ w >= 0.9, C[2] @ w >= 0.9, w >= 0.0]
    goal = sm.minimize(sm.squared_loss(np.eye(5) @ w, np.zeros(5)))
    sm.Problem(goal, [sm.card(w) <= 1, *rules]).solve()
    assert w.value == pytest.approx(np.array([0.0, 0.0, 0.0, 0.0, 1.0]))


def test_equations_that_depend_on_each_other_are_left_to_multipliers():
    term = Term(DenseDesign(np.eye(3)), SquaredLoss(), np.ones(3), np.ones(3))
    twice = Linear(DenseDesign(np.ones((2, 3))), np.ones(2), np.ones(2))
    form = SparseRegression((term,), np.zeros(3), Cardinality(3, 2), region=Region((twice,)))
    objective = RegressionObjective(form)
    assert minimise_with_equations(objective, np.array([0, 1]), objective.origin()) is None
    kept = minimise_restricted(objective, np.array([0, 1]), objective.origin())
    assert kept.x == pytest.approx([0.5, 0.5, 0.0], abs=1e-9)


def test_no_point_where_zeros_are_too_far_from_the_centre_of_a_1_norm():
    ball = OneNormBall(np.arange(3), 1.0, np.array([0.2, 3.0, 0.0]))
    term = Term(DenseDesign(np.eye(3)), SquaredLoss(), np.ones(3), np.ones(3))
    region = Region(one_norms=(ball,))
    form = SparseRegression((term,), np.zeros(3), Cardinality(3, 1), region=region)
    objective = RegressionObjective(form)
    assert not minimise_with_multipliers(objective, np.array([0]), objective.origin()).feasible
    assert minimise_with_multipliers(objective, np.array([1]), objective.origin()).feasible


def test_a_certificate_belongs_to_the_radius_of_its_1_norm():
    def form(radius):
        region = Region(one_norms=(OneNormBall(np.arange(3), radius),))
        term = Term(DenseDesign(np.eye(3)), SquaredLoss(), np.ones(3), np.ones(3))
        return SparseRegression((term,), np.full(3, 0.1), Cardinality(3, 1), region=region)

    certificate = certify(form(0.5), np.array([0.5, 0.0, 0.0]))
    verify(certificate, form(0.5))
    with pytest.raises(CertificateError, match=r"problem\.region"):
        verify(certificate, form(5.0))


@pytest.mark.parametrize(  # each loss in units of one size, and in the slow suite of the others
    ("units", "loss"),
    [
        pytest.param(units, loss, marks=[pytest.mark.slow] * ((i + j) % 3 > 0))
        for i, units in enumerate((1e-3, 1.0, 1e3))
        for j, loss in enumerate((sm.squared_loss, sm.logistic_loss, sm.absolute_loss))
    ],
)
def test_entries_that_constraints_hold_at_zero_are_zero_and_the_others_are_found(
    loss, units: float
) -> None:
    rng = np.random.default_rng(5)
    A = rng.standard_normal((40, 4)) / [units, 1.0, 1.0, 1.0]
    y = np.sign(A @ [0.5 * units, 1.0, -1.0, 2.0])
    ties = np.array([[1.0, 1.0, 0.0, 0.0], [1.0, -3.0, 0.0, 0.0], [0.3, 0.2, 1.0, -0.7]])
    w, few = sm.Variable(4), sm.Variable(2)
    fit = loss(A @ w, y) + sm.ridge(w, 0.01)
    rest = sm.minimize(loss(A[:, 2:] @ few, y) + sm.ridge(few, 0.01))
    alone = sm.Problem(rest, sm.card(few) <= 2, few[0] == 0.7 * few[1]).solve()
    for tied in (ties @ w == 0.0, [ties @ w <= 0.0, ties @ w >= 0.0]):
        found = sm.Problem(sm.minimize(fit), sm.card(w) <= 4, tied).solve()
        assert found.value == pytest.approx(alone.value, rel=1e-7)
        assert w.value[:2].tolist() == [0.0, 0.0]
