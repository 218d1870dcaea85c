r"""The Cox partial likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from sparsemodel.interfaces import (
    CvxModelled,
    DataError,
    DataFit,
    FloatArray,
    IntArray,
    Likelihood,
    TargetKind,
    TwiceDifferentiable,
)
from sparsemodel.losses.parts.targets import first_bad

_SAFE_RANGE = 500.0
"""Range of log hazards within which sums of hazards and their inverses stay in floating point."""


@final
@dataclass(frozen=True, slots=True)
class CoxLoss(TwiceDifferentiable, Likelihood, CvxModelled, DataFit):
    r"""Negative log partial likelihood of the Cox model, ties after Breslow,

    .. math:: F(u; y, c) = \sum_{i : \delta_i = 1} c_i \Big( \log \sum_{j : t_j \ge t_i}
              \hat c_j e^{u_j} - u_i \Big), \qquad \hat c = n c / \textstyle\sum_j c_j .

    The target has two columns, the time :math:`t \ge 0` of the event or of the censoring, and
    :math:`\delta`, 1 for an event and 0 for censoring: ``np.column_stack([time, event])``.

    Equal weights give the textbook formula times the weight (the sum, or the mean over all
    observations). The weights inside the logarithm are scaled to mean one, so that ``F`` is
    proportional to ``c``; a weight of 2 acts as two equal observations, up to a constant.

    * Observations are coupled: there is no conjugate of single losses. Bounds are tangents at
      predictions ``z``: with the softmax of ``z`` over the risk set of an event as :math:`\alpha`,
      :math:`\log \sum_j e^{u_j} \ge \alpha^T u - \sum_j \alpha_j \log \alpha_j`. Adding a constant
      to ``u`` changes nothing.
    * Convex, with a Hessian of at most half the sum of the events' weights in the place of a
      useful global constant: ``curvature(y)`` is ``(0, inf)``.
    * Infimum: the sum over the distinct event times of :math:`d \log \hat d`, where ``d`` and
      :math:`\hat d` are the events' summed weights before and after scaling; approached when
      each time's events have all the risk.
    * Value and gradient cost O(n log n) (a sort by time), a Hessian product O(n log n) and O(n)
      for every further direction.

    References
    ----------
    Cox, *Regression models and life-tables*, JRSS B 34 (1972); Breslow, *Covariance analysis of
    censored survival data*, Biometrics 30 (1974).

    Examples
    --------
    >>> import numpy as np
    >>> target = np.array([[1.0, 1.0], [2.0, 0.0], [3.0, 1.0]])
    >>> round(CoxLoss().total(np.zeros(3), target, np.ones(3)), 6)  # log 3 + log 1
    1.098612
    """

    name: ClassVar[str] = "cox_loss"
    strictly_convex: ClassVar[bool] = True
    target_kind: ClassVar[TargetKind] = TargetKind.TIMES

    def total(self, u: FloatArray, y: FloatArray, c: FloatArray) -> float:
        risk = _RiskSets.of(y, c)
        _, log_sums, shift = risk.log_hazards(u)
        # Events and risk sets are paired before summing: large u would cancel otherwise.
        losses = log_sums[risk.group] - (u[risk.order] - shift)
        return float(np.dot(risk.event_weights, losses))

    def gradient(self, u: FloatArray, y: FloatArray, c: FloatArray) -> FloatArray:
        risk = _RiskSets.of(y, c)
        log_r, log_sums, _ = risk.log_hazards(u)
        log_rates = _log_tail_sums(risk.log_deaths - log_sums)
        return risk.unsorted(np.exp(log_r + log_rates[risk.group]) - risk.event_weights)

    def hessian_product(
        self, u: FloatArray, y: FloatArray, c: FloatArray, v: FloatArray
    ) -> FloatArray:
        # H v = r * (A v - B), where A_j sums d_k / S_k and B_j sums d_k m_k / S_k over the event
        # times k up to t_j, S_k is the sum of r over the risk set and m_k the mean of v in it.
        risk = _RiskSets.of(y, c)
        log_r, log_sums, _ = risk.log_hazards(u)
        columns = v[risk.order].reshape(u.size, -1)
        if log_r.min() >= -_SAFE_RANGE:
            r = np.exp(log_r)[:, None]
            inverse = np.exp(-log_sums)[:, None]
            rates = risk.deaths[:, None] * inverse
            means = np.cumsum(r * columns, axis=0)[risk.ends] * inverse
            product = r * (
                _tail_sums(rates)[risk.group] * columns - _tail_sums(rates * means)[risk.group]
            )
        else:
            # The same with logarithms. H annihilates constants, so that v may be made positive.
            columns = columns - columns.min(axis=0)
            log_r, log_rates = log_r[:, None], (risk.log_deaths - log_sums)[:, None]
            with np.errstate(divide="ignore"):
                log_v = np.log(columns)
            log_means = np.logaddexp.accumulate(log_r + log_v, axis=0)[risk.ends]
            log_means -= log_sums[:, None]
            product = np.exp(log_r + _log_tail_sums(log_rates)[risk.group]) * columns
            product -= np.exp(log_r + _log_tail_sums(log_rates + log_means)[risk.group])
        return risk.unsorted(product).reshape(v.shape)

    def magnitudes(self, u: FloatArray, y: FloatArray, c: FloatArray) -> tuple[float, FloatArray]:
        # Logarithms of sums over risk sets go through up to n steps, each rounded in units of the
        # logarithms; slopes are differences of what such logarithms are exponentiated to.
        value, gradient = self.total(u, y, c), self.gradient(u, y, c)
        events, logs = c * y[:, 1], np.abs(np.log(c[c > 0.0]))
        reach = float(np.ptp(u)) if u.size else 0.0
        reach += 4.0 * float(logs.max(initial=0.0)) + 2.0 * np.log(u.size + 1.0)
        steps = (1.0 + 0.25 * u.size) * (1.0 + reach)
        largest = 2.0 * float(np.abs(u).max(initial=0.0))
        return abs(value) + float(events.sum()) * (steps + largest), events + steps * (
            gradient + events
        )

    def infimum(self, y: FloatArray, c: FloatArray) -> float:
        deaths = _RiskSets.of(y, c).deaths
        deaths = deaths[deaths > 0.0]
        return float(np.dot(deaths, np.log(deaths * (c.size / c.sum()))))

    def check_target(self, y: FloatArray, where: str) -> FloatArray:
        if y.ndim != 2 or y.shape[1] != 2:
            raise DataError(
                f"{where}: {self.name} needs two columns, time and event "
                f"(np.column_stack([time, event])), got an array of shape {y.shape}."
            )
        time, event = y[:, 0], y[:, 1]
        bad = (event != 0.0) & (event != 1.0)
        if np.any(bad):
            swapped = bool(np.all((time == 0.0) | (time == 1.0)))
            hint = "; the columns seem to be swapped" if swapped else ""
            raise DataError(
                f"{where}: {self.name} needs 1 (event) or 0 (censored) in the second column, "
                f"found {first_bad(bad, event)}{hint}."
            )
        if np.any(time < 0.0):
            raise DataError(
                f"{where}: {self.name} needs times >= 0 in the first column, "
                f"found {first_bad(time < 0.0, time)}."
            )
        if not np.any(event):
            raise DataError(
                f"{where}: {self.name} needs at least one event, but all observations are "
                "censored (the second column is 0 everywhere)."
            )
        return y

    def sample_size(self, y: FloatArray, c: FloatArray) -> float:
        """Return the number of events, which is what penalties count (Volinsky and Raftery,
        Biometrics 2000)."""
        return float(c @ y[:, 1])

    def cvxpy_value(self, cp: Any, u: Any, y: FloatArray) -> Any:
        """Return the losses of the single observations for equal weights of one.

        One ``log_sum_exp`` over the risk set for each event time, O(n) of them in all.
        """
        risk = _RiskSets.of(y, np.ones(y.shape[0]))
        logs, chosen = _cvxpy_logs(cp, u, risk)
        return chosen @ logs - cp.multiply(y[:, 1], u)

    def cvxpy_total(self, cp: Any, u: Any, y: FloatArray, c: FloatArray) -> Any:
        risk = _RiskSets.of(y, c)
        logs, _ = _cvxpy_logs(cp, u, risk)
        return risk.deaths[risk.deaths > 0.0] @ logs - (c * y[:, 1]) @ u


@final
@dataclass(frozen=True, slots=True, eq=False)
class _RiskSets:
    """Observations by descending time: a risk set is everything up to the end of a tie."""

    order: IntArray
    """Indices that sort the observations by descending time."""
    group: IntArray
    """Which distinct time an observation (in that order) has."""
    ends: IntArray
    """Last position of each distinct time."""
    event_weights: FloatArray
    """``c_i delta_i``, in order."""
    deaths: FloatArray
    """Their sum for each distinct time."""
    log_weights: FloatArray
    """Logarithm of the scaled weights, in order."""

    @classmethod
    def of(cls, y: FloatArray, c: FloatArray) -> _RiskSets:
        order = np.argsort(-y[:, 0])
        time, weights = y[order, 0], c[order]
        new = np.empty(time.size, dtype=bool)
        new[:1] = True
        np.not_equal(time[1:], time[:-1], out=new[1:])
        starts = np.flatnonzero(new)
        event_weights = weights * y[order, 1]
        with np.errstate(divide="ignore"):  # an observation of weight zero is not there
            log_weights = np.log(weights * (c.size / c.sum()))
        return cls(
            order=order,
            group=np.cumsum(new) - 1,
            ends=np.append(starts[1:], time.size) - 1,
            event_weights=event_weights,
            deaths=np.add.reduceat(event_weights, starts),
            log_weights=log_weights,
        )

    @property
    def log_deaths(self) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.log(self.deaths)

    def log_hazards(self, u: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """Return ``log r``, the logarithms of its sums over the risk sets, and the shift of u.

        ``r`` is the weighted hazard of each observation, scaled to a largest value of one.
        """
        log_r = u[self.order] + self.log_weights
        shift = float(log_r.max())
        log_r -= shift
        log_sums = np.logaddexp.accumulate(log_r)[self.ends]
        log_sums[np.isneginf(log_sums)] = 0.0  # nobody of positive weight there, and no deaths
        return log_r, log_sums, shift

    def unsorted(self, values: FloatArray) -> FloatArray:
        """Return values given in order of time in the order of the data."""
        result = np.empty_like(values)
        result[self.order] = values
        return result


def _tail_sums(values: FloatArray) -> FloatArray:
    return np.cumsum(values[::-1], axis=0)[::-1]


def _log_tail_sums(logs: FloatArray) -> FloatArray:
    sums: FloatArray = np.logaddexp.accumulate(logs[::-1], axis=0)[::-1]
    return sums


def _cvxpy_logs(cp: Any, u: Any, risk: _RiskSets) -> tuple[Any, FloatArray]:
    """Return the logarithms of the sums of hazards at the event times, and who belongs where."""
    times = np.flatnonzero(risk.deaths > 0.0)
    logs = cp.hstack(
        [
            cp.log_sum_exp(u[risk.order[: end + 1]] + risk.log_weights[: end + 1])
            for end in risk.ends[times]
        ]
    )
    chosen = risk.unsorted(
        (risk.group[:, None] == times[None, :]) * (risk.event_weights > 0.0)[:, None].astype(float)
    )
    return logs, chosen


__all__ = ["CoxLoss"]
