"""The instances the backend suite runs on: small, seeded, each with one thing to get right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import TypeAlias

import numpy as np

from sparsemodel.interfaces import Box, Cardinality, DataFit, IntArray
from sparsemodel.losses import (
    HingeLoss,
    HuberLoss,
    LogisticLoss,
    MultinomialLoss,
    PoissonLoss,
    SmoothedHingeLoss,
    SquaredHingeLoss,
    SquaredLoss,
)
from sparsemodel.testing.instances.generators import generator, planted
from sparsemodel.testing.instances.problems import Data, Instance

Maker: TypeAlias = Callable[[], Instance]

# ---- the basic problems ----------------------------------------------------------------------


def squared() -> Instance:
    """Least squares, no ridge."""
    return planted("squared", SquaredLoss(), n=40, p=7, k=3, ridge=0.0)


def squared_ridge() -> Instance:
    """Least squares with a ridge."""
    return planted("squared ridge", SquaredLoss(), n=40, p=7, k=2)


def logistic() -> Instance:
    """Logistic regression without ridge, on data that no plane separates."""
    return planted("logistic", LogisticLoss(), n=100, p=6, k=2, ridge=0.0)


def logistic_ridge() -> Instance:
    """Logistic regression with a ridge."""
    return planted("logistic ridge", LogisticLoss(), n=100, p=6, k=2)


def wide_squared() -> Instance:
    """More coordinates than observations, no noise: compressed sensing."""
    return planted("wide squared", SquaredLoss(), n=100, p=200, k=5, ridge=0.0, noise=0.0)


def wide_squared_ridge() -> Instance:
    """More coordinates than observations, with a ridge."""
    return planted("wide squared ridge", SquaredLoss(), n=70, p=120, k=4, ridge=1e-3)


def wide_logistic_ridge() -> Instance:
    """A sparse classifier among many features."""
    return planted("wide logistic ridge", LogisticLoss(), n=250, p=120, k=3, ridge=1e-3)


# ---- structure -------------------------------------------------------------------------------


def _with_intercept(instance: Instance, at: int, height: float) -> Instance:
    """Return the instance with a free, unpenalised column of ones at position ``at``."""
    p = instance.sparsity.size
    move = np.where(np.arange(p) >= at, 1, 0) + np.arange(p)
    old = instance.data[0]
    array = np.ones((len(old.array), p + 1))
    array[:, move] = old.array
    target = old.target
    if old.loss.name == "squared_loss":
        target = target + height
    ridge = np.zeros(p + 1)
    ridge[move] = instance.ridge
    support = support_of(instance)
    return replace(
        instance,
        data=(replace(old, array=array, target=target),),
        ridge=ridge,
        sparsity=Cardinality(p + 1, instance.sparsity.k, free=np.array([at], dtype=np.intp)),
        planted=np.sort(np.append(move[support], at)),
    )


def squared_intercept() -> Instance:
    """An intercept in the middle of the coordinates, far from zero."""
    base = planted("squared intercept", SquaredLoss(), n=40, p=7, k=2)
    return _with_intercept(base, 3, 5.0)


def logistic_intercept() -> Instance:
    """A classifier with an intercept as the last coordinate."""
    base = planted("logistic intercept", LogisticLoss(), n=100, p=6, k=2)
    return _with_intercept(base, 6, 0.0)


def squared_groups() -> Instance:
    """Groups of one, two and three coordinates that are not contiguous, and a free one."""
    base = planted("squared groups", SquaredLoss(), n=50, p=10, k=4)
    groups = np.array([0, 1, 2, 0, 1, -1, 3, 2, 1, 4], dtype=np.intp)
    rng = generator("squared groups of coordinates")
    support = np.flatnonzero(np.isin(groups, [-1, 1, 2]))
    data = base.data[0]
    target = data.array[:, support] @ rng.uniform(1.0, 2.0, size=support.size)
    target += 0.05 * rng.standard_normal(len(target))
    free = np.array([5], dtype=np.intp)
    return replace(
        base,
        data=(replace(data, target=target),),
        sparsity=Cardinality(10, 2, free=free, groups=groups),
        planted=support,
    )


def squared_rows() -> Instance:
    """Several responses that share the rows of a matrix variable."""
    return planted("squared rows", SquaredLoss(), n=30, p=7, k=2, classes=3)


def multinomial_rows() -> Instance:
    """A classifier of three classes: features are rows."""
    return planted("multinomial rows", MultinomialLoss(3), n=160, p=4, k=2, classes=3)


def ridge_vector() -> Instance:
    """Every coordinate with its own ridge, over three orders of magnitude."""
    base = planted("ridge vector", SquaredLoss(), n=40, p=7, k=2)
    return replace(base, ridge=np.geomspace(1e-3, 1.0, 7), planted=None)


def weighted(loss: DataFit, name: str) -> Instance:
    """Observation weights over two orders of magnitude, not summing to one."""
    base = planted(name, loss, n=100, p=6, k=2)
    weights = generator(name + " weights").uniform(0.02, 2.0, size=100) / 50.0
    return replace(base, data=(replace(base.data[0], weights=weights),))


def squared_weights() -> Instance:
    """Weighted least squares."""
    return weighted(SquaredLoss(), "squared weights")


def logistic_weights() -> Instance:
    """A weighted classifier."""
    return weighted(LogisticLoss(), "logistic weights")


def squared_offset() -> Instance:
    """Known parts of the predictions, and a constant in the objective."""
    base = planted("squared offset", SquaredLoss(), n=40, p=6, k=2)
    data = base.data[0]
    offset = 3.0 + generator("squared offset known").standard_normal(40)
    data = replace(data, target=data.target + offset, offset=offset)
    return replace(base, data=(data,), constant=-2.5)


def logistic_offset() -> Instance:
    """Known log-odds, and a constant in the objective."""
    base = planted("logistic offset", LogisticLoss(), n=100, p=6, k=2)
    offset = 0.5 * generator("logistic offset known").standard_normal(100)
    return replace(base, data=(replace(base.data[0], offset=offset),), constant=1.0)


def two_terms() -> Instance:
    """Two data sets of different sizes with the same coefficients."""
    first = planted("two terms", SquaredLoss(), n=25, p=6, k=2)
    rng = generator("two terms, second")
    support = support_of(first)
    array = rng.standard_normal((40, 6))
    x = np.linalg.lstsq(first.data[0].array, first.data[0].target, rcond=None)[0]
    target = array[:, support] @ x[support] + 0.05 * rng.standard_normal(40)
    second = Data(array, SquaredLoss(), target, np.full(40, 0.5 / 40))
    return replace(first, data=(*first.data, second))


def mixed_terms() -> Instance:
    """A squared and a logistic loss of the same coefficients."""
    first = planted("mixed terms", LogisticLoss(), n=100, p=6, k=2)
    rng = generator("mixed terms, second")
    d = first.data[0]
    signs = np.sign(d.array[:, support_of(first)].T @ d.target)
    array = rng.standard_normal((30, 6))
    target = 1.5 * array[:, support_of(first)] @ signs + 0.05 * rng.standard_normal(30)
    second = Data(array, SquaredLoss(), target, np.full(30, 0.3 / 30))
    return replace(first, data=(*first.data, second))


def priced_support() -> Instance:
    """A price that makes one of the three allowed coordinates not worth having."""
    base = planted("priced support", SquaredLoss(), n=60, p=7, k=3)
    rng = generator("priced support, coefficients")
    support = support_of(base)
    data = base.data[0]
    target = data.array[:, support] @ np.array([2.0, -1.5, 0.3])
    target += 0.05 * rng.standard_normal(len(target))
    sparsity = replace(base.sparsity, price=0.3)
    return replace(base, data=(replace(data, target=target),), sparsity=sparsity, planted=None)


def bounded() -> Instance:
    """Nonnegative coefficients with an upper bound that binds."""
    base = planted("bounded", SquaredLoss(), n=40, p=7, k=2)
    data, noise = base.data[0], generator("bounded, noise").standard_normal(40)
    target = data.array[:, support_of(base)] @ np.array([1.2, 0.6]) + 0.05 * noise
    box = Box(np.zeros(7), np.full(7, 0.8))
    return replace(base, data=(replace(data, target=target),), box=box)


# ---- other losses ----------------------------------------------------------------------------


def huber() -> Instance:
    """A robust regression: the second derivative vanishes far out."""
    return planted("huber", HuberLoss(), n=60, p=6, k=2)


def poisson() -> Instance:
    """Counts: the gradient has no global Lipschitz constant."""
    return planted("poisson", PoissonLoss(), n=100, p=6, k=2)


def squared_hinge() -> Instance:
    """A classifier whose Hessian jumps."""
    return planted("squared hinge", SquaredHingeLoss(), n=100, p=6, k=2)


def smoothed_hinge() -> Instance:
    """A classifier that is linear far out."""
    return planted("smoothed hinge", SmoothedHingeLoss(), n=100, p=6, k=2)


def hinge() -> Instance:
    """A classifier without a gradient at its kinks."""
    return planted("hinge", HingeLoss(), n=60, p=6, k=2)


BASIC: tuple[Maker, ...] = (squared, squared_ridge, logistic, logistic_ridge)
"""One instance of each common kind."""

WIDE: tuple[Maker, ...] = (wide_squared, wide_squared_ridge, wide_logistic_ridge)
"""Too many supports to try, and still easy."""

STRUCTURED: tuple[Maker, ...] = (
    squared_intercept,
    logistic_intercept,
    squared_groups,
    squared_rows,
    multinomial_rows,
    ridge_vector,
    squared_weights,
    logistic_weights,
    squared_offset,
    logistic_offset,
    two_terms,
    mixed_terms,
    priced_support,
    bounded,
    huber,
    poisson,
    squared_hinge,
    smoothed_hinge,
    hinge,
)
"""One thing more than the basic problems, each."""


@cache
def instance(maker: Maker) -> Instance:
    """Return the instance of ``maker``, made once, with arrays that cannot be written to."""
    made = maker()
    for array in made.arrays().values():
        array.flags.writeable = False
    return made


def support_of(made: Instance) -> IntArray:
    """Return the planted support, which must be there."""
    if made.planted is None:
        raise ValueError(f"{made.name} has no planted support.")
    return made.planted
