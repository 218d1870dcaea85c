"""Linear constraints as a term of the objective, whose slopes each part of a search chooses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from sparsemodel.certificates.statements.numbers import Rows
from sparsemodel.interfaces import FloatArray, SparseRegression, Term
from sparsemodel.losses import LinearLoss


@final
@dataclass(frozen=True, slots=True, eq=False)
class DualisedRows(LinearLoss):
    """Slopes of linear constraints, which parts of a search may have others of."""

    rows: Rows

    def term(self, y: FloatArray) -> Term:
        """Return ``y' (C x - b)``, not above zero where the constraints hold.

        Raises
        ------
        ValueError
            When a slope pushes away from an end that is not there, or there are not as many.
        """
        ends = self.rows.ends(y)
        return Term(self.rows.design, self, y, np.ones(y.size), -ends)

    def dual_interval(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return between what ends slopes stay with the same ends of the constraints.

        Those of an equation may be anything, others keep their sign, those of norms are as they
        are.
        """
        low, high, count = y.copy(), y.copy(), self.rows.lower.size
        first, equal = y[:count], (self.rows.lower == self.rows.upper) & (y[:count] != 0.0)
        low[:count] = np.where(equal | (first < 0.0), -np.inf, 0.0)
        high[:count] = np.where(equal | (first > 0.0), np.inf, 0.0)
        return low, high

    def conjugate(self, a: FloatArray, y: FloatArray) -> FloatArray:
        """Return 0 for slopes with the same ends as ``y``: what they lose is in the offset."""
        low, high = self.dual_interval(y)
        return np.where((a >= low) & (a <= high), 0.0, np.inf)

    def moved(self, term: Term, y: FloatArray) -> Term:
        """Return the term, on some of the columns perhaps, with other slopes.

        Raises
        ------
        ValueError
            As for :meth:`term`.
        """
        return replace(term, target=y, offset=-self.rows.ends(y))


def row_term(form: SparseRegression) -> int | None:
    """Return which term holds the slopes of linear constraints that parts choose; None for none."""
    found = (i for i, term in enumerate(form.terms) if isinstance(term.loss, DualisedRows))
    return next(found, None)


def norm_slopes(form: SparseRegression) -> bool:
    """Return whether parts choose slopes of limits on norms as well."""
    return any(isinstance(t.loss, DualisedRows) and t.loss.rows.norms for t in form.terms)


def with_slopes(form: SparseRegression, y: FloatArray | None) -> SparseRegression:
    """Return the form with other slopes of its linear constraints, where they may be chosen.

    Raises
    ------
    ValueError
        When they do not fit.
    """
    if y is None:
        return form

    def moved(term: Term) -> Term:
        if isinstance(term.loss, DualisedRows) and not np.array_equal(y, term.target):
            return term.loss.moved(term, y)
        return term

    return replace(form, terms=tuple(map(moved, form.terms)))


def with_stiffness(
    form: SparseRegression, duals: tuple[FloatArray | None, ...]
) -> tuple[FloatArray | None, ...]:
    r"""Return dual points whose slopes hold the stiffness of equations too: a bound nowhere lower.

    With :math:`\rho_i r_i` added to the slopes nothing changes but that :math:`\tfrac12 \rho_i
    r_i^2` is not lost.
    """
    place = row_term(form)
    if place is None or place + 1 == len(form.terms):
        return duals
    y, r = duals[place], duals[place + 1]
    if y is None or r is None:
        return duals
    moved = y.copy()  # slopes of norms come after those of the rows
    moved[: r.size] += form.terms[place + 1].weights * r
    return (*duals[:place], moved, np.zeros(r.shape))
