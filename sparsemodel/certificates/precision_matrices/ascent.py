"""The search for the best bound on a precision matrix: ascent in the dual and the modulus."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from sparsemodel.certificates.arithmetic.rounding import U as _U
from sparsemodel.certificates.precision_matrices.spectral_bounds import (
    Enclosure,
    added,
    dual_value,
    enclose,
)
from sparsemodel.certificates.precision_matrices.trivial import trivial_nats, whole_box
from sparsemodel.interfaces import FloatArray
from sparsemodel.interfaces.precision import AnyPrecision, SparsePrecision
from sparsemodel.numerics.budget import Budget, eigenvector_cost

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
        return _shifted(value, self.shift)

    def in_units(self, entries: FloatArray, power: int = 1) -> FloatArray:
        """Return entries of a covariance in the units; those of a precision matrix for -1."""
        if self.units is None:
            return entries
        e = np.array(self.units)
        out: FloatArray = np.ldexp(entries, power * (e[self.form.rows] + e[self.form.cols]))
        return out

    def below(self, level: float) -> Task:
        """Return the task with an upper bound in the variables' own units, if that is lower."""
        level = level + self.shift + 4.0 * _U * (abs(level) + abs(self.shift))
        return replace(self, upper=min(self.upper, level))

    def enclosed(self, U: FloatArray | None = None, box: Enclosure | None = None) -> Enclosure:
        """Return an enclosure of all matrices up to ``upper``, inside ``box``."""
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


def _shifted(value: float, shift: float) -> float:
    if not (shift and math.isfinite(value)):
        return value
    return value - shift - 4.0 * _U * (abs(value) + abs(shift))


@final
class Tasks:
    r"""The matrices of a problem, each in its units and in a set that holds it where it is best.

    Of several, the likelihood :math:`s_g L_g` of one is at most the upper bound less what the
    others have at least, :math:`D_{-g}`: their own dual bound, with one pattern.
    """

    def __init__(
        self, form: AnyPrecision, upper: float, units: Sequence[tuple[int, ...] | None]
    ) -> None:
        self.form, self._upper = form, upper
        free = [trivial_nats(part) if len(units) > 1 else 0.0 for part in form.parts]
        levels = [self._level(g, added(*self._others(g, free), -1.0)) for g in range(len(units))]
        self.each = [rescaled(*at) for at in zip(form.parts, levels, units, strict=True)]
        self.boxes = [task.enclosed() for task in self.each]

    def _others(self, g: int, values: Sequence[Any]) -> tuple[list[float], list[Any]]:
        """Return the shares and the values of all matrices but one."""
        pairs = zip(self.form.shares, values, strict=True)
        kept = [pair for place, pair in enumerate(pairs) if place != g]
        return [share for share, _ in kept], [value for _, value in kept]

    def _level(self, g: int, others: float) -> float:
        """Return the largest likelihood of a matrix beside what the others have at least."""
        if len(self.form.parts) == 1:
            return self._upper
        size = abs(self._upper) + abs(others)
        return (self._upper - others + 32.0 * _U * size) / self.form.shares[g] * (1.0 + 8.0 * _U)

    def value(self, U: FloatArray, mu: FloatArray) -> float:
        """Return the bound in nats for dual points in the units, a row for each matrix."""
        return self._value(range(len(self.each)), U, mu)

    def _value(self, places: Sequence[int], U: FloatArray, mu: FloatArray) -> float:
        tasks, shares = [self.each[g] for g in places], [self.form.shares[g] for g in places]
        at, boxes = list(places), [self.boxes[g] for g in places]
        value = dual_value([t.form for t in tasks], U[at], mu[at], boxes, shares)[0]
        shift = added(shares, [t.shift for t in tasks], 1.0)
        return _shifted(value, shift)

    def in_nats(self, value: float) -> float:
        """Return a bound on all of them in the variables' own units, rounded down."""
        return _shifted(value, added(self.form.shares, [t.shift for t in self.each], 1.0))

    def narrow(self, U: FloatArray, mu: FloatArray) -> None:
        """Make the sets smaller, by dual points."""
        everyone = range(len(self.each))
        if len(everyone) > 1:
            least = [self._value([h for h in everyone if h != g], U, mu) for g in everyone]
            pairs = zip(self.each, map(self._level, everyone, least), strict=True)
            self.each = [task.below(level) for task, level in pairs]
        self.boxes = [t.enclosed(u, b) for t, u, b in zip(self.each, U, self.boxes, strict=True)]


class _Late(Exception):
    """Time is up in the middle of an ascent."""


@final
class Ascent:
    """Maximises the bound by L-BFGS in ``U`` and the modulus, keeping the best point met.

    The modulus is measured in units of ``1 / |Omega|``: the curvature of the bound is then that in
    an entry of ``U`` that is paid for.
    """

    def __init__(self, tasks: Tasks, slack: FloatArray, x: FloatArray, left: Budget) -> None:
        """``x`` is the known matrix, ``slack`` its inverse less the covariance, in the units.

        Of several matrices, a row for each.
        """
        self.tasks = tasks
        self._forms = [task.form for task in tasks.each]
        self._slack, self._x, self._left = slack, x, left
        sizes = [np.linalg.norm(f.matrix(row)) for f, row in zip(self._forms, x, strict=True)]
        self._units = 1.0 / np.maximum(sizes, 1e-300)
        self.best: float = -math.inf
        self._point: FloatArray = np.zeros(x.size + len(x))
        self._begin()

    @property
    def U(self) -> FloatArray:
        """Return the dual matrix of the best bound, as a vector over the coordinates."""
        return self._point[: self._x.size].reshape(self._x.shape)

    @property
    def mu(self) -> FloatArray:
        """Return the modulus of the best bound."""
        out: FloatArray = self._point[self._x.size :] * self._units
        return out

    def again(self) -> None:
        """Go on within smaller enclosures, from the best point so far."""
        self.best = -math.inf

    def run(self) -> None:
        """Ascend until nothing is gained, or time is up."""
        from scipy.optimize import minimize

        options: dict[str, Any] = {"method": "L-BFGS-B", "options": {"maxiter": 150, "maxfun": 300}}
        function = self._reflected
        if self._x.size <= _MANY:
            function = self._value
            limits = [(least, None if least > 0.0 else 0.0) for least in self._least.tolist()]
            options["bounds"] = [(None, None)] * self._x.size + limits
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
    def _least(self) -> FloatArray:
        """Return the least moduli that are tried, in the units of the last coordinates."""
        out: FloatArray = 1e-6 * self._moduli / self._units
        return out

    @property
    def _moduli(self) -> FloatArray:
        return np.array([box.modulus for box in self.tasks.boxes])

    def _reflected(self, point: FloatArray) -> tuple[float, FloatArray]:
        """Return the same as ``_value``, continued below the least modulus by reflection.

        Of very many coordinates: SciPy reads limits on one of them in a loop over all.
        """
        least, point, m = self._least, point.copy(), len(self._x)
        above = point[-m:] - least
        point[-m:] = np.where(least > 0.0, least + np.abs(above), 0.0)
        value, slope = self._value(point)
        slope[-m:] *= np.where(least > 0.0, np.where(above >= 0.0, 1.0, -1.0), 0.0)
        return value, slope

    def _begin(self) -> None:
        """Look for a modulus to start from.

        At the optimum of the relaxation ``U = W - S + mu Omega``, were the gap zero.
        """
        mu, before = self._moduli, -math.inf
        try:
            self._value(np.append(np.zeros_like(self._x), mu / self._units))
            for _ in range(_DOUBLINGS if np.all(mu > 0.0) else 1):
                U = self._slack + mu[:, None] * self._x
                value = -self._value(np.append(U, mu / self._units))[0]
                if not value > before:
                    break
                before, mu = value, 2.0 * mu
        except _Late:
            pass
        except KeyboardInterrupt:
            self._left.interrupt()

    def _value(self, point: FloatArray) -> tuple[float, FloatArray]:
        """Return the negative bound and its gradient."""
        m = len(self._x)
        U, mu = point[:-m].reshape(self._x.shape), point[-m:] * self._units
        shares, boxes = self.tasks.form.shares, self.tasks.boxes
        value, ascent, slope = dual_value(self._forms, U, mu, boxes, shares)
        if value > self.best:
            self.best, self._point = value, point.copy()
        if self._left.over() or not self._left.fits(m * eigenvector_cost(self._forms[0].order)):
            raise _Late
        if not math.isfinite(value):
            return 1e300, np.zeros_like(point)
        return -value, -np.append(ascent, slope * self._units)
