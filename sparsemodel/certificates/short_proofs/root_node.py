"""The root node of a short proof: a squared loss with a limit on the number of units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from sparsemodel.certificates.arithmetic.rounding import U
from sparsemodel.certificates.proving.gram.quadratic import Quadratic
from sparsemodel.certificates.short_proofs.part import Part
from sparsemodel.interfaces import FloatArray, IntArray, SparseRegression

_SLIGHT = 1e-6
"""Share of the diagonal that rounding may take."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class RootNode:
    """The part with all supports of a problem, and how its coordinates are scaled."""

    form: SparseRegression
    quadratic: Quadratic
    scale: FloatArray
    """Of each coordinate: powers of two."""
    part: Part

    @classmethod
    def of(cls, form: SparseRegression, q: Quadratic) -> RootNode | None:
        """Return it, with the quadratic of ``form``; None for dependent or tiny columns.

        Errors of the computed matrix and slopes lower the diagonal and the constant, as for
        :func:`~sparsemodel.certificates.proving.gram.enumeration.enumerate_supports`.
        """
        free = form.sparsity.free
        most = form.sparsity.budget + free.size
        own, squares = q.hessian.diagonal(), np.square(q.norms)
        lost = 2.0 * q.unit * most * squares + 8.0 * U * (squares + q.ridge)
        diagonal = own + q.ridge - lost
        some = np.flatnonzero(diagonal > 0.0)
        if some.size < diagonal.size:
            left = np.flatnonzero(~(diagonal > 0.0))
            if own[left].any() or q.linear[left].any() or q.ridge[left].any():
                return None
        if not np.all(lost[some] <= _SLIGHT * diagonal[some]):
            return None
        scale = np.exp2(-np.round(0.5 * np.log2(np.where(diagonal > 0.0, diagonal, 1.0))))
        matrix = q.hessian if some.size == diagonal.size else q.hessian[some[:, None], some]
        matrix = matrix * scale[some]
        matrix *= scale[some, None]
        matrix.flat[:: some.size + 1] = (diagonal[some] * scale[some]) * scale[some]
        energy = q.unit * q.aim**2
        constant = q.lowest_constant - 0.5 * energy * (1.0 + 16.0 * U)
        constant -= 8.0 * U * (abs(q.lowest_constant) + energy)
        slopes = q.linear[some] * scale[some]
        if not (np.all(np.isfinite(slopes)) and np.isfinite(constant)):
            return None
        part: Part | None = Part(
            matrix, slopes, constant, form.sparsity.budget, some, np.zeros(some.size), most
        )
        for coordinate in free.tolist():
            if part is not None and coordinate in part.units:
                place = int(np.searchsorted(part.units, coordinate))
                part = part.having(place, counted=False)
        if part is None:
            return None
        part.inside = ()
        return cls(form, q, scale, part)

    def started(self, x: FloatArray) -> Part:
        """Return the part with a point of the form."""
        units = self.part.units
        self.part.point = x[units] / self.scale[units]
        return self.part

    def minimiser(self, units: IntArray) -> FloatArray | None:
        """Return the minimiser on a support, in the form's coordinates."""
        q, form = self.quadratic, self.form
        on = np.union1d(units, form.sparsity.free)
        matrix = q.hessian[on[:, None], on]
        matrix[np.diag_indices_from(matrix)] += q.ridge[on]
        scale = self.scale[on]
        try:
            values = np.linalg.solve(matrix * scale * scale[:, None], q.linear[on] * scale)
        except np.linalg.LinAlgError:
            return None
        x = np.zeros(form.shape)
        x[on] = values * scale
        return x if q.shifts is None else q.shifts.restore(x)
