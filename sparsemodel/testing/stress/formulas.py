r"""Objectives from their textbook formulas, in extended precision, without the library.

``numpy.longdouble`` has at least the range and precision of float64; on x86-64 it has 64 bits and
exponents to :math:`10^{\pm 4932}`, so that squares of any float64 are exact enough to judge by.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Long: TypeAlias = NDArray[Any]
"""An array of ``numpy.longdouble``."""

HUBER_DELTA, TAU, EPSILON, SMOOTHING = 0.7, 0.3, 0.2, 0.5
"""Parameters of the losses that have one, in the random problems."""


def long(values: Any) -> Long:
    """Return ``values`` as extended precision."""
    return np.asarray(values, dtype=np.longdouble)


def _huber(u: Long, y: Long) -> Long:
    size, delta = np.abs(u - y), long(HUBER_DELTA)
    return long(np.where(size <= delta, size * size / 2, delta * size - delta * delta / 2))


def _quantile(u: Long, y: Long) -> Long:
    tau = long(TAU)
    return long(np.where(y >= u, tau * (y - u), (1 - tau) * (u - y)))


def _smoothed_hinge(u: Long, y: Long) -> Long:
    gap, gamma = 1 - y * u, long(SMOOTHING)
    curve = gap * gap / (2 * gamma)
    return long(np.where(gap <= 0, 0, np.where(gap <= gamma, curve, gap - gamma / 2)))


def _multinomial(u: Long, y: Long) -> Long:
    top = u.max(axis=1)
    own = u[np.arange(len(u)), y.astype(np.intp)]
    return long(np.log(np.exp(u - top[:, None]).sum(axis=1)) + top - own)


def _gamma(u: Long, y: Long) -> Long:
    return long(u + y * np.exp(-u))


def _poisson(u: Long, y: Long) -> Long:
    return long(np.exp(u) - y * u)


FORMULAS: MappingProxyType[str, Callable[[Long, Long], Long]] = MappingProxyType(
    {
        "squared": lambda u, y: (u - y) * (u - y) / 2,
        "huber": _huber,
        "absolute": lambda u, y: np.abs(u - y),
        "quantile": _quantile,
        "epsilon_insensitive": lambda u, y: np.maximum(np.abs(u - y) - long(EPSILON), 0),
        "logistic": lambda u, y: np.maximum(-y * u, 0) + np.log1p(np.exp(-np.abs(y * u))),
        "hinge": lambda u, y: np.maximum(1 - y * u, 0),
        "smoothed_hinge": _smoothed_hinge,
        "squared_hinge": lambda u, y: np.square(np.maximum(1 - y * u, 0)) / 2,
        "poisson": _poisson,
        "gamma": _gamma,
        "multinomial": _multinomial,
    }
)
"""The losses of one prediction each; labels are -1 and 1."""


def _multinomial_slope(u: Long, y: Long) -> Long:
    shares = np.exp(u - u.max(axis=1)[:, None])
    shares /= shares.sum(axis=1)[:, None]
    shares[np.arange(len(u)), y.astype(np.intp)] -= 1
    return long(shares)


SLOPES: MappingProxyType[str, Callable[[Long, Long], Long]] = MappingProxyType(
    {
        "squared": lambda u, y: u - y,
        "huber": lambda u, y: np.clip(u - y, -long(HUBER_DELTA), long(HUBER_DELTA)),
        "absolute": lambda u, y: np.sign(u - y),
        "quantile": lambda u, y: np.where(u > y, 1 - long(TAU), -long(TAU)),
        "epsilon_insensitive": lambda u, y: np.sign(u - y) * (np.abs(u - y) > EPSILON),
        "logistic": lambda u, y: -y * np.exp(-np.logaddexp(0, y * u)),
        "hinge": lambda u, y: -y * (y * u < 1),
        "smoothed_hinge": lambda u, y: -y * np.clip((1 - y * u) / long(SMOOTHING), 0, 1),
        "squared_hinge": lambda u, y: -y * np.maximum(1 - y * u, 0),
        "poisson": lambda u, y: np.exp(u) - y,
        "gamma": lambda u, y: 1 - y * np.exp(-u),
        "multinomial": _multinomial_slope,
    }
)
"""Derivatives of :data:`FORMULAS`: they lead the search for witnesses and judge nothing."""


def total_slope(name: str, u: Long, y: Long, weights: Long) -> Long:
    """Return the gradient of :func:`total_loss` in the predictions."""
    if name == "cox":
        return _cox_slope(u, y, weights)
    return long(SLOPES[name](u, y).T * weights).T


def total_loss(name: str, u: Long, y: Long, weights: Long) -> Any:
    """Return the weighted sum of the losses."""
    if name == "cox":
        return _cox(u, y, weights)
    return np.sum(weights * FORMULAS[name](u, y))


def _cox(u: Long, y: Long, weights: Long) -> Any:
    # With weights, risk sets count an observation as often as its share of their mean says.
    time, event = y[:, 0], y[:, 1] == 1
    shares = weights * len(weights) / weights.sum()
    total = long(0.0)
    for i in np.flatnonzero(event & (weights > 0)):
        at_risk = u[(time >= time[i]) & (shares > 0)]
        counted = shares[(time >= time[i]) & (shares > 0)]
        top = at_risk.max()
        total += weights[i] * (np.log(np.sum(counted * np.exp(at_risk - top))) + top - u[i])
    return total


def _cox_slope(u: Long, y: Long, weights: Long) -> Long:
    time, event = y[:, 0], y[:, 1] == 1
    shares = weights * len(weights) / weights.sum()
    out = long(np.zeros(len(u)))
    for i in np.flatnonzero(event & (weights > 0)):
        at_risk = (time >= time[i]) & (shares > 0)
        counted = shares[at_risk] * np.exp(u[at_risk] - u[at_risk].max())
        out[at_risk] += weights[i] * counted / counted.sum()
        out[i] -= weights[i]
    return out


__all__ = [
    "EPSILON",
    "FORMULAS",
    "HUBER_DELTA",
    "SLOPES",
    "SMOOTHING",
    "TAU",
    "Long",
    "long",
    "total_loss",
    "total_slope",
]
