r"""Slopes of equations for which bounds on coefficients say most.

With slopes ``y`` of an equation in the objective the data bound the coefficients as without it,
but with a stiffness, which is one more column that all others are correlated with, they seldom do.
So the slopes have to be good ones, and those of the best point are not: the relaxation meets an
equation at less cost. Within the box of some slopes its own are a proximal step away, and the
bounds are then those of these.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from sparsemodel.certificates.arithmetic.condensed import CertifiedProblem
from sparsemodel.certificates.arithmetic.multipliers import MILD, dualised, multipliers_at
from sparsemodel.certificates.arithmetic.products import column_norms
from sparsemodel.certificates.dual_bounds.bound_search import search
from sparsemodel.certificates.dual_bounds.coefficient_bounds.base import CoefficientBounds
from sparsemodel.certificates.dual_bounds.coefficient_bounds.bounds import boxed
from sparsemodel.interfaces import FloatArray
from sparsemodel.numerics.budget import Budget

ROUNDS = 2
"""Steps from no slopes: the second one changes bounds by a tenth, further ones by a hundredth."""


def relaxed_slopes(
    problem: CertifiedProblem, x: FloatArray, bounds: CoefficientBounds, deadline: float | None
) -> CertifiedProblem | None:
    """Return the problem with the slopes that the relaxation in the box of ``bounds`` has.

    ``bounds`` are those for the slopes of ``problem``. None without equations, or without time.
    """
    held = problem.multipliers
    stiff = (
        None if held is None or Budget(deadline).over() else multipliers_at(problem.form, x, MILD)
    )
    if held is None or stiff is None or not np.any(stiff.stiffness):
        return None
    mild = dualised(problem, replace(held, stiffness=stiff.stiffness, own=False)).minorant
    inner = boxed(mild, bounds)
    found = search(
        inner,
        x if inner.box is None else np.clip(x, inner.box.lower, inner.box.upper),
        problem.at_point,
        norms=tuple(column_norms(term.design) for term in inner.terms),
        gradients=(),
        deadline=deadline,
        relax=True,
        began=time.perf_counter(),
    )
    best = max(found.candidates, key=lambda c: c.bound.value, default=None)
    off = None if best is None or not best.witness.duals else best.witness.duals[-1]
    if off is None or found.interrupted:
        return None
    slopes = held.slopes.copy()
    slopes[: off.size] += stiff.stiffness * off
    return dualised(problem, replace(held, slopes=slopes, stiffness=0.0 * held.stiffness))
