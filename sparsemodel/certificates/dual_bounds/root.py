"""The best bound without branching, and what a proof does with it."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from sparsemodel.certificates.arithmetic.products import column_norms
from sparsemodel.certificates.dual_bounds.bound import infimum_bound
from sparsemodel.certificates.dual_bounds.bound_search import Candidate, Found, extractable, search
from sparsemodel.certificates.dual_bounds.coefficient_bounds.base import named
from sparsemodel.certificates.dual_bounds.witness import evaluate
from sparsemodel.certificates.statements.certificate import Certificate, Progress, Witness
from sparsemodel.certificates.statements.claims import OPTIMAL_GAP, relative_gap_of
from sparsemodel.certificates.statements.exact_fit import exact_fit
from sparsemodel.certificates.statements.objective_interval import Primal
from sparsemodel.interfaces import FloatArray, SparseRegression
from sparsemodel.numerics import as_sequence

_SHARE = 0.25
"""Share of a proof's time that is kept for the bound without branching."""

_MOST = 15.0
"""Seconds at most of that share; what it takes where there is no limit."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Root:
    """The best bound without branching."""

    best: Candidate
    progress: tuple[Progress, ...] = ()
    interrupted: bool = False


def root_bound(
    form: SparseRegression,
    x: FloatArray,
    at_point: Primal,
    *,
    duals: Sequence[tuple[FloatArray, ...]],
    known: Sequence[Candidate] = (),
    deadline: float | None,
    relax: bool,
    began: float,
    target: float = OPTIMAL_GAP,
) -> Root:
    """Return the best of what is known, the losses' infimum, and what a search finds.

    ``known`` are candidates of earlier certificates; their witnesses are evaluated again. Where
    the gap stays open the search goes on in the box that the data prove.
    """
    from sparsemodel.certificates.dual_bounds.coefficient_bounds.certifying import search_within

    if as_sequence(form) is not None:
        bare = Witness(())
        return Root(Candidate(bare, evaluate(form, bare), "the steps of a sequence"))
    candidates = [Candidate(Witness(()), infimum_bound(form), "nothing to search")]
    if candidates[0].bound.value >= 0.0 and exact_fit(form, x, at_point.value):
        return Root(candidates[0])  # nothing is left to gain
    norms = tuple(column_norms(term.design) for term in form.terms)
    candidates += [evaluated(form, c, at_point, norms) for c in known]
    progress: list[Progress] = []

    boxes = list[Found]()

    def in_box(best: Candidate) -> Found:
        found = search_within(form, x, at_point, best, norms=norms, deadline=deadline, began=began)
        boxes.append(found)
        return found

    def look(gradients: Sequence[tuple[FloatArray, ...]], relax: bool) -> Found:
        return search(
            form,
            x,
            at_point,
            norms=norms,
            gradients=gradients,
            deadline=deadline,
            relax=relax,
            began=began,
            target=target,
            instead=in_box if relax else None,
        )

    def take(found: Found) -> Found:
        candidates.extend(found.candidates)
        progress.extend(found.progress)
        return found

    # In a box that the data prove every dual point is worth at least as much, so that comes first
    # where curvature cannot be taken out.
    boxable = relax and not extractable(form, deadline)
    last = take(look(duals, relax and not boxable))
    if relax and not (last.interrupted or boxes):
        last = take(in_box(max(candidates, key=lambda c: c.bound.value)))
        if boxable and not (last.candidates or last.interrupted):
            last = take(look((), True))
    best = max(candidates, key=lambda c: c.bound.value)
    return Root(best, tuple(progress), last.interrupted)


def evaluated(
    form: SparseRegression,
    candidate: Candidate,
    at_point: Primal,
    norms: tuple[FloatArray, ...] | None = None,
) -> Candidate:
    """Return a candidate with its bound evaluated again, in the box of its own bounds."""
    from sparsemodel.certificates.dual_bounds.coefficient_bounds.certifying import within

    witness = candidate.witness
    inner = within(form, witness.bounds, at_point)
    bound = named(evaluate(inner, witness, norms=norms), witness.bounds)
    return Candidate(witness, bound, candidate.source)


@final
class Reserve:
    """The part of a proof's time that is kept for the bound without branching.

    Branching closes the gap of most problems that it can close in no time. Where it does not, it
    may end below what a certificate proves at the root, and then that is the better bound.
    """

    def __init__(self, began: float, time_limit: float | None, known: Sequence[Candidate]) -> None:
        self._known = known
        self._end = None if time_limit is None else began + time_limit
        kept = 0.0 if known or time_limit is None else min(_SHARE * time_limit, _MOST)
        self.deadline: float | None = None if self._end is None else self._end - kept
        """When branching has to end."""

    def bound(
        self,
        form: SparseRegression,
        x: FloatArray,
        at_point: Primal,
        *,
        proved: float,
        gap: float,
        duals: Sequence[tuple[FloatArray, ...]],
        interrupted: bool,
        began: float,
    ) -> Root:
        """Return the bound without branching; a relaxation only where ``proved`` leaves a gap."""
        left = not (math.isfinite(proved) and relative_gap_of(at_point.upper, proved) <= gap)
        now = time.perf_counter()
        end = now + _MOST if self._end is None else self._end
        relax = left and not (interrupted or self._known) and now < end
        return root_bound(
            form,
            x,
            at_point,
            duals=duals,
            known=self._known,
            deadline=end,
            relax=relax,
            began=began,
        )


def known_candidates(
    certificates: Sequence[object], form: SparseRegression
) -> tuple[Candidate, ...]:
    """Return what certificates hold to bound ``form`` with; their numbers are not trusted.

    Nothing of a certificate with multipliers, whose dual points belong to another problem.
    """
    return tuple(
        Candidate(c.witness, infimum_bound(form), c.bound_source)
        for c in certificates
        if isinstance(c, Certificate)
        and c.witness.duals
        and c.witness.multipliers is None
        and c.x.shape == form.shape
    )


def contradicts(upper: float, proved: float) -> bool:
    """Return whether a bound on all parts of a search lies above a feasible point in one of them.

    ``upper`` is the objective at the point, rounded up.
    """
    return bool(np.isfinite(proved) and proved > upper)
