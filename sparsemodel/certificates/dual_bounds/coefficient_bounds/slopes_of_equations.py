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

from sparsemodel.certificates.arithmetic.multipliers import MILD, multipliers_at, priced
from sparsemodel.certificates.arithmetic.products import column_norms
from sparsemodel.certificates.arithmetic.tall import Survey
from sparsemodel.certificates.dual_bounds.bound_search import search
from sparsemodel.certificates.dual_bounds.coefficient_bounds.base import CoefficientBounds
from sparsemodel.certificates.dual_bounds.coefficient_bounds.bounds import boxed
from sparsemodel.interfaces import FloatArray
from sparsemodel.numerics.budget import Budget

ROUNDS = 2
"""Steps from no slopes: the second one changes bounds by a tenth, further ones by a hundredth."""


def relaxed_slopes(
    seen: Survey, x: FloatArray, bounds: CoefficientBounds, deadline: float | None
) -> Survey | None:
    """Return a survey with the slopes that the relaxation in the box of ``bounds`` has.

    ``bounds`` are those for the slopes of ``seen``. None without equations, or without time.
    """
    held = seen.multipliers
    stiff = None if held is None or Budget(deadline).over() else multipliers_at(seen.form, x, MILD)
    if held is None or stiff is None or not np.any(stiff.stiffness):
        return None
    mild = priced(seen, replace(held, stiffness=stiff.stiffness, own=False)).below
    inner = boxed(mild, bounds)
    found = search(
        inner,
        x if inner.box is None else np.clip(x, inner.box.lower, inner.box.upper),
        seen.at_point,
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
    return priced(seen, replace(held, slopes=slopes, stiffness=0.0 * held.stiffness))
