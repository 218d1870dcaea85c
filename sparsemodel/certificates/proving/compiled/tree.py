"""The tree of a proof in a file: written as it grows, checked from the data alone.

A record is a point with what its bound decided (coordinates ``out``, coordinates ``in``), and what
came after: nothing, another point for what is left (``next``), or a branch on a coordinate with
one record for either decision. Whoever has the data recomputes the bound of every part that was
closed; the least of them bounds the problem.
"""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sparsemodel.certificates.dual_bounds.bound import Bound, infimum_bound, nothing
from sparsemodel.certificates.dual_bounds.diagonal_shift import certainly_psd
from sparsemodel.certificates.proving.compiled.enumeration import applies, enumerate_supports
from sparsemodel.certificates.proving.compiled.nodes import IN, OUT, UNDECIDED, bounds_of
from sparsemodel.certificates.proving.compiled.quadratic import Quadratic, minorant
from sparsemodel.certificates.proving.compiled.stage import Stage
from sparsemodel.interfaces import CertificateError, FloatArray, IntArray, SparseRegression

LIMIT = 2_000_000
"""Numbers up to which a tree is kept."""


@final
class Recorder:
    """Keeps the tree of a search, until it is too large to be worth a file."""

    def __init__(self) -> None:
        self._stages: list[Stage] = []
        self._records: list[dict[str, Any]] = []
        self._size = 0

    @classmethod
    def continued(cls, stages: list[Stage], records: list[dict[str, Any]]) -> Recorder:
        """Return a recorder that goes on where a stored tree ends."""
        out = cls()
        out._stages, out._records = list(stages), deepcopy(records)
        out._size = sum(
            4 + 2 * len(r.get("at", ())) + len(r.get("out", ())) + len(r.get("in", ()))
            for r in records
        )
        return out

    def point(self, stage: Stage, w: FloatArray | None) -> int:
        """Add a record for a scaled point (None: it proved nothing) and return its number."""
        record: dict[str, Any] = {"stage": self._number(stage)}
        if w is not None and self._size <= LIMIT:
            x = stage.point(w)
            on = np.flatnonzero(x)
            where = np.concatenate([stage.active, stage.balanced])[on]
            record |= {"at": where.tolist(), "x": x[on].tolist()}
            self._size += 2 * on.size
        self._records.append(record)
        self._size += 4
        return len(self._records) - 1

    def enumerated(self, stage: Stage) -> int:
        """Add a record for a part whose supports were all looked at, and return its number."""
        self._records.append({"stage": self._number(stage), "enumerated": True})
        self._size += 4
        return len(self._records) - 1

    def _number(self, stage: Stage) -> int:
        if stage not in self._stages:
            self._stages.append(stage)
        return self._stages.index(stage)

    def decided(self, number: int, out: IntArray, inside: IntArray) -> None:
        """Note what the bound of a record decided."""
        self._records[number] |= {"out": out.tolist(), "in": inside.tolist()}
        self._size += int(out.size + inside.size)

    def follows(self, number: int, after: int) -> None:
        """Note that record ``after`` goes on where ``number`` left off."""
        self._records[number]["next"] = after

    def branched(self, number: int, j: int, with_j: int, without: int) -> None:
        """Note a branch on coordinate ``j``."""
        self._records[number]["branch"] = [int(j), with_j, without]

    def to_dict(self) -> dict[str, Any] | None:
        """Return the tree as plain lists; None where it is too large."""
        if self._size > LIMIT or not self._records:
            return None
        stages = [{"active": s.active.tolist(), "delta": s.delta.tolist()} for s in self._stages]
        return {"stages": stages, "nodes": self._records}


MALFORMED = (KeyError, IndexError, TypeError, ValueError, OverflowError, AttributeError)
"""What reading a tree raises that is not made as it should."""


def tree_bound(form: SparseRegression, tree: Any) -> Bound:
    """Return the bound that a stored tree proves, every part evaluated again on the data.

    Raises
    ------
    CertificateError
        When the tree is malformed, or not one of this problem.
    """
    value = max(checked(form, tree).bound, infimum_bound(form, caution=1.0).value)
    if not math.isfinite(value):
        return nothing("the tree proves nothing")
    # Another machine rounds otherwise, within what either subtracts.
    return Bound(value, 1e-11 * abs(value), "branch and bound")


@final
@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A part of the feasible set that a stored tree says nothing more about."""

    record: int
    status: Any
    """``OUT``, ``UNDECIDED`` or ``IN`` for every coordinate of the form."""
    k: int
    bound: float
    """What was proved about it, evaluated again."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Checked:
    """A stored tree after every part was evaluated again on the data."""

    closed: float
    """Least bound on what decisions cut off."""
    leaves: tuple[Leaf, ...]

    @property
    def bound(self) -> float:
        """Return the bound that the tree proves."""
        return min([self.closed, *(leaf.bound for leaf in self.leaves)])


def checked(form: SparseRegression, tree: Any, *, caution: float = 1.0) -> Checked:
    """Return a stored tree with its bounds computed from the data alone.

    ``caution`` is the multiple of the rounding allowance to subtract.

    Raises
    ------
    CertificateError
        When the tree is malformed, or not one of this problem.
    """
    try:
        return _Check(form, tree, caution).run()
    except MALFORMED as error:
        raise CertificateError(f"line 'proof.tree' is malformed: {error!r}.") from error


@final
class _Check:
    def __init__(self, form: SparseRegression, tree: dict[str, Any], caution: float) -> None:
        self._caution = caution
        self._q = q = Quadratic.of(form)
        free = form.sparsity.free
        self._k, self._nodes = form.sparsity.budget, tree["nodes"]
        self._balanced = free[form.ridge[free] == 0.0]
        self._start = np.full(form.sparsity.size, UNDECIDED, dtype=np.int8)
        self._start[free] = IN
        self._start[self._balanced] = OUT  # minimised out: no candidates
        self._stages = [self._stage(q, stage) for stage in tree["stages"]]

    def _stage(self, q: Quadratic, stage: dict[str, Any]) -> tuple[Any, FloatArray]:
        active = np.array(stage["active"], dtype=np.intp)
        delta = np.array(stage["delta"], dtype=np.float64)
        full, member = np.zeros(self._start.size), np.zeros(self._start.size, dtype=bool)
        if active.size and (active.min() < 0 or np.unique(active).size != active.size):
            raise ValueError("coordinates of a stage repeat or are negative")
        full[active], member[active] = delta, True
        if not np.all(np.isfinite(full)) or np.any(full < 0.0):
            raise ValueError("extracted curvature is negative or not finite")
        if np.any(full > 0.0):
            index = np.concatenate([active, self._balanced])
            h = q.hessian[np.ix_(index, index)]
            diagonal = np.concatenate([delta, np.zeros(self._balanced.size)])
            if not (q.sound and certainly_psd(h, diagonal, q.rows + 64)):
                raise CertificateError(
                    "line 'proof.tree.stages' does not hold: the data do not have this curvature."
                )
        return member, full

    def run(self) -> Checked:
        """Return the parts that the tree leaves, with their bounds."""
        lowest = math.inf
        leaves: list[Leaf] = []
        seen: set[int] = set()
        todo: list[tuple[int, Any, int, float]] = [(0, self._start, self._k, -math.inf)]
        while todo:
            number, status, k, known = todo.pop()
            if number < 0 or number in seen:
                raise ValueError(f"node {number} appears twice")
            seen.add(number)
            record = self._nodes[number]
            status = status.copy()
            out = np.array(record.get("out", []), dtype=np.intp)
            inside = np.array(record.get("in", []), dtype=np.intp)
            known, closed = self._evaluate(record, status, k, known, out, inside)
            lowest = min(lowest, closed)
            status[out], status[inside] = OUT, IN
            k -= int(inside.size)
            if k < 0:
                raise ValueError(f"node {number} decides for more than k coordinates")
            if "next" in record:
                todo.append((record["next"], status, k, known))
            elif "branch" in record:
                j, with_j, without = record["branch"]
                if status[j] != UNDECIDED:
                    raise ValueError(f"node {number} branches on a coordinate decided before")
                for child, decision in ((with_j, IN), (without, OUT)):
                    part = status.copy()
                    part[j] = decision
                    if k - (decision == IN) >= 0:
                        todo.append((child, part, k - (decision == IN), known))
            else:
                leaves.append(Leaf(number, status, k, known))
        return Checked(lowest, tuple(leaves))

    def _enumerate(self, status: Any, k: int) -> float:
        """Look at every support of a part again."""
        live = np.flatnonzero(status != OUT)
        if not applies(int(np.sum(status == UNDECIDED)), k):
            raise ValueError("a part has too many supports to have been looked at")
        found = enumerate_supports(
            self._q, live, status[live], self._balanced, k, caution=self._caution
        )
        return -math.inf if found is None else found.bound

    def _evaluate(
        self, record: Any, status: Any, k: int, known: float, out: IntArray, inside: IntArray
    ) -> tuple[float, float]:
        """Return the bound of a part, and the least bound of what its decisions cut off."""
        decided = np.concatenate([out, inside])
        if (
            decided.min(initial=0) < 0
            or np.unique(decided).size != decided.size
            or np.any(status[decided] != UNDECIDED)
        ):
            raise ValueError("a coordinate is decided twice")
        if record.get("enumerated") is True:
            if decided.size:
                raise ValueError("decisions in a part whose supports were all looked at")
            return max(known, self._enumerate(status, k)), math.inf
        if "x" not in record:
            if decided.size:
                raise ValueError("decisions without a point")
            return known, math.inf
        member, delta = self._stages[record["stage"]]
        live = np.flatnonzero(status != OUT)
        if not np.all(member[live]):
            raise ValueError("a stage does not cover a part")
        x = np.zeros(status.size)
        x[np.array(record["at"], dtype=np.intp)] = np.array(record["x"], dtype=np.float64)
        point = x[np.concatenate([live, self._balanced])]
        if not np.all(np.isfinite(point)):
            raise ValueError("a point is not finite")
        low = minorant(self._q, live, self._balanced, point, delta[live], caution=self._caution)
        proved = None if low is None else bounds_of(low, status[live], k)
        if proved is None:
            return known, -math.inf if decided.size else math.inf
        known = max(known, proved.bound)
        if_in, if_out = np.full(status.size, math.inf), np.full(status.size, math.inf)
        if_in[live], if_out[live] = proved.if_in, proved.if_out
        closed = min(if_in[out].min(initial=math.inf), if_out[inside].min(initial=math.inf))
        return known, max(known, float(closed)) if decided.size else math.inf


__all__ = ["LIMIT", "MALFORMED", "Checked", "Leaf", "Recorder", "checked", "tree_bound"]
