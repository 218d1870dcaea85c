"""Small graphs, and the best of each by brute force."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from sparsemodel.interfaces.precision import SparsePrecision
from sparsemodel.numerics.precision import minimise_precision_on_support, precision_objective


def graph(seed: int, p: int, n: int, k: int, spread: float = 0.0, **options: Any) -> Any:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) @ (np.eye(p) + 0.4 * rng.standard_normal((p, p)))
    X *= 10.0 ** rng.uniform(-spread, spread, p)
    return SparsePrecision.build(X.T @ X / n, k, **options)


def best_of_all(form: SparsePrecision) -> tuple[float, np.ndarray]:
    objective = precision_objective(form)
    start = objective.origin()
    best, where = np.inf, start.x
    for units in combinations(range(form.sparsity.units), form.sparsity.k):
        support = form.sparsity.coordinates(np.array(units, dtype=np.intp))
        point = minimise_precision_on_support(objective, support, start)
        if point.value < best:
            best, where = point.value, point.x
    return best, where
