"""How much of an objective is left to explain, and by how many observations."""

from __future__ import annotations

import numpy as np

from sparsemodel.interfaces import Objective, Point, SparseRegression


def unexplained(objective: Objective, point: Point) -> float:
    """Return the share of the objective at zero that is left; 1 if nothing bounds it below.

    Loose minimisations are accurate relative to the gradient at zero, which is large beside that
    of a model that explains nearly everything: their tolerances are multiplied by this.
    """
    infimum, top = objective.infimum(), objective.origin().value
    if not (np.isfinite(infimum) and point.value < top):
        return 1.0
    return max((point.value - infimum) / (top - infimum), 1e-12)


def observations(objective: Objective) -> int:
    """Return how many observations there are; 0 where the objective is not a sum over them."""
    form = objective.form
    if not isinstance(form, SparseRegression):
        return 0
    return sum(int(term.stands_for or term.target.shape[0]) for term in form.terms)
