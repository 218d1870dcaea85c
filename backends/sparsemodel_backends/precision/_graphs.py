r"""Likelihoods on many small graphs at a time, as far as is needed to tell the best.

Newton's method without eigenvalue bounds comes first: its optimum is a lower bound, and the optimum
itself where it lies within the bounds. Elsewhere these become barriers (see
:func:`~sparsemodel.numerics.precision.log_det_newton.minimise_by_barriers`), whose weights fall as
long as a graph may be the best.
"""

from __future__ import annotations

from typing import cast, final

import numpy as np

from sparsemodel.interfaces import BoolArray, FloatArray, IntArray, Objective
from sparsemodel.interfaces.precision import AnyPrecision, SparsePrecision

_STEPS, _HALVINGS = 60, 40
_ARMIJO, _NOISE, _JITTER = 1e-4, 1e-15, 1e-15
_ENDED, _CENTRAL = 1e-10, 0.1
"""Squared Newton decrements that end a search: without barriers, and in units of their weight."""
_WITHIN = 1e-3
"""How far inside the bounds, as a share of them, a search with barriers begins."""
_REDUCED, _LEAST = 0.05, 1e-9
"""To what share of themselves weights of barriers fall in a stage, and to what in the end."""
_ACCURACY = 1e-7
"""Nats up to which graphs are as good as the best."""
_SHARE = 1e7
"""A diagonal entry over what the others leave of it, whose square is the condition of the Hessian.
Steps and decrements are known up to there; beyond, each pattern is minimised on by itself."""
_LARGEST = 4e10
"""A precision in units of the inverse variance beyond which no optimum is looked for."""


@final
class Graphs:
    """Likelihoods of one or several matrices on many patterns at a time; remembers the best."""

    def __init__(self, objective: Objective) -> None:
        self._form = cast("AnyPrecision", objective.form)
        self._best = np.inf
        """The least sum of likelihoods known, in nats."""

    def rows(self, size: int) -> int:
        """Return how many rows of ``size`` numbers each support takes."""
        return size

    def promising(self, supports: IntArray) -> BoolArray:
        """Return which of the supports, ``(b, m)``, may be the best as far as this can tell."""
        try:
            with np.errstate(all="ignore"):  # what is not finite is not definite, or unknown
                return self._promising([_Fits(part, supports) for part in self._form.parts])
        except np.linalg.LinAlgError:
            return np.ones(len(supports), dtype=bool)

    def _promising(self, fits: list[_Fits]) -> BoolArray:
        shares = np.array(self._form.shares)
        while True:
            self._best = min(self._best, float((shares @ [f.upper for f in fits]).min()))
            promising = shares @ [f.lower for f in fits] <= self._best + _ACCURACY
            narrowed = [fit.narrow(promising) for fit in fits]
            if not any(narrowed):
                return np.asarray(promising)


@final
class _Fits:
    """One likelihood on many patterns of the same size, between a lower and an upper value."""

    def __init__(self, form: SparsePrecision, supports: IntArray) -> None:
        self._form = form
        self._rows, self._cols = form.rows[supports], form.cols[supports]
        self._c = np.where(self._rows == self._cols, 1.0, 2.0)
        self._s = form.covariance[self._rows, self._cols]
        self._x, self._mu = np.where(self._c == 1.0, 1.0 / self._s, 0.0), 0.0
        everything = np.arange(len(supports))
        value, decrement = self._minimised(everything)
        self.lower = np.where(decrement <= 1e3 * _ENDED, value, -np.inf)
        spectrum = np.linalg.eigvalsh(self._matrices(everything, self._x))
        inside = (spectrum[:, 0] >= form.alpha) & (spectrum[:, -1] <= form.beta)
        self.upper = np.where(inside, value, np.inf)
        self._known = inside & np.isfinite(self.lower)

    def narrow(self, promising: BoolArray) -> bool:
        """Bring values nearer where a pattern is promising; return whether any was left to."""
        going = np.flatnonzero(promising & ~self._known)
        if not going.size or self._mu == _LEAST:
            return False
        form = self._form
        if self._mu == 0.0:
            ends = (1.0 + _WITHIN) * form.alpha, (1.0 - _WITHIN) * form.beta
            self._x[going] = np.where(self._c == 1.0, np.clip(1.0 / self._s, *ends), 0.0)[going]
        self._mu = max(_REDUCED * self._mu, _LEAST) if self._mu > 0.0 else 1.0
        value, decrement = self._minimised(going)
        self.upper[going] = np.fmin(self.upper[going], value)
        # On the central path two barriers of order p leave 2 p mu; near to it hardly more.
        central = np.isfinite(value) & (decrement <= self._mu)
        lower = np.where(central, value - 3.0 * form.order * self._mu, -np.inf)
        lower = np.maximum(self.lower[going], lower)
        self.lower[going] = np.where(lower <= self.upper[going], lower, -np.inf)
        return True

    def _minimised(self, going: IntArray) -> tuple[FloatArray, FloatArray]:
        """Move the points of some patterns to where the likelihood with barriers is least.

        Returns their likelihoods and squared Newton decrements, infinite where they escape.
        """
        value, decrement = self._value(going, self._x[going]), np.full(going.size, np.inf)
        left = np.flatnonzero(np.isfinite(value))
        for _ in range(_STEPS):
            at = going[left]
            gradient, step = self._step(at)
            decrement[left] = slope = -np.einsum("bm,bm->b", gradient, step)
            noise = _NOISE * (np.abs(value[left]) + self._size(at))
            t, tried = np.ones(at.size), np.arange(at.size)
            for _ in range(_HALVINGS):
                x = self._x[at[tried]] + t[tried, None] * step[tried]
                after = self._value(at[tried], x)
                lower = after <= (value[left] - _ARMIJO * t * slope + noise)[tried]
                self._x[at[tried[lower]]], value[left[tried[lower]]] = x[lower], after[lower]
                tried = tried[~lower]
                t[tried] *= 0.5
                if not tried.size:
                    break
            away = self._escaped(at)
            decrement[left[away]] = np.inf
            ended = away | (slope <= np.maximum(_CENTRAL * self._mu, np.maximum(noise, _ENDED)))
            ended[tried] = True
            left = left[~ended]
            if not left.size:
                break
        singular = self._singular(going)
        decrement[singular] = np.inf
        return np.where(singular, np.inf, self._likelihood(going, self._x[going])), decrement

    def _singular(self, at: IntArray) -> BoolArray:
        """Return where the Hessian has no inverse that is known."""
        omega = self._matrices(at, self._x[at])
        shares = np.einsum("bii->bi", omega) * np.einsum("bii->bi", np.linalg.inv(omega))
        return np.asarray(~np.all((shares > 0.0) & (shares < _SHARE), axis=1))

    def _escaped(self, at: IntArray) -> BoolArray:
        """Return where points without barriers are beyond all that is looked for."""
        on_diagonal = np.where(self._c[at] == 1.0, self._x[at], 0.0)
        far = (on_diagonal * self._s[at] > _LARGEST) | (on_diagonal > 4.0 * self._form.beta)
        return np.asarray((self._mu == 0.0) & far.any(axis=1))

    def _size(self, at: IntArray) -> FloatArray:
        """Return the sum of the products in the likelihood, which rounding is a share of."""
        return np.asarray(np.abs(self._c[at] * self._s[at] * self._x[at]).sum(axis=1))

    def _step(self, at: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradients and Newton steps at the points of some patterns."""
        b = np.arange(at.size)[:, None]
        rows, cols, c = self._rows[at], self._cols[at], self._c[at]
        gradient, H = c * self._s[at], np.zeros((*rows.shape, rows.shape[1]))
        for weight, matrices in self._parts(at, self._x[at]):
            W = np.linalg.inv(matrices)
            gradient -= weight * c * W[b, rows, cols]
            across, along = W[b, rows], W[b, cols]  # rows of the inverses
            r, q = (np.broadcast_to(v[:, None, :], H.shape) for v in (rows, cols))
            H += abs(weight) * np.take_along_axis(across, r, 2) * np.take_along_axis(along, q, 2)
            H += abs(weight) * np.take_along_axis(across, q, 2) * np.take_along_axis(along, r, 2)
        H *= 0.5 * c[:, :, None] * c[:, None, :]
        d = 1.0 / np.sqrt(np.einsum("bmm->bm", H))
        H *= d[:, :, None] * d[:, None, :]
        np.einsum("bmm->bm", H)[:] += _JITTER
        return gradient, -d * np.linalg.solve(H, (d * gradient)[:, :, None])[:, :, 0]

    def _likelihood(self, at: IntArray, x: FloatArray) -> FloatArray:
        products = np.einsum("bm,bm->b", self._c[at] * self._s[at], x)
        return np.asarray(products - _logdet(self._matrices(at, x)))

    def _value(self, at: IntArray, x: FloatArray) -> FloatArray:
        """Return the likelihoods with barriers; NaN out of bounds."""
        value = np.einsum("bm,bm->b", self._c[at] * self._s[at], x)
        for weight, matrices in self._parts(at, x):
            value -= abs(weight) * _logdet(matrices)
        return np.asarray(value)

    def _parts(self, at: IntArray, x: FloatArray) -> list[tuple[float, FloatArray]]:
        """Return the matrices that are to be definite, with the weights of their logarithms.

        These are negative where the matrix is subtracted.
        """
        form, omega, one = self._form, self._matrices(at, x), np.eye(self._form.order)
        parts = [(1.0, omega)]
        if self._mu > 0.0 and form.alpha > 0.0:
            parts.append((self._mu, omega - form.alpha * one))
        if self._mu > 0.0 and np.isfinite(form.beta):
            parts.append((-self._mu, form.beta * one - omega))
        return parts

    def _matrices(self, at: IntArray, x: FloatArray) -> FloatArray:
        """Return the matrices with the entries ``x`` on some patterns."""
        p, b = self._form.order, np.arange(at.size)[:, None]
        out = np.zeros((at.size, p, p))
        out[b, self._rows[at], self._cols[at]] = out[b, self._cols[at], self._rows[at]] = x
        return out


def _logdet(matrices: FloatArray) -> FloatArray:
    """Return log-determinants by elimination; NaN where a matrix is not positive definite."""
    A, out = matrices.copy(), np.zeros(len(matrices))
    for i in range(A.shape[1]):
        pivot = A[:, i, i]
        out += np.log(pivot)
        A[:, i + 1 :, i + 1 :] -= A[:, i + 1 :, i, None] * (
            A[:, i, None, i + 1 :] / pivot[:, None, None]
        )
    return out
