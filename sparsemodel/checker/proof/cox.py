"""The Cox loss, whose observations share sums over risk sets, bounded by its tangent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from sparsemodel.checker.files import Refuted
from sparsemodel.checker.proof.arithmetic import UNIT, Ball, Number, high, up
from sparsemodel.checker.proof.curves import LIBRARY
from sparsemodel.checker.proof.losses import Loss


@dataclass(eq=False)
class Cox(Loss):
    """The Cox loss: at risk are those of a stratum whose time is not below that of an event."""

    y: Any
    c: Any
    """Weights, which are in the logarithms as well."""
    efron: bool
    """Whether the events of one time are a tie, whose own hazards count less and less."""

    def _rates(self, u: Any) -> tuple[Any, Any, float]:
        """Return what every observation has of the hazards, the mean logarithms of the sums of
        hazards of its time, and a bound on the relative errors of hazards and their sums.
        """
        y, n, reach = self.y, u.size, float(np.ptp(u))
        if not reach <= 300.0:
            raise NotImplementedError("predictions more than 300 apart, whose hazards underflow")
        r = self.c * (n / np.sum(self.c)) * np.exp(u - u.max())
        event = (y[:, 1] > 0.0) & (self.c > 0.0)
        strata = y[:, 2] if y.shape[1] > 2 else np.zeros(n)
        hazards, logs = np.empty(n), np.empty(n)
        for stratum in np.unique(strata):
            rows = np.flatnonzero(strata == stratum)
            rows = rows[np.lexsort((event[rows], -y[rows, 0]))]
            found = _stratum(r[rows], self.c[rows], event[rows], y[rows, 0], self.efron)
            hazards[rows], logs[rows] = found
        return hazards, logs + u.max(), (8 * n + 64 + 4.0 * reach) * UNIT

    def slope(self, u: Any) -> Any:
        """Return the derivative over the weight."""
        hazards, _, _ = self._rates(u)
        weight = np.where(self.c > 0.0, self.c, 1.0)
        return np.where(self.c > 0.0, hazards / weight - self.y[:, 1], 0.0)

    def value(self, u: Number) -> Number:
        """Return what each event adds: neither of its two parts moves by more than ``u`` does."""
        _, logs, error = self._rates(u.mid)
        size = np.abs(logs) + 2.0 * np.abs(u.mid).max()
        rad = 2.0 * u.rad.max() + 2.0 * error + LIBRARY * size
        event = self.y[:, 1]
        return Ball(event * (logs - u.mid), up(event * rad))

    def point(self, values: Any, exact: bool) -> tuple[Ball, Any]:
        """Return the dual point that is the gradient at ``values``, and its conjugate at most.

        Without them the dual point is zero: an event's own time has all the risk.
        """
        y, z = self.y, values
        if z is None:
            some = (y[:, 1] > 0.0) & (self.c > 0.0)
            _, at = np.unique(y[:, ::2], axis=0, return_inverse=True)
            at = at.ravel()
            deaths, count = np.bincount(at, self.c * some)[at], np.bincount(at, some)[at]
            logs = np.log(np.where(some, deaths * (self.c.size / np.sum(self.c)), 1.0))
            if self.efron:  # the mean of log(1 - l/d)
                d = np.where(some, count, 1.0)
                logs = logs + gammaln(d + 1.0) / d - np.log(d)
            slack = (4 * self.c.size + 64) * UNIT * (1.0 + np.abs(logs) + 2.0 * np.log(count + 1.0))
            return Ball(np.zeros(logs.shape)), some * (slack - logs)
        hazards, _, error = self._rates(z)
        weight = np.where(self.c > 0.0, self.c, 1.0)
        rad = 2.0 * error * hazards / weight + 4.0 * UNIT * y[:, 1]
        a = Ball(self.slope(z), np.where(self.c > 0.0, up(rad), 0.0))
        return a, high(a * z - self.value(Ball(z)))


def _stratum(r: Any, c: Any, event: Any, time: Any, efron: bool) -> tuple[Any, Any]:
    """Return hazards and logarithms of one stratum, by descending time with events last."""
    new = np.append(True, time[1:] != time[:-1])
    starts, g = np.flatnonzero(new), np.cumsum(new) - 1
    count = np.add.reduceat(event.astype(np.intp), starts)
    d = count if efron else np.minimum(count, 1)
    of = np.repeat(np.arange(starts.size), d)
    share = 1.0 - (np.arange(of.size) - (np.cumsum(d) - d)[of]) / d[of]
    before = np.append(0.0, np.cumsum(r))[np.append(starts[1:], r.size) - count]
    sums = before[of] + share * np.add.reduceat(r * event, starts)[of]
    rates = np.add.reduceat(c * event, starts)[of] / d[of] / sums
    whole, own, logs = (
        np.bincount(of, v, starts.size) for v in (rates, share * rates, np.log(sums) / d[of])
    )
    later = np.append(np.cumsum(whole[::-1])[::-1], 0.0)
    return r * np.where(event, later[g + 1] + own[g], later[g]), logs[g]


def cox_of(parameters: dict[str, Any], y: Any, c: Any) -> Cox:
    """Return the loss for targets and weights."""
    ties = parameters.get("ties", "breslow")
    fits = y.ndim == 2 and y.shape[1] in (2, 3) and y.shape[:1] == c.shape and np.sum(c) > 0.0
    if not fits or ties not in ("breslow", "efron"):
        raise Refuted("the target must hold times, events and perhaps strata; ties have two ways.")
    if not np.all(np.isfinite(y)) or not np.all((y[:, 1] == 0.0) | (y[:, 1] == 1.0)):
        raise Refuted("the target must hold finite times, and 1 or 0 for events.")
    ends = np.full(c.shape, np.inf)
    return Cox("cox_loss", -ends, ends, y, c, ties == "efron")
