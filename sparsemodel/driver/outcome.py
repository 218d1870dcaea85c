"""What a run is given and what it returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, Self, final

import numpy as np

from sparsemodel.interfaces import Backend, Callback, FloatArray, IntArray, Iteration, Stop
from sparsemodel.numerics.objectives.optimality import Enclosure
from sparsemodel.progress import report, shown


@final
@dataclass(frozen=True, slots=True)
class StageEnd:
    """What a stage of the plan did."""

    number: int
    label: str
    value: float = np.nan
    """Objective it ended with, price included."""
    improved: bool = False
    """Whether that is the best so far."""
    iterations: int = 0
    passes: float = 0.0
    seconds: float = 0.0
    stop: Stop = Stop.CONVERGED
    skipped: str = ""
    """Why it was not run; empty when it was."""


class ShortProof(Protocol):
    """The result of a short proof, in the coordinates of the unreduced form."""

    @property
    def x(self) -> FloatArray:
        """Return the best point."""

    @property
    def upper(self) -> float:
        """Return its objective, rounded up."""

    @property
    def bound(self) -> float:
        """Return what no objective is below."""

    @property
    def closed(self) -> bool:
        """Return whether the point is proved globally optimal."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """A finished run, in the coordinates of the unreduced form."""

    x: FloatArray
    value: float
    """Objective on the original data, price included."""
    stop: Stop
    iterations: int
    history: tuple[Iteration, ...]
    passes: float
    factorizations: int
    seconds: float
    notes: tuple[str, ...]
    duals: tuple[tuple[FloatArray, ...], ...]
    """Dual points worth trying as bounds, a loss gradient per term each."""
    promise: float = np.inf
    """An upper bound on what they prove, in plain arithmetic."""
    stages: tuple[StageEnd, ...] = ()
    """What each stage did."""
    bound: float = -np.inf
    """What a short proof says no objective is below."""
    optimal: bool = False
    """Whether a short proof found the point globally optimal."""
    backends: tuple[Backend, ...] = ()
    """What the plan had, with the options in force."""
    keeps_steps: bool = True
    """Whether their steps were those of the declared columns."""
    keeps_predictions: bool = True
    """Whether the observations were those that were declared."""


class FoundBound(NamedTuple):
    """The result of a search for a lower bound."""

    bound: float
    optimal: bool
    """Whether it proves the point optimal."""
    better: float = np.inf
    """Objective of a better point that was found; infinite if none was."""


@final
class LowerBound:
    """A valid lower bound on an optimum, and whether it proves a point optimal.

    A better one is searched for when it is first read: a bound that is not read costs nothing.
    """

    __slots__ = ("_search", "better", "optimal", "value")

    def __init__(
        self,
        value: float,
        optimal: bool = False,
        search: Callable[[], FoundBound] | None = None,
    ) -> None:
        self.value, self.optimal, self._search = value, optimal, search
        self.better = np.inf

    def read(self) -> Self:
        """Return it with the bound that a search finds, once."""
        if self._search is not None and not self.optimal:
            found = self._search()
            self.raise_to(found.bound, found.optimal)
            self.better = found.better
        self._search = None
        return self

    def raise_to(self, value: float, optimal: bool) -> None:
        """Take a bound that was found elsewhere, where it is higher."""
        self.value, self.optimal = max(self.value, float(value)), self.optimal or optimal

    def take(self, certificate: Any) -> None:
        """Take the bound of a certificate; those of a user's own forms may claim nothing.

        Nothing better is looked for afterwards: what is printed of the two agrees.
        """
        self._search = None
        claim = getattr(certificate, "claim", None)
        self.raise_to(certificate.bound, claim is not None and claim.optimal)


@final
@dataclass(frozen=True, slots=True, eq=False)
class RunOptions:
    """What holds for all stages of a run together."""

    start: FloatArray | None = None
    """Where to begin, in the coordinates of the unreduced form; None for zero."""
    seed: int = 0
    """The seed that each stage gets."""
    time_limit: float | None = None
    """Seconds for all stages together."""
    is_one_of_several: bool = False
    """Whether other solves follow in that time: then it is a limit, and not there to be used."""
    max_iter: int | None = None
    """Iteration limit of each stage, in place of the backend's own."""
    callback: Callback | None = None
    """Called after each iteration; returning True ends the plan."""
    on_stage: Callable[[StageEnd], None] | None = None
    """Called after each stage, run or skipped."""
    enclosure: Enclosure | None = None
    """What proves bounds; without it none ends the plan."""
    proof: Callable[[FloatArray], ShortProof | None] | None = None
    """Tries a short proof from a point of the unreduced form; None for no proof."""
    neighbourhood: Callable[[Any, FloatArray, IntArray], FloatArray | None] | None = None
    """Returns the best point of a form on some units that it finds, from one that is feasible; None
    where that is no better. Without it units are not searched together."""
    proved_last: bool = False
    """Whether the proof is also tried where no backend requests it."""

    def listener(
        self, restore: Callable[[FloatArray], FloatArray]
    ) -> Callable[[Iteration], bool] | None:
        """Return what a backend calls after each iteration, None without a callback.

        ``restore`` brings its iterates into the coordinates of the unreduced form.
        """
        callback = self.callback
        if callback is None and not shown():
            return None

        def listen(event: Iteration) -> bool:
            report(lambda: _words(event))
            if callback is None:
                return False
            x = None if event.x is None else restore(event.x)
            return callback(replace(event, x=x)) is True

        return listen


def _words(event: Iteration) -> str:
    """Return an iteration in a few words."""
    size = event.support.size
    return f"{event.backend} {event.index}  objective {event.best:.6g}  support {size}"
