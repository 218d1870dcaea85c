"""Better points found on the way: supports read off relaxations, refitted on the original data."""

from __future__ import annotations

import numpy as np

from sparsemodel.certificates.primal import primal
from sparsemodel.interfaces import (
    FloatArray,
    IntArray,
    SparseRegression,
    TwiceDifferentiable,
    UnboundedError,
)
from sparsemodel.numerics import RegressionObjective, minimise_on_support, select


class Incumbent:
    """The best feasible point so far; supports are refitted once each."""

    def __init__(self, form: SparseRegression, x: FloatArray) -> None:
        self.form = form
        self.x = x
        found = primal(form, x)
        self.upper = found.upper if not found.violations else np.inf
        self._objective = RegressionObjective(form)
        self._tried: set[bytes] = set()
        self._able = all(isinstance(t.loss, TwiceDifferentiable) for t in form.terms)

    def offer(self, x: FloatArray) -> bool:
        """Refit the support of the ``k`` largest units of ``x``; return whether that is better."""
        if not self._able:
            return False
        sparsity = self.form.sparsity
        better = self.refit(select(sparsity, x))
        if sparsity.price > 0.0:
            # Fewer units may be better: take them away one by one, the smallest first.
            for k in range(min(sparsity.k, sparsity.count(x)), -1, -1):
                better = self.refit(select(sparsity, x, k=k)) or better
        return better

    def refit(self, support: IntArray) -> bool:
        """Minimise on a support and keep the point if it is feasible and better."""
        key = support.tobytes()
        if key in self._tried:
            return False
        self._tried.add(key)
        before = self.upper
        self.minimum(support)
        return self.upper < before

    def minimum(self, support: IntArray) -> FloatArray | None:
        """Return the minimiser on a support, keeping it if it is feasible and better.

        None where it cannot be had: nonsmooth losses, bounds, an objective unbounded there.
        """
        if not self._able or self.form.box is not None:
            return None
        try:
            point = minimise_on_support(self._objective, support, self._objective.origin())
        except UnboundedError:
            return None
        found = primal(self.form, point.x)
        if not found.violations and found.upper < self.upper:
            self.x, self.upper = point.x, found.upper
        return point.x


__all__ = ["Incumbent"]
