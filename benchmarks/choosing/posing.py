"""How cases of the corpus are posed: a loss of a design, a target, a sparsity, a ridge."""

from __future__ import annotations

from typing import Any

import numpy as np

import sparsemodel as sm
from benchmarks.choosing import synthetic as syn

Generator = np.random.Generator


def posed(
    loss: Any, A: Any, y: Any, k: int, ridge: float, *, intercept: bool = False, **card: Any
) -> sm.Problem:
    w = sm.Variable(A.shape[1], name="w")
    z: Any = sm.as_design(A) @ w
    if intercept:
        z = z + sm.Variable(name="c")
    objective = loss(z, y)
    if ridge:
        objective = objective + sm.ridge(w, ridge)
    return sm.Problem(sm.minimize(objective), [sm.card(w, **card) <= k])


def planted(design: Any, n: int, p: int, k: int, snr: float, ridge: float = 0.0) -> Any:
    def build(rng: Generator) -> sm.Problem:
        A = design(rng, n, p)
        z = A @ syn.signal(rng, p, k)
        y = z if np.isinf(snr) else syn.noisy(rng, z, snr)
        return posed(sm.squared_loss, A, y, k, ridge)

    return build


def drawn(loss: Any, design: Any, n: int, p: int, k: int, ridge: float, target: Any) -> Any:
    def build(rng: Generator) -> sm.Problem:
        A = design(rng, n, p)
        y = target(rng, A @ syn.signal(rng, p, k))
        return posed(loss, A, y, k, ridge, intercept=bool(rng.integers(2)))

    return build


def scaled(loss: Any, design: Any, n: int, p: int, k: int, target: Any) -> Any:
    """Keep predictions moderate, as exponentials ask for."""

    def build(rng: Generator) -> sm.Problem:
        A = design(rng, n, p)
        A = A * (0.3 if isinstance(A, np.ndarray) else 0.2)
        return posed(loss, A, target(rng, A @ syn.signal(rng, p, k)), k, 1e-3, intercept=True)

    return build
