"""The other side of a gap: the objective at a point, rounded up, and whether it is feasible."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from sparsemodel.certificates.arithmetic.products import predicted_rows
from sparsemodel.certificates.arithmetic.rounding import (
    COMPUTED,
    TINY,
    U,
    add_up,
    gamma,
    value_error,
)
from sparsemodel.interfaces import Cardinality, FloatArray, IntArray, Loss, SparseRegression, Term
from sparsemodel.numerics.minimisers.feasible import FEASIBLE


@final
@dataclass(frozen=True, slots=True, eq=False)
class Primal:
    """The objective at a point of the original problem."""

    value: float
    """``P(x)`` as computed, price included."""
    upper: float
    """At least the exact ``P(x)``."""
    support: IntArray
    """Where ``x`` is not zero, without the free coordinates; sorted."""
    units: int
    """How many counted units are not zero."""
    violations: tuple[str, ...]
    """What keeps the point from being feasible, in words; empty when it is feasible."""

    @property
    def allowance(self) -> float:
        """Return how much was added for rounding."""
        return self.upper - self.value


def primal(
    form: SparseRegression, x: FloatArray, terms: Sequence[tuple[float, float]] | None = None
) -> Primal:
    """Evaluate the objective at ``x`` on the original data, with its constraints.

    O(n) for every coordinate of the support, in float64 whatever the design stores. ``terms`` are
    the values of the terms there and how far above them the exact ones may be, where known.
    """
    nonzero = np.flatnonzero(x if x.ndim == 1 else np.any(x != 0.0, axis=1))
    values, errors = [form.constant], [0.0]
    for number, term in enumerate(form.terms):
        value, error = _term_value(term, x, nonzero) if terms is None else terms[number]
        values.append(value)
        errors.append(error)
    root = np.sqrt(form.ridge[nonzero])  # squares of small coefficients would underflow
    squares = np.square((root if x.ndim == 1 else root[:, None]) * x[nonzero])
    energy = 0.5 * math.fsum(squares.ravel())
    units = form.sparsity.count(x)
    paid = form.sparsity.paid(x)
    value = math.fsum([*values, energy, paid])
    slack = gamma(16 + form.outputs) * (energy + paid) + 4.0 * U * abs(value)
    slack += TINY * (1 + squares.size)
    counted = form.sparsity.counted[nonzero]
    return Primal(
        value=value,
        upper=math.nextafter(math.fsum([*values, *errors, energy, paid, slack]), math.inf),
        support=nonzero[counted],
        units=units,
        violations=_violations(form, x, units),
    )


def null_value(form: SparseRegression) -> float:
    """Return the objective at zero: what the coefficients have to explain."""
    return primal(form, np.zeros(form.shape)).value


def constant_part(form: SparseRegression) -> float:
    """Return what the objective adds whatever the coefficients are.

    Its constant, and that of the offsets of linear terms. A gap is not compared with that.
    """
    pieces = [form.constant]
    for term in form.terms:
        if term.traits.affine and term.offset is not None:
            pieces.extend((term.slopes() * term.offset).ravel())
    return math.fsum(pieces)


@final
class TermValue:
    """The value of a term with a bound on its rounding, from predictions as they come."""

    def __init__(self, term: Term) -> None:
        self._term = term
        self._values: list[float] = []
        self._highs: list[float] = []

    def add(self, rows: slice, u: FloatArray, error: FloatArray) -> None:
        """Take in the predictions of some rows, without offsets, and bounds on their errors."""
        term = self._term
        if term.offset is not None:
            u = u + term.offset[rows]
            error = error + 2.0 * U * np.abs(u)
        loss, y, c = term.loss, term.target[rows], term.weights[rows]
        if not isinstance(loss, Loss):
            value = loss.total(u, y, c)
            shift = float(np.sum(np.abs(loss.gradient(u, y, c)) * error))
            # Observations are coupled: their predictions cancel in differences of any of them.
            size, _ = loss.magnitudes(u, y, c)
            self._values.append(value)
            self._highs.append(value + 2.0 * shift + COMPUTED * size)
            return
        losses = loss.value(u, y)
        reach = error * (1.0 + 8.0 * U)
        if u.ndim == 1:
            # Convex in one variable: the largest value nearby is at an end.
            around = (u - reach, u + reach)
            ends = [loss.value(v, y) for v in around]
            slack = value_error(loss, np.abs(u) + reach, y, np.maximum(*ends))
            own = [value_error(loss, v, y, e) for v, e in zip(around, ends, strict=True)]
            # Whether a loss overflows depends on the sign of the prediction.
            slack = np.where(np.isfinite(slack) & np.isfinite(sum(own)), slack, np.maximum(*own))
            high = np.maximum(*ends) + slack
        elif term.traits.simplex:
            # Slopes are probabilities, one of them less one: their sizes add up to two at most.
            high = losses + 2.0 * reach.max(axis=1) + value_error(loss, u, y, losses)
        else:
            slope = np.abs(loss.derivative(u, y))
            upper = term.traits.upper
            moved = (slope * reach).sum(axis=1) + upper * np.square(reach).sum(axis=1)
            high = losses + 2.0 * moved + value_error(loss, u, y, losses)
        self._values.append(math.fsum(c * losses))
        # c * high rounds once an observation.
        self._highs.append(add_up(c * (high + TINY) + 4.0 * U * c * np.abs(high) + TINY))

    def ends(self) -> tuple[float, float]:
        """Return the value, and by how much the exact one can be above it."""
        value = math.fsum(self._values)
        total = self._highs[0] if len(self._highs) == 1 else add_up(np.array(self._highs))
        return value, max(0.0, math.nextafter(total - value, math.inf))


def _term_value(term: Term, x: FloatArray, support: IntArray) -> tuple[float, float]:
    """Return the value of a term at ``x`` and by how much the exact one can be above it."""
    found = TermValue(term)
    for rows, u, error in predicted_rows(term.design, x, support, whole=not _by_rows(term)):
        found.add(rows, u, error)
    return found.ends()


def _by_rows(term: Term) -> bool:
    return isinstance(term.loss, Loss)


def _violations(form: SparseRegression, x: FloatArray, units: int) -> tuple[str, ...]:
    found = []
    if not np.all(np.isfinite(x)):
        return ("the point has entries that are not finite",)
    if units > form.sparsity.budget:
        nonzero = units + form.sparsity.forced_units
        found.append(f"{nonzero} units are nonzero and k is {form.sparsity.k}")
    found += _over_limits(form.sparsity, x)
    if form.box is not None:
        low, high, near = form.box.broken(x, FEASIBLE)
        for off, word in ((low, "below its lower"), (high, "above its upper")):
            if off.any():
                first = tuple(int(i) for i in np.argwhere(off)[0])
                found.append(f"{off.sum()} entries lie {word} bound, the first at {first}")
        if near.any():
            found.append(f"{near.sum()} entries are nearer to zero than they may be")
    if form.region is not None:
        outside = form.region.violation(x)
        if not outside <= FEASIBLE:
            found.append(f"{form.region.describe()}: violated by {outside:.1e} of its size")
    return tuple(found)


def _over_limits(sparsity: Cardinality, x: FloatArray) -> list[str]:
    """Return which limits on parts of the units, and which budgets, are broken."""
    if sparsity.plain:
        return []
    active = sparsity.active_units(x)
    left = [knapsack.left(active) for knapsack in sparsity.knapsacks]
    over = [
        f"the costs of nonzero units exceed the budget by {-room:g}" for room in left if room < 0.0
    ]
    return over + [
        f"{count} units of a set are nonzero, of which at most {most} may be"
        for layer in sparsity.layers
        for count, most in zip(layer.counts(active).tolist(), layer.most.tolist(), strict=True)
        if count > most
    ]


def feasible_upper(form: SparseRegression, x: FloatArray) -> float:
    """Return the objective rounded up; infinite where the point is not feasible."""
    found = primal(form, x)
    return math.inf if found.violations else found.upper
