"""Facts: what the compiler knows of a problem, how it came to know it, and what that cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, final

from sparsemodel.interfaces import FloatArray, Form

Provenance = Literal["declared", "derived", "measured", "estimated"]
"""Said by the user or the loss; follows from that; computed from the data; so, but roughly."""

_ORDER = (
    "loss",
    "finite sum",
    "design",
    "covariance",
    "samples",
    "rank",
    "edges",
    "memory",
    "smoothness",
    "strong convexity",
    "data",
    "column sizes",
    "correlation",
    "conditioning",
    "noise",
)
"""First words of names, in the order in which facts are told; others come last."""


@final
@dataclass(frozen=True, slots=True)
class Fact:
    """Something the compiler knows, with how it came to know it."""

    name: str
    value: str
    provenance: Provenance
    source: str
    """What says so, or what it was computed from."""
    passes: float = 0.0
    """What it cost, in passes over the data."""

    @property
    def words(self) -> str:
        """Return how it was come by, and what that cost."""
        cost = f", {max(self.passes, 0.001):.2g} passes" if self.passes else ""
        return f"[{self.provenance}: {self.source}{cost}]"


@final
class Told:
    """The facts of one plan: those that were decided on, and the rest when they are read.

    Pickled and copied with all of them, and without the data they come from.
    """

    def __init__(
        self, found: tuple[Fact, ...], rest: Callable[[], tuple[Fact, ...]] | None = None
    ) -> None:
        self._found = found
        self._rest = rest

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Return all facts, in the order in which they are told."""
        if self._rest is not None:
            self._found, self._rest = (*self._found, *self._rest()), None
        return tuple(sorted(self._found, key=_place))

    def __reduce__(self) -> tuple[Any, ...]:
        return Told, (self.facts,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Told) and self.facts == other.facts

    def __hash__(self) -> int:
        return hash(self.facts)


class FactSheet:
    """Facts that were found about a problem, in order."""

    def __init__(self) -> None:
        self.passes: float = 0.0
        """What finding them cost, in passes over the data."""
        self._recorded: dict[str, Fact] = {}

    def spend(self, passes: float) -> None:
        """Count what finding facts cost."""
        self.passes += passes

    @property
    def recorded(self) -> tuple[Fact, ...]:
        """Return the facts in the order they were found."""
        return tuple(self._recorded.values())

    def record(
        self, name: str, value: str, provenance: Provenance, source: str, passes: float = 0.0
    ) -> None:
        """Keep a fact for ``explain()``."""
        self._recorded[name] = Fact(name, value, provenance, source, passes)

    def told(self, form: Form, gradient: FloatArray | None) -> Told:
        """Return the facts for a plan of the reduced ``form``."""
        return Told(self.recorded)


def _place(fact: Fact) -> int:
    starts = [i for i, name in enumerate(_ORDER) if fact.name.startswith(name)]
    return starts[0] if starts else len(_ORDER)


def bytes_words(size: float) -> str:
    """Return a size in memory in words."""
    for unit in ("bytes", "kB", "MB"):
        if size < 999.5:
            return f"{size:.3g} {unit}"
        size /= 1000.0
    return f"{size:.3g} GB"


__all__ = ["Fact", "FactSheet", "Provenance", "Told", "bytes_words"]
