"""Iterative hard thresholding with an Armijo step (IIHT)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

from sparsemodel.interfaces import (
    Capabilities,
    Context,
    IterativeBackend,
    Objective,
    Role,
    Stop,
    check_options,
)
from sparsemodel.numerics import Threshold, armijo_step

_SLOW = 1e-3
"""Fall of the objective in a step, as a share, below which an impatient run ends."""


@final
@dataclass(frozen=True, slots=True)
class IIHT(IterativeBackend[Threshold]):
    r"""Projected gradient steps onto the sparse set with sufficient decrease.

    :math:`x^+ = P(x - \alpha_0 \beta^m g)` for the smallest ``m`` with
    :math:`f(x^+) \le f(x) - \frac{\sigma}{2 \alpha_0} \|x^+ - x\|^2`, where ``P`` projects onto
    the sparse points within the bounds (Pan, Zhou, Xiu and Qi 2017, for nonnegative ``x``). The
    first trial :math:`\alpha_0` is the Barzilai-Borwein step unless ``step_size`` is given.

    Parameters
    ----------
    sigma, beta
        Armijo constants. ``sigma`` is in units of :math:`1 / \alpha_0`, so that the method does
        not depend on the units of ``f``; of ``f`` over the square of ``x`` with a ``step_size``.
    step_size
        :math:`\alpha_0` of every iteration; None for Barzilai-Borwein steps.
    tol
        Stops when the relative change of ``x`` falls below it.
    progress
        Stops when the objective falls by no more than this share of it in a step (the mean over
        the last ten or so).
    max_iter
        Iteration limit.

    Notes
    -----
    First order only: one gradient and a few values an iteration, no Hessian.

    Literal mode has :math:`\alpha_0 = 1` and the paper's rule,
    :math:`f(x^+) \le f(x) - \frac{\sigma}{2} \|x^+ - x\|^2`.
    """

    sigma: float = 1e-2
    beta: float = 0.5
    step_size: float | None = None
    tol: float = 1e-9
    progress: float = 0.0
    max_iter: int = 5000

    name: ClassVar[str] = "iiht"
    reference: ClassVar[str] = (
        "Pan, Zhou, Xiu and Qi, A convergent iterative hard thresholding algorithm for "
        "nonnegative sparsity optimization (2017)"
    )
    guarantee: ClassVar[str] = (
        "f falls in every step and every limit is a fixed point of the projected gradient step "
        "when f has a Lipschitz gradient (Pan et al. 2017)"
    )
    purpose: ClassVar[str] = "comes near a support with products alone, whatever the classes"
    roles: ClassVar[frozenset[Role]] = frozenset({Role.APPROACH})
    published: ClassVar[Mapping[str, Any] | None] = {"step_size": 1.0, "sigma": 1e-4, "tol": 0.0}
    capabilities: ClassVar[Capabilities] = Capabilities(box=True, limits=True)

    def __post_init__(self) -> None:
        check_options(
            self,
            beta="in (0, 1)",
            step_size="positive or None",
            sigma="in (0, 1)" if self.step_size is None else "positive",
        )

    def with_patience(self, factor: float) -> IIHT:
        return replace(self, progress=_SLOW) if factor < 1.0 else self

    def init(self, objective: Objective, context: Context) -> Threshold:
        return Threshold(context.first_point(objective))

    def step(self, objective: Objective, state: Threshold, context: Context) -> Threshold:
        return armijo_step(
            objective, state, sigma=self.sigma, beta=self.beta, step_size=self.step_size
        )

    def residual(self, state: Threshold) -> float:
        return state.change

    def stopped(self, objective: Objective, state: Threshold) -> Stop | None:
        if state.stuck:
            return Stop.STALLED
        slow = self.progress > 0.0 and state.pace <= self.progress
        return Stop.CONVERGED if slow or state.change <= self.tol else None
