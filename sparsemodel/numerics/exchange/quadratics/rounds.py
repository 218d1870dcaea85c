"""When a search from perturbed supports ends."""

from __future__ import annotations

import math
from typing import final

import numpy as np

from sparsemodel.interfaces import Objective, Point, SparseRegression
from sparsemodel.numerics.budget import SECONDS_PER_ENTRY, TOO_LONG

_IDLE = 40
"""Rounds in vain before a search ends that has just improved. On 90 problems with coherent columns
89 ended within 0.1 % of what 400 rounds find, as with sixty; with 24 it were 88."""
_EACH, _ENDS = 6, 320
"""Rounds in vain for each different end, and such rounds at most: with many ends others are likely.
Of 393 problems with logistic, Huber and Poisson losses, 6 to 12 units, 15 ended up to 14 % above
what high effort finds without, 6 with it, in 1.4 times the time (199 of them had served to choose
the rule); of 100 with squared losses four up to 18 % higher, none with it, in the same time. Of 62
with up to four ends none did."""
_SCATTERED = 24
"""Different ends from which searches go on where no exchange gains. Of 92 with squared losses for
10 to 18 units, 2.5 to 4.5 rows for each, 21 ended more than .1 % above the best known point
without, 11 with it, in the same time: each counts as three."""
_CAREFUL = 3.0
"""Times as many rounds as if their starts were drawn independently."""
_SURE = ((0.5, 7), (0.1, 14))
"""See :func:`searches_for`. Of 1014 ends of exchanges with a contrast from 0.1 two hundred searches
improved 236: of those with 0.5 where seven had one end 0 of 297, with 0.1 and fourteen 3 of 681;
where 28 had two ends, or 42 three, 0 of 91."""
_PER_PRICE = 1e-8
"""Forecast CPU seconds of a change for each price."""
_IN_VAIN, _WIDE, _AMPLE = 60.0, 4096, 16.0
"""Perturbations in vain that a forecast is made for, columns that they price at most, and how many
times as many there is time for where many ends ask for more."""
_MARKED = 1e-3
"""Share of what is left of the objective by which searches lower it that may go on as long."""
_ELSE = 24
"""The same for all others: as many as are searched side by side."""


def searches_for(contrast: float) -> int:
    """Return after how many searches for each of their ends no better support is expected.

    By what the cheapest exchange costs over the most that another coordinate gains.
    """
    return next((many for least, many in _SURE if contrast >= least), _ELSE)


def spent(objective: Objective, changes: int) -> float:
    """Return what all passes and so many ``changes`` in models cost, in forecast CPU seconds."""
    form, p = objective.form, objective.shape[0]
    terms = form.terms if isinstance(form, SparseRegression) else ()
    entries = sum(term.design.entries for term in terms)
    prices = min(objective.cardinality.budget, p) * p
    return objective.work.passes * entries * SECONDS_PER_ENTRY + changes * prices * _PER_PRICE


def markedly_lower(objective: Objective, new: Point, old: Point) -> bool:
    """Return whether a point is so much better than another that searches may go on as long."""
    floor = objective.infimum()
    left = old.value - floor if np.isfinite(floor) else abs(old.value)
    return old.value - new.value > _MARKED * left


@final
class Rounds:
    r"""When to end a search from perturbed starts.

    With ``w`` different ends from ``N`` searches the expected number of ends that there are is
    :math:`w (N - 1) / (N - w - 2)` (Boender and Rinnooy Kan, Mathematical Programming 37, 1987,
    for starts that are drawn independently); the search goes on while that exceeds what was seen
    by more than a half, :math:`N < 2 w^2 + 3 w + 2`, and, because perturbed supports are not
    independent, three times as long. It also ends when it has gone as long in vain as it had to go
    for its last improvement, and a few more (more where there are many ends), or at more than five
    seconds by forecast.

    Parameters
    ----------
    effort
        A factor on all of these numbers.
    most
        Rounds at most.
    patience
        A factor on what they may cost without lowering the objective markedly.
    varied
        A factor on how many may be in vain because searches had many different ends.
    """

    def __init__(
        self, effort: float, most: int, patience: float = math.inf, varied: float = 0.0
    ) -> None:
        self._effort, self._most, self._patience = effort, most, patience
        self._varied = varied
        self._allowance, self._since, self._costly = math.inf, 0.0, False
        self._seen: set[bytes] = set()
        self.done = 0
        self._improved = self._allowed = 0
        self._better = False  # whether anything was found
        self._prolonged = False

    @classmethod
    def of_quadratic(cls, effort: float, most: int, k: int, p: int) -> Rounds:
        """Return the rounds for ``k`` of ``p`` coordinates with exact prices.

        Fewer where they would take too long by forecast.
        """
        times = TOO_LONG / max(_IN_VAIN * _PER_PRICE * k * k * min(p, _WIDE), 1e-3)
        effort *= min(1.0, times)
        return cls(effort, most, varied=effort * min(1.0, times / _AMPLE))

    def count(self, ends: list[bytes], *, better: bool, searches: int = 0) -> None:
        """Take note of searches that have ended, and of ``searches`` whose ends are noted later."""
        self._seen.update(ends)
        self.done += len(ends) + searches
        if better:
            self._improved, self._better = self.done, True

    def descended(self, spent: float) -> None:
        """Take note of what the run has cost where its first descent ends, and only then."""
        if math.isinf(self._allowance):
            self._allowance, self._since = self._patience * TOO_LONG, spent

    def spend(self, spent: float) -> bool:
        """Take note of what the run has cost; return whether searches in vain cost too much."""
        costly = spent - self._since > self._allowance
        self._costly = self._costly or costly
        return costly

    def renew(self, spent: float, *, lower: bool = False) -> None:
        """Let searches of another kind cost as much again, or all if they have led ``lower``."""
        self._since, self._costly = spent, self._costly and not lower

    def prolong(self, times: float) -> None:
        """Search ``times`` as long; asked again, no longer still."""
        if not self._prolonged:
            self._prolonged, self._effort = True, times * self._effort
            self._most = round(times * self._most)

    def allow(self, more: int) -> None:
        """Let the search go on for so many more rounds in vain: it has improved by other means."""
        self._allowed += more

    def left_local_optimum(self) -> None:
        """Take note of a better support that several exchanges led to: there are others."""
        self._better = True

    def wanted(self, searches: int) -> int:
        """Return how many more are needed of so many ``searches`` for each of their ends.

        After an improvement ends tell nothing of that: many.
        """
        return _ELSE if self._better else searches * max(1, len(self._seen)) - self.done

    def none_better(self, home: bytes, searches: int) -> bool:
        """Return whether some searches have come back to ``home``, and none to a better support.

        After so many ``searches`` for each of their ends.
        """
        back = home in self._seen and not self._better
        return back and self.done >= self._effort * searches * len(self._seen)

    def note(self, end: bytes) -> None:
        """Take note of where the first descent has ended."""
        self._seen.add(end)

    @property
    def ends(self) -> int:
        """Return how many different ends searches had."""
        return len(self._seen)

    @property
    def scattered(self) -> bool:
        """Return whether searches ended at so many supports that few descents meet the best."""
        return self.ends >= _SCATTERED

    def known(self, end: bytes) -> bool:
        """Return whether a search has ended there."""
        return end in self._seen

    @property
    def enough(self) -> bool:
        """Return whether a further round is not expected to pay."""
        w, idle = len(self._seen), self.done - self._improved
        usual = self._effort * (_IDLE + self._allowed + self._improved)
        return (
            self.done >= self._most
            or self._costly
            or (idle > 0 and self.done >= self._effort * _CAREFUL * (2 * w * w + 3 * w + 2))
            or idle >= max(usual, self._varied * min(_EACH * w, _ENDS))
        )
