"""Gradient pursuit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np

from sparsemodel.interfaces import (
    Capabilities,
    Context,
    IntArray,
    IterativeBackend,
    Objective,
    Point,
    TwiceDifferentiable,
    check_options,
)
from sparsemodel.numerics import GreedySupport, normalised_step, relative_change, support_units


@final
@dataclass(frozen=True, slots=True, eq=False)
class GPState:
    """An iterate and the support it is descending on."""

    point: Point
    support: GreedySupport
    change: float = np.inf
    done: bool = False


@final
@dataclass(frozen=True, slots=True)
class GP(IterativeBackend[GPState]):
    r"""Matching pursuit with one gradient step on the support in place of a minimisation.

    :math:`S \leftarrow S \cup \{\arg\max_i |\nabla_i f(x)|\}`, then
    :math:`x_S \leftarrow x_S - a\, g_S` with :math:`a = \|g_S\|^2 / g_S^\top H g_S`, the exact
    step for a quadratic (Blumensath and Davies 2008, Gradient Pursuit). The coordinate chosen may
    be in ``S`` already. When ``S`` is full the steps go on within it; at the end ``f`` is
    minimised over ``S``.

    Parameters
    ----------
    tol
        Stops when ``S`` is full, or nothing is left outside, and the relative change of ``x``
        falls below it.
    scaled
        Compare gradients as if all columns had unit norm. False takes them as they are.
    max_iter
        Iteration limit.

    Notes
    -----
    One gradient and one Hessian product on the support an iteration; no linear systems, one
    restricted minimisation at the very end.

    Literal mode compares :math:`|g_i|`.
    """

    tol: float = 1e-3
    scaled: bool = True
    max_iter: int = 10_000

    name: ClassVar[str] = "gp"
    reference: ClassVar[str] = "Blumensath and Davies, Gradient pursuits (2008)"
    guarantee: ClassVar[str] = (
        "selects as orthogonal matching pursuit does, up to the error of one gradient step"
    )
    purpose: ClassVar[str] = "adds coordinates along gradients, without a full refit each"
    published: ClassVar[Mapping[str, Any] | None] = {"scaled": False}
    capabilities: ClassVar[Capabilities] = Capabilities(facets=(TwiceDifferentiable,))

    def __post_init__(self) -> None:
        check_options(self, tol="in (0, 1)")

    def init(self, objective: Objective, context: Context) -> GPState:
        support = GreedySupport(objective, context.restricted, scaled=self.scaled)
        return GPState(support.start(context.start), support)

    def step(self, objective: Objective, state: GPState, context: Context) -> GPState:
        sparsity, point = objective.cardinality, state.point
        scores = state.support.gradient_scores(point)
        units = support_units(sparsity, point.support)
        room = units.size < min(sparsity.budget, sparsity.units)
        unit = int(np.argmax(scores)) if scores.size else 0
        if room and scores[unit] > 0.0:
            support = sparsity.coordinates(np.union1d(units, [unit]))
        elif room or state.change <= self.tol or not point.support.size:
            return replace(state, point=state.support.debiased(point), done=True)
        else:
            support = point.support
        following = _descend(objective, point, support)
        if following is None:
            return replace(state, point=state.support.debiased(point), done=True)
        return GPState(following, state.support, relative_change(following.x, point.x))

    def residual(self, state: GPState) -> float:
        return state.change


def _descend(objective: Objective, point: Point, support: IntArray) -> Point | None:
    """Return the gradient step on ``support``, halved until ``f`` falls; None when it does not."""
    g = objective.restricted_gradient(point, support)
    a = normalised_step(objective, point, support)
    for _ in range(60):
        following = objective.point(support, point.x[support] - a * g)
        if not following.value >= point.value:  # NaN is passed on
            return following
        a *= 0.5
    return None
