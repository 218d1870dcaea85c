"""Instances whose shapes or data break what is usually taken for granted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from sparsemodel.interfaces import Cardinality, DataFit, FloatArray
from sparsemodel.losses import LogisticLoss, SquaredLoss
from sparsemodel.testing.instances.generators import RIDGE, generator
from sparsemodel.testing.instances.problems import Data, Instance


def _plain(
    name: str, array: FloatArray, target: FloatArray, k: int, loss: DataFit | None = None
) -> Instance:
    n, p = array.shape
    data = Data(array, SquaredLoss() if loss is None else loss, target, np.full(n, 1.0 / n))
    return Instance(name, (data,), np.full(p, RIDGE), Cardinality(p, k))


def one_coordinate() -> Instance:
    """``p = 1``."""
    rng = generator("one coordinate")
    return _plain("one coordinate", rng.standard_normal((12, 1)), rng.standard_normal(12), 1)


def one_observation() -> Instance:
    """``n = 1``, more allowed coordinates than observations."""
    array = np.array([[0.5, -2.0, 1.0, 0.25]])
    return _plain("one observation", array, np.array([3.0]), 2)


def zero_columns() -> Instance:
    """Columns of zeros, more of them than are left out."""
    rng = generator("zero columns")
    array = rng.standard_normal((20, 6))
    array[:, [0, 2, 3, 5]] = 0.0
    return _plain("zero columns", array, array[:, 1] - array[:, 4], 3)


def zero_design() -> Instance:
    """Nothing but zeros: every point on the ray from zero only costs ridge."""
    return _plain("zero design", np.zeros((5, 4)), np.arange(5.0), 2)


def duplicate_columns() -> Instance:
    """Every column twice, one of the copies with its sign changed."""
    rng = generator("duplicate columns")
    half = rng.standard_normal((30, 4))
    array = np.concatenate([half, -half], axis=1)
    return _plain("duplicate columns", array, half @ np.array([2.0, 0.0, -1.0, 0.0]), 3)


def zero_target() -> Instance:
    """A target of zeros: the answer is zero, and so is every gradient there."""
    rng = generator("zero target")
    return _plain("zero target", rng.standard_normal((15, 6)), np.zeros(15), 2)


def one_class() -> Instance:
    """Labels of a single class; the ridge keeps the answer finite."""
    rng = generator("one class")
    array = rng.standard_normal((20, 5))
    return _plain("one class", array, np.ones(20), 2, LogisticLoss())


def separable() -> Instance:
    """Classes that a coordinate separates; the ridge keeps the answer finite."""
    rng = generator("separable")
    array = rng.standard_normal((40, 6))
    return _plain("separable", array, np.where(array[:, 2] > 0.0, 1.0, -1.0), 2, LogisticLoss())


def rank_deficient() -> Instance:
    """Supports whose columns depend on each other, no ridge: many minimisers, one value."""
    rng = generator("rank deficient")
    array = rng.standard_normal((3, 7))
    instance = _plain("rank deficient", array, rng.standard_normal(3), 5)
    return replace(instance, ridge=np.zeros(7))


def collinear_free() -> Instance:
    """A free column of ones and a counted constant column, no ridge."""
    rng = generator("collinear free")
    array = rng.standard_normal((20, 5))
    array[:, 0], array[:, 1] = 1.0, 2.0
    target = 3.0 + array[:, 3] + 0.05 * rng.standard_normal(20)
    instance = _plain("collinear free", array, target, 2)
    sparsity = Cardinality(5, 2, free=np.array([0], dtype=np.intp))
    return replace(instance, ridge=np.zeros(5), sparsity=sparsity)


DEGENERATE: tuple[Callable[[], Instance], ...] = (
    one_coordinate,
    one_observation,
    zero_columns,
    zero_design,
    duplicate_columns,
    zero_target,
    one_class,
    separable,
    rank_deficient,
    collinear_free,
)
"""Data that break what is usually taken for granted."""
