r"""The built-in losses: values, slopes and conjugates, from the names and parameters in a file.

Most of them are one family: with ends, centre ``t``, dead zone and curvature of the dual given,

.. math:: \ell^*(a) = a t + \epsilon |a| + \tfrac{\mu}{2} a^2 \text{ for } l \le a \le h, \qquad
          \ell(u) = \max_{l \le a \le h} a (u - t) - \epsilon |a| - \tfrac{\mu}{2} a^2 ,

where :math:`\mu` is divided by a number for each side in the expectile loss. The others are a line
and a curve of :mod:`~sparsemodel.checker.proof.curves`. All are convex, so that over an interval
the largest value is at an end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import entr, gammaln

from sparsemodel.checker.files import require
from sparsemodel.checker.proof import curves
from sparsemodel.checker.proof.arithmetic import TINY, UNIT, Ball, high, low, number, up

_TABLE = """
squared_loss | any | | 1/2 (u - y)^2
linear_term | any | | y u
huber_loss | any | delta | Huber(u - y): 1/2 r^2 up to |r| = delta, then delta |r| - delta^2/2
absolute_loss | any | | |u - y|
quantile_loss | any | tau | tau max(y - u, 0) + (1 - tau) max(u - y, 0)
epsilon_insensitive_loss | any | epsilon | max(|u - y| - epsilon, 0)
smoothed_pinball_loss | any | below above epsilon mu | max a r - epsilon |a| - mu a^2/2, \
-below <= a <= above, r = u - y
expectile_loss | any | tau | tau max(y - u, 0)^2 + (1 - tau) max(u - y, 0)^2
hinge_loss | signs | | max(0, 1 - y u)
smoothed_hinge_loss | signs | gamma | max(0, 1 - y u) with a parabola of width gamma at the kink
squared_hinge_loss | signs | | 1/2 max(0, 1 - y u)^2
logistic_loss | signs | | log(1 + exp(-y u))
negative_binomial_loss | counts | theta | (y + theta) log(1 + exp(u)/theta) - y u
poisson_loss | counts | | exp(u) - y u
poisson_identity_loss | counts | | u - y log(u), from y/1e6 on, a parabola below
poisson_sqrt_loss | counts | | u^2 - 2 y log(u), from sqrt(y)/1e6 on, a parabola below
tweedie_loss | counts | power | y exp(-(power - 1) u)/(power - 1) + exp((2 - power) u)/(2 - power)
gamma_loss | amounts | | y exp(-u) + u
gamma_inverse_loss | amounts | | y u - log(u), from 1e-9/y on, a parabola below
inverse_gaussian_loss | amounts | | y u/2 - sqrt(u), from 1e-12/y^2 on, a parabola below
multinomial_loss | classes | | log sum_j exp(u_j) - u_y
cox_loss | times | | event * (log(sum_j c_j exp(u_j) n / sum c over t_j >= t) - u), y: times t, \
events and perhaps strata, with sums of their own; of four columns start, stop t, event, stratum \
only those with start_j < t_i <= t_j are summed; ties as in the parameters
"""
_FIELDS = [[part.strip() for part in row.split("|", 3)] for row in _TABLE[1:-1].split("\n")]
_ROWS = {name: fields for name, *fields in _FIELDS}
FORMULAS = {name: formula for name, (_, _, formula) in _ROWS.items()}
_RANGES = {"epsilon": (0.0, np.inf), "tau": (1e-300, 1.0), "power": (1.0 + 1e-15, 2.0)}
"""Between which numbers parameters are, where that is not positive."""
_INF = np.inf


def _toward(y: Any) -> tuple[Any, Any]:
    return np.minimum(-y, 0.0), np.maximum(-y, 0.0)  # -1 <= a y <= 0


def _below(end: Any) -> Any:
    return np.nextafter(end, -_INF)  # an end that is none itself


_PIECES: dict[str, Callable[..., tuple[Any, ...]]] = {
    "squared_loss": lambda y: (-_INF, _INF, y, 0, 1),
    "linear_term": lambda y: (y, y, 0, 0, 0),
    "huber_loss": lambda y, delta: (-delta, delta, y, 0, 1),
    "absolute_loss": lambda y: (-1, 1, y, 0, 0),
    "quantile_loss": lambda y, tau: (-tau, 1.0 - tau, y, 0, 0),
    "epsilon_insensitive_loss": lambda y, epsilon: (-1, 1, y, epsilon, 0),
    "smoothed_pinball_loss": lambda y, below, above, eps, mu: (-below, above, y, eps, mu),
    "expectile_loss": lambda y, t: (-_INF, _INF, y, 0, 1, (2.0 * t, 2.0 * (1.0 - t))),
    "hinge_loss": lambda y: (*_toward(y), y, 0, 0),
    "smoothed_hinge_loss": lambda y, gamma: (*_toward(y), y, 0, gamma),
    "squared_hinge_loss": lambda y: (np.where(y > 0, -_INF, 0), np.where(y > 0, 0, _INF), y, 0, 1),
}
"""From targets and parameters the ends, centre, dead zone, curvature (and its sides)."""
_CURVES: dict[str, Callable[..., tuple[Any, ...]]] = {
    "logistic_loss": lambda y: (*_toward(y), 0, curves.soft(1, -y, 0)),
    "negative_binomial_loss": lambda y, t: (-y, t, -y, curves.soft(y + t, 1, np.log(t))),
    "poisson_loss": lambda y: (-y, _INF, -y, curves.exponential(1, 1)),
    "poisson_identity_loss": lambda y: (
        *(np.where(y > 0.0, -_INF, 1), np.where(y > 0.0, _below(1), 1)),
        *(1, curves.log(0.0, y, 1e-6 * y)),
    ),
    "poisson_sqrt_loss": lambda y: (-_INF, _INF, 0, curves.log(1.0, 2.0 * y, 1e-6 * np.sqrt(y))),
    "tweedie_loss": lambda y, q: (np.where(y > 0.0, -_INF, 0.0), _INF, 0, curves.tweedie(y, q)),
    "gamma_loss": lambda y: (-_INF, 1, 1, curves.exponential(y, -1)),
    "gamma_inverse_loss": lambda y: (-_INF, _below(y), y, curves.log(0.0, y / y, 1e-9 / y)),
    "inverse_gaussian_loss": lambda y: (
        *(-_INF, _below(0.5 * y), 0.5 * y, curves.root(1e-12 / (y * y))),
    ),
}
"""From targets and parameters the ends of the dual, the line, and the curve."""


@dataclass(eq=False)
class Loss:
    """A loss of given targets: its values, slopes and conjugates, an entry for each observation."""

    name: str
    lower: Any
    """The ends of the domain of the conjugate."""
    upper: Any
    smooth = True  # a gradient everywhere
    piecewise = False  # quadratic in pieces

    def slope(self, u: Any) -> Any:
        """Return the derivative in ``u`` (a subgradient at kinks), in floats."""
        raise NotImplementedError

    def slope_error(self, u: Any) -> Any:
        """Return how far the derivative may be off; 0 where that is relative to it."""
        return np.zeros(u.shape)

    def value(self, u: Ball) -> Ball:
        """Return the losses: they rise most at an end of ``u``, and fall by no more."""
        if u.exact:
            return self._value(u)
        at, ends = self._value(Ball(u.mid)), [self._value(Ball(end)) for end in (low(u), high(u))]
        most = np.maximum(high(ends[0]), high(ends[1]))
        return Ball(at.mid, up(np.maximum(at.rad, most - low(at))))

    def point(self, values: Any, exact: bool) -> tuple[Ball, Any]:
        """Return a stored dual point (zero for None), with its conjugate if it has one alone."""
        return number(np.zeros(self.lower.shape) if values is None else values, exact), None

    def conjugate(self, a: Ball) -> Any:
        """Return upper bounds on the conjugate over the ``a`` that are possible; inf outside."""
        ends = [a]
        if not a.exact:
            ends = [Ball(np.clip(end, self.lower, self.upper)) for end in (low(a), high(a))]
        found = [high(self._conjugate(end)) for end in ends]
        inside = (a.mid >= self.lower) & (a.mid <= self.upper)
        return np.where(inside, np.maximum(found[0], found[-1]), np.inf)

    def _value(self, u: Any) -> Ball:
        raise NotImplementedError

    _conjugate = _value


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
        else:
            a = np.where(r > dead, upper, np.where(r < -dead, lower, 0 * r))
        # A linear loss has the slope y also where r is zero.
        return np.minimum(np.maximum(a, lower), upper)

    def _side(self, x: Any) -> Any:
        """Return the number of its side for every entry."""
        return np.where(x > 0, *(_like(side, x) for side in self.sides[::-1]))

    def _square(self, a: Ball) -> Any:
        return a * a * self.mu / (2 * self._side(a.mid))

    def value(self, u: Ball) -> Ball:
        """Return the losses."""
        return super().value(u - self.centre)

    def _value(self, r: Ball) -> Any:
        a = Ball(self._best(r.mid))
        square = self._square(a)
        if not r.exact:  # a is rounded itself
            square = Ball(square.mid, up(square.rad + 4.0 * UNIT * square.mid))
        return a * r - abs(a) * self.dead - square

    def _conjugate(self, a: Ball) -> Any:
        return a * self.centre + abs(a) * self.dead + self._square(a)


def _like(values: Any, other: Any) -> Any:
    """Return floats as the kind of number that ``other`` holds."""
    return number(values, np.asarray(other).dtype.hasobject).mid


@dataclass(eq=False)
class Curved(Loss):
    """A line and a curve."""

    line: Any
    curve: tuple[Any, ...]

    def slope(self, u: Any) -> Any:
        """Return the derivative in ``u``."""
        return self.curve[0](u)[2] + self.line

    def _value(self, u: Ball) -> Any:
        at, _, reach = self.curve
        if np.any(np.abs(u.mid) > reach):
            raise NotImplementedError("predictions beyond 300, where this loss is linearised")
        value, size, *_ = at(u.mid)
        return Ball(value, curves.LIBRARY * size + TINY) + u * self.line

    def _conjugate(self, a: Ball) -> Ball:
        value, size = self.curve[1](a.mid - self.line)
        return Ball(value, curves.LIBRARY * size + TINY * (value != 0.0))


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
        # Shares are rounded m times beside a sum of at least one, entries a few times.
        own = (2 * m + 32) * (1.0 + spread) + 8.0 * np.abs(u.mid).max(axis=1)
        return Ball(value, up(2.0 * u.rad.max(axis=1) + UNIT * own))

    def _missing(self, a: Any) -> tuple[Any, Any]:
        """Return by how much the shares miss the sum one, which the largest one takes up."""
        m = a.shape[1]
        missing = np.abs(a.sum(axis=1)) + 2 * m * UNIT * np.abs(a).sum(axis=1)
        more = np.zeros(a.shape)
        more[np.arange(len(a)), (a - self.lower).argmax(axis=1)] = 2.0 * missing
        return missing, more

    def point(self, values: Any, exact: bool) -> tuple[Ball, Any]:
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


@dataclass(eq=False)
class Cox(Loss):
    """The Cox loss, bounded by tangents: at risk are those of a stratum whose time is not below
    that of an event; observations share sums over them."""

    y: Any
    c: Any
    """Weights, which are in the logarithms as well."""
    efron: bool
    """Whether the events of one time are a tie, whose own hazards count less and less."""

    def __post_init__(self) -> None:
        n, columns = len(self.y), self.y.T
        late = len(columns) == 4
        self.start = columns[0] if late else np.full(n, -np.inf)
        self.time, self.happened = columns[int(late)], columns[1 + late]
        self.strata = columns[2 + late] if len(columns) > 2 else np.zeros(n)
        self.event = (self.happened > 0.0) & (self.c > 0.0)
        self.weight = np.where(self.c > 0.0, self.c, 1.0)

    def _rates(self, u: Any) -> tuple[Any, Any, float]:
        """Return what every observation has of the hazards, the mean logarithms of the sums of
        hazards of its time, and a bound on the relative errors of hazards and their sums.
        """
        n, reach = u.size, float(np.ptp(u))
        if not reach <= 300.0:
            raise NotImplementedError("predictions more than 300 apart, whose hazards underflow")
        r = self.c * (n / np.sum(self.c)) * np.exp(u - u.max())
        hazards, logs = np.empty(n), np.empty(n)
        for stratum in np.unique(self.strata):
            rows = np.flatnonzero(self.strata == stratum)
            rows = rows[np.lexsort((self.event[rows], -self.time[rows]))]
            late = self.y.shape[1] == 4
            hazards[rows], logs[rows] = (self._late if late else self._stratum)(r[rows], rows)
        return hazards, logs + u.max(), (8 * n + 64 + 4.0 * reach) * UNIT

    def _stratum(self, r: Any, rows: Any) -> tuple[Any, Any]:
        """Return hazards and logarithms of one stratum, by descending time with events last."""
        c, event, time = self.c[rows], self.event[rows], self.time[rows]
        new = np.append(True, time[1:] != time[:-1])
        starts, g = np.flatnonzero(new), np.cumsum(new) - 1
        count = np.add.reduceat(event.astype(np.intp), starts)
        d = count if self.efron else np.minimum(count, 1)
        of = np.repeat(np.arange(starts.size), d)
        share = 1.0 - (np.arange(of.size) - (np.cumsum(d) - d)[of]) / d[of]
        before = np.append(0.0, np.cumsum(r))[np.append(starts[1:], r.size) - count]
        sums = before[of] + share * np.add.reduceat(r * event, starts)[of]
        rates = np.add.reduceat(c * event, starts)[of] / d[of] / sums
        parts = (rates, share * rates, np.log(sums) / d[of])
        whole, own, logs = (np.bincount(of, v, starts.size) for v in parts)
        later = np.append(np.cumsum(whole[::-1])[::-1], 0.0)
        return r * np.where(event, later[g + 1] + own[g], later[g]), logs[g]

    def _late(self, r: Any, rows: Any) -> tuple[Any, Any]:
        """Return the same where observations enter late: the definition, one time after another."""
        c, event, time, start = (v[rows] for v in (self.c, self.event, self.time, self.start))
        hazards, logs = np.zeros(rows.size), np.zeros(rows.size)
        for t in np.unique(time[event]):
            here, tied = (start < t) & (t <= time), event & (time == t)
            d = int(tied.sum()) if self.efron else 1
            for gone in np.arange(d) / d:
                counted = np.where(here, r * np.where(tied, 1.0 - gone, 1.0), 0.0)
                total = counted.sum()
                hazards += counted / total * (c[tied].sum() / d)
                logs[tied] += np.log(total) / d
        return hazards, logs

    def slope(self, u: Any) -> Any:
        """Return the derivative over the weight."""
        return np.where(self.c > 0.0, self._rates(u)[0] / self.weight - self.happened, 0.0)

    def slope_error(self, u: Any) -> Any:
        """Return the errors of hazards, which may cancel with the events."""
        hazards, _, error = self._rates(u)
        rad = 2.0 * error * hazards / self.weight + 4.0 * UNIT * self.happened
        return np.where(self.c > 0.0, up(rad), 0.0)

    def value(self, u: Ball) -> Ball:
        """Return what each event adds: neither of its two parts moves by more than ``u`` does."""
        _, logs, error = self._rates(u.mid)
        size = np.abs(logs) + 2.0 * np.abs(u.mid).max()
        rad = 2.0 * u.rad.max() + 2.0 * error + curves.LIBRARY * size
        return Ball(self.happened * (logs - u.mid), up(self.happened * rad))

    def point(self, values: Any, exact: bool) -> tuple[Ball, Any]:
        """Return the dual point that is the gradient at ``values``, and its conjugate at most.

        Without them the dual point is zero: an event's own time has all the risk.
        """
        if values is not None:
            a = Ball(self.slope(values), self.slope_error(values))
            return a, high(a * values - self.value(Ball(values)))
        some, n = self.event, self.c.size
        both = np.column_stack([self.time, self.strata])
        at = np.unique(both, axis=0, return_inverse=True)[1].ravel()
        deaths, count = np.bincount(at, self.c * some)[at], np.bincount(at, some)[at]
        logs = np.log(np.where(some, deaths * (n / np.sum(self.c)), 1.0))
        if self.efron:  # the mean of log(1 - l/d)
            d = np.where(some, count, 1.0)
            logs = logs + gammaln(d + 1.0) / d - np.log(d)
        slack = (4 * n + 64) * UNIT * (1.0 + np.abs(logs) + 2.0 * np.log(count + 1.0))
        alone = np.all(self.c == self.c[0]) & (count == 1)  # of a share that is one, whatever it is
        return Ball(np.zeros(n)), some * np.where(alone, 0.0, slack - logs)


def cox_of(parameters: dict[str, Any], y: Any, c: Any) -> Cox:
    """Return the Cox loss for targets and weights."""
    ties = parameters.get("ties", "breslow")
    fits = y.ndim == 2 and y.shape[1] in (2, 3, 4) and y.shape[:1] == c.shape and np.sum(c) > 0.0
    fits = fits and ties in ("breslow", "efron")
    require(fits, "the target must hold times, events and perhaps strata; ties have two ways")
    late = y.shape[1] == 4
    events = y[:, 1 + late]
    fits = np.all(np.isfinite(y)) and np.all((events == 0.0) | (events == 1.0))
    require(fits, "the target must hold finite times, and 1 or 0 for events")
    require(not late or np.all(y[:, 0] < y[:, 1]), "observations must start before they stop")
    ends = np.full(c.shape, np.inf)
    return Cox("cox_loss", -ends, ends, y, c, ties == "efron")


@dataclass(frozen=True, eq=False)
class Term:
    """One data set with its loss; ``matrix`` in floats, ``A``, ``c`` and ``o`` as numbers."""

    matrix: Any
    A: Ball
    c: Ball
    o: Ball
    loss: Loss
    y: Any

    def weighted(self, values: Ball) -> Ball:
        """Return ``c`` times values, which are one or several for each observation."""
        return (self.c if len(values.shape) == 1 else self.c[:, None]) * values


def loss_of(name: str, parameters: dict[str, Any], y: Any, shape: Any) -> Loss:
    """Return the loss with that name for targets ``y`` and predictions of a shape."""
    if name not in FORMULAS or name == "cox_loss":
        raise NotImplementedError(f"the loss {name!r} is not one of those that this checker knows")
    require(np.all(np.isfinite(y)), "the target holds NaN or infinite entries")
    words = f"the target has shape {y.shape}, and the predictions {shape}"
    if name == "multinomial_loss":
        require(y.shape == shape[:1], words)
        require(parameters.get("classes") in (None, shape[-1]), "the number of classes is wrong")
        return Multinomial(name, -1.0 * (np.arange(shape[1]) == y[:, None]), np.inf)
    require(y.shape == shape, words)
    kind, keys, _ = _ROWS[name]
    values: list[Any] = [parameters.get(key) for key in keys.split()]
    for key, value in zip(keys.split(), values, strict=True):
        least, most = _RANGES.get(key, (1e-300, np.inf))
        fits = isinstance(value, (int, float)) and not isinstance(value, bool)
        require(fits and least <= value < most, f"the parameter {key} of the loss is {value!r}")
    fit = {"signs": np.abs(y) == 1.0, "counts": y >= 0.0, "amounts": y > 0.0, "any": True}[kind]
    require(np.all(fit), "the target holds what this loss does not allow")
    lower, upper, *rest = (_PIECES | _CURVES)[name](y, *values)
    made, every = Piecewise if name in _PIECES else Curved, np.ones(y.shape)
    return made(name, lower * every, upper * every, rest[0] * every, *rest[1:])
