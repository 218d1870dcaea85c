r"""Squared losses and linear terms as one quadratic, with bounds on what rounding did to it.

.. math:: P(x) = c_0 + \tfrac12 x^T H x - g^T x + \tfrac12 \sum_j \lambda_j x_j^2, \qquad
          H = \sum_t A_t^T \mathrm{diag}(c_t) A_t,\; g = \sum_t A_t^T \mathrm{diag}(c_t)(y_t - o_t)

With :math:`s_j = \sqrt{H_{jj}}` and :math:`Y^2 = \sum c (y - o)^2` the inequality of Cauchy and
Schwarz bounds the errors of the computed quantities by :math:`\gamma_m s_i s_j` and
:math:`\gamma_m s_j Y` (Higham, *Accuracy and Stability of Numerical Algorithms*, section 3.5).
A linear term takes its slopes from ``g``; its errors are counted by a larger ``s`` and ``Y``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dpotri
from scipy.sparse.linalg import ArpackError, eigsh

from sparsemodel.certificates.arithmetic.dualised_rows import DualisedRows
from sparsemodel.certificates.arithmetic.products import adjoint_product, column_norms, spread
from sparsemodel.certificates.arithmetic.rounding import TINY, U, add_up, gamma, norm_up
from sparsemodel.certificates.dual_bounds.diagonal_shift import certainly_psd, squares_hold
from sparsemodel.certificates.dual_bounds.gains import coordinate_gains, half_square_over
from sparsemodel.certificates.proving.node import Minorant
from sparsemodel.compiler.reductions.shift_columns import ShiftColumns
from sparsemodel.interfaces import Box, FloatArray, IntArray, SparseRegression, Term
from sparsemodel.numerics.objectives.hessians import weighted_gram

_WORTH = 0.01
"""Curvature in units of the ridge that is worth a Cholesky factorisation."""

_SLIGHT = 3e-4
"""Share of a column's square below which nothing is expected of curvature. 1000 independent columns
of as many rows have less, and a proof within bounds has 17 parts without it, 155 with it."""


_HUGE = 1e300
"""Square of a column below which no sum of its products with another one overflows."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Quadratic:
    """The quadratic of a regression with squared losses and linear terms.

    That of columns and targets that an intercept shifts, where some are far from zero.
    """

    hessian: FloatArray
    """``H`` as computed, shape ``(p, p)``, symmetric."""
    linear: FloatArray
    """``g`` as computed."""
    lowest_constant: float
    """Not above the exact ``c_0``."""
    norms: FloatArray
    """Upper bounds on ``s``."""
    aim: float
    """Upper bound on ``Y``."""
    ridge: FloatArray
    rows: int
    unit: float
    r"""The :math:`\gamma_m` of the computed ``H`` and ``g``."""
    sound: bool = True
    """Whether ``H`` may give curvature away: no square of a column underflowed."""
    shifts: ShiftColumns | None = None
    """What was shifted; points of the form itself have another intercept."""
    prices: Term | None = None
    """Slopes of linear constraints, where there may be others."""
    bare: Quadratic | None = None
    """The same without them."""

    @property
    def finite(self) -> bool:
        """Return whether all products are: none is larger than those of a column with itself."""
        return bool(np.all(np.diag(self.hessian) < _HUGE) and np.all(np.isfinite(self.linear)))

    @classmethod
    def of(cls, form: SparseRegression, *, shifted: bool = True) -> Quadratic:
        """Compute the quadratic of ``form``, O(n p^2), of columns nearer to zero if ``shifted``."""
        p = form.sparsity.size
        shifts = ShiftColumns.find(form, targets=True) if shifted else None
        form = form if shifts is None else shifts.apply(form)
        g, h = np.zeros(p), None
        curved = [term for term in form.terms if term.traits.square]
        rows = sum(term.design.sums for term in curved)
        squares = [np.zeros(0)]
        for term in curved:
            centre, weights = term.squares()
            aim = centre if term.offset is None else centre - term.offset
            weighted = weights * aim
            own = weighted_gram(term.design, weights)
            h = own if h is None else h + own
            g += adjoint_product(term.design, weighted)
            squares.append(weighted * aim)
        # Sparse products may round both triangles differently; factorisations read one of them.
        h = np.zeros((p, p)) if h is None else 0.5 * h + 0.5 * h.T
        energy = math.fsum(np.concatenate(squares))
        unit = gamma(rows + len(form.terms) + 64)
        lowest = form.constant + 0.5 * energy * (1.0 - 16.0 * U)
        lowest -= 4.0 * U * (abs(form.constant) + energy) + TINY * rows
        norms = np.sqrt(np.diag(h)) * (1.0 + unit) + 1e-150 * math.sqrt(rows)
        aim_up = math.sqrt(energy) * (1.0 + 32.0 * U) + 1e-150 * math.sqrt(rows)
        error = np.zeros(p)
        prices = None
        for term in form.terms:
            if isinstance(term.loss, DualisedRows):
                prices = term
            elif not term.traits.square:
                lowest += _add_linear(term, g, error, len(form.terms))
                lowest -= 2.0 * U * abs(lowest)
        if error.any():
            norms, aim_up = _absorbed(error / unit, norms, aim_up)
        sound = squares_hold(form)
        found = cls(h, g, lowest, norms, aim_up, form.ridge, rows, unit, sound, shifts)
        return found if prices is None else found._priced(prices)

    def at(self, slopes: FloatArray) -> Quadratic:
        """Return the quadratic at other slopes of the linear constraints.

        Raises
        ------
        ValueError
            When they do not fit, or there are no slopes to choose.
        """
        if (
            self.prices is None
            or self.bare is None
            or not isinstance(self.prices.loss, DualisedRows)
        ):
            raise ValueError("slopes without linear constraints")
        return self.bare._priced(self.prices.loss.term(slopes))

    def _priced(self, prices: Term) -> Quadratic:
        g, error = self.linear.copy(), np.zeros(self.linear.size)
        lowest = self.lowest_constant + _add_linear(prices, g, error, 8)
        lowest -= 2.0 * U * abs(lowest)
        norms, aim = _absorbed(error / self.unit, self.norms, self.aim)
        return replace(
            self,
            linear=g,
            lowest_constant=lowest,
            norms=norms,
            aim=aim,
            prices=prices,
            bare=self,
        )


def _add_linear(term: Term, g: FloatArray, error: FloatArray, terms: int) -> float:
    """Take a linear term's slopes from ``g``, add to its error, and return a lower constant."""
    slopes = term.slopes()
    g -= adjoint_product(term.design, slopes)
    # The product, the weights, and the sums over terms.
    count = term.design.shape[0] + terms + 64
    error += spread(column_norms(term.design), gamma(count) * norm_up(slopes, axis=0))
    if term.offset is None:
        return 0.0
    products = slopes * term.offset
    size = add_up(np.abs(products))
    return math.fsum(products) - 8.0 * U * size


def _absorbed(reach: FloatArray, norms: FloatArray, aim: float) -> tuple[FloatArray, float]:
    """Return larger ``(norms, aim)`` with ``norms * aim`` at least ``reach`` above what it was.

    So the errors of linear terms are counted with those of the squared ones. A column that the
    squared losses hardly see gets a larger norm, the others a larger aim.
    """
    largest = float(norms.max())
    seen = np.maximum(norms, 1e-3 * largest) if largest > 0.0 else np.ones_like(norms)
    more = (aim + float(np.max(reach / seen))) * (1.0 + 16.0 * U)
    return np.maximum(norms, (norms * aim + reach) / more * (1.0 + 16.0 * U)), more


def minorant(
    quadratic: Quadratic,
    active: IntArray,
    balanced: IntArray,
    x: FloatArray,
    delta: FloatArray,
    box: Box | None = None,
    *,
    caution: float = 1.0,
) -> Minorant | None:
    r"""Return the tangent minorant of the quadratic less :math:`\frac12 x^T \Delta x` at ``x``.

    Parameters
    ----------
    active
        Coordinates that may be nonzero, without those in ``balanced``.
    balanced
        Coordinates without ridge that are always in. Exact arithmetic has a point near ``x`` where
        their slopes vanish; the minorant is taken there.
    x
        Values of the active coordinates, then of the balanced ones.
    delta
        Curvature to take out, for the active coordinates; that it may be taken is for the
        caller to have proved.
    box
        Bounds on all coordinates.
    caution
        Multiple of the rounding allowance to subtract, see :data:`CAUTION`.

    Returns
    -------
    Minorant or None
        None when the balanced columns may be linearly dependent.

    Notes
    -----
    O(p |support of x|).
    """
    q = quadratic
    index = np.concatenate([active, balanced])
    count = active.size
    on = np.flatnonzero(x)
    s = q.norms[index]
    values = x[on]
    weight = float(np.sum(s[on] * np.abs(values))) * (1.0 + gamma(on.size + 8))
    if 4 * index.size < q.linear.size:
        product = values @ q.hessian[np.ix_(index[on], index)]
    else:  # whole rows are copied faster than single entries
        product = (values @ q.hessian[index[on]])[index]
    shift = np.zeros(index.size)
    shift[:count] = delta * x[:count]
    g = q.linear[index]
    error = (q.unit + gamma(on.size + 8)) * (1.0 + 2.0 * q.unit) * weight * s
    moved = product - shift
    rounding = 8.0 * U * (np.abs(product) + np.abs(shift))
    v = moved - g
    spread = error + rounding + q.unit * q.aim * s + 8.0 * U * (np.abs(moved) + np.abs(g))
    pieces = values * moved[on]
    energy = 0.5 * math.fsum(pieces)
    sizes = np.abs(values)
    slack = math.fsum(sizes * (error + rounding)[on]) + 8.0 * U * math.fsum(np.abs(pieces))
    slack += TINY * (on.size + 1.0) * (1.0 + math.fsum(sizes))  # products that underflow
    if balanced.size:
        own = s[count:]
        lowest = _lowest_eigenvalue(q, balanced, own)
        if not lowest > 0.0:
            return None
        reach = float(norm_up((np.abs(v[count:]) + spread[count:]) / own)) / lowest
        reach *= 1.0 + 64.0 * U
        width = math.sqrt(balanced.size) * reach * (1.0 + 8.0 * U)
        spread = spread + s * width
        tilt = float(norm_up((np.abs(moved[count:]) + (error + rounding)[count:]) / own))
        slack += tilt * reach + width * width
    slack *= caution
    spread = spread * caution
    base = q.lowest_constant - energy - slack
    base -= caution * 8.0 * U * (abs(q.lowest_constant) + abs(energy) + slack)
    curvature = np.nextafter(q.ridge[active] + delta, 0.0)
    if box is None:
        reach_up = (np.abs(v[:count]) + spread[:count]) * (1.0 + 8.0 * U) + TINY
        gains = half_square_over(reach_up, curvature)
    else:
        ends = box.chosen
        own = Box(ends.lower[active], ends.upper[active])
        gains = coordinate_gains(v[:count], spread[:count] + TINY, curvature, own)
    if not (math.isfinite(base) and not np.any(np.isnan(gains))):
        return None
    return Minorant(base, gains)


def _lowest_eigenvalue(q: Quadratic, balanced: IntArray, own: FloatArray) -> float:
    """Return a lower bound on the least eigenvalue of the balanced columns, scaled to norm one."""
    scaled = q.hessian[np.ix_(balanced, balanced)] / np.outer(own, own)
    size = int(balanced.size)
    return float(np.linalg.eigvalsh(scaled)[0]) - size * (q.unit + 64.0 * size * U)


def extraction(q: Quadratic, active: IntArray, balanced: IntArray) -> FloatArray | None:
    r"""Return proved curvature for ``active``, :math:`m\,\mathrm{diag}(1/(S^{-1})_{jj})`.

    ``S`` is the Schur complement of the balanced coordinates. None when there is too little to
    be worth its cost: at the scale of the ridge or of the columns, or where there are fewer rows
    than columns.
    One Cholesky factorisation for the choice, one for the proof.
    """
    size = active.size
    if not size or size + balanced.size > q.rows or not q.sound:
        return None
    index = np.concatenate([active, balanced])
    h = q.hessian[np.ix_(index, index)]
    schur = h[:size, :size].copy()
    try:
        if balanced.size:
            factor = cho_factor(h[size:, size:], lower=True)
            schur -= h[:size, size:] @ cho_solve(factor, h[size:, :size])
        lower, _ = cho_factor(schur, lower=True, overwrite_a=True)
    except np.linalg.LinAlgError:
        return None
    inverse, failed = dpotri(lower, lower=1)
    if failed:
        return None
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    if not (np.all(np.isfinite(inverse)) and np.all(np.diag(inverse) > 0.0)):
        return None
    root = 1.0 / np.sqrt(np.diag(inverse))
    inverse *= root[:, None]
    inverse *= root
    largest = _largest_eigenvalue(inverse)
    diagonal = np.square(root) / largest
    slight = np.maximum(_WORTH * q.ridge[active], _SLIGHT * np.square(q.norms[active]))
    if not np.all(np.isfinite(diagonal)) or np.all(diagonal < slight):
        return None
    # Cholesky's margin counts the sums over terms as well: a few rows more than there are.
    for shrink in (2e-3, 5e-2):
        out = diagonal * (1.0 - shrink)
        full = np.concatenate([out, np.zeros(balanced.size)])
        if certainly_psd(h.copy(), full, q.rows + 64):
            return np.asarray(out)
    return None


def _largest_eigenvalue(matrix: FloatArray) -> float:
    """Estimate the largest eigenvalue, to a share of about 1e-3."""
    if matrix.shape[0] < 32:
        return float(np.linalg.eigvalsh(matrix)[-1])
    start = 1.0 + 1e-3 * np.cos(np.arange(matrix.shape[0]))
    try:
        found = eigsh(matrix, k=1, which="LA", v0=start, tol=1e-3, return_eigenvectors=False)
    except ArpackError:
        return float(np.abs(matrix).sum(axis=0).max())  # never below it
    return float(found[0])
