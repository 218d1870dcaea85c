"""The l1 penalty in place of the cardinality: accelerated proximal gradients along a path."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np

from sparsemodel.interfaces import (
    Capabilities,
    Context,
    FloatArray,
    Form,
    IntArray,
    IterativeBackend,
    Objective,
    Point,
    Stop,
    TwiceDifferentiable,
    check_options,
    coordinate_scores,
)
from sparsemodel.numerics import full_diagonal, gradient_scores, rowwise, support_units, top_k


@final
@dataclass(frozen=True, slots=True, eq=False)
class L1State:
    """The minimiser for the present penalty, and the best point on a support it has shown."""

    relaxed: Point
    best: Point
    penalty: float
    """``tau``, of ``relaxed``."""
    first: float
    """The least penalty at which no counted unit is active."""
    metric: FloatArray
    """``d``, the diagonal of the Hessian at zero (ones where that is expensive), shape ``(p,)``."""
    step: float = 1.0
    too_many: float = 0.0
    """The largest penalty seen with more than ``k`` active units; 0 for none."""
    done: bool = False
    finite: bool = True


@final
@dataclass(frozen=True, slots=True)
class L1(IterativeBackend[L1State]):
    r"""Minimise :math:`f(x) + \tau \sum_u \sqrt{m_u} \|D^{1/2} x_u\|_2` for falling
    :math:`\tau` until ``k`` units are active, then minimise ``f`` on their support.

    For single coordinates the penalty is the l1 norm of columns of unit size; for groups of
    :math:`m_u` coordinates and rows of a matrix it is that of the group lasso (Yuan and Lin
    2006). Each penalty is minimised by accelerated proximal gradient steps (Beck and Teboulle
    2009) with backtracking and restarts (O'Donoghue and Candes 2015), from the solution before;
    where the number of active units jumps past ``k``, :math:`\tau` is bisected. A start for other
    methods and a yardstick for them.

    Parameters
    ----------
    ratio
        Each penalty over the one before, in (0, 1).
    least
        The path ends at this fraction of the first penalty.
    tol
        A penalty is done when the relative change of ``x`` falls below it.
    inner_iter
        Gradient steps for each penalty at most.

    Notes
    -----
    Half a pass for each gradient step, some ten to a hundred for each of some twenty penalties,
    and a restricted minimisation for each. More than ``k`` active units are cut to the ``k``
    largest, fewer are filled up at the end with those of the largest gradient. A start is only
    competed with.

    No literal mode: the papers it draws on solve the penalised problem, not this one.
    """

    ratio: float = 0.8
    least: float = 1e-4
    tol: float = 1e-4
    inner_iter: int = 500

    name: ClassVar[str] = "l1"
    reference: ClassVar[str] = "Tibshirani (1996); Beck and Teboulle, FISTA (2009)"
    guarantee: ClassVar[str] = (
        "none for the cardinality: the minimiser of a convex relaxation, which has the support of "
        "a sparse x* only where no other column is close to its span (irrepresentable condition, "
        "Wainwright 2009, Theorem 1)"
    )
    capabilities: ClassVar[Capabilities] = Capabilities(facets=(TwiceDifferentiable,), box=True)
    default_max_iter: ClassVar[int] = 200

    def __post_init__(self) -> None:
        check_options(
            self, ratio="in (0, 1)", least="in (0, 1)", tol="positive", inner_iter="at least 1"
        )

    def extra_objections(self, form: Form) -> tuple[str, ...]:
        boxed = form.box is not None
        if boxed and (len(form.shape) > 1 or form.cardinality.groups is not None):
            return ("keeps bounds on single coordinates, not on groups or rows",)
        return ()

    def init(self, objective: Objective, context: Context) -> L1State:
        sparsity, origin = objective.cardinality, objective.origin()
        best = origin
        if context.start is not None:
            best = objective.point_from(context.start)
            best = context.restricted(objective, best.support, best)
        relaxed = context.restricted(objective, sparsity.free, origin)
        diagonal = full_diagonal(objective, origin)
        metric = np.ones(sparsity.size) if diagonal is None else diagonal
        metric = np.where(metric > 0.0, metric, 1.0)
        scores = gradient_scores(objective, relaxed, metric) / _sizes(objective)
        first = float(np.sqrt(2.0 * scores.max(initial=0.0)))
        k = min(sparsity.budget, sparsity.units)
        state = L1State(relaxed, _better(relaxed, best), first, first, metric)
        if not np.isfinite(first):
            return replace(state, finite=False)
        if k == 0 or first == 0.0:
            return replace(state, done=True)
        return state

    def step(self, objective: Objective, state: L1State, context: Context) -> L1State:
        sparsity = objective.cardinality
        k = min(sparsity.budget, sparsity.units)
        if k == sparsity.units:  # nothing to choose
            everything = np.arange(sparsity.size)
            point = context.restricted(objective, everything, state.best)
            return replace(state, best=_better(point, state.best), done=True)
        penalty = self.ratio * state.penalty
        if state.too_many:
            penalty = float(np.sqrt(state.penalty * state.too_many))
        point, step = self._minimise(objective, state, penalty, context)
        if not np.isfinite(point.value):
            return replace(state, finite=False)
        units = support_units(sparsity, point.support)
        last = (
            units.size == k
            or penalty <= self.least * state.first
            or state.too_many > 0.99 * state.penalty
        )
        best = state.best
        if units.size >= k or last:
            chosen = _chosen(objective, point, state.metric, units, k)
            start = objective.point(chosen, point.x[chosen])
            best = _better(context.restricted(objective, chosen, start), best)
        if units.size > k:  # between this penalty and the last
            return replace(state, best=best, too_many=penalty, done=last)
        return replace(state, relaxed=point, best=best, penalty=penalty, step=step, done=last)

    def _minimise(
        self, objective: Objective, state: L1State, penalty: float, context: Context
    ) -> tuple[Point, float]:
        """Return the minimiser for ``penalty``, from that before, and the last step length."""
        x = y = state.relaxed
        step, momentum, d = 2.0 * state.step, 1.0, state.metric
        for _ in range(self.inner_iter):
            g = objective.gradient(y)
            if not np.all(np.isfinite(g)):  # thresholding would take NaN for nothing to gain
                return replace(y, value=np.nan), step
            for _ in range(60):
                following = _proximal(objective, y, g, d, step, penalty)
                move = following.x - y.x
                bound = y.value + float(np.vdot(g, move)) + _square(move, d) / (2.0 * step)
                if not following.value > bound + 1e-14 * abs(y.value):
                    break
                step *= 0.5
            change = following.x - x.x
            size = _square(following.x, d)
            if not _square(change, d) > self.tol**2 * size or context.limits.expired():
                return following, step
            if float(np.vdot(rowwise(d, y.x - following.x), change)) > 0.0:
                momentum = 1.0  # against the descent: restart
            after = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
            weight = (momentum - 1.0) / after
            support = np.union1d(following.support, x.support)
            y = objective.point(support, (following.x + weight * change)[support])
            x, momentum = following, after
        return x, step

    def iterate(self, state: L1State) -> Point:
        return state.best

    def residual(self, state: L1State) -> float:
        return state.penalty

    def notes(self, state: L1State) -> tuple[str, ...]:
        return (f"penalty {state.penalty:.4g}, of {state.first:.4g} where nothing is active",)

    def stopped(self, objective: Objective, state: L1State) -> Stop | None:
        if not state.finite:
            return Stop.NON_FINITE
        return Stop.CONVERGED if state.done else None


def _proximal(
    objective: Objective, y: Point, g: FloatArray, d: FloatArray, step: float, penalty: float
) -> Point:
    """Return the proximal gradient step: block soft thresholding in the metric ``d``."""
    sparsity, form = objective.cardinality, objective.form
    z = y.x - rowwise(step / d, g)
    norms = np.sqrt(sparsity.unit_scores(coordinate_scores(z) * d))
    threshold = step * penalty * np.sqrt(_sizes(objective))
    active = np.flatnonzero(norms > threshold)
    factors = np.zeros(norms.size)
    factors[active] = 1.0 - threshold[active] / norms[active]
    support = sparsity.coordinates(active)
    values = rowwise(_spread(objective, factors)[support], z[support])
    box = form.box
    if box is not None:
        values = np.clip(values, box.lower[support], box.upper[support])
    return objective.point(support, values)


def _spread(objective: Objective, factors: FloatArray) -> FloatArray:
    """Return each coordinate's factor: that of its unit, 1 where it is free."""
    sparsity = objective.cardinality
    out = np.ones(sparsity.size)
    if sparsity.groups is None:
        out[sparsity.counted] = factors
    else:
        counted = sparsity.groups >= 0
        out[counted] = factors[sparsity.groups[counted]]
    return out


def _sizes(objective: Objective) -> FloatArray:
    """Return ``m_u``, how many coordinates (rows, for a matrix) each unit has."""
    sparsity = objective.cardinality
    if sparsity.groups is None:
        return np.ones(sparsity.units)
    return np.maximum(sparsity.unit_scores(np.ones(sparsity.size)), 1.0)


def _chosen(objective: Objective, point: Point, d: FloatArray, units: IntArray, k: int) -> IntArray:
    """Return a support of ``k`` units: the largest active ones, then the largest gradients."""
    sparsity = objective.cardinality
    sizes = sparsity.unit_scores(coordinate_scores(point.x) * d)
    if units.size >= k:
        return sparsity.coordinates(top_k(sizes, k))
    scores = gradient_scores(objective, point, d)
    scores[units] = -1.0
    return sparsity.coordinates(np.union1d(units, top_k(scores, k - units.size)))


def _square(x: FloatArray, d: FloatArray) -> float:
    return float(np.dot(d, coordinate_scores(x)))


def _better(new: Point, old: Point) -> Point:
    return new if not new.value >= old.value else old
