"""Bounds that are wrong by a rounding, a sign or a side: each has a case of its own here."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from sparsemodel.certificates import Claim, certify
from sparsemodel.certificates.arithmetic.condensed import uncondensed
from sparsemodel.certificates.dual_bounds.bound import Bound, dual_bound, infimum_bound
from sparsemodel.certificates.dual_bounds.diagonal_shift import Extraction, hessian, verified
from sparsemodel.certificates.dual_bounds.gains import (
    best_selection,
    coordinate_gains,
    forced_units,
    unit_gains,
)
from sparsemodel.certificates.statements.certificate import Witness
from sparsemodel.certificates.statements.claims import gap_of, relative_gap_of
from sparsemodel.certificates.statements.derived import derive
from sparsemodel.certificates.statements.stationarity import stationarity
from sparsemodel.designs import DenseDesign
from sparsemodel.interfaces import Box, Cardinality, SparseRegression, Term
from sparsemodel.losses import LinearLoss, PoissonLoss, SquaredLoss


def squared(A, y, k, ridge, *, weights=None, offset=None, **changes):
    A = np.asarray(A, dtype=float)
    n, p = A.shape
    weights = np.ones(n) if weights is None else weights
    term = Term(DenseDesign(A), SquaredLoss(), np.asarray(y, dtype=float), weights, offset)
    form = SparseRegression((term,), np.broadcast_to(ridge, p) + 0.0, Cardinality(p, k))
    return replace(form, **changes)


def linear(slopes, k, ridge, **changes):
    """``slopes @ x + ridge ||x||^2 / 2``: one observation a coordinate."""
    slopes = np.asarray(slopes, dtype=float)
    p = slopes.size
    term = Term(DenseDesign(np.eye(p)), LinearLoss(), slopes, np.ones(p))
    form = SparseRegression((term,), np.full(p, ridge), Cardinality(p, k))
    return replace(form, **changes)


def optimum(form):
    """Return the least objective over all supports of squared losses, by normal equations."""
    p, k, least = form.sparsity.size, form.sparsity.k, np.inf
    terms = form.terms
    for S in map(list, itertools.combinations(range(p), k)):
        h, g, constant = np.diag(form.ridge[S]), np.zeros(k), form.constant
        for t in terms:
            a = t.design.to_array()[:, S]
            y = t.target if t.offset is None else t.target - t.offset
            h = h + a.T @ (t.weights[:, None] * a)
            g, constant = g + a.T @ (t.weights * y), constant + 0.5 * t.weights @ y**2
        least = min(least, constant - 0.5 * g @ np.linalg.solve(h, g))
    return least


# ---- roundings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("upper", "bound"), [(1.0, -(2.0**-60)), (3.0, 2.0**-53), (1e300, -1e280)])
def test_a_gap_is_rounded_up(upper, bound):
    assert Fraction(gap_of(upper, bound)) >= Fraction(upper) - Fraction(bound)


@pytest.mark.parametrize("constant", [0.0, 1.0, 7.5, 1e9, -1e9])
def test_a_gap_is_relative_to_the_larger_number_without_the_constant(constant):
    assert relative_gap_of(constant + 2.0, constant + 1.0, constant) == pytest.approx(0.5)
    assert relative_gap_of(constant + 1.0, constant - 4.0, constant) >= 1.25 * (1.0 - 1e-12)


def test_a_bound_is_rounded_down():
    """The minimum is ``1 - 2^-63``, and the float nearest to it is 1."""
    form = linear([2.0**-31], 1, 1.0, constant=1.0)
    bound = dual_bound(form, (np.array([2.0**-31]),))
    assert Fraction(bound.value) <= 1 - Fraction(1, 2**63)
    assert bound.value >= 1.0 - 2.0**-50


def test_the_gain_of_the_best_units_is_rounded_up():
    """With units that have to be taken whatever they gain, profits cancel."""
    rng = np.random.default_rng(0)
    for _ in range(2000):
        size = int(rng.integers(1, 6))
        price = 10.0 ** rng.uniform(-3, 3)
        units = price * rng.uniform(0.0, 3.0, size)
        forced = (rng.random(size) < 0.3).astype(float)
        k = int(rng.integers(0, size + 1))
        found = best_selection(units, forced, Cardinality(size, k, price=price))
        room = k - int(forced.sum())
        if room < 0:
            assert found == -np.inf
            continue
        profits = [Fraction(u) - Fraction(price) for u in units]
        free = sorted((max(v, Fraction(0)) for v, f in zip(profits, forced, strict=True) if not f))
        exact = sum(free[len(free) - room :] if room else [], Fraction(0))
        exact += sum((v for v, f in zip(profits, forced, strict=True) if f), Fraction(0))
        assert Fraction(found) >= exact
        assert found <= float(exact) + 1e-12 * price * size


def test_the_gains_of_a_group_are_rounded_up():
    rng = np.random.default_rng(1)
    groups = np.repeat([0, 1], 5000)
    for scale in (1e-9, 1.0, 1e9):
        gains = scale * rng.uniform(0.9, 1.0, 10000)
        units = unit_gains(Cardinality(10000, 1, groups=groups), gains)
        for group in (0, 1):
            exact = sum(Fraction(v) for v in gains[groups == group])
            assert exact <= Fraction(units[group]) <= exact * (1 + Fraction(1, 10**10))


def exact_gain(v, curvature, lower, upper):
    """Return the largest ``-v x - curvature x^2 / 2`` within bounds, in rational numbers."""
    v, curvature, lower, upper = map(Fraction, (v, curvature, lower, upper))
    ends = [lower, upper]
    if curvature:
        ends.append(min(max(-v / curvature, lower), upper))
    return max(-v * x - curvature * x * x / 2 for x in ends)


def test_the_gain_of_a_coordinate_within_bounds_is_rounded_up():
    """For every slope within the error, whichever end of it gains more."""
    rng = np.random.default_rng(2)
    for share in (0.0, 1e-3, 3.0):
        v = rng.standard_normal(300) * 10.0 ** rng.uniform(-3.0, 3.0, 300)
        error = share * np.abs(v)
        curvature = np.where(rng.random(300) < 0.5, 0.0, 10.0 ** rng.uniform(-2.0, 2.0, 300))
        # Half of the coordinates are kept away from zero: gains are differences, and negative.
        lower = np.where(np.arange(300) < 150, -rng.uniform(0.0, 2.0, 300), rng.random(300))
        box = Box(lower, np.maximum(lower, 0.0) + rng.uniform(0.0, 2.0, 300))
        gains = coordinate_gains(v, error, curvature, box)
        for j in range(300):
            low, high = Fraction(v[j]) - Fraction(error[j]), Fraction(v[j]) + Fraction(error[j])
            sides = (curvature[j], box.lower[j], box.upper[j])
            exact = max(exact_gain(low, *sides), exact_gain(high, *sides))
            assert exact <= Fraction(gains[j]) <= exact + Fraction(1e-9)


def test_the_gain_of_a_row_is_the_sum_of_its_entries():
    v, ridge = np.array([[1.0, -2.0, 3.0], [0.5, 0.0, 4.0]]), np.array([0.5, 2.0])
    exact = np.square(v).sum(axis=1) / (2.0 * ridge)
    for box in (None, Box(np.full((2, 3), -99.0), np.full((2, 3), 99.0))):
        gains = coordinate_gains(v, np.zeros((2, 3)), ridge, box)
        np.testing.assert_allclose(gains, exact, rtol=1e-12)
        assert np.all(gains >= exact)


def test_a_unit_is_forced_by_a_bound_on_either_side():
    box = Box(np.array([0.5, -np.inf, 0.0, -1.0]), np.array([np.inf, -0.5, 1.0, 0.0]))
    sparsity = Cardinality(4, 2)
    np.testing.assert_array_equal(forced_units(sparsity, box), [1.0, 1.0, 0.0, 0.0])
    tall = Box(box.lower[:, None] + np.zeros(2), box.upper[:, None] + np.zeros(2))
    np.testing.assert_array_equal(forced_units(sparsity, tall), [1.0, 1.0, 0.0, 0.0])


def test_forced_units_are_paid_for_without_any_slope():
    box = Box(np.array([0.5, -np.inf]), np.array([np.inf, np.inf]))
    form = squared(np.eye(2), [0.0, 0.0], 2, 1.0, box=box, sparsity=Cardinality(2, 2, price=3.0))
    assert infimum_bound(form).value == pytest.approx(3.0)


def test_a_loss_may_be_negative_everywhere():
    """The Poisson loss ``exp(u) - y u`` is ``y - y log y`` at best, here -4.05 an observation."""
    term = Term(DenseDesign(np.eye(3)), PoissonLoss(), np.full(3, 5.0), np.ones(3))
    form = SparseRegression((term,), np.zeros(3), Cardinality(3, 3))
    bound = infimum_bound(form)
    lowest = 3.0 * (5.0 - 5.0 * np.log(5.0))
    assert lowest - 1e-9 <= bound.value <= lowest


# ---- curvature taken out of the data -------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_a_bound_with_curvature_is_below_the_optimum_whatever_the_dual_point(scale):
    """Two terms with weights and offsets; dual points away from the gradient at the point."""
    sharp = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        A, y = rng.standard_normal((14, 4)), scale * rng.standard_normal(14)
        form = squared(A, y, 2, 0.1, weights=rng.uniform(0.2, 2.0, 14))
        other = squared(
            rng.standard_normal((6, 4)),
            scale * rng.standard_normal(6),
            2,
            0.1,
            offset=scale * rng.standard_normal(6),
        )
        form = replace(form, terms=form.terms + other.terms)
        h = hessian(form)
        delta = np.full(4, float(np.linalg.eigvalsh(h)[0]) * (1.0 - 1e-9))
        extraction = Extraction(delta)
        assert verified(form, extraction)
        x = np.zeros(4)
        S = rng.choice(4, 2, replace=False)
        x[S] = scale * rng.standard_normal(2)
        best = optimum(form)
        for noise in (0.0, 1e-3, 0.3):
            duals = tuple(
                t.design.matvec(x)
                + (0.0 if t.offset is None else t.offset)
                - t.target
                + noise * scale * rng.standard_normal(t.target.size)
                for t in form.terms
            )
            bound = dual_bound(form, duals, at=x, extraction=extraction)
            assert bound.value <= best
            sharp += noise == 0.0 and bound.value > best - 2.0 * abs(best)
    assert sharp > 5


def test_a_dual_point_of_another_point_proves_nothing_with_curvature():
    """The gradient vanishes at ``b``; with the point ``2 b`` the bound would be four times P."""
    b = np.array([3.0, -2.0])
    form = squared(np.eye(2), b, 2, 0.5)
    for extracted in (0.5, 1.0 - 1e-12):
        bound = dual_bound(
            form, (0.0 * b,), at=2.0 * b, extraction=Extraction(np.full(2, extracted))
        )
        assert bound.value <= optimum(form)


def test_slopes_are_as_uncertain_as_the_dual_point():
    """Small problems, points and dual points anywhere: the distance moves the slopes as well."""
    for seed in range(150):
        rng = np.random.default_rng(seed)
        n, p = int(rng.integers(1, 4)), int(rng.integers(1, 3))
        A = rng.standard_normal((n, p)) if rng.random() < 0.7 else np.eye(n, p)
        y = rng.standard_normal(n) * 10.0 ** rng.uniform(-1.0, 1.0)
        form = squared(A, y, p, 10.0 ** rng.uniform(-3.0, 1.0))
        x = rng.standard_normal(p) * 10.0 ** rng.uniform(-1.0, 1.0)
        lowest = max(float(np.linalg.eigvalsh(A.T @ A)[0]), 0.0) * rng.choice([0.5, 0.999999])
        dual = A @ x - y + rng.standard_normal(n) * 10.0 ** rng.uniform(-3.0, 1.0)
        bound = dual_bound(form, (dual,), at=x, extraction=Extraction(np.full(p, lowest)))
        assert bound.value <= optimum(form) * (1.0 + 1e-9)


def test_a_bound_with_curvature_is_exact_for_a_separable_problem():
    """``sum (x_j - b_j)^2 / 2`` at most one nonzero: all curvature taken out, nothing is lost."""
    b = np.array([3.0, -2.0, 1.0])
    form = squared(np.eye(3), b, 1, 0.5)
    best = 0.5 * b @ b - 0.5 * 9.0 / 1.5
    for x in (np.array([2.0, 0.0, 0.0]), np.array([0.0, -1.0, 0.0]), np.zeros(3)):
        bound = dual_bound(form, (x - b,), at=x, extraction=Extraction(np.full(3, 1.0 - 1e-12)))
        assert best - 1e-9 <= bound.value <= best


def test_curvature_is_that_of_the_weighted_columns():
    """Columns of very different lengths; twice the curvature is not there, nor any in a zero."""
    lengths = np.array([1.0, 8.0, 1000.0])
    c = np.array([0.25, 0.5, 2.0])
    form = squared(np.diag(lengths), np.ones(3), 1, 0.0, weights=c)
    all_of_it = c * lengths**2
    assert verified(form, Extraction((1.0 - 1e-9) * all_of_it))
    for j in range(3):
        more = 0.5 * all_of_it
        more[j] = (1.0 + 1e-9) * all_of_it[j]
        assert not verified(form, Extraction(more))
    empty = squared(np.diag([1.0, 0.0]), np.ones(2), 1, 0.0)
    assert not verified(empty, Extraction(np.array([0.5, 1e-3])))
    assert verified(empty, Extraction(np.array([0.5, 0.0])))
    # The square of the second column underflows, and takes with it what it shares with the first.
    faint = squared(np.array([[1.0, 1e-170], [0.0, 0.0]]), np.ones(2), 1, 0.0)
    assert not verified(faint, Extraction(np.array([0.5, 0.0])))


# ---- stationarity --------------------------------------------------------------------------------


def test_the_threshold_is_that_of_the_smallest_ridge():
    form = squared(np.eye(3), [3.0, 2.0, 0.1], 2, np.array([0.5, 2.0, 4.0]))
    x = np.array([2.0, 2.0 / 3.0, 0.0])
    found = stationarity(form, x)
    assert (found.threshold, found.smallest) == (2.0, pytest.approx(2.0 / 3.0))
    assert found.largest == pytest.approx(0.1)
    assert found.optimal_at_sight
    more = stationarity(form, x, extraction=np.array([0.5, 0.0, 0.0]))
    assert more.threshold == 1.0


@pytest.mark.parametrize(
    "changes",
    [
        {"box": Box(np.full(3, -9.0), np.full(3, 9.0))},
        {"sparsity": Cardinality(3, 2, price=1e-9)},
        {"ridge": np.array([0.5, 0.0, 4.0])},
    ],
)
def test_nothing_is_optimal_at_sight_with_bounds_a_price_or_no_ridge(changes):
    form = squared(np.eye(3), [3.0, 2.0, 0.1], 2, 0.5)
    x = np.array([2.0, 4.0 / 3.0, 0.0])
    assert stationarity(form, x).optimal_at_sight
    assert stationarity(replace(form, **changes), x).threshold == np.inf


def test_a_point_that_is_not_stationary_is_not_optimal_at_sight():
    form = squared(np.eye(2), [3.0, 0.0], 1, 0.5)
    for first in (1.9, 2.1, 2.0 * (1.0 + 1e-4)):
        found = stationarity(form, np.array([first, 0.0]))
        assert found.step >= found.threshold
        assert not found.stationary
        assert not found.optimal_at_sight
    assert stationarity(form, np.array([2.0, 0.0])).optimal_at_sight


def test_an_offset_that_an_intercept_takes_back_makes_nothing_stationary():
    column = np.array([1.0, -1.0, 2.0, -2.0])
    A = np.column_stack([column, np.ones(4)])
    for offset in (0.0, 1e8):
        form = squared(A, 3.0 * column + offset, 1, 0.0)
        form = replace(form, sparsity=Cardinality(2, 1, free=np.array([1])))
        assert stationarity(form, np.array([3.0, offset])).stationary
        assert not stationarity(form, np.array([2.9, offset])).stationary


def test_a_bound_holds_a_coordinate_on_its_own_side_only():
    """``(x - 3)^2 / 2`` in ``[1, 2]``: 2 is stationary, and 1 is not."""
    box = Box(np.array([1.0]), np.array([2.0]))
    form = squared(np.eye(1), [3.0], 1, 0.0, box=box)
    assert stationarity(form, np.array([2.0])).stationary
    assert not stationarity(form, np.array([1.0])).stationary
    low = squared(np.eye(1), [-3.0], 1, 0.0, box=box)
    assert stationarity(low, np.array([1.0])).stationary
    assert not stationarity(low, np.array([2.0])).stationary


def test_a_point_with_room_left_steps_nowhere():
    """Fewer than k units are used, and the unused ones have a slope."""
    form = squared(np.eye(3), [3.0, 2.0, 1.0], 2, 0.5)
    assert stationarity(form, np.array([2.0, 0.0, 0.0])).smallest == 0.0
    form = squared(np.eye(3), [3.0, 0.0, 0.0], 2, 0.5)
    assert stationarity(form, np.array([2.0, 0.0, 0.0])).smallest == np.inf


# ---- what is said --------------------------------------------------------------------------------


def test_zero_is_not_claimed_where_something_is_negative():
    """``x_1^2 / 2 + x_1``: zero at zero with a residual of zero, and less at -1."""
    form = squared(np.eye(2), [0.0, 0.0], 1, 0.0)
    form = replace(form, terms=form.terms + linear([1.0, 0.0], 1, 0.0).terms)
    found = certify(form, np.zeros(2))
    assert found.bound <= -0.5
    assert found.claim not in (Claim.ZERO, Claim.OPTIMAL)
    problem = uncondensed(form, np.zeros(2))
    said = derive(problem, np.zeros(2), Bound(-0.5, 0.0, "a bound"), Witness(()))
    assert Claim.ZERO not in said.claims(0.0, -0.5)


@pytest.mark.parametrize("value", [1e-6, np.inf, np.nan])
def test_a_bound_above_a_feasible_point_is_none(value):
    """No convex loss with a right conjugate has one; the certificate says so, and claims less."""
    form = squared(np.eye(2), [3.0, 2.0], 1, 0.5)
    x = np.array([2.0, 0.0])
    upper = derive(uncondensed(form, x), x, Bound(0.0, 0.0, "a bound"), Witness(())).at_point.upper
    found = derive(uncondensed(form, x), x, Bound(upper + value, 0.0, "a bound"), Witness(()))
    assert found.bound.value == -np.inf
    assert any(a.checked and not a.holds for a in found.assumptions)
    assert found.claim(upper, found.bound.value) is Claim.STATIONARY


def test_an_infeasible_point_is_claimed_nothing_about():
    form, x = squared(np.eye(3), [3.0, 2.0, 1.0], 1, 0.5), np.array([2.0, 4.0 / 3.0, 0.0])
    found = derive(uncondensed(form, x), x, Bound(0.0, 0.0, "a bound"), Witness(()))
    assert found.at_point.violations
    upper = found.at_point.upper
    assert found.claim(upper, upper) is Claim.NONE
    assert found.claims(upper, upper) == {Claim.NONE}


def test_curvature_that_a_search_did_not_need_is_checked_before_it_counts():
    """The witness says curvature of 100 where there is 1; the threshold does not believe it."""
    form = squared(np.eye(2), [1.0, 1.3], 1, 0.5)
    x = np.array([1.0 / 1.5, 0.0])
    bound = Bound(0.5, 0.0, "a search")
    for there, claimed in ((True, 0.9), (False, 100.0)):
        witness = Witness((), extraction=np.full(2, claimed))
        found = derive(uncondensed(form, x), x, bound, witness, searched=True).stationarity
        assert found.threshold == pytest.approx(1.0 / 1.4 if there else 2.0)
        assert not found.optimal_at_sight
