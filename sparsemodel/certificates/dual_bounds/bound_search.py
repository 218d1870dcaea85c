"""Where bounds come from: cheap dual points first, the relaxation only when they leave a gap."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np

from sparsemodel.certificates.arithmetic.scaling import scaling
from sparsemodel.certificates.dual_bounds.bound import Bound, infimum_bound
from sparsemodel.certificates.dual_bounds.curvature import curvature, safe, simple_diagonals
from sparsemodel.certificates.dual_bounds.diagonal_shift import applies, hessian, squares_hold
from sparsemodel.certificates.dual_bounds.witness import (
    evaluate,
    extracted,
    from_gradients,
    from_point,
)
from sparsemodel.certificates.relaxation import Relaxed, applies_to, relax_extracted
from sparsemodel.certificates.relaxation import relax as solve_relaxation
from sparsemodel.certificates.statements.certificate import Progress, Witness
from sparsemodel.certificates.statements.claims import OPTIMAL_GAP, gap_of, relative_gap_of
from sparsemodel.certificates.statements.objective_interval import Primal, constant_part
from sparsemodel.interfaces import Access, FloatArray, SparseRegression
from sparsemodel.numerics.budget import (
    Budget,
    cholesky_cost,
    eigenvalue_cost,
    inverse_cost,
    products_cost,
)
from sparsemodel.progress import report as tell

_ROUNDED = 8.0
"""Multiple of the objective's rounding allowance below which no bound is looked for."""

_DOUBTFUL = 0.5
"""Relative gap that curvature at the point leaves from which on its relaxation seldom closes it."""

_HOPELESS = 1e-4
"""Share of what is open at the losses' infimum that a relaxation has to be able to close."""

_WORTH = 1e-3
"""Share of what is open that a round of the relaxation of a loss with kinks is worth."""

_APART = 100.0
"""Gap beside how far two dual points are apart, as shares, from which on neither closes it."""


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
    """The result of a search for a bound."""

    candidates: tuple[Candidate, ...]
    progress: tuple[Progress, ...]
    interrupted: bool = False
    """Whether the user stopped it; what was found until then is here."""


Instead = Callable[[Candidate], Found]


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
    target: float = OPTIMAL_GAP,
    instead: Instead | None = None,
) -> Found:
    """Return bounds in the order of their cost; stops when one closes the gap.

    ``instead`` looks in a smaller box, given the best bound that needs no search, and what it
    finds takes the place of a search that may find nothing.
    """
    found: list[Candidate] = []
    progress: list[Progress] = []
    try:
        _search(
            form,
            x,
            at_point,
            found,
            progress,
            norms=norms,
            gradients=gradients,
            deadline=deadline,
            relax=relax,
            began=began,
            target=target,
            instead=instead,
        )
    except KeyboardInterrupt:
        return Found(tuple(found), tuple(progress), interrupted=True)
    return Found(tuple(found), tuple(progress))


def _search(
    form: SparseRegression,
    x: FloatArray,
    at_point: Primal,
    found: list[Candidate],
    progress: list[Progress],
    *,
    norms: tuple[FloatArray, ...],
    gradients: Sequence[tuple[FloatArray, ...]],
    deadline: float | None,
    relax: bool,
    began: float,
    target: float,
    instead: Instead | None,
) -> None:
    """Add candidates to ``found`` until one closes the gap."""
    goal, constant = max(target, OPTIMAL_GAP), constant_part(form)
    rounding = _ROUNDED * at_point.allowance

    def closed(best: float, share: float) -> bool:
        """Return whether the gap is down to a share of what was asked for, or to rounding."""
        return (
            relative_gap_of(at_point.upper, best, constant) <= share * goal
            or gap_of(at_point.upper, best) <= share * rounding
        )

    def say(best: float) -> None:
        gap = relative_gap_of(at_point.upper, best, constant)
        tell(lambda: f"objective {at_point.upper:.6g}  bound {best:.6g}  gap {gap:.2g}")

    def offer(witness: Witness, source: str, h: FloatArray | None = None) -> bool:
        bound = evaluate(form, witness, norms=norms, hessian=h)
        found.append(Candidate(witness, bound, source))
        best = max(c.bound.value for c in found)
        say(best)
        elapsed = time.perf_counter() - began
        progress.append(Progress(elapsed, at_point.upper, best, "bound"))
        return closed(best, 1.0)

    def left() -> float:
        return relative_gap_of(at_point.upper, found[0].bound.value, constant)

    if _at_hand(form, x, gradients, offer, left):
        return
    if not relax or Budget(deadline).over():
        return

    def report(value: float, bound: float) -> bool:
        best = max(bound, max(c.bound.value for c in found))
        say(best)
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

    curved = extractable(inner, deadline)
    boxed = partial(_in_a_smaller_box, at_point.upper, found, progress, instead)
    if curved and _with_curvature(inner, start, offer_found, report, deadline, boxed):
        return
    hopeful = _while_hopeful(report, infimum_bound(form).value, at_point.upper)
    relaxed = solve_relaxation(inner, start, report=hopeful, deadline=deadline, min_progress=_WORTH)
    if not isinstance(relaxed, str) and relaxed.witness is not None:
        offer_found(relaxed.witness, _words(relaxed))
        if relaxed.interrupted:
            raise KeyboardInterrupt  # what it found is kept


def _at_hand(
    form: SparseRegression,
    x: FloatArray,
    gradients: Sequence[tuple[FloatArray, ...]],
    offer: Callable[[Witness, str], bool],
    left: Callable[[], float],
) -> bool:
    """Try the dual points that are known; return whether one closes the gap.

    ``left`` is the gap that the first of them leaves.
    """
    first = from_point(form, x)
    if offer(first, "the gradient at the point"):
        return True
    others = filter(None, (from_gradients(form, known) for known in gradients))
    return any(
        offer(one, "a gradient met by the solver")
        for one in others
        if not _as_good(form, first, one, left())
    )


def _as_good(form: SparseRegression, one: Witness, other: Witness, gap: float) -> bool:
    """Return whether a witness beside one that leaves a gap is not worth a reading of the data.

    Dual points that differ by a share of their size have bounds that differ by about that share.
    """
    if all(Access.COLUMNS in term.design.access for term in form.terms):
        return False  # in memory a product is cheap
    apart = 0.0
    for a, b in zip(one.duals, other.duals, strict=True):
        if a is None or b is None:
            return False
        apart = max(apart, float(np.max(np.abs(a - b))) / max(float(np.max(np.abs(a))), 1e-300))
    return _APART * apart < gap < math.inf


def _in_a_smaller_box(
    upper: float, found: list[Candidate], progress: list[Progress], instead: Instead | None
) -> bool:
    """Add what ``instead`` finds where much is open; return whether it found anything."""
    best = max(found, key=lambda c: c.bound.value)
    if instead is None or relative_gap_of(upper, best.bound.value) < _DOUBTFUL:
        return False
    other = instead(best)
    found.extend(other.candidates)
    progress.extend(other.progress)
    if other.interrupted:
        raise KeyboardInterrupt  # what it found is kept
    return bool(other.candidates)


def _while_hopeful(
    report: Callable[[float, float], bool], lowest: float, upper: float
) -> Callable[[float, float], bool]:
    """Return a report that also ends where the value, which no bound exceeds, is too low."""
    if not math.isfinite(lowest):
        return report

    def ends(value: float, bound: float) -> bool:
        return report(value, bound) or value - lowest <= _HOPELESS * (upper - lowest)

    return ends


def _with_curvature(
    form: SparseRegression,
    x: FloatArray,
    offer: Callable[[Witness, str, FloatArray | None], bool],
    report: Callable[[float, float], bool],
    deadline: float | None,
    instead: Callable[[], bool],
) -> bool:
    """Try what the data's curvature gives; return whether the plain relaxation is now pointless.

    Nothing is begun that would not end before the deadline. ``instead`` is tried before the
    relaxation, and returns whether it takes its place.
    """
    budget, p = Budget(deadline), form.sparsity.size
    sums = sum(term.design.gram_operations for term in form.terms)
    simple = 2.0 * eigenvalue_cost(p) + inverse_cost(p) + 2.0 * cholesky_cost(p)
    products = products_cost([term.design for term in form.terms], 2.0 * p)
    if not budget.fits(sums, simple, products):
        return False
    h = hessian(form)
    taken = curvature(form, h)
    if taken is None or not budget.fits(simple):
        return False
    diagonals = simple_diagonals(taken)
    if not diagonals:
        return False
    for diagonal in diagonals:
        if not budget.fits(3.0 * cholesky_cost(p)):
            return False
        extraction = safe(taken, diagonal)
        if extraction is not None and offer(
            extracted(form, x, extraction.diagonal), "curvature of the data, at the point", h
        ):
            return True
    if instead():
        return True
    if not applies_to(form) or not budget.fits(3.0 * cholesky_cost(p)):
        return False
    relaxed = relax_extracted(form, taken, diagonals, x, report=report, deadline=deadline)
    if relaxed is None or relaxed.witness is None:
        return False
    offer(relaxed.witness, "curvature of the data; " + _words(relaxed), h)
    if relaxed.interrupted:
        raise KeyboardInterrupt  # what it found is kept
    return True


def _words(relaxed: Relaxed) -> str:
    if relaxed.exhausted:
        return "best possible dual bound (perspective relaxation solved to optimality)"
    return "perspective relaxation, stopped early"


def extractable(form: SparseRegression, deadline: float | None = None) -> bool:
    """Return whether the data have curvature to give, and there is time to read it.

    That takes more observations than coefficients, and of an operator a product for each of both.
    """
    designs = [term.design for term in form.terms if term.traits.square]
    rows, p = sum(design.shape[0] for design in designs), form.sparsity.size
    return (
        applies(form)
        and rows > p
        and Budget(deadline).allows(products_cost(designs, rows + 2.0 * p))
        and squares_hold(form)
    )
