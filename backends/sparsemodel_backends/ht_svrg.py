"""Hard thresholding with stochastic variance-reduced gradients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, cast, final

import numpy as np

from sparsemodel.interfaces import (
    Access,
    Capabilities,
    Context,
    FloatArray,
    Form,
    IterativeBackend,
    Loss,
    Objective,
    Point,
    SparseRegression,
    Stop,
    TwiceDifferentiable,
    check_options,
)
from sparsemodel.interfaces.self_description import Setting, Theorem
from sparsemodel.numerics import (
    Units,
    batch_count,
    drawn_block,
    epoch,
    margins,
    normalised_step,
    predictions,
    project,
    pruned,
    relative_change,
    relaxed_budget,
    rowwise,
    select,
    size_in_units,
)
from sparsemodel_backends.theorems.tight import svrg_theorems

Table = tuple[FloatArray, ...]
"""For each term, derivatives of its losses (weights inside)."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class HTSVRGState:
    """The reference point of a stage, and the best that was made of it."""

    reference: Point
    """``x~``."""
    point: Point
    """Minimised over the support of ``x~``."""
    step_size: float
    change: float = np.inf
    best: float = np.inf
    worse: int = 0
    """Stages since the best value."""
    debiased: bool = False
    """``point`` has been minimised over its support."""
    table: Table | None = None
    """SAGA's memory: where every observation was read last."""


@final
@dataclass(frozen=True, slots=True)
class HTSVRG(IterativeBackend[HTSVRGState]):
    r"""Stochastic gradients around a full one, hard thresholding in every step.

    A stage: :math:`\mu = \nabla f(\tilde x)`; inner steps
    :math:`b = x - \eta(\nabla f_J(x) - \nabla f_J(\tilde x) + \mu)`,
    :math:`x = \Pi_\omega(H_k(b))` with random batches ``J`` of the observations; the next
    :math:`\tilde x` is one of the inner iterates (Shen and Li, JMLR 2018, Algorithm 1;
    without the ball :math:`\Pi_\omega` this is SVR-GHT of Li et al. 2016). HT-SAGA (Algorithm 2,
    Appendix E) remembers for every observation the gradient that was read last, :math:`\phi_i`, in
    place of those at :math:`\tilde x`, and the mean of them in place of :math:`\mu`.

    Parameters
    ----------
    inner_epochs
        How often the inner steps of a stage go through all observations; 3 in the paper's
        experiments.
    batches
        Batches that the observations are divided into, an inner step each. A step costs a batch
        of rows and ``O(p)``; the paper's batches are single observations. None takes up to 50, as
        many as keep that ``O(p)`` below the cost of a pass and batches of 16 rows.
    step_size
        :math:`\eta`. None starts from the exact step of a quadratic along the gradient on its
        ``k`` largest entries and halves it after a stage that raised ``f``; ``"spectral"`` takes
        :math:`2 / \|A\|^2` in units of the mean, the :math:`2 / \mathrm{svds}(A A^\top)` of the
        paper's experiments.
    pick
        ``"last"`` takes the last inner iterate as the next :math:`\tilde x`; ``"random"`` draws
        it, as the paper does for its proof (found less often to end at the right support).
    sampling
        ``"passes"`` goes through random batches, each observation once a pass; ``"uniform"`` draws
        one of the batches (of consecutive observations, single ones when ``batches`` is None) in
        every step, and the next :math:`\tilde x` from :math:`x^0, \dots, x^{m-1}`, as printed.
    inner_steps
        ``m``, the inner steps of a stage. None takes ``inner_epochs`` times the batches.
    relaxation
        :math:`k / K` with ``K`` the cardinality of the problem, as in
        :class:`~sparsemodel_backends.pgd.PGD`.
    variance_reduction
        ``"svrg"``, or ``"saga"`` for HT-SAGA. A stage is then ``inner_steps`` steps, each goes on
        from the last, and ``pick`` does not matter.
    radius
        :math:`\omega`, the radius of a ball that contains the solution. None leaves it out.
    tol
        Stops when the relative change of :math:`\tilde x` falls below it.
    max_iter
        Stages.
    patience
        Stages without a better value after which the run ends.
    units
        What ``step_size``, as a number, multiplies the gradient of: the objective as it is
        ``"declared"``, the ``"sum"`` of the losses, or their ``"mean"``.

    Notes
    -----
    A stage costs one gradient and about ``2 inner_epochs`` passes. The result is minimised over
    its support. HT-SAGA keeps a number for every observation; the gradient of the ridge is read
    where it is, not remembered, which is the printed algorithm where there is no ridge.

    Literal mode has single observations drawn uniformly, 9 K entries and the step
    :math:`2 / \|A\|^2`, about 0.3 for its 100 measurements, as Section 5 of the paper; ``radius``
    gives its ball, ``step_size``, ``relaxation`` and ``inner_steps`` other parameters, those of
    (4.5) for instance. Its ``f`` is the mean of the losses of single observations, and steps are
    in these units: single gradients are larger than the gradient by the number of observations,
    so that a step of 2 / L, with L of the mean, diverges. Its iterates are ``reference``; the point
    returned is their ``K`` largest entries, minimised. HT-SAGA is
    ``as_published(variance_reduction="saga", step_size=...)``; SAGA's own step is
    a third of one over the largest curvature of an observation (Defazio et al. 2014).
    """

    inner_epochs: int = 3
    batches: int | None = None
    step_size: float | Literal["spectral"] | None = None
    pick: Literal["last", "random"] = "last"
    sampling: Literal["passes", "uniform"] = "passes"
    inner_steps: int | None = None
    relaxation: float = 1.0
    variance_reduction: Literal["svrg", "saga"] = "svrg"
    radius: float | None = None
    tol: float = 1e-6
    max_iter: int = 200
    patience: int = 10
    units: Units = "declared"

    name: ClassVar[str] = "ht_svrg"
    reference: ClassVar[str] = (
        "Shen and Li (JMLR 2018), Algorithms 1 and 2; Li, Zhao, Arora, Liu and Haupt (ICML 2016)"
    )
    guarantee: ClassVar[str] = (
        "as published, in a ball around x*, with steps below 1 / (4 L), long stages and k so large "
        "that nu < 4 L / (4 L - alpha), linear convergence in expectation to the value of a "
        "K-sparse x*, up to its gradient, L and alpha the restricted smoothness and convexity "
        "(Shen and Li 2018, Theorem 10)"
    )
    published: ClassVar[Mapping[str, Any] | None] = {
        "sampling": "uniform",
        "pick": "random",
        "relaxation": 9.0,
        "step_size": "spectral",
        "units": "mean",
        "tol": 0.0,
        "patience": 2**62,
    }
    capabilities: ClassVar[Capabilities] = Capabilities(
        facets=(Loss, TwiceDifferentiable), access=Access.PRODUCTS | Access.ROWS, box=True
    )

    def theorems(self) -> tuple[Theorem, ...]:
        otherwise = "" if self.variance_reduction == "svrg" else "HT-SAGA is another algorithm"
        given = self.step_size is not None or self.inner_steps is not None
        if given and (self.sampling, self.pick, self.batches) != ("uniform", "random", None):
            otherwise = (
                "it is about single observations drawn uniformly, and the next reference point "
                "drawn from the inner iterates: as_published(step_size=...)"
            )

        def inner(s: Setting) -> int | None:
            if self.inner_steps is None and self.sampling == "uniform":
                return self.inner_epochs * s.observations
            return self.inner_steps

        return svrg_theorems(self.step_size, inner, otherwise, self.units, self.relaxation)

    def __post_init__(self) -> None:
        check_options(
            self,
            inner_epochs="at least 1",
            batches="at least 1 or None",
            pick="'random' or 'last'",
            variance_reduction="'svrg' or 'saga'",
            sampling="'passes' or 'uniform'",
            inner_steps="at least 1 or None",
            relaxation="at least 1",
            step_size="positive or 'spectral' or None",
            radius="positive or None",
            units="'declared' or 'sum' or 'mean'",
        )

    def extra_objections(self, form: Form) -> tuple[str, ...]:
        boxed = form.box is not None
        if boxed and self.radius is not None:
            return ("keeps either bounds or a radius, not both",)
        return ()

    def init(self, objective: Objective, context: Context) -> HTSVRGState:
        point = context.first_point(objective)
        eta = self.step_size
        if isinstance(eta, str):
            eta = _spectral_step(cast("SparseRegression", objective.form))
        elif eta is not None:
            eta /= size_in_units(objective.form, self.units)
        else:
            along = select(objective.cardinality, objective.gradient(point))
            eta = normalised_step(objective, point, along) or 1.0
        return HTSVRGState(point, point, eta, best=point.value)

    def step(self, objective: Objective, state: HTSVRGState, context: Context) -> HTSVRGState:
        reference, eta = state.reference, state.step_size
        following, table = self._stage(objective, state, context.rng)
        if following is reference:  # x^0 was drawn
            return replace(state, worse=state.worse + 1)
        change = relative_change(following.x, reference.x)
        if self.step_size is None and not following.value <= reference.value * (1.0 + 1e-12):
            eta *= 0.5
            if following.value > state.best:  # do not go on from a worse point
                change = np.inf
                following, table = reference, state.table
        last = state.point if state.debiased and not change <= self.tol else None
        point = pruned(objective, context.restricted, following, last)
        improved = point.value < state.best
        return HTSVRGState(
            following,
            point,
            eta,
            change,
            best=min(state.best, point.value),
            worse=0 if improved else state.worse + 1,
            debiased=True,
            table=table,
        )

    def _stage(
        self, objective: Objective, state: HTSVRGState, rng: np.random.Generator
    ) -> tuple[Point, Table | None]:
        """Return the point that a stage ends at, and the memory of HT-SAGA."""
        form = cast("SparseRegression", objective.form)
        saga = self.variance_reduction == "saga"
        reference, eta = state.reference, state.step_size
        old = state.table or _derivatives(objective, reference)
        if saga:
            old = tuple(part.copy() for part in old)
            drift = eta * _correlations(form, old)  # of the remembered gradients
            objective.work.passes += 0.5
        else:
            drift = eta * objective.gradient(reference)  # eta mu, once a stage
        ridged = bool(np.any(form.ridge))
        count = self._count(form)
        uniform, steps = self.sampling == "uniform", self._length(count, rng)
        if steps == 0:
            return reference, None
        k = relaxed_budget(objective, self.relaxation)
        support, x = reference.support, reference.x
        anchor = np.zeros_like(x) if saga else reference.x  # where the ridge is in the drift
        for number in range(steps):
            if not uniform and number % count == 0:
                batches = epoch(objective, count, rng)
            batch = drawn_block(objective, count, rng) if uniform else next(batches, None)
            if batch is None:  # fewer observations than batches
                continue
            b: FloatArray | None = None
            for part in batch:
                loss = cast("Loss", form.terms[part.index].loss)
                u = part.margins(part.design.matvec(x))
                difference = loss.gradient(u, part.target, part.weights)
                difference -= old[part.index][part.rows]
                if saga:
                    old[part.index][part.rows] += difference
                moved = part.design.rmatvec(-eta * difference)
                b = moved if b is None else b + moved
            if b is None:
                continue
            following = count * b - drift
            if saga:
                drift -= b
            b = following
            b[support] += x[support]
            if ridged:
                near = np.union1d(support, reference.support)
                b[near] -= eta * rowwise(form.ridge[near], x[near] - anchor[near])
            support, values = project(objective, b, k=k)  # H_k, then the ball
            x = np.zeros_like(x)
            x[support] = values
            if self.radius is not None:
                x /= max(1.0, float(np.linalg.norm(x)) / self.radius)
        return objective.point(support, x[support]), old if saga else None

    def _length(self, count: int, rng: np.random.Generator) -> int:
        """Return the number of inner steps, drawn where the next reference point is."""
        steps = self.inner_epochs * count if self.inner_steps is None else self.inner_steps
        if self.pick == "last" or self.variance_reduction == "saga":
            return steps
        # x^0, ..., x^(m-1) in the paper, x^1, ..., x^m otherwise
        return int(rng.integers(steps)) + (0 if self.sampling == "uniform" else 1)

    def _count(self, form: SparseRegression) -> int:
        if self.batches is not None:
            return self.batches
        if self.sampling == "uniform":
            return max(1, sum(int(term.target.shape[0]) for term in form.terms))
        return batch_count(form)

    def published_iterate(self, state: HTSVRGState) -> Point:
        return state.reference

    def residual(self, state: HTSVRGState) -> float:
        return state.change

    def stopped(self, objective: Objective, state: HTSVRGState) -> Stop | None:
        if np.isnan(state.change):
            return Stop.NON_FINITE
        if state.change <= self.tol:
            return Stop.CONVERGED
        return Stop.STALLED if state.worse >= self.patience else None


def _spectral_step(form: SparseRegression) -> float:
    r"""Return :math:`2 / \|A\|^2` for the mean of the losses, in units of the objective.

    The mean is the objective over the sum of the weights, which is ``n`` times one of them where
    they are equal; the largest of them counts where they are not.
    """
    rows = sum(int(term.target.shape[0]) for term in form.terms)
    size = sum(
        float(term.weights.max(initial=0.0)) * term.design.spectral_norm().value ** 2
        for term in form.terms
    )
    return 2.0 / (rows * size) if size > 0.0 else 1.0


def _derivatives(objective: Objective, at: Point) -> Table:
    form = cast("SparseRegression", objective.form)
    return tuple(
        cast("Loss", term.loss).gradient(margins(term, z), term.target, term.weights)
        for term, z in zip(form.terms, predictions(objective, at), strict=True)
    )


def _correlations(form: SparseRegression, slopes: Table) -> FloatArray:
    """Return the sum over all observations of their slope times their row."""
    out = np.zeros(form.shape)
    for term, a in zip(form.terms, slopes, strict=True):
        out += term.design.rmatvec(a)
    return out
