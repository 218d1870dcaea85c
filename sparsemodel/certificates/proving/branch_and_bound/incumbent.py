"""Better points found on the way: supports read off relaxations, refitted on the original data."""

from __future__ import annotations

import numpy as np

from sparsemodel.certificates.statements.objective_interval import primal
from sparsemodel.interfaces import (
    FloatArray,
    IntArray,
    SparseRegression,
    UnboundedError,
)
from sparsemodel.numerics import RegressionObjective, select
from sparsemodel.numerics.minimisers.service import has_kinks, minimise_restricted


class Incumbent:
    """The best feasible point so far; supports are refitted once each."""

    def __init__(self, form: SparseRegression, x: FloatArray) -> None:
        self.form: SparseRegression = form
        self.x: FloatArray = x
        found = primal(form, x)
        self.upper: float = found.upper if not found.violations else np.inf
        self._objective = RegressionObjective(form)
        self._tried: set[bytes] = set()
        self._kinked = has_kinks(form)

    def offer(self, x: FloatArray) -> bool:
        """Refit the support of the ``k`` largest units of ``x``; return whether that is better."""
        sparsity = self.form.sparsity
        better = self.refit(select(sparsity, x))
        if sparsity.price > 0.0:
            # Fewer units may be better: take them away one by one, the smallest first.
            for k in range(min(sparsity.budget, sparsity.count(x)), -1, -1):
                better = self.refit(select(sparsity, x, k=k)) or better
        return better

    def refit(self, support: IntArray) -> bool:
        """Minimise on a support and keep the point if it is feasible and better."""
        key = support.tobytes()
        if key in self._tried:
            return False
        self._tried.add(key)
        before = self.upper
        self._minimise(support)
        return self.upper < before

    def minimum(self, support: IntArray) -> FloatArray | None:
        """Return the minimiser on a support, keeping it if it is feasible and better.

        None where its gradient would prove nothing: losses with kinks, an objective that is
        unbounded there.
        """
        return None if self._kinked else self._minimise(support)

    def _minimise(self, support: IntArray) -> FloatArray | None:
        try:
            point = minimise_restricted(self._objective, support, self._objective.origin())
        except UnboundedError:
            return None
        if not np.isfinite(point.value):
            return None
        found = primal(self.form, point.x)
        if not found.violations and found.upper < self.upper:
            self.x = point.x
            self.upper = found.upper
        return point.x


__all__ = ["Incumbent"]
