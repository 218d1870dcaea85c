"""What follows from a point, a bound and its witness: every line of a certificate but its origin.

``certify`` writes these lines and ``verify`` derives them again from the data and compares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from sparsemodel.certificates.arithmetic.condensed import CertifiedProblem
from sparsemodel.certificates.arithmetic.products import check_adjoint, matrix_free
from sparsemodel.certificates.dual_bounds.bound import INFIMUM, Bound, infimum_bound
from sparsemodel.certificates.dual_bounds.diagonal_shift import Extraction, applies, verified
from sparsemodel.certificates.dual_bounds.unpenalised import unbounded_coordinates
from sparsemodel.certificates.statements.certificate import Witness
from sparsemodel.certificates.statements.claims import (
    Assumption,
    Claim,
    relative_gap_of,
    strongest,
    supported,
)
from sparsemodel.certificates.statements.exact_fit import exact_fit
from sparsemodel.certificates.statements.objective_interval import Primal, constant_part, null_value
from sparsemodel.certificates.statements.stationarity import Stationarity, first_order
from sparsemodel.designs.operator import ADJOINT_TRIALS
from sparsemodel.interfaces import Conjugable, FloatArray, Loss, SparseRegression
from sparsemodel.numerics.minimisers.feasible import FEASIBLE

CONTRADICTION = "the bound contradicts the point"

PRODUCTS = "products of the matrix-free design are as accurate as sums of products"
MULTIPLIERS = "constraints in the objective, with multipliers of the right signs"


@final
@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """The lines of a certificate that the data decide."""

    at_point: Primal
    bound: Bound
    null_value: float
    constant: float
    """What the objective adds whatever the coefficients are."""
    stationarity: Stationarity
    gradient_noise: tuple[float, float]
    """How far the gradients of ``stationarity`` may be off elsewhere: the relative one on the
    support, and the largest off it."""
    zero: bool
    """Whether the objective is zero up to rounding."""
    assumptions: tuple[Assumption, ...]

    @property
    def allowance(self) -> float:
        """Return what the objective and the bound gave away for rounding."""
        return self.at_point.allowance + (self.bound.allowance if self.bound.finite else 0.0)

    def claim(self, upper: float, bound: float) -> Claim:
        """Return the strongest claim for numbers that these lines support."""
        return strongest(
            feasible=not self.at_point.violations,
            share=relative_gap_of(upper, bound, self.constant),
            zero=self.zero and bound >= 0.0,
            stationary=self.stationarity.stationary,
        )

    def claims(self, upper: float, bound: float) -> set[Claim]:
        """Return every claim that holds."""
        return supported(
            not self.at_point.violations,
            relative_gap_of(upper, bound, self.constant),
            self.zero and bound >= 0.0,
            self.stationarity.stationary,
        )


def stated(problem: CertifiedProblem, value: float) -> float:
    """Return a bound as it is stated: no higher than the point says, where its losses say less."""
    least = min(infimum_bound(problem.form).value, problem.at_point.upper)
    return min(value, max(problem.highest, least))


def derive(
    problem: CertifiedProblem,
    x: FloatArray,
    bound: Bound,
    witness: Witness,
    *,
    searched: bool = False,
    at_zero: bool = False,
) -> Statement:
    """Return the statement about a point and a bound.

    Parameters
    ----------
    problem
        The problem and the objective at the point.
    x
        The point.
    bound
        What ``witness`` proves, or what a search over supports does.
    witness
        The dual point.
    searched
        Whether the bound comes from a search over supports. Parts that hold no better point may
        be bounded by more than the point's objective.
    at_zero
        See :func:`~sparsemodel.certificates.statements.stationarity.first_order`.
    """
    form, at_point = problem.form, problem.at_point
    assumptions = list_assumptions(problem, bound, witness)
    if searched and bound.value > at_point.upper:
        bound = Bound(at_point.upper, bound.allowance, bound.method)
    if problem.highest < bound.value <= problem.ceiling(x):
        bound = replace(bound, value=stated(problem, bound.value))
    contradicts = bound.value > at_point.upper or math.isnan(bound.value)
    if contradicts and not at_point.violations:
        # Impossible for convex losses with right conjugates: one of the two was broken.
        assumptions.append(Assumption(_contradiction(form), True, False))
        bound = Bound(-math.inf, math.inf, bound.method, CONTRADICTION)
    extraction = _proved(problem.minorant, witness, bound, searched)
    facts, noise = first_order(problem.equivalent, x, extraction=extraction, at_zero=at_zero)
    null = null_value(form)
    zero = bound.finite and not at_point.violations
    zero = zero and exact_fit(problem.equivalent, x, at_point.value)
    return Statement(
        at_point=at_point,
        bound=bound,
        null_value=null,
        constant=constant_part(form),
        stationarity=facts,
        gradient_noise=noise,
        zero=zero,
        assumptions=tuple(assumptions),
    )


def _proved(
    form: SparseRegression, witness: Witness, bound: Bound, searched: bool
) -> FloatArray | None:
    """Return the extracted curvature where it is proved to be in the data."""
    diagonal = witness.extraction
    if diagonal is None or not (searched or bound.finite):
        return None
    if searched:  # the bound is that of the search, and says nothing of the curvature
        fits = diagonal.shape == (form.sparsity.size,) and applies(form)
        if not fits or not verified(form, Extraction(diagonal)):
            return None
    return diagonal


def _contradiction(form: SparseRegression) -> str:
    text = "no point lies below the bound (a loss is not what it says"
    exact = form.box is None and form.region is None
    return text + (
        ")" if exact else f", or the point uses that constraints are kept to {FEASIBLE:g})"
    )


def list_assumptions(problem: CertifiedProblem, bound: Bound, witness: Witness) -> list[Assumption]:
    """Return what the numbers rest on, each with whether it was checked."""
    form, at_point = problem.form, problem.at_point
    bad = "; ".join(at_point.violations)
    exact = form.box is None and form.region is None
    words = "the point is feasible" + ("" if exact else f" (constraints kept to {FEASIBLE:g})")
    out = [Assumption(words + (": " + bad if bad else ""), True, not at_point.violations)]
    if not bound.finite:
        return out
    if problem.multipliers is not None:
        out.append(Assumption(MULTIPLIERS, True))
    form = problem.terms
    if witness.duals:
        out.append(Assumption("the dual point lies in the domain of every conjugate", True))
        out.append(conjugates_agree(form, witness))
        if unbounded_coordinates(form, witness.extraction).size:
            out.append(
                Assumption(
                    "a dual point that balances the coordinates without ridge exactly lies "
                    "within the allowance",
                    True,
                )
            )
    if witness.bounds is not None:
        out.append(Assumption(witness.bounds.statement, True))
    if witness.extraction is not None:
        out.append(
            Assumption(
                "the data have the extracted curvature (Cholesky with a safety margin)", True
            )
        )
    unknown = sorted({t.loss.name for t in form.terms if not t.traits.conjugable})
    if unknown and bound.method != INFIMUM:
        words = "convex, with values and gradients right to 64 units in the last place of the sizes"
        out.append(Assumption(f"{', '.join(unknown)}: {words} that it states", False))
    out += _of_operators(form)
    out.append(
        Assumption("float64 arithmetic rounds to nearest, library functions to a few ulp", False)
    )
    return out


def _of_operators(form: SparseRegression) -> list[Assumption]:
    """Return what rests on matrix-free designs."""
    if not any(matrix_free(term.design) for term in form.terms):
        return []
    for term in form.terms:
        check_adjoint(term.design)
    return [
        Assumption(
            f"<r, A x> = <A.T r, x> up to rounding on {ADJOINT_TRIALS} random pairs of "
            "vectors, for the matrix-free design",
            True,
        ),
        Assumption(PRODUCTS, False),
    ]


def conjugates_agree(form: SparseRegression, witness: Witness) -> Assumption:
    """Check the Fenchel-Young inequality ``l(u) + l*(a) >= a u`` at the dual point, u = 0 and y."""
    text = "values and conjugates of the losses satisfy the Fenchel-Young inequality there"
    for term, a in zip(form.terms, witness.duals, strict=True):
        loss = term.loss
        if a is None or not (isinstance(loss, Loss) and isinstance(loss, Conjugable)):
            continue
        for u in (np.zeros(a.shape), -a):
            values, conjugates = loss.value(u, term.target), loss.conjugate(a, term.target)
            products = a * u if a.ndim == 1 else np.einsum("ij,ij->i", a, u)
            size = 1.0 + np.abs(values) + np.abs(conjugates) + np.abs(products)
            if np.any(values + conjugates - products < -1e-10 * size):
                return Assumption(text, True, False)
    return Assumption(text, True)
