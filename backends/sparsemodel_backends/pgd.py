"""Projected gradient descent with a relaxed sparsity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final

import numpy as np

from sparsemodel.interfaces import (
    Capabilities,
    Context,
    Form,
    IterativeBackend,
    Objective,
    Point,
    SparseRegression,
    Stop,
    TwiceDifferentiable,
    check_options,
)
from sparsemodel.numerics import (
    Units,
    normalised_step,
    project,
    pruned,
    relative_change,
    relaxed_budget,
    select,
    size_in_units,
)


@final
@dataclass(frozen=True, slots=True, eq=False)
class PGDState:
    """The relaxed iterate, the feasible point made of it, and the step."""

    relaxed: Point
    point: Point
    """Minimised over the ``K`` largest units of the relaxed iterate."""
    step_size: float
    change: float = np.inf


@final
@dataclass(frozen=True, slots=True)
class PGD(IterativeBackend[PGDState]):
    r"""Hard thresholding that keeps more coordinates than are allowed, and prunes for the result.

    :math:`b = x - \eta \nabla f(x)`, :math:`x \leftarrow H_k(b)` with :math:`k > K`, ``K`` being
    the cardinality of the problem (Shen and Li, JMLR 2018, Section 3). Keeping more than ``K``
    brings the expansion factor of hard thresholding (``numerics.expansion``) towards 1, and
    with it relaxes the restricted isometry that recovery asks for.

    Parameters
    ----------
    relaxation
        :math:`k / K`, at least 1; 1 is iterative hard thresholding with a fixed step.
    step_size
        :math:`\eta`. None takes 2 / L with the global Lipschitz constant L of the gradient, as
        the paper's experiments do, halved whenever ``f`` would rise; losses without such a
        constant start from the exact step on the current support. ``"lipschitz"`` takes 2 / L
        and never halves it.
    tol
        Stops when the relative change of ``x`` falls below it.
    max_iter
        Iteration limit.
    units
        What ``step_size``, as a number, multiplies the gradient of: the objective as it is
        ``"declared"``, the ``"sum"`` of the losses, or their ``"mean"``.

    Notes
    -----
    One gradient an iteration, and a restricted minimisation whenever the ``K`` largest units of
    the iterate are others than before.

    Literal mode keeps 9 K entries and the step 2 / L, as Section 5 of the paper (2 / svds(A A') for
    a squared loss); ``relaxation`` and ``step_size`` give others, a number for the paper's
    :math:`\|A x - y\|^2 / 2`, a sum. The paper judges the iterate itself, here it is pruned and
    refitted for the result.
    """

    relaxation: float = 2.0
    step_size: float | Literal["lipschitz"] | None = None
    tol: float = 1e-6
    max_iter: int = 1000
    units: Units = "declared"

    name: ClassVar[str] = "pgd"
    reference: ClassVar[str] = "Shen and Li (JMLR 2018), Theorem 1 and Section 3"
    guarantee: ClassVar[str] = (
        "for linear measurements and a step of 1, halves the distance to a K-sparse x* in each "
        "iteration, up to the noise, when the restricted isometry constant of order 2k + K is at "
        "most 1 / sqrt(8 nu), nu tending to 1 as k / K grows (Shen and Li 2018, Theorem 6)"
    )
    published: ClassVar[Mapping[str, Any] | None] = {
        "relaxation": 9.0,
        "step_size": "lipschitz",
        "units": "sum",
        "tol": 0.0,
    }
    capabilities: ClassVar[Capabilities] = Capabilities(facets=(TwiceDifferentiable,), box=True)

    def __post_init__(self) -> None:
        check_options(
            self,
            relaxation="at least 1",
            step_size="positive or 'lipschitz' or None",
            units="'declared' or 'sum' or 'mean'",
        )

    def extra_objections(self, form: Form) -> tuple[str, ...]:
        if self.step_size != "lipschitz" or not isinstance(form, SparseRegression):
            return ()
        if not form.traits.lipschitz:
            return ("needs a bounded second derivative for the step 2 / L",)
        return ()

    def init(self, objective: Objective, context: Context) -> PGDState:
        point = context.first_point(objective)
        eta = 0.0
        if isinstance(self.step_size, float | int):
            eta = float(self.step_size) / size_in_units(objective.form, self.units)
        else:
            bound = objective.smoothness().value
            eta = 2.0 / bound if np.isfinite(bound) and bound > 0.0 else 0.0
        return PGDState(point, point, eta)

    def step(self, objective: Objective, state: PGDState, context: Context) -> PGDState:
        x = state.relaxed.x
        g = objective.gradient(state.relaxed)
        eta = state.step_size
        if eta == 0.0:
            along = select(objective.cardinality, g)
            eta = 2.0 * (normalised_step(objective, state.relaxed, along) or 1.0)
        k = relaxed_budget(objective, self.relaxation)
        following = objective.point(*project(objective, x - eta * g, k=k))
        for _ in range(60):
            rises = following.value > state.relaxed.value * (1.0 + 1e-14)
            if self.step_size is not None or not rises:
                break
            eta *= 0.5
            following = objective.point(*project(objective, x - eta * g, k=k))
        change = relative_change(following.x, x)
        # The end is minimised again: products that turned into NaN show there.
        last = None if state.point is state.relaxed or change <= self.tol else state.point
        point = pruned(objective, context.restricted, following, last)
        return PGDState(following, point, eta, change)

    def published_iterate(self, state: PGDState) -> Point:
        return state.relaxed

    def residual(self, state: PGDState) -> float:
        return state.change

    def stopped(self, objective: Objective, state: PGDState) -> Stop | None:
        if not np.isfinite(state.change) and not np.isfinite(state.relaxed.value):
            return Stop.NON_FINITE
        return Stop.CONVERGED if state.change <= self.tol else None
