r"""The built-in losses and their conjugates, from the names and parameters in a certificate.

Ten of them are one family: with ends, centre ``t``, dead zone and curvature of the dual given,

.. math:: \ell^*(a) = a t + \epsilon |a| + \tfrac{\mu}{2} a^2 \text{ for } l \le a \le h, \qquad
          \ell(u) = \max_{l \le a \le h} a (u - t) - \epsilon |a| - \tfrac{\mu}{2} a^2 .

The other four are logistic, Poisson, gamma and multinomial. Everything is convex, so that over an
interval the largest value is at an end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import entr, expit

from sparsemodel.checker.arithmetic import TINY, UNIT, Ball, Number, high, lift, low, number, up

_LIBRARY = 32.0 * UNIT
"""Relative error of a few operations and library functions (exp, log: a few units each)."""

FORMULAS = {
    "squared_loss": "1/2 (u - y)^2",
    "huber_loss": "Huber(u - y): 1/2 r^2 up to |r| = delta, then delta |r| - delta^2/2",
    "absolute_loss": "|u - y|",
    "quantile_loss": "tau max(y - u, 0) + (1 - tau) max(u - y, 0)",
    "epsilon_insensitive_loss": "max(|u - y| - epsilon, 0)",
    "smoothed_pinball_loss": "max a r - epsilon |a| - mu a^2/2, -below <= a <= above, r = u - y",
    "linear_term": "y u",
    "hinge_loss": "max(0, 1 - y u)",
    "smoothed_hinge_loss": "max(0, 1 - y u) with a parabola of width gamma at the kink",
    "squared_hinge_loss": "1/2 max(0, 1 - y u)^2",
    "logistic_loss": "log(1 + exp(-y u))",
    "poisson_loss": "exp(u) - y u",
    "gamma_loss": "y exp(-u) + u",
    "multinomial_loss": "log sum_j exp(u_j) - u_y",
}
PARAMETERS = {
    "huber_loss": ("delta",),
    "quantile_loss": ("tau",),
    "epsilon_insensitive_loss": ("epsilon",),
    "smoothed_pinball_loss": ("below", "above", "epsilon", "mu"),
    "smoothed_hinge_loss": ("gamma",),
}
SIGNS = ("hinge_loss", "smoothed_hinge_loss", "squared_hinge_loss", "logistic_loss")


@dataclass(frozen=True, eq=False)
class Family:
    """A loss of the family, or the part of another one that is the same: the domain of ``a``."""

    name: str
    lower: Any
    upper: Any
    centre: Any
    dead: float = 0.0
    mu: float = 0.0

    @property
    def piecewise(self) -> bool:
        """Return whether the formulas of the family are those of the loss."""
        return self.name not in ("logistic_loss", "poisson_loss", "gamma_loss", "multinomial_loss")

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
        if self.name == "gamma_loss":
            return 1.0 - y * np.exp(-u)
        if self.name == "multinomial_loss":
            p = np.exp(u - u.max(axis=1, keepdims=True))
            return p / p.sum(axis=1, keepdims=True) - _chosen(u, y)
        return self._best(u - self.centre)

    def _best(self, r: Any) -> Any:
        """Return the ``a`` that attains the maximum at ``r = u - t``, of floats or Fractions."""
        if self.mu > 0.0:
            dead, mu = _like(self.dead, r), _like(self.mu, r)
            a = (np.maximum(r - dead, 0) + np.minimum(r + dead, 0)) / mu
            return np.minimum(np.maximum(a, self._ends(r)[0]), self._ends(r)[1])
        low_end, high_end = self._ends(r)
        return np.where(r > self.dead, high_end, np.where(r < -self.dead, low_end, 0 * r))

    def _ends(self, r: Any) -> tuple[Any, Any]:
        return _like(self.lower, r), _like(self.upper, r)

    def value(self, u: Number, y: Any) -> Number:
        """Return the losses, an entry each (a row each for several classes)."""
        if self.name == "multinomial_loss":
            return _log_sum(u, y)
        if self.piecewise:
            return _enclosed(self._family_value, u - _like(self.centre, u))
        if np.any(np.abs(u.mid) + u.rad > 300.0) and self.name != "logistic_loss":
            raise NotImplementedError("predictions beyond 300, where this loss is linearised")
        return _enclosed(lambda at: _smooth_value(self.name, at, y), u)

    def _family_value(self, r: Any) -> Number:
        a = self._best(r)
        if isinstance(r, np.ndarray) and r.dtype == object:
            return a * r - _like(self.dead, r) * abs(a) - _like(self.mu, r) * a * a / 2
        value = Ball(a) * r - lift(self.dead) * np.abs(a) - lift(0.5 * self.mu) * a * lift(a)
        return Ball(value.mid, up(value.rad + UNIT * self.mu * a * a))  # a is rounded itself

    def conjugate(self, a: Number, y: Any) -> Any:
        """Return upper bounds on the conjugate over the ``a`` that are possible; inf outside."""
        if self.name == "multinomial_loss":
            return _entropy(a, y)
        if not isinstance(a, Ball):
            inside = (a >= self.lower) & (a <= self.upper)
            value = a * _like(self.centre, a) + _like(self.dead, a) * abs(a)
            return np.where(inside, value + _like(self.mu, a) * a * a / 2, np.inf)
        inside = (a.mid >= self.lower) & (a.mid <= self.upper)
        ends = [low(a), high(a)] if a.rad.any() else [a.mid]
        found = [self._conjugate_at(np.clip(end, self.lower, self.upper), y) for end in ends]
        return np.where(inside, np.maximum(found[0], found[-1]), np.inf)

    def _conjugate_at(self, a: Any, y: Any) -> Any:
        if self.piecewise:
            return high(
                lift(a) * self.centre
                + lift(self.dead) * np.abs(a)
                + lift(0.5 * self.mu) * a * lift(a)
            )
        if self.name == "logistic_loss":
            s = -a * y
            value, size = -entr(s) - entr(1.0 - s), 1.0 * ((s > 0.0) & (s < 1.0))
        elif self.name == "poisson_loss":
            s = a + y
            value, size = -entr(s) - s, s
        else:
            s = 1.0 - a
            value, size = -entr(s) - s * np.log(y) - s, s + np.abs(s * np.log(y))
        return value + _LIBRARY * (np.abs(value) + np.abs(entr(s)) + size) + TINY * (value != 0.0)


def loss_of(name: str, parameters: dict[str, Any], y: Any) -> Family | str:
    """Return the loss with that name for the targets ``y``, or what is wrong with them."""
    if name not in FORMULAS:
        raise NotImplementedError(f"the loss {name!r} is not one of those that this checker knows")
    values: list[Any] = [parameters.get(key) for key in PARAMETERS.get(name, ())]
    if any(isinstance(v, bool) or not isinstance(v, (int, float)) for v in values):
        return "a parameter of the loss is missing"
    low_ends = [0.0 if key == "epsilon" else 1e-300 for key in PARAMETERS.get(name, ())]
    if any(not lowest <= v < np.inf for v, lowest in zip(values, low_ends, strict=True)):
        return "a parameter of the loss is not positive"
    if name == "quantile_loss" and not values[0] < 1.0:
        return "tau must be below 1"
    if not np.all(np.isfinite(y)):
        return "the target holds NaN or infinite entries"
    if name in SIGNS and not np.all(np.abs(y) == 1.0):
        return "labels must be -1 and +1"
    if (name == "poisson_loss" and np.any(y < 0.0)) or (name == "gamma_loss" and np.any(y <= 0.0)):
        return "the target must hold positive numbers"
    every = np.full(y.shape, 1.0)
    toward = (np.minimum(-y, 0.0), np.maximum(-y, 0.0))  # -1 <= a y <= 0
    wide = (-np.inf * every, np.inf * every)
    if name in ("squared_loss", "multinomial_loss"):
        return Family(name, *wide, y, 0.0, 1.0)
    if name == "huber_loss":
        return Family(name, -values[0] * every, values[0] * every, y, 0.0, 1.0)
    if name == "absolute_loss":
        return Family(name, -every, every, y)
    if name == "quantile_loss":
        return Family(name, -values[0] * every, (1.0 - values[0]) * every, y)
    if name == "epsilon_insensitive_loss":
        return Family(name, -every, every, y, values[0])
    if name == "smoothed_pinball_loss":
        below, above, dead, mu = values
        return Family(name, -below * every, above * every, y, dead, mu)
    if name == "linear_term":
        return Family(name, y, y, 0.0 * y)
    if name == "squared_hinge_loss":
        ends = (np.where(y > 0.0, -np.inf, 0.0), np.where(y > 0.0, 0.0, np.inf))
        return Family(name, *ends, y, 0.0, 1.0)
    if name == "poisson_loss":
        return Family(name, -y, np.inf * every, y)
    if name == "gamma_loss":
        return Family(name, -np.inf * every, every, y)
    mu = values[0] if name == "smoothed_hinge_loss" else 0.0
    return Family(name, *toward, y, 0.0, mu)


def _like(values: Any, other: Any) -> Any:
    """Return floats as the kind of number that ``other`` holds."""
    if not (isinstance(other, np.ndarray) and other.dtype == object):
        return values
    out = number(values, True)
    return out if out.shape else out.item()


def _enclosed(f: Callable[[Any], Number], r: Number) -> Number:
    """Return ``f(r)`` for a convex ``f``: it rises most at an end, and falls by no more."""
    if not isinstance(r, Ball):
        return f(r)
    at, ends = f(r.mid), np.maximum(high(f(low(r))), high(f(high(r))))
    return Ball(at.mid, up(np.maximum(at.rad, ends - low(at))))


def _smooth_value(name: str, u: Any, y: Any) -> Ball:
    if name == "logistic_loss":
        value = np.log1p(np.exp(-np.abs(u))) + np.maximum(-y * u, 0.0)
        return Ball(value, _LIBRARY * value + TINY)
    grown = np.exp(u) if name == "poisson_loss" else y * np.exp(-u)
    line = -y * u if name == "poisson_loss" else u
    return Ball(grown + line, _LIBRARY * (grown + np.abs(line)) + TINY)


def _chosen(u: Any, y: Any) -> Any:
    out = np.zeros(u.shape)
    out[np.arange(u.shape[0]), y.astype(int)] = 1.0
    return out


def _log_sum(u: Ball, y: Any) -> Ball:
    """Return ``log sum exp(u) - u_y``: neither part moves by more than the entries do."""
    largest, m = u.mid.max(axis=1), u.mid.shape[1]
    spread = np.log(np.exp(u.mid - largest[:, None]).sum(axis=1))
    value = spread + (largest - (u.mid * _chosen(u.mid, y)).sum(axis=1))
    size = 1.0 + np.abs(u.mid).max(axis=1)
    return Ball(value, up(2.0 * u.rad.max(axis=1) + (2 * m + 32) * UNIT * 4.0 * size))


def _entropy(a: Ball, y: Any) -> Any:
    """Return the multinomial conjugate, ``sum s log s`` for ``s = a + e_y`` in the unit simplex.

    Rows of floats do not sum to one exactly; the largest entry of each takes up what is missing.
    """
    s, m = a.mid + _chosen(a.mid, y), a.mid.shape[1]
    missing = np.abs(a.mid.sum(axis=1)) + 2 * m * UNIT * np.abs(a.mid).sum(axis=1)
    reach = a.rad + 2.0 * UNIT
    reach[np.arange(s.shape[0]), s.argmax(axis=1)] += 2.0 * missing
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
    s, m = a.mid + _chosen(a.mid, y), a.mid.shape[1]
    more = np.zeros(s.shape)
    sums = np.abs(a.mid.sum(axis=1)) + 2 * m * UNIT * np.abs(a.mid).sum(axis=1)
    more[np.arange(s.shape[0]), s.argmax(axis=1)] = 2.0 * sums
    return Ball(a.mid, up(a.rad + more))


__all__ = ["FORMULAS", "PARAMETERS", "SIGNS", "Family", "loss_of", "widened"]
