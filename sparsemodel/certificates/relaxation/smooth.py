r"""The smooth half of the relaxation, with the coordinates minimised out that no ridge holds.

An intercept (any free coordinate without ridge or bounds) is minimised exactly at every point,
:math:`\tilde f(x) = \min_b f(x, b)`: the gradient in ``x`` is then that of ``f`` at the best ``b``,
and the dual point balances the intercept by itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import cast, final

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from sparsemodel.certificates.relaxation.profile import minimised, summed
from sparsemodel.interfaces import (
    Curved,
    Design,
    FloatArray,
    IntArray,
    SparseRegression,
    Term,
)
from sparsemodel.numerics.budget import products_cost
from sparsemodel.threads import cross_product, keep_to_one, product

Image = tuple[FloatArray, ...]
"""What is linear in ``x`` and costs a product: predictions, or ``Q x``."""


SQUARE = 2000
"""Coordinates up to which a Hessian is formed where data are read from files (32 MB)."""

_BLOCK = 2**23
"""Numbers in a block of rows that is read (64 MB)."""


class Model(ABC):
    """The Hessian of a smooth function at a point, as products and small blocks."""

    exact: bool = False
    """Whether the Hessian is the same everywhere."""

    @abstractmethod
    def product(self, u: FloatArray) -> FloatArray:
        """Return the Hessian times ``u``."""

    @abstractmethod
    def gram(self, active: IntArray) -> FloatArray:
        """Return the block on ``active``, a fresh array."""

    def gram_cost(self, size: int) -> float:
        """Return the cost of a block of so many coordinates beside that of reading its columns."""
        return 0.0


class Smooth(ABC):
    """A convex differentiable function of the coordinates of a working set."""

    size: tuple[int, ...]
    quadratic: bool = False
    stored: bool = False
    """Whether every product reads files, which a model's Hessian does but once."""

    @abstractmethod
    def image(self, x: FloatArray) -> Image:
        """Return the products that a value needs; linear in ``x``."""

    @abstractmethod
    def value(self, x: FloatArray, image: Image) -> float:
        """Return the value."""

    @abstractmethod
    def gradient(self, x: FloatArray, image: Image) -> tuple[float, FloatArray]:
        """Return the value and the gradient."""

    @abstractmethod
    def model(self, x: FloatArray, image: Image) -> Model | None:
        """Return the quadratic model's Hessian at ``x``; None where there is none."""

    @abstractmethod
    def curvature_guess(self) -> float:
        """Return a guess of the gradient's Lipschitz constant; steps are checked."""


@final
class _Matrix(Model):
    exact = True

    def __init__(self, q: FloatArray) -> None:
        self._q = q

    def product(self, u: FloatArray) -> FloatArray:
        on = np.flatnonzero(u)
        if 4 * on.size < u.size:
            return np.asarray(self._q[:, on] @ u[on])
        return np.asarray(product(self._q, u))

    def gram(self, active: IntArray) -> FloatArray:
        return np.ascontiguousarray(self._q[np.ix_(active, active)])


@final
class _Products(Model):
    """``A^T diag(h) A`` with the free coordinates minimised out."""

    def __init__(
        self,
        designs: tuple[Design, ...],
        weights: tuple[FloatArray, ...],
        free: tuple[FloatArray, ...],
    ) -> None:
        self._designs, self._weights, self._free = designs, weights, free
        self._own: FloatArray | None = None
        if free:
            own = sum(f.T @ (h[:, None] * f) for f, h in zip(free, weights, strict=True))
            self._own = np.linalg.pinv(np.asarray(own), hermitian=True, rcond=1e-13)

    def product(self, u: FloatArray) -> FloatArray:
        # In double, as the gradients that they are solved for: else steps are off by what single
        # precision rounds away, and where columns differ in size the relaxation ends early.
        moved = [design.matvec_in_double(u) for design in self._designs]
        if self._own is not None:
            b = -self._own @ summed(
                [f.T @ (h * m) for f, h, m in zip(self._free, self._weights, moved, strict=True)]
            )
            moved = [m + f @ b for f, m in zip(self._free, moved, strict=True)]
        parts = zip(self._designs, self._weights, moved, strict=True)
        return summed([design.rmatvec_in_double(h * m) for design, h, m in parts])

    def gram_cost(self, size: int) -> float:
        return products_cost(self._designs, 2.0 * size)

    def gram(self, active: IntArray) -> FloatArray:
        parts = [design.restrict(active) for design in self._designs]
        total = summed([part.gram(h) for part, h in zip(parts, self._weights, strict=True)])
        if self._own is None:
            return np.ascontiguousarray(total)
        cross = summed(
            [
                part.rmatvec(h[:, None] * f).T
                for part, f, h in zip(parts, self._free, self._weights, strict=True)
            ]
        )
        return np.ascontiguousarray(total - cross.T @ (self._own @ cross))


def _norm_of(matrix: FloatArray) -> float:
    """Return about the norm of a positive semidefinite matrix, by a few products."""
    v = np.asarray(np.random.default_rng(0).standard_normal(matrix.shape[0]))
    for _ in range(6):
        v = np.asarray(matrix @ (v / max(float(np.linalg.norm(v)), 1e-300)))
    return float(np.linalg.norm(v))


def _in_one_reading(
    designs: tuple[Design, ...],
    weights: tuple[FloatArray, ...],
    free: tuple[FloatArray, ...],
    slopes: tuple[FloatArray, ...] = (),
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return ``A^T diag(h) A`` with the free coordinates minimised out, and ``A^T g``.

    And by how much each column lowers the best free coordinates.
    """
    width, p = (free[0].shape[1] if free else 0), designs[0].shape[1]
    total, gradient = np.zeros((width + p, width + p)), np.zeros(p)
    for i, (design, h) in enumerate(zip(designs, weights, strict=True)):
        for rows, block in design.row_blocks(max(1, _BLOCK // (width + p))):
            every = np.column_stack([free[i][rows], block]) if free else block
            total += every.T @ (h[rows, None] * every)
            gradient += block.T @ slopes[i][rows] if slopes else 0.0
    inside, cross = total[width:, width:], total[:width, width:]
    own = np.linalg.pinv(total[:width, :width], hermitian=True, rcond=1e-13)
    lowered = own @ cross
    return np.ascontiguousarray(inside - cross.T @ lowered), gradient, lowered


@final
class QuadraticSmooth(Smooth):
    r""":math:`\frac12 x^T Q x - g^T x + \mathrm{const}`."""

    def __init__(self, q: FloatArray, g: FloatArray, constant: float) -> None:
        self._q, self._g, self._constant = q, g, constant
        self.size: tuple[int, ...] = g.shape
        self.quadratic = True

    @property
    def parts(self) -> tuple[FloatArray, FloatArray, float]:
        """Return ``Q``, ``g`` and the constant."""
        return self._q, self._g, self._constant

    def image(self, x: FloatArray) -> Image:
        nonzeros = np.count_nonzero(x) if x.ndim == 1 else x.size
        if 4 * nonzeros < x.size:
            on = np.flatnonzero(x)
            return (self._q[:, on] @ x[on],)
        return (product(self._q, x),)

    def value(self, x: FloatArray, image: Image) -> float:
        return float(np.vdot(x, 0.5 * image[0] - self._g)) + self._constant

    def gradient(self, x: FloatArray, image: Image) -> tuple[float, FloatArray]:
        return self.value(x, image), image[0] - self._g

    def model(self, x: FloatArray, image: Image) -> Model | None:
        return _Matrix(self._q) if x.ndim == 1 else None

    def curvature_guess(self) -> float:
        v = np.asarray(np.random.default_rng(0).standard_normal(self._q.shape[0]))
        largest = 0.0
        for _ in range(8):
            norm = float(np.linalg.norm(v))
            if norm == 0.0:
                break
            v = np.asarray(product(self._q, v / norm))
            largest = float(np.linalg.norm(v))
        return 1.05 * largest


@final
class LossSmooth(Smooth):
    r"""Losses of the predictions on a working set, the unbounded coordinates minimised out.

    What columns have in common with the free ones, ``F``, changes nothing but the best ``b``:
    :math:`A x + F b = (A - F M) x + F (b + M x)`. With the weighted projection
    :math:`M = (F^T C F)^+ F^T C A` (for an intercept, the means) steps are as long as centred
    columns allow. The shift stays implicit.
    """

    def __init__(
        self,
        form: SparseRegression,
        coordinates: IntArray,
        free: tuple[FloatArray, ...],
        start: FloatArray | None = None,
        at: FloatArray | None = None,
    ) -> None:
        """``start`` are the free coordinates to begin with, best for the point ``at``."""
        self._form = form
        self._designs: tuple[Design, ...] = tuple(
            t.design if coordinates.size == t.design.shape[1] else t.design.restrict(coordinates)
            for t in form.terms
        )
        streamed = all(design.streamed for design in self._designs)
        curved = form.traits.curved and len(form.shape) == 1
        self.stored = streamed and curved and coordinates.size <= SQUARE
        self._free = free
        width = free[0].shape[1] if free else 0
        self._shift = np.zeros((width, coordinates.size))
        self._b = np.zeros((width, *form.shape[1:])) if start is None else start
        if not self.stored:
            self.shift(at)
        self.size: tuple[int, ...] = (coordinates.size, *form.shape[1:])
        self.gradients: tuple[FloatArray, ...] = ()
        """Gradients of the terms in their predictions at the last point asked for."""

    def image(self, x: FloatArray) -> Image:
        # Steps are judged by differences of values: single precision would hide them.
        products = tuple(design.matvec_in_double(x) for design in self._designs)
        if not self._free:
            return products
        shift = self._shift @ x
        return tuple(u - f @ shift for u, f in zip(products, self._free, strict=True))

    def shift(self, at: FloatArray | None) -> None:
        """Take out what columns have in common with the free ones; these are best for ``at``.

        Products with columns are needed: models from files do without.
        """
        if self._free and not self._shift.any():
            self._shift = self._projection()
            self._b = self._b if at is None else self._b + self._shift @ at

    def best_free(self, x: FloatArray) -> FloatArray:
        """Return the free coordinates at ``x``, where the value was asked for last."""
        return self._b - self._shift @ x

    def value(self, x: FloatArray, image: Image) -> float:
        """Return the value, minimised over the unbounded coordinates from the last ones."""
        found = minimised(self._form.terms, self._free, self._margins(image), self._b)
        value, self.gradients, self._b = found
        return value + self._form.constant

    def gradient(self, x: FloatArray, image: Image) -> tuple[float, FloatArray]:
        value = self.value(x, image)
        out = np.zeros(self.size)
        for design, g in zip(self._designs, self.gradients, strict=True):
            out += design.rmatvec_in_double(g)
        return value, self._without_free(out)

    def _without_free(self, gradient: FloatArray) -> FloatArray:
        """Return the gradient at the best free coordinates from that where they stay."""
        if not self._free:
            return gradient
        pull = summed([f.T @ g for f, g in zip(self._free, self.gradients, strict=True)])
        return np.asarray(gradient - self._shift.T @ pull)

    def model(self, x: FloatArray, image: Image) -> Model | None:
        if x.ndim > 1 or not self._form.traits.curved:
            return None
        return _Products(self._designs, self._curvatures(image), self._free)

    def second_order(
        self, x: FloatArray, image: Image
    ) -> tuple[float, FloatArray, FloatArray, FloatArray]:
        """Return the value, the gradient and the Hessian, in one reading of files.

        And by how much each coordinate lowers the best free ones.
        """
        value, weights = self.value(x, image), self._curvatures(image)
        h, gradient, lowered = _in_one_reading(self._designs, weights, self._free, self.gradients)
        return value, self._without_free(gradient), h, lowered

    def _curvatures(self, image: Image) -> tuple[FloatArray, ...]:
        return tuple(
            t.weights * cast("Curved", t.loss).second_derivative(u, t.target)
            for t, u in zip(self._form.terms, self._margins(image), strict=True)
        )

    def curvature_guess(self) -> float:
        if self.stored:  # one reading, where every product is another
            steepest = tuple(
                t.weights * (t.traits.upper if np.isfinite(t.traits.upper) else 1.0)
                for t in self._form.terms
            )
            return 0.5 * _norm_of(_in_one_reading(self._designs, steepest, self._free)[0])
        total = 0.0
        for i, (term, design) in enumerate(zip(self._form.terms, self._designs, strict=True)):
            bends = term.weights * _typical_curvature(term)
            v = np.random.default_rng(0).standard_normal(design.shape[1])
            norm = 0.0
            for _ in range(2 if design.streamed else 6):  # steps that are too long are shortened
                size = float(np.linalg.norm(v))
                if size == 0.0:
                    break
                v = v / size
                moved = design.matvec(v)
                if self._free:
                    moved = moved - self._free[i] @ (self._shift @ v)
                moved = bends * moved
                v = design.rmatvec(moved)
                if self._free:
                    v = v - self._shift.T @ (self._free[i].T @ moved)
                norm = float(np.linalg.norm(v))
            total += norm
        return 0.5 * total

    def _projection(self) -> FloatArray:
        weights = [term.weights[:, None] for term in self._form.terms]
        weighted = [c * f for c, f in zip(weights, self._free, strict=True)]
        own = summed([f.T @ w for f, w in zip(self._free, weighted, strict=True)])
        cross = summed([d.rmatvec(w).T for d, w in zip(self._designs, weighted, strict=True)])
        return np.linalg.pinv(own, hermitian=True, rcond=1e-13) @ cross

    def _margins(self, image: Image) -> list[FloatArray]:
        out = []
        for i, (term, z) in enumerate(zip(self._form.terms, image, strict=True)):
            u = z if term.offset is None else z + term.offset
            out.append(u + self._free[i] @ self._b if self._free else u)
        return out


def _typical_curvature(term: Term) -> float | FloatArray:
    """Return the largest curvature of a loss, or that near its minimum, in units of its own."""
    if np.isfinite(term.traits.upper):
        return term.traits.upper
    if term.loss.everywhere or not isinstance(term.loss, Curved):
        return 1.0
    found = term.loss.second_derivative(term.loss.inside(term.target), term.target)
    return found if np.any(found) else 1.0


def schur(h: FloatArray, g: FloatArray, keep: IntArray, out: IntArray) -> tuple[FloatArray, ...]:
    """Minimise ``x^T H x/2 - g^T x`` over the coordinates ``out``.

    Returns the matrix, the vector and the constant of what is left on ``keep``, and the pieces
    ``(solve_h, solve_g)`` with ``x_out = solve_g - solve_h x_keep``.
    """
    keep_to_one()
    kept = h[np.ix_(keep, keep)]
    if not out.size:
        return kept, g[keep], np.zeros(1), np.zeros((0, keep.size)), g[:0]
    cross = h[np.ix_(out, keep)]
    factor = cho_factor(h[np.ix_(out, out)], lower=True)
    solve_h, solve_g = cho_solve(factor, cross), cho_solve(factor, g[out])
    constant = np.array([-0.5 * float(np.vdot(g[out], solve_g))])
    left = kept - cross_product(cross, solve_h)
    return left, g[keep] - cross.T @ solve_g, constant, solve_h, solve_g
