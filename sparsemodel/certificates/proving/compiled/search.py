"""Best-first branch and bound over supports.

The perspective relaxation bounds every node; its dual point also fixes candidates (those whose
decision one way would prune). A branch decides the largest coefficient that is still open.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from sparsemodel.certificates.arithmetic.rounding import CAUTION
from sparsemodel.certificates.proving.compiled.enumeration import applies, enumerate_supports
from sparsemodel.certificates.proving.compiled.nodes import (
    IN,
    OUT,
    UNDECIDED,
    Node,
    Proved,
    prove_node,
)
from sparsemodel.certificates.proving.compiled.quadratic import Quadratic
from sparsemodel.certificates.proving.compiled.stage import Stage, best_stage
from sparsemodel.certificates.proving.compiled.tree import Recorder
from sparsemodel.interfaces import FloatArray, IntArray

_ROUNDS = 200
_AT_ONCE = 2
"""Coordinates left to choose up to which a node is enumerated without a relaxation first."""

_SHRINK = 0.8
"""Curvature is taken out again when this share of the candidates (or less) is left."""


@final
@dataclass(slots=True, eq=False)
class Search:
    """The state of a proof."""

    q: Quadratic
    counted: IntArray
    """Counted coordinates of the form."""
    ridged: IntArray
    """Always-in coordinates with ridge."""
    balanced: IntArray
    """Always-in coordinates without ridge."""
    k: int
    upper: float
    """Rigorous upper bound: the objective at the best point."""
    x: FloatArray
    evaluate: Callable[[FloatArray], float]
    """Rigorous objective at a feasible point."""
    allowed: Callable[[float], float]
    """Gap that may be left, for an upper bound."""
    deadline: float | None = None
    report: Callable[[float, float, int], None] | None = None
    floor: float = math.inf
    """Least bound of the parts that are closed."""
    nodes: int = 0
    rounds: int = 0
    fixed: int = 0
    current: float = -math.inf
    """Bound of the part that is being worked on."""
    root: tuple[Stage, FloatArray, float] | None = None
    """Stage, scaled point and bound of the best root relaxation on all candidates."""
    open: list[tuple[float, int, Node]] = field(default_factory=list)
    tree: Recorder = field(default_factory=Recorder)
    _count: int = 0
    _tried: set[tuple[int, ...]] = field(default_factory=set)

    @property
    def cutoff(self) -> float:
        """Return the bound from which on a part is closed."""
        return self.upper - self.allowed(self.upper)

    @property
    def bound(self) -> float:
        """Return the rigorous lower bound over all parts, open and closed."""
        first = self.open[0][0] if self.open else math.inf
        return min(self.floor, first, self.current)

    def late(self) -> bool:
        """Return whether time is up."""
        return self.deadline is not None and time.perf_counter() >= self.deadline

    # ---- the root ----------------------------------------------------------------------------

    def run(self) -> None:
        """Search until every part is closed, or time is up."""
        self._narrow(self.counted, self.k, np.empty(0, dtype=np.intp), None)
        self.branch_all()

    def resume(self, parts: Sequence[Node]) -> None:
        """Go on from the open parts of an earlier search; their stages and records are known."""
        if len(parts) == 1 and parts[0].stage is not None:
            node, stage = parts[0], parts[0].stage
            self.current = node.bound
            if node.bound < self.cutoff and node.undecided.size:
                inside = np.setdiff1d(stage.active[node.status == IN], self.ridged)
                self._narrow(stage.active[node.undecided], node.k, inside, node)
            else:
                self.push(node)
        else:
            for node in parts:
                self.push(node)
        self.current = math.inf
        self.branch_all()

    def _narrow(self, candidates: IntArray, k: int, inside: IntArray, node: Node | None) -> None:
        """Relax all that is left, decide what that decides, and again while it shrinks."""
        known = -math.inf if node is None else node.bound
        while True:
            active = np.union1d(candidates, np.union1d(self.ridged, inside))
            status = np.where(np.isin(active, candidates), UNDECIDED, IN).astype(np.int8)
            trial = best_stage(self.q, active, self.balanced, self.deadline)
            if trial is None:
                break
            part = Node(status, k, np.zeros(active.size), 0.0, stage=trial)
            proved = self.relax(trial, part)
            if proved is None:
                break
            if node is not None:
                self.tree.follows(node.record, part.record)
            node = part
            if self.root is None:
                self.root = (trial, node.w, node.bound)
            known = max(known, node.bound)
            node.bound = known
            self.current = known
            before = int(np.sum(node.status == UNDECIDED))
            self.settle(trial, node, proved)
            left = node.undecided
            self._tell()
            if node.bound >= self.cutoff or not left.size or self.late():
                break
            if left.size > _SHRINK * before:
                break
            candidates, k = trial.active[left], node.k
            inside = np.setdiff1d(trial.active[node.status == IN], self.ridged)
        if node is not None:
            self.push(node)
            self.current = math.inf

    # ---- nodes -------------------------------------------------------------------------------

    def relax(self, stage: Stage, node: Node, *, exact: bool = False) -> Proved | None:
        """Solve a node's relaxation and raise its bound by what is proved.

        ``exact`` asks for all that floating point gives, not just for a decision.
        """
        if not self.nodes and not exact:
            proved = self._at_sight(stage, node)
            if proved is not None:
                return proved
        solve_node = self._compiled()
        cutoff = self.cutoff
        scale = max(abs(cutoff), abs(self.upper), 1e-300)
        best, t, _, value, rounds = solve_node(
            stage.matrix,
            stage.linear,
            stage.constant,
            node.w,
            node.t,
            node.status,
            node.k,
            math.inf if exact else cutoff + 1e-9 * scale,
            1e-15 * scale if exact else max(0.02 * (self.upper - cutoff), 1e-10 * scale),
            4 if exact else _ROUNDS,
        )
        self.nodes += 1
        self.rounds += int(rounds) + 1
        node.w, node.t, node.value = best, float(t), float(value)
        proved = prove_node(self.q, stage, node, best)
        number = self.tree.point(stage, None if proved is None else best)
        if node.record >= 0:
            self.tree.follows(node.record, number)
        node.record = number
        if proved is not None:
            node.bound = max(node.bound, proved.bound)
        return proved

    def _compiled(self) -> Any:
        """Return the compiled solver of nodes; what compiling takes does not count as search."""
        began = time.perf_counter()
        from sparsemodel.certificates.proving.compiled.warm import solve_node

        if self.deadline is not None:
            self.deadline += time.perf_counter() - began
        return solve_node

    def _at_sight(self, stage: Stage, node: Node) -> Proved | None:
        """Return what the best point itself proves where that closes everything, O(p k).

        Often so with more observations than coefficients; nothing needs to be compiled then.
        """
        w = stage.root * self.x[stage.active]
        proved = prove_node(self.q, stage, node, w)
        if proved is None or proved.bound < self.cutoff:
            return None
        self.nodes += 1
        node.w, node.value, node.bound = w, self.upper, proved.bound
        node.record = self.tree.point(stage, w)
        return proved

    def look_at(self, stage: Stage, node: Node) -> int:
        """Raise a node's bound: by enumeration where few supports are left, else by relaxation.

        Returns the number of its first record.
        """
        if node.k <= _AT_ONCE and self.enumerate(stage, node):
            return node.record
        proved = self.relax(stage, node)
        first = node.record
        if proved is not None:
            self.settle(stage, node, proved)
        if node.bound < self.cutoff:
            self.enumerate(stage, node)
        return first

    def enumerate(self, stage: Stage, node: Node) -> bool:
        """Look at every support of a node if they are few; then the node is done."""
        if not applies(int(node.undecided.size), node.k):
            return False
        self._compiled()
        found = enumerate_supports(
            self.q, stage.active, node.status, self.balanced, node.k, caution=CAUTION
        )
        if found is None:
            return False
        self.nodes += 1
        self.try_support(found.support)
        node.bound = max(node.bound, found.bound)
        number = self.tree.enumerated(stage)
        if node.record >= 0:
            self.tree.follows(node.record, number)
        node.record, node.k = number, 0
        return True

    def settle(self, stage: Stage, node: Node, proved: Proved) -> None:
        """Refit, fix what the bound decides, and finish a node that has nothing left to decide."""
        self.refit(stage, node)
        self.fix(stage, node, proved)
        if not node.undecided.size and node.bound < self.cutoff:
            self.refit(stage, node)
            if node.bound < self.cutoff:
                self.relax(stage, node, exact=True)

    def fix(self, stage: Stage, node: Node, proved: Proved) -> None:
        """Decide what the bound decides; the parts cut off are closed at their bounds."""
        cutoff = self.cutoff
        if node.bound >= cutoff:
            return
        out = (node.status == UNDECIDED) & (proved.if_in >= cutoff) & (node.k > 0)
        into = (node.status == UNDECIDED) & (proved.if_out >= cutoff) & (node.k > 0)
        if not (out.any() or into.any()):
            return
        closed = [float(proved.if_in[out].min(initial=np.inf))]
        closed.append(float(proved.if_out[into].min(initial=np.inf)))
        self.floor = min(self.floor, *closed)
        self.tree.decided(node.record, stage.active[out], stage.active[into])
        node.status[out] = OUT
        node.w[out] = 0.0
        node.status[into] = IN
        node.k -= int(into.sum())
        self.fixed += int(out.sum() + into.sum())

    def push(self, node: Node) -> None:
        """Close a node that is done, keep the others for branching."""
        if node.bound >= self.cutoff or not node.undecided.size:
            self.floor = min(self.floor, node.bound)
            return
        self._count += 1
        heapq.heappush(self.open, (node.bound, self._count, node))

    def branch_all(self) -> None:
        """Branch on the open node with the least bound until none is left."""
        while self.open and not self.late():
            bound, _, node = heapq.heappop(self.open)
            if bound >= self.cutoff:
                self.floor = min(self.floor, bound)
                continue
            self.current = bound
            stage = node.stage
            if stage is None:
                raise ValueError("a node that waits for branching has a stage")
            j = choose(node)
            numbers = []
            for decision in (IN, OUT):
                k = node.k - (decision == IN)
                child = Node(node.status.copy(), k, node.w.copy(), node.t, bound, stage=stage)
                child.status[j] = decision
                if decision == OUT:
                    child.w[j] = 0.0
                numbers.append(self.look_at(stage, child))
                self.push(child)
            self.tree.branched(node.record, int(stage.active[j]), *numbers)
            self.current = math.inf
            self._tell()

    # ---- incumbents --------------------------------------------------------------------------

    def refit(self, stage: Stage, node: Node) -> None:
        """Try the minimiser on the support that the relaxation points at."""
        if node.bound >= self.cutoff:
            return
        undecided = node.undecided
        inside = np.flatnonzero(node.status == IN)
        count = min(node.k, undecided.size)
        sizes = np.abs(node.w[undecided])
        chosen = undecided[np.argsort(-sizes, kind="stable")[:count]]
        chosen = chosen[node.w[chosen] != 0.0]
        support = np.sort(np.concatenate([inside, chosen]))
        self.try_support(np.concatenate([stage.active[support], self.balanced]))

    def try_support(self, index: IntArray) -> None:
        """Take the minimiser on a support where it is better than the best point so far."""
        key = tuple(int(j) for j in index)
        if key in self._tried:
            return
        self._tried.add(key)
        if not index.size:
            return
        matrix = self.q.hessian[np.ix_(index, index)]
        matrix[np.diag_indices_from(matrix)] += self.q.ridge[index]
        try:
            values = cho_solve(cho_factor(matrix, lower=True), self.q.linear[index])
        except np.linalg.LinAlgError:
            return
        value = self.q.lowest_constant - 0.5 * float(self.q.linear[index] @ values)
        if not value < self.upper:
            return
        x = np.zeros(self.x.size)
        x[index] = values
        upper = self.evaluate(x)
        if upper < self.upper:
            self.upper, self.x = upper, x

    def _tell(self) -> None:
        if self.report is not None:
            self.report(self.upper, self.bound, self.nodes)


def choose(node: Node) -> int:
    """Return the undecided coordinate to branch on: the largest of the relaxation's point."""
    undecided: Any = node.undecided
    sizes = np.abs(node.w[undecided])
    return int(undecided[int(np.argmax(sizes))])


__all__ = ["Search", "choose"]
