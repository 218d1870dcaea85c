"""What a running backend reports, and why it ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias, final

from sparsemodel.interfaces.numeric import FloatArray, IntArray
from sparsemodel.interfaces.objective import Work


class Stop(Enum):
    """Why a backend ended. Says nothing about how good the point is: a certificate does."""

    CONVERGED = "converged"
    """The backend's own stopping rule holds."""
    STALLED = "stalled"
    """No further progress in floating point, before the stopping rule held."""
    MAX_ITERATIONS = "iteration limit"
    TIME_LIMIT = "time limit"
    CALLBACK = "stopped by the callback"
    INTERRUPTED = "interrupted"
    NON_FINITE = "non-finite values"
    """The iteration produced NaN or infinity; the best point before that is returned."""

    @property
    def requested(self) -> bool:
        """Return whether the run was ended from outside: a time limit, a callback, Ctrl-C."""
        return self in (Stop.TIME_LIMIT, Stop.CALLBACK, Stop.INTERRUPTED)

    @property
    def breaks_off(self) -> bool:
        """Return whether nothing should follow: the end was requested, or the numbers broke."""
        return self.requested or self is Stop.NON_FINITE

    @property
    def unfinished(self) -> bool:
        """Return whether further iterations could have gone on."""
        return self not in (Stop.CONVERGED, Stop.STALLED)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Iteration:
    """One iteration, as handed to callbacks and kept in a history."""

    backend: str
    index: int
    value: float
    """Objective of the iterate, price of the support included."""
    best: float
    """Smallest objective so far."""
    support: IntArray
    residual: float
    """The backend's own measure of stationarity; NaN when it has none."""
    elapsed: float
    """Seconds since the run began."""
    values: FloatArray
    """``x[support]`` in the backend's coordinates (kept compact: histories can be long)."""
    work: Work = field(default_factory=Work)
    """What the objective has counted since the solve began: passes, gradients, gradients of rows,
    products, restricted solves."""
    x: FloatArray | None = None
    """For callbacks, not in a history: the iterate that the paper of the backend prints, before it
    is pruned or refitted, in the declared coordinates, those of the variables one after the
    other."""
    state: Any = None
    """For callbacks: the state of the backend, in its own coordinates."""


Callback: TypeAlias = Callable[[Iteration], object]
"""Called after each iteration; returning ``True`` ends the run."""
