"""Try every support: the oracle for small problems."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb, lgamma, log
from typing import ClassVar, final

import numpy as np

from sparsemodel.interfaces import (
    Backend,
    Capabilities,
    Context,
    Form,
    IntArray,
    Iteration,
    ModelError,
    Objective,
    Result,
    Role,
    Stop,
    priced,
)


@final
@dataclass(frozen=True, slots=True)
class Exhaustive(Backend):
    r"""Minimise on every support of size ``min(k, units)`` and keep the best.

    The objective never rises when a support grows, so supports of exactly ``k`` units suffice
    (with a price on the cardinality, all sizes up to ``k`` are tried).

    Parameters
    ----------
    max_supports
        Refuses problems with more supports than this.

    Notes
    -----
    :math:`\binom{p}{k}` restricted minimisations. The result is optimal up to the accuracy of
    those; the claim is still only made by a certificate.
    """

    max_supports: int = 200_000

    name: ClassVar[str] = "exhaustive"
    reference: ClassVar[str] = "enumeration"
    guarantee: ClassVar[str] = (
        "the best of all supports, each minimised to its tolerance; certify() proves it where the "
        "problem has a dual bound"
    )
    roles: ClassVar[frozenset[Role]] = frozenset({Role.ENUMERATION})
    capabilities: ClassVar[Capabilities] = Capabilities(
        smooth=False, price=True, box=True, region=True
    )

    def __post_init__(self) -> None:
        if self.max_supports < 1:
            raise ModelError(f"max_supports must be at least 1, not {self.max_supports}.")

    def extra_objections(self, form: Form) -> tuple[str, ...]:
        decades = _decades(form)
        if decades > 10.0:  # the number itself would have thousands of digits
            return (f"would try about 1e{decades:.0f} supports, more than {self.max_supports}",)
        number = _count(form)
        if number > self.max_supports:
            digits = len(str(number))
            shown = str(number) if digits < 10 else f"about 1e{digits - 1}"
            return (f"would try {shown} supports, more than its limit {self.max_supports}",)
        return ()

    def solve(self, objective: Objective, context: Context) -> Result:
        began = time.perf_counter()
        start = objective.origin() if context.start is None else objective.point_from(context.start)
        best, best_value, tried = start, priced(objective, start), 0
        history: list[Iteration] = []
        stop = Stop.CONVERGED
        try:
            for support in _supports(objective.form):
                if context.limits.expired():
                    stop = Stop.TIME_LIMIT
                    break
                if tried == context.limits.max_iter:
                    stop = Stop.MAX_ITERATIONS
                    break
                point = context.restricted(objective, support, start)
                value = priced(objective, point)
                if np.isnan(value):
                    stop = Stop.NON_FINITE
                    break
                tried += 1
                improved = value < best_value
                if improved:
                    best, best_value = point, value
                if not improved and context.on_iterate is None:
                    continue
                event = Iteration(
                    backend=self.name,
                    index=tried,
                    value=value,
                    best=best_value,
                    support=point.support,
                    residual=float("nan"),
                    elapsed=time.perf_counter() - began,
                    values=point.x[point.support],
                )
                if improved:  # the history of all supports would be long and say little
                    history.append(event)
                if context.on_iterate is not None and context.on_iterate(event):
                    stop = Stop.CALLBACK
                    break
        except KeyboardInterrupt:
            stop = Stop.INTERRUPTED
        return Result(best, stop, tried, tuple(history))


def _supports(form: Form) -> Iterator[IntArray]:
    sparsity = form.cardinality
    for size in _sizes(form):
        for units in combinations(range(sparsity.units), size):
            yield sparsity.coordinates(np.array(units, dtype=np.intp))


def _sizes(form: Form) -> range:
    sparsity = form.cardinality
    largest = min(sparsity.budget, sparsity.units)
    return range(0 if sparsity.price > 0.0 else largest, largest + 1)


def _decades(form: Form) -> float:
    """Return the decimal logarithm of the number of supports of the most numerous size."""
    units, sizes = form.cardinality.units, _sizes(form)
    k = min(sizes[-1], max(sizes[0], units // 2))
    return (lgamma(units + 1) - lgamma(k + 1) - lgamma(units - k + 1)) / log(10.0)


def _count(form: Form) -> int:
    return sum(comb(form.cardinality.units, size) for size in _sizes(form))


__all__ = ["Exhaustive"]
