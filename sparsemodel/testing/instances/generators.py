"""Random data with a known support behind them."""

from __future__ import annotations

import numpy as np

from sparsemodel.interfaces import Cardinality, DataFit, FloatArray
from sparsemodel.testing.instances.problems import Data, Instance

RIDGE = 1e-2
"""The ridge of instances that have one for its own sake."""


def generator(name: str) -> np.random.Generator:
    """Return a random generator seeded by a name."""
    return np.random.default_rng(list(name.encode()))


def planted(
    name: str,
    loss: DataFit,
    *,
    n: int,
    p: int,
    k: int,
    ridge: float = RIDGE,
    noise: float = 0.05,
    classes: int = 0,
) -> Instance:
    """Return a mean loss over Gaussian rows whose target comes from ``k`` coordinates.

    Parameters
    ----------
    name
        Names the instance and seeds its generator.
    loss
        A squared, Huber, classification or count loss; it decides what the target is.
    n, p, k
        Observations, coordinates, coordinates that generate the target.
    ridge
        ``lambda``, the same for every coordinate.
    noise
        Standard deviation, relative to coefficients between 1 and 2 (regression losses).
    classes
        Columns of a matrix variable; 0 for a vector variable.
    """
    rng = generator(name)
    array = rng.standard_normal((n, p))
    support = np.sort(rng.choice(p, size=k, replace=False))
    shape = (k, classes) if classes else (k,)
    coefficients = rng.choice([-1.0, 1.0], size=shape) * rng.uniform(1.0, 2.0, size=shape)
    if loss.name == "multinomial_loss":  # what all classes have in common says nothing
        coefficients = rng.permuted(np.tile(np.linspace(-2.0, 2.0, classes), (k, 1)), axis=1)
    target = _target(loss, array[:, support] @ coefficients, noise, rng)
    return Instance(
        name,
        (Data(array, loss, target, np.full(n, 1.0 / n)),),
        np.full(p, ridge),
        Cardinality(p, k),
        outputs=max(classes, 1),
        matrix=classes > 0,
        planted=support,
    )


def _target(loss: DataFit, u: FloatArray, noise: float, rng: np.random.Generator) -> FloatArray:
    name = loss.name
    if name == "multinomial_loss":
        classes: FloatArray = np.argmax(u + rng.gumbel(size=u.shape), axis=1).astype(np.float64)
        return classes
    if name in ("logistic_loss", "hinge_loss", "squared_hinge_loss", "smoothed_hinge_loss"):
        return np.where(u + 0.5 * rng.logistic(size=u.shape) > 0.0, 1.0, -1.0)
    if name == "poisson_loss":
        counts: FloatArray = rng.poisson(np.exp(np.clip(0.4 * u, -3.0, 3.0))).astype(np.float64)
        return counts
    blurred: FloatArray = u + noise * rng.standard_normal(u.shape)
    return blurred
