"""A first point from a part of the rows, where reading all of them is slow."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sparsemodel.compiler.choice.dispatch import make_plan
from sparsemodel.compiler.choice.samples import sample_size
from sparsemodel.compiler.facts.analysis import Facts
from sparsemodel.compiler.reductions.base import Reduced
from sparsemodel.compiler.reductions.chain import reduce_form
from sparsemodel.interfaces import FloatArray, Form, IntArray, SparseRegression, Term

if TYPE_CHECKING:
    from collections.abc import Callable

    from sparsemodel.compiler.plans.plan import Plan
    from sparsemodel.driver.outcome import Outcome

_PIECES = 64
"""Runs of consecutive rows that a sample is made of."""


def sampled_start(
    reduced: Reduced, solve: Callable[[Form, Reduced, Plan], Outcome]
) -> FloatArray | None:
    """Return the solution on a sample of the rows; None where all of them are at hand.

    Only where rows come from a file that every product reads from end to end, and losses are sums
    over observations. The point is one of the reduced form's coordinates.
    """
    form = reduced.form
    if not isinstance(form, SparseRegression):
        return None
    size = sample_size(form)
    if not size:
        return None
    n = sum(term.design.shape[0] for term in form.terms)
    sample = replace(form, terms=tuple(_sampled(term, size / n) for term in form.terms))
    facts = Facts(sample)
    smaller = reduce_form(sample, facts)
    return solve(sample, smaller, make_plan(sample, smaller, facts, None)).x


def _sampled(term: Term, share: float) -> Term:
    """Return a term of some rows with the weight of all."""
    rows = _runs(term.design.shape[0], share)
    weights = term.weights[rows]
    total = float(weights.sum())
    scale = float(term.weights.sum()) / total if total > 0.0 else 1.0
    offset = None if term.offset is None else term.offset[rows]
    design = term.design.restrict_rows(rows)
    return Term(design, term.loss, term.target[rows], scale * weights, offset)


def _runs(n: int, share: float) -> IntArray:
    """Return sorted rows in runs all over the data."""
    ends = np.linspace(0, n, _PIECES + 1).astype(np.intp)
    runs = [
        np.arange(start, start + max(1, round(share * (stop - start))))
        for start, stop in itertools.pairwise(ends)
        if stop > start
    ]
    return np.concatenate(runs)
