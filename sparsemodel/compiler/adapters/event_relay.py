"""Iterations on an easier problem, reported with the objective of the original one."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import final

import numpy as np

from sparsemodel.interfaces import Context, Iteration, Objective, Result, priced


@final
class EventRelay:
    """Evaluates each iterate of an inner run on the original objective.

    Callbacks, progress and pictures then show one objective throughout, price included, whatever
    was smoothed or left out for the backend. Costs a product with the columns of the support for
    each iteration.
    """

    def __init__(self, objective: Objective, context: Context) -> None:
        self._objective = objective
        self._listener = context.on_iterate
        self._began = time.perf_counter()
        self._best = np.inf
        self.history: list[Iteration] = []
        """All iterations so far, counted through."""

    def listening_to(self, context: Context) -> Context:
        """Return the context for an inner run, whose iterations are passed on."""
        return replace(context, on_iterate=self)

    def complete(self, result: Result, before: int) -> None:
        """Take the history of a backend that reported nothing while it ran.

        ``before`` is how long :attr:`history` was when it began.
        """
        if len(self.history) == before:
            for event in result.history:
                self._translated(event)

    def __call__(self, event: Iteration) -> bool:
        event = self._translated(event)
        return self._listener is not None and self._listener(event) is True

    def _translated(self, event: Iteration) -> Iteration:
        value = priced(self._objective, self._objective.point(event.support, event.values))
        self._best = min(self._best, value)
        translated = replace(
            event,
            index=len(self.history) + 1,
            value=value,
            best=self._best,
            elapsed=time.perf_counter() - self._began,
        )
        self.history.append(translated)
        return translated
