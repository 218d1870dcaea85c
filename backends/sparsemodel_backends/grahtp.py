"""Gradient hard thresholding pursuit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final

import numpy as np

from sparsemodel.interfaces import (
    Capabilities,
    Context,
    IterativeBackend,
    ModelError,
    Objective,
    Point,
    Prior,
    Role,
    Stop,
    TwiceDifferentiable,
)
from sparsemodel.interfaces.self_description import Theorem
from sparsemodel.numerics import (
    mean_curvature,
    normalised_step,
    project,
    restricted_smoothness,
    select,
)
from sparsemodel_backends.theorems.grahtp import THEOREM_2A, THEOREM_5A


@final
@dataclass(frozen=True, slots=True, eq=False)
class GraHTPState:
    """A debiased iterate, the step in force, and how the last iteration ended."""

    point: Point
    step_size: float
    repeated: bool = False
    """The support came out as it went in: a fixed point."""
    change: float = np.inf
    best: float = np.inf
    worse: int = 0
    """Iterations since the best value."""


@final
@dataclass(frozen=True, slots=True)
class GraHTP(IterativeBackend[GraHTPState]):
    r"""Gradient step, selection, debiasing (Yuan, Li and Zhang, JMLR 2018, Algorithm 1).

    (S1) :math:`z = x - \eta \nabla f(x)`; (S2) :math:`F = \mathrm{supp}(z, k)`;
    (S3) :math:`x = \arg\min \{ f(x) : \mathrm{supp}(x) \subseteq F \}`. For the squared loss
    this is hard thresholding pursuit (Foucart 2011).

    Parameters
    ----------
    step_size
        :math:`\eta` as a number, or ``"unit"`` for one over the mean diagonal of the Hessian on the
        entries with the largest gradient (1 for a squared loss of unit columns, the step of
        Foucart 2011), ``"theory"`` for :math:`1 / (2 M_{2k})` with :math:`M_{2k}` estimated by
        the truncated power method at the start, ``"normalised"`` for the exact step of a
        quadratic along those entries. The last two are shorter and end at the first fixed point
        near the start: of 16 out of 256 coefficients from 64 samples, they recover 2 % and 43 %,
        ``"unit"`` 82 % of the instances.
    tol
        Stops when the relative change of ``x`` falls below it, or when ``F`` repeats.
    max_iter
        Iteration limit.
    patience
        Iterations without a better value after which the run ends.

    Notes
    -----
    One gradient and one restricted minimisation an iteration. Only ``"theory"`` is safe; other
    steps may cycle, so the best iterate is returned. Matrix-free designs have the diagonal
    estimated once, at the start.

    Literal mode takes the step of Theorem 5(a), ``"theory"``, unless ``step_size`` gives the
    paper's :math:`\eta`, and ends when ``F`` repeats alone.
    """

    step_size: float | Literal["unit", "theory", "normalised"] = "unit"
    tol: float = 1e-8
    max_iter: int = 500
    patience: int = 20

    name: ClassVar[str] = "grahtp"
    reference: ClassVar[str] = "Yuan, Li and Zhang (JMLR 2018), Algorithm 1"
    guarantee: ClassVar[str] = (
        "with step 1/(2 M_2k), linear convergence to every kbar-sparse point, up to its gradient, "
        "when k >= (2 + 16 (M_2k / m_2k)^2) kbar (Yuan, Li and Zhang 2018, Theorem 5(a))"
    )
    purpose: ClassVar[str] = "the loss is smooth, and debiasing on the support is cheap"
    roles: ClassVar[frozenset[Role]] = frozenset({Role.REFINEMENT})
    prior: ClassVar[Prior | None] = Prior(close=0.23, excess=0.21)
    published: ClassVar[Mapping[str, Any] | None] = {
        "step_size": "theory",
        "tol": 0.0,
        "patience": 2**62,
    }
    capabilities: ClassVar[Capabilities] = Capabilities(facets=(TwiceDifferentiable,), box=True)

    def theorems(self) -> tuple[Theorem, ...]:
        return (THEOREM_2A, THEOREM_5A)

    def __post_init__(self) -> None:
        if isinstance(self.step_size, str):
            if self.step_size not in ("unit", "theory", "normalised"):
                raise ModelError(
                    f"step_size must be a positive number, 'unit', 'theory' or 'normalised', "
                    f"not {self.step_size!r}."
                )
        elif not self.step_size > 0.0:
            raise ModelError(f"step_size must be positive, not {self.step_size}.")

    def init(self, objective: Objective, context: Context) -> GraHTPState:
        point = context.first_point(objective)
        eta = 0.0
        if self.step_size == "theory":
            level = min(2 * objective.cardinality.budget, objective.cardinality.units)
            constant = restricted_smoothness(objective, point, level)
            eta = 1.0 / (2.0 * constant.value) if constant.value > 0.0 else 1.0
        elif self.step_size == "unit":
            eta = _unit(objective, point)
        elif not isinstance(self.step_size, str):
            eta = self.step_size
        return GraHTPState(point, eta, best=point.value)

    def step(self, objective: Objective, state: GraHTPState, context: Context) -> GraHTPState:
        point = state.point
        g = objective.gradient(point)
        eta = state.step_size
        if self.step_size == "normalised":
            eta = _normalised(objective, point)
        elif (
            self.step_size == "unit"
            and not objective.quadratic
            and objective.explicit_hessian(point.support)
        ):
            eta = _unit(objective, point)  # the curvature has changed
        z = point.x - eta * g  # (S1)
        support = project(objective, z)[0]  # (S2)
        following = context.restricted(objective, support, point)  # (S3)
        size = float(np.linalg.norm(following.x))
        moved = float(np.linalg.norm(following.x - point.x))
        return GraHTPState(
            following,
            eta,
            repeated=np.array_equal(support, point.support),
            change=moved / size if size > 0.0 else moved,
            best=min(state.best, following.value),
            worse=0 if following.value < state.best else state.worse + 1,
        )

    def residual(self, state: GraHTPState) -> float:
        return state.change

    def notes(self, state: GraHTPState) -> tuple[str, ...]:
        if self.step_size == "theory":
            estimate = 1.0 / (2.0 * state.step_size)
            return (f"M_2k >= {estimate:.3g} (an estimate by the truncated power method)",)
        return ()

    def stopped(self, objective: Objective, state: GraHTPState) -> Stop | None:
        if state.repeated or state.change <= self.tol:
            return Stop.CONVERGED
        return Stop.STALLED if state.worse >= self.patience else None


def _unit(objective: Objective, point: Point) -> float:
    support = select(objective.cardinality, objective.gradient(point))
    curvature = mean_curvature(objective, point, support)
    return 1.0 / curvature if curvature > 0.0 else 1.0


def _normalised(objective: Objective, point: Point) -> float:
    support = point.support
    g = objective.gradient(point)
    inside = np.linalg.norm(g[support])
    if support.size == 0 or inside <= 1e-6 * np.linalg.norm(g):
        # On a debiased support the gradient vanishes; measure along the entries to come.
        support = select(objective.cardinality, g)
    return normalised_step(objective, point, support) or 1.0


__all__ = ["GraHTP", "GraHTPState"]
