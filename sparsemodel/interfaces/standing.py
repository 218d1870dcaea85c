"""What a backend says of its own place: when it is a good choice, and what for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import final


class Role(Enum):
    """A job that is given to a backend without being asked for by name."""

    ENUMERATION = "tries every support"
    """Taken where there are few supports."""
    COMPARISON = "compares candidates"
    """Good after a few passes from the start that a neighbouring problem gives: for folds, for
    candidates of k, and along paths."""
    REFINEMENT = "refines a support"
    """Taken where another search, along k for instance, has found a support already."""


@final
@dataclass(frozen=True, slots=True)
class Prior:
    """What a backend's author expects of it on problems that nothing was measured on.

    It stands in for measurements: where similar problems were measured with the backend, they
    decide alone.
    """

    close: float
    """Share of the problems on which it comes within 0.1 % of the best objective known."""
    excess: float
    """Mean relative excess over that objective."""
    passes: float
    """Passes over the data that do not depend on ``k``."""
    passes_per_unit: float = 0.0
    """Passes for each unit of ``k``."""

    def __post_init__(self) -> None:
        if not (0.0 <= self.close <= 1.0 and self.excess >= 0.0):
            raise ValueError("close is a share between 0 and 1, and excess is not negative")
        if not (self.passes >= 0.0 and self.passes_per_unit >= 0.0):
            raise ValueError("numbers of passes are not negative")


__all__ = ["Prior", "Role"]
