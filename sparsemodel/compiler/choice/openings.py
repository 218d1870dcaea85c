"""What a plan runs for a regression: an opening where one starts better, then the finish.

Every rule was measured; ``docs/adr/0011-one-finish.md`` has the figures.
"""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch

import numpy as np

from sparsemodel.compiler.adapters.without_bounds import WithoutBounds, may_be_left_out
from sparsemodel.compiler.choice.all_supports import of_all_supports
from sparsemodel.compiler.choice.candidates import Candidates, Choice
from sparsemodel.compiler.choice.curvature import only_the_dual_is_smooth, straight_in_sparse_data
from sparsemodel.compiler.choice.linear_programs import of_linear_program
from sparsemodel.compiler.choice.recipes import Start
from sparsemodel.compiler.choice.samples import sample_size
from sparsemodel.compiler.facts.analysis import Facts
from sparsemodel.compiler.facts.fact_sheet import FactSheet
from sparsemodel.compiler.plans.stage import LINKS, Stage
from sparsemodel.compiler.services import distributed
from sparsemodel.interfaces import (
    Access,
    FloatArray,
    Form,
    Role,
    SparseRegression,
)
from sparsemodel.numerics.budget import SECONDS_PER_ENTRY, TOO_LONG, cholesky_cost

INCOHERENT, EXPLAINED = 0.5, 0.25
"""A recovery is likely where promising columns are correlated by no more, and a first guess of the
support leaves no more of the loss."""
_OUTSTANDING = 2.5
"""Worth of each chosen coordinate, in units of what any other would gain, from which a recovery is
the plan's end. Exchanges were better than none of 425 recoveries with more."""

NEAR, NEARER = 100, 400
"""Steps of a first-order method before a recovery where classes may be nearly separable: as many as
there has to be time for, and at most."""
_IMPATIENT, _THOROUGH = 1 / 16, 2.0
"""Patience of that method, and of a recovery that another method has begun: what it gains, it gains
in a few steps. And of swaps with exact prices, which then try all removals: on 10 problems of 400
to 1500 x 6000 to 15000 they ended up to 25 % lower than swaps of the smallest coefficient from
there and from zero, and in most of them sooner."""

_MERGES = 7
"""Steps of a method that merges the support with as many units again, or twice as many. On digits
with 5000 features, k from 400 to 1000, the objective falls by 12 to 30 % in them."""

_ALONE = "another algorithm before it would not help"
_ONCE = "from one start, as others take long where the loss has kinks"

_DESCENT = "one descent, as a search would take long"
_ROUGHLY = 50
"""Steps of a dual method before the finish. Of 50 problems with kinks none ended .1 % above the
best of three so, one with 1000 steps, a quarter later, and two without any."""
_SHORTLY, _FEW = 16, 20
"""Steps of a recovery before the finish, and units up to which that is all. Of 520 such problems
5 ended up to 6 % lower and 4 up to 2.2 % higher than without a limit, in .85 of the time; with up
to 150 units 10 of 60 ended higher and 5 lower."""
_CROWD = 5
"""Observations for each unit, up to which supports far from each other separate the classes."""
_WORTH_A_LOOK = 10_000
"""Prices of exchanges at a time (``k p``) from which a quicker opening is worth looking for."""
_SECONDS_PER_PRICE, _SECONDS_PER_STEP, _SECONDS_PER_MERGE = 2e-8, 2e-10, 4e-10
"""CPU seconds that an exchange takes for each of its prices, a factorisation for each
multiplication, and a minimisation over a merged support for each of those of one Hessian; about
right on machines of this decade."""


@singledispatch
def choose(
    form: Form,
    candidates: Candidates,
    facts: FactSheet,
    gradient: FloatArray | None = None,
) -> Choice | None:
    """Return the stages for the reduced ``form``; None where no backend can solve it.

    ``gradient`` is its gradient at zero. ``facts`` hold what the choice depends on.
    """
    return candidates.fallback()


@choose.register
def _(
    form: SparseRegression,
    candidates: Candidates,
    facts: FactSheet,
    gradient: FloatArray | None = None,
) -> Choice | None:
    whole = of_linear_program(form, candidates) or of_all_supports(form, candidates)
    if whole is not None:
        return whole
    finish = candidates.best(Role.FINISH)
    if finish is None:
        return candidates.fallback()
    seconds = _forecast(form)
    long = seconds > TOO_LONG and not candidates.patient
    sampled = long and sample_size(form) > 0
    if long and not sampled:
        brief = _brief(form, candidates, finish, seconds, clear=_clear(form, facts, gradient))
        if brief is not None:
            return brief
    if candidates.quick and _stored(form) and not form.traits.has_hessian:
        return Choice(
            (candidates.stage(finish, f"{candidates.purpose(finish)}; {_ONCE}", share=0.0),)
        )
    # From the solution on a sample: other starts would read the files again and again.
    share = 0.0 if sampled else 1.0
    role, why, clear = _opening(form, facts, gradient)
    name = None if role is None else candidates.best(role)
    if name is None:
        alone = candidates.stage(finish, f"{candidates.purpose(finish)}; {_ALONE}", share=share)
        if not candidates.patient and _stored(form) and may_be_left_out(form):
            alone = replace(alone, backend=WithoutBounds(alone.backend, alone.backend))
        return Choice((alone,))
    last = candidates.stage(finish, "", "last", share=share)
    first = candidates.stage(name, why, max_iter=_steps(role, form))
    return Choice((first, last), clear)


def _opening(
    form: SparseRegression, facts: FactSheet, gradient: FloatArray | None
) -> tuple[Role | None, str, float]:
    """Return the role that starts best, why, and from where on its end may be the plan's.

    See ``Choice.clear_from``.
    """
    if form.sparsity.priced:
        return Role.REFINEMENT, "a path along k finds the best number of units", np.inf
    if _many_rows_at_once(form):
        return None, "", np.inf  # a model of a search costs no more than a step
    if not _stored(form):
        return Role.RECOVERY, "columns cannot be read, and this takes products alone", np.inf
    if only_the_dual_is_smooth(form):
        return Role.DUAL, "the loss has kinks, and its dual is smooth", np.inf
    if straight_in_sparse_data(form):
        return Role.GREEDY, "models of this loss say little at zero for rare features", np.inf
    large = _most(form) * form.sparsity.units >= _WORTH_A_LOOK
    if gradient is None or not isinstance(facts, Facts) or not (large and _recoverable(form)):
        return None, "", np.inf
    coherence = facts.screened(form, gradient).coherence
    if coherence > INCOHERENT:
        return None, "", np.inf
    left = facts.guess(form, gradient).left
    if left > EXPLAINED:
        return None, "", np.inf
    why = (
        f"a recovery is likely: promising columns are correlated by {coherence:.2g}, and a first "
        f"guess leaves {left:.1%} of the loss"
    )
    return Role.RECOVERY, why, _OUTSTANDING


def _steps(role: Role | None, form: SparseRegression) -> int | None:
    """Return how many steps an opening makes at most; None for as many as it needs."""
    if role is Role.RECOVERY and _most(form) <= _FEW:
        return _SHORTLY
    return _ROUGHLY if role is Role.DUAL else None


def _clear(form: SparseRegression, facts: FactSheet, gradient: FloatArray | None) -> float:
    """Return from where on a support of a quick start stands out; infinite if columns are alike."""
    if gradient is None or not isinstance(facts, Facts) or not _stored(form):
        return np.inf
    alike = not _recoverable(form) or facts.screened(form, gradient).coherence > INCOHERENT
    return np.inf if alike else _OUTSTANDING


def _recoverable(form: SparseRegression) -> bool:
    """Return whether a recovery may be looked for: a squared loss of single coordinates."""
    plain = form.region is None and form.box is None and not form.matrix
    return form.traits.quadratic and plain and form.sparsity.groups is None


def _priced_exactly(form: SparseRegression) -> bool:
    """Return whether swaps have a closed form: a squared loss of coordinates, unconstrained."""
    return form.traits.quadratic and not form.constrained and form.sparsity.groups is None


def _crowded(form: SparseRegression) -> bool:
    """Return whether so many units may be chosen that they are likely to separate two classes."""
    return _CROWD * _most(form) >= _observations(form)


def _most(form: SparseRegression) -> int:
    return min(form.sparsity.budget, form.sparsity.units)


def _observations(form: SparseRegression) -> int:
    return sum(term.target.shape[0] for term in form.terms)


def _stored(form: SparseRegression) -> bool:
    return all(Access.COLUMNS in term.design.access for term in form.terms)


def _many_rows_at_once(form: SparseRegression) -> bool:
    """Return whether a reading of files, or a trip to workers, brings many rows of a Hessian."""
    plain = form.traits.curved and len(form.shape) == 1
    files = not form.traits.quadratic and all(term.design.streamed for term in form.terms)
    return plain and (files or distributed(form))


def _forecast(form: SparseRegression) -> float:
    """Return about how many CPU seconds the finish takes: rows of the Hessian, and prices."""
    k, p = _most(form), form.sparsity.size
    rows = min(3 * k + 50, p)
    entries = sum(term.design.entries for term in form.terms)
    return 0.5 * rows * entries * SECONDS_PER_ENTRY + 2.0 * k * k * p * _SECONDS_PER_PRICE


def _swapping(form: SparseRegression) -> float:
    """Return about how many CPU seconds a search by single swaps takes; it reads columns.

    A pass, and a minimisation on the support with its factorisation, for every unit.
    """
    entries = sum(term.design.entries for term in form.terms)
    k = _most(form)
    each = entries * SECONDS_PER_ENTRY + cholesky_cost(k) * _SECONDS_PER_STEP
    return k * each if _stored(form) else np.inf


def _brief(
    form: SparseRegression, candidates: Candidates, finish: str, seconds: float, *, clear: float
) -> Choice | None:
    """Return starts of a few passes each in the place of a finish that takes long.

    Where there is time for a pass or so for each unit, single swaps improve the better start, all
    of them where prices are exact (else a squared loss also fills an empty support). Where there is
    none, and classes are likely to be separable, many units at once are exchanged from there.
    """
    if form.constrained and _stored(form):
        return Choice(
            _within_constraints(form, candidates, finish), notes=(_note(finish, seconds),)
        )
    swaps = candidates.best(Role.SWAPS) if _swapping(form) <= TOO_LONG else None
    thorough = swaps is not None and _priced_exactly(form)
    recovery, greedy = candidates.best(Role.RECOVERY), candidates.best(Role.GREEDY)
    steps = _approach(form)
    near = candidates.best(Role.APPROACH) if steps >= NEAR else None
    names: list[tuple[str | None, Start]] = [(recovery, "zero"), (greedy, "zero")]
    if swaps is not None and form.traits.quadratic:
        fresh: list[tuple[str | None, Start]] = [] if thorough else [(swaps, "zero")]
        names = [(recovery, "zero"), (swaps, "last"), *fresh]
    elif swaps is not None and near is not None and _crowded(form):
        names = [(greedy, "zero"), (near, "zero"), (swaps, "best")]
    elif swaps is not None:
        names = [(greedy, "zero"), (recovery, "zero"), (swaps, "best")]
    elif near is not None:
        names = [(greedy, "zero"), (recovery, "last"), (near, "zero"), (recovery, "last")]
        if _crowded(form) and _merging(form) <= TOO_LONG:
            names.append((candidates.best(Role.MERGES), "best"))
    after = _THOROUGH if thorough else _IMPATIENT
    most = {near: min(steps, NEARER), candidates.best(Role.MERGES): _MERGES}
    stages = tuple(
        candidates.stage(
            name,
            start=start,
            share=after if start == "last" or name == near else 1.0,
            max_iter=most.get(name),
        )
        for name, start in names
        if name is not None
    )
    if not stages:
        return None
    recipe = "".join(f"{LINKS[stage.start]}{stage.label}{stage.options}" for stage in stages)[3:]
    note = (
        f"by default, nothing is run that is expected to take more than {TOO_LONG:g} s: "
        f"solve(effort='high') or solve({recipe + ' | best ' + finish!r}) also runs {finish}, "
        f"about {float(f'{seconds:.1g}'):g} s"
    )
    return Choice(stages, clear, (note,))


def _within_constraints(
    form: SparseRegression, candidates: Candidates, finish: str
) -> tuple[Stage, ...]:
    """Return one descent within constraints, from what a recovery finds without them."""
    stage = candidates.stage(finish, _DESCENT, share=0.0)
    if not may_be_left_out(form):
        return (stage,)
    easier = Candidates(replace(form, box=None, region=None))
    recovery = easier.best(Role.RECOVERY)
    if recovery is None:
        return (stage,)
    without = WithoutBounds(easier.stage(recovery).backend, stage.backend)
    return (Stage(without, _DESCENT, finish),)


def _note(finish: str, seconds: float) -> str:
    return (
        f"by default, nothing is run that is expected to take more than {TOO_LONG:g} s: "
        f"solve(effort='high') searches on with {finish}, about {float(f'{seconds:.1g}'):g} s"
    )


def _merging(form: SparseRegression) -> float:
    """Return about how many CPU seconds a method takes that merges three times as many units.

    Its minimisations are over coordinates, or observations where these are fewer.
    """
    wide, n = 3 * _most(form), _observations(form)
    return _MERGES * _SECONDS_PER_MERGE * n * wide * min(n, wide)


def _approach(form: SparseRegression) -> int:
    """Return for how many gradients there is time; 0 where the loss is squared or not smooth."""
    if not (_stored(form) and form.traits.has_hessian) or form.traits.quadratic:
        return 0
    entries = sum(term.design.entries for term in form.terms)
    return int(TOO_LONG / (0.5 * entries * SECONDS_PER_ENTRY))
