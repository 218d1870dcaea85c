r"""The built-in losses and their conjugates, from the names and parameters in a certificate.

Most of them are one family: with ends, centre ``t``, dead zone and curvature of the dual given,

.. math:: \ell^*(a) = a t + \epsilon |a| + \tfrac{\mu}{2} a^2 \text{ for } l \le a \le h, \qquad
          \ell(u) = \max_{l \le a \le h} a (u - t) - \epsilon |a| - \tfrac{\mu}{2} a^2 ,

where :math:`\mu` is divided by a number for each side in the expectile loss. The others have
logarithms and exponentials. Everything is convex, so that over an interval the largest value is at
an end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import entr, expit

from sparsemodel.checker.arithmetic import TINY, UNIT, Ball, Number, high, lift, low, number, up
from sparsemodel.checker.losses.linked import LINKED, linked, linked_conjugate

LIBRARY = 32.0 * UNIT
"""Relative error of a few operations and library functions (exp, log: a few units each)."""

_SIGNS = ("hinge_loss", "smoothed_hinge_loss", "squared_hinge_loss", "logistic_loss")
_CURVED = (
    "logistic_loss",
    "poisson_loss",
    "negative_binomial_loss",
    "gamma_loss",
    "tweedie_loss",
    "multinomial_loss",
    "cox_loss",
)
_AMOUNTS = ("poisson_loss", "negative_binomial_loss", "tweedie_loss", *LINKED[:2])
_INF = np.inf

LOSSES: dict[str, tuple[str, tuple[str, ...], Callable[..., tuple[Any, ...]]]] = {
    "squared_loss": ("1/2 (u - y)^2", (), lambda y: (-_INF, _INF, y, 0, 1)),
    "huber_loss": (
        "Huber(u - y): 1/2 r^2 up to |r| = delta, then delta |r| - delta^2/2",
        ("delta",),
        lambda y, delta: (-delta, delta, y, 0, 1),
    ),
    "absolute_loss": ("|u - y|", (), lambda y: (-1, 1, y, 0, 0)),
    "quantile_loss": (
        "tau max(y - u, 0) + (1 - tau) max(u - y, 0)",
        ("tau",),
        lambda y, tau: (-tau, 1.0 - tau, y, 0, 0),
    ),
    "epsilon_insensitive_loss": (
        "max(|u - y| - epsilon, 0)",
        ("epsilon",),
        lambda y, epsilon: (-1, 1, y, epsilon, 0),
    ),
    "smoothed_pinball_loss": (
        "max a r - epsilon |a| - mu a^2/2, -below <= a <= above, r = u - y",
        ("below", "above", "epsilon", "mu"),
        lambda y, below, above, epsilon, mu: (-below, above, y, epsilon, mu),
    ),
    "expectile_loss": (
        "tau max(y - u, 0)^2 + (1 - tau) max(u - y, 0)^2",
        ("tau",),
        lambda y, tau: (-_INF, _INF, y, 0, 1, (2.0 * tau, 2.0 * (1.0 - tau))),
    ),
    "linear_term": ("y u", (), lambda y: (y, y, 0, 0, 0)),
    "hinge_loss": ("max(0, 1 - y u)", (), lambda y: (*_toward(y), y, 0, 0)),
    "smoothed_hinge_loss": (
        "max(0, 1 - y u) with a parabola of width gamma at the kink",
        ("gamma",),
        lambda y, gamma: (*_toward(y), y, 0, gamma),
    ),
    "squared_hinge_loss": (
        "1/2 max(0, 1 - y u)^2",
        (),
        lambda y: (np.where(y > 0, -_INF, 0), np.where(y > 0, 0, _INF), y, 0, 1),
    ),
    "logistic_loss": ("log(1 + exp(-y u))", (), lambda y: (*_toward(y), y, 0, 0)),
    "poisson_loss": ("exp(u) - y u", (), lambda y: (-y, _INF, y, 0, 0)),
    "negative_binomial_loss": (
        "(y + theta) log(1 + exp(u)/theta) - y u",
        ("theta",),
        lambda y, theta: (-y, theta, y, 0, theta),
    ),
    "tweedie_loss": (
        "y exp(-(power - 1) u)/(power - 1) + exp((2 - power) u)/(2 - power)",
        ("power",),
        lambda y, power: (np.where(y > 0.0, -_INF, 0.0), _INF, y, 0, power),
    ),
    "gamma_loss": ("y exp(-u) + u", (), lambda y: (-_INF, 1, y, 0, 0)),
    "poisson_identity_loss": (
        "u - y log(u), from y/1e6 on",
        (),
        lambda y: (np.where(y > 0.0, -_INF, 1.0), np.where(y > 0.0, _below(1.0), 1.0), y, 0, 0),
    ),
    "poisson_sqrt_loss": (
        "u^2 - 2 y log(u), from sqrt(y)/1e6 on",
        (),
        lambda y: (-_INF, _INF, y, 0, 0),
    ),
    "gamma_inverse_loss": (
        "y u - log(u), from 1e-9/y on",
        (),
        lambda y: (-_INF, _below(y), y, 0, 0),
    ),
    "multinomial_loss": ("log sum_j exp(u_j) - u_y", (), lambda y: (-_INF, _INF, y, 0, 1)),
}
"""Formula, parameters, and from targets the ends, centre, dead zone and curvature of the dual.

Where the family's formulas do not hold, a parameter of the loss stands in the place of the last.
"""


def _below(end: Any) -> Any:
    return np.nextafter(end, -_INF)  # an end that is none itself


def _toward(y: Any) -> tuple[Any, Any]:
    return np.minimum(-y, 0.0), np.maximum(-y, 0.0)  # -1 <= a y <= 0


@dataclass(frozen=True, eq=False)
class Family:
    """A loss of the family, or the part of another one that is the same: the domain of ``a``."""

    name: str
    lower: Any
    upper: Any
    centre: Any
    dead: float
    mu: float
    sides: tuple[float, float] = (1.0, 1.0)
    """What ``mu`` is divided by, for negative ``a`` and for positive ones."""

    @property
    def piecewise(self) -> bool:
        """Return whether the formulas of the family are those of the loss."""
        return self.name not in (*_CURVED, *LINKED)

    @property
    def smooth(self) -> bool:
        """Return whether there is a gradient everywhere."""
        return not self.piecewise or self.mu > 0.0 or self.name == "linear_term"

    def slope(self, u: Any, y: Any) -> Any:
        """Return the derivative in ``u`` (a subgradient at kinks), in floats."""
        if self.name == "logistic_loss":
            return -y * expit(-y * u)
        if self.name == "poisson_loss":
            return np.exp(u) - y
        if self.name == "negative_binomial_loss":
            return (y + self.mu) * expit(u - np.log(self.mu)) - y
        if self.name == "gamma_loss":
            return 1.0 - y * np.exp(-u)
        if self.name in LINKED:
            return linked(self.name, u, y)[2]
        if self.name == "tweedie_loss":
            return np.exp((2.0 - self.mu) * u) - y * np.exp((1.0 - self.mu) * u)
        if self.name == "multinomial_loss":
            p = np.exp(u - u.max(axis=1, keepdims=True))
            return p / p.sum(axis=1, keepdims=True) - _chosen(u, y)
        return self._best(u - self.centre)

    def _best(self, r: Any) -> Any:
        """Return the ``a`` that attains the maximum at ``r = u - t``, of floats or Fractions."""
        ends = [_like(end, r) for end in (self.lower, self.upper)]
        if self.mu > 0.0:
            dead, mu = _like(self.dead, r), _like(self.mu, r)
            a = (np.maximum(r - dead, 0) + np.minimum(r + dead, 0)) * self._side(r) / mu
            return np.minimum(np.maximum(a, ends[0]), ends[1])
        return np.where(r > self.dead, ends[1], np.where(r < -self.dead, ends[0], 0 * r))

    def value(self, u: Number, y: Any) -> Number:
        """Return the losses, an entry each (a row each for several classes)."""
        if self.name == "multinomial_loss":
            return _log_sum(u, y)
        if self.piecewise:
            return _enclosed(self._family_value, u - _like(self.centre, u))
        linearised = self.name in ("poisson_loss", "gamma_loss", "tweedie_loss")
        if np.any(np.abs(u.mid) + u.rad > 300.0) and linearised:
            raise NotImplementedError("predictions beyond 300, where this loss is linearised")
        return _enclosed(lambda at: _smooth_value(self.name, at, y, self.mu), u)

    def _side(self, x: Any) -> Any:
        """Return the number of its side for every entry."""
        below, above = (_like(side, x) for side in self.sides)
        return np.where(x > 0, above, below)

    def _family_value(self, r: Any) -> Number:
        a = self._best(r)
        if r.dtype == object:
            square = _like(self.mu, r) * a * a / self._side(a)
            return a * r - _like(self.dead, r) * abs(a) - square / 2
        half = lift(0.5 * self.mu) / self._side(a)
        value = Ball(a) * r - lift(self.dead) * np.abs(a) - half * a * lift(a)
        # a is rounded itself, twice
        return Ball(value.mid, up(value.rad + 2.0 * UNIT * self.mu * a * a / self._side(a)))

    def conjugate(self, a: Number, y: Any) -> Any:
        """Return upper bounds on the conjugate over the ``a`` that are possible; inf outside."""
        if self.name == "multinomial_loss":
            return _entropy(a, y)
        if not isinstance(a, Ball):
            value = a * _like(self.centre, a) + _like(self.dead, a) * abs(a)
            value = value + _like(self.mu, a) * a * a / (2 * self._side(a))
            return np.where((a >= self.lower) & (a <= self.upper), value, np.inf)
        inside = (a.mid >= self.lower) & (a.mid <= self.upper)
        ends = [np.clip(end, self.lower, self.upper) for end in (low(a), high(a))]
        found = [self._conjugate_at(end, y) for end in ends]
        return np.where(inside, np.maximum(*found), np.inf)

    def _conjugate_at(self, a: Any, y: Any) -> Any:
        if self.piecewise:
            flat = lift(a) * self.centre + lift(self.dead) * np.abs(a)
            return high(flat + lift(0.5 * self.mu) / self._side(a) * a * lift(a))
        if self.name == "tweedie_loss":
            return _tweedie_conjugate(a, y, self.mu)
        if self.name in LINKED:
            s, (value, size) = np.zeros_like(a), linked_conjugate(self.name, a, y)
        elif self.name == "logistic_loss":
            s = -a * y
            value, size = -entr(s) - entr(1.0 - s), 1.0 * ((s > 0.0) & (s < 1.0))
        elif self.name == "poisson_loss":
            s = a + y
            value, size = -entr(s) - s, s
        elif self.name == "negative_binomial_loss":
            s, t, whole = a + y, self.mu - a, y + self.mu
            # log(t / whole), from what it misses of one where that is little
            logs = np.where(2.0 * s < whole, np.log1p(-np.minimum(s / whole, 0.5)), 0.0)
            logs = np.where(2.0 * s < whole, logs, np.log(np.where(t > 0.0, t / whole, 1.0)))
            value, size = -entr(s) - s * np.log1p(y / self.mu) + t * logs, np.abs(t * logs) + s
            size = size + s * np.log1p(y / self.mu)
        else:
            s = 1.0 - a
            value, size = -entr(s) - s * np.log(y) - s, s + np.abs(s * np.log(y))
        return value + LIBRARY * (np.abs(value) + np.abs(entr(s)) + size) + TINY * (value != 0.0)


def family_of(name: str, parameters: dict[str, Any], y: Any) -> Family | str:
    """Return the loss with that name for the targets ``y``, or what is wrong with them."""
    if name not in LOSSES:
        raise NotImplementedError(f"the loss {name!r} is not one of those that this checker knows")
    _, keys, made = LOSSES[name]
    values: list[Any] = [parameters.get(key) for key in keys]
    if any(isinstance(v, bool) or not isinstance(v, (int, float)) for v in values):
        return "a parameter of the loss is missing"
    lowest = [0.0 if key == "epsilon" else 1e-300 for key in keys]
    if any(not least <= v < np.inf for v, least in zip(values, lowest, strict=True)):
        return "a parameter of the loss is not positive"
    if name in ("quantile_loss", "expectile_loss") and not values[0] < 1.0:
        return "tau must be below 1"
    if name == "tweedie_loss" and not 1.0 < values[0] < 2.0:
        return "the power must be between 1 and 2"
    if not np.all(np.isfinite(y)):
        return "the target holds NaN or infinite entries"
    if name in _SIGNS and not np.all(np.abs(y) == 1.0):
        return "labels must be -1 and +1"
    if np.any(y < 0.0 if name in _AMOUNTS else (y <= 0.0) & name.startswith("gamma")):
        return "the target must hold positive numbers"
    lower, upper, centre, dead, mu, *sides = made(y, *values)
    every = np.ones(y.shape)
    return Family(
        name, lower * every, upper * every, centre * every, float(dead), float(mu), *sides
    )


def _like(values: Any, other: Any) -> Any:
    """Return floats as the kind of number that ``other`` holds."""
    if not (isinstance(other, np.ndarray) and other.dtype == object):
        return values
    return number(values, True)[()]


def _enclosed(f: Callable[[Any], Number], r: Number) -> Number:
    """Return ``f(r)`` for a convex ``f``: it rises most at an end, and falls by no more."""
    if not isinstance(r, Ball):
        return f(r)
    at, ends = f(r.mid), np.maximum(high(f(low(r))), high(f(high(r))))
    return Ball(at.mid, up(np.maximum(at.rad, ends - low(at))))


def _smooth_value(name: str, u: Any, y: Any, shape: float) -> Ball:
    if name == "logistic_loss":
        value = np.log1p(np.exp(-np.abs(u))) + np.maximum(-y * u, 0.0)
        return Ball(value, LIBRARY * value + TINY)
    if name in LINKED:
        value, size, _ = linked(name, u, y)
        return Ball(value, LIBRARY * size + TINY)
    if name == "negative_binomial_loss":
        v = np.logaddexp(0.0, u - np.log(shape))
        reach = 2.0 + 0.1 * (np.abs(u) + abs(np.log(shape)))  # the argument's error counts once
        grown, line = (y + shape) * v, np.abs(y * u)
        return Ball(grown - y * u, LIBRARY * (grown * reach + line) + TINY)
    if name == "tweedie_loss":
        fall, rise = shape - 1.0, 2.0 - shape
        value = y * np.exp(-fall * u) / fall + np.exp(rise * u) / rise
        return Ball(value, LIBRARY * (1.0 + 0.1 * np.abs(u)) * value + TINY)
    grown = np.exp(u) if name == "poisson_loss" else y * np.exp(-u)
    line = -y * u if name == "poisson_loss" else u
    return Ball(grown + line, LIBRARY * (grown + np.abs(line)) + TINY)


def _tweedie_conjugate(a: Any, y: Any, power: float) -> Any:
    """Return upper bounds on ``max a v - loss(v)``: concave, so that no value lies above a tangent.

    The maximiser is between two points ``v`` at which the tangents rise and fall for certain; of
    the tangent at the first the larger value at either is an upper bound.
    """
    none = (a == 0.0) & (y == 0.0)
    outside = (a < 0.0) & (y == 0.0)
    fall, rise = power - 1.0, 2.0 - power
    a, y = np.where(none | outside, 1.0, a), np.where(none | outside, 1.0, y)

    def slope(v: Any) -> tuple[Any, Any]:
        grown, shrunk = np.exp(rise * v), y * np.exp(-fall * v)
        return a - grown + shrunk, LIBRARY * (1.0 + np.abs(v)) * (np.abs(a) + grown + shrunk)

    left, right = np.full(a.shape, -500.0 / fall), np.full(a.shape, 500.0 / rise)
    for _ in range(64):
        v = 0.5 * (left + right)
        rises = slope(v)[0] > 0.0
        left, right = np.where(rises, v, left), np.where(rises, right, v)
    reach = 1e-12 * (1.0 + np.abs(v)) / min(fall, rise)
    left, right = v - reach, v + reach
    (rising, noise), (falling, noise_right) = slope(left), slope(right)
    at = Ball(a) * left - _smooth_value("tweedie_loss", left, y, power)
    bound = high(at + Ball(np.maximum(rising, 0.0), noise) * (2.0 * reach * (1.0 + 8.0 * UNIT)))
    found = np.where((rising >= noise) & (falling <= -noise_right), bound, np.inf)
    return np.where(outside, np.inf, np.where(none, 0.0, found))


def _chosen(u: Any, y: Any) -> Any:
    return 1.0 * (np.arange(u.shape[1]) == y[:, None])


def _log_sum(u: Ball, y: Any) -> Ball:
    """Return ``log sum exp(u) - u_y``: neither part moves by more than the entries do."""
    largest, m = u.mid.max(axis=1), u.mid.shape[1]
    spread = np.log(np.exp(u.mid - largest[:, None]).sum(axis=1))
    value = spread + (largest - (u.mid * _chosen(u.mid, y)).sum(axis=1))
    size = 1.0 + np.abs(u.mid).max(axis=1)
    return Ball(value, up(2.0 * u.rad.max(axis=1) + (2 * m + 32) * UNIT * 4.0 * size))


def _simplex(a: Ball, y: Any) -> tuple[Any, Any, Any]:
    """Return ``s = a + e_y``, by how much each row misses the sum one, and its largest entry."""
    s, m = a.mid + _chosen(a.mid, y), a.mid.shape[1]
    missing = np.abs(a.mid.sum(axis=1)) + 2 * m * UNIT * np.abs(a.mid).sum(axis=1)
    return s, missing, (np.arange(s.shape[0]), s.argmax(axis=1))


def _entropy(a: Ball, y: Any) -> Any:
    """Return the multinomial conjugate, ``sum s log s`` for ``s = a + e_y`` in the unit simplex.

    Rows of floats do not sum to one exactly; the largest entry of each takes up what is missing.
    """
    (s, missing, largest), m = _simplex(a, y), a.mid.shape[1]
    reach = a.rad + 2.0 * UNIT
    reach[largest] += 2.0 * missing
    ends = (np.clip(s - reach, 0.0, 1.0), np.clip(s + reach, 0.0, 1.0))
    value = np.maximum(-entr(ends[0]), -entr(ends[1])).sum(axis=1)
    inside = np.all(s >= 0.0, axis=1) & (missing <= 1e-12 * m)
    value = value + (2 * m + 32) * UNIT * (1.0 + np.abs(value))
    exact = np.all((a.mid == 0.0) & (a.rad == 0.0), axis=1)
    return np.where(inside, np.where(exact, 0.0, value), np.inf)


def widened(loss: Family, a: Ball, y: Any) -> Ball:
    """Return a dual point with what a multinomial one is known to miss its plane by."""
    if loss.name != "multinomial_loss":
        return a
    (_, missing, largest), more = _simplex(a, y), np.zeros(a.shape)
    more[largest] = 2.0 * missing
    return Ball(a.mid, up(a.rad + more))
