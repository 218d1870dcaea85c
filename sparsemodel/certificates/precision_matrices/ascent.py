"""The search for the best bound on a precision matrix: ascent in the dual and the modulus."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from sparsemodel.certificates.precision_matrices.spectral_bounds import (
    Enclosure,
    dual_value,
    enclose,
)
from sparsemodel.certificates.precision_matrices.trivial import whole_box
from sparsemodel.interfaces import FloatArray
from sparsemodel.interfaces.precision import SparsePrecision
from sparsemodel.numerics.budget import Budget, eigenvector_cost

_U = 2.0**-53

LARGEST = 500
"""Largest exponent of a unit: far beyond it powers of two overflow."""

_MANY = 20_000
"""Coordinates up to which SciPy's limits cost little."""
_DOUBLINGS = 12
"""How often the modulus of the enclosure may be doubled to begin with."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Task:
    r"""A problem in units of powers of two, exact in floating point.

    With :math:`\Omega_{ij} = 2^{e_i + e_j} \Theta_{ij}` the likelihood of :math:`\Theta` is that
    of :math:`\Omega` plus :math:`2 \log 2 \sum_i e_i`.
    """

    form: SparsePrecision
    """In the units."""
    upper: float
    """An upper bound on the optimum, in the units."""
    shift: float
    units: tuple[int, ...] | None

    def in_nats(self, value: float) -> float:
        """Return a bound in the variables' own units, rounded down."""
        if not (self.shift and math.isfinite(value)):
            return value
        return value - self.shift - 4.0 * _U * (abs(value) + abs(self.shift))

    def in_units(self, entries: FloatArray, power: int = 1) -> FloatArray:
        """Return entries of a covariance in the units; those of a precision matrix for -1."""
        if self.units is None:
            return entries
        e = np.array(self.units)
        out: FloatArray = np.ldexp(entries, power * (e[self.form.rows] + e[self.form.cols]))
        return out

    def enclosed(self, U: FloatArray | None = None, box: Enclosure | None = None) -> Enclosure:
        """Return an enclosure of all matrices that are as good as the known one."""
        form = self.form
        if U is None or box is None:
            return enclose(form, np.zeros(form.shape), self.upper, whole_box(form))
        return enclose(form, np.where(form.rows == form.cols, 0.0, U), self.upper, box)


def rescaled(form: SparsePrecision, upper: float, units: tuple[int, ...] | None) -> Task:
    """Return a problem in the units ``2^-e`` of its variables; None for their own.

    Raises
    ------
    ValueError
        When that is not an exponent a variable, or they are too large.
    """
    if units is None:
        return Task(form, upper, 0.0, None)
    if len(units) != form.order or any(abs(e) > LARGEST for e in units):
        raise ValueError(f"must hold {form.order} whole numbers between -{LARGEST} and {LARGEST}.")
    e = np.array(units)
    shift = 2.0 * math.log(2.0) * float(e.sum())
    scaled = replace(
        form,
        covariance=np.ldexp(form.covariance, e[:, None] + e),
        alpha=math.ldexp(form.alpha, -2 * int(e.max())),
        beta=math.ldexp(form.beta, -2 * int(e.min())),
    )
    upper = upper + shift + 4.0 * _U * (abs(upper) + abs(shift))
    return Task(scaled, upper, shift, units)


class _Late(Exception):
    """Time is up in the middle of an ascent."""


@final
class Ascent:
    """Maximises the bound by L-BFGS in ``U`` and the modulus, keeping the best point met.

    The modulus is measured in units of ``1 / |Omega|``: the curvature of the bound is then that in
    an entry of ``U`` that is paid for.
    """

    def __init__(
        self, task: Task, box: Enclosure, slack: FloatArray, x: FloatArray, left: Budget
    ) -> None:
        """``x`` is the known matrix, ``slack`` its inverse less the covariance, in the units."""
        self.task, self.box = task, box
        self._slack, self._x, self._left = slack, x, left
        self._unit = 1.0 / max(float(np.linalg.norm(task.form.matrix(x))), 1e-300)
        self.best: float = -math.inf
        self._point: FloatArray = np.zeros(x.size + 1)
        self._begin()

    @property
    def U(self) -> FloatArray:
        """Return the dual matrix of the best bound, as a vector over the coordinates."""
        return self._point[:-1]

    @property
    def mu(self) -> float:
        """Return the modulus of the best bound."""
        return float(self._point[-1]) * self._unit

    def enter(self, box: Enclosure) -> None:
        """Go on within a smaller enclosure, from the best point so far."""
        self.box, self.best = box, -math.inf

    def run(self) -> None:
        """Ascend until nothing is gained, or time is up."""
        from scipy.optimize import minimize

        options: dict[str, Any] = {"method": "L-BFGS-B", "options": {"maxiter": 150, "maxfun": 300}}
        function = self._reflected
        if self._x.size <= _MANY:
            function = self._value
            limits = (self._least, None if self._least > 0.0 else 0.0)
            options["bounds"] = [(None, None)] * self._x.size + [limits]
        try:
            if not math.isfinite(self.best):
                self._value(self._point)
            for _ in range(3):  # restarts get over the kinks of the sum of the k largest
                before, start = self.best, self._point.copy()
                minimize(function, start, jac=True, **options)
                if self.best <= before + 1e-6 * (1.0 + abs(before)):
                    break
        except _Late:
            pass
        except KeyboardInterrupt:  # the best point met is kept
            self._left.interrupt()

    @property
    def _least(self) -> float:
        """Return the least modulus that is tried, in the units of the last coordinate."""
        return 1e-6 * self.box.modulus / self._unit

    def _reflected(self, point: FloatArray) -> tuple[float, FloatArray]:
        """Return the same as ``_value``, continued below the least modulus by reflection.

        Of very many coordinates: SciPy reads limits on one of them in a loop over all.
        """
        least, point = self._least, point.copy()
        above = float(point[-1]) - least
        point[-1] = least + abs(above) if least > 0.0 else 0.0
        value, slope = self._value(point)
        slope[-1] *= (1.0 if above >= 0.0 else -1.0) if least > 0.0 else 0.0
        return value, slope

    def _begin(self) -> None:
        """Look for a modulus to start from.

        At the optimum of the relaxation ``U = W - S + mu Omega``, were the gap zero.
        """
        mu, before = self.box.modulus, -math.inf
        try:
            self._value(np.append(np.zeros_like(self._x), mu / self._unit))
            for _ in range(_DOUBLINGS if mu > 0.0 else 1):
                value = -self._value(np.append(self._slack + mu * self._x, mu / self._unit))[0]
                if not value > before:
                    break
                before, mu = value, 2.0 * mu
        except _Late:
            pass
        except KeyboardInterrupt:
            self._left.interrupt()

    def _value(self, point: FloatArray) -> tuple[float, FloatArray]:
        """Return the negative bound and its gradient."""
        mu = float(point[-1]) * self._unit
        value, ascent, slope = dual_value(self.task.form, point[:-1], mu, self.box)
        if value > self.best:
            self.best, self._point = value, point.copy()
        if self._left.over() or not self._left.fits(eigenvector_cost(self.task.form.order)):
            raise _Late
        if not math.isfinite(value):
            return 1e300, np.zeros_like(point)
        return -value, -np.append(ascent, slope * self._unit)
