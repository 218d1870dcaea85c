"""The tree of a search, written while it grows.

A record is a dual point (and the coordinates ``balanced`` whose slopes vanish near it; or a point
with curvature taken out around it, and ``slopes`` of linear constraints), what its bound decided
(units ``out``, units ``in``), and what came after: nothing, another record for what is left
(``next``), or a branch on a unit with one record for either decision, -1 where there is none. Units
are numbered as in the form, stages hold the curvature of coordinates; beside equations also their
``stiffness`` and curvature of ``pairs``, and slacks of inequalities are coordinates after others.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, final

import numpy as np

from sparsemodel.certificates.proving.bounder import Finished, RecordedCurvature, Relaxed
from sparsemodel.interfaces import IntArray

LIMIT = 2_000_000
"""Numbers up to which a tree is kept."""

_LAST = 20_000
"""Numbers of one more record, at most: what a file must have room for."""

KIND = "parts"


@final
class Recorder:
    """Keeps the tree of a search, until it is too large to be worth a file."""

    def __init__(self, *, gram: bool, boxed: bool, earlier: dict[str, Any] | None = None) -> None:
        """``gram`` says how points were evaluated, ``boxed`` whether within coefficient bounds."""
        self._head = {"kind": KIND, "gram": gram, "boxed": boxed}
        self._stages: list[Any] = [] if earlier is None else list(earlier["stages"])
        self._records: list[dict[str, Any]] = [] if earlier is None else deepcopy(earlier["nodes"])
        self._known: dict[int, tuple[int, RecordedCurvature]] = {}
        self._size = sum(map(_size, self._records)) + sum(map(_stage_size, self._stages))

    @property
    def count(self) -> int:
        """Return the number of records."""
        return len(self._records)

    @property
    def full(self) -> bool:
        """Return whether a file may have no room for another record."""
        return self._size > LIMIT - _LAST

    def begun(self) -> int:
        """Add a record of which nothing is known but that it is there, and return its number."""
        return self._add({}, None)

    def relaxed(self, found: Relaxed, link: tuple[int, int] | None) -> int:
        """Add a record for a relaxation and return its number."""
        record: dict[str, Any] = {}
        if found.minorant is not None and self._size <= LIMIT:
            if found.duals is not None:
                record = {"duals": [a.tolist() for a in found.duals]}
            elif found.stage is not None:
                at = found.x if found.at is None else found.at
                on = np.flatnonzero(at)
                record["stage"] = self._number(found.stage)
                record |= {"at": on.tolist(), "x": at[on].tolist()}
                if found.slopes is not None:
                    record["slopes"] = found.slopes.tolist()
            record |= _balanced(found)
        return self._add(record, link)

    def finished(self, found: Finished, link: tuple[int, int] | None) -> int:
        """Add a record for a part that is done, and return its number."""
        if found.duals is None:
            return self._add({"enumerated": True}, link)
        record: dict[str, Any] = {}
        if self._size <= LIMIT:
            record = {"duals": [a.tolist() for a in found.duals]} | _balanced(found)
        return self._add(record, link)

    def decided(self, number: int, out: IntArray, inside: IntArray) -> None:
        """Note what the bound of a record decided."""
        self._records[number] |= {"out": out.tolist(), "in": inside.tolist()}
        self._size += int(out.size + inside.size)

    def branched(self, number: int, unit: int) -> None:
        """Note a branch on a unit, of which neither side was looked at."""
        self._records[number]["branch"] = [int(unit), -1, -1]

    def to_dict(self) -> dict[str, Any] | None:
        """Return the tree as plain lists; None where it is too large.

        Where nothing was looked at it is the whole problem, of which nothing is known.
        """
        if self._size > LIMIT:
            return None
        return {**self._head, "stages": self._stages, "nodes": self._records or [{}]}

    def _number(self, stage: RecordedCurvature) -> int:
        if id(stage) not in self._known:
            self._known[id(stage)] = (len(self._stages), stage)
            line: dict[str, Any] = {"active": stage.active.tolist(), "delta": stage.delta.tolist()}
            if stage.stiffness is not None:
                line["stiffness"] = stage.stiffness.tolist()
                none = np.zeros(0, np.intp)
                i, j, taken = stage.pairs or (none, none, np.zeros(0))
                line["pairs"] = [i.tolist(), j.tolist(), taken.tolist()]
            self._stages.append(line)
            self._size += _stage_size(line)
        return self._known[id(stage)][0]

    def _add(self, record: dict[str, Any], link: tuple[int, int] | None) -> int:
        self._records.append(record)
        self._size += _size(record)
        number = len(self._records) - 1
        if link is not None:
            parent, side = link
            if side == 0:
                self._records[parent]["next"] = number
            else:
                self._records[parent]["branch"][side] = number
        return number


def _balanced(found: Relaxed | Finished) -> dict[str, Any]:
    if found.balanced is None or not found.balanced.size:
        return {}
    return {"balanced": found.balanced.tolist()}


def _stage_size(stage: dict[str, Any]) -> int:
    pairs = stage.get("pairs", ((),))
    return 2 * len(stage["active"]) + 3 * len(pairs[0])


def _size(record: dict[str, Any]) -> int:
    size = 4 + 2 * len(record.get("at", ()))
    size += sum(len(record.get(name, ())) for name in ("out", "in", "balanced", "slopes"))
    return size + sum(np.size(a) for a in record.get("duals", ()))
