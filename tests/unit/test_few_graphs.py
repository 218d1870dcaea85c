"""Where there are few graphs all are tried, many at a time, and the best is that of one by one."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.compiler.choice.all_supports import _graphs
from sparsemodel.interfaces import FloatArray
from sparsemodel.interfaces.precision import AnyPrecision
from sparsemodel.numerics.precision import minimise_precision_on_support, precision_objective


def posed(seed: int, p: int, n: int, k: int, *limits: float, matrices: int = 1) -> sm.Problem:
    """Return a problem with eigenvalue bounds ``limits`` in units of the inverse variance."""
    rng = np.random.default_rng(seed)
    omegas = [sm.Variable((p, p), symmetric=True, name=f"O{g}") for g in range(matrices)]
    objective, constraints = 0.0, [sm.card(sm.offdiag(*omegas)) <= 2 * k]
    for omega in omegas:
        X = rng.standard_normal((n, p)) + rng.standard_normal((n, 1))
        objective = objective + sm.gaussian_nll(omega, data=X)
        unit = 1.0 / float(np.mean(np.var(X, axis=0)))
        constraints += [omega >> limits[0] * unit, omega << limits[1] * unit] if limits else []
    return sm.Problem(sm.minimize(objective), constraints)


def best_one_by_one(form: AnyPrecision) -> float:
    total: FloatArray = np.zeros(comb(form.sparsity.units, form.sparsity.k))
    for part in form.parts:
        goal = precision_objective(part)
        for place, units in enumerate(combinations(range(form.sparsity.units), form.sparsity.k)):
            support = form.sparsity.coordinates(np.array(units, dtype=np.intp))
            total[place] += minimise_precision_on_support(goal, support, goal.origin()).value
    return float(total.min())


@pytest.mark.parametrize(
    ("p", "n", "k", "limits"),
    [
        (4, 30, 3, ()),
        (4, 2, 3, ()),  # no optimum without the upper bound
        (4, 3, 5, ()),
        (4, 30, 2, (0.5, 1.5)),  # both bounds are active
        (4, 30, 4, (0.9, 100.0)),
        (4, 3, 2, (0.1, 2.0)),
        (3, 20, 2, (1.0, 1.0)),  # nothing between the bounds
        (3, 20, 0, ()),
    ],
)
def test_the_best_is_found(p, n, k, limits) -> None:
    problem = posed(3, p, n, k, *limits)
    assert problem.plan().outline == "exhaustive"
    assert problem.solve().value == pytest.approx(best_one_by_one(problem.form), abs=1e-6)


@pytest.mark.parametrize(("n", "k", "limits"), [(2, 2, ()), (20, 1, (0.5, 1.5)), (20, 2, ())])
def test_the_best_of_several_matrices_with_one_pattern_is_found(n, k, limits) -> None:
    problem = posed(3, 3, n, k, *limits, matrices=2)
    assert problem.plan().outline == "exhaustive"
    assert problem.solve().value == pytest.approx(best_one_by_one(problem.form), abs=1e-6)


def test_a_search_ends_above_the_best_of_six_graphs() -> None:
    rng = np.random.default_rng(56)
    X = rng.standard_normal((3, 4))
    omega = sm.Variable((4, 4), symmetric=True)
    nll = sm.gaussian_nll(omega, data=X)
    problem = sm.Problem(sm.minimize(nll), sm.card(sm.offdiag(omega)) <= 10)
    searched = problem.solve("precision_swap > precision_exchange").value
    found = problem.solve().value
    assert found < searched - 1e-2
    assert found == pytest.approx(best_one_by_one(problem.form), abs=1e-6)


def test_paths_try_all_graphs_where_solve_does() -> None:
    problem = posed(0, 4, 3, 4)
    path = problem.path(k=[2, 3, 4])
    for point in path:
        assert point.value == pytest.approx(best_one_by_one(problem.form.with_limit(point.k)))


def test_many_graphs_are_searched() -> None:
    assert posed(0, 6, 20, 3).plan().outline == "exhaustive"
    assert posed(0, 6, 20, 7).plan().outline.startswith("precision_swap")
    assert posed(0, 30, 40, 1).plan().outline.startswith("precision_swap")
    assert _graphs(posed(0, 5, 20, 2, matrices=2).form) == 360


@pytest.mark.parametrize("seed", [40, 47])
def test_graphs_with_singular_hessians_are_minimised_on_one_by_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(4) * 10.0 ** rng.integers(-4, 5, 4)
    omega = sm.Variable((4, 4), symmetric=True)
    nll = sm.gaussian_nll(omega, np.outer(x, x))
    problem = sm.Problem(sm.minimize(nll), sm.card(sm.offdiag(omega)) <= 10)
    assert problem.solve().value == pytest.approx(best_one_by_one(problem.form), abs=1e-3)
