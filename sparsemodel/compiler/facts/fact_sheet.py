"""Facts: what the compiler knows of a problem, how it came to know it, and what that cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, final

from sparsemodel.compiler.deferred import Deferred, known
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
"""First words of names, in the order in which facts are listed; others come last."""


@final
@dataclass(frozen=True, slots=True)
class Fact:
    """Something the compiler knows, with how it came to know it."""

    name: str
    value: str
    provenance: Provenance
    source: str
    """Its source, or what it was computed from."""
    passes: float = 0.0
    """What it cost, in passes over the data."""

    @property
    def words(self) -> str:
        """Return how it was come by, and what that cost."""
        cost = f", {max(self.passes, 0.001):.2g} passes" if self.passes else ""
        return f"[{self.provenance}: {self.source}{cost}]"


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

    def read_later(self, form: Form, gradient: FloatArray | None) -> Deferred[Fact]:
        """Return the facts for a plan of the reduced ``form``."""
        return known(in_order(self.recorded))


def in_order(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Return facts in the order in which they are listed."""
    return tuple(sorted(facts, key=_place))


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
