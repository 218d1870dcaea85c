r"""A stage of a proof: which candidates are left, and the curvature taken out of their data.

Linear constraints have a slack each, and every node slopes of its own. With slacks between the ends
of the rows, and any :math:`y` and :math:`\rho > 0`,

.. math:: \min_{l \le s \le u} y^T (C x - s) + \tfrac12 \sum_i \rho_i (C x - s)_i^2

is nowhere above zero where the constraints hold: take :math:`s = C x`. The relaxation with it is
the old one with a few coordinates more that are always in. At its minimum :math:`x` also minimises
the relaxation with the slopes :math:`a = y + \rho (C x - s)` in place of all that, whose value is
no lower (a proximal step of the dual, that ends at the best slopes when it is repeated).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from sparsemodel.certificates.arithmetic.dualised_rows import DualisedRows
from sparsemodel.certificates.proving.compiling import LOADING
from sparsemodel.certificates.proving.gram.kernels.node_problem import Limits, NodeProblem
from sparsemodel.certificates.proving.gram.quadratic import Quadratic, extraction
from sparsemodel.certificates.statements.numbers import Rows
from sparsemodel.interfaces import BoolArray, Box, FloatArray, IntArray, SparseRegression
from sparsemodel.numerics import RegressionObjective
from sparsemodel.numerics.budget import Budget, cholesky_cost, inverse_cost

WIDE = 1500
"""Coordinates up to which a node's matrix holds all of them."""

_LITTLE = 1e-6
"""Curvature in units of the column's square below which a coordinate is scaled by its column."""

_WEIGHT = 1.0
"""``rho``, in units of the curvature of an average coordinate over its entry squared. A larger one
takes fewer steps, of which each is harder to solve."""

_ROUND, _FACTORS = 1e4, 0.03
"""Nanoseconds of a step of a relaxation beside one for each entry of its matrix, and for each cube
of what is nonzero, of which the matrix is factorised."""

_FAR = 1e3
"""Multiple of what a row can be expected to be that stands for an end that it does not have."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Slacks:
    """Rows on scaled coordinates, no balanced ones, with a slack each, in units of ``root``."""

    matrix: FloatArray
    """``C`` times ``root`` by row, divided by the scale of the coordinates by column."""
    root: FloatArray
    """Of ``rho``."""
    lower: FloatArray
    upper: FloatArray
    """Bounds on the slacks, finite, in units of ``root``."""
    below: BoolArray
    above: BoolArray
    """Whether there is such an end, without which a slope of its sign proves nothing."""

    @classmethod
    def of(cls, q: Quadratic, rows: Rows, active: IntArray, scale: FloatArray) -> Slacks:
        """Return slacks of ``rows``, which hold for scaled ``active`` coordinates."""
        sizes = np.square(q.norms[active]) + q.ridge[active]
        matrix = rows.matrix[:, active]
        entries = np.square(matrix)
        mean = entries.sum(axis=1) / np.maximum((entries > 0.0).sum(axis=1), 1)
        average = float(sizes.mean()) if sizes.any() else 1.0  # no column may be left, or zeros
        root = np.sqrt(_WEIGHT * average / np.where(mean > 0.0, mean, 1.0))
        low, high = rows.lower, rows.upper
        ends = [np.where(np.isfinite(end), np.abs(end), 0.0) for end in (low, high)]
        reach = q.aim / np.sqrt(np.where(sizes > 0.0, sizes, 1.0))
        far = _FAR * (np.abs(matrix) @ reach + ends[0] + ends[1])
        return cls(
            root[:, None] * matrix / scale,
            root,
            root * np.maximum(low, -far),
            root * np.minimum(high, far),
            np.isfinite(low),
            np.isfinite(high),
        )

    def extended(self, matrix: FloatArray) -> FloatArray:
        """Return the matrix of a quadratic with that of the slacks."""
        b = self.matrix
        return np.block([[matrix + b.T @ b, -b.T], [-b, np.eye(self.root.size)]])

    def linear(self, g: FloatArray, y: FloatArray) -> FloatArray:
        """Return the linear part with slopes ``y`` to begin with."""
        z = y / self.root
        return np.concatenate([g - z @ self.matrix, z])

    def start(self, w: FloatArray) -> FloatArray:
        """Return a scaled point with the slacks that fit it."""
        return np.concatenate([w, np.clip(self.matrix @ w, self.lower, self.upper)])

    def slopes(self, w: FloatArray, y: FloatArray) -> FloatArray:
        """Return ``a`` at a point with its slacks."""
        count = self.matrix.shape[1]
        return self.signed(y + self.root * (self.matrix @ w[:count] - w[count:]))

    def signed(self, a: FloatArray) -> FloatArray:
        """Return slopes that push away from ends that are there."""
        a = np.where(self.below, a, np.maximum(a, 0.0))
        return np.where(self.above, a, np.minimum(a, 0.0))

    def moved(self, a: FloatArray, y: FloatArray) -> float:
        """Return by how much slopes ``a`` are better than ``y``, to first order."""
        return 0.5 * float(np.sum(np.square((a - y) / self.root)))

    def on(self, keep: BoolArray) -> Slacks:
        """Return the same on some of the coordinates."""
        return replace(self, matrix=self.matrix[:, keep])


@final
@dataclass(slots=True, eq=False)
class Gram:
    """What all parts of a problem share."""

    form: SparseRegression
    q: Quadratic
    counted: IntArray
    ridged: IntArray
    """Always-in coordinates with ridge."""
    balanced: IntArray
    """Always-in coordinates without ridge."""
    box: Box | None
    """Bounds on every coordinate, also those that the data prove."""
    points: RegressionObjective | None
    """The problem whose points are asked for, where it has bounds of its own."""
    delay: float = 0.0
    operations: float = 0.0
    """Of all relaxations so far: about the nanoseconds that they take, without the clock."""
    deadline: float | None = None
    wide: Gram | None = None
    """The same with slopes of their own for parts, where the bounds hold for one choice alone."""

    @classmethod
    def of(
        cls, form: SparseRegression, points: SparseRegression, quadratic: Quadratic | None
    ) -> Gram:
        """Compute what is shared, O(n p^2) where ``quadratic`` is not known yet."""
        sparsity, box = form.sparsity, form.box
        loose = form.ridge[sparsity.free] == 0.0
        return cls(
            form=form,
            q=Quadratic.of(form) if quadratic is None else quadratic,
            counted=np.flatnonzero(sparsity.counted),
            ridged=sparsity.free[~loose],
            balanced=sparsity.free[loose],
            box=box,
            points=RegressionObjective(points) if points.constrained else None,
        )

    def at_its_slopes(self, declared: Box | None) -> Gram:
        """Return this with the slopes of linear constraints as they are, for which bounds hold.

        Without those bounds, only in the box ``declared``, slopes may be others.
        """
        wide = replace(self, box=declared)
        return replace(self, q=replace(self.q, prices=None, bare=None), wide=wide)

    def compiled(self) -> Any:
        """Return the compiled solver of nodes; what compiling takes does not count as search."""
        began = time.perf_counter()
        from sparsemodel.certificates.proving.gram.kernels.node_compiled import (
            compiling,
            solve_node,
        )

        compiling()
        self.delay += max(time.perf_counter() - began - LOADING, 0.0)
        return solve_node

    def solved(self, node: NodeProblem, start: FloatArray, t: float, limits: Limits) -> Any:
        """Return what the compiled solver returns for a node, and count its operations."""
        found = self.compiled()(node, start, t, limits)
        size, inside = float(node.status.size), float(np.count_nonzero(found[0]))
        self.operations += (found[-1] + 1.0) * (_ROUND + size**2 + _FACTORS * inside**3)
        return found


@final
@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """The relaxation's data on the candidates that are left, scaled to curvatures of one.

    Where a coordinate has next to no curvature, only bounds, it is scaled by its column.
    """

    active: IntArray
    """Candidates and ridged always-in coordinates, sorted."""
    balanced: IntArray
    """Always-in coordinates without ridge."""
    delta: FloatArray
    """Proved curvature, for ``active``."""
    matrix: FloatArray | None
    """None on many coordinates, of which a node needs few."""
    linear: FloatArray
    constant: float
    root: FloatArray
    """``w = root * x``."""
    curvature: FloatArray
    """Ridge plus curvature in units of ``root``: one, or less."""
    lower: FloatArray
    upper: FloatArray
    """Bounds on ``w``."""
    hessian: FloatArray = field(repr=False)
    """That of all coordinates of the form."""
    solve_h: FloatArray = field(repr=False)
    solve_g: FloatArray = field(repr=False)
    slacks: Slacks | None = None
    """Linear constraints, whose slacks are the last coordinates of all but ``linear``."""

    def scaled(self, x: FloatArray) -> FloatArray:
        """Return the scaled values of a point in the form's coordinates."""
        size = self.active.size
        w = np.clip(self.root * x[self.active], self.lower[:size], self.upper[:size])
        return w if self.slacks is None else self.slacks.start(w)

    def ends(self, box: Box | None, inside: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Return bounds where coordinates ``inside`` have at least the least sizes of ``box``."""
        if box is None or box.least is None:
            return self.lower, self.upper
        lower, upper = self.lower.copy(), self.upper.copy()
        on = np.flatnonzero(inside[: self.active.size])
        at, root, ends = self.active[on], self.root[on], box.chosen
        lower[on], upper[on] = root * ends.lower[at], root * ends.upper[at]
        return lower, upper

    def point(self, w: FloatArray) -> FloatArray:
        """Return unscaled values of ``active`` then ``balanced`` for scaled ``w``."""
        x = w[: self.active.size] / self.root
        if not self.balanced.size:
            return x
        on = np.flatnonzero(x)
        return np.concatenate([x, self.solve_g - self.solve_h[:, on] @ x[on]])

    def products(self, some: IntArray) -> FloatArray:
        """Return the matrix on some of the active coordinates, no slacks among them."""
        at = self.active[some]
        matrix = self.hessian[np.ix_(at, at)]
        if self.balanced.size:
            matrix -= self.hessian[np.ix_(self.balanced, at)].T @ self.solve_h[:, some]
        matrix[np.diag_indices_from(matrix)] -= self.delta[some]
        matrix /= self.root[some, None]
        matrix /= self.root[some]
        return np.ascontiguousarray(matrix)

    def slopes(self, w: FloatArray) -> FloatArray:
        """Return the slopes of the quadratic at a scaled point, where there are no slacks."""
        on = np.flatnonzero(w)
        x = w[on] / self.root[on]
        product = (x @ self.hessian[self.active[on]])[self.active]
        if self.balanced.size:
            product -= self.hessian[np.ix_(self.balanced, self.active)].T @ (
                self.solve_h[:, on] @ x
            )
        product[on] -= self.delta[on] * x
        return np.asarray(product / self.root - self.linear)

    def on(self, keep: BoolArray) -> Stage:
        """Return the stage on some of its active coordinates."""
        every = np.append(keep, np.ones(self.lower.size - keep.size, dtype=bool))
        matrix = self.matrix
        if matrix is not None:
            matrix = np.ascontiguousarray(matrix[np.ix_(every, every)])
        elif int(keep.sum()) <= WIDE:
            matrix = self.products(np.flatnonzero(keep))
        return replace(
            self,
            active=self.active[keep],
            delta=self.delta[keep],
            matrix=matrix,
            linear=self.linear[keep],
            root=self.root[keep],
            curvature=self.curvature[every],
            lower=self.lower[every],
            upper=self.upper[every],
            solve_h=self.solve_h[:, keep],
            slacks=None if self.slacks is None else self.slacks.on(keep),
        )


def make_stage(
    q: Quadratic,
    active: IntArray,
    balanced: IntArray,
    delta: FloatArray,
    box: Box | None = None,
    *,
    whole: bool = True,
) -> Stage | None:
    """Return the stage for a proved ``delta``; None where a coordinate has no ridge or bounds.

    With many coordinates it has its matrix only when that is ``whole``.
    """
    q = q if q.bare is None else replace(q.bare, prices=q.prices)
    ridge = q.ridge[active] + delta
    ends = box or Box.unbounded(q.ridge.size)
    lower, upper = ends.lower[active], ends.upper[active]
    held = np.isfinite(lower) & np.isfinite(upper)
    if active.size and not np.all((ridge > 0.0) | held):
        return None
    if not q.finite:
        return None
    g = q.linear[active].copy()
    constant = q.lowest_constant
    solve_h = np.zeros((balanced.size, active.size))
    solve_g = np.zeros(balanced.size)
    if balanced.size:
        cross = q.hessian[np.ix_(balanced, active)]
        try:
            factor = cho_factor(q.hessian[np.ix_(balanced, balanced)], lower=True)
        except np.linalg.LinAlgError:
            return None
        solve_h, solve_g = cho_solve(factor, cross), cho_solve(factor, q.linear[balanced])
        g -= cross.T @ solve_g
        constant -= 0.5 * float(q.linear[balanced] @ solve_g)
    own = np.square(q.norms[active])
    root = np.sqrt(np.where(held & (ridge < _LITTLE * own), np.where(own > 0.0, own, 1.0), ridge))
    lower, upper, curvature = lower * root, upper * root, ridge / root / root
    stage = Stage(
        active=active,
        balanced=balanced,
        delta=delta,
        matrix=None,
        linear=g / root,
        constant=constant,
        root=root,
        curvature=curvature,
        lower=lower,
        upper=upper,
        hessian=q.hessian,
        solve_h=solve_h,
        solve_g=solve_g,
    )
    if q.prices is None or not isinstance(q.prices.loss, DualisedRows):
        wide = active.size > WIDE and not whole
        return stage if wide else replace(stage, matrix=stage.products(np.arange(active.size)))
    slacks = Slacks.of(q, q.prices.loss.rows, active, root)
    return replace(
        stage,
        matrix=slacks.extended(stage.products(np.arange(active.size))),
        curvature=np.append(curvature, np.zeros(slacks.root.size)),
        lower=np.append(lower, slacks.lower),
        upper=np.append(upper, slacks.upper),
        slacks=slacks,
    )


def best_stage(
    q: Quadratic,
    active: IntArray,
    balanced: IntArray,
    box: Box | None = None,
    deadline: float | None = None,
    *,
    whole: bool = True,
) -> Stage | None:
    """Return the stage with curvature taken out where there is some; None without any ridge.

    Curvature that could not be taken out before the deadline is left where it is.
    """
    size = active.size
    cost = 4.0 * cholesky_cost(size) + inverse_cost(size)
    delta = extraction(q, active, balanced) if Budget(deadline).fits(cost) else None
    stage = None if delta is None else make_stage(q, active, balanced, delta, box, whole=whole)
    return stage or make_stage(q, active, balanced, np.zeros(active.size), box, whole=whole)
