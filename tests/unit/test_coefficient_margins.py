"""Bounds on coefficients, piece by piece: roundings at their worst, shifts, subsets, limits."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import Claim
from sparsemodel.certificates.dual_bounds.coefficient_bounds.base import CoefficientBounds
from sparsemodel.certificates.dual_bounds.coefficient_bounds.bounds import boxed, fault, from_data
from sparsemodel.certificates.dual_bounds.coefficient_bounds.centred import centred
from sparsemodel.certificates.dual_bounds.coefficient_bounds.eliminated import (
    Eliminated,
    eliminated,
)
from sparsemodel.certificates.dual_bounds.coefficient_bounds.neighbours import (
    Neighbours,
    strongest,
)
from sparsemodel.certificates.dual_bounds.coefficient_bounds.sweep import Sweep
from sparsemodel.certificates.proving.gram.quadratic import Quadratic
from sparsemodel.certificates.statements.objective_interval import primal
from sparsemodel.designs import DenseDesign
from sparsemodel.interfaces import Box, Cardinality, SparseRegression, Term
from sparsemodel.losses import SquaredLoss

pytest.importorskip("numba")


def squared(A, y, k, ridge, *, free=(), weights=None, box=None):
    A = np.asarray(A, dtype=float)
    n, p = A.shape
    weights = np.ones(n) if weights is None else weights
    term = Term(DenseDesign(A), SquaredLoss(), np.asarray(y, dtype=float), weights)
    sparsity = Cardinality(p, k, free=np.array(free, dtype=np.intp))
    return SparseRegression((term,), np.broadcast_to(ridge, p) + 0.0, sparsity, box=box)


def bounds_of(form, at=None):
    x = np.zeros(form.shape) if at is None else at
    found = from_data(form, primal(form, x), work=1e9, deadline=None)
    assert isinstance(found, CoefficientBounds), found
    return found


# ---- one row: the products may be off by their unit, in the worst way ----------------------------


def quadratic(seed, p=6, unit=0.01):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((40, p)) + 0.3 * rng.standard_normal((40, 1))
    gram, ridge = a.T @ a / 40, rng.uniform(0.01, 0.3, p)
    linear, sizes = rng.standard_normal(p), np.sqrt(np.diag(gram) + ridge)
    return Eliminated(
        counted=np.arange(p),
        void=np.zeros(0, dtype=np.int64),
        gram=np.ascontiguousarray(gram, dtype=np.float32),
        linear=linear,
        ridge=ridge,
        sizes=sizes,
        reach=float(np.max(np.abs(linear) / sizes)),
        unit=unit,
        scale=np.ones(p),
    )


@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_row_holds_for_the_worst_products_within_their_unit(k):
    """Without neighbours: ``w_j = (c_j - sum G_ji w_i) / (G_jj + ridge_j)``, all signs at worst."""
    for seed in range(20):
        e = quadratic(seed)
        p = e.linear.size
        m = np.random.default_rng(seed).uniform(0.5, 2.0, p)
        out = Sweep(e, k, Neighbours.none(p), None)(m, floor=0.0)
        off = e.unit * np.outer(e.sizes, e.sizes)
        for j in range(p):
            others = (np.abs(e.gram[j]) + off[j]) * m
            others[j] = 0.0
            above = abs(e.linear[j]) + e.unit * e.sizes[j] * e.reach
            above += np.sort(others)[p - (k - 1) :].sum()
            worst = above / (e.gram[j, j] - off[j, j] + e.ridge[j])
            assert worst <= out[j] <= 1.1 * worst


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("many", [1, 2, 5])
def test_a_row_holds_for_every_support_whatever_is_eliminated(k, many):
    """Every restricted minimiser within ``m`` is within the row's bound; errors drawn at random."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        e = quadratic(seed, unit=1e-4)
        p = e.linear.size
        found = []
        for _ in range(4):
            sign = np.triu(rng.choice([-1.0, 1.0], (p, p)))
            sign = sign + np.triu(sign, 1).T
            h = e.gram + e.unit * sign * np.outer(e.sizes, e.sizes) + np.diag(e.ridge)
            c = e.linear + e.unit * rng.choice([-1.0, 1.0], p) * e.sizes * e.reach
            for q in range(1, k + 1):
                for S in map(list, itertools.combinations(range(p), q)):
                    w = np.zeros(p)
                    w[S] = np.linalg.solve(h[np.ix_(S, S)], c[S])
                    found.append(np.abs(w))
        m = np.max(found, axis=0)
        neighbours = strongest(e.gram, np.full(p, many))
        out = Sweep(e, k, neighbours, None)(m, floor=0.0)
        assert np.all(out >= m)


def test_the_check_asks_no_more_than_the_bounds_themselves():
    """The check holds for the rows that a pass makes smaller, and for no other."""
    for seed in range(10):
        e = quadratic(seed)
        p = e.linear.size
        rng = np.random.default_rng(seed)
        nowhere = np.full(p, np.inf)
        for many in (0, 2, p - 1):
            neighbours = strongest(e.gram, np.full(p, many))
            m = rng.uniform(2.0, 9.0, p)
            out = Sweep(e, 3, neighbours, None)(m, floor=0.0)
            held = Sweep(e, 3, neighbours, None).holds(m, nowhere)
            np.testing.assert_array_equal(held, out < m)
            np.testing.assert_array_equal(
                Sweep(e, 3, neighbours, None).holds(m, m), np.ones(p, dtype=bool)
            )


def test_more_neighbours_never_make_a_row_larger_where_its_value_is_known():
    """The division stops where it does not help: with every neighbour no bound is above without."""
    for seed in range(10):
        e = quadratic(seed, p=8)
        m = np.random.default_rng(seed).uniform(0.5, 2.0, 8)
        none = Sweep(e, 4, Neighbours.none(8), None)(m, floor=0.0)
        held = Sweep(e, 4, strongest(e.gram, np.full(8, 7)), None).holds(
            np.maximum(m, 1.001 * none), np.full(8, np.inf)
        )
        plain = Sweep(e, 4, Neighbours.none(8), None).holds(
            np.maximum(m, 1.001 * none), np.full(8, np.inf)
        )
        assert np.all(held | ~plain)


def test_a_row_with_more_parts_than_it_may_have_is_not_bounded():
    e = quadratic(3)
    p = e.linear.size
    m, neighbours = np.full(p, 0.5), strongest(e.gram, np.full(p, p - 1))
    full = Sweep(e, 4, neighbours, None)(m, floor=0.0)
    few = Sweep(e, 4, neighbours, None, most=1)(m, floor=0.0)
    assert np.all(np.isfinite(full))
    assert np.all(np.isinf(few) | (few == full))
    assert np.any(np.isinf(few))


def test_products_in_single_precision_are_within_their_unit():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 20)) * 10.0 ** rng.uniform(-6, 6, 20)
    e = eliminated(squared(A, rng.standard_normal(30), 3, 0.1))
    exact = A.T @ A
    factors = np.exp2(np.round(np.log2(e.sizes / np.sqrt(np.diag(exact) + 0.1))))
    off = np.abs(e.gram - exact * np.outer(factors, factors)) / np.outer(e.sizes, e.sizes)
    assert 1e-9 < off.max() <= e.unit < 1e-6


# ---- neighbours ----------------------------------------------------------------------------------


def test_neighbours_are_sets_of_other_rows():
    starts = np.array([0, 1, 2, 2])
    assert Neighbours(starts, np.array([1, 2])).valid(3)
    for index in ([0, 2], [1, 1], [1, 3], [-1, 2]):
        assert not Neighbours(starts, np.array(index)).valid(3)
    assert not Neighbours(np.array([0, 2, 2, 2]), np.array([1, 1])).valid(3)


# ---- shifts and eliminations ---------------------------------------------------------------------


def least_over_the_intercept(form, x, free):
    """Return the least objective over one free coordinate, the others at ``x``."""
    values = []
    for b in (-1.0, 0.0, 1.0):
        at = x.copy()
        at[free] = b
        values.append(primal(form, at).value)
    bend, slope = values[0] - 2.0 * values[1] + values[2], 0.5 * (values[2] - values[0])
    return values[1] - 0.5 * slope**2 / bend


def test_a_shift_by_the_intercept_changes_nothing_else():
    """Rows that the intercept does not reach are not shifted: two terms, one without it."""
    rng = np.random.default_rng(0)
    first = np.column_stack([rng.standard_normal((9, 3)) + 5.0, np.ones(9)])
    second = np.column_stack([rng.standard_normal((7, 3)) - 2.0, np.zeros(7)])
    form = squared(first, rng.standard_normal(9) + 4.0, 2, 0.0, free=(3,))
    other = squared(second, rng.standard_normal(7) - 1.0, 2, 0.0, free=(3,))
    form = replace(form, terms=form.terms + other.terms)
    shifted = centred(form)
    assert shifted is not form
    assert np.abs(shifted.terms[0].design.to_array()[:, :3].mean(axis=0)).max() < 1e-12
    for _ in range(5):
        x = np.append(rng.standard_normal(3), 0.0)
        one, two = (least_over_the_intercept(f, x, 3) for f in (form, shifted))
        assert one == pytest.approx(two, rel=1e-9)


def test_an_intercept_with_a_ridge_shifts_nothing():
    form = squared(
        np.column_stack([np.arange(5.0) + 9.0, np.ones(5)]), np.ones(5), 1, 0.0, free=(1,)
    )
    assert centred(form) is not form
    kept = replace(form, ridge=np.array([0.0, 0.1]))
    assert centred(kept) is kept


def test_an_elimination_multiplies_the_unit_of_the_errors():
    r"""``S = h_cc - h_cf^2 / h_ff``: errors of u in each change it by ``(1 + h_cf)^2 u``."""
    rng = np.random.default_rng(0)
    f = rng.standard_normal(30)
    A = np.column_stack([f + 1e-3 * rng.standard_normal(30), f])
    form = squared(A, rng.standard_normal(30), 1, 0.0, free=(1,))
    e = eliminated(form)
    assert isinstance(e, Eliminated)
    assert e.unit >= 3.99 * Quadratic.of(form).unit
    one, two = A.T
    exact = one @ one - (one @ two) ** 2 / (two @ two)
    y = form.terms[0].target
    w = (one @ y - (one @ two) * (two @ y) / (two @ two)) / exact
    assert e.linear[0] / e.gram[0, 0] * e.scale[0] == pytest.approx(w, rel=1e-6)


# ---- limits from elsewhere -----------------------------------------------------------------------


def test_the_ridge_bounds_coefficients_by_what_an_objective_allows():
    """Equal columns: the data prove nothing, and ``ridge w^2 / 2 <= level`` is all there is."""
    ridge, y = 0.02, np.array([3.0, -1.0, 2.0])
    A = np.column_stack([np.ones(3), np.ones(3)])
    form = squared(A, y, 2, ridge)
    at_zero = primal(form, np.zeros(2))
    bounds = bounds_of(form)
    ceiling = np.sqrt(2.0 * at_zero.upper / ridge)
    np.testing.assert_allclose(bounds.radius, ceiling, rtol=1e-5)
    assert fault(form, bounds, at_zero) == ""
    for share in (0.75, 0.99):
        assert fault(form, replace(bounds, radius=share * bounds.radius), at_zero)
    assert fault(form, replace(bounds, level=0.9 * at_zero.upper), at_zero)


def test_a_declared_box_bounds_coefficients_by_its_farther_side():
    A = np.column_stack([np.ones(3), np.ones(3)])
    box = Box(np.full(2, -1.0), np.full(2, 5.0))
    form = squared(A, np.full(3, 9.0), 2, 0.0, box=box)
    at_zero = primal(form, np.zeros(2))
    bounds = bounds_of(form)
    np.testing.assert_allclose(bounds.radius, 5.0, rtol=1e-5)
    assert fault(form, bounds, at_zero) == ""
    assert fault(form, replace(bounds, radius=np.full(2, 1.001)), at_zero)


def test_the_boxed_problem_is_within_both_boxes():
    form = squared(np.eye(3), np.ones(3), 2, 0.0)
    bounds = replace(bounds_of(form), radius=np.array([1.0, 2.0, np.inf]))
    free = boxed(form, bounds).box
    np.testing.assert_array_equal(free.lower, [-1.0, -2.0, -np.inf])
    np.testing.assert_array_equal(free.upper, [1.0, 2.0, np.inf])
    declared = replace(form, box=Box(np.array([0.0, -9.0, -3.0]), np.array([9.0, 1.5, np.inf])))
    both = boxed(declared, bounds).box
    np.testing.assert_array_equal(both.lower, [0.0, -2.0, -3.0])
    np.testing.assert_array_equal(both.upper, [1.0, 1.5, np.inf])


def test_neighbours_are_not_eliminated_where_bounds_may_hold_them():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 4))
    box = Box(np.full(4, -0.01), np.full(4, 0.01))
    form = squared(A, A[:, 0], 2, 0.0, box=box)
    bounds = bounds_of(form)
    assert bounds.neighbours.size == 0
    forged = replace(
        bounds,
        radius=np.full(4, 3.0),
        starts=np.array([0, 1, 1, 1, 1]),
        neighbours=np.array([1]),
    )
    at_zero = primal(form, np.zeros(4))
    assert "neighbours are eliminated" in fault(form, forged, at_zero)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_bounds_are_in_units_of_the_columns(scale):
    A = np.diag([1.0, 64.0, 1e4]) * scale
    form = squared(A, [1.0, 2.0, 3.0], 2, 0.0)
    bounds = bounds_of(form)
    exact = np.array([1.0, 2.0 / 64.0, 3e-4]) / scale
    assert np.all(bounds.radius >= exact)
    assert np.all(bounds.radius <= 1.01 * exact)
    at_zero = primal(form, np.zeros(3))
    assert fault(form, bounds, at_zero) == ""
    for j in range(3):
        radius = bounds.radius.copy()
        radius[j] *= 0.98
        assert fault(form, replace(bounds, radius=radius), at_zero)


def test_ridges_are_in_units_of_the_columns_as_well():
    A = np.diag([1.0, 64.0, 1e4])
    ridge = np.array([3.0, 64.0**2, 5e8])
    bounds = bounds_of(squared(A, [1.0, 2.0, 3.0], 2, ridge))
    exact = np.array([1.0, 128.0, 3e4]) / (np.diag(A) ** 2 + ridge)
    assert np.all(bounds.radius >= exact)
    assert np.all(bounds.radius <= 1.01 * exact)


def test_no_bound_is_claimed_about_a_coordinate_that_is_always_in():
    form = squared(np.eye(3), [1.0, 2.0, 3.0], 1, 0.0, free=(2,))
    bounds, at_zero = bounds_of(form), primal(form, np.zeros(3))
    assert fault(form, bounds, at_zero) == ""
    assert bounds.radius[2] == np.inf
    radius = np.append(bounds.radius[:2], 4.0)
    assert "always in" in fault(form, replace(bounds, radius=radius), at_zero)


@pytest.mark.usefixtures("at_the_root")
def test_a_coefficient_that_is_fixed_at_zero_does_not_spoil_the_bounds() -> None:
    """Its share of a row was divided by its bound, which is zero."""
    A = np.array([[2.0, -1.0], [2.0, 3.0]])
    w, c = sm.Variable(2), sm.Variable()
    loss = sm.squared_loss(A @ w + c, [1.8, 0.6]) + sm.ridge(w, 1e-4)
    problem = sm.Problem(sm.minimize(loss + 0.05 * sm.card(w)), w[0] == 0.0)
    assert problem.certify().bound > 0.0
    proof = problem.prove()
    assert proof.claim is Claim.OPTIMAL
    assert proof.relative_gap <= 1e-6
