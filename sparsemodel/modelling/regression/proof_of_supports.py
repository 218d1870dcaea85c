"""Proving the solution of a regression, or a better one that the proof finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from sparsemodel.driver import Outcome
from sparsemodel.interfaces import FloatArray, SparseRegression

if TYPE_CHECKING:
    from sparsemodel.certificates import Certificate
    from sparsemodel.certificates.dual_bounds.coefficient_bounds.base import CoefficientBounds


def searched(
    form: SparseRegression,
    outcome: Outcome,
    backend: str,
    *,
    names: tuple[str, ...],
    last: Certificate | None,
    gap: float,
    time_limit: float | None,
    show: Callable[[float, float, int, int], None],
    resume: Certificate | None,
) -> Certificate:
    """Return the certificate of a search over supports.

    Parameters
    ----------
    names
        Of the coordinates.
    last
        What was certified before: a proof starts from its bound.
    show
        Called with the objective, the bound, the number of nodes and of open ones.
    resume
        An earlier proof to go on from.
    """
    from sparsemodel.certificates.dual_bounds.root import known_candidates
    from sparsemodel.certificates.proving.prove import prove as search
    from sparsemodel.certificates.proving.search import Snapshot

    def listen(now: Snapshot) -> None:
        show(now.value, now.bound, now.nodes, now.open)

    x = outcome.x
    try:
        known = known_candidates([last, resume], form)
        earlier = _resumable(last, gap) if resume is None else resume
        found = search(
            form,
            x,
            names=names,
            gap=gap,
            time_limit=time_limit,
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
    if last is not None and np.array_equal(last.x, found.x) and last.bound > found.bound:
        return last  # rounding, or a gap that was asked for and is wider
    return found


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
    from sparsemodel.certificates import certify

    if last is not None and np.array_equal(last.x, outcome.x):
        return last
    return certify(
        form,
        outcome.x,
        names=names,
        duals=outcome.duals,
        backend=backend,
        history=outcome.history,
        relax=False,
    )
