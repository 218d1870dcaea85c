"""Adaptively regularised hard thresholding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast, final

import numpy as np

from sparsemodel.interfaces import (
    BoolArray,
    Capabilities,
    Context,
    FloatArray,
    IterativeBackend,
    Objective,
    Point,
    Stop,
    TwiceDifferentiable,
    check_options,
    coordinate_scores,
)
from sparsemodel.interfaces.self_description import Theorem
from sparsemodel.numerics import (
    GreedySupport,
    RidgedObjective,
    Units,
    insertion_scores,
    restricted_smoothness,
    size_in_units,
    support_units,
)
from sparsemodel_backends.theorems.arht import THEOREM_3_1

_SMALL = 500
"""Coordinates up to which the minimum without a cardinality constraint is computed."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Core:
    """A run of Algorithm 5: the minimiser of ``g_R`` on a support, and ``R``."""

    point: Point
    """``argmin { g_R : supp in S }``; its ``state`` is the point of ``f`` at the same ``x``."""
    regularised: BoolArray
    """``R``, over coordinates."""
    checked: bool = False
    """The minimum of ``f`` itself on ``S`` has been compared with the guess."""
    iteration: int = 0


@final
@dataclass(frozen=True, slots=True, eq=False)
class ARHTState:
    """The bracket of the binary search, the best point so far, and the core in progress."""

    point: Point
    """Best minimiser of ``f`` over a support that was visited."""
    support: GreedySupport
    start: Point
    """Where each core begins: forward selection, or the caller's start."""
    strength: FloatArray
    """Regularisation of each coordinate while it is in ``R``, shape ``(p,)``."""
    lower: float
    upper: float
    precision: float
    """Width of the bracket at which the search ends."""
    core: Core | None = None
    attempts: int = 0
    fruitless: int = 0
    """Runs of the core in a row that brought no better point."""
    returned: float = np.inf
    """Best objective that the runs for this guess returned."""
    filled: bool = False
    exhausted: bool = False


@final
@dataclass(frozen=True, slots=True)
class ARHT(IterativeBackend[ARHTState]):
    r"""Replacement steps on an objective whose ridge is lifted where it hurts.

    The core (Axiotis and Sviridenko 2020, Algorithm 5) takes replacement steps (OMPR) on
    :math:`g_R(x) = f(x) + \frac{\rho}{2} \|x_R\|^2`, with all coordinates in ``R`` at first,
    towards a guess ``opt`` of the optimal value. A step that lowers :math:`g_R` by less than
    ``progress / k`` of :math:`g_R - opt` is undone, and one coordinate of the support, drawn with
    probability proportional to :math:`x_i^2`, leaves ``R``. Algorithm 6 repeats the core and
    searches ``opt`` by bisection.

    Parameters
    ----------
    progress
        The fraction above, times ``k``: 1 in the theory, 1e-3 in the paper's experiments.
    repeats
        Runs of the core per guess before the guess counts as too low.
    patience
        A guess also counts as too low after so many runs in a row without a better point. The
        paper always runs all ``repeats``.
    tol
        The bisection ends at this fraction of its first interval.
    target
        A single guess in place of the bisection (Algorithm 5 with ``opt`` known, repeated as
        above): ends at the first point whose value is at most this. None searches.
    smoothness
        :math:`\rho`, in units of the diagonal of the Hessian where columns are scaled. None takes
        2 there (no two unit columns have more) and the estimate of :math:`\rho_2^+` by the
        truncated power method otherwise.
    scaled
        Measure gradients, coefficients and the regularisation as if all columns had unit norm.
    max_iter
        Iterations of the core, all runs together.
    units
        What ``smoothness`` is measured in where columns are not scaled: the objective as it is
        ``"declared"``, the ``"sum"`` of the losses, or their ``"mean"``.

    Notes
    -----
    One gradient and one or two restricted minimisations an iteration. A core also ends when half
    of its support is unregularised (as in the paper's experiments). Every support on the way is
    judged by the minimum of ``f`` on it, and the best is returned. Starts from forward selection
    where the start leaves room. The lower end of the bisection is the minimum without the
    cardinality constraint up to 500 coordinates, and the loss's own infimum above.

    Literal mode is the algorithm of the paper's experiments (Section 6.3.2: the progress test (17),
    20 runs a guess, runs that end when half of the support is unregularised) with a regulariser of
    :math:`\rho = 1` for its sum of losses, which is what the identity rows below the unit columns
    of Section 6.2.2 amount to; the columns have to be scaled before, as there.
    ``smoothness`` gives another :math:`\rho`, that of the theory is :math:`\rho_2^+`;
    ``progress=1`` is the test that is printed in Algorithm 5. ``tol`` is :math:`\epsilon` as a
    share of the first interval: a guess ``m`` counts as reached at :math:`m + \epsilon/3`, and the
    bisection ends at an interval of :math:`\epsilon` (Algorithm 6, lines 21 to 29). The interval
    begins at the objective of the start, not at that of zero, and a core also ends after the
    iterations of Algorithm 5. The paper's :math:`S^0` is the support of
    ``start``.
    """

    progress: float = 1e-3
    repeats: int = 20
    patience: int = 3
    tol: float = 0.03
    target: float | None = None
    smoothness: float | None = None
    scaled: bool = True
    units: Units = "declared"
    max_iter: int = 20_000

    name: ClassVar[str] = "arht"
    reference: ClassVar[str] = "Axiotis and Sviridenko (2020), Algorithms 5 and 6"
    guarantee: ClassVar[str] = (
        "with progress = 1 and many runs a guess (repeats, patience), reaches f(x*) + eps for an "
        "s*-sparse x* with k >= s* (12 kappa + 6), kappa = rho_2^+ / rho^-, with high probability "
        "(Axiotis and Sviridenko 2020, Theorem 3.1)"
    )
    published: ClassVar[Mapping[str, Any] | None] = {
        "scaled": False,
        "units": "sum",
        "smoothness": 1.0,
        "progress": 1e-3,
        "repeats": 20,
        "patience": 20,
    }
    capabilities: ClassVar[Capabilities] = Capabilities(
        facets=(TwiceDifferentiable,), box=True, price=True
    )

    def theorems(self) -> tuple[Theorem, ...]:
        return (THEOREM_3_1,)

    def __post_init__(self) -> None:
        check_options(
            self,
            progress="positive",
            repeats="at least 1",
            patience="at least 1",
            smoothness="positive or None",
            units="'declared' or 'sum' or 'mean'",
        )

    def init(self, objective: Objective, context: Context) -> ARHTState:
        support = GreedySupport(objective, context.restricted, scaled=self.scaled)
        point = support.start(context.start)
        sparsity = objective.cardinality
        unit = np.ones(sparsity.size) if support.diagonal is None else support.diagonal
        rho = self.smoothness
        if rho is None and support.diagonal is not None:
            rho = 2.0
        elif rho is None:
            rho = restricted_smoothness(objective, point, min(2, sparsity.units)).value
        elif support.diagonal is None:
            rho *= size_in_units(objective.form, self.units)
        return ARHTState(
            point=point,
            support=support,
            start=point,
            strength=rho * unit * sparsity.counted,
            lower=-np.inf,
            upper=np.inf,
            precision=0.0,
        )

    def step(self, objective: Objective, state: ARHTState, context: Context) -> ARHTState:
        if not state.filled:
            return self._fill(objective, state, context)
        core = state.core or self._begin(objective, state, context)
        opt = 0.5 * (state.lower + state.upper) if self.target is None else self.target
        if not core.checked:  # lines 12-14
            start = RidgedObjective.lower(core.point)
            best = context.restricted(objective, start.support, start, tol=1e-9)
            state = replace(
                state,
                core=replace(core, checked=True),
                returned=min(state.returned, best.value),
            )
            if best.value < state.point.value:
                state = replace(state, point=best, fruitless=-1)
            return self._end(state, opt) if best.value <= opt else state
        following = self._iterate(objective, state, core, opt, context)
        return self._end(state, opt) if following is None else replace(state, core=following)

    def _end(self, state: ARHTState, opt: float) -> ARHTState:
        """Return the state after a run of the core: before the next one, or with the next guess."""
        attempts, fruitless = state.attempts + 1, state.fruitless + 1
        patient = self.patience >= self.repeats  # then all runs are made, as printed
        reached = state.returned <= opt and not patient
        if attempts < self.repeats and fruitless < self.patience and not reached:
            return replace(state, core=None, attempts=attempts, fruitless=fruitless)
        if self.target is not None:
            return replace(state, core=None, exhausted=True)
        anew = replace(state, core=None, attempts=0, fruitless=0, returned=np.inf)
        if state.returned > opt + state.precision / 3.0:  # line 24
            return replace(anew, lower=opt)
        return replace(anew, upper=min(state.upper, state.returned))

    def _fill(self, objective: Objective, state: ARHTState, context: Context) -> ARHTState:
        sparsity, support = objective.cardinality, state.support
        if support_units(sparsity, state.start.support).size < min(sparsity.budget, sparsity.units):
            scores = support.insertion_scores(state.start)
            unit = int(np.argmax(scores))
            if not np.isnan(scores[unit]) and scores[unit] > 0.0:
                point = support.with_unit(state.start, unit)
                return replace(state, point=point, start=point)
        point = support.debiased(state.start)
        k = min(sparsity.budget, sparsity.units)
        if k == 0 or k == sparsity.units:
            return replace(state, point=point, filled=True, exhausted=True)
        lower = objective.infimum()
        if sparsity.size <= _SMALL:
            everything = context.restricted(objective, np.arange(sparsity.size), point, tol=1e-6)
            lower = max(lower, everything.value)
        if not np.isfinite(lower):
            lower = point.value - abs(objective.origin().value - point.value)
        return replace(
            state,
            point=point,
            start=point,
            lower=min(lower, point.value),
            upper=point.value,
            precision=self.tol * max(point.value - lower, 0.0) + 1e-12 * abs(point.value),
            filled=True,
        )

    # ---- Algorithm 5 -------------------------------------------------------------------------

    def _begin(self, objective: Objective, state: ARHTState, context: Context) -> Core:
        regularised = objective.cardinality.counted  # line 7
        ridged = RidgedObjective(objective, state.strength * regularised)
        return Core(
            context.restricted(ridged, state.start.support, ridged.lift(state.start)),  # line 9
            regularised,
        )

    def _iterate(
        self, objective: Objective, state: ARHTState, core: Core, opt: float, context: Context
    ) -> Core | None:
        """Return the next state of the core, None when it has given up."""
        sparsity, point = objective.cardinality, core.point
        k = min(sparsity.budget, sparsity.units)
        # Line 10, with log((f(0) - B) / eps) for the range the bisection started with.
        if core.iteration >= 2 * k * np.log(1.0 / self.tol) + 2:
            return None
        ridged = RidgedObjective(objective, state.strength * core.regularised)
        scores = insertion_scores(ridged, point, state.support.diagonal)
        into = int(np.argmax(scores))  # line 15, over i not in S
        units = support_units(sparsity, point.support)
        sizes = state.support.sizes(point)
        out = units[np.argmin(sizes[units])] if units.size else -1  # line 16
        swapped = sparsity.coordinates(np.append(units[units != out], np.intp(into)))  # line 17
        following = context.restricted(ridged, swapped, point, tol=1e-8)  # line 18
        enough = self.progress / k * (point.value - opt)
        if scores[into] > 0.0 and point.value - following.value >= enough:  # line 19
            return Core(following, core.regularised, iteration=core.iteration + 1)
        regularised = self._release(objective, state, core, context)
        if regularised is None:
            return None
        ridged = RidgedObjective(objective, state.strength * regularised)
        lifted = ridged.lift(cast("Point", point.state))
        return replace(
            core,
            point=context.restricted(ridged, point.support, lifted, tol=1e-8),  # line 23
            regularised=regularised,
            iteration=core.iteration + 1,
        )

    def _release(
        self, objective: Objective, state: ARHTState, core: Core, context: Context
    ) -> BoolArray | None:
        """Return ``R`` without a coordinate (all of a unit) drawn from ``S`` (lines 21-22)."""
        sparsity, point = objective.cardinality, core.point
        weights = coordinate_scores(point.x) * state.strength
        inside = sparsity.unit_scores(weights * core.regularised)
        units = support_units(sparsity, point.support)
        free = np.flatnonzero(sparsity.unit_scores((~core.regularised).astype(np.float64)))
        released = np.isin(units, free).sum()
        total = float(inside.sum())
        if not total > 0.0 or 2 * released >= units.size:
            return None
        unit = context.rng.choice(inside.size, p=inside / total)
        regularised = core.regularised.copy()
        regularised[sparsity.coordinates(np.array([unit]))] = False
        return regularised

    # ---- reporting ---------------------------------------------------------------------------

    def residual(self, state: ARHTState) -> float:
        return state.upper - state.lower

    def stopped(self, objective: Objective, state: ARHTState) -> Stop | None:
        if not state.filled:
            return None
        if state.exhausted:
            return Stop.CONVERGED if self.target is None else Stop.STALLED
        if self.target is not None:
            return Stop.CONVERGED if state.point.value <= self.target else None
        return Stop.CONVERGED if state.upper - state.lower <= state.precision else None
