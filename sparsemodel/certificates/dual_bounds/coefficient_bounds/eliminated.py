r"""The quadratic that counted coordinates see: free ones minimised out, errors bounded, scaled.

With ``F`` the free coordinates, :math:`\min_{x_F} P` is a quadratic in the counted ones with the
Schur complement :math:`S = H_{CC} - H_{CF} (H_{FF} + \Lambda_F)^{-1} H_{FC}` as its matrix. The
computed ``S`` is the exact one of a matrix off by ``E``, and the difference of both is exactly
:math:`[I, -X^T]\, E\, [I; -\tilde X]` with the two solutions of the free coordinates. In units of
the columns' norms :math:`|E_{ij}| \le u` and
:math:`\sum_f |X_{fi}| \le \sqrt{|F| / \mu}` with :math:`\mu` the least eigenvalue of the scaled
:math:`H_{FF} + \Lambda_F`: a bound on every entry.

Equal columns, or negative ones, are worth no more together than one of them where neither has a
ridge or bounds, or both one sign, beside an intercept also up to a constant: coefficients add up,
and what both have in common cancels between negative columns. So supports that hold both need no
bounds on their coefficients, and the entry between them is left out of ``S``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from sparsemodel.certificates.arithmetic.rounding import TINY, U, gamma, norm_up, sums_agree
from sparsemodel.certificates.dual_bounds.coefficient_bounds.centred import centred, intercept
from sparsemodel.certificates.proving.gram.quadratic import Quadratic
from sparsemodel.interfaces import BoolArray, FloatArray, IntArray, SparseRegression
from sparsemodel.interfaces.numeric import viewed

_LEAST_EIGENVALUE = 1e-8
"""Least eigenvalue of the scaled free columns that is worth an elimination."""

_CLOSE, _MOST = 5e-7, 1000
"""How close to one the correlation of equal columns comes out, and pairs that are compared."""

_SINGLE = 2.0**-24
_STRIP = 1 << 16
"""Entries that are scaled at a time: few enough to stay in the cache between two steps."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Eliminated:
    r""":math:`\frac12 w^T (G + \Lambda) w - c^T w` for the counted coordinates, in powers of two.

    The exact quadratic has entries within ``unit * sizes[i] * sizes[j]`` of ``gram`` and within
    ``unit * sizes[j] * reach`` of ``linear``.
    """

    counted: IntArray
    """The form's coordinates, in order; columns that are zero are left out."""
    void: IntArray
    """Counted coordinates whose columns and ridges are zero: nothing depends on them."""
    gram: npt.NDArray[np.float32]
    """Rows are looked through many times, and are read twice as fast as in double precision."""
    linear: FloatArray
    ridge: FloatArray
    sizes: FloatArray
    """At least the square roots of the diagonal with its ridge; near one."""
    reach: float
    """At least ``|linear[j]| / sizes[j]``, and the scale of its errors."""
    unit: float
    scale: FloatArray
    """What a scaled coefficient is multiplied with for an original one; powers of two."""
    room: float = 0.0
    """Twice by how much scaled objectives of the points that are meant may be above the infimum;
    0 for minimisers."""


def eliminated(
    form: SparseRegression,
    quadratic: Quadratic | None = None,
    *,
    thorough: bool = False,
    room: float | None = None,
    aim: float = 0.0,
) -> Eliminated | str:
    """Return the quadratic of ``form`` in its counted coordinates, or why there is none.

    ``form`` has squared losses and linear terms, and free coordinates without bounds, but for a
    ``room``: by how much points that are meant may be above the infimum, where not minimisers are.
    O(n p^2) for the Gram matrix, where ``quadratic`` is not known or columns are shifted; those of
    sparse data also when ``thorough``. Errors are at least those of targets of the size ``aim``.
    """
    shifted = centred(form, thorough=thorough)
    q = Quadratic.of(shifted) if quadratic is None or shifted is not form else quadratic
    # Two roundings more for entries that were shifted.
    q = replace(q, unit=q.unit + 8.0 * U)
    if not q.finite:
        return "products of the data overflow"
    every = np.flatnonzero(form.sparsity.counted)
    void = _void(shifted, q, every)
    counted = np.setdiff1d(every, void)
    found = _schur(q, counted, form.sparsity.free)
    if isinstance(found, str):
        return found
    solved, linear, unit, reach = found
    sizes = np.sqrt(np.square(q.norms) + q.ridge)[counted] * (1.0 + 8.0 * U)
    factors = np.exp2(-np.round(np.log2(sizes)))
    reach = max(reach, float(np.max(np.abs(linear) / sizes, initial=0.0))) * (1.0 + 8.0 * U)
    reach = max(reach, gamma(64 * (1 + form.sparsity.free.size)) * aim / (unit + 2.0 * _SINGLE))
    if not (math.isfinite(unit) and unit < 0.1 and math.isfinite(reach)):
        return "rounding leaves nothing of the products of the data"
    # One for all, so that coefficients are of the size of predictions; exact, as powers of two.
    whole = 2.0 ** -round(math.log2(reach)) if reach > 0.0 else 1.0
    gram = _rows(q, counted, solved, factors)
    for i, j in _equal_columns(form, gram, counted) if room is None else ():
        gram[i, j] = gram[j, i] = 0.0
    scale = factors / whole
    if not (np.all(np.isfinite(scale)) and np.all(scale > 0.0)):
        return "the scales of the columns are too far apart"
    return Eliminated(
        counted=counted,
        void=void,
        gram=gram,
        linear=linear * factors * whole,
        ridge=q.ridge[counted] * factors * factors,
        sizes=sizes * factors,
        reach=reach * whole,
        unit=unit + 2.0 * _SINGLE,
        scale=scale,
        room=0.0 if room is None else 2.0 * ((room * whole) * whole) * (1.0 + 8.0 * U) + TINY,
    )


def _void(shifted: SparseRegression, q: Quadratic, counted: IntArray) -> IntArray:
    """Return the coordinates that no term sees: constant columns beside an intercept as well."""
    seen = np.diag(q.hessian)[counted] + q.ridge[counted]
    maybe: IntArray = counted[seen == 0.0]
    if not maybe.size:
        return maybe
    zero: BoolArray = np.ones(maybe.size, dtype=bool)
    for term in shifted.terms:
        zero &= ~np.any(term.design.restrict(maybe).to_array() != 0.0, axis=0)
    found: IntArray = maybe[zero]
    return found


def _equal_columns(
    form: SparseRegression, gram: npt.NDArray[np.float32], counted: IntArray
) -> Iterator[tuple[int, int]]:
    """Yield places in ``counted`` of columns that agree exactly but for their sign.

    Beside an intercept but for a constant as well. Coefficients have no bounds or one sign; those
    with least sizes agree with their sign.
    """
    ends, least = np.tile([[-np.inf], [np.inf]], counted.size), np.zeros(counted.size)
    if form.box is not None:
        ends = np.stack([form.box.lower[counted], form.box.upper[counted]])
        least = least if form.box.least is None else form.box.least[counted]
    signs_only = np.all((ends == 0.0) | np.isinf(ends), axis=0) & (ends[0] < ends[1])
    loose = np.flatnonzero((form.ridge[counted] == 0.0) & (np.diag(gram) > 0.0) & signs_only)
    if loose.size < 2:
        return
    sizes, places = np.sqrt(np.diag(gram)), list[tuple[int, int]]()
    for first, i in enumerate(loose.tolist(), 1):
        rest = loose[first:]  # row by row: as large a matrix again is spared
        close = np.abs(gram[i, rest]) >= (1.0 - _CLOSE) * sizes[i] * sizes[rest]
        places += [(i, j) for j in rest[close].tolist()]
        if len(places) > _MOST:
            return
    found = intercept(form) if len(form.terms) == 1 else None
    shifted = found is not None and bool(np.all(found[1][0] == 1.0))
    for i, j in places:
        cancel = gram[i, j] < 0.0 and max(least[i], least[j]) > 0.0
        if cancel or not np.array_equal(ends[:, i], ends[:, j]):
            continue
        both = np.array([counted[i], counted[j]], dtype=np.intp)
        pairs = [term.design.restrict(both).to_array().T for term in form.terms]
        sign = -1.0 if gram[i, j] > 0.0 else 1.0
        if all(sums_agree(a, sign * b, zero=not shifted) for a, b in pairs):
            yield i, j


def _rows(
    q: Quadratic, counted: IntArray, solved: FloatArray, factors: FloatArray
) -> npt.NDArray[np.float32]:
    """Return the Schur complement in units of the columns, rounded once to single precision.

    A strip of rows at a time, so that nothing else is as large.
    """
    size = counted.size
    out = np.empty((size, size), dtype=np.float32)
    step = max(_STRIP // max(size, 1), 1)
    for first in range(0, size, step):
        rows = slice(first, first + step)
        strip = q.hessian[viewed(counted[rows])][:, viewed(counted)]
        if solved.size:
            strip = strip - solved[:, rows].T @ solved
        strip = strip * factors[rows, None]
        np.multiply(strip, factors, out=out[rows], casting="same_kind")
    return out


def _schur(
    q: Quadratic, counted: IntArray, free: IntArray
) -> tuple[FloatArray, FloatArray, float, float] | str:
    """Return what the Schur complement takes from the matrix, as a factor, and its linear part.

    With them the unit of its errors and their reach.
    """
    linear = q.linear[counted].copy()
    sizes = np.sqrt(np.square(q.norms) + q.ridge)
    if np.any(sizes <= 0.0):
        return "a column is zero"
    reach = max(q.aim, float(np.max(np.abs(q.linear) / sizes, initial=0.0)))
    if not free.size:
        return np.empty((0, counted.size)), linear, q.unit + gamma(8), reach
    f, own = int(free.size), sizes[free]
    unit = q.unit + gamma(8 * f + 64)
    inner = (q.hessian[np.ix_(free, free)] + np.diag(q.ridge[free])) / np.outer(own, own)
    if not np.all(np.isfinite(inner)):
        return "a free column has no length"
    lowest = float(np.linalg.eigvalsh(inner)[0]) - f * (q.unit + 64.0 * f * U)
    if not (lowest > _LEAST_EIGENVALUE and f * unit <= 1e-3 * lowest):
        return "the columns that are always in may be linearly dependent"
    cross = np.column_stack([q.hessian[np.ix_(free, counted)], q.linear[free]]) / own[:, None]
    factor = np.linalg.cholesky(inner)
    solved = solve_triangular(factor, cross, lower=True, check_finite=False)
    linear -= solved[:, :-1].T @ solved[:, -1]
    share = math.sqrt(f / lowest)
    right = float(norm_up(cross[:, -1]))
    reach = max(reach, right / math.sqrt(lowest)) + math.sqrt(f) * right / lowest
    unit *= 1.02 * (1.0 + share) ** 2
    # The linear part has the factor (1 + share) once, and its own reach.
    return solved[:, :-1], linear, unit, 1.02 * reach
