r"""A quadratic with linear constraints as its nodes see it: all signs one way, slacks for rows.

.. math:: w^T Q w + c^T w + \text{constant}, \qquad A w = b, \qquad
          w_i \in \{0\} \cup [l_i, u_i], \; l_i \ge 0 \text{ wherever the sign is known}.

A coordinate that is never positive is turned round. A row :math:`C x \le u` has a slack
:math:`0 \le s \le u - \min C x`, which is always in; rows are in units of their largest entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from sparsemodel.certificates.arithmetic.dualised_rows import DualisedRows
from sparsemodel.certificates.arithmetic.multipliers import implied
from sparsemodel.certificates.proving.gram.quadratic import Quadratic
from sparsemodel.certificates.statements.numbers import Rows
from sparsemodel.interfaces import BoolArray, Box, FloatArray, IntArray, SparseRegression


@final
@dataclass(frozen=True, slots=True, eq=False)
class Extended:
    """Linear constraints as equations ``A x + s = b`` with slacks, exactly as declared."""

    matrix: FloatArray
    """Rows of ``C``, turned round where only a lower end is known."""
    right: FloatArray
    slack: BoolArray
    """Which rows have a slack."""
    sign: FloatArray
    """-1 for rows that are turned round."""
    most: FloatArray
    """An upper end of the slack of each row; infinite where none is known."""
    ends: Box
    """Between what coordinates are that are chosen, or always in."""

    @classmethod
    def of(cls, form: SparseRegression) -> Extended:
        """Return the equations of a form that has its constraints in the objective."""
        rows = rows_of_term(form)
        box = implied(form, rows, (), ~form.sparsity.counted) or Box.unbounded(form.shape)
        ends = _ends(form, box)
        low, high = ends.lower, ends.upper
        lower, upper = rows.lower, rows.upper
        sign = np.where(np.isfinite(upper), 1.0, -1.0)
        matrix = sign[:, None] * rows.matrix
        right = np.where(sign > 0.0, upper, -lower)
        least = np.where(matrix > 0.0, np.minimum(low, 0.0), np.maximum(high, 0.0))
        sums = np.where(matrix != 0.0, matrix * np.where(matrix != 0.0, least, 0.0), 0.0)
        size = np.abs(sums).sum(axis=1) + np.abs(right)
        reach = right - sums.sum(axis=1) + 1e-12 * size  # far above what rounding does
        span = np.where(sign > 0.0, upper - lower, np.inf)
        most = np.maximum(np.minimum(reach, span), 0.0)
        return cls(matrix, right, lower < upper, sign, most, ends)

    def whole(self) -> FloatArray:
        """Return ``A`` with a column for every slack."""
        own = np.flatnonzero(self.slack)
        columns = np.zeros((self.right.size, own.size))
        columns[own, np.arange(own.size)] = 1.0
        return np.hstack([self.matrix, columns])


@final
@dataclass(frozen=True, slots=True, eq=False)
class QuadraticProblem:
    """The problem of the module's formula, in floats."""

    form: SparseRegression
    points: SparseRegression
    """The problem with all its constraints, of which points are asked for."""
    q: Quadratic
    extended: Extended
    matrix: FloatArray
    """``Q``, slacks last."""
    linear: FloatArray
    rows: FloatArray
    right: FloatArray
    low: FloatArray
    """Ends of the values of coordinates that are chosen, or always in."""
    high: FloatArray
    unit: FloatArray
    """What one of each coordinate is in the form: -1 where it is turned round, else 1; slacks are
    in units of their rows."""
    scale: FloatArray
    """What rows were multiplied with, powers of two."""
    counted: IntArray
    """The coordinate of each unit."""
    constant: float

    @classmethod
    def of(cls, form: SparseRegression, points: SparseRegression) -> QuadraticProblem:
        """Return the problem of a form that has its constraints in the objective.

        ``points`` has them as constraints.
        """
        q, p = Quadratic.of(form, shifted=False), form.sparsity.size
        extended = Extended.of(form)
        ends = extended.ends
        own = np.flatnonzero(extended.slack)
        size, scale = p + own.size, row_scale(extended)
        unit = np.concatenate([np.where(ends.upper <= 0.0, -1.0, 1.0), 1.0 / scale[own]])
        flip = unit[:p]
        matrix = np.zeros((size, size))
        matrix[:p, :p] = 0.5 * q.hessian
        matrix[np.arange(p), np.arange(p)] += 0.5 * q.ridge
        matrix[:p, :p] *= np.outer(flip, flip)
        low, high = np.zeros(size), np.zeros(size)
        low[:p] = np.where(flip > 0.0, ends.lower, -ends.upper)
        high[:p] = np.where(flip > 0.0, ends.upper, -ends.lower)
        high[p:] = scale[own] * extended.most[own]
        bare = q if q.bare is None else q.bare
        linear = np.zeros(size)
        linear[:p] = -flip * bare.linear
        return cls(
            form,
            points,
            q,
            extended,
            matrix,
            linear,
            scale[:, None] * extended.whole() * unit,
            scale * extended.right,
            low,
            high,
            unit,
            scale,
            np.flatnonzero(form.sparsity.counted),
            bare.lowest_constant,
        )

    @property
    def size(self) -> int:
        """Return how many coordinates the form has; slacks come after."""
        return int(self.form.sparsity.size)

    @property
    def always(self) -> IntArray:
        """Return coordinates that are always in, slacks among them."""
        more = np.arange(self.size, self.linear.size)
        return np.concatenate([self.form.sparsity.free, more])

    @property
    def caps(self) -> FloatArray:
        """Return the largest multiplier of each row: 0 where its slack has no upper end."""
        out = np.full(self.right.size, np.inf)
        out[self.extended.slack & np.isinf(self.extended.most)] = 0.0
        return out


def _ends(form: SparseRegression, box: Box) -> Box:
    """Return between what chosen coordinates are; zero is among it where others need them.

    Such a unit is in also where it is zero, below its least size.
    """
    chosen, order = box.chosen, form.sparsity.order
    if order is None:
        return chosen
    parents = np.flatnonzero(form.sparsity.counted)[np.unique(order.parents[order.parents >= 0])]
    lower, upper = chosen.lower.copy(), chosen.upper.copy()
    lower[parents] = np.minimum(lower[parents], 0.0)
    upper[parents] = np.maximum(upper[parents], 0.0)
    return Box(lower, upper)


def rows_of_term(form: SparseRegression) -> Rows:
    """Return the linear constraints that a form has in its objective."""
    found = [term.loss.rows for term in form.terms if isinstance(term.loss, DualisedRows)]
    none = np.zeros(0)
    return found[0] if found else Rows(np.zeros((0, form.sparsity.size)), none, none)


def row_scale(extended: Extended) -> FloatArray:
    """Return powers of two that make the largest entry of each row about one."""
    most = np.abs(extended.matrix).max(axis=1, initial=0.0)
    return np.asarray(np.exp2(-np.round(np.log2(np.where(most > 0.0, most, 1.0)))))
