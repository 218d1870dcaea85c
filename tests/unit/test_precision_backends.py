"""The precision backends: feasible, monotone, deterministic, and right on small problems."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from sparsemodel.interfaces import (
    Backend,
    Context,
    FloatArray,
    Limits,
    ModelError,
    Result,
    Stop,
)
from sparsemodel.interfaces.precision import SparsePrecision
from sparsemodel.numerics.precision import minimise_precision_on_support, precision_objective
from sparsemodel_backends.precision import (
    PrecisionExchange,
    PrecisionFBS,
    PrecisionFoBa,
    PrecisionGraHTP,
    PrecisionGraSP,
    PrecisionSwap,
)

BACKENDS: list[Callable[..., Backend]] = [
    PrecisionSwap,
    PrecisionExchange,
    PrecisionGraHTP,
    PrecisionGraSP,
    PrecisionFBS,
    PrecisionFoBa,
]


def truth(p: int, edges: int, seed: int) -> tuple[FloatArray, np.ndarray]:
    rng = np.random.default_rng(seed)
    i, j = np.triu_indices(p, 1)
    chosen = rng.choice(i.size, edges, replace=False)
    omega = np.zeros((p, p))
    omega[i[chosen], j[chosen]] = rng.choice([-1.0, 1.0], edges)
    omega = omega + omega.T
    omega += (0.5 + np.abs(np.linalg.eigvalsh(omega)).max()) * np.eye(p)
    return omega, np.triu(omega, 1) != 0.0


def sample(omega: FloatArray, n: int, seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    L = np.linalg.cholesky(omega)
    X = np.linalg.solve(L.T, rng.standard_normal((omega.shape[0], n)))
    S: FloatArray = X @ X.T / n
    return S


def run(backend: Backend, form: SparsePrecision, **context: Any) -> Result:
    objective = precision_objective(form)
    return backend.solve(objective, Context(minimise_precision_on_support, **context))


@pytest.mark.parametrize("make", BACKENDS)
@pytest.mark.parametrize("k", [0, 1, 4, 10])
def test_every_k_is_feasible_and_optimal_on_its_support(
    make: Callable[..., Backend], k: int
) -> None:
    S = sample(truth(5, 4, 0)[0], 60, 1)
    kept = S.copy()
    form = SparsePrecision.build(S, k, alpha=1e-3, beta=1e3)
    result = run(make(), form)
    assert np.array_equal(S, kept)
    assert form.sparsity.count(result.point.x) <= k
    omega = form.matrix(result.point.x)
    value = float(np.trace(S @ omega) - np.linalg.slogdet(omega)[1])
    assert result.point.value == pytest.approx(value)
    objective = precision_objective(form)
    on_support = objective.restricted_gradient(
        objective.point_from(result.point.x), result.point.support
    )
    assert np.abs(on_support).max() <= 1e-6


@pytest.mark.parametrize("make", BACKENDS)
def test_plain_problems_are_recovered(make: Callable[..., Backend]) -> None:
    omega, edges = truth(12, 10, 3)
    form = SparsePrecision.build(sample(omega, 4000, 4), 10, beta=1e3)
    found = form.matrix(run(make(), form).point.x)
    assert np.array_equal(np.triu(found, 1) != 0.0, edges)


@pytest.mark.parametrize("make", BACKENDS)
def test_deterministic_and_picklable(make: Callable[..., Backend]) -> None:
    form = SparsePrecision.build(sample(truth(8, 8, 0)[0], 30, 0), 8, beta=1e3)
    backend = make()
    first, second = run(backend, form), run(pickle.loads(pickle.dumps(backend)), form)
    assert np.array_equal(first.point.x, second.point.x)
    assert first.point.value == second.point.value


@pytest.mark.parametrize("make", BACKENDS)
def test_units_of_the_variables_do_not_matter(make: Callable[..., Backend]) -> None:
    S = sample(truth(8, 8, 0)[0], 60, 2)
    units = np.geomspace(0.1, 10.0, 8)
    plain = SparsePrecision.build(S, 6, beta=1e6)
    scaled = SparsePrecision.build(S * np.outer(units, units), 6, beta=1e6)
    a, b = run(make(), plain).point, run(make(), scaled).point
    assert np.array_equal(a.support, b.support)
    expected = plain.matrix(a.x) / np.outer(units, units)
    assert np.allclose(scaled.matrix(b.x), expected, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("make", [PrecisionSwap, PrecisionExchange])
def test_never_worse_than_a_start(make: Callable[..., Backend]) -> None:
    form = SparsePrecision.build(sample(truth(10, 12, 5)[0], 25, 5), 12, beta=1e3)
    objective = precision_objective(form)
    rng = np.random.default_rng(0)
    units = rng.choice(form.sparsity.units, 12, replace=False)
    start = minimise_precision_on_support(
        objective, form.sparsity.coordinates(units), objective.origin()
    )
    assert run(make(), form, start=start.x).point.value <= start.value
    fewer = start.x.copy()
    fewer[np.flatnonzero(form.sparsity.counted & (fewer != 0.0))[:3]] = 0.0
    filled = run(make(), form, start=fewer)
    assert form.sparsity.count(filled.point.x) == 12


def test_local_search_finds_the_best_of_all_supports_mostly() -> None:
    hits = 0
    for seed in range(10):
        form = SparsePrecision.build(sample(truth(5, 4, seed)[0], 40, seed), 3)
        objective = precision_objective(form)
        start = objective.origin()
        best = min(
            minimise_precision_on_support(
                objective, form.sparsity.coordinates(np.array(units)), start
            ).value
            for units in combinations(range(10), 3)
        )
        value = run(PrecisionExchange(), form).point.value
        assert value >= best - 1e-9
        hits += value <= best + 1e-9
    assert hits >= 9


def test_required_and_forbidden_edges() -> None:
    S = sample(truth(8, 8, 1)[0], 50, 1)
    required, forbidden = np.zeros((8, 8), dtype=bool), np.zeros((8, 8), dtype=bool)
    required[2, 5] = forbidden[0, 1] = forbidden[3, 4] = True
    form = SparsePrecision.build(S, 5, beta=1e3, required=required, forbidden=forbidden)
    for make in BACKENDS:
        omega = form.matrix(run(make(), form).point.x)
        assert omega[2, 5] != 0.0
        assert omega[0, 1] == 0.0
        assert omega[3, 4] == 0.0
        assert np.count_nonzero(np.triu(omega, 1)) <= 6


@pytest.mark.parametrize("make", BACKENDS)
def test_active_bounds_are_kept(make: Callable[..., Backend]) -> None:
    S = sample(truth(6, 5, 2)[0], 40, 2)
    spectrum = np.linalg.eigvalsh(np.linalg.inv(S))
    form = SparsePrecision.build(S, 5, alpha=1.3 * spectrum[0], beta=0.6 * spectrum[-1])
    result = run(make(), form)
    inside = np.linalg.eigvalsh(form.matrix(result.point.x))
    assert inside[0] >= form.alpha * (1.0 - 1e-10)
    assert inside[-1] <= form.beta * (1.0 + 1e-10)
    assert form.sparsity.count(result.point.x) <= 5


def test_fewer_samples_than_variables() -> None:
    form = SparsePrecision.build(sample(truth(20, 20, 7)[0], 10, 7), 20, beta=1e4)
    for make in (PrecisionSwap, PrecisionGraHTP):
        assert np.isfinite(run(make(), form).point.value)


def test_limits_and_callbacks() -> None:
    form = SparsePrecision.build(sample(truth(10, 12, 5)[0], 25, 5), 12, beta=1e3)
    assert run(PrecisionFBS(), form, limits=Limits(max_iter=2)).stop is Stop.MAX_ITERATIONS
    seen: list[int] = []

    def stop_at_once(event: Any) -> bool:
        seen.append(event.index)
        return True

    assert run(PrecisionFBS(), form, on_iterate=stop_at_once).stop is Stop.CALLBACK
    assert seen == [1]


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (PrecisionSwap, {"first_block": 0.0}),
        (PrecisionSwap, {"shrinkage": -1.0}),
        (PrecisionExchange, {"patience": 0}),
        (PrecisionGraHTP, {"step_size": "long"}),
        (PrecisionGraSP, {"tol": 0.0}),
        (PrecisionFBS, {"score": "best"}),
        (PrecisionFoBa, {"ratio": 1.0}),
    ],
)
def test_bad_options_are_named(make: Callable[..., Backend], options: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match=next(iter(options))):
        make(**options)
