"""What a plan runs for a sparse precision matrix: greedy starts, each with the finish behind it.

On 90 samples from chains, grids, hubs, scale-free and random graphs of order 20 to 80 four starts
found the best known on 89, three on 76 (``docs/explanation/how-plans-are-chosen.md``). Seconds
that were measured there grow with the number of edges ``m`` and the order ``p`` about as the
forecasts do.
"""

from __future__ import annotations

from sparsemodel.compiler.choice.candidates import Candidates, Choice
from sparsemodel.compiler.choice.openings import TOO_LONG, choose
from sparsemodel.compiler.facts.fact_sheet import FactSheet
from sparsemodel.compiler.plans.stage import Stage
from sparsemodel.interfaces import FloatArray, Role
from sparsemodel.interfaces.precision import AnyPrecision

_BRIEF, _WITH_FINISH = 0.1, 3.0
"""Patience of a finish that would take too long, and how many times as long as its start both take
then. Of 200 variables with 2080 edges a tenth of the tries gains four fifths of what all do."""


@choose.register
def choose_precision(
    form: AnyPrecision,
    candidates: Candidates,
    facts: FactSheet,
    gradient: FloatArray | None = None,
) -> Choice | None:
    """Return the stages for ``form``: as many starts as do not take long by forecast."""
    m, p = min(form.sparsity.budget, form.sparsity.units), max(form.order, 1)
    greedy, finish = list(candidates.able(Role.GREEDY)), candidates.best(Role.FINISH)
    recovery = candidates.best(Role.RECOVERY)
    if not greedy or finish is None:
        return candidates.fallback()
    several, single = 1e-3 * m * m * len(greedy) / p, 3e-4 * m**1.3
    if several > TOO_LONG and not candidates.patient:
        long = several if single <= TOO_LONG else single
        note = (
            f"by default, nothing is run that is expected to take more than {TOO_LONG:g} s: "
            f"solve(effort='high') runs all of {', '.join(greedy)}, each before {finish}, "
            f"about {float(f'{long:.1g}'):g} s"
        )
        if single <= TOO_LONG or recovery is None:
            return Choice(_chains(candidates, greedy[:1], finish), notes=(note,))
        swaps = 1.3e-4 * m**1.17
        if swaps * _WITH_FINISH <= TOO_LONG:
            brief = candidates.stage(finish, "", "last", share=_BRIEF)
            return Choice((candidates.stage(greedy[0]), brief), notes=(note,))
        opening = greedy[0] if swaps <= TOO_LONG else recovery
        return Choice((candidates.stage(opening),), notes=(note,))
    # Starts that are much alike agree, and end the plan: the least promising, which is another
    # kind, comes second.
    return Choice(_chains(candidates, greedy[:1] + greedy[:0:-1], finish))


def _chains(candidates: Candidates, starts: list[str], finish: str) -> tuple[Stage, ...]:
    stages: list[Stage] = []
    for start in starts:
        stages += [candidates.stage(start), candidates.stage(finish, "", "last")]
    return tuple(stages)
