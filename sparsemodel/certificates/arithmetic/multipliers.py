r"""Constraints in the objective: a problem without them whose value is nowhere above.

Where :math:`l \le C x \le u` holds, every :math:`y` and every :math:`\rho \ge 0` give

.. math:: P(x) + y^T (C x - b) + \tfrac12 \sum_i \rho_i (C x - b)_i^2 \;\le\; P(x), \qquad
          b_i = u_i \text{ for } y_i > 0, \quad b_i = l_i \text{ for } y_i < 0,

with :math:`\rho_i > 0` for equations alone. So whatever bounds the left side over sparse points
bounds the problem. A limit :math:`\|F x + s\| \le r` has slopes as well: :math:`y^T (F x + s)
- r \|y\|_*`. One choice for all parts of a search is priced with :math:`\tfrac\mu2
(\|F x + s\|_2^2 - r^2)`, :math:`\mu \ge 0`, which has curvature, or with :math:`\mu
(\|F x + s\|_1 - r)`. Constraints also imply bounds on single coordinates (nonnegative weights that
add up to one are at most one); those that no declared bound gives are kept as a box.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from sparsemodel.certificates.arithmetic.condensed import CertifiedProblem
from sparsemodel.certificates.arithmetic.dualised_rows import DualisedRows
from sparsemodel.certificates.arithmetic.limits import ACTIVE, Limit, NormLimit, SpectrumLimit
from sparsemodel.certificates.arithmetic.rounding import TINY, U
from sparsemodel.certificates.arithmetic.scaling import scaling
from sparsemodel.certificates.dual_bounds.witness import derivatives, from_point
from sparsemodel.certificates.statements.certificate import Multipliers
from sparsemodel.certificates.statements.numbers import (
    Rows,
    constraints_of,
    norms_of,
    rows_of,
)
from sparsemodel.certificates.statements.objective_interval import primal
from sparsemodel.designs import DenseDesign
from sparsemodel.interfaces import (
    BoolArray,
    Box,
    Cardinality,
    CertificateError,
    FloatArray,
    IntArray,
    Knapsack,
    SparseRegression,
    Term,
)
from sparsemodel.losses import AbsoluteLoss, LinearLoss, SquaredLoss

MILD, STIFF = 1.0, 30.0
"""Curvature that an equation adds to a coordinate, in units of what the losses have on average: one
relaxation is solved soon with the first, a search closes with the second."""

_MUCH = 1e3
"""By how much points on an infeasible support are out of reach, in sizes of objectives."""

_SLIGHT = 1e-8
"""Share of the objective at zero that a norm may cost for dual points to have room."""

_NOTHING = 1e-6
"""Share of the largest coordinate below which one may be what minimisation leaves of zero."""

_DAMPED = 1e-8
"""Size of the curvature, relative to a column: its square is rounding."""

_ROUNDS = 30
"""How often slopes of eigenvalues are added before the others are found again."""
_SETTLED = 1e-12
"""What may be left of a gradient, relative to it."""


def dualised(problem: CertifiedProblem, held: Multipliers | None) -> CertifiedProblem:
    """Return the problem with its linear constraints in the objective of ``minorant``."""
    if held is None:
        return problem
    return replace(problem, minorant=without_rows(problem.form, held), multipliers=held)


def without_rows(form: SparseRegression, held: Multipliers) -> SparseRegression:
    """Return the problem with its constraints in the objective, nowhere above it.

    Raises
    ------
    CertificateError
        When the multipliers do not fit the constraints.
    """
    norms = norms_of(form)
    rows = _rows_of(form)
    if form.region is None or not (rows.lower.size or norms):
        raise CertificateError("line 'witness.multipliers' is there without linear constraints.")
    stiff, equal = held.stiffness, rows.lower == rows.upper
    mu = np.zeros(len(norms)) if held.norms is None else held.norms
    rows = replace(rows, norms=norms if held.slopes.size > rows.lower.size else ())
    fits = stiff.shape == equal.shape and mu.shape == (len(norms),)
    spectra = [isinstance(norm, SpectrumLimit) for norm in norms]
    fits = fits and not np.any(mu[spectra])
    try:
        slopes = DualisedRows(rows).term(held.slopes)
    except ValueError:
        fits = False
    every = np.concatenate([stiff, mu])
    if not fits or not np.all(np.isfinite(every) & (every >= 0.0)) or np.any(stiff[~equal]):
        raise CertificateError("line 'witness.multipliers' does not fit the linear constraints.")
    priced_norms = [
        (norm, float(m))
        for norm, m in zip(norms, mu, strict=True)
        if isinstance(norm, NormLimit) and m > 0.0
    ]
    terms = [*form.terms, *(_norm_term(norm, m) for norm, m in priced_norms)]
    if held.own:
        terms.append(slopes)
    elif np.any(held.slopes):
        terms.append(replace(slopes, loss=LinearLoss()))
    if np.any(stiff):
        aims = np.where(equal, rows.lower, 0.0)
        terms.append(Term(DenseDesign(rows.matrix), SquaredLoss(), aims, stiff))
    constant = form.constant
    for norm, m in priced_norms:
        reach = 0.5 * m * norm.radius * norm.radius if norm.order == 2 else m * norm.radius
        constant = math.nextafter(constant - reach * (1.0 + 8.0 * U) - TINY, -math.inf)
    box = implied(form, rows, norms, form.sparsity.counted)
    sparsity = _limited(form, rows)
    return replace(
        form, terms=tuple(terms), region=None, box=box, constant=constant, sparsity=sparsity
    )


def _limited(form: SparseRegression, rows: Rows) -> Cardinality:
    """Return the cardinality with the budget that a row implies beside least sizes.

    Units of ``c' x <= u`` add up to at least what the least sizes of those that are nonzero do. Of
    several rows that which has room for the fewest units; beside declared budgets none.
    """
    sparsity, ends = form.sparsity, form.ends
    chosen, counted = ends.chosen, sparsity.counted
    plain = not form.matrix and sparsity.groups is None and sparsity.greedy
    if not plain or ends.least is None:
        return sparsity
    best, fewest = sparsity, sparsity.budget
    for side, tops in ((1.0, rows.upper), (-1.0, -rows.lower)):
        for row, top in zip(side * rows.matrix, tops, strict=True):
            on, low = row != 0.0, np.zeros(row.size)
            low[on] = np.minimum(row[on] * chosen.lower[on], row[on] * chosen.upper[on])
            if not (np.isfinite(top) and np.all(np.isfinite(low)) and np.all(low[counted] >= 0.0)):
                continue
            size = abs(top) + float(np.abs(low).sum())
            most = float(top) - float(low[~counted].sum()) + 8.0 * U * (row.size + 8) * size
            knapsack = Knapsack(low[counted] * (1.0 - 2.0 * U), max(most, 0.0))
            room = knapsack.count(np.arange(0), np.arange(sparsity.units))
            if room < fewest:
                best, fewest = replace(sparsity, knapsacks=(knapsack,)), room
    return replace(best, k=fewest + sparsity.forced_units)


def _norm_term(norm: NormLimit, mu: float) -> Term:
    loss = SquaredLoss() if norm.order == 2 else AbsoluteLoss()
    return Term(norm.design, loss, -norm.shift, np.full(norm.shift.size, mu))


def _rows_of(form: SparseRegression) -> Rows:
    """Return the linear constraints; none where they cannot be read."""
    none = np.zeros(0)
    return rows_of(form) or Rows(np.zeros((0, form.sparsity.size)), none, none)


def no_multipliers(problem: CertifiedProblem) -> CertifiedProblem:
    """Return the problem with multipliers of zero: bounds ignore the linear constraints."""
    held = problem.multipliers
    if held is None:
        return problem
    norms = None if held.norms is None else 0.0 * held.norms
    nothing = (0.0 * held.slopes, 0.0 * held.stiffness)
    return dualised(problem, replace(held, slopes=nothing[0], stiffness=nothing[1], norms=norms))


def multipliers_at(
    form: SparseRegression, x: FloatArray, stiffness: float = MILD, *, sloped: bool = False
) -> Multipliers | None:
    """Return the multipliers with which ``x`` is nearly stationary on its support.

    None where there are no constraints whose entries can be read. With ``sloped`` norms have
    slopes, where they are not too large, and always beside eigenvalues. A product with the data
    and one with its transpose.
    """
    rows, norms = _rows_of(form), norms_of(form)
    if form.matrix or not (rows.lower.size or norms):
        return None
    other = scaling(form)
    if other is not None:
        form, x = other.form, other.start(x)
        rows, norms = _rows_of(form), norms_of(form)
    sloped = sloped or any(isinstance(norm, SpectrumLimit) for norm in norms)
    whole = constraints_of(form) if sloped and norms else None
    sizes = form.ridge.astype(np.float64, copy=True)
    for term in form.terms:
        if term.traits.square:
            sizes += term.design.column_square_norms(term.squares()[1])
    wide = whole or replace(rows, norms=norms)
    free = form.sparsity.free
    # Coordinates that are free but for the constraints are balanced by their slopes.
    held = wide.on(free).design.to_array().any()
    duals = tuple(derivatives(form.terms, x)) if held else from_point(form, x).duals
    y, mu = slopes_at(form, wide, x, duals)
    y = y if whole else wide.divided(y)[0]
    stiff, equal = np.zeros(rows.lower.size), rows.lower == rows.upper
    squares = np.square(rows.matrix)
    entries = squares.sum(axis=1) / np.maximum((squares > 0.0).sum(axis=1), 1)
    if form.traits.gram:
        np.divide(
            stiffness * float(sizes.mean()), entries, out=stiff, where=equal & (entries > 0.0)
        )
    mu = 0.0 * mu if whole else mu
    if not form.traits.gram and np.any(form.ridge == 0.0):
        slight, stiff = _slight(form, rows, norms, x)
        mu = slight if whole else mu
    if not np.all(np.isfinite(np.concatenate([y, stiff, mu]))):
        return None
    return Multipliers(y, stiff, norms=mu if norms else None)


def _slight(
    form: SparseRegression, rows: Rows, norms: tuple[Limit, ...], x: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return multipliers of norms that cost next to nothing, and a stiffness of equations.

    With them dual points have room to move where those of the losses are at the ends of their
    domains, so that slopes which have to vanish do.
    """
    size = abs(primal(form, np.zeros(form.shape)).value - form.constant)
    radius = np.array(
        [norm.radius**norm.order if isinstance(norm, NormLimit) else 0.0 for norm in norms]
    )
    mu = np.divide(_SLIGHT * size, radius, out=np.zeros(len(norms)), where=radius > 0.0)
    reach = np.square(np.abs(rows.matrix) @ np.abs(x) + np.abs(rows.upper))
    stiff = np.zeros(reach.size)
    np.divide(size, reach, out=stiff, where=(rows.lower == rows.upper) & (reach > 0.0))
    return mu, stiff


def slopes_at(
    form: SparseRegression,
    rows: Rows,
    x: FloatArray,
    duals: tuple[FloatArray | None, ...],
    on: BoolArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return slopes of the constraints with which the gradient pushes the nonzeros nowhere.

    And a multiplier of each norm (of half its square). Coordinates at a bound may be pushed against
    it. Least squares; of eigenvalues those slopes are added that lessen what is left most, until
    there are none. ``duals`` are those of the first terms, predictions without a conjugate; a
    product with the transpose of each.
    Constraints may hold coordinates at zero: the gradient vanishes on all of ``on`` as well, those
    that are free if it is None.
    """
    gradient = form.ridge * x
    for term, a in zip(form.terms, duals, strict=False):
        a = np.asarray(a)
        known = term.traits.conjugable
        g = term.weights * a if known else term.loss.gradient(a, term.target, term.weights)
        gradient = gradient + term.design.rmatvec(g)
    normals = [norm.normals(x) for norm in rows.norms]
    moving = (x != 0.0) | (~form.sparsity.counted if on is None else on)
    goal = _SETTLED * float(np.linalg.norm(gradient[moving]))
    for _ in range(_ROUNDS):
        first, shares, left = _fitted(form.box, rows, x, moving, normals, gradient)
        more = [
            norm.more(x, left) if isinstance(norm, SpectrumLimit) else own[:0]
            for norm, own in zip(rows.norms, normals, strict=True)
        ]
        if np.linalg.norm(left) <= goal or not any(map(len, more)):
            break
        normals = [np.concatenate(pair) for pair in zip(normals, more, strict=True)]
    slopes, mu = [first], np.zeros(len(normals))
    for i, (norm, share) in enumerate(zip(rows.norms, shares, strict=True)):
        slopes.append(share @ normals[i][: share.size])
        if isinstance(norm, SpectrumLimit):
            slopes[-1] = norm.kept(slopes[-1])
        else:
            mu[i] = share.sum()
    return np.concatenate(slopes), mu


def _fitted(
    box: Box | None,
    rows: Rows,
    x: FloatArray,
    moving: BoolArray,
    normals: list[FloatArray],
    gradient: FloatArray,
) -> tuple[FloatArray, list[FloatArray], FloatArray]:
    """Return slopes of the linear rows, shares of the normals, and what is left to balance."""
    from scipy.optimize import lsq_linear

    value = rows.matrix @ x
    size = ACTIVE * (np.abs(rows.matrix) @ np.maximum(np.abs(x), _NOTHING * np.abs(x).max()))
    at_lower, at_upper = value <= rows.lower + size, value >= rows.upper - size
    active, left = at_lower | at_upper, np.where(moving, -gradient, 0.0)
    tiny = np.finfo(np.float64).tiny
    low = np.where(at_lower[active], -np.inf, -tiny)
    high = np.where(at_upper[active], np.inf, tiny)
    slopes, counts = np.zeros(value.size), [len(own) for own in normals]
    pushes = [
        norm.design.rmatvec(way)
        for norm, own in zip(rows.norms, normals, strict=True)
        for way in own
    ]
    if not (active.any() or pushes) or not moving.any():
        return slopes, [np.zeros(count) for count in counts], left
    box = (box or Box.unbounded(x.shape)).chosen
    nothing = ACTIVE * _NOTHING * np.abs(x).max()  # minimisation need not end on a bound
    for end, sign in ((box.lower, -1.0), (box.upper, 1.0)):
        near = sign * (end - x) <= np.maximum(nothing, _SETTLED * np.abs(end))
        pushes += list(sign * np.eye(x.size)[near & np.isfinite(end) & moving])
    columns = np.column_stack([rows.matrix[active].T, *pushes])[moving]
    none = np.zeros(len(pushes))
    ends = np.append(low, none), np.append(high, none + np.inf)
    found = lsq_linear(columns, left[moving], ends, method="bvls").x
    left[moving] -= columns @ found
    of_rows, others = np.split(found, [int(active.sum())])
    slopes[active] = np.where(of_rows > 0.0, at_upper[active], at_lower[active]) * of_rows
    shares = np.split(np.maximum(others, 0.0)[: sum(counts)], np.cumsum(counts)[:-1])
    return slopes, shares if counts else [], left


def violation(rows: Rows, box: Box | None, on: IntArray) -> FloatArray:
    """Return by how much the rows are violated at least, in the bounds and zero but for ``on``.

    As slopes these are a proof: ``r' (C x - b) >= r' r`` at every such point.
    """
    from scipy.optimize import lsq_linear

    m, bounds = rows.lower.size, box or Box.unbounded(rows.matrix.shape[1])
    low = bounds.lower[on]
    high = np.maximum(low, bounds.upper[on])  # of a part without a point whatever follows is true
    ends = np.append(low, rows.lower), np.append(high, rows.upper)
    fixed = ends[0] == ends[1]  # the least squares need room
    matrix = rows.matrix[:, on]
    # A little curvature, as columns that depend on each other would be divided by rounding.
    damped = np.diag(_DAMPED * np.linalg.norm(matrix, axis=0))
    parts = np.block([[matrix, -np.eye(m)], [damped, np.zeros((on.size, m))]])
    right = -parts[:, fixed] @ ends[0][fixed]
    if fixed.all():
        return np.asarray(-right)[:m]
    free = lsq_linear(parts[:, ~fixed], right, (ends[0][~fixed], ends[1][~fixed]), method="bvls")
    return np.asarray(parts[:, ~fixed] @ free.x - right)[:m]


def refutation(rows: Rows, box: Box | None, on: IntArray, scale: float) -> FloatArray | None:
    """Return what to add to slopes for a large bound where no point vanishes but for ``on``.

    None where the rows can be satisfied there. ``scale`` is a size of objectives.
    """
    rows = rows.outer
    r = violation(rows, box, on)
    ends = np.abs(np.concatenate([rows.lower, rows.upper]))
    reach = float(np.max(ends, initial=0.0, where=np.isfinite(ends)))
    size = float(r @ r)
    if not size > (ACTIVE * reach) ** 2:
        return None
    return np.asarray(_MUCH * (1.0 + abs(scale)) / size * r)


def implied(
    form: SparseRegression, rows: Rows, norms: tuple[Limit, ...], among: BoolArray
) -> Box | None:
    """Return the bounds with those that constraints imply for coordinates ``among`` without one.

    Zero stays inside of them, and they are rounded outwards.
    """
    low, high = form.ends.lower.copy(), form.ends.upper.copy()
    for norm in norms:
        if isinstance(norm, NormLimit) and norm.index is not None:
            size = (1.0 + 8.0 * U) * norm.radius + 8.0 * U * np.abs(norm.shift) + TINY
            for known, sign in ((high, 1.0), (low, -1.0)):
                far = sign * np.maximum(size - sign * norm.shift, 0.0)
                free = among[norm.index] & np.isinf(known[norm.index])
                known[norm.index[free]] = far[free]
    for side, ends in ((1.0, rows.upper), (-1.0, -rows.lower)):
        for row, end in zip(side * rows.matrix, ends, strict=True):
            on = np.flatnonzero(row)
            c = row[on]
            least = np.where(c > 0.0, c * low[on], c * high[on])
            loose = np.isinf(least)
            if not np.isfinite(end) or loose.sum() > 1:
                continue
            total = np.where(loose, 0.0, least).sum()
            rest = np.where(loose, total, -np.inf) if loose.any() else total - least
            slack = 8.0 * U * (on.size + 8) * (abs(end) + np.abs(least[~loose]).sum())
            reach = np.maximum((end - rest + slack) / np.abs(c), 0.0)
            known = np.where(c > 0.0, high[on], -low[on])
            found = np.where(np.isinf(known) & among[on], reach, known)
            high[on[c > 0.0]], low[on[c < 0.0]] = found[c > 0.0], -found[c < 0.0]
    least = None if form.box is None else form.box.least
    return Box(low, high, least) if np.any(np.isfinite(low) | np.isfinite(high)) else None
