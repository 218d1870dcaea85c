"""The best steps of a sequence, by dynamic programming."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from sparsemodel.interfaces import (
    Backend,
    Capabilities,
    Context,
    Form,
    Objective,
    Result,
    Role,
    Stop,
    priced,
)
from sparsemodel.numerics import best_segments, costs_of_segments, is_of_segments


@final
@dataclass(frozen=True, slots=True)
class Segments(Backend):
    r"""Find the best steps of a sequence: a loss of a variable whose jumps are counted.

    The loss is squared, or made of straight pieces and parabolas: absolute, quantile, Huber.

    With :math:`C_m(j)` the least cost of the first ``j`` entries in ``m`` segments and
    :math:`c(i, j)` that of one segment,

    .. math:: C_{m+1}(j) = \min_{i < j} C_m(i) + c(i, j),

    where beginnings that cannot be best are left out. :math:`O(k n^2)` at most.

    Notes
    -----
    The result is the best one up to rounding. For a squared loss ``certify()`` proves it by a
    dynamic programme of its own, in which every sum is rounded down; ``verify()`` runs that again
    on the data.

    No literal mode: the recursion above is the algorithm.

    Examples
    --------
    >>> import numpy as np, sparsemodel as sm
    >>> w, t = sm.Variable(6), np.array([1.0, 1.1, 0.9, 4.0, 4.1, 3.9])
    >>> problem = sm.Problem(sm.minimize(sm.squared_loss(w, t)), sm.card(sm.diff(w)) <= 1)
    >>> problem.solve("segments").support
    array([2])
    """

    name: ClassVar[str] = "segments"
    reference: ClassVar[str] = "dynamic programming"
    guarantee: ClassVar[str] = (
        "the best of all choices of jumps; certify() proves it for squared losses"
    )
    always: ClassVar[str] = "the best of all choices of jumps, up to rounding"
    purpose: ClassVar[str] = "finds the best steps of a sequence by dynamic programming"
    roles: ClassVar[frozenset[Role]] = frozenset({Role.SEQUENCE})
    capabilities: ClassVar[Capabilities] = Capabilities(price=True)

    def extra_objections(self, form: Form) -> tuple[str, ...]:
        if is_of_segments(form):
            return ()
        return (
            "needs a squared, absolute, quantile or Huber loss of w with sm.card(sm.diff(w)) <= k",
        )

    def solve(self, objective: Objective, context: Context) -> Result:
        sparsity, start = objective.cardinality, context.first_point(objective)
        places, stop = None, Stop.CONVERGED
        try:
            costs = costs_of_segments(objective.form)
            if costs is not None:
                places = best_segments(
                    costs,
                    min(sparsity.budget, sparsity.units),
                    price=sparsity.price,
                    over=context.limits.expired,
                )
            stop = Stop.TIME_LIMIT if places is None else Stop.CONVERGED
        except KeyboardInterrupt:
            stop = Stop.INTERRUPTED
        if places is None:
            return Result(start, stop, 0)
        point = context.restricted(objective, sparsity.coordinates(places), start)
        better = priced(objective, point) <= priced(objective, start)
        return Result(point if better else start, stop, 1)
