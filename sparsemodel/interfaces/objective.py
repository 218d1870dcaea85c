"""The objective as a backend sees it: points, values, gradients, curvature on a support.

Backends are written against :class:`Objective` alone, so that one implementation serves
regressions, custom smooth functions and whatever form comes next.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from sparsemodel.interfaces.design import NormBound
from sparsemodel.interfaces.forms import Cardinality, Form
from sparsemodel.interfaces.numeric import FloatArray, IntArray


@final
@dataclass(slots=True, eq=False)
class Point:
    """A point with what was computed on the way to its value. Treat it as immutable."""

    x: FloatArray
    """The coordinates, full shape."""
    support: IntArray
    """Sorted indices outside which ``x`` is zero; the free coordinates are among them."""
    value: float
    """The objective without the price of the support."""
    state: Any = None
    """What the objective keeps to itself (the predictions, for a regression)."""
    gradient: FloatArray | None = field(default=None, repr=False)
    """Filled by :meth:`Objective.gradient` the first time it is asked."""
    normal: FloatArray | None = field(default=None, repr=False)
    """What the multipliers of constraints beside bounds add to the gradient, full shape; filled by
    restricted solvers. ``gradient + normal`` is what counts for optimality then."""
    duals: tuple[FloatArray, ...] | None = field(default=None, repr=False)
    """For each term a slope of its loss (weights inside) that proves the point a minimiser on its
    support; filled by restricted solvers that find one, as they do for nonsmooth losses."""


class Objective(ABC):
    r"""A convex function of the coordinates with the work it costs counted.

    ``passes`` counts in units of one ``A @ x`` plus one ``A.T @ r`` over all terms.
    """

    passes: float = 0.0
    factorizations: int = 0
    explicit_hessian: bool = True
    """Whether :meth:`hessian` costs less than as many full products as it has columns.

    Where it does not (matrix-free designs), Newton systems are solved by conjugate gradients.
    """

    last_factor: tuple[IntArray, Callable[[FloatArray], FloatArray]] | None = None
    """The last support with its solver, for a Hessian that is constant; kept by the solvers."""

    @property
    @abstractmethod
    def form(self) -> Form:
        """Return the canonical form behind this objective."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of ``x``."""
        return self.form.shape

    @property
    def cardinality(self) -> Cardinality:
        """Return the constraint on the support."""
        return self.form.cardinality

    @property
    @abstractmethod
    def quadratic(self) -> bool:
        """Return whether the Hessian is constant."""

    @property
    @abstractmethod
    def smooth(self) -> bool:
        """Return whether the gradient exists everywhere."""

    @property
    @abstractmethod
    def twice_differentiable(self) -> bool:
        """Return whether Hessian products are available."""

    @abstractmethod
    def point(self, support: IntArray, values: FloatArray) -> Point:
        """Return the point that is ``values`` on ``support`` (sorted) and zero elsewhere."""

    def origin(self) -> Point:
        """Return the point zero (on the free coordinates)."""
        free = self.cardinality.free
        return self.point(free, np.zeros((free.size, *self.shape[1:])))

    def point_from(self, x: FloatArray) -> Point:
        """Return the point ``x``; its support is where it is nonzero and the free coordinates."""
        nonzero = x != 0.0 if x.ndim == 1 else np.any(x != 0.0, axis=1)
        nonzero[self.cardinality.free] = True
        support = np.flatnonzero(nonzero)
        return self.point(support, x[support])

    @abstractmethod
    def gradient(self, at: Point) -> FloatArray:
        """Return the full gradient, in the shape of ``x`` (kept in ``at.gradient``)."""

    def ranking_gradient(self, at: Point) -> FloatArray:
        """Return the gradient up to errors that do not change which entries are large."""
        return self.gradient(at)

    @abstractmethod
    def restricted_gradient(self, at: Point, support: IntArray) -> FloatArray:
        """Return the gradient on ``support``; O(n |support|) where columns are cheap."""

    @abstractmethod
    def hessian_product(self, at: Point, support: IntArray, v: FloatArray) -> FloatArray:
        """Return the Hessian on ``support`` at ``at``, applied to ``v`` (as ``x[support]``)."""

    @abstractmethod
    def hessian(self, at: Point, support: IntArray) -> FloatArray:
        """Return the Hessian on ``support``, a square matrix over ``x[support].ravel()``."""

    @abstractmethod
    def full_hessian_product(self, at: Point, support: IntArray, v: FloatArray) -> FloatArray:
        """Return all coordinates of the Hessian applied to ``v`` on ``support`` (one gradient)."""

    def hessian_diagonal(self, at: Point, support: IntArray) -> FloatArray:
        """Return the diagonal of the Hessian on ``support``, in the shape of ``x[support]``."""
        shape = (support.size, *self.shape[1:])
        size = int(np.prod(shape))
        unit, out = np.zeros(size), np.empty(size)
        for j in range(size):
            unit[j] = 1.0
            out[j] = self.hessian_product(at, support, unit.reshape(shape)).ravel()[j]
            unit[j] = 0.0
        return out.reshape(shape)

    @abstractmethod
    def smoothness(self) -> NormBound:
        """Return a global Lipschitz constant of the gradient; ``inf`` when there is none."""

    @abstractmethod
    def strong_convexity(self) -> float:
        """Return a valid global strong-convexity constant (0 when none is known for free)."""

    @abstractmethod
    def infimum(self) -> float:
        """Return a valid lower bound on the objective for free; ``-inf`` when none is known."""


__all__ = ["Objective", "Point"]
