"""Dual iterative hard thresholding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, cast, final

import numpy as np

from sparsemodel.interfaces import (
    Capabilities,
    Context,
    FloatArray,
    Form,
    IntArray,
    IntervalConjugable,
    IterativeBackend,
    Loss,
    Objective,
    Point,
    SparseRegression,
    Stop,
    check_options,
    priced,
)
from sparsemodel.interfaces.self_description import Role, Theorem
from sparsemodel.numerics import (
    Dual,
    conjugate_slope,
    constant_step,
    correlations,
    dual_value,
    margins,
    predictions,
    primal_of,
    project_dual,
    shrink_dual,
    unpenalised_free,
    weighted,
)
from sparsemodel_backends.theorems import diht

_SMALL = 64
"""Coordinates up to which the minimiser on every new support is worth its cost."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class DIHTState:
    """A dual point with its primal point, and the best of both so far."""

    a: Dual
    q: FloatArray
    """``sum_i c_i a_i x_i``, from which ``w(a)`` is selected."""
    current: Point
    """``w(a)``."""
    best: Point
    """Best primal point seen."""
    best_dual: Dual
    bound: float
    """``D`` at ``best_dual``."""
    gap: float
    scale: float = 1.0
    """``c`` of the steps for losses that are not smooth."""
    constant: float = 0.0
    """The step of every iteration; 0 for steps that decrease."""
    kappa: float = 0.0
    """Curvature that the quadratic part of the dual has had so far."""
    minimised: frozenset[int] = frozenset()
    """Hashes of the supports on which ``f`` was minimised."""
    iteration: int = 0
    milestone: float = np.inf
    """The gap from which progress is counted."""
    idle: int = 0
    """Iterations since the gap became smaller by a thousandth."""


class DualAscent(IterativeBackend[DIHTState]):
    """A dual method, in full steps or by observations: the best points of both sides count."""

    __slots__ = ()

    schedule: Literal["decreasing", "constant"]
    step_size: float | None
    tol: float
    patience: int

    def extra_objections(self, form: Form) -> tuple[str, ...]:
        if not isinstance(form, SparseRegression):
            return ()
        if unpenalised_free(form):
            return ("needs a ridge on every coordinate, including those that are always in",)
        traits = form.traits
        if self.schedule == "constant" and not (traits.lower > 0.0 and traits.lipschitz):
            return ("needs smooth and strongly convex losses for the constant step",)
        return ()

    def iterate(self, state: DIHTState) -> Point:
        return state.best

    def published_iterate(self, state: DIHTState) -> Point:
        return state.current

    def residual(self, state: DIHTState) -> float:
        return state.gap

    def dual(self, state: DIHTState) -> tuple[FloatArray, ...] | None:
        return state.best_dual

    def notes(self, state: DIHTState) -> tuple[str, ...]:
        return (f"best dual value {state.bound:.10g} (before certification)",)

    def stopped(self, objective: Objective, state: DIHTState) -> Stop | None:
        if np.isnan(state.gap):
            return Stop.NON_FINITE
        size = max(abs(state.best.value), abs(objective.origin().value), np.finfo(float).tiny)
        if state.gap <= self.tol * size:
            return Stop.CONVERGED
        return Stop.STALLED if state.idle >= self.patience else None


@final
@dataclass(frozen=True, slots=True)
class DIHT(DualAscent):
    r"""Supergradient ascent on the sparse dual (Yuan, Liu, Wang, Liu and Metaxas 2020, Alg. 1).

    :math:`a_i \leftarrow P_{F_i}(a_i + \eta_t (x_i^\top w - (\ell_i^*)'(a_i)))`, then
    :math:`w = H_k(-q / \lambda)` with :math:`q = \sum_i c_i a_i x_i`. Every dual point on the way
    bounds the problem from below.

    Parameters
    ----------
    shifted
        Begin the decreasing steps where ascent is stable, :math:`L / (t + 2 + L \kappa)` with
        :math:`\kappa = \|C^{1/2} X_S \Lambda^{-1/2}\|^2` on the support. False takes the
        paper's :math:`L / (t + 2)`, which overflows for losses with an unbounded dual when
        :math:`\lambda` is small.
    restarts
        Shrink the dual point of the first step to the best multiple of itself, and go on from the
        loss derivatives at a new best primal point (the dual solution where there is no gap)
        whenever these bound higher than all before. False is the paper's method.
    schedule
        ``"decreasing"`` for the steps above; ``"constant"`` for losses that are smooth and strongly
        convex.
    step_size
        The constant :math:`\eta`, in the units of the paper, whose objective is a mean. That of
        Theorem 17 depends on the solution; ``problem.theory()`` prints it. None takes
        :math:`\mu_D / \ell_D^2` with :math:`\ell_D = \ell/n + \|X\|^2 / (\lambda n^2)`, which is
        right once the support is that of the solution (Lemma 31(a)), and too long before
        for the contraction that the theorem promises.
    tol
        Stops when the gap is below ``tol`` times the size of the objective.
    max_iter
        Iteration limit.
    patience
        Iterations in which the gap does not become smaller by a thousandth after which the run
        ends.

    Notes
    -----
    Steps are in units of the weights, ``n`` times those of the paper: as above for
    losses with an ``L``-Lipschitz derivative, with ``c`` for ``L`` for others, ``c`` being the
    best of five after a few trial steps. An iteration costs half a pass and a product with the
    columns of the support. Where the loss allows, the primal point is minimised over its support
    when that is new and has stayed for an iteration (or has at most 64 coordinates). What is
    reported as a bound is recomputed by the certificate, with its rounding. Over a Dask array the
    products are taken where its blocks are, and the dual point is kept here: an iteration sends
    and gathers ``n`` numbers.

    Literal mode takes the paper's :math:`L / (t + 2)`, or with ``schedule="constant"`` a constant
    step, and no restarts. Steps and iterates are those of the paper's mean of losses, whatever
    ``reduction`` was declared. Its iterates are ``current``; the point returned is the best seen,
    minimised over its support.
    """

    shifted: bool = True
    restarts: bool = True
    schedule: Literal["decreasing", "constant"] = "decreasing"
    step_size: float | None = None
    tol: float = 1e-6
    max_iter: int = 1000
    patience: int = 100

    name: ClassVar[str] = "diht"
    reference: ClassVar[str] = "Yuan, Liu, Wang, Liu and Metaxas (JMLR 2020), Algorithm 1"
    guarantee: ClassVar[str] = (
        "as published, the duality gap tends to zero as 1/sqrt(t) for losses with a Lipschitz "
        "derivative and a conjugate whose domain and slopes are bounded (smoothed hinge, Huber) "
        "when lambda min |w_S| exceeds the largest gradient at the minimiser, so that the sparse "
        "problem has no gap (Yuan et al. 2020, Theorems 8 and 15)"
    )
    published: ClassVar[Mapping[str, Any] | None] = {
        "shifted": False,
        "restarts": False,
        "tol": 0.0,
        "patience": 2**62,
    }
    roles: ClassVar[frozenset[Role]] = frozenset({Role.DUAL})
    capabilities: ClassVar[Capabilities] = Capabilities(
        facets=(Loss, IntervalConjugable),
        smooth=False,
        ridge=True,
        matrix=False,
        box=True,
        price=True,
    )

    def theorems(self) -> tuple[Theorem, ...]:
        return diht.theorems(self.schedule, self.step_size)

    def __post_init__(self) -> None:
        check_options(self, **SHARED)

    def init(self, objective: Objective, context: Context) -> DIHTState:
        return first_state(objective, context, self)

    def step(self, objective: Objective, state: DIHTState, context: Context) -> DIHTState:
        form = cast("SparseRegression", objective.form)
        if state.iteration == 0 and not form.traits.lipschitz:
            state = replace(state, scale=self._search(objective, state))
        if self.shifted and state.iteration & (state.iteration - 1) == 0:
            kappa = dual_curvature(form, state.current.support)
            state = replace(state, kappa=max(kappa, state.kappa))
        a = ascend(objective, state, state.iteration)
        q = correlations(objective, a)
        if self.restarts and state.iteration == 0:
            a, q = shrunk(form, a, q)
        return advance(objective, context, state, a, q, restarts=self.restarts)

    def _search(self, objective: Objective, state: DIHTState) -> float:
        """Return the ``c`` with the best first few steps (the paper's short search)."""
        form = cast("SparseRegression", objective.form)
        best, best_bound = 1.0, -np.inf
        for c in (1e-2, 1e-1, 1.0, 1e1, 1e2):
            trial = replace(state, scale=c)
            for t in range(4):
                a = ascend(objective, trial, t)
                support, values, least = primal_of(form, correlations(objective, a))
                bound = dual_value(form, a, least)
                if bound > best_bound:
                    best, best_bound = c, bound
                trial = replace(trial, a=a, current=objective.point(support, values))
        return best


# ---- shared with the stochastic version --------------------------------------------------------


SHARED = {
    "tol": "at least 0",
    "patience": "at least 1",
    "schedule": "'decreasing' or 'constant'",
    "step_size": "positive or None",
}
"""What the options that the dual methods share may be."""


def first_state(objective: Objective, context: Context, backend: DualAscent) -> DIHTState:
    """Return the state at ``a = 0``, or at the loss derivatives of a start."""
    form = cast("SparseRegression", objective.form)
    constant = 0.0
    if backend.schedule == "constant" and backend.step_size is None:
        constant = constant_step(form)
    elif backend.schedule == "constant" and backend.step_size is not None:
        constant = backend.step_size / sum(term.target.shape[0] for term in form.terms)
    point = context.first_point(objective)
    if context.start is None:
        a: Dual = tuple(np.zeros(term.target.shape) for term in form.terms)
    else:
        a = _derivatives(objective, point)
    a = project_dual(form, a)
    q = correlations(objective, a)
    support, values, least = primal_of(form, q)
    current = objective.point(support, values)
    bound = dual_value(form, a, least)
    best = current if priced(objective, current) < priced(objective, point) else point
    gap = priced(objective, best) - bound
    return DIHTState(
        a,
        q,
        current,
        best,
        weighted(form, a),
        bound,
        gap=gap,
        constant=constant,
        milestone=gap,
    )


def ascend(objective: Objective, state: DIHTState, t: int) -> Dual:
    """Return the dual point after one projected supergradient step on all observations."""
    form, moved = cast("SparseRegression", objective.form), []
    here = predictions(objective, state.current)
    for part, z, term in zip(state.a, here, form.terms, strict=True):
        loss = cast("IntervalConjugable", term.loss)
        smoothness = term.traits.upper
        if not np.isfinite(smoothness):
            smoothness = state.scale
        slope = margins(term, z) - conjugate_slope(loss, part, term.target)
        eta = state.constant or smoothness / (t + 2.0 + smoothness * state.kappa)
        moved.append(part + eta * slope)
    return project_dual(form, tuple(moved))


def shrunk(form: SparseRegression, a: Dual, q: FloatArray) -> tuple[Dual, FloatArray]:
    """Return the multiple of ``a`` that bounds highest, with its correlations."""
    s = shrink_dual(form, a, q)
    return tuple(s * part for part in a), s * q


def advance(
    objective: Objective,
    context: Context,
    state: DIHTState,
    a: Dual,
    q: FloatArray,
    *,
    restarts: bool,
) -> DIHTState:
    """Return the state at a new dual point, with the best primal and dual points renewed."""
    form = cast("SparseRegression", objective.form)
    support, values, least = primal_of(form, q)
    current = objective.point(support, values)
    bound = dual_value(form, a, least)
    best, minimised = _better(objective, current, state.best), state.minimised
    key = hash(support.tobytes())
    if key not in minimised and _worth(objective, state, support):
        best = _better(objective, context.restricted(objective, support, best), best)
        minimised = minimised | {key}
    if restarts and priced(objective, best) < priced(objective, state.best):
        other = project_dual(form, _derivatives(objective, best))
        other, other_q = shrunk(form, other, correlations(objective, other))
        other_support, other_values, other_least = primal_of(form, other_q)
        other_bound = dual_value(form, other, other_least)
        if other_bound > max(bound, state.bound):
            a, q, bound = other, other_q, other_bound
            current = objective.point(other_support, other_values)
            best = _better(objective, current, best)
    highest = max(bound, state.bound) if not np.isnan(bound) else np.nan
    gap = priced(objective, best) - highest
    progress = not gap > state.milestone - 1e-3 * abs(state.milestone)
    return replace(
        state,
        a=a,
        q=q,
        current=current,
        best=best,
        best_dual=weighted(form, a) if bound > state.bound else state.best_dual,
        bound=highest,
        gap=gap,
        minimised=minimised,
        iteration=state.iteration + 1,
        milestone=gap if progress else state.milestone,
        idle=0 if progress else state.idle + 1,
    )


def dual_curvature(form: SparseRegression, support: IntArray) -> float:
    """Return ``||C^(1/2) A_S Lambda^(-1/2)||^2`` by a power iteration on the columns of ``S``."""
    if not support.size:
        return 0.0
    root = 1.0 / np.sqrt(form.ridge[support])
    restricted = [term.design.restrict(support) for term in form.terms]
    v = np.random.default_rng(0).standard_normal(support.size)
    norm = 0.0
    for _ in range(15):
        v /= float(np.linalg.norm(v)) or 1.0
        image = np.zeros_like(v)
        for term, design in zip(form.terms, restricted, strict=True):
            image += design.rmatvec(term.weights * design.matvec(root * v))
        v = root * image
        norm = float(np.linalg.norm(v))
    return 1.1 * norm


def _derivatives(objective: Objective, point: Point) -> Dual:
    form = cast("SparseRegression", objective.form)
    return tuple(
        cast("Loss", term.loss).derivative(margins(term, z), term.target)
        for term, z in zip(form.terms, predictions(objective, point), strict=True)
    )


def _worth(objective: Objective, state: DIHTState, support: IntArray) -> bool:
    """Return whether ``f`` should be minimised on a support where it has not been yet."""
    stayed = np.array_equal(support, state.current.support)
    if not objective.twice_differentiable:  # expensive: only now and then
        return stayed and state.iteration & (state.iteration + 1) == 0  # 1, 2, 4, ...
    return stayed or support.size <= _SMALL


def _better(objective: Objective, new: Point, old: Point) -> Point:
    return new if not priced(objective, new) >= priced(objective, old) else old
