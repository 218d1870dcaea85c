"""The search by exchanges: what its ends are, what it recovers, and what it never does."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.interfaces import Context, Limits, Stop, priced
from sparsemodel.numerics import RegressionObjective, minimise_restricted
from sparsemodel_backends.exchange import Exchange


def autoregressive(
    seed: int, n: int, p: int, k: int, rho: float = 0.8, snr: float = 2.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, p))
    for j in range(1, p):
        A[:, j] = rho * A[:, j - 1] + math.sqrt(1.0 - rho * rho) * A[:, j]
    support = np.sort(rng.choice(p, k, replace=False))
    mean = A[:, support] @ rng.choice([-1.0, 1.0], k)
    return A, mean + np.std(mean) / math.sqrt(snr) * rng.standard_normal(n), support


def bumps(seed: int, width: float, n: int = 150, p: int = 80, k: int = 5) -> tuple[Any, Any]:
    """Gaussian bumps at even distances: neighbours are nearly the same column."""
    rng = np.random.default_rng(seed)
    A = np.exp(-np.square(np.linspace(0, 1, n)[:, None] - np.linspace(0, 1, p)) / (2 * width**2))
    y = A[:, rng.choice(p, k, replace=False)] @ rng.uniform(0.5, 1.5, k)
    return A, y + 0.05 * rng.standard_normal(n)


def squared(A: Any, y: Any, k: int, **terms: Any) -> sm.Problem:
    w = sm.Variable(A.shape[1], name="w")
    goal = sm.squared_loss(A @ w, y)
    if "ridge" in terms:
        goal = goal + sm.ridge(w, terms["ridge"])
    if "price" in terms:
        goal = goal + terms["price"] * sm.card(w)
    return sm.Problem(sm.minimize(goal), sm.card(w) <= k)


# ---- ends ------------------------------------------------------------------------------------

DESIGNS: dict[str, Callable[[np.ndarray, np.ndarray], sm.Problem]] = {}


def declared(function: Callable[[np.ndarray, np.ndarray], sm.Problem]) -> Any:
    DESIGNS[function.__name__] = function
    return function


@declared
def plain(A: np.ndarray, y: np.ndarray) -> sm.Problem:
    return squared(A, y, 3)


@declared
def intercept(A: np.ndarray, y: np.ndarray) -> sm.Problem:
    w = sm.Variable(A.shape[1])
    return sm.Problem(sm.minimize(sm.squared_loss(A @ w + sm.Variable(), y)), sm.card(w) <= 3)


@declared
def rows(A: np.ndarray, y: np.ndarray) -> sm.Problem:
    w = sm.Variable((A.shape[1], 2))
    Y = np.column_stack([y, y**2])
    goal = sm.squared_loss(A @ w, Y) + sm.ridge(w, 0.1)
    return sm.Problem(sm.minimize(goal), sm.card(w, axis=1) <= 3)


@declared
def with_price(A: np.ndarray, y: np.ndarray) -> sm.Problem:
    return squared(A, y, 6, price=0.05)


@declared
def groups(A: np.ndarray, y: np.ndarray) -> sm.Problem:
    w = sm.Variable(A.shape[1])
    labels = np.arange(A.shape[1]) // 2
    goal = sm.squared_loss(A @ w, y) + sm.ridge(w, 0.01)
    return sm.Problem(sm.minimize(goal), sm.card(w, groups=labels) <= 2)


@declared
def nonnegative(A: np.ndarray, y: np.ndarray) -> sm.Problem:
    w = sm.Variable(A.shape[1])
    return sm.Problem(sm.minimize(sm.squared_loss(A @ w, y)), sm.card(w) <= 3, w >= 0.0)


@declared
def logistic(A: np.ndarray, y: np.ndarray) -> sm.Problem:
    w = sm.Variable(A.shape[1])
    goal = sm.logistic_loss(A @ w + sm.Variable(), np.where(y > 0.0, 1.0, -1.0))
    return sm.Problem(sm.minimize(goal + sm.ridge(w, 0.01)), sm.card(w) <= 3)


@declared
def multinomial(A: np.ndarray, y: np.ndarray) -> sm.Problem:
    w = sm.Variable((A.shape[1], 3))
    classes = np.digitize(y, np.quantile(y, [0.3, 0.7]))
    goal = sm.multinomial_loss(A @ w, classes) + sm.ridge(w, 0.05)
    return sm.Problem(sm.minimize(goal), sm.card(w, axis=1) <= 3)


@declared
def cox(A: np.ndarray, y: np.ndarray) -> sm.Problem:
    w = sm.Variable(A.shape[1])
    target = np.column_stack([np.exp(y), y < 1.0])
    goal = sm.cox_loss(A @ w, target) + sm.ridge(w, 0.01)
    return sm.Problem(sm.minimize(goal), sm.card(w) <= 3)


@pytest.mark.parametrize("name", DESIGNS)
def test_finds_the_best_of_all_supports(name: str) -> None:
    A, y, _ = autoregressive(0, 60, 10, 3, rho=0.9)
    problem = DESIGNS[name](A, y)
    objective = RegressionObjective(problem.form)
    sparsity = objective.cardinality
    found = Exchange().solve(objective, Context(minimise_restricted)).point
    assert sparsity.count(found.x) <= sparsity.k
    sizes = range(sparsity.k + 1) if sparsity.price else (sparsity.k,)
    best = min(
        priced(
            objective,
            minimise_restricted(
                objective,
                sparsity.coordinates(np.array(units, dtype=np.intp)),
                objective.origin(),
            ),
        )
        for size in sizes
        for units in itertools.combinations(range(sparsity.units), size)
    )
    assert priced(objective, found) <= best + 1e-9 * abs(objective.origin().value)


@pytest.mark.parametrize("ridge", [0.0, 1e-2])
def test_no_change_of_one_coordinate_is_left_after_the_descent(ridge: float) -> None:
    for seed in range(3):
        A, y, _ = autoregressive(seed, 80, 25, 6, rho=0.95)
        problem = squared(A, y, 5, **({"ridge": ridge} if ridge else {}))
        objective = RegressionObjective(problem.form)
        end = Exchange(effort=0.0).solve(objective, Context(minimise_restricted)).point
        for out, into in itertools.product(end.support, np.setdiff1d(np.arange(25), end.support)):
            support = np.sort(np.append(end.support[end.support != out], into))
            value = minimise_restricted(objective, support, end).value
            assert value >= end.value * (1.0 - 1e-10)


def test_every_step_is_feasible_and_no_worse() -> None:
    for name, declare in DESIGNS.items():
        A, y, _ = autoregressive(3, 60, 12, 4, rho=0.9)
        objective = RegressionObjective(declare(A, y).form)
        sparsity = objective.cardinality
        values = []

        def heard(event: Any, sparsity: Any = sparsity, values: list[float] = values) -> bool:
            members = np.zeros(sparsity.size)
            members[event.support] = 1.0
            assert sparsity.count(members) <= sparsity.k
            values.append(event.value)
            return False

        Exchange().solve(objective, Context(minimise_restricted, on_iterate=heard))
        assert values, name
        assert all(b <= a + 1e-12 * abs(a) for a, b in itertools.pairwise(values)), name


# ---- quality ---------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [0.02, 0.03, 0.05])
def test_coherent_dictionaries_are_solved_to_the_optimum(width: float) -> None:
    """Proved by branch and bound."""
    for seed in range(3):
        A, y = bumps(seed, width)
        problem = squared(A, y, 5, ridge=1e-3)
        value = problem.solve("exchange").value
        assert value <= problem.prove(time_limit=60.0).bound * (1.0 + 1e-4)


def test_perturbations_find_what_the_descent_misses() -> None:
    better = 0
    for width, seed in itertools.product((0.02, 0.03, 0.05), range(6)):
        A, y = bumps(seed, width)
        problem = squared(A, y, 5, ridge=1e-3)
        alone, searched = (problem.solve(f"exchange:effort={n}").value for n in (0.0, 1.0))
        assert searched <= alone * (1.0 + 1e-12)
        better += searched < alone * (1.0 - 1e-7)
    assert better >= 5


def test_noise_is_searched_as_its_path_is() -> None:
    """Perturbations end at many supports there, 6.6 % above the one that other sizes lead to."""
    A, _, _ = autoregressive(901, 60, 100, 10, rho=0.5)
    rng = np.random.default_rng(901)
    y = rng.standard_normal((61, 100)).ravel()[6000:6060]
    path = squared(A, y, 10).path(k=range(1, 11))
    assert squared(A, y, 10).solve().value <= list(path)[-1].value * 1.001


def test_recovers_the_support_that_made_the_data() -> None:
    for seed in range(5):
        A, y, support = autoregressive(seed, 200, 300, 8, rho=0.7, snr=20.0)
        solution = squared(A, y, 8).solve("exchange")
        assert solution.support.tolist() == support.tolist()


@pytest.mark.parametrize("storage", ["float32", "sparse", "operator", "chunks", "fortran"])
def test_any_storage_ends_at_the_same_support(storage: str, tmp_path: Any) -> None:
    import scipy.sparse
    from scipy.sparse.linalg import aslinearoperator

    A, y, _ = autoregressive(5, 90, 200, 5, rho=0.8)
    expected = squared(A, y, 5).solve("exchange")
    if storage == "chunks":
        np.save(tmp_path / "a.npy", A)
        design: Any = sm.as_design(np.load(tmp_path / "a.npy", mmap_mode="r"))
    else:
        design = {
            "float32": lambda: A.astype(np.float32),
            "sparse": lambda: scipy.sparse.csc_array(A),
            "operator": lambda: aslinearoperator(A),
            "fortran": lambda: np.asfortranarray(A),
        }[storage]()
    found = squared(sm.as_design(design), y, 5).solve("exchange")
    assert found.value == pytest.approx(expected.value, rel=1e-5 if storage == "float32" else 1e-9)


@pytest.mark.parametrize("factor", [1e-8, 1e8])
def test_the_units_of_columns_and_targets_do_not_matter(factor: float) -> None:
    A, y, _ = autoregressive(6, 60, 40, 5, rho=0.95)
    scales = np.where(np.arange(40) % 3 == 0, factor, 1.0)
    expected = squared(A, y, 5).solve("exchange").value
    assert squared(A * scales, y, 5).solve("exchange").value == pytest.approx(expected, rel=1e-8)
    scaled = squared(A, factor * y, 5).solve("exchange").value
    assert scaled == pytest.approx(factor**2 * expected, rel=1e-8)


def test_columns_in_another_order_give_the_same_value() -> None:
    for seed in range(3):
        A, y = bumps(seed, 0.03)
        order = np.random.default_rng(seed).permutation(80)
        value = squared(A, y, 5).solve("exchange").value
        assert squared(A[:, order], y, 5).solve("exchange").value == pytest.approx(value, rel=1e-9)


def test_dependent_columns_and_few_observations() -> None:
    rng = np.random.default_rng(7)
    A = rng.standard_normal((6, 20))
    A[:, 10:] = A[:, :10]
    problem = squared(A, rng.standard_normal(6), 9)
    solution = problem.solve("exchange")
    assert solution.value == pytest.approx(0.0, abs=1e-20)
    assert np.all(np.isfinite(problem.solve("exchange", seed=3).value))


# ---- use -------------------------------------------------------------------------------------


def test_in_recipes_it_never_worsens_what_it_is_given() -> None:
    for seed in range(3):
        A, y, _ = autoregressive(seed, 60, 120, 8, rho=0.9)
        problem = squared(A, y, 8)
        start = problem.solve("nhtp").value
        assert problem.solve("nhtp > exchange").value <= start * (1.0 + 1e-12)
        assert problem.solve("nhtp > exchange:effort=0.0").value <= start * (1.0 + 1e-12)


def test_losses_with_kinks_are_smoothed_for_it() -> None:
    A, y, _ = autoregressive(8, 60, 20, 3, rho=0.9)
    w = sm.Variable(20)
    problem = sm.Problem(sm.minimize(sm.absolute_loss(A @ w, y)), sm.card(w) <= 3)
    assert problem.solve("exchange").value <= problem.solve("omp").value * (1.0 + 1e-9)


def test_constraints_are_kept() -> None:
    A, y, _ = autoregressive(9, 60, 15, 4, rho=0.9)
    w = sm.Variable(15)
    problem = sm.Problem(
        sm.minimize(sm.squared_loss(A @ w, y)),
        sm.card(w) <= 4,
        w >= 0.0,
        w <= 0.6,
        np.ones((1, 15)) @ w == 1.0,
    )
    problem.solve("exchange")
    assert np.count_nonzero(w.value) <= 4
    assert w.value.min() >= 0.0
    assert w.value.max() <= 0.6
    assert w.value.sum() == pytest.approx(1.0, abs=1e-8)


def test_effort_bounds_the_search() -> None:
    A, y = bumps(0, 0.05)
    objective = RegressionObjective(squared(A, y, 5).form)
    lengths = []
    for backend in (Exchange(effort=0.0), Exchange(effort=0.1), Exchange(), Exchange(effort=4.0)):
        result = backend.solve(objective, Context(minimise_restricted))
        assert result.stop is Stop.CONVERGED
        lengths.append(result.iterations)
    assert lengths == sorted(lengths)
    assert lengths[0] < lengths[1] < lengths[-1]


def test_time_that_is_up_ends_the_search() -> None:
    A, y, _ = autoregressive(10, 200, 500, 20, rho=0.9)
    objective = RegressionObjective(squared(A, y, 20).form)
    context = Context(minimise_restricted, limits=Limits(deadline=0.0))
    result = Exchange(effort=1e6).solve(objective, context)
    assert result.stop is Stop.TIME_LIMIT


def test_bad_options_are_refused() -> None:
    for options in ({"effort": -1.0}, {"effort": math.nan}, {"max_iter": -1}):
        with pytest.raises(sm.ModelError, match=next(iter(options))):
            Exchange(**options)  # type: ignore[arg-type]
    assert replace(Exchange(), effort=3.0).options()["effort"] == 3.0


def test_small_gains_beside_large_ones_are_made_in_single_precision() -> None:
    """The noise of what the support explains is not that of what it leaves."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((8, 30)) * np.exp(rng.uniform(-9.0, 9.0, 30))
        y = A[:, rng.integers(30, size=3)] @ rng.standard_normal(3)
        w = sm.Variable(30)
        goal = sm.squared_loss(A.astype(np.float32) @ w + sm.Variable(), y) + sm.ridge(w, 1.0)
        problem = sm.Problem(sm.minimize(goal), sm.card(w) <= 7)
        value = problem.solve("exchange").value
        assert value <= problem.solve("local_search").value * (1.0 + 1e-4)


@pytest.mark.parametrize("backend", [None, "exchange", "local_search", "omp", "ompr"])
def test_outliers_of_a_huber_loss_say_how_far_a_step_leads(backend: str | None) -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 60))
    y = 3.0 * A[:, :3].sum(axis=1) + np.sign(rng.standard_normal(40))
    w, c = sm.Variable(60), sm.Variable()
    for unit in (1e3, 1.0):  # with targets in other units all observations are outliers
        loss = sm.huber_loss(unit * (A @ w + c), unit * y, delta=1.0)
        solution = sm.Problem(sm.minimize(loss), sm.card(w) <= 3).solve(backend)
        assert solution.support.tolist() == [0, 1, 2]
