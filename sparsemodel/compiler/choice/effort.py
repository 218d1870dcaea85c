"""How long to search: what ``effort`` and ``time_limit`` of a solve mean for backends."""

from __future__ import annotations

from typing import Literal, TypeAlias

from sparsemodel.interfaces import ModelError
from sparsemodel.interfaces.numeric import shown

Effort: TypeAlias = Literal["low", "medium", "high"]

_FACTORS: dict[str, float] = {"low": 0.1, "medium": 1.0, "high": 4.0}
"""Patience of searches, in units of their own default."""

_LIMITED = 16.0
"""The same where a time limit says how long an answer may take."""


def checked_effort(effort: str) -> Effort:
    """Return ``effort``.

    Raises
    ------
    ModelError
        When it is not one of the levels.
    """
    for known in ("low", "medium", "high"):
        if isinstance(effort, str) and effort == known:
            return known
    raise ModelError(f"effort is 'low', 'medium' or 'high', not {shown(effort)}.")


def patience(effort: Effort, time_limit: float | None = None) -> float:
    """Return the factor on the patience of searches; a time limit is there to be used."""
    factor = _FACTORS[checked_effort(effort)]
    return factor if time_limit is None or effort == "low" else max(factor, _LIMITED)
