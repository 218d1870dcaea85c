"""Kernels for sparse precision matrices: closed forms, Newton, ADMM, scores."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsemodel.interfaces import FloatArray, IntArray, UnboundedError
from sparsemodel.interfaces.precision import SparsePrecision
from sparsemodel.numerics.precision import (
    Pattern,
    active_bounds,
    factorise,
    insertion_gains,
    minimise_on_pattern,
    minimise_precision_on_support,
    precision_objective,
    products_compiled,
    removal_costs,
    ridge_partial_correlations,
)
from sparsemodel.numerics.precision import log_det_newton as newton_module
from sparsemodel.numerics.precision.admm import minimise_admm, minimise_between_bounds
from sparsemodel.numerics.precision.log_det_newton import minimise_newton
from sparsemodel.numerics.precision.spectral import spectral_infimum


def covariance(seed: int, p: int, n: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) @ (np.eye(p) + 0.3 * rng.standard_normal((p, p)))
    S: FloatArray = X.T @ X / n
    return S


def random_pattern(seed: int, p: int, edges: int) -> Pattern:
    rng = np.random.default_rng(seed)
    i, j = np.triu_indices(p, 1)
    chosen = rng.choice(i.size, min(edges, i.size), replace=False)
    rows = np.concatenate([np.arange(p), i[chosen]])
    cols = np.concatenate([np.arange(p), j[chosen]])
    order = np.lexsort((cols, rows))
    return Pattern(p, rows[order], cols[order])


def likelihood(S: FloatArray, omega: FloatArray) -> float:
    return float(np.trace(S @ omega) - np.linalg.slogdet(omega)[1])


@given(st.integers(0, 10_000), st.integers(2, 12), st.integers(0, 30))
def test_restricted_optimum_satisfies_its_equations(seed: int, p: int, edges: int) -> None:
    S, pattern = covariance(seed, p, 5 * p), random_pattern(seed, p, edges)
    fit = minimise_on_pattern(S, pattern)
    omega = fit.factor.omega
    assert np.array_equal(omega, omega.T)
    off = pattern.scatter(np.ones(pattern.size)) == 0.0
    assert not omega[off].any()
    # The optimum is the matrix whose inverse agrees with S on the pattern (Dempster 1972).
    residual = pattern.gather(np.linalg.inv(omega) - S)
    assert np.abs(residual).max() <= 1e-6 * np.abs(S).max()


@given(st.integers(0, 10_000), st.integers(3, 10))
def test_trees_have_a_closed_form(seed: int, p: int) -> None:
    rng = np.random.default_rng(seed)
    S = covariance(seed, p, 3 * p)
    parents = np.array([rng.integers(0, j) for j in range(1, p)])
    rows, cols = np.r_[np.arange(p), parents], np.r_[np.arange(p), np.arange(1, p)]
    keep = np.r_[np.ones(p, bool), rng.random(p - 1) < 0.8]
    rows, cols = rows[keep], cols[keep]
    order = np.lexsort((cols, rows))
    pattern = Pattern(p, rows[order], cols[order])
    exact = minimise_on_pattern(S, pattern).factor.omega
    start = factorise(np.diag(1.0 / np.diagonal(S)))
    assert start is not None
    iterated = minimise_newton(S, pattern, start).factor.omega
    assert np.allclose(exact, iterated, rtol=1e-6, atol=1e-8 * np.abs(exact).max())


def test_components_do_not_change_the_answer() -> None:
    S = covariance(4, 12, 60)
    blocks = [(0, 1, 2), (3, 4, 5, 6), (7, 8)]  # two cycles, a pair, three single variables
    pairs = [(a, b) for block in blocks for a in block for b in block if a < b]
    rows = np.r_[np.arange(12), [a for a, _ in pairs]]
    cols = np.r_[np.arange(12), [b for _, b in pairs]]
    order = np.lexsort((cols, rows))
    omega = minimise_on_pattern(S, Pattern(12, rows[order], cols[order])).factor.omega
    for block in blocks:  # complete blocks: the inverse of the block of S
        part = np.ix_(block, block)
        assert np.allclose(omega[part], np.linalg.inv(S[part]), rtol=1e-6)


@given(st.integers(0, 10_000), st.floats(0.05, 0.9), st.floats(1.1, 8.0))
def test_admm_between_bounds_is_feasible_and_optimal(seed: int, low: float, high: float) -> None:
    S, pattern = covariance(seed, 6, 40), random_pattern(seed, 6, 7)
    spectrum = np.linalg.eigvalsh(minimise_on_pattern(S, pattern).factor.omega)
    middle = float(np.sqrt(spectrum[0] * spectrum[-1]))
    alpha, beta = low * middle, high * middle
    result = minimise_admm(S, pattern, alpha, beta)
    inside = np.linalg.eigvalsh(result.omega)
    assert inside[0] >= alpha * (1 - 1e-12)
    assert inside[-1] <= beta * (1 + 1e-12)
    assert not result.omega[pattern.scatter(np.ones(pattern.size)) == 0.0].any()
    assert result.value == pytest.approx(likelihood(S, result.omega), abs=1e-9)
    # Its own dual value proves the optimum.
    assert -1e-9 <= result.value - result.bound <= 1e-6
    fit = minimise_on_pattern(S, pattern, alpha=alpha, beta=beta)
    assert likelihood(S, fit.factor.omega) == pytest.approx(result.value, abs=1e-6)


def test_units_far_apart_do_not_keep_the_optimum_between_bounds_from_being_found() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2, 4)) * [1e-4, 1.0, 1.0, 1e-3]
    S, pattern = X.T @ X / 2, random_pattern(0, 4, 5)
    assert pattern.size == 9
    result = minimise_between_bounds(S, pattern, 0.3, 1e12)
    assert result.converged
    assert -1e-9 <= result.value - result.bound <= 1e-6
    assert not minimise_admm(S, pattern, 0.3, 1e12).converged
    spectrum = np.linalg.eigvalsh(result.omega)
    assert spectrum[0] >= 0.3 * (1.0 - 1e-9)
    assert spectrum[-1] <= 1e12 * (1.0 + 1e-12)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_hessians_that_are_singular_in_floating_point_do_not_end_a_search(order) -> None:
    """One observation in units far apart."""
    x = np.array([2.167e3, 67.6, 0.0679])[list(order)]
    pattern = Pattern(3, np.array([0, 0, 0, 1, 1, 2]), np.array([0, 1, 2, 1, 2, 2]))
    result = minimise_between_bounds(np.outer(x, x), pattern, 2.1e-7, 6.5e4, escaped=True)
    assert result.value == pytest.approx(-5.80111, abs=1e-4)


def test_bounds_that_coincide_leave_a_multiple_of_the_identity() -> None:
    S, pattern = covariance(0, 4, 20), random_pattern(0, 4, 3)
    fit = minimise_on_pattern(S, pattern, alpha=2.0, beta=2.0)
    assert np.allclose(fit.factor.omega, 2.0 * np.eye(4))


@given(st.integers(0, 10_000), st.integers(2, 7), st.integers(0, 15), st.floats(1.1, 30.0))
def test_a_lower_bound_alone(seed: int, p: int, edges: int, times: float) -> None:
    """The multiplier of the bound is positive, and zero where the matrix lies above it."""
    S, pattern = covariance(seed, p, 5 * p), random_pattern(seed, p, edges)
    free = minimise_on_pattern(S, pattern).factor.omega
    alpha = times * float(np.linalg.eigvalsh(free)[0])
    omega = minimise_on_pattern(S, pattern, alpha=alpha).factor.omega
    assert np.linalg.eigvalsh(omega)[0] >= alpha * (1.0 - 1e-9)
    assert likelihood(S, omega) >= likelihood(S, free) - 1e-9 * p
    # No direction on the pattern that keeps the bound leads down: the least of the gradient
    # over such matrices is where omega is, by projected steps from there.
    inside = pattern.scatter(np.ones(pattern.size)) != 0.0
    rng = np.random.default_rng(seed)
    scale = np.abs(omega).max()
    for _ in range(20):
        noise = np.where(inside, rng.standard_normal((p, p)), 0.0)
        other = omega + 0.1 * scale * (noise + noise.T)
        other += max(alpha - np.linalg.eigvalsh(other)[0], 0.0) * np.eye(p)
        slope = float(np.vdot(S - np.linalg.inv(omega), other - omega))
        assert slope >= -1e-6 * np.linalg.norm(S) * np.linalg.norm(other - omega)


def test_no_maximum_without_an_upper_bound() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3, 6))
    S = X.T @ X / 3
    pattern = random_pattern(0, 6, 15)
    with pytest.raises(UnboundedError, match="fewer edges"):
        minimise_on_pattern(S, pattern)
    with pytest.raises(UnboundedError, match="fewer edges"):
        minimise_on_pattern(S, pattern, alpha=0.1)
    fit = minimise_on_pattern(S, pattern, beta=50.0)
    assert fit.bounded
    (text,) = active_bounds(fit.factor, 1e-6, 50.0)
    assert "upper" in text
    assert active_bounds(fit.factor, 1e-6, 60.0) == ()
    assert np.linalg.eigvalsh(fit.factor.omega)[-1] == pytest.approx(50.0, rel=1e-6)


def test_compiled_products_agree_with_dense_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    for p, edges in ((150, 400), (300, 20)):  # one block of columns, and two
        S, pattern = covariance(1, p, 2 * p), random_pattern(1, p, edges)
        v = np.random.default_rng(0).standard_normal(pattern.size)
        assert products_compiled.product_on(pattern) is not None
        fast = newton_module.hessian_operator(S, pattern)(v)
        expected = newton_module.hessian(S, pattern) @ v
        assert np.allclose(fast, expected, rtol=1e-12)
        fitted = minimise_on_pattern(S, pattern).factor.omega
        monkeypatch.setattr(newton_module, "_LARGE", 0)  # the sparse preconditioner
        assert np.allclose(minimise_on_pattern(S, pattern).factor.omega, fitted, atol=1e-7)
        monkeypatch.setattr(products_compiled, "_compiled", lambda: None)  # no Numba
        assert np.allclose(newton_module.hessian_operator(S, pattern)(v), expected, rtol=1e-12)
        assert np.allclose(minimise_on_pattern(S, pattern).factor.omega, fitted, atol=1e-7)
        monkeypatch.undo()


@given(st.integers(0, 10_000))
def test_derivatives_by_differences(seed: int) -> None:
    S = covariance(seed, 5, 20)
    form = SparsePrecision.build(S, 4, weight=1.7, constant=3.0)
    objective = precision_objective(form)
    support = np.union1d(form.sparsity.free, np.random.default_rng(seed).choice(15, 6))
    point = minimise_precision_on_support(objective, support, objective.origin())
    values = point.x[support] * 1.01
    at = objective.point(support, values)
    assert at.value == pytest.approx(1.7 * likelihood(S, form.matrix(at.x)) + 3.0)
    gradient = objective.gradient(at)
    assert np.allclose(objective.restricted_gradient(at, support), gradient[support])
    H = objective.hessian(at, support)
    h = 1e-6 * np.abs(values).max()
    for j in range(support.size):
        step = np.zeros(support.size)
        step[j] = h
        up, down = objective.point(support, values + step), objective.point(support, values - step)
        assert (up.value - down.value) / (2 * h) == pytest.approx(
            gradient[support[j]], abs=1e-4 * np.abs(gradient).max() + 1e-5
        )
        column = (objective.gradient(up) - objective.gradient(down))[support] / (2 * h)
        assert np.allclose(column, H[:, j], rtol=1e-4, atol=1e-5 * np.abs(H).max())
    assert np.allclose(objective.hessian_diagonal(at, support), np.diagonal(H))
    v = np.random.default_rng(seed).standard_normal(support.size)
    assert np.allclose(objective.hessian_product(at, support, v), H @ v)
    assert np.allclose(objective.full_hessian_product(at, support, v)[support], H @ v)


def test_value_is_infinite_outside() -> None:
    form = SparsePrecision.build(np.eye(3), 3, alpha=0.5, beta=2.0)
    objective = precision_objective(form)
    everything: IntArray = np.arange(6)
    diagonal = form.rows == form.cols
    for scale, finite in ((1.0, True), (0.4, False), (2.5, False), (-1.0, False)):
        point = objective.point(everything, np.where(diagonal, scale, 0.0))
        assert np.isfinite(point.value) is np.bool_(finite) or np.isfinite(point.value) == finite


@given(st.integers(0, 10_000))
def test_scores_are_exact_for_one_edge(seed: int) -> None:
    """Against a Newton solve in the three entries of the block of an edge."""
    p = 5
    S, pattern = covariance(seed, p, 25), random_pattern(seed, p, 5)
    factor = minimise_on_pattern(S, pattern).factor
    omega, W = factor.omega, factor.inverse
    present = omega[np.triu_indices(p, 1)] != 0.0
    i, j = np.triu_indices(p, 1)
    gains = insertion_gains(S, W, i, j)
    costs = removal_costs(S, omega, W, i, j)
    for a in range(i.size):
        block = np.array([i[a], j[a]])
        rest = np.setdiff1d(np.arange(p), block)
        inner = np.linalg.inv(omega[np.ix_(rest, rest)])
        outer = omega[np.ix_(block, rest)] @ inner @ omega[np.ix_(block, rest)].T
        best = np.linalg.inv(S[np.ix_(block, block)]) + outer
        after = omega.copy()
        after[np.ix_(block, block)] = best
        if not present[a]:
            drop = likelihood(S, omega) - likelihood(S, after)
            assert gains[a] == pytest.approx(drop, abs=1e-8)
            assert gains[a] >= -1e-10
        else:
            # Only an upper bound is at hand without the edge: any diagonals do.
            assert costs[a] >= -1e-10
            for tilt in (0.98, 1.0, 1.02):
                other = omega.copy()
                other[i[a], j[a]] = other[j[a], i[a]] = 0.0
                other[i[a], i[a]] *= tilt
                if np.linalg.eigvalsh(other)[0] > 0.0:
                    rise = likelihood(S, other) - likelihood(S, omega)
                    assert costs[a] <= rise + 1e-9


def test_spectral_infimum_against_a_grid() -> None:
    sigma = np.array([-1.0, 0.0, 0.3, 2.0])
    t = np.geomspace(0.2, 3.0, 200_001)
    for mu in (0.0, 0.05, 1.0 / 9.0, 0.3, 2.0):  # not convex in t beyond 1 / 9
        grid = sum((-np.log(t) + s * t - 0.5 * mu * t**2).min() for s in sigma)
        assert spectral_infimum(sigma, 0.2, 3.0, mu) == pytest.approx(grid, abs=1e-8)
    assert spectral_infimum(sigma, 0.2, np.inf) == -np.inf
    assert spectral_infimum(sigma + 2.0, 0.2, np.inf, 0.1) == -np.inf


def test_ridge_partial_correlations_do_not_depend_on_units() -> None:
    S = covariance(2, 6, 30)
    units = np.geomspace(1e-3, 1e3, 6)
    scaled = S * units[:, None] * units[None, :]
    assert np.allclose(ridge_partial_correlations(S, 0.7), ridge_partial_correlations(scaled, 0.7))


def test_form_maps_matrices_and_coordinates() -> None:
    forbidden = np.zeros((4, 4), dtype=bool)
    forbidden[0, 2] = True
    required = np.zeros((4, 4), dtype=bool)
    required[3, 1] = True
    form = SparsePrecision.build(np.eye(4), 2, required=required, forbidden=forbidden)
    assert form.shape == (9,)
    assert form.sparsity.units == 4
    x = np.arange(1.0, 10.0)
    assert np.array_equal(form.entries(form.matrix(x)), x)
    found = form.coordinates(np.array([1, 3]), np.array([0, 3]))
    assert form.edges(found) == [(0, 1)]
    with pytest.raises(KeyError):
        form.coordinates(np.array([2]), np.array([0]))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("bounded", ["neither", "lower", "upper", "both"])
@pytest.mark.parametrize("p", [10, 20, 30])
def test_restricted_optimum_agrees_with_cvxpy(p: int, bounded: str) -> None:
    cp = pytest.importorskip("cvxpy")
    S, pattern = covariance(p, p, 4 * p), random_pattern(p, p, 2 * p)
    spectrum = np.linalg.eigvalsh(minimise_on_pattern(S, pattern).factor.omega)
    alpha = 1.2 * spectrum[0] if bounded in ("lower", "both") else 0.0
    beta = 0.8 * spectrum[-1] if bounded in ("upper", "both") else 10.0 * spectrum[-1]
    fit = minimise_on_pattern(S, pattern, alpha=alpha, beta=beta)
    assert fit.bounded == (bounded != "neither")
    ours = fit.factor.omega
    X = cp.Variable((p, p), symmetric=True)
    zeros = pattern.scatter(np.ones(pattern.size)) == 0.0
    constraints = [cp.multiply(zeros.astype(float), X) == 0]
    constraints += [X >> alpha * np.eye(p), X << beta * np.eye(p)]
    problem = cp.Problem(cp.Minimize(-cp.log_det(X) + cp.trace(S @ X)), constraints)
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    assert likelihood(S, ours) == pytest.approx(problem.value, abs=1e-6)
