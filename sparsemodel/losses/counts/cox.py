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
    Likelihood,
    TargetKind,
    TwiceDifferentiable,
)
from sparsemodel.interfaces.numeric import described, is_one_of
from sparsemodel.losses.counts.risk_sets import (
    LOGS,
    PLAIN,
    RiskSets,
    in_columns,
    risk_sets,
    survival,
)
from sparsemodel.losses.parts import first_bad

_SAFE_RANGE = 500.0
"""Range of log hazards within which sums of hazards and their inverses stay in floating point."""


@final
@dataclass(frozen=True, slots=True)
class CoxLoss(TwiceDifferentiable, Likelihood, CvxModelled, DataFit):
    r"""The negative log partial likelihood of the Cox model, with ties after Breslow,

    .. math:: F(u; y, c) = \sum_{i : \delta_i = 1} c_i \Big( \log \sum_{j : t_j \ge t_i}
              \hat c_j e^{u_j} - u_i \Big), \qquad \hat c = n c / \textstyle\sum_j c_j ,

    or after Efron, with the ``d`` events ``D`` of each time :math:`t` and their mean weight
    :math:`\bar c` in the place of the logarithms,

    .. math:: \bar c \sum_{l = 0}^{d - 1} \log \Big( \sum_{j : t_j \ge t} \hat c_j e^{u_j}
              - \frac{l}{d} \sum_{j \in D} \hat c_j e^{u_j} \Big) .

    The target has two columns, the time :math:`t \ge 0` of the event or of the censoring, and
    :math:`\delta`, 1 for an event and 0 for censoring: ``np.column_stack([time, event])``. An
    optional third column has numbers of strata (hospitals, for example): every stratum has its own
    baseline hazard, and only its own observations are at risk together. An intercept changes
    nothing and must be left out.

    For delayed entry (left truncation) and covariates that change with time the columns are
    ``np.column_stack([start, stop, event])``, optionally with strata as a fourth: in the place of
    :math:`t_j \ge t` those are at risk of whom :math:`s_j < t \le t_j`, as in ``Surv(start, stop,
    event)`` of R. Three columns are read so if the third holds 0 and 1 alone and the second does
    not.

    Equal weights give the textbook formula times the weight: the sum, or the mean over all
    observations, censored ones included. The weights inside the logarithm are scaled to mean one,
    so that ``F`` is proportional to ``c``. After Breslow a weight of 2 acts as two equal
    observations, up to a constant; after Efron these would be a tie.

    * Observations are coupled: there is no conjugate of single losses. Bounds are tangents at
      predictions ``z``: with the softmax of ``z`` over the risk set of an event as :math:`\alpha`,
      :math:`\log \sum_j e^{u_j} \ge \alpha^T u - \sum_j \alpha_j \log \alpha_j`. Adding a constant
      to ``u`` changes nothing.
    * Convex, with a Hessian of at most half the sum of the events' weights in the place of a
      useful global constant: ``curvature(y)`` is ``(0, inf)``.
    * Infimum: the sum over the distinct event times of :math:`s \log \hat s`, where ``s`` and
      :math:`\hat s` are the events' summed weights before and after scaling, after Efron with
      :math:`\bar c \log(d! / d^d)` added; approached when each time's events have all the risk.
    * Value and gradient cost O(n log n) (a sort by time), a Hessian product O(n log n) and O(n)
      for every further direction, with delayed entry O(n log n).

    Parameters
    ----------
    ties
        How events at the same time are treated: ``"breslow"``, or ``"efron"``, which is closer to
        the exact likelihood if there are many ties.

    References
    ----------
    Cox, *Regression models and life-tables*, JRSS B 34 (1972); Breslow, *Covariance analysis of
    censored survival data*, Biometrics 30 (1974); Efron, *The efficiency of Cox's likelihood
    function for censored data*, JASA 72 (1977), with the weights of Therneau and Grambsch,
    *Modeling Survival Data* (2000), section 3.3; with delayed entry Andersen and Gill, *Cox's
    regression model for counting processes*, Annals of Statistics 10 (1982).

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w = sm.Variable(3, name="w")
    >>> loss = sm.cox_loss(np.eye(3) @ w, [[5.0, 1], [3.0, 0], [1.0, 1]])
    >>> problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 1)
    >>> problem.solve().support.tolist()
    [2]
    >>> target = np.array([[1.0, 1.0], [2.0, 0.0], [3.0, 1.0]])
    >>> round(loss.loss.total(np.zeros(3), target, np.ones(3)), 6)  # log 3 + log 1
    1.098612
    """

    name: ClassVar[str] = "cox_loss"
    strictly_convex: ClassVar[bool] = True
    target_kind: ClassVar[TargetKind] = TargetKind.TIMES
    ties: str = "breslow"

    def __post_init__(self) -> None:
        if not is_one_of(self.ties, ("breslow", "efron")):
            got = described(self.ties)
            raise DataError(f'{self.name}: ties must be "breslow" or "efron", not {got}.')

    def total(self, u: FloatArray, y: FloatArray, c: FloatArray) -> float:
        risk = self._risk(y, c)
        log_r, shift = risk.log_hazards(u)
        logs = risk.by_event(risk.sums(LOGS, log_r)[:, 0])
        # Events and risk sets are paired before summing: large u would cancel otherwise.
        losses = logs - (u[risk.order[risk.events]] - shift)
        return float(np.dot(risk.event_weights[risk.events], losses))

    def gradient(self, u: FloatArray, y: FloatArray, c: FloatArray) -> FloatArray:
        risk = self._risk(y, c)
        log_r, _ = risk.log_hazards(u)
        log_rates = np.log(risk.mass)[:, None] - risk.sums(LOGS, log_r)
        shares = np.exp(log_r + risk.tails(LOGS, log_rates))[:, 0]
        return risk.unsorted(shares - risk.event_weights)

    def hessian_product(
        self, u: FloatArray, y: FloatArray, c: FloatArray, v: FloatArray
    ) -> FloatArray:
        # H v = r * (A v - B), where A_j sums d_k / S_k and B_j sums d_k m_k / S_k over the parts k
        # that j is in, S_k is the sum of r in the part, d_k its weight and m_k the mean of v.
        risk = self._risk(y, c)
        log_r, _ = risk.log_hazards(u)
        columns = v[risk.order].reshape(u.size, -1)
        ops, r, moved = PLAIN, np.exp(log_r), columns
        if log_r.min() < -_SAFE_RANGE:
            # H annihilates constants, so that v may be made positive.
            columns = columns - columns.min(axis=0)
            ops, r = LOGS, log_r
            with np.errstate(divide="ignore"):
                moved = np.log(columns)
        sums = risk.sums(ops, r)
        rates = ops.over(ops.of(risk.mass)[:, None], sums)
        means = ops.over(risk.sums(ops, ops.times(r, moved)), sums)
        one = ops.undo(ops.times(r, risk.tails(ops, rates)))
        two = ops.undo(ops.times(r, risk.tails(ops, ops.times(rates, means))))
        return risk.unsorted(one * columns - two).reshape(v.shape)

    def magnitudes(self, u: FloatArray, y: FloatArray, c: FloatArray) -> tuple[float, FloatArray]:
        # Logarithms of sums over risk sets go through up to n steps, each rounded in units of the
        # logarithms; slopes are differences of what such logarithms are exponentiated to.
        value, gradient = self.total(u, y, c), self.gradient(u, y, c)
        events, logs = c * survival(y).event, np.abs(np.log(c[c > 0.0]))
        reach = float(np.ptp(u)) if u.size else 0.0
        reach += 4.0 * float(logs.max(initial=0.0)) + 2.0 * np.log(u.size + 1.0)
        steps = (1.0 + 0.25 * u.size) * (1.0 + reach)
        largest = 2.0 * float(np.abs(u).max(initial=0.0))
        return abs(value) + float(events.sum()) * (steps + largest), events + steps * (
            gradient + events
        )

    def infimum(self, y: FloatArray, c: FloatArray) -> float:
        risk = self._risk(y, c)
        deaths = np.bincount(risk.of_part, risk.mass, risk.busy.size)
        scaled = np.log(deaths * (c.size / c.sum()))
        return float(np.dot(deaths, scaled) + np.dot(risk.mass, np.log(risk.share)))

    def check_target(self, y: FloatArray, where: str) -> FloatArray:
        if y.ndim != 2 or y.shape[1] not in (2, 3, 4):
            raise DataError(
                f"{where}: {self.name} needs two columns, time and event "
                "(np.column_stack([time, event])), and optionally a third with strata; or for "
                "delayed entry start, stop and event, and optionally strata; "
                f"got an array of shape {y.shape}."
            )
        y = in_columns(y)
        time, _, _, entry = survival(y)
        column, event = (1, y[:, 1]) if entry is None else (2, y[:, 2])
        bad = (event != 0.0) & (event != 1.0)
        if np.any(bad):
            swapped = y.shape[1] < 4 and bool(np.all((time == 0.0) | (time == 1.0)))
            hint = "; the columns seem to be swapped" if swapped else ""
            raise DataError(
                f"{where}: {self.name} needs 1 (event) or 0 (censored) in the "
                f"{('second', 'third')[column - 1]} column of "
                f"{('time, event and strata', 'start, stop, event and strata')[column - 1]}, "
                f"found {first_bad(bad, event)}{hint}."
            )
        if np.any(time < 0.0):
            raise DataError(
                f"{where}: {self.name} needs times >= 0 in the "
                f"{('first', 'second')[column - 1]} column, found {first_bad(time < 0.0, time)}."
            )
        if entry is not None and np.any(entry >= time):
            row = int(np.flatnonzero(entry >= time)[0])
            raise DataError(
                f"{where}: {self.name} takes three columns of which the last is 0 or 1 as start, "
                f"stop and event, at risk when start < t <= stop, but row {row} starts at "
                f"{entry[row]:g} and stops at {time[row]:g}. Drop rows without time at risk, or "
                "give the columns in this order."
            )
        if not np.any(event):
            raise DataError(
                f"{where}: {self.name} needs at least one event, but all observations are "
                f"censored (the {('second', 'third')[column - 1]} column is 0 everywhere)."
            )
        return y

    def constant_of(self, y: FloatArray, c: FloatArray) -> float:
        # Risk sets count c by its mean; a weight of two is two observations in them.
        return float(c @ survival(y).event) * float(np.log(np.mean(c)))

    def sample_size(self, y: FloatArray, copies: FloatArray) -> float:
        """Return the number of events, which is what penalties count (Volinsky and Raftery,
        Biometrics 2000)."""
        return float(copies @ survival(y).event)

    def minus_twice_log(
        self, mean: float, y: FloatArray, precision: FloatArray, copies: FloatArray
    ) -> float:
        c = precision * copies
        return 2.0 * (float(c.sum()) * mean + self.constant_of(y, c))

    def cvxpy_value(self, cp: Any, u: Any, y: FloatArray) -> Any:
        """Return the losses of the individual observations for equal weights of one.

        One ``log_sum_exp`` over the risk set for each part, O(n) of them in all.
        """
        risk = self._risk(y, np.ones(y.shape[0]))
        chosen = np.zeros((y.shape[0], risk.of_part.size))
        mine = risk.at[:, None] == risk.of_part
        chosen[risk.order[risk.events]] = mine / mine.sum(axis=1, keepdims=True)
        return chosen @ _cvxpy_logs(cp, u, risk) - cp.multiply(survival(y).event, u)

    def cvxpy_total(self, cp: Any, u: Any, y: FloatArray, c: FloatArray) -> Any:
        risk = self._risk(y, c)
        return risk.mass @ _cvxpy_logs(cp, u, risk) - (c * survival(y).event) @ u

    def _risk(self, y: FloatArray, c: FloatArray) -> RiskSets:
        return risk_sets(y, c, efron=self.ties == "efron")


def _cvxpy_logs(cp: Any, u: Any, risk: RiskSets) -> Any:
    """Return the logarithm of the sum of hazards of each part."""
    logs = []
    for part, at in enumerate(risk.of_part):
        members, own = risk.members(part), risk.events[risk.at == at]
        shift = risk.log_weights
        if risk.efron:
            members, shift = np.append(members, own), shift.copy()
            shift[own] += np.log(risk.share[part])
        logs.append(cp.log_sum_exp(u[risk.order[members]] + shift[members]))
    return cp.hstack(logs)
