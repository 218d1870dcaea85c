"""Modified gradient hard thresholding pursuit for precision matrices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final

import numpy as np

from sparsemodel.interfaces import (
    Capabilities,
    Context,
    FloatArray,
    IterativeBackend,
    Objective,
    Point,
    Prior,
    Role,
    Stop,
    check_options,
)
from sparsemodel.interfaces.precision import SparsePrecision
from sparsemodel.numerics import select_scores, top_k
from sparsemodel.numerics.precision import precision_state
from sparsemodel_backends.precision._search import first_point, objective_weight

_HALVINGS = 6


@final
@dataclass(frozen=True, slots=True, eq=False)
class PrecisionGraHTPState:
    """A debiased iterate and how the last iteration ended."""

    point: Point
    repeated: bool = False
    """The support came out as it went in: a fixed point."""
    best: float = np.inf
    worse: int = 0
    change: float = np.inf


@final
@dataclass(frozen=True, slots=True)
class PrecisionGraHTP(IterativeBackend[PrecisionGraHTPState]):
    r"""Gradient step, selection of edges, solution between the eigenvalue bounds.

    (S1) :math:`Z = \Omega - \eta (S - \Omega^{-1})`; (S2) ``F`` = the diagonal and the ``2k``
    largest :math:`|Z_{ij}|` off it; (S3) :math:`\Omega = \arg\min L` over matrices on ``F`` with
    eigenvalues in :math:`[\alpha, \beta]` (Yuan, Li and Zhang, JMLR 2018, Algorithm 2).

    Parameters
    ----------
    step_size
        :math:`\eta` as a number; ``"theory"`` for :math:`\alpha^2/2`, safe and very short; or
        ``"normalised"`` for the exact minimising step of the quadratic model along the edges that
        enter, halved while the objective does not fall.
    scaled
        Measure step and selection in units of the standard deviations, which is Algorithm 2 on
        the correlation matrix, so that the result does not depend on the units of the variables.
    patience
        Iterations without progress before the run ends.
    max_iter
        Iteration limit.

    Notes
    -----
    Starts from the best diagonal matrix unless there is a start.

    Literal mode takes the one step ``"theory"``, or the number ``step_size``, in the units of the
    data, and ends when ``F`` repeats. The paper starts from :math:`\alpha I`.
    """

    step_size: float | Literal["theory", "normalised"] = "normalised"
    scaled: bool = True
    patience: int = 5
    max_iter: int = 200

    name: ClassVar[str] = "precision_grahtp"
    reference: ClassVar[str] = "Yuan, Li and Zhang (JMLR 2018), Algorithm 2"
    guarantee: ClassVar[str] = (
        "every iterate is the optimum on its edges between the bounds, where the likelihood is "
        "1/beta^2-strongly convex and 1/alpha^2-smooth; no theorem of the paper covers the "
        "minimisation between bounds (Yuan, Li and Zhang 2018, Section 5.3)"
    )
    purpose: ClassVar[str] = "gradient steps on the edges with a restricted likelihood fit"
    published: ClassVar[Mapping[str, Any] | None] = {
        "step_size": "theory",
        "scaled": False,
        "patience": 2**62,
    }
    roles: ClassVar[frozenset[Role]] = frozenset({Role.RECOVERY})
    prior: ClassVar[Prior | None] = Prior(close=0.16, excess=0.047)
    capabilities: ClassVar[Capabilities] = Capabilities(forms=(SparsePrecision,), groups=False)

    def __post_init__(self) -> None:
        check_options(self, step_size="positive or 'theory' or 'normalised'", patience="at least 1")

    def init(self, objective: Objective, context: Context) -> PrecisionGraHTPState:
        point = first_point(objective, context)
        return PrecisionGraHTPState(point, best=point.value)

    def step(
        self, objective: Objective, state: PrecisionGraHTPState, context: Context
    ) -> PrecisionGraHTPState:
        point = state.point
        form, _ = precision_state(objective, point)
        units = edge_units(form, self.scaled)
        # An edge has one coordinate and two entries: half of the gradient belongs to each.
        g = objective.gradient(point) / np.where(form.rows == form.cols, 1.0, 2.0)
        g = g / objective_weight(objective)
        eta = self._first_step(objective, point, g, units)
        halvings = _HALVINGS if self.step_size == "normalised" else 1
        following = point
        for _ in range(halvings):
            z = point.x - eta * g / units**2  # (S1)
            support = select_scores(objective.cardinality, (z * units) ** 2)  # (S2)
            if np.array_equal(support, point.support):
                return PrecisionGraHTPState(point, True, state.best, state.worse, 0.0)
            following = context.restricted(objective, support, point)  # (S3)
            if following.value < point.value:
                break
            eta *= 0.25
        moved = float(np.linalg.norm((following.x - point.x) * units))
        return PrecisionGraHTPState(
            following,
            best=min(state.best, following.value),
            worse=0 if following.value < state.best else state.worse + 1,
            change=moved / max(float(np.linalg.norm(following.x * units)), 1e-300),
        )

    def _first_step(
        self, objective: Objective, point: Point, g: FloatArray, units: FloatArray
    ) -> float:
        form, _ = precision_state(objective, point)
        if self.step_size == "theory":
            smallest = float(np.diagonal(form.covariance).min()) if self.scaled else 1.0
            return 0.5 * (form.alpha * smallest) ** 2
        if self.step_size != "normalised":
            return float(self.step_size)
        sparsity = form.sparsity
        scores = sparsity.unit_scores((g / units) ** 2)
        support = sparsity.coordinates(top_k(scores, sparsity.budget))
        direction = (g / units**2)[support]
        slope = float(np.dot(objective.gradient(point)[support], direction))
        curvature = float(np.dot(direction, objective.hessian_product(point, support, direction)))
        return slope / curvature if curvature > 0.0 else 1.0

    def residual(self, state: PrecisionGraHTPState) -> float:
        return state.change

    def stopped(self, objective: Objective, state: PrecisionGraHTPState) -> Stop | None:
        if state.repeated:
            return Stop.CONVERGED
        return Stop.STALLED if state.worse >= self.patience else None


def edge_units(form: SparsePrecision, scaled: bool) -> FloatArray:
    r"""Return :math:`\sqrt{S_{ii} S_{jj}}` per coordinate, or ones."""
    if not scaled:
        return np.ones(form.sparsity.size)
    deviations = np.sqrt(np.diagonal(form.covariance))
    out: FloatArray = deviations[form.rows] * deviations[form.cols]
    return out
