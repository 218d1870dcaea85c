"""The objective as a backend sees it: points, values, gradients, curvature on a support.

Backends are written against :class:`Objective` alone, so that one implementation serves
regressions, custom smooth functions and whatever form comes next.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np

from sparsemodel.interfaces.design import NormBound
from sparsemodel.interfaces.forms.canonical import Form
from sparsemodel.interfaces.forms.cardinality import Cardinality
from sparsemodel.interfaces.numeric import FloatArray, IntArray


@final
@dataclass(slots=True)
class Work:
    """What a run has spent so far; the driver makes one, and every objective of the run adds to it.

    ``passes`` counts in units of one ``A @ x`` plus one ``A.T @ r`` over all terms. The others
    count calls, whoever makes them: a backend that uses its objective, batches of
    :func:`sparsemodel.numerics.epoch` or :func:`~sparsemodel.numerics.drawn_block`, and the
    restricted solver of its context has nothing to count itself.
    """

    passes: float = 0.0
    factorizations: int = 0
    gradients: int = 0
    """Gradients of the whole objective."""
    row_gradients: int = 0
    """Gradients of single observations, in batches of any size."""
    products: int = 0
    """Products with columns of a support: values, restricted gradients, Hessians."""
    restricted_solves: int = 0
    """Minimisations on a support."""


@final
@dataclass(slots=True, eq=False)
class Memo:
    """What has been computed at a point so far."""

    gradient: FloatArray | None = None
    hessian: FloatArray | None = None
    """On the support of the point."""
    curvatures: tuple[FloatArray | None, ...] | None = None
    """Weights of the observations in a Hessian there; None for a term that has none."""
    minimised: bool = False
    """Whether a restricted solver returned it, asked for the accuracy of the arithmetic."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """A point with what was computed on the way to its value; immutable."""

    x: FloatArray
    """The coordinates, full shape; read-only, since value and gradient belong to them."""
    support: IntArray
    """Sorted indices outside which ``x`` is zero; the free coordinates are among them."""
    value: float
    """The objective without the price of the support."""
    state: Any = None
    """What the objective keeps to itself (the predictions, for a regression)."""
    normal: FloatArray | None = field(default=None, repr=False)
    """What the multipliers of constraints beside bounds add to the gradient, full shape; given by
    restricted solvers. ``gradient + normal`` is what counts for optimality then."""
    duals: tuple[FloatArray, ...] | None = field(default=None, repr=False)
    """For each term a slope of its loss (weights inside) that proves the point a minimiser on its
    support; given by restricted solvers that find one, as they do for nonsmooth losses."""
    memo: Memo = field(default_factory=Memo, repr=False)
    """Filled by :meth:`Objective.gradient` when it is first called."""

    def __post_init__(self) -> None:
        if self.x.flags.writeable:  # a view, so that the array stays the caller's
            kept = self.x.view()
            kept.flags.writeable = False
            object.__setattr__(self, "x", kept)

    @property
    def gradient(self) -> FloatArray | None:
        """Return the gradient if it is known already; :meth:`Objective.gradient` computes it."""
        return self.memo.gradient

    def with_gradient(self, gradient: FloatArray | None) -> Point:
        """Return the point with another gradient, or with none, in its memory."""
        known = self.x, self.support, self.value, self.state, self.normal, self.duals
        return Point(*known, Memo(gradient))


@final
class LastFactor:
    """The last support with its solver, for a Hessian that is constant."""

    def __init__(self) -> None:
        self._kept: tuple[IntArray, Callable[[FloatArray], FloatArray]] | None = None

    def get(self, support: IntArray) -> Callable[[FloatArray], FloatArray] | None:
        """Return the solver of ``support`` if it is the one that is kept."""
        known = self._kept is not None and np.array_equal(self._kept[0], support)
        return self._kept[1] if known and self._kept is not None else None

    def keep(self, support: IntArray, solve: Callable[[FloatArray], FloatArray]) -> None:
        """Keep the solver of ``support`` in place of the last one."""
        self._kept = (support.copy(), solve)


class Objective(ABC):
    r"""A convex function of the coordinates; what evaluating it costs is added to :attr:`work`.

    Nothing about an objective changes once it is made: its attributes are set in the constructor,
    and what it remembers are caches of what its data determine.

    Parameters
    ----------
    work
        The counters of the run; None makes new ones.
    """

    work: Work
    """What the run has spent, here and elsewhere."""
    last_factor: LastFactor
    """For the solvers."""

    together: ClassVar[bool] = False
    """Whether several rows of a Hessian, or values along a line, cost as little as one."""

    def __init__(self, work: Work | None = None) -> None:
        self.work = Work() if work is None else work
        self.last_factor = LastFactor()

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__:
            raise AttributeError(
                f"{type(self).__name__}.{name} is set already, and an objective does not change. "
                "What a run counts belongs to its work: objective.work.passes += 1.0."
            )
        super().__setattr__(name, value)

    def explicit_hessian(self, support: IntArray) -> bool:
        """Return whether :meth:`hessian` on ``support`` costs less than products with its columns.

        Where it does not (matrix-free designs), Newton systems are solved by conjugate gradients.
        """
        return True

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

    def values_along(
        self, support: IntArray, values: FloatArray, step: FloatArray, lengths: FloatArray
    ) -> FloatArray:
        """Return the values at ``values + t step`` on ``support`` for some lengths ``t``.

        At once where they cost as little ``together``.
        """
        return np.array([self.point(support, values + t * step).value for t in lengths])

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
        """Return the full gradient, in the shape of ``x`` (kept in the memory of ``at``)."""

    def ranking_gradient(self, at: Point) -> FloatArray:
        """Return the gradient up to errors that do not change which entries are large."""
        return self.gradient(at)

    @abstractmethod
    def restricted_gradient(self, at: Point, support: IntArray) -> FloatArray:
        """Return the gradient on ``support``; O(n |support|) where columns are cheap."""

    def steepness(self, support: IntArray, size: float) -> float:
        """Return what tolerances of gradients on ``support`` are relative to.

        The larger of ``size``, that of the first one, and the size at zero, so that warm starts
        ask for no more. Of losses that are not defined at zero it is that at ordinary predictions.
        """
        zero = self.restricted_gradient(self.origin(), support)
        return max(size, float(np.linalg.norm(zero)))

    @abstractmethod
    def hessian_product(self, at: Point, support: IntArray, v: FloatArray) -> FloatArray:
        """Return the Hessian on ``support`` at ``at``, applied to ``v`` (as ``x[support]``)."""

    @abstractmethod
    def hessian(self, at: Point, support: IntArray) -> FloatArray:
        """Return the Hessian on ``support``, a square matrix over ``x[support].ravel()``."""

    def hessian_root(self, at: Point, support: IntArray) -> FloatArray | None:
        """Return ``R`` with ``R.T @ R`` the Hessian on ``support``, None where none is at hand.

        ``R`` has shape ``(m, q)``, ``m >= q``, and the root of the Hessian's condition number: it
        is asked for where that is large.
        """
        return None

    def hessian_rows(self, at: Point, coordinates: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return rows of the Hessian at ``at``, and its diagonal; for vectors, where ``together``.

        Elsewhere :meth:`full_hessian_product` gives them, one after the other.
        """
        raise NotImplementedError

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
