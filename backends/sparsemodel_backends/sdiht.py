"""Stochastic dual iterative hard thresholding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, cast, final

import numpy as np

from sparsemodel.interfaces import (
    Access,
    Capabilities,
    Context,
    IntervalConjugable,
    Loss,
    Objective,
    SparseRegression,
    check_options,
)
from sparsemodel.interfaces.self_description import Theorem
from sparsemodel.numerics import (
    Batch,
    batch_count,
    conjugate_slope,
    correlations,
    drawn_block,
    epoch,
    primal_of,
)
from sparsemodel_backends.diht import (
    SHARED,
    DIHTState,
    DualAscent,
    advance,
    ascend,
    dual_curvature,
    first_state,
    shrunk,
)
from sparsemodel_backends.theorems.diht import drawn_theorems


@final
@dataclass(frozen=True, slots=True)
class SDIHT(DualAscent):
    r"""Dual ascent on one random batch of observations after the other.

    For a batch ``J``: :math:`a_J \leftarrow P_F(a_J + \eta (X_J w - (\ell_J^*)'(a_J)))`,
    :math:`q \leftarrow q + X_J^\top (c_J \Delta a_J)`, :math:`w = H_k(-q / \lambda)` (Yuan, Liu,
    Wang, Liu and Metaxas 2020, Algorithm 2). An iteration here is an epoch: every observation
    once, in a new random order. Without a start, one step on all observations (Algorithm 1) comes
    first, so that the first support is chosen from all of them.

    Parameters
    ----------
    batches
        Batches per epoch; None takes up to 50, as many as keep their ``O(p)`` work below a pass.
    scale
        ``c`` in the step :math:`c / (t + 2)` for losses that are not smooth; smooth ones take
        their smoothness ``L``. ``t`` counts epochs (the paper counts batches, with a step that is
        as many times larger and overshoots in the first epoch).
    sampling
        ``"epochs"`` as above; ``"uniform"`` as printed: blocks of consecutive observations, each
        drawn from all of them, with the step :math:`m L / (t + 2)` for ``m`` blocks, ``t``
        counting blocks, and no first step on all observations. An iteration is ``m`` blocks.
    schedule
        As in :class:`~sparsemodel_backends.diht.DIHT`.
    step_size
        As in :class:`~sparsemodel_backends.diht.DIHT`, for Theorem 22.
    restarts
        As in :class:`~sparsemodel_backends.diht.DIHT`, once an epoch.
    tol
        Stops when the gap is below ``tol`` times the size of the objective.
    max_iter
        Epochs.
    patience
        Epochs in which the gap does not become smaller by a thousandth after which the run ends.

    Notes
    -----
    About two passes and ``O(p)`` per batch an epoch. Steps begin where a batch's ascent is
    expected to be stable, as in :class:`~sparsemodel_backends.diht.DIHT`.

    Literal mode is ``sampling="uniform"`` without restarts; ``batches`` gives the paper's ``m``,
    ``schedule="constant"`` and ``step_size`` the step of Theorem 22. The ``c`` of losses that are
    not smooth is 1, where the paper tunes it by a grid search; ``scale`` gives another.
    """

    batches: int | None = None
    scale: float = 1.0
    restarts: bool = True
    sampling: Literal["epochs", "uniform"] = "epochs"
    schedule: Literal["decreasing", "constant"] = "decreasing"
    step_size: float | None = None
    tol: float = 1e-6
    max_iter: int = 500
    patience: int = 100

    name: ClassVar[str] = "sdiht"
    reference: ClassVar[str] = "Yuan, Liu, Wang, Liu and Metaxas (JMLR 2020), Algorithm 2"
    guarantee: ClassVar[str] = (
        "as published, the expected duality gap tends to zero as 1/sqrt(t) for losses with a "
        "Lipschitz derivative and a conjugate whose domain and slopes are bounded (smoothed hinge, "
        "Huber) when lambda min |w_S| exceeds the largest gradient at the minimiser (Yuan et al. "
        "2020, Theorem 19)"
    )
    published: ClassVar[Mapping[str, Any] | None] = {
        "sampling": "uniform",
        "restarts": False,
        "tol": 0.0,
        "patience": 2**62,
    }
    capabilities: ClassVar[Capabilities] = Capabilities(
        facets=(Loss, IntervalConjugable),
        access=Access.PRODUCTS | Access.ROWS,
        smooth=False,
        ridge=True,
        matrix=False,
        box=True,
        price=True,
    )

    def theorems(self) -> tuple[Theorem, ...]:
        return drawn_theorems(self.schedule, self.step_size)

    def __post_init__(self) -> None:
        check_options(
            self,
            batches="at least 1 or None",
            scale="positive",
            sampling="'epochs' or 'uniform'",
            **SHARED,
        )

    def init(self, objective: Objective, context: Context) -> DIHTState:
        first = first_state(objective, context, self)
        if context.start is not None or self.sampling == "uniform":
            return first
        # A first support chosen from a few observations would be hard to leave.
        form = cast("SparseRegression", objective.form)
        first = replace(first, scale=self.scale)
        a = ascend(objective, first, 0)
        q = correlations(objective, a)
        if self.restarts:
            a, q = shrunk(form, a, q)
        following = advance(objective, context, first, a, q, restarts=self.restarts)
        return replace(following, iteration=0)

    def step(self, objective: Objective, state: DIHTState, context: Context) -> DIHTState:
        form = cast("SparseRegression", objective.form)
        count = batch_count(form) if self.batches is None else self.batches
        support, values = state.current.support, state.current.x[state.current.support]
        uniform = self.sampling == "uniform"
        if not uniform and state.iteration & (state.iteration - 1) == 0:
            kappa = max(dual_curvature(form, support), state.kappa)
            state = replace(state, kappa=kappa)
        share = state.kappa * _share(form, support.size, count)
        a = tuple(part.copy() for part in state.a)
        q = state.q.copy()
        w = np.zeros_like(q)
        for t, batch in self._batches(objective, count, state.iteration, context.rng):
            w[support] = values
            for part in batch:
                loss = cast("IntervalConjugable", form.terms[part.index].loss)
                smoothness = form.terms[part.index].traits.upper
                if not np.isfinite(smoothness):
                    smoothness = self.scale
                times = count if uniform else 1.0
                eta = state.constant or times * smoothness / (t + 2.0 + smoothness * share)
                old = a[part.index][part.rows]
                slope = part.margins(part.design.matvec(w))
                slope -= conjugate_slope(loss, old, part.target)
                new = loss.project_dual(old + eta * slope, part.target)
                a[part.index][part.rows] = new
                q += part.design.rmatvec(part.weights * (new - old))
            w[support] = 0.0
            support, values, _ = primal_of(form, q)
        if state.iteration % 10 == 9:  # the sums have gathered rounding
            q = correlations(objective, a)
        return advance(objective, context, state, a, q, restarts=self.restarts)

    def _batches(
        self, objective: Objective, count: int, iteration: int, rng: np.random.Generator
    ) -> Iterator[tuple[int, tuple[Batch, ...]]]:
        """Yield the batches of an iteration with the ``t`` of their steps."""
        if self.sampling == "uniform":
            for t in range(iteration * count, (iteration + 1) * count):
                yield t, drawn_block(objective, count, rng)
        else:
            for batch in epoch(objective, count, rng):
                yield iteration, batch


def _share(form: SparseRegression, k: int, count: int) -> float:
    """Return the part of the dual's curvature that a random batch has, with room to spare.

    Twice the ratio of the square norms of Gaussian matrices of ``n / count`` and ``n`` rows.
    """
    n = max(sum(int(term.target.shape[0]) for term in form.terms), 1)
    rows = max(n / count, 1.0)
    ratio = ((np.sqrt(rows) + np.sqrt(k)) / (np.sqrt(n) + np.sqrt(k))) ** 2
    return float(min(1.0, 2.0 * ratio))
