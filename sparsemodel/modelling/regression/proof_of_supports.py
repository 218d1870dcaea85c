"""Proving the solution of a regression, or a better one that the proof finds."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from sparsemodel.compiler.choice.effort import Effort
from sparsemodel.driver import Outcome
from sparsemodel.interfaces import (
    DataError,
    FloatArray,
    Role,
    SparseRegression,
    UnsupportedProblemError,
)
from sparsemodel.modelling.formulations.formulation import ProofRequest
from sparsemodel.numerics.budget import budget
from sparsemodel.registry import usable_backends

if TYPE_CHECKING:
    from sparsemodel.certificates import Certificate
    from sparsemodel.certificates.dual_bounds.coefficient_bounds.base import CoefficientBounds
    from sparsemodel.certificates.short_proofs.short_proof import Patience, ShortProofResult

_SAME = 1e-10
"""Relative distance of objectives that are told apart by what minimised them alone."""

_SHARE = 0.8
"""Share of the time for a search beside linear constraints, where nothing was certified before."""


def searched(
    form: SparseRegression,
    outcome: Outcome,
    backend: str,
    asked: ProofRequest,
    *,
    names: tuple[str, ...],
    last: Certificate | None,
) -> Certificate:
    """Return the certificate of a search over supports.

    Parameters
    ----------
    names
        Of the coordinates.
    last
        What was certified before: a proof starts from its bound.
    """
    from sparsemodel.certificates.dual_bounds.root import known_candidates
    from sparsemodel.certificates.proving.prove import prove as search
    from sparsemodel.certificates.proving.quadratic.searchable import searchable
    from sparsemodel.certificates.proving.search import Snapshot

    def listen(now: Snapshot) -> object:
        return asked.show(now.value, now.bound, now.nodes, now.open)

    x, began = outcome.x, time.perf_counter()
    gap, time_limit, resume = asked.gap, asked.time_limit, asked.resume
    alone = last is not None or form.region is None or searchable(form)
    share = 1.0 if alone else _SHARE
    try:
        known = known_candidates([last, resume], form)
        earlier = _resumable(last, gap) if resume is None else resume
        found = search(
            form,
            x,
            names=names,
            gap=gap,
            time_limit=None if time_limit is None else share * time_limit,
            duals=outcome.duals,
            backend=backend,
            history=outcome.history,
            progress=listen,
            resume=earlier,
            bounds=None if earlier is not None else _known_bounds(last, x),
            boxable=True,
            known=known,
        )
    except KeyboardInterrupt:  # before there was anything to search
        found = _at_hand(form, outcome, backend, names, last)
    if not alone:
        left = None if time_limit is None else time_limit - (time.perf_counter() - began)
        last = _otherwise(form, outcome, found, backend, names, gap, left)
    alike = 0.0 if last is None else max(last.allowance, _SAME * abs(last.upper))
    same = last is not None and abs(last.upper - found.upper) <= alike
    if last is not None and same and last.bound > found.bound:
        return last  # rounding, or a gap that was asked for and is wider
    return found


def _otherwise(
    form: SparseRegression,
    outcome: Outcome,
    found: Certificate,
    backend: str,
    names: tuple[str, ...],
    gap: float,
    left: float | None,
) -> Certificate | None:
    """Return what is certified with other multipliers than those of a search that left a gap."""
    from sparsemodel.certificates import certify

    ended = (found.proof or {"summary": {}})["summary"].get("ended")
    open_ = found.witness.multipliers is not None and found.relative_gap > gap
    if not open_ or ended == "interrupted" or (left is not None and left <= 0.0):
        return None
    return certify(
        form,
        found.x,
        names=names,
        backend=backend,
        history=outcome.history,
        target=gap,
        time_limit=left,
    )


def within_a_solve(
    form: SparseRegression, effort: Effort
) -> Callable[[FloatArray], ShortProofResult | None] | None:
    """Return what proves a point, or finds a better one, within a solve; None where nothing may."""
    if effort != "high":
        return None
    from sparsemodel.certificates.short_proofs import short_proof as short

    prove = short.short_proof if short.searchable(form) else _patiently
    return partial(prove, form, patience=short.WITH_HIGH_EFFORT)


def when_read(form: SparseRegression, x: FloatArray) -> ShortProofResult | None:
    """Return what a short proof says when a bound is read; None where none would be short."""
    from sparsemodel.certificates.short_proofs import short_proof as short

    return short.short_proof(form, x, short.WHEN_READ)


def _patiently(
    form: SparseRegression, x: FloatArray, patience: Patience
) -> ShortProofResult | None:
    """Return what the search of ``prove`` says in so many nodes, beside bounds and constraints."""
    from sparsemodel.certificates.proving.compiling import compilable
    from sparsemodel.certificates.proving.prove import prove as search
    from sparsemodel.certificates.short_proofs.short_proof import (
        ShortProofResult,
        curved,
        hopeless,
        root_cost,
    )
    from sparsemodel.certificates.statements.claims import OPTIMAL_GAP

    short = form.traits.gram and curved(form) and root_cost(form) <= patience.operations
    if not short or budget().deadline is not None or not compilable():
        return None  # code may have to be compiled, once on a machine
    too_long = hopeless(form)
    try:
        found = search(
            form,
            x,
            gap=OPTIMAL_GAP,
            time_limit=None,
            max_nodes=patience.nodes,
            progress=lambda now: too_long(now.value, now.bound, now.nodes),
        )
    except (UnsupportedProblemError, DataError):
        return None
    return ShortProofResult(found.x, found.value, found.upper, found.bound, found.claim.optimal)


def certified(
    form: SparseRegression,
    outcome: Outcome,
    backend: str,
    *,
    names: tuple[str, ...],
    seconds: float,
    known: float,
    searched: bool,
) -> Certificate:
    """Return the certificate of an outcome: that of a short search, or of the root.

    Parameters
    ----------
    names
        Of the coordinates.
    seconds
        That it may take.
    known
        A bound that a short proof without a certificate has found; the search comes to it.
    searched
        Whether there may be a search where supports are many.
    """
    from sparsemodel.certificates.proving.beyond_root import (
        SearchGoal,
        beyond_root,
        worth_searching,
    )

    deadline = time.perf_counter() + seconds
    aim = SearchGoal(
        max(known, outcome.bound if outcome.optimal else -np.inf), _enumerated(backend)
    )

    def root(*, relax: bool = True) -> Certificate:
        left = max(deadline - time.perf_counter(), 0.0)
        return _of_the_root(form, outcome, backend, names, relax=relax, time_limit=left)

    if not worth_searching(form, aim, many=searched):
        return root()
    free = root(relax=False)
    half = 0.5 * (time.perf_counter() + deadline)  # or nothing is left for the relaxation
    found = beyond_root(form, free, names=names, deadline=half, aim=aim)
    if _final(found) or time.perf_counter() >= deadline:
        return found
    try:
        other = root()
    except KeyboardInterrupt:  # what the search found is kept
        return found
    return found if found.bound > other.bound else other


def _final(found: Certificate) -> bool:
    """Return whether nothing more is to be looked for."""
    from sparsemodel.certificates import Claim
    from sparsemodel.certificates.proving.beyond_root import ended_by_interrupt

    decided = found.claim in (Claim.OPTIMAL, Claim.ZERO) or bool(found.violations)
    return decided or ended_by_interrupt(found)


def _enumerated(backends: str) -> bool:
    """Return whether one of the backends that ran tries every support."""
    known = dict(usable_backends())
    ran = [known[name] for name in backends.split(" + ") if name in known]
    return any(Role.ENUMERATION in backend.roles for backend in ran)


def _known_bounds(last: Certificate | None, x: FloatArray) -> CoefficientBounds | None:
    """Return the coefficient bounds that a certificate of the same point was made with.

    Not those of a problem with its linear constraints in the objective: a proof has other weights.
    """
    if last is None or last.witness.multipliers is not None:
        return None
    return last.witness.bounds if np.array_equal(last.x, x) else None


def _resumable(last: Certificate | None, gap: float) -> Certificate | None:
    """Return the last certificate where it rests on a search that a proof can go on with."""
    if last is None or last.proof is None or last.proof.get("tree") is None:
        return None
    return last if last.target <= gap else None


def _at_hand(
    form: SparseRegression,
    outcome: Outcome,
    backend: str,
    names: tuple[str, ...],
    last: Certificate | None,
) -> Certificate:
    """Return what is known without a search: the last certificate, or one from a few products."""
    if last is not None and np.array_equal(last.x, outcome.x):
        return last
    return _of_the_root(form, outcome, backend, names, relax=False)


def _of_the_root(
    form: SparseRegression,
    outcome: Outcome,
    backend: str,
    names: tuple[str, ...],
    *,
    relax: bool,
    time_limit: float | None = None,
) -> Certificate:
    """Return the certificate of an outcome without a search over supports."""
    from sparsemodel.certificates import certify

    return certify(
        form,
        outcome.x,
        names=names,
        duals=outcome.duals,
        backend=backend,
        history=outcome.history,
        time_limit=time_limit,
        relax=relax,
    )
