"""The Cox loss, whose observations share sums over risk sets, bounded by its tangent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsemodel.checker.arithmetic import UNIT, Ball, Number, high, up
from sparsemodel.checker.losses.separate import LIBRARY, LOSSES, Family, family_of

FORMULAS = {name: formula for name, (formula, *_) in LOSSES.items()} | {
    "cox_loss": (
        "event * (log(sum_j c_j exp(u_j) n / sum c over t_j >= t) - u), y: times t and events"
    )
}
"""Those of all losses, in words."""


@dataclass(frozen=True, eq=False)
class Coupled(Family):
    """The Cox loss: risk sets are the observations whose time is not below that of an event."""

    c: Any = None
    """Weights, which are in the logarithms as well."""

    def _rates(self, u: Any, y: Any) -> tuple[Any, Any, float]:
        """Return what every observation has of the hazards, the logarithms of the sums of hazards
        over the risk sets, and a bound on the relative errors of hazards and their sums.
        """
        n, reach = u.size, float(np.ptp(u))
        if not reach <= 300.0:
            raise NotImplementedError("predictions more than 300 apart, whose hazards underflow")
        order = np.argsort(-y[:, 0], kind="stable")
        time, events = -y[order, 0], (self.c * y[:, 1])[order]
        r = (self.c * (n / np.sum(self.c)))[order] * np.exp(u[order] - u.max())
        sums = np.cumsum(r)[np.searchsorted(time, time, side="right") - 1]
        known = np.where(sums > 0.0, sums, 1.0)  # else nobody of positive weight is there
        tails = np.cumsum((events / known)[::-1])[::-1]
        hazards, logs = np.empty(n), np.empty(n)
        hazards[order] = r * tails[np.searchsorted(time, time, side="left")]
        logs[order] = np.log(known) + u.max()
        return hazards, logs, (8 * n + 64 + 4.0 * reach) * UNIT

    def slope(self, u: Any, y: Any) -> Any:
        """Return the derivative over the weight."""
        hazards, _, _ = self._rates(u, y)
        weight = np.where(self.c > 0.0, self.c, 1.0)
        return np.where(self.c > 0.0, hazards / weight - y[:, 1], 0.0)

    def value(self, u: Number, y: Any) -> Number:
        """Return what each event adds: neither of its two parts moves by more than ``u`` does."""
        _, logs, error = self._rates(u.mid, y)
        size = np.abs(logs) + 2.0 * np.abs(u.mid).max()
        rad = 2.0 * u.rad.max() + 2.0 * error + LIBRARY * size
        return Ball(y[:, 1] * (logs - u.mid), up(y[:, 1] * rad))

    def tangent(self, z: Any, y: Any) -> tuple[Ball, Any]:
        """Return the dual point that is the gradient at ``z``, and what its conjugate is at most.

        Without ``z`` the dual point is zero: an event's own time has all the risk.
        """
        if z is None:
            times, at = np.unique(y[:, 0], return_inverse=True)
            deaths = np.bincount(at.ravel(), self.c * y[:, 1], times.size)[at.ravel()]
            some = (y[:, 1] > 0.0) & (self.c > 0.0)
            logs = np.log(np.where(some, deaths * (self.c.size / np.sum(self.c)), 1.0))
            slack = (4 * self.c.size + 64) * UNIT * (1.0 + np.abs(logs))
            return Ball(np.zeros(logs.shape)), some * (slack - logs)
        hazards, _, error = self._rates(z, y)
        weight = np.where(self.c > 0.0, self.c, 1.0)
        rad = 2.0 * error * hazards / weight + 4.0 * UNIT * y[:, 1]
        a = Ball(self.slope(z, y), np.where(self.c > 0.0, up(rad), 0.0))
        return a, high(a * z - self.value(Ball(z), y))


def loss_of(name: str, parameters: dict[str, Any], y: Any, c: Any = None) -> Family | str:
    """Return the loss with that name for the targets ``y``, or what is wrong with them.

    ``c`` are the weights, which the Cox loss has in its logarithms.
    """
    return _coupled(parameters, y, c) if name == "cox_loss" else family_of(name, parameters, y)


def _coupled(parameters: dict[str, Any], y: Any, c: Any) -> Coupled | str:
    if y.ndim != 2 or y.shape[1] != 2 or any(v != "breslow" for v in parameters.values()):
        raise NotImplementedError("a Cox loss with other than times, events and Breslow's ties")
    if not np.all(np.isfinite(y)) or not np.all((y[:, 1] == 0.0) | (y[:, 1] == 1.0)):
        return "the target must hold finite times, and 1 or 0 for events"
    if c is None or c.shape != (y.shape[0],) or not np.sum(c) > 0.0:
        return "the weights do not fit the target"
    none = np.zeros(c.shape)
    return Coupled("cox_loss", none - np.inf, none + np.inf, none, 0.0, 1.0, c=c)


__all__ = ["FORMULAS", "Coupled", "loss_of"]
