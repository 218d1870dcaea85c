"""Losses with kinks: smoothed problems in a row, then the exact minimum on the support."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast, final

import numpy as np

from sparsemodel.compiler.adapters.event_relay import EventRelay
from sparsemodel.interfaces import (
    Backend,
    Capabilities,
    Context,
    FloatArray,
    Form,
    IntArray,
    Limits,
    Loss,
    Objective,
    Point,
    RestrictedSolver,
    Result,
    Role,
    Smoothable,
    SparseRegression,
    Stop,
    Term,
    priced,
)
from sparsemodel.numerics import RegressionObjective, SupportSearch, margins
from sparsemodel.numerics.exchange.swaps import CachedSolver
from sparsemodel.numerics.minimisers.envelopes import LEAST_SMOOTHING

LEVELS = (1.0, 0.4, 0.05)
"""Smoothing of the problems in a row, in units of the typical distance from the kinks. With much,
supports rank otherwise than by the loss itself; with 0.01 few observations have curvature, so that
exchanges are priced by noise."""
_AFRESH = 2
"""Levels that do not start from others. Of hinge losses with correlations of 0.9, 8 of 120 x 60 and
6 of 100 x 300, 4 and 4 ended up to 0.7 and 11 % above the best known with 1, 0.1 and 0.01 one after
the other, and 1 and 3 up to 0.5 and 1.1 % like this, with 0.8 and 1.15 times the work."""
_LAST, _NEXT = 4, 4
"""Supports that a search came through last, and that are ranked next after the best, on which the
original objective is minimised after each level. Smoothing ranks them otherwise than the kinks."""


@final
@dataclass(frozen=True, slots=True)
class Smoothed(Backend):
    """Run a backend for smooth losses on smoothed ones, the last from the best result.

    After each level the original objective is minimised exactly on the support that was found;
    the best of these points is the result, so smoothing only ever guides the choice of supports.
    After a search (:attr:`Role.FINISH`, unless it has no patience) so are those that it came
    through last, and those that the smoothed objective ranks next after the best of them, until
    none is better.
    """

    inner: Backend
    losses: tuple[str, ...] = ()
    """Names of the losses with kinks."""
    levels: tuple[float, ...] = LEVELS

    name: ClassVar[str] = "smoothed"
    capabilities: ClassVar[Capabilities] = Capabilities(smooth=False, box=True, region=True)

    def describe(self) -> str:
        """Return what the adapter does, for ``explain()``."""
        return (
            f"{' and '.join(self.losses)} smoothed in {len(self.levels)} steps, each followed by "
            "an exact minimisation on the support"
        )

    def options(self) -> dict[str, Any]:
        return self.inner.options()

    def solve(self, objective: Objective, context: Context) -> Result:
        form = cast("SparseRegression", objective.form)
        widths = typical_widths(form)
        # Several levels lead to the same supports.
        exactly = CachedSolver(objective, context.restricted)
        best: Point | None = None
        iterations = 0
        relay = EventRelay(objective, context)
        searched = Role.FINISH in self.inner.roles and self.inner.with_patience(0.0) != self.inner
        # All levels together have the patience of one search.
        level_search = self.inner.with_patience(1.0 / len(self.levels))
        notes: list[str] = []
        dual: tuple[FloatArray, ...] | None = None
        stop = Stop.CONVERGED
        for place, level in enumerate(self.levels):
            known = best is not None and np.isfinite(best.value) and place >= _AFRESH
            start = best.x if best is not None and known else context.start
            easier = smoothed_form(form, level * widths)
            smooth = RegressionObjective(easier, work=objective.work)
            before = len(relay.history)
            inner = replace(relay.listening_to(context), start=start)
            result = level_search.solve(smooth, inner)
            relay.complete(result, before)
            iterations += result.iterations
            notes += [note for note in result.notes if note not in notes]
            exact = exactly(objective, result.point.support, result.point)
            if searched and not result.stop.breaks_off:
                exact = _judged(exact, objective, smooth, result, exactly, context)
            if best is None or priced(objective, exact) < priced(objective, best):
                best, dual = exact, exact.duals
            stop = result.stop
            if stop.breaks_off:
                break
        point = objective.origin() if best is None else best
        return Result(point, stop, iterations, tuple(relay.history), dual, tuple(notes))


def _judged(
    exact: Point,
    objective: Objective,
    smooth: Objective,
    result: Result,
    exactly: RestrictedSolver,
    context: Context,
) -> Point:
    """Return the best of the minimisers on the last supports of a search, and on those near it."""
    last = dict.fromkeys(event.support.tobytes() for event in reversed(result.history))
    last.pop(exact.support.tobytes(), None)
    supports = [np.frombuffer(name, dtype=np.intp) for name in list(last)[:_LAST]]
    found: Point | None = _better(exact, objective, supports, exactly, context.limits) or exact
    search = SupportSearch(smooth, context.restricted, context.rng, 0.0, context.limits.expired)
    while found is not None and not context.limits.expired():
        exact = found
        start = smooth.point(exact.support, exact.x[exact.support])
        start = context.restricted(smooth, exact.support, start)
        near = search.neighbours(start, _NEXT)
        found = _better(exact, objective, near, exactly, context.limits)
    return exact


def _better(
    point: Point,
    objective: Objective,
    supports: Iterable[IntArray],
    exactly: RestrictedSolver,
    limits: Limits,
) -> Point | None:
    """Return the best of the minimisers on some supports; None where none is below ``point``."""
    best = point
    for support in supports:
        if limits.expired():
            break
        trial = exactly(objective, support, point)
        if priced(objective, trial) < priced(objective, best):
            best = trial
    return None if best is point else best


def smoothable(form: Form) -> bool:
    """Return whether the form's losses have kinks that can be smoothed, and nothing worse."""
    return isinstance(form, SparseRegression) and all(
        term.traits.has_hessian or term.traits.smoothable for term in form.terms
    )


def smoothed_form(form: SparseRegression, widths: FloatArray) -> SparseRegression:
    """Return the form with each loss that has kinks smoothed by its width."""
    terms = []
    for term, width in zip(form.terms, widths, strict=True):
        loss = term.loss
        if not term.traits.has_hessian:
            width = max(float(width), LEAST_SMOOTHING)
            loss = cast("Smoothable", loss).smoothed(width)
        terms.append(replace(term, loss=loss))
    return replace(form, terms=tuple(terms))


def typical_widths(form: SparseRegression) -> FloatArray:
    """Return each term's typical distance from its kinks at zero: mean loss over mean slope."""
    return np.array([_width(term) for term in form.terms])


def _width(term: Term) -> float:
    if term.traits.has_hessian:
        return 1.0
    loss = cast("Loss", term.loss)
    u = margins(term, np.zeros(term.target.shape[0]))
    slope = float(np.dot(term.weights, np.square(loss.derivative(u, term.target))))
    value = float(np.dot(term.weights, loss.value(u, term.target)))
    return value / slope if value > 0.0 and slope > 0.0 else 1.0
