r"""The dual bound: a number that no feasible point can beat, from any dual point.

For any ``a`` in the domains of the conjugates and :math:`v = \sum_t A_t^T (c_t a_t)`,

.. math:: D(a) = \mathrm{const} + \sum_i c_i (a_i o_i - \ell_i^*(a_i))
          - \sum_{j\ \mathrm{free}} h_j(v_j) - \max_{S} \sum_{g \in S} (h_g(v_g) - \gamma)_+
          \;\le\; \min_{x\ \mathrm{feasible}} P(x)

with :math:`h_j(v) = \max_{x_j} -v x_j - \frac{\lambda_j}{2} x_j^2` over the bounds of ``x_j``,
summed over the coordinates of a group, :math:`\gamma` the price of a unit, and ``S`` a set of units
that ``k`` and the limits on parts allow: the best one is found greedily. (Weak duality; Yuan,
Liu, Wang, Liu and Metaxas, JMLR 2020, section 3, for the plain case.)

What is printed is valid for the exact problem: every step is rounded towards minus infinity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import final

import numpy as np

from sparsemodel.certificates.arithmetic.dualised_rows import row_term, with_slopes
from sparsemodel.certificates.arithmetic.products import (
    adjoint_error,
    adjoint_product,
    column_norms,
    spread,
    zero_columns,
)
from sparsemodel.certificates.arithmetic.rounding import CAUTION, TINY, U, add_up, norm_up
from sparsemodel.certificates.dual_bounds.conjugates import (
    TermBound,
    plane_error,
    term_bound,
)
from sparsemodel.certificates.dual_bounds.diagonal_shift import Extraction, gradient_distance
from sparsemodel.certificates.dual_bounds.gains import (
    best_selection,
    coordinate_gains,
    forced_units,
    unit_gains,
)
from sparsemodel.certificates.dual_bounds.unpenalised import (
    endless_coordinates,
    exact_neighbour,
    free_columns,
    unbounded_coordinates,
)
from sparsemodel.compiler.reductions.shift_columns import ShiftColumns
from sparsemodel.interfaces import Conjugable, FloatArray, IntArray, SparseRegression


@final
@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """A lower bound on the objective over all feasible points."""

    value: float
    """Valid as printed: the rounding allowance is subtracted. ``-inf`` says that none was found."""
    allowance: float
    """What was subtracted for rounding."""
    method: str
    reason: str = ""
    """Why the bound is infinite, in words; empty when it is not."""
    gains: FloatArray = field(default_factory=lambda: np.empty(0), repr=False)
    """Upper bounds on the gains ``h_g`` of the counted units."""
    slopes: FloatArray = field(default_factory=lambda: np.empty(0), repr=False)
    """``v``, in the shape of ``x``."""
    base: float = -math.inf
    """The bound before the counted units gain anything: ``value`` is this less their best gains."""

    @property
    def finite(self) -> bool:
        """Return whether anything is proved."""
        return math.isfinite(self.value)


DUAL = "dual bound"
EXTRACTED = "dual bound with curvature taken from the data"
INFIMUM = "infimum of the losses"


def nothing(reason: str, method: str = DUAL) -> Bound:
    """Return the bound that claims nothing, with the reason."""
    return Bound(-math.inf, math.inf, method, reason)


def dual_bound(
    form: SparseRegression,
    duals: tuple[FloatArray | None, ...],
    *,
    at: FloatArray | None = None,
    extraction: Extraction | None = None,
    norms: tuple[FloatArray, ...] | None = None,
    caution: float = 1.0,
    balanced: IntArray | None = None,
) -> Bound:
    """Return ``D(a)``, rounded down so that it is valid for the exact problem.

    Parameters
    ----------
    form
        The problem.
    duals
        ``a`` for each term, in the shape of its predictions. For a term whose conjugate is not
        known these are predictions, and its tangent there bounds it.
    at
        A point; needed with an extraction.
    extraction
        Diagonal curvature taken out of the squared losses; the dual point must then be (close
        to) their gradient at ``at``.
    norms
        ``column_norms`` of every design, when they are known already.
    caution
        Multiple of the rounding allowance to subtract.
    balanced
        Counted coordinates whose slopes are to be exactly zero as well: a dual point nearby where
        they are is looked for.

    Returns
    -------
    Bound
        With value ``-inf`` and a reason when the dual point proves nothing: outside a domain,
        or a coordinate without curvature or bounds whose slope cannot be made zero.

    Notes
    -----
    Costs one ``A.T @ r`` and, unless ``norms`` are given, one pass for the column norms.
    """
    method = DUAL if extraction is None else EXTRACTED
    if any(a is None for a in duals):
        return nothing("a term has no dual point", method)
    place = row_term(form)
    if place is not None:  # the dual point of that term is its slopes
        try:
            form = with_slopes(form, duals[place])
        except ValueError as error:
            return nothing(str(error), method)
    delta = None if extraction is None else extraction.diagonal
    shifts = ShiftColumns.find(form)
    absorbed = shifts is not None and (delta is None or delta[shifts.intercept] == 0.0)
    if shifts is not None and absorbed:  # the same bound: only the intercept moves
        form, norms = shifts.apply(form), None
        at = None if at is None else shifts.carry(at)
    points = tuple(np.asarray(a, dtype=np.float64) for a in duals)
    distances = tuple(plane_error(t, a) for t, a in zip(form.terms, points, strict=True))
    index = unbounded_coordinates(form, delta)
    if extraction is not None:
        if at is None or not form.traits.conjugable:
            return nothing("the extraction of curvature needs a point and squared losses", method)
        having = shifts.having if shifts is not None and absorbed else ()
        distances = gradient_distance(form, points, at, having=having)
    if balanced is not None:
        index = np.union1d(index, balanced)
    if index.size and not form.traits.conjugable:
        return nothing("a coordinate has no ridge and no bounds", method)
    near = _balanced(form, points, distances, index, delta)
    if isinstance(near, str):
        return nothing(near, method)
    distances, index = near
    pieces: list[TermBound] = []
    for term, a, distance in zip(form.terms, points, distances, strict=True):
        piece = term_bound(term, a, distance)
        if isinstance(piece, str):
            return nothing(piece, method)
        pieces.append(piece)
    return _assemble(form, pieces, index, at, extraction, norms, method, caution)


def _balanced(
    form: SparseRegression,
    points: tuple[FloatArray, ...],
    distances: tuple[FloatArray, ...],
    index: IntArray,
    delta: FloatArray | None,
) -> tuple[tuple[FloatArray, ...], IntArray] | str:
    """Return distances within which slopes at ``index`` vanish, and at what else they have to.

    To balance some moves the slopes of others, so that more may have to vanish.
    """
    known = distances
    while True:
        if index.size:
            near = exact_neighbour(form, free_columns(form, index), points, known)
            if isinstance(near, str):
                return near
            distances = near
        if not form.traits.conjugable:
            return distances, index
        more = np.setdiff1d(endless_coordinates(form, points, distances, delta), index)
        if not more.size:
            return distances, index
        index = np.union1d(index, more)


def _assemble(
    form: SparseRegression,
    pieces: list[TermBound],
    balanced: IntArray,
    at: FloatArray | None,
    extraction: Extraction | None,
    norms: tuple[FloatArray, ...] | None,
    method: str,
    caution: float,
) -> Bound:
    """Add up the minorants and minimise them over the sparse set."""
    if norms is None:
        norms = tuple(column_norms(term.design) for term in form.terms)
    v, error = np.zeros(form.shape), np.zeros(form.shape)
    constants, allowance = [form.constant], 0.0
    for term, piece, norm in zip(form.terms, pieces, norms, strict=True):
        product = adjoint_product(term.design, piece.slopes)
        error += adjoint_error(norm, term.design.sums, piece.slopes)
        error += spread(norm, norm_up(piece.slope_error, axis=0))
        v += product
        error += 2.0 * U * np.abs(v)
        more = (caution - 1.0) * piece.allowance
        constants.append(piece.constant - more)
        allowance += piece.allowance + more
    curvature = form.ridge
    if extraction is not None:
        point = _needed(at)
        shift = _rows(extraction.diagonal, point)
        v = v - shift
        error += 2.0 * U * (np.abs(v) + np.abs(shift))
        curvature = np.nextafter(form.ridge + extraction.diagonal, 0.0)
        energy = 0.5 * math.fsum((shift * point).ravel())
        constants.append(energy * (1.0 - 16.0 * U) - (1.0 + np.abs(point).sum()) * TINY)
    error *= caution
    # Exactly zero at the dual point the bound is taken at, or at every one.
    balanced = np.union1d(balanced, _idle(form, v, curvature))
    v[balanced] = 0.0
    error[balanced] = 0.0
    gains = coordinate_gains(v, error, curvature, form.box and form.box.chosen)
    sparsity = form.sparsity
    free = gains[sparsity.free]
    if not np.all(np.isfinite(free)):
        where = int(sparsity.free[np.flatnonzero(~np.isfinite(free))[0]])
        return nothing(f"the free coordinate {where} has no ridge and no bounds", method)
    units = unit_gains(sparsity, gains)
    chosen = best_selection(units, forced_units(sparsity, form.box), sparsity)
    base = math.nextafter(math.fsum([*constants, -add_up(free)]), -math.inf)
    if chosen == math.inf:  # parts of the problem without them may have a bound
        reason = "counted coordinates without ridge or bounds have a slope"
        return Bound(-math.inf, math.inf, method, reason, units, v, base)
    if chosen == -math.inf:
        return Bound(math.inf, 0.0, method, "the bounds force more units than k", units, v)
    total = math.fsum([*constants, -add_up(free), -chosen])
    if not math.isfinite(total):
        return nothing("the sums overflow", method)
    # What the gains were rounded up by, for the record: their value at v itself.
    plain = _plain_gains(form, v, curvature)
    allowance += max(0.0, add_up(free) + chosen - plain)
    return Bound(math.nextafter(total, -math.inf), allowance, method, "", units, v, base)


def _idle(form: SparseRegression, v: FloatArray, curvature: FloatArray) -> IntArray:
    """Return coordinates that no term reads, where a slope other than zero would have no end."""
    box = form.box and form.box.chosen
    loose = np.broadcast_to(curvature == 0.0, form.shape[::-1]).T & (v == 0.0)
    if box is not None:
        loose = loose & ~np.isfinite(box.upper - box.lower)
    if not form.matrix:
        index = np.flatnonzero(loose)
    else:
        index = np.flatnonzero(np.any(loose, axis=1) & np.all(v == 0.0, axis=1))
    for term in form.terms:
        if index.size:
            index = index[zero_columns(term.design, index)]
    return index


def _plain_gains(form: SparseRegression, v: FloatArray, curvature: FloatArray) -> float:
    gains = coordinate_gains(v, np.zeros(v.shape), curvature, form.box and form.box.chosen)
    sparsity = form.sparsity
    units = sparsity.unit_scores(gains)
    forced = forced_units(sparsity, form.box)
    chosen = best_selection(units, forced, sparsity)
    return math.fsum([float(gains[sparsity.free].sum()), chosen])


def infimum_bound(form: SparseRegression, *, caution: float = CAUTION) -> Bound:
    """Return the bound that the losses alone give: no prediction is better than the best one.

    What is left when nothing else holds, for instance without any ridge. Where zero belongs to
    the domain of the conjugate it is ``-sum c_i l*(0)``, evaluated with care; ``caution`` is the
    multiple of the rounding allowance to subtract.
    """
    constants, allowance = [form.constant], 0.0
    for term in form.terms:
        lowest = term.loss.infimum(term.target, term.weights)
        shape = term.target.shape if term.target.ndim > 1 else (term.design.shape[0],)
        if isinstance(term.loss, Conjugable) and not form.matrix:
            zero = np.zeros(shape)
            piece = term_bound(term, zero, zero)
            if not isinstance(piece, str) and lowest != 0.0:
                more = (caution - 1.0) * piece.allowance
                constants.append(piece.constant - more)
                allowance += piece.allowance + more
                continue
        if not math.isfinite(lowest):
            return nothing(f"no lower bound on {term.loss.name} is known", INFIMUM)
        slack = 0.0 if lowest == 0.0 else caution * 1e-12 * (1.0 + abs(lowest))
        constants.append(lowest - slack)
        allowance += slack
    sparsity = form.sparsity
    forced = forced_units(sparsity, form.box)
    paid = sparsity.price * float(forced.sum())
    total = math.fsum([*constants, paid])
    exact = total == 0.0 and not any(constants) and paid == 0.0
    return Bound(total if exact else math.nextafter(total, -math.inf), allowance, INFIMUM)


def _needed(at: FloatArray | None) -> FloatArray:
    if at is None:
        raise ValueError("a point is needed")
    return at


def _rows(d: FloatArray, x: FloatArray) -> FloatArray:
    return np.asarray(d * x if x.ndim == 1 else d[:, None] * x)
