"""Where bounds come from: cheap dual points first, the relaxation only when they leave a gap."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

from sparsemodel.certificates.base import Progress, Witness
from sparsemodel.certificates.claims import OPTIMAL_GAP, ROUNDING_SHARE, gap_of, relative_gap_of
from sparsemodel.certificates.curvature import curvature, safe, simple_diagonals
from sparsemodel.certificates.dual import Bound
from sparsemodel.certificates.extraction import applies, hessian
from sparsemodel.certificates.primal import Primal, null_value
from sparsemodel.certificates.relaxation import Relaxed, applies_to, relax_extracted
from sparsemodel.certificates.relaxation import relax as solve_relaxation
from sparsemodel.certificates.scaling import scaling
from sparsemodel.certificates.witness import evaluate, extracted, from_gradients, from_point
from sparsemodel.interfaces import FloatArray, SparseRegression
from sparsemodel.losses.quadratic import SquaredLoss


@final
@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A witness, the bound it proves, and how it was found."""

    witness: Witness
    bound: Bound
    source: str


@final
@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What a search brought home."""

    candidates: tuple[Candidate, ...]
    progress: tuple[Progress, ...]


def search(
    form: SparseRegression,
    x: FloatArray,
    at_point: Primal,
    *,
    norms: tuple[FloatArray, ...],
    gradients: Sequence[tuple[FloatArray, ...]],
    deadline: float | None,
    relax: bool,
    began: float,
) -> Found:
    """Return bounds in the order of their cost; stops when one closes the gap."""
    found: list[Candidate] = []
    progress: list[Progress] = []
    null = null_value(form)

    def closed(best: float, share: float) -> bool:
        """Return whether the claim is decided: optimal to a share of the gap, or to rounding."""
        rounding = ROUNDING_SHARE * max(0.0, null - best)
        return (
            relative_gap_of(at_point.upper, best) <= share * OPTIMAL_GAP
            or gap_of(at_point.upper, best) <= share * rounding
        )

    def offer(witness: Witness, source: str, h: FloatArray | None = None) -> bool:
        bound = evaluate(form, witness, norms=norms, hessian=h)
        found.append(Candidate(witness, bound, source))
        best = max(c.bound.value for c in found)
        elapsed = time.perf_counter() - began
        progress.append(Progress(elapsed, at_point.upper, best, "bound"))
        return closed(best, 1.0)

    if offer(from_point(form, x), "the gradient at the point"):
        return Found(tuple(found), tuple(progress))
    for known in gradients:
        witness = from_gradients(form, known)
        if witness is not None and offer(witness, "a gradient met by the solver"):
            return Found(tuple(found), tuple(progress))
    if not relax:
        return Found(tuple(found), tuple(progress))

    def report(value: float, bound: float) -> bool:
        best = max(bound, max(c.bound.value for c in found))
        if best > progress[-1].bound:
            elapsed = time.perf_counter() - began
            progress.append(Progress(elapsed, at_point.upper, best, "bound"))
        # A tenth of the goal, as the bound is still to be evaluated with care.
        return closed(best, 0.5)

    # The search may run in other coordinates; what it finds is evaluated in the original ones.
    other = scaling(form)
    inner, start = (form, x) if other is None else (other.form, other.start(x))

    def offer_found(witness: Witness, source: str, h: FloatArray | None = None) -> bool:
        if other is None:
            return offer(witness, source, h)
        return offer(other.witness(witness), source)

    if extractable(inner) and _with_curvature(inner, start, offer_found, report, deadline):
        return Found(tuple(found), tuple(progress))
    relaxed = solve_relaxation(inner, start, report=report, deadline=deadline)
    if not isinstance(relaxed, str) and relaxed.witness is not None:
        offer_found(relaxed.witness, _words(relaxed))
    return Found(tuple(found), tuple(progress))


def _with_curvature(
    form: SparseRegression,
    x: FloatArray,
    offer: Callable[[Witness, str, FloatArray | None], bool],
    report: Callable[[float, float], bool],
    deadline: float | None,
) -> bool:
    """Try what the data's curvature gives; return whether the plain relaxation is now pointless."""
    h = hessian(form)
    taken = curvature(form, h)
    diagonals = [] if taken is None else simple_diagonals(taken)
    if taken is None or not diagonals:
        return False
    for diagonal in diagonals:
        extraction = safe(taken, diagonal)
        if extraction is not None and offer(
            extracted(form, x, extraction.diagonal), "curvature of the data, at the point", h
        ):
            return True
    if not applies_to(form):
        return False
    relaxed = relax_extracted(form, taken, diagonals, x, report=report, deadline=deadline)
    if relaxed is None or relaxed.witness is None:
        return False
    offer(relaxed.witness, "curvature of the data; " + _words(relaxed), h)
    return True


def _words(relaxed: Relaxed) -> str:
    if relaxed.exhausted:
        return "perspective relaxation solved: no dual point gives more"
    return "perspective relaxation, stopped early"


def extractable(form: SparseRegression) -> bool:
    """Return whether the data can have curvature to give: more observations than coefficients."""
    rows = sum(t.design.shape[0] for t in form.terms if isinstance(t.loss, SquaredLoss))
    return applies(form) and rows > form.sparsity.size


__all__ = ["Candidate", "Found", "extractable", "search"]
