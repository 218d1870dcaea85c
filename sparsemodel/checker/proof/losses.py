r"""The built-in losses and their conjugates, from the names and parameters in a certificate.

Most of them are one family: with ends, centre ``t``, dead zone and curvature of the dual given,

.. math:: \ell^*(a) = a t + \epsilon |a| + \tfrac{\mu}{2} a^2 \text{ for } l \le a \le h, \qquad
          \ell(u) = \max_{l \le a \le h} a (u - t) - \epsilon |a| - \tfrac{\mu}{2} a^2 ,

where :math:`\mu` is divided by a number for each side in the expectile loss. The others are a line
and a curve: ``N log(1 + exp(z))`` or ``N exp(z)`` with ``z = sign (u - shift)``, two exponentials,
a logarithm or a root. All are convex, so that over an interval the largest value is at an end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import entr

from sparsemodel.checker.files import Refuted
from sparsemodel.checker.proof.arithmetic import (
    TINY,
    UNIT,
    Ball,
    Number,
    high,
    lift,
    low,
    number,
    up,
)
from sparsemodel.checker.proof.curves import LIBRARY, exponential, log, root, soft, tweedie

_INF = np.inf

_FAMILY: dict[str, tuple[str, tuple[str, ...], Callable[..., tuple[Any, ...]]]] = {
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
}
"""Formula, parameters, and from targets the ends, centre, dead zone, curvature (and its sides)."""

_CURVED: dict[str, tuple[str, tuple[str, ...], Callable[..., tuple[Any, ...]]]] = {
    "logistic_loss": ("log(1 + exp(-y u))", (), lambda y: (*_toward(y), 0, soft(1, -y, 0))),
    "negative_binomial_loss": (
        "(y + theta) log(1 + exp(u)/theta) - y u",
        ("theta",),
        lambda y, theta: (-y, theta, -y, soft(y + theta, 1, np.log(theta))),
    ),
    "poisson_loss": ("exp(u) - y u", (), lambda y: (-y, _INF, -y, exponential(1, 1))),
    "gamma_loss": ("y exp(-u) + u", (), lambda y: (-_INF, 1, 1, exponential(y, -1))),
    "tweedie_loss": (
        "y exp(-(power - 1) u)/(power - 1) + exp((2 - power) u)/(2 - power)",
        ("power",),
        lambda y, power: (np.where(y > 0.0, -_INF, 0.0), _INF, 0, tweedie(y, power)),
    ),
    "poisson_identity_loss": (
        "u - y log(u), from y/1e6 on, a parabola below",
        (),
        lambda y: (
            np.where(y > 0.0, -_INF, 1),
            np.where(y > 0.0, _below(1), 1),
            1,
            log(0.0, y, 1e-6 * y),
        ),
    ),
    "poisson_sqrt_loss": (
        "u^2 - 2 y log(u), from sqrt(y)/1e6 on, a parabola below",
        (),
        lambda y: (-_INF, _INF, 0, log(1.0, 2.0 * y, 1e-6 * np.sqrt(y))),
    ),
    "gamma_inverse_loss": (
        "y u - log(u), from 1e-9/y on, a parabola below",
        (),
        lambda y: (-_INF, _below(y), y, log(0.0, np.ones(y.shape), 1e-9 / y)),
    ),
    "inverse_gaussian_loss": (
        "y u/2 - sqrt(u), from 1e-12/y^2 on, a parabola below",
        (),
        lambda y: (-_INF, _below(0.5 * y), 0.5 * y, root(1e-12 / (y * y))),
    ),
}
"""Formula, parameters, and from targets the ends of the dual, the line, and the curve."""

FORMULAS = {name: formula for name, (formula, *_) in (_FAMILY | _CURVED).items()} | {
    "multinomial_loss": "log sum_j exp(u_j) - u_y",
    "cox_loss": "event * (log(sum_j c_j exp(u_j) n / sum c over t_j >= t) - u), y: times t, events "
    "and perhaps strata, with sums of their own; ties as in the parameters",
}


_SIGNS = ("hinge_loss", "smoothed_hinge_loss", "squared_hinge_loss", "logistic_loss")
_COUNTS = tuple(n for n in _CURVED if n.startswith(("poisson", "negative", "tweedie")))
_AMOUNTS = ("gamma_loss", "gamma_inverse_loss", "inverse_gaussian_loss")
_ENDS = {"epsilon": (0.0, np.inf), "tau": (1e-300, 1.0), "power": (1.0 + 1e-15, 2.0)}
"""Between which numbers parameters are, where that is not positive."""


def _below(end: Any) -> Any:
    return np.nextafter(end, -_INF)  # an end that is none itself


def _toward(y: Any) -> tuple[Any, Any]:
    return np.minimum(-y, 0.0), np.maximum(-y, 0.0)  # -1 <= a y <= 0


@dataclass(eq=False)
class Loss:
    """A loss of given targets: its values, slopes and conjugates, an entry for each observation."""

    name: str
    lower: Any
    """The ends of the domain of the conjugate."""
    upper: Any
    smooth = True
    """Whether there is a gradient everywhere."""
    piecewise = False
    """Whether the loss is piecewise quadratic."""

    def slope(self, u: Any) -> Any:
        """Return the derivative in ``u`` (a subgradient at kinks), in floats."""
        raise NotImplementedError

    def value(self, u: Number) -> Number:
        """Return the losses: they rise most at an end of ``u``, and fall by no more."""
        if not isinstance(u, Ball):
            return self._value(u)
        at, ends = self._value(Ball(u.mid)), [self._value(Ball(end)) for end in (low(u), high(u))]
        most = np.maximum(high(ends[0]), high(ends[1]))
        return Ball(at.mid, up(np.maximum(at.rad, most - low(at))))

    def _value(self, u: Number) -> Number:
        raise NotImplementedError

    def point(self, values: Any, exact: bool) -> tuple[Number, Any]:
        """Return a stored dual point (zero for None), with its conjugate if it has one alone."""
        return number(np.zeros(self.lower.shape) if values is None else values, exact), None

    def conjugate(self, a: Number) -> Any:
        """Return upper bounds on the conjugate over the ``a`` that are possible; inf outside."""
        if not isinstance(a, Ball):
            at, found = a, [self._conjugate(a)]
        else:
            at, ends = a.mid, [np.clip(end, self.lower, self.upper) for end in (low(a), high(a))]
            found = [high(self._conjugate(Ball(end))) for end in ends]
        inside = (at >= self.lower) & (at <= self.upper)
        return np.where(inside, np.maximum(found[0], found[-1]), np.inf)

    def _conjugate(self, a: Number) -> Number:
        raise NotImplementedError


@dataclass(eq=False)
class Piecewise(Loss):
    """A loss of the family."""

    centre: Any
    dead: float
    mu: float
    sides: tuple[float, float] = (1.0, 1.0)
    """What ``mu`` is divided by, for negative ``a`` and for positive ones."""
    piecewise = True

    def __post_init__(self) -> None:
        self.smooth = self.mu > 0.0 or self.name == "linear_term"

    def slope(self, u: Any) -> Any:
        """Return the derivative in ``u`` (a subgradient at kinks), in floats."""
        return self._best(u - self.centre)

    def _best(self, r: Any) -> Any:
        """Return the ``a`` that attains the maximum at ``r = u - t``, of floats or Fractions."""
        lower, upper, dead, mu = (_like(v, r) for v in (self.lower, self.upper, self.dead, self.mu))
        if self.mu > 0.0:
            a = (np.maximum(r - dead, 0) + np.minimum(r + dead, 0)) * self._side(r) / mu
            return np.minimum(np.maximum(a, lower), upper)
        return np.where(r > dead, upper, np.where(r < -dead, lower, 0 * r))

    def _side(self, x: Any) -> Any:
        """Return the number of its side for every entry."""
        return np.where(x > 0, *(_like(side, x) for side in self.sides[::-1]))

    def _square(self, a: Number) -> Number:
        side = self._side(a.mid if isinstance(a, Ball) else a)
        return a * a * _like(self.mu, a) / (2 * side)

    def value(self, u: Number) -> Number:
        """Return the losses."""
        return super().value(u - _like(self.centre, u))

    def _value(self, r: Number) -> Number:
        a = Ball(self._best(r.mid)) if isinstance(r, Ball) else self._best(r)
        square = self._square(a)
        if isinstance(square, Ball):  # a is rounded itself
            square = Ball(square.mid, up(square.rad + 4.0 * UNIT * square.mid))
        return a * r - abs(a) * _like(self.dead, r) - square

    def _conjugate(self, a: Number) -> Number:
        return a * _like(self.centre, a) + abs(a) * _like(self.dead, a) + self._square(a)


def _like(values: Any, other: Any) -> Any:
    """Return floats as the kind of number that ``other`` holds."""
    exact = isinstance(other, np.ndarray) and other.dtype.hasobject
    return number(values, True)[()] if exact else values


@dataclass(eq=False)
class Curved(Loss):
    """A line and a curve."""

    line: Any
    curve: tuple[Any, ...]
    """See :mod:`~sparsemodel.checker.proof.curves`."""

    def slope(self, u: Any) -> Any:
        """Return the derivative in ``u``."""
        return self.curve[0](u)[2] + self.line

    def _value(self, u: Ball) -> Ball:
        at, _, reach = self.curve
        if np.any(np.abs(u.mid) > reach):
            raise NotImplementedError("predictions beyond 300, where this loss is linearised")
        value, size, *_ = at(u.mid)
        return Ball(value, LIBRARY * size + TINY) + u * lift(self.line)

    def _conjugate(self, a: Ball) -> Ball:
        value, size = self.curve[1](a.mid - self.line)
        return Ball(value, LIBRARY * size + TINY * (value != 0.0))


@dataclass(eq=False)
class Multinomial(Loss):
    """``log sum_j exp(u_j) - u_y``; a dual point and ``e_y``, which is ``-lower``, are shares."""

    def slope(self, u: Any) -> Any:
        """Return shares less what was observed."""
        p = np.exp(u - u.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True) + self.lower

    def value(self, u: Ball) -> Ball:
        """Return the losses: neither part moves by more than the entries do."""
        largest, m = u.mid.max(axis=1), u.mid.shape[1]
        spread = np.log(np.exp(u.mid - largest[:, None]).sum(axis=1))
        value = spread + (largest + (u.mid * self.lower).sum(axis=1))
        size = 1.0 + np.abs(u.mid).max(axis=1)
        return Ball(value, up(2.0 * u.rad.max(axis=1) + (2 * m + 32) * UNIT * 4.0 * size))

    def _missing(self, a: Any) -> tuple[Any, Any]:
        """Return by how much the shares miss the sum one, which the largest one takes up."""
        m = a.shape[1]
        missing = np.abs(a.sum(axis=1)) + 2 * m * UNIT * np.abs(a).sum(axis=1)
        more = np.zeros(a.shape)
        more[np.arange(len(a)), (a - self.lower).argmax(axis=1)] = 2.0 * missing
        return missing, more

    def point(self, values: Any, exact: bool) -> tuple[Number, Any]:
        """Return a dual point in the plane near the one that is stored."""
        a = np.zeros(self.lower.shape) if values is None else values
        return Ball(a, up(self._missing(a)[1])), None

    def conjugate(self, a: Ball) -> Any:
        """Return ``sum s log s`` for shares ``s = a + e_y``."""
        (missing, more), s, m = self._missing(a.mid), a.mid - self.lower, a.mid.shape[1]
        reach = a.rad + 2.0 * UNIT + more
        ends = (np.clip(s - reach, 0.0, 1.0), np.clip(s + reach, 0.0, 1.0))
        value = np.maximum(-entr(ends[0]), -entr(ends[1])).sum(axis=1)
        inside = np.all(s >= 0.0, axis=1) & (missing <= 1e-12 * m)
        value = value + (2 * m + 32) * UNIT * (1.0 + np.abs(value))
        exact = np.all((a.mid == 0.0) & (a.rad == 0.0), axis=1)
        return np.where(inside, np.where(exact, 0.0, value), np.inf)


def loss_of(name: str, parameters: dict[str, Any], y: Any, shape: Any) -> Loss:
    """Return the loss with that name for targets ``y`` and predictions of a shape."""
    if name not in FORMULAS:
        raise NotImplementedError(f"the loss {name!r} is not one of those that this checker knows")
    _require(np.all(np.isfinite(y)), "the target holds NaN or infinite entries")
    if name == "multinomial_loss":
        _require(y.shape == shape[:1], f"the target has shape {y.shape}, the predictions {shape}")
        _require(parameters.get("classes") in (None, shape[-1]), "the number of classes is wrong")
        return Multinomial(name, -1.0 * (np.arange(shape[1]) == y[:, None]), np.inf)
    _, keys, made = (_FAMILY | _CURVED)[name]
    values: list[Any] = [parameters.get(key) for key in keys]
    for key, value in zip(keys, values, strict=True):
        least, most = _ENDS.get(key, (1e-300, np.inf))
        number_ = isinstance(value, (int, float)) and not isinstance(value, bool)
        _require(number_ and least <= value < most, f"the parameter {key} of the loss is {value!r}")
    _require(y.shape == shape, f"the target has shape {y.shape}, and the predictions {shape}")
    fit = np.abs(y) == 1.0 if name in _SIGNS else y >= 0.0 if name in _COUNTS else y > 0.0
    any_ = name not in _SIGNS + _COUNTS + _AMOUNTS
    _require(any_ or np.all(fit), "the target holds what this loss does not allow")
    lower, upper, *rest = made(y, *values)
    every = np.ones(y.shape)
    kind: Callable[..., Loss] = Piecewise if name in _FAMILY else Curved
    return kind(name, lower * every, upper * every, rest[0] * every, *rest[1:])


def _require(holds: Any, words: str) -> None:
    if not holds:
        raise Refuted(words + ".")
