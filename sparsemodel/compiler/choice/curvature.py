"""What the curvature of losses says of the opening that starts best."""

from __future__ import annotations

import math

from sparsemodel.interfaces import IntervalConjugable, SparseRegression

_SPARSE = 4.0
"""Entries for each stored one, from which columns count as sparse."""


def only_the_dual_is_smooth(form: SparseRegression) -> bool:
    """Return whether losses have kinks, and conjugates and a ridge that make the dual smooth."""
    counted = form.ridge[form.sparsity.counted]
    return (
        not form.traits.has_hessian
        and not form.matrix
        and bool((counted > 0.0).all())
        and all(isinstance(term.loss, IntervalConjugable) for term in form.terms)
    )


def straight_in_sparse_data(form: SparseRegression) -> bool:
    """Return whether losses of labels are linear near zero and most entries of the data are zero.

    These are smoothed hinges: models at zero have hardly any curvature in columns with few entries,
    and promise most for those.
    """
    traits = form.traits
    labels = traits.piecewise and traits.curved and not traits.of_difference
    stored = sum(term.design.entries for term in form.terms)
    return labels and _SPARSE * stored <= sum(math.prod(t.design.shape) for t in form.terms)
