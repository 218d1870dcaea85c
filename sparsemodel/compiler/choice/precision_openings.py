"""What a plan runs for a sparse precision matrix: greedy starts, each with the finish behind it.

All graphs are tried where there are few. On 90 samples from chains, grids, hubs, scale-free and
random graphs of order 20 to 80 four starts found the best known on 89, three on 76
(``docs/adr/0011-one-finish.md``). CPU seconds, measured on random graphs of order 60 to 500 with
143 to 4046 edges, grow about as the product ``m p`` of edges and order does; forecasts were within
2.5 times the measured ones.
"""

from __future__ import annotations

from sparsemodel.compiler.choice.all_supports import of_all_supports
from sparsemodel.compiler.choice.candidates import Candidates, Choice
from sparsemodel.compiler.choice.openings import choose
from sparsemodel.compiler.facts.fact_sheet import FactSheet
from sparsemodel.compiler.plans.stage import Stage
from sparsemodel.interfaces import FloatArray, Role
from sparsemodel.interfaces.precision import AnyPrecision
from sparsemodel.numerics.budget import TOO_LONG

_EACH, _TWO, _ONE, _WITH_BRIEF, _SWAPS = 3e-5, 1.8e-5, 7e-6, 3.5e-6, 2.5e-6
"""Seconds that a plan takes, as multiples of ``m p``: every start with its finish where all are
run, the first two of them, the first, that with a brief finish, that without one."""

_BRIEF = 0.1
"""Patience of a finish that would take too long. Of 200 variables with 2080 edges a tenth of the
tries gains four fifths of what all do."""


@choose.register
def choose_precision(
    form: AnyPrecision,
    candidates: Candidates,
    facts: FactSheet,
    gradient: FloatArray | None = None,
) -> Choice | None:
    """Return the stages for ``form``: all graphs, or as many starts as do not take long."""
    whole = of_all_supports(form, candidates)
    if whole is not None:
        return whole
    m, p = min(form.sparsity.budget, form.sparsity.units), max(form.order, 1)
    greedy, finish = list(candidates.able(Role.GREEDY)), candidates.best(Role.FINISH)
    recovery = candidates.best(Role.RECOVERY)
    if not greedy or finish is None:
        return candidates.fallback()
    work = float(m) * p
    # Starts that are much alike agree, and end the plan: the least promising, which is another
    # kind, comes second.
    starts = greedy[:1] + greedy[:0:-1]
    every = _EACH * len(starts) * work
    if every <= TOO_LONG or candidates.patient:
        return Choice(_chains(candidates, starts, finish))
    note = (
        f"by default, nothing is run that is expected to take more than {TOO_LONG:g} s: "
        f"solve(effort='high') runs all of {', '.join(greedy)}, each before {finish}, "
        f"about {float(f'{every:.1g}'):g} s"
    )
    if _ONE * work <= TOO_LONG or recovery is None:
        fitting = starts[: 2 if _TWO * work <= TOO_LONG else 1]
        return Choice(_chains(candidates, fitting, finish), notes=(note,))
    if _WITH_BRIEF * work <= TOO_LONG:
        brief = candidates.stage(finish, "", "last", share=_BRIEF)
        return Choice((candidates.stage(starts[0]), brief), notes=(note,))
    opening = starts[0] if _SWAPS * work <= TOO_LONG else recovery
    return Choice((candidates.stage(opening),), notes=(note,))


def _chains(candidates: Candidates, starts: list[str], finish: str) -> tuple[Stage, ...]:
    stages: list[Stage] = []
    for start in starts:
        stages += [candidates.stage(start), candidates.stage(finish, "", "last")]
    return tuple(stages)
