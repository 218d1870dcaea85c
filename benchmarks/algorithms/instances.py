"""The instances of the papers' experiments, from a generator, and runs of a backend on them."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsemodel.designs import DenseDesign
from sparsemodel.interfaces import (
    Backend,
    Cardinality,
    Context,
    DataFit,
    Result,
    SparseRegression,
    Term,
)
from sparsemodel.losses import LogisticLoss, SquaredLoss
from sparsemodel.numerics import RegressionObjective, minimise_restricted

Array = np.ndarray[Any, np.dtype[np.float64]]


def planted(
    rng: np.random.Generator, p: int, k: int, mean: float = 0.0, deviation: float = 1.0
) -> Array:
    """Return ``p`` coefficients, ``k`` of them Gaussian at random places."""
    x = np.zeros(p)
    x[rng.choice(p, k, replace=False)] = rng.normal(mean, deviation, k)
    return x


def gaussian_sensing(
    rng: np.random.Generator, n: int, m: int, s: int
) -> tuple[Array, Array, Array]:
    """Return ``(A, b, x)``: unit Gaussian columns, no noise (Zhou, Xiu and Qi 2021, Example 1)."""
    A = rng.standard_normal((m, n))
    A /= np.linalg.norm(A, axis=0)
    x = planted(rng, n, s)
    return A, A @ x, x


def cosine_sensing(rng: np.random.Generator, n: int, m: int, s: int) -> tuple[Array, Array, Array]:
    """Return ``(A, b, x)``: cosines of random frequencies (Zhou, Xiu and Qi 2021, Example 2)."""
    A = np.cos(2.0 * np.pi * np.outer(rng.random(m), np.arange(n)))
    A /= np.linalg.norm(A, axis=0)
    x = planted(rng, n, s)
    return A, A @ x, x


def shen_li_sensing(
    rng: np.random.Generator, n: int, K: int, d: int = 256
) -> tuple[Array, Array, Array]:
    """Return ``(A, b, x)``: Gaussian entries of variance ``1 / n`` (Shen and Li 2018, 5.1)."""
    A = rng.standard_normal((n, d)) / np.sqrt(n)
    x = planted(rng, d, K)
    return A, A @ x, x


def noisy_regression(
    rng: np.random.Generator, n: int, p: int = 500, k: int = 50
) -> tuple[Array, Array, Array]:
    """Return ``(A, b, x)`` of Yuan, Li and Zhang (2018), section 6.1: N(3, 1) coefficients."""
    A = rng.standard_normal((n, p))
    x = planted(rng, p, k, mean=3.0)
    return A, A @ x + rng.standard_normal(n), x


def noisy_classes(
    rng: np.random.Generator, n: int, p: int = 500, k: int = 50
) -> tuple[Array, Array, Array]:
    """Return ``(A, y, x)`` of Yuan, Li and Zhang (2018), section 6.2: labels -1 and 1."""
    A = rng.standard_normal((n, p))
    x = planted(rng, p, k, mean=3.0)
    return A, np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-2.0 * A @ x)), 1.0, -1.0), x


def replacement_trap(s: int, kappa: int, delta: float = 0.01) -> tuple[Array, Array, Array, int]:
    """Return ``(A, b, start, k)`` where replacement steps stall (Axiotis and Sviridenko, 5.2).

    ``A`` is diagonal with ``n = s (1 + kappa + kappa^2)``; the start has ``k = s kappa^2 / 2``
    coordinates of the third interval.
    """
    parts = (s, s * kappa, s * kappa**2)
    A = np.diag(np.repeat([1.0, np.sqrt(kappa), 1.0], parts))
    b = np.repeat(
        [kappa * np.sqrt(1 - 4 * delta), np.sqrt(kappa) * np.sqrt(1 - 2 * delta), 1.0], parts
    )
    k = s * kappa**2 // 2
    start = np.zeros(b.size)
    start[s + s * kappa : s + s * kappa + k] = 1.0
    return A, b, start, k


def objective_of(
    A: Array,
    y: Array,
    k: int,
    *,
    loss: DataFit | None = None,
    ridge: float = 0.0,
    mean: bool = False,
) -> RegressionObjective:
    """Return the objective ``sum of losses + ridge / 2 ||x||^2`` with ``k`` coefficients."""
    n, p = A.shape
    weights = np.full(n, 1.0 / n if mean else 1.0)
    term = Term(DenseDesign(A), SquaredLoss() if loss is None else loss, y, weights)
    return RegressionObjective(
        SparseRegression(terms=(term,), sparsity=Cardinality(p, k), ridge=np.full(p, ridge))
    )


def classifier_of(A: Array, y: Array, k: int, ridge: float) -> RegressionObjective:
    """Return the mean logistic loss with a ridge."""
    return objective_of(A, y, k, loss=LogisticLoss(), ridge=ridge, mean=True)


def run(
    backend: Backend, objective: RegressionObjective, *, start: Array | None = None, seed: int = 0
) -> Result:
    """Return the result of a backend with the library's own restricted solver."""
    context = Context(minimise_restricted, rng=np.random.default_rng(seed), start=start)
    return backend.solve(objective, context)


def recovered(result: Result, x: Array, tolerance: float = 0.01) -> bool:
    """Return whether ``||x' - x|| < tolerance ||x||``."""
    return bool(np.linalg.norm(result.point.x - x) < tolerance * np.linalg.norm(x))
