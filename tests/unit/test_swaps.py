"""The factor of a changing support, and the local search by swaps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsemodel.interfaces import (
    Cardinality,
    Context,
    Limits,
    Objective,
    Point,
    RestrictedSolver,
)
from sparsemodel.losses import LogisticLoss, SquaredLoss
from sparsemodel.numerics import (
    QuadraticSwaps,
    SupportFactor,
    full_diagonal,
    hessian_columns,
    insertions,
    minimise_on_support,
)
from sparsemodel.numerics.curvatures.curvature import hessian_square_norms
from sparsemodel.testing.instances.generators import planted
from sparsemodel.testing.instances.problems import EXACT_STORAGES, Data, Instance
from sparsemodel.testing.instances.reference import brute_force, minimise_in_box
from sparsemodel_backends.local_search import LocalSearch


def badly_scaled(seed: int, *, n: int = 25, p: int = 12, k: int = 3, outputs: int = 0) -> Instance:
    """Correlated columns whose norms differ by four orders of magnitude, and pure noise."""
    rng = np.random.default_rng(seed)
    mixing = np.eye(p) + 0.5 * rng.standard_normal((p, p))
    array = rng.standard_normal((n, p)) @ mixing * 10.0 ** rng.uniform(-2.0, 2.0, p)
    target = rng.standard_normal((n, outputs) if outputs else n)
    weights = rng.uniform(0.5, 2.0, n)
    data = Data(array, SquaredLoss(), target, weights)
    return Instance(
        f"badly scaled {seed} {outputs}",
        (data,),
        rng.uniform(0.0, 0.1, p) * (seed % 2),
        Cardinality(p, k),
        outputs=max(outputs, 1),
        matrix=outputs > 0,
    )


def best_neighbour(objective: Objective, point: Point) -> float:
    """Return the smallest value over all single swaps, each solved from nothing."""
    values = [
        minimise_on_support(
            objective, np.sort(np.append(np.delete(point.support, j), i)), objective.origin()
        ).value
        for j in range(point.support.size)
        for i in np.setdiff1d(np.arange(objective.shape[0]), point.support)
    ]
    return min(values)


# ---- the factor ------------------------------------------------------------------------------


@given(st.integers(0, 10_000), st.lists(st.integers(0, 11), max_size=25))
@settings(max_examples=40, deadline=None)
def test_the_factor_follows_any_sequence_of_changes(seed: int, changes: list[int]) -> None:
    objective = badly_scaled(seed).objective()
    origin = objective.origin()
    factor = SupportFactor(objective, origin)
    for i in changes:
        if i in factor.support:
            factor.remove(i)
        else:
            assert factor.add(i) is not None
    hessian = objective.hessian(origin, factor.support)
    b = np.sqrt(np.diag(hessian))
    residual = (hessian @ factor.solve(b) - b) / b
    assert np.abs(residual).max(initial=0.0) < 1e-7
    if factor.size:
        inverse = np.diag(np.linalg.inv(hessian / np.outer(b, b))) / b**2
        np.testing.assert_allclose(factor.inverse_diagonal(), inverse, rtol=1e-6)


def test_adding_returns_the_conjugate_direction() -> None:
    objective = badly_scaled(3).objective()
    factor = SupportFactor(objective, objective.origin())
    assert factor.reset(np.array([1, 4, 9]))
    added = factor.add(6)
    assert added is not None
    direction, pivot = added
    product = objective.hessian_product(objective.origin(), factor.support, direction)
    assert direction[2] == 1.0
    np.testing.assert_allclose(product[2], pivot, rtol=1e-9)
    scale = np.sqrt(np.diag(objective.hessian(objective.origin(), factor.support)))
    assert np.abs(product[[0, 1, 3]] / scale[[0, 1, 3]]).max() < 1e-9 * product[2] / scale[2]


def test_a_dependent_column_is_refused() -> None:
    array = np.random.default_rng(0).standard_normal((10, 4))
    array[:, 3] = array[:, 0] - 2.0 * array[:, 1]
    data = Data(array, SquaredLoss(), array[:, 2], np.ones(10))
    objective = Instance("dependent", (data,), np.zeros(4), Cardinality(4, 2)).objective()
    factor = SupportFactor(objective, objective.origin())
    assert factor.reset(np.array([0, 1]))
    assert factor.add(3) is None
    assert list(factor.support) == [0, 1]
    assert factor.add(2) is not None
    assert not factor.reset(np.array([0, 1, 3]))
    assert factor.size == 0


# ---- curvature over all coordinates ----------------------------------------------------------


@pytest.mark.parametrize("loss", [SquaredLoss(), LogisticLoss()])
def test_blocks_of_hessian_columns_agree_with_single_products(
    loss: SquaredLoss | LogisticLoss, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sparsemodel.numerics.curvatures.curvature.CACHED", 80)
    instance = planted("columns", loss, n=30, p=7, k=2)
    rng = np.random.default_rng(1)
    support = np.array([0, 2, 5])
    for name, storage in EXACT_STORAGES.items():
        objective = instance.objective(storage)
        at = objective.point(support, np.array([1.0, -0.5, 0.2]))
        directions = rng.standard_normal((3, 4))
        block = hessian_columns(objective, at, support, directions)
        for j in range(4):
            single = objective.full_hessian_product(at, support, directions[:, j])
            np.testing.assert_allclose(block[:, j], single, rtol=1e-10, atol=1e-12, err_msg=name)
        # Of forty directions the product has more entries than the data: coordinates in blocks.
        for times in (1, 10):
            norms = hessian_square_norms(objective, at, support, np.tile(directions, times))
            np.testing.assert_allclose(norms, times * np.square(block).sum(axis=1), rtol=1e-9)
        diagonal = full_diagonal(objective, at)
        if diagonal is None:
            assert name == "operator"
        else:
            everything = objective.hessian(at, np.arange(7))
            np.testing.assert_allclose(diagonal, np.diag(everything), rtol=1e-10, err_msg=name)


# ---- prices of swaps -------------------------------------------------------------------------


@pytest.mark.parametrize("outputs", [0, 3])
@pytest.mark.parametrize("seed", range(4))
def test_the_price_of_a_swap_is_what_it_changes(seed: int, outputs: int) -> None:
    objective = badly_scaled(seed, outputs=outputs).objective()
    point = minimise_on_support(objective, np.array([0, 3, 7]), objective.origin())
    engine = QuadraticSwaps.start(objective, point)
    assert engine is not None
    for _ in range(4):
        before = engine.point().value
        positions, costs, inverse = engine.removals()
        for position in positions:
            kept = np.delete(engine.support, position)
            removed = minimise_on_support(objective, kept, objective.origin())
            assert removed.value - before == pytest.approx(costs[position], rel=1e-6)
        swap = engine.best_swap(positions, costs, inverse)
        best = best_neighbour(objective, engine.point())
        if swap is None:
            assert best >= before * (1.0 - 1e-12)
            break
        assert before - swap.decrease == pytest.approx(best, rel=1e-8)
        assert engine.exchange(swap)
        assert swap.into in engine.support
        assert swap.out not in engine.support
        assert engine.point().value == pytest.approx(best, rel=1e-8)
    addition = engine.best_insertion()
    assert addition is not None
    before = engine.point().value
    assert engine.insert(addition[0])
    assert before - engine.point().value == pytest.approx(addition[1], rel=1e-6)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("outputs", [0, 2])
def test_columns_that_are_left_out_would_have_gained_nothing(
    scale: float, outputs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, pruned = np.random.default_rng(0), 0
    for number in range(8):
        array = rng.standard_normal((80, 150))
        array[:, 100:] = array[:, :50] + 0.1 * rng.standard_normal((80, 50))  # stand in for others
        array[:, ::3] *= scale
        truth = rng.standard_normal((6, outputs) if outputs else 6)
        target = array[:, 10:16] / np.linalg.norm(array[:, 10:16], axis=0) @ truth
        target += 0.05 * rng.standard_normal(target.shape)
        data = Data(array, SquaredLoss(), target, np.full(80, 1 / 80))
        limit, shape = Cardinality(150, 6), {"outputs": max(outputs, 1), "matrix": outputs > 0}
        objective = Instance("wide", (data,), np.zeros(150), limit, **shape).objective()
        support = np.append(np.arange(10, 15), 15 if number % 4 == 0 else 115)
        start = minimise_on_support(objective, support, objective.origin())
        engine = QuadraticSwaps.start(objective, start)
        assert engine is not None
        found = engine.best_swap(*engine.removals())
        positions, costs, inverse = engine.removals()
        candidates = {j: engine._candidates(costs[j]) for j in positions}
        monkeypatch.setattr("sparsemodel.numerics.exchange.quadratic_swaps._FEW", 0.0)
        best = engine.best_swap(positions, costs, inverse)
        for j, able in candidates.items():
            if able is not None:
                gains = engine._priced(np.array([j]), costs, inverse)[-1][:, 0]
                assert np.isin(np.flatnonzero(gains > 0.0), able).all()
                pruned += 1
        monkeypatch.undo()
        assert best is not None
        if best.decrease > 0.0:
            assert found is not None
            assert (found.out, found.into) == (best.out, best.into)
            assert found.decrease == pytest.approx(best.decrease, rel=1e-9)
            assert engine.exchange(found)
            after = minimise_on_support(objective, engine.support, objective.origin())
            assert engine.point().value == pytest.approx(after.value, rel=1e-6)
        else:
            assert found is None or found.decrease <= 0.0
    assert pruned > 2


# ---- the local search ------------------------------------------------------------------------


def searched(
    objective: Objective,
    start: Point,
    restricted: RestrictedSolver = minimise_on_support,
    limits: Limits = Limits(),  # noqa: B008 - immutable
) -> Point:
    """Return where the local search over all removals ends from ``start``."""
    context = Context(restricted, limits, start=start.x)
    return LocalSearch(removal="all").solve(objective, context).point


@given(st.integers(0, 10_000), st.sampled_from([0, 2]))
@settings(max_examples=15, deadline=None)
def test_no_single_swap_improves_a_searched_least_squares_point(seed: int, outputs: int) -> None:
    objective = badly_scaled(seed, outputs=outputs).objective()
    start = minimise_on_support(objective, np.arange(3), objective.origin())
    point = searched(objective, start)
    assert point.value <= start.value
    assert point.support.size == 3
    assert best_neighbour(objective, point) >= point.value - 1e-9 * objective.origin().value


def test_insertions_that_a_model_tells_to_be_worse_are_not_minimised() -> None:
    tried = 0
    for seed in range(6):
        instance = planted(f"insertions {seed}", LogisticLoss(), n=80, p=20, k=4, ridge=1e-2)
        objective, support = instance.objective(), np.array([0, 1, 2])
        base = minimise_on_support(objective, support, objective.origin())
        alone = (objective, base, support, minimise_on_support, full_diagonal(objective, base))
        some, every = (list(insertions(*alone, many)) for many in (8, 20))
        assert len(every) == 17
        assert min(a.value for a in some) == pytest.approx(min(a.value for a in every), rel=1e-9)
        tried += len(some)
    assert tried < 24


def test_patience_is_to_try_all_removals() -> None:
    assert LocalSearch().with_patience(2.0) == LocalSearch(removal="all")
    assert LocalSearch().with_patience(1.0) == LocalSearch()
    literal = LocalSearch(scaled=False)
    assert literal.with_patience(2.0) == literal


@pytest.mark.parametrize("storage", EXACT_STORAGES)
def test_the_search_works_in_every_storage(storage: str) -> None:
    instance = planted("storages", SquaredLoss(), n=40, p=15, k=4)
    objective = instance.objective(EXACT_STORAGES[storage])
    wrong = minimise_on_support(objective, np.array([0, 1, 2, 3]), objective.origin())
    point = searched(objective, wrong)
    assert instance.planted is not None
    assert list(point.support) == list(instance.planted)


@pytest.mark.parametrize("seed", range(3))
def test_the_search_from_a_logistic_point(seed: int) -> None:
    instance = planted(f"logistic search {seed}", LogisticLoss(), n=60, p=9, k=3, ridge=1e-2)
    objective = instance.objective()
    start = minimise_on_support(objective, np.array([0, 1, 2]), objective.origin())
    point = searched(objective, start)
    assert point.value == pytest.approx(brute_force(instance).value, rel=1e-6)


def test_the_search_fills_the_support_and_keeps_free_coordinates() -> None:
    instance = planted("fill", SquaredLoss(), n=40, p=10, k=3)
    free = np.array([4], dtype=np.intp)
    instance = replace(instance, sparsity=Cardinality(10, 3, free))
    objective = instance.objective()
    point = searched(objective, objective.origin())
    assert point.support.size == 4
    assert 4 in point.support
    assert point.value == pytest.approx(brute_force(instance).value, rel=1e-9)


def test_the_search_over_groups_and_of_bounds() -> None:
    plain = planted("groups and bounds", SquaredLoss(), n=40, p=10, k=2)
    grouped = replace(plain, sparsity=Cardinality(10, 2, groups=np.arange(10) // 2))
    objective = grouped.objective()
    start = minimise_on_support(objective, np.arange(4), objective.origin())
    point = searched(objective, start)
    assert objective.cardinality.count(point.x) <= 2
    assert point.value == pytest.approx(brute_force(grouped).value, rel=1e-9)

    from sparsemodel.interfaces import Box

    boxed = replace(plain, box=Box(np.zeros(10), np.full(10, 1.2)))
    objective = boxed.objective()
    point = searched(objective, objective.origin(), minimise_in_box)
    assert np.all(point.x >= 0.0)
    assert point.value == pytest.approx(brute_force(boxed).value, rel=1e-6)


def test_limits_of_the_search() -> None:
    objective = badly_scaled(8).objective()
    start = minimise_on_support(objective, np.arange(3), objective.origin())
    untouched = searched(objective, start, limits=Limits(max_iter=0))
    assert list(untouched.support) == [0, 1, 2]
    expired = searched(objective, start, limits=Limits(deadline=0.0))
    assert list(expired.support) == [0, 1, 2]
    once = searched(objective, start, limits=Limits(max_iter=1))
    assert np.setdiff1d(once.support, start.support).size == 1
    assert once.value < start.value


def test_a_swap_costs_one_pass() -> None:
    rng = np.random.default_rng(5)
    array = rng.standard_normal((200, 1000))
    target = array[:, :20] @ np.ones(20) + 0.1 * rng.standard_normal(200)
    data = Data(array, SquaredLoss(), target, np.full(200, 1 / 200))
    objective = Instance("swaps", (data,), np.zeros(1000), Cardinality(1000, 20)).objective()
    start = minimise_on_support(objective, np.arange(10, 30), objective.origin())
    engine = QuadraticSwaps.start(objective, start)
    assert engine is not None
    positions, costs, inverse = engine.removals()
    before = objective.work.passes
    swap = engine.best_swap(positions[:1], costs, inverse)
    assert swap is not None
    assert swap.decrease > 0.0
    assert engine.exchange(swap)
    assert objective.work.passes - before == 1.0
