"""Groups without a ridge: bounds on coefficients that the data prove, and declared ones."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import lsq_linear

import sparsemodel as sm
from sparsemodel.certificates import verify
from sparsemodel.certificates.dual_bounds.coefficient_bounds.base import CoefficientBounds
from sparsemodel.certificates.dual_bounds.coefficient_bounds.bounds import boxed, fault, from_data
from sparsemodel.certificates.statements.objective_interval import primal
from sparsemodel.checker.__main__ import main

GROUPS = np.array([0, 2, 1, 0, 3, 1, 2, 4, 4, 4, 3])
P, N = GROUPS.size, 40


def drawn(seed):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((N, P))
    return a, a[:, GROUPS < 2].sum(axis=1) + rng.standard_normal(N)


def least(a, b, k, reach):
    """Return the least objective of all choices of ``k`` groups within bounds."""
    found = []
    for chosen in combinations(range(5), k):
        columns = np.isin(GROUPS, chosen)
        fitted = lsq_linear(a[:, columns], b, (-reach, reach), method="bvls", tol=1e-14)
        found.append(fitted.cost / N)
    return min(found)


@pytest.mark.parametrize("reach", [None, 0.6])
@pytest.mark.parametrize("seed", range(3))
def test_the_best_groups_are_proved_as_by_brute_force(seed, reach, tmp_path):
    a, b = drawn(seed)
    scale = (1.0, 1e-8, 1e8)[seed]
    w = sm.Variable(P)
    limits = [sm.card(w, groups=GROUPS) <= 2]
    if reach is not None:
        limits += [w <= reach / scale, w >= -reach / scale]
    problem = sm.Problem(sm.minimize(sm.squared_loss((a * scale) @ w, b)), limits)
    found, best = problem.prove(), least(a, b, 2, np.inf if reach is None else reach)
    assert (1.0 - 2e-4) * best <= found.bound <= (1.0 + 1e-9) * best
    assert np.isclose(found.value, best, rtol=2e-4)
    assert (found.witness.bounds is not None) == (reach is None)
    verify(found, problem.form)
    found.save(tmp_path / "c.json")
    np.savez(tmp_path / "d.npz", a=a * scale, b=b)
    assert main([str(tmp_path / "c.json"), str(tmp_path / "d.npz")]) == 0


@pytest.mark.parametrize("loss", [sm.squared_loss, sm.expectile_loss])
@pytest.mark.parametrize("zeros", [False, True])
def test_groups_have_different_ridges_inside(loss, zeros, tmp_path):
    a, b = drawn(7)
    ridges = 10.0 ** np.random.default_rng(1).uniform(-3.0, 0.0, P)
    ridges[[0, 4]] *= not zeros
    w = sm.Variable(P)
    goal = sm.minimize(loss(a @ w, b) + sm.ridge(w, ridges))
    found = sm.Problem(goal, sm.card(w, groups=GROUPS) <= 2).prove()
    # The squared loss is half of the mean square, the expectile loss of level 1/2 as well.
    best = least(np.vstack([a, np.diag(np.sqrt(ridges * N))]), np.append(b, np.zeros(P)), 2, np.inf)
    assert (1.0 - 2e-4) * best <= found.bound <= (1.0 + 1e-9) * best
    found.save(tmp_path / "c.json")
    np.savez(tmp_path / "d.npz", a=a, b=b)
    assert main([str(tmp_path / "c.json"), str(tmp_path / "d.npz")]) == 0


def test_wide_data_are_proved_in_a_few_parts():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((200, 240))
    groups = np.repeat(np.arange(80), 3)
    b = a[:, groups < 2].sum(axis=1) + rng.standard_normal(200)
    w = sm.Variable(240)
    problem = sm.Problem(sm.minimize(sm.squared_loss(a @ w, b)), [sm.card(w, groups=groups) <= 2])
    found = problem.prove()
    assert found.relative_gap <= 1e-4
    assert found.proof["summary"]["nodes"] < 200


def test_bounds_for_fewer_coordinates_than_groups_may_have_are_refused(tmp_path):
    a, b = drawn(0)
    w = sm.Variable(P)
    loss = sm.minimize(sm.squared_loss(a @ w, b))
    single = sm.Problem(loss, [sm.card(w) <= 2])
    groups = sm.Problem(loss, [sm.card(w, groups=GROUPS) <= 2])
    zero = primal(groups.form, np.zeros(P))
    small, large = (
        from_data(problem.form, zero, work=1e9, deadline=None) for problem in (single, groups)
    )
    assert isinstance(small, CoefficientBounds)
    assert isinstance(large, CoefficientBounds)
    assert not fault(groups.form, large, zero)
    assert fault(groups.form, small, zero)
    found = groups.prove()
    replace(found, witness=replace(found.witness, bounds=small)).save(tmp_path / "c.json")
    np.savez(tmp_path / "d.npz", a=a, b=b)
    assert main([str(tmp_path / "c.json"), str(tmp_path / "d.npz")]) == 1


def test_least_sizes_beyond_the_bounds_are_left_out():
    a, b = drawn(1)
    w = sm.Variable(P)
    sizes = np.where(np.arange(P) < 4, 0.1, 5.0)
    problem = sm.Problem(
        sm.minimize(sm.squared_loss(a @ w, b)), [sm.card(w) <= 2, sm.semicontinuous(w, sizes)]
    )
    zero = primal(problem.form, np.zeros(P))
    bounds = from_data(problem.form, zero, work=1e9, deadline=None)
    assert isinstance(bounds, CoefficientBounds)
    assert not fault(problem.form, bounds, zero)
    box = boxed(problem.form, bounds).box
    assert box is not None
    assert np.array_equal(box.least, np.where(np.arange(P) < 4, 0.1, 0.0))
