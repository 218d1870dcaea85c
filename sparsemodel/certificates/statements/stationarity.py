r"""What can be said of a point without a bound: stationarity, and optimality at sight.

A point is *stationary* here when it minimises the objective over its own support, and
:math:`\eta`-stationary when a gradient step of length :math:`\eta` followed by hard thresholding
gives it back: :math:`\eta \max_{j \notin S} |g_j| \le \min_{j \in S} |x_j|` (Zhou, Xiu and Qi,
JMLR 2021, section 2). With a ridge :math:`\lambda` a point that is :math:`1/\lambda`-stationary is
*globally optimal* (Yuan et al., JMLR 2020, Theorem 2 and Remark 4), and so it is for
:math:`\lambda + \Delta_j` when :math:`\Delta` is curvature taken out of the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import numpy as np

from sparsemodel.certificates.arithmetic.products import (
    adjoint_error,
    adjoint_product,
    column_norms,
    predictions,
    spread,
)
from sparsemodel.certificates.arithmetic.rounding import U, norm_up
from sparsemodel.certificates.dual_bounds.unpenalised import free_columns, unbounded_coordinates
from sparsemodel.certificates.statements.claims import Claim
from sparsemodel.documents.numbers import number
from sparsemodel.interfaces import (
    FloatArray,
    IntArray,
    SparseRegression,
    coordinate_scores,
)
from sparsemodel.interfaces.numeric import least_squares

TOLERANCE = 1e-6
"""Relative gradient on the support below which a point is stationary, see ``Stationarity``."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Stationarity:
    """First-order facts about a point, computed on the original data."""

    LINES: ClassVar[tuple[str, ...]] = (
        *("smooth", "residual", "smallest", "largest", "step", "threshold"),
    )
    """What files say, in this order."""

    smooth: bool
    """Whether the losses have a gradient everywhere; nothing else is meaningful otherwise."""
    residual: float
    """Largest gradient on the support (bounds respected), relative to that where the counted
    coordinates are zero and the others as they are, both of losses that an intercept and its like
    have been fitted to: offsets of the target or of columns do not make it smaller. For an
    intercept itself, the sum of the slopes relative to what their sizes allow."""
    smallest: float
    """Smallest size of a unit of the support; infinite when fewer than ``k`` are used."""
    largest: float
    """Largest gradient of a unit off the support."""
    threshold: float
    """``1/lambda`` (with extracted curvature): optimal at sight when ``step`` reaches it."""

    @property
    def step(self) -> float:
        """Return the largest eta for which the point is eta-stationary."""
        if not self.smooth:
            return np.nan
        return self.smallest / self.largest if self.largest > 0.0 else np.inf

    @property
    def stationary(self) -> bool:
        """Return whether it minimises the objective over its own support, to first order."""
        return self.smooth and self.residual <= TOLERANCE

    @property
    def optimal_at_sight(self) -> bool:
        """Return whether the theorem's condition holds for the computed numbers."""
        return self.stationary and self.step >= self.threshold

    def rows(self, claim: Claim) -> list[tuple[str, str]]:
        """Return the facts in words, for a point of which ``claim`` is proved."""
        if not self.smooth:
            return [("gradient", "the loss has none everywhere; only the bound speaks")]
        on = f"{number(self.residual, 2)} of that without coefficients"
        rows = [("gradient on the support", on)]
        if claim is Claim.OPTIMAL and not self.optimal_at_sight:
            return rows  # proved otherwise: what these facts alone would prove is beside the point
        if np.isfinite(self.step):
            rows.append(("smallest coefficient / largest other gradient", number(self.step, 3)))
        if np.isfinite(self.threshold):
            needed = "not reached"
            if self.optimal_at_sight:
                proved = claim is Claim.OPTIMAL
                needed = "reached: this alone proves it" if proved else "reached, to first order"
            known = f"{number(self.threshold, 3)} ({needed})"
            rows.append(("threshold that would prove optimality", known))
        return rows


def gradient(form: SparseRegression, x: FloatArray) -> FloatArray:
    """Return the gradient of the objective, in float64."""
    out = np.array(form.ridge * x if x.ndim == 1 else form.ridge[:, None] * x)
    for term, (slopes, _) in zip(form.terms, _slopes(form, x), strict=True):
        out += adjoint_product(term.design, slopes)
    return out


def _slopes(form: SparseRegression, x: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
    """Return the gradient of every term in its predictions, and how far those may be off."""
    support = np.flatnonzero(x if x.ndim == 1 else np.any(x != 0.0, axis=1))
    out = []
    for term in form.terms:
        u, error = predictions(term.design, x, support)
        if term.offset is not None:
            u = u + term.offset
            error = error + 2.0 * U * np.abs(u)
        ends = [
            term.loss.gradient(at, term.target, term.weights) for at in (u - error, u, u + error)
        ]
        moved = np.abs(ends[2] - ends[0])
        if not term.traits.by_observation:  # slopes are what is left of sums that are larger
            moved += 64.0 * U * term.loss.magnitudes(u, term.target, term.weights)[1]
        out.append((ends[1], moved))
    return out


class _Gradient(NamedTuple):
    """A gradient once free coordinates are fitted, to first order, and what is left of theirs."""

    values: FloatArray
    left: float
    noise: float
    """Rounding errors of the product."""
    reach: float
    """Rounding errors with those of the predictions and of the fit."""
    left_reach: float
    """What those may do to ``left``."""
    gone: bool
    """Whether the fit takes the slopes away altogether, and rounding is all that is left."""

    def tells(self, size: float) -> bool:
        """Return whether its ``size`` is more than rounding."""
        return size > self.noise and not self.gone


class _Fit(NamedTuple):
    """Slopes of the terms once free coordinates are fitted, with bounds on their errors."""

    slopes: list[FloatArray]
    errors: list[FloatArray]
    left: float
    left_reach: float
    rounded: float
    """What rounding in the fit may do to the slopes."""
    gone: bool


@final
class _FreeColumns:
    """The columns of coordinates that fit whatever they can: neither counted, nor held."""

    def __init__(self, form: SparseRegression, index: IntArray) -> None:
        self._form, self.index = form, index
        columns = free_columns(form, index)
        squares = sum(np.sum(np.square(c), axis=0) for c in columns)
        self._sizes = np.sqrt(np.where(np.asarray(squares) > 0.0, squares, 1.0))
        self._columns = [c / self._sizes for c in columns]
        self._roots = [np.sqrt(term.weights) for term in form.terms]

    def gradients(self, *points: FloatArray) -> list[_Gradient]:
        """Return the gradients with these coordinates fitted; one product with the data for all."""
        form, fits = self._form, [self._fit(x) for x in points]
        norms = [column_norms(term.design) for term in form.terms]
        products = [
            np.split(adjoint_product(term.design, np.column_stack(slopes)), len(points), axis=1)
            for term, slopes in zip(
                form.terms, zip(*(fit.slopes for fit in fits), strict=True), strict=True
            )
        ]
        out = []
        for place, (x, fit) in enumerate(zip(points, fits, strict=True)):
            values = np.array(form.ridge * x if x.ndim == 1 else form.ridge[:, None] * x)
            noise, more = np.zeros((2, *x.shape))
            for i, (term, norm) in enumerate(zip(form.terms, norms, strict=True)):
                values += products[i][place].reshape(x.shape)
                noise += adjoint_error(norm, term.design.sums, fit.slopes[i])
                more += spread(norm, norm_up(fit.errors[i], axis=0) + fit.rounded)
            more += noise
            values[self.index] = noise[self.index] = more[self.index] = 0.0
            most = float(noise.max(initial=0.0)), float(more.max(initial=0.0))
            out.append(_Gradient(values, fit.left, *most, fit.left_reach, fit.gone))
        return out

    def _fit(self, x: FloatArray) -> _Fit:
        r"""Return what is left of the slopes once these coordinates have taken what they can.

        With slopes :math:`r` in the predictions and weights :math:`c` of the observations,
        :math:`r - C F (F^T C F)^+ F^T r` is orthogonal to the columns :math:`F`, so that offsets
        drop out. What is left of :math:`F^T r` itself is relative to
        :math:`\|F_j\| \|r\|`.
        """
        found = _slopes(self._form, x)
        slopes, errors = [r for r, _ in found], [error for _, error in found]
        if not self.index.size:
            return _Fit(slopes, errors, 0.0, 0.0, 0.0, False)
        total = sum(c.T @ r for c, r in zip(self._columns, slopes, strict=True))
        size = math.sqrt(sum(float(np.vdot(r, r)) for r in slopes))
        off = math.sqrt(sum(float(np.vdot(e, e)) for e in errors))
        # Of a fit so good that slopes are rounding, nothing is left.
        some = max(0.0, float(np.abs(total).max(initial=0.0)) - off)
        left = some / size if size > 0.0 else 0.0
        slopes, rounded = self._orthogonal(slopes), 64.0 * U * size
        after = math.sqrt(sum(float(np.vdot(r, r)) for r in slopes))
        reach = off / size if size > 0.0 else 0.0
        return _Fit(slopes, errors, left, reach, rounded, after <= rounded)

    def _orthogonal(self, slopes: list[FloatArray]) -> list[FloatArray]:
        def shaped(c: FloatArray, r: FloatArray) -> FloatArray:
            return c if r.ndim == 1 else c[:, None]

        rooted = np.concatenate(
            [c * root[:, None] for c, root in zip(self._columns, self._roots, strict=True)]
        )
        scaled = np.concatenate(
            [
                np.divide(r, shaped(root, r), out=np.zeros(r.shape), where=shaped(root, r) > 0.0)
                for r, root in zip(slopes, self._roots, strict=True)
            ]
        )
        for _ in range(2):  # what rounding left the first time
            scaled = scaled - rooted @ least_squares(rooted, scaled, rcond=1e-13)
        parts = np.split(scaled, np.cumsum([r.shape[0] for r in slopes])[:-1])
        return [shaped(root, part) * part for root, part in zip(self._roots, parts, strict=True)]


def stationarity(
    form: SparseRegression, x: FloatArray, *, extraction: FloatArray | None = None
) -> Stationarity:
    """Return the first-order facts about ``x``; two gradients.

    Sizes of groups (and of rows of a matrix variable) are Euclidean norms. ``extraction`` is
    curvature that was proved to be in the data.
    """
    return first_order(form, x, extraction=extraction)[0]


def first_order(
    form: SparseRegression,
    x: FloatArray,
    *,
    extraction: FloatArray | None = None,
    at_zero: bool = False,
) -> tuple[Stationarity, tuple[float, float]]:
    """Return the facts, and how far other computations of ``residual`` and ``largest`` may be off.

    ``at_zero`` measures by the gradient where all coordinates are zero, as files of the first
    version do.
    """
    if not form.traits.smooth:
        return Stationarity(False, np.nan, np.nan, np.nan, np.inf), (0.0, 0.0)
    sparsity = form.sparsity
    reference, loose = np.zeros(form.shape), unbounded_coordinates(form)
    if at_zero:
        loose = loose[:0]
    else:
        reference[sparsity.free] = x[sparsity.free]
    fitted = _FreeColumns(form, loose)
    references = [reference] if form.traits.quadratic else [reference, np.zeros(form.shape)]
    here, *scales = fitted.gradients(x, *references)
    g = here.values
    active = np.zeros(sparsity.units, dtype=bool)
    active[sparsity.active_units(x)] = True
    inside = np.zeros(sparsity.size, dtype=bool)
    inside[sparsity.coordinates(np.flatnonzero(active))] = True
    moving = _projected(form, x, g)
    # Slopes of counts leave every scale where others level off: the smaller of both references.
    slopes_at = [float(np.sqrt(coordinate_scores(at).max(initial=0.0))) for at, *_ in scales]
    told = [
        at.tells(s) and not np.array_equal(v, x)  # nothing is measured by itself
        for s, at, v in zip(slopes_at, scales, references, strict=True)
    ]
    size = min((s for s, tells in zip(slopes_at, told, strict=True) if tells), default=0.0)
    if form.traits.quadratic:
        # The curvature times the point is the natural size where that gradient vanishes.
        size = max(size, float(np.abs(g - scales[0].values).max(initial=0.0)))
    known = 0.0 < size < math.inf
    # A reference that leaves the range of doubles, or has no slope itself, excuses rounding alone.
    on = float(np.abs(moving[inside]).max(initial=0.0)) - (here.noise if known else here.reach)
    on = max(0.0, on)
    residual = max(on / size if known else math.inf if on > 0.0 else 0.0, here.left)
    size = size if known else 0.0
    slopes = np.sqrt(sparsity.unit_scores(coordinate_scores(g)))
    sizes = np.sqrt(sparsity.unit_scores(coordinate_scores(x)))
    largest = float(slopes[~active].max(initial=0.0))
    full = int(active.sum()) >= sparsity.budget
    smallest = float(sizes[active].min(initial=np.inf)) if full else 0.0
    if not full and largest <= TOLERANCE * size + here.reach:
        smallest = np.inf  # unused units would not be used: the constraint is not active
    facts = Stationarity(True, residual, smallest, largest, _threshold(form, extraction))
    near = 1e-3 * TOLERANCE
    off = 2.0 * max(here.reach / size if known else 0.0, here.left_reach)
    return facts, (near + off, near * size + 2.0 * here.reach)


def _projected(form: SparseRegression, x: FloatArray, g: FloatArray) -> FloatArray:
    """Drop the parts of the gradient that push against a bound."""
    if form.box is None:
        return g
    ends = form.box.chosen
    held = ((x <= ends.lower) & (g > 0.0)) | ((x >= ends.upper) & (g < 0.0))
    return np.where(held, 0.0, g)


def _threshold(form: SparseRegression, extraction: FloatArray | None) -> float:
    curvature = form.ridge if extraction is None else form.ridge + extraction
    counted = curvature[form.sparsity.counted]
    lowest = float(counted.min(initial=np.inf))
    bounded = form.box is not None or form.region is not None
    if lowest <= 0.0 or bounded or form.sparsity.priced:
        return np.inf
    return 1.0 / lowest
