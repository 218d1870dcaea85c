"""Sweeps along k and searches of all sizes: brute force on small problems, and laws."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.compiler.services import objective_of, restricted_of
from sparsemodel.interfaces import Cardinality, SparseRegression
from sparsemodel.numerics import CurvedPart, Quadratic, SquaredSums, dense_rows
from sparsemodel.selection.parts import parts_of

N, P = 60, 12
RNG = np.random.default_rng(5)
X = RNG.standard_normal((N, 3)) @ RNG.standard_normal((3, P)) + RNG.standard_normal((N, P)) + 4.0
Y = X[:, :4] @ [1.0, -1.0, 2.0, 0.5] + RNG.standard_normal(N)


def _declared(kind: str, X: Any = X, Y: Any = Y, weights: Any = None) -> sm.Problem:
    """Return a problem of each kind that sweeps know, with an intercept."""
    w, c, given = sm.Variable(P), sm.Variable(), {"weights": weights}
    goal: Any = sm.squared_loss(X @ w + c, Y, **given)
    limit: Any = sm.card(w) <= 3
    if kind == "logistic":
        goal = sm.logistic_loss(X @ w + c, np.median(Y) < Y, **given)
    if kind == "poisson":
        goal = sm.poisson_loss(0.1 * X @ w + c, np.round(np.exp(0.2 * (Y - Y.mean()))), **given)
    if kind == "groups":
        limit = sm.card(w, groups=np.minimum(np.arange(P) // 3, 2)) <= 3
    if kind == "always":
        limit = sm.card(w[2:]) <= 3
    if kind == "rows":
        w, c = sm.Variable((P, 2)), sm.Variable(2)
        goal = sm.squared_loss(X @ w + c, np.column_stack([Y, Y**2 / 10.0]), **given)
        limit = sm.card(w, axis=1) <= 3
    return sm.Problem(sm.minimize(goal + sm.ridge(w, 0.1)), limit)


def _form(kind: str) -> SparseRegression:
    form = _declared(kind).form
    assert isinstance(form, SparseRegression)
    return form


KINDS = ["squared", "groups", "always", "rows", "logistic", "poisson"]


@pytest.mark.parametrize("kind", KINDS)
def test_points_of_a_sweep_are_minimisers_and_never_rise(kind: str) -> None:
    form = _form(kind)
    parts, units = parts_of(form), form.sparsity.units
    assert parts is not None
    points = parts.along_k([t.weights for t in form.terms], form.ridge, units)
    objective, restricted = objective_of(form), restricted_of(form)
    values = []
    for k, x in enumerate(points):
        point = objective.point_from(x)
        units_in = form.sparsity.active_units(x)
        assert units_in.size <= k
        best = restricted(objective, form.sparsity.coordinates(units_in), objective.origin())
        assert point.value == pytest.approx(best.value, rel=1e-5)
        values.append(point.value)
    assert np.all(np.diff(values) <= 1e-5 * values[0])


@pytest.mark.parametrize("kind", KINDS)
def test_small_paths_are_those_of_all_supports(kind: str) -> None:
    form = _form(kind)
    objective, restricted = objective_of(form), restricted_of(form)
    found = _declared(kind).path(range(4))
    units = form.sparsity.units
    for k, value in zip(found.k.tolist(), found.objective, strict=True):
        supports = itertools.combinations(range(units), min(k, units))
        best = min(
            restricted(
                objective, form.sparsity.coordinates(np.array(s, dtype=int)), objective.origin()
            ).value
            for s in supports
        )
        assert value == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("wide", [False, True])
def test_a_sweep_finds_groups_of_any_size_beside_what_is_always_in(wide: bool) -> None:
    rng = np.random.default_rng(0)
    n, p = (25, 1040) if wide else (60, 14)
    A = rng.standard_normal((n, p))
    y = A[:, :3] @ [1.0, -1.0, 0.5] + 0.3 * rng.standard_normal(n)
    groups = np.arange(1, p) // 4  # the first and the last are smaller
    w, c = sm.Variable(p), sm.Variable()
    goal = sm.minimize(sm.squared_loss(A @ w + c, y) + sm.ridge(w, 0.1))
    form = sm.Problem(goal, sm.card(w[1:], groups=groups) <= 1).form
    assert isinstance(form, SparseRegression)
    parts, objective = parts_of(form), objective_of(form)
    assert parts is not None
    x = parts.along_k([t.weights for t in form.terms], form.ridge, 1)[1]
    values = [
        restricted_of(form)(
            objective, form.sparsity.coordinates(np.array([unit])), objective.origin()
        ).value
        for unit in range(form.sparsity.units)
    ]
    assert form.sparsity.active_units(x).tolist() == [int(np.argmin(values))] == [0]
    assert objective.point_from(x).value == pytest.approx(min(values), rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_order_units_and_copies_change_no_path(kind: str) -> None:
    sizes = range(4)
    path = _declared(kind).path(sizes).objective
    order = np.random.default_rng(1).permutation(N)
    assert _declared(kind, X[order], Y[order]).path(sizes).objective == pytest.approx(path)
    if kind not in ("groups", "always"):
        columns = np.random.default_rng(2).permutation(P)
        assert _declared(kind, X[:, columns]).path(sizes).objective == pytest.approx(path)
    if kind == "squared":
        weights = np.ones(N)
        weights[:10] = 2.0
        weights *= N / weights.sum()
        twice = np.concatenate([np.arange(N), np.arange(10)])
        weighed = _declared(kind, weights=weights)
        copied = _declared("squared", X[twice], Y[twice])
        assert weighed.path(sizes).objective == pytest.approx(copied.path(sizes).objective)


@pytest.mark.parametrize("wide", [False, True])
def test_sums_of_a_part_are_those_of_its_rows(wide: bool) -> None:
    rng = np.random.default_rng(0)
    n, p = (20, 1100) if wide else (50, 8)
    A, y = rng.standard_normal((n, p)) + 100.0, rng.standard_normal(n) + 7.0
    kept = rng.random(n) < 0.8

    def form(rows: Any) -> SparseRegression:
        w, c = sm.Variable(p), sm.Variable()
        goal = sm.minimize(sm.squared_loss(A[rows] @ w + c, y[rows]) + sm.ridge(w, 0.5))
        found = sm.Problem(goal, sm.card(w) <= 3).form
        assert isinstance(found, SparseRegression)
        return found

    whole, alone = form(slice(None)), form(kept)
    weights = np.where(kept, 1.0 / kept.sum(), 0.0)
    support = np.array([[-1, -1], [1, -1], [1, 4]])
    points = []
    for one, c in ((whole, weights), (alone, alone.terms[0].weights)):
        sums = SquaredSums(one)
        quadratic = sums.part([c]).whitened(one.sparsity, one.ridge)
        points.append(sums.coordinates(quadratic.minimisers(support)))
    assert points[0] == pytest.approx(points[1], rel=1e-8, abs=1e-9)


def test_rows_on_demand_lead_to_the_supports_of_the_whole_matrix() -> None:
    rng = np.random.default_rng(3)
    A, y = rng.standard_normal((15, 40)), rng.standard_normal((15, 2))
    groups = np.arange(40) // 3
    sparsity = Cardinality(size=40, k=5, groups=groups)
    ridge, sizes = np.full(40, 0.2), np.arange(1, 6)
    by_rows = Quadratic(A.T @ y, rows=A).whitened(sparsity, ridge)
    by_products = Quadratic(A.T @ y, gram=A.T @ A).whitened(sparsity, ridge)
    (one, values), (other, same) = by_rows.sweep(sizes), by_products.sweep(sizes)
    assert np.array_equal(one, other)
    assert values == pytest.approx(same)
    assert by_rows.minimisers(one) == pytest.approx(by_products.minimisers(other))
    x = by_rows.minimisers(one)[-1]
    lowered = np.vdot(A.T @ y, x) - 0.5 * np.sum((A @ x) ** 2) - 0.1 * np.sum(x**2)
    assert values[-1] == pytest.approx(2.0 * lowered)


@pytest.mark.parametrize("kind", ["logistic", "poisson"])
def test_supports_of_any_size_are_minimised_on_side_by_side(kind: str) -> None:
    form = _form(kind)
    part = CurvedPart(form, [t.weights for t in form.terms], dense_rows(form))
    free = int(form.sparsity.free[0])
    supports = np.array([[0, 3, free], [-1, -1, free], [5, -1, free]])
    x, values = part.minimised(form.ridge, supports, np.zeros((3, form.sparsity.size)))
    objective, restricted = objective_of(form), restricted_of(form)
    for row, point, value in zip(supports, x, values, strict=True):
        best = restricted(objective, np.sort(row[row >= 0]), objective.origin())
        assert value == pytest.approx(best.value, rel=1e-6)
        assert objective.point_from(point).value == pytest.approx(value, rel=1e-12)


def test_folds_are_those_of_the_observations_alone() -> None:
    problem = _declared("squared")
    labels = np.arange(N) % 3
    found = problem.path(range(4)).cross_validation(folds=labels)
    for fold in range(3):
        kept = labels != fold
        alone = _declared("squared", X[kept], Y[kept]).path(range(4), effort="low")
        losses = [0.5 * np.mean((Y[~kept] - one.predict(X[~kept])) ** 2) for one in alone]
        assert found.losses[fold] == pytest.approx(losses, rel=1e-6)
