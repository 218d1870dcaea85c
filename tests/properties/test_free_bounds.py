"""Bounds that come with a solve: below every feasible point, and nothing else ends a plan."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import verify
from sparsemodel.checker.__main__ import main as check
from sparsemodel.designs import DenseDesign, OnesDesign, StackedDesign
from sparsemodel.interfaces import Cardinality, SparseRegression, Term
from sparsemodel.losses import (
    GammaLoss,
    HuberLoss,
    LogisticLoss,
    PoissonLoss,
    SmoothedHingeLoss,
    SquaredHingeLoss,
    SquaredLoss,
)
from sparsemodel.modelling.goal import Minimize
from sparsemodel.numerics import RegressionObjective, minimise_on_support
from sparsemodel.numerics.objectives.optimality import OptimalityTest

LOSSES = [
    SquaredLoss(),
    LogisticLoss(),
    HuberLoss(0.5),
    PoissonLoss(),
    GammaLoss(),
    SmoothedHingeLoss(0.5),
    SquaredHingeLoss(),
]


def target(loss, u, rng):
    """Return a target far from balanced: most of one class, means far from zero."""
    if isinstance(loss, (LogisticLoss, SmoothedHingeLoss, SquaredHingeLoss)):
        y = np.where(u > np.quantile(u, 0.85), 1.0, -1.0)
        y[:2] = [1.0, -1.0]
        return y
    if isinstance(loss, PoissonLoss):
        return rng.poisson(np.exp(np.clip(1.5 + 0.4 * u, -2.0, 4.0))).astype(float) + 1.0
    if isinstance(loss, GammaLoss):
        return rng.exponential(np.exp(np.clip(1.0 + 0.4 * u, -2.0, 4.0))) + 0.1
    return u + 7.0


def problem(seed):
    """Return a form with an intercept: losses, ridges, weights and groups in turn."""
    rng = np.random.default_rng(seed)
    n, p = 30, 6
    a = rng.standard_normal((n, p)) + 0.7 * rng.standard_normal((n, 1))
    u = a[:, 0] - a[:, 1] + 0.5 * rng.standard_normal(n)
    loss = LOSSES[seed % len(LOSSES)]
    weights = np.full(n, 1.0 / n) if seed % 2 else rng.uniform(0.1, 3.0, n) / n
    groups = np.array([0, 0, 1, 1, 2, 2, -1]) if seed % 3 == 0 else None
    ridge = np.append(np.full(p, (1e-3, 1e-2, 0.1, 1.0)[seed // 7 % 4]), 0.0)
    design = StackedDesign(
        n, p + 1, ((np.arange(p), DenseDesign(a)), (np.array([p]), OnesDesign(n)))
    )
    sparsity = Cardinality(p + 1, int(rng.integers(1, 3)), np.array([p]), groups)
    return SparseRegression((Term(design, loss, target(loss, u, rng), weights),), ridge, sparsity)


def optimum(form, objective):
    """Return the least value over all supports."""
    best = np.inf
    for chosen in itertools.combinations(range(form.sparsity.units), form.sparsity.k):
        own = form.sparsity.coordinates(np.array(chosen, dtype=np.intp))
        support = np.union1d(own, form.sparsity.free)
        best = min(best, minimise_on_support(objective, support, objective.origin()).value)
    return best


@pytest.mark.parametrize("seed", range(56))
def test_a_bound_that_comes_with_gradients_is_below_the_optimum_with_an_intercept(seed):
    form = problem(seed)
    objective = RegressionObjective(form)
    best = optimum(form, RegressionObjective(form))
    rng = np.random.default_rng(seed)
    everything = np.arange(form.sparsity.size)
    fitted = minimise_on_support(objective, everything, objective.origin())
    points = [objective.origin(), fitted]
    for scale in (0.1, 1.0):
        some = np.sort(rng.permutation(form.sparsity.size - 1)[:2])
        points.append(objective.point(some, scale * rng.standard_normal(2)))
        points.append(minimise_on_support(objective, np.append(some, 6), objective.origin()))
    for point in points:
        objective.gradient(point)
        assert objective.bounds.value <= best + 1e-12 * abs(best)


@pytest.mark.parametrize("seed", range(21))  # each loss with each ridge
def test_a_plan_ends_early_at_an_optimum_only(seed):
    rng = np.random.default_rng(seed)
    n, p = 40, 8
    x = rng.standard_normal((n, p)) + rng.standard_normal((n, 1))
    u = x[:, 0] - x[:, 1] + x[:, 2] + 0.5 * rng.standard_normal(n)
    loss = LOSSES[seed % len(LOSSES)]
    names = ("squared", "logistic", "huber", "poisson", "gamma", "smoothed_hinge", "squared_hinge")
    declared = getattr(sm, names[seed % len(LOSSES)] + "_loss")
    w, c = sm.Variable(p), sm.Variable()
    ridge = (1e-2, 0.1, 1.0)[seed // 7 % 3]
    goal = sm.minimize(declared(x @ w + c, target(loss, u, rng)) + sm.ridge(w, ridge))
    declared_problem = sm.Problem(goal, sm.card(w) <= 3)
    solution = declared_problem.solve()
    form = declared_problem.form
    best = optimum(form, RegressionObjective(form))
    assert solution.bound <= best
    if any("nothing is left" in note for note in solution.notes):
        assert solution.value <= best + 1e-9 * abs(best)
    assert solution.value <= best + 0.02 * abs(best)


def test_a_bound_above_a_feasible_point_is_an_error_and_no_proof():
    form = problem(1)
    objective = RegressionObjective(form)
    point = minimise_on_support(objective, np.array([0, 6]), objective.origin())
    objective.gradient(point)
    objective.bounds.merit = point.value

    def wrong(form, x, gradients):
        return 2.0 * point.value, point.value

    with pytest.raises(sm.BoundError, match=r"logistic_loss.*bug in the bound"):
        OptimalityTest(objective, wrong).passed(point, "gp")


def test_a_plan_is_not_ended_by_a_bound_that_nobody_proved():
    form = problem(1)
    objective = RegressionObjective(form)
    point = minimise_on_support(objective, np.array([0, 6]), objective.origin())
    objective.gradient(point)
    objective.bounds.merit = point.value
    assert not OptimalityTest(objective, None).passed(point, "gp")
    for bound, optimal in ((0.9 * point.value, False), (point.value, True)):
        test = OptimalityTest(objective, lambda *_, bound=bound: (bound, point.value))
        assert test.passed(point, "gp") is optimal


def test_a_large_offset_is_no_reason_to_stop():
    """What rounding may hide is measured at the point, not at the objective of zero."""
    rng = np.random.default_rng(0)
    n, p = 60, 10
    x = rng.standard_normal((n, p))
    x[:, 9] = 1.0
    y = 1e8 + x[:, 0] + 0.3 * rng.standard_normal(n)
    w = sm.Variable(p)
    declared = sm.Problem(sm.minimize(sm.squared_loss(x @ w, y)), sm.card(w) <= 2)
    solution = declared.solve("gp > local_search")
    assert not any("nothing is left" in note for note in solution.notes)
    assert solution.indices.tolist() == [0, 9]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["squared", "huber", "logistic", "poisson", "absolute"])
def test_a_bound_on_one_side_of_what_is_not_counted_costs_nothing_where_it_is_idle(
    name: str, seed: int, tmp_path: Path
) -> None:
    """Its slope vanishes at the minimum, and rounding says on which side of zero it lies."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((30, 6))
    y = A[:, 0] + 0.5 + rng.standard_normal(30)
    w, c, d = sm.Variable(6), sm.Variable(nonneg=True), sm.Variable()
    u = A @ w + c + A[:, 5] ** 2 * d
    signs, counts = np.where(y > 0.0, 1.0, -1.0), np.abs(np.round(3.0 * y))
    loss, target = {
        "squared": (sm.squared_loss, y),
        "huber": (sm.huber_loss, y),
        "logistic": (sm.logistic_loss, signs),
        "poisson": (sm.poisson_loss, counts),
        "absolute": (sm.absolute_loss, y),
    }[name]
    goal = sm.minimize(loss(u, target) + sm.ridge(w, 0.05))
    problem = sm.Problem(goal, sm.card(w) <= 2, d <= 0.4)
    best = min(
        problem_on(goal, w, d, support).solve().value
        for support in itertools.combinations(range(6), 2)
    )
    np.savez(tmp_path / "data.npz", A=A, y=y, signs=signs, counts=counts, square=A[:, 5] ** 2)
    problem.solve()
    for certificate in (problem.certify(), problem.prove()):
        assert certificate.bound <= best + 1e-9 * abs(best)
        assert certificate.relative_gap <= 1e-4
        verify(certificate, problem.form)
        certificate.save(tmp_path / "certificate.json")
        assert check([str(tmp_path / "certificate.json"), str(tmp_path / "data.npz")]) == 0


def problem_on(
    goal: Minimize, w: sm.Variable, d: sm.Variable, support: tuple[int, ...]
) -> sm.Problem:
    others = [j for j in range(6) if j not in support]
    return sm.Problem(goal, sm.card(w) <= 2, d <= 0.4, w[others] == 0.0)
