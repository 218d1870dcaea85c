r"""Best-first branch and bound over supports.

A bounder bounds every node by a relaxation; the gains of its dual point also fix units (those whose
decision one way would prune), and a branch decides the largest unit that is still open. A node's
relaxation is solved only until it prunes, or until it is clear that it will not.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from sparsemodel.certificates.proving.bounder import Aim, Finished, NodeBounder, Relaxed
from sparsemodel.certificates.proving.incumbent import Incumbent
from sparsemodel.certificates.proving.node import IN, OUT, UNDECIDED, Node, Proved
from sparsemodel.certificates.proving.records.writing import Recorder
from sparsemodel.certificates.statements.claims import relative_gap_of
from sparsemodel.progress import report


@final
@dataclass(frozen=True, slots=True)
class Snapshot:
    """Where a proof stands, for progress reports."""

    seconds: float
    nodes: int
    open: int
    value: float
    """Best objective so far."""
    bound: float
    """What is proved so far."""
    operations: float = 0.0
    """Of relaxations so far, where they are counted."""


def _words(at: Snapshot) -> str:
    gap = relative_gap_of(at.value, at.bound)
    return f"{at.nodes} parts, {at.open} open  objective {at.value:.6g}  gap {gap:.2g}"


@final
class Search:
    """One proof: the open parts, the best point, what is proved."""

    def __init__(
        self,
        root: NodeBounder,
        incumbent: Incumbent,
        recorder: Recorder,
        *,
        allowed: Callable[[float], float],
        deadline: float | None = None,
        progress: Callable[[Snapshot], object] | None = None,
        max_nodes: int | None = None,
    ) -> None:
        """``allowed`` is the gap that may be left for an upper bound.

        ``progress`` may return True to end the search.
        """
        self.root, self.incumbent, self.recorder = root, incumbent, recorder
        self._allowed, self._deadline, self._progress = allowed, deadline, progress
        self._max_nodes = max_nodes
        self._began = time.perf_counter()
        self._open: list[tuple[float, int, Node]] = []
        self._ticket = 0
        self._current = math.inf
        self.stopped: bool = False
        """Whether what listens has ended it."""
        self.given_up: int = 0
        """Parts without a bound of their own, which are left open."""
        self.floor: float = math.inf
        """Least bound of the parts that are closed."""
        self.nodes: int = 0
        self.fixed: int = 0
        self.check: float = 0.0
        """Seconds that checking a recorded node takes, where that is part of the limit."""
        self.opening: float = 0.0
        """Seconds that such a check takes before it comes to nodes."""
        self.waited: float = 0.0
        """Seconds that compiling took beside that of its own nodes."""
        self.patient: bool = True
        """Whether it goes on where a part keeps a gap, so that it cannot close."""
        self.first: Relaxed | None = None
        """The last relaxation of the whole problem, or of what fixing left of it."""
        self.history: list[Snapshot] = []

    # ---- what is needed, what is proved ------------------------------------------------------

    @property
    def cutoff(self) -> float:
        """Return the bound from which on a part is closed."""
        upper = self.incumbent.upper
        return upper - self._allowed(upper) if math.isfinite(upper) else math.inf

    @property
    def bound(self) -> float:
        """Return the lower bound over all parts, open and closed."""
        first = self._open[0][0] if self._open else math.inf
        return min(self.floor, first, self._current)

    @property
    def open(self) -> int:
        """Return how many parts are not closed, the one that is looked at among them."""
        return len(self._open) + self.given_up + (self._current < math.inf)

    def snapshot(self) -> Snapshot:
        """Return where the proof stands."""
        seconds = time.perf_counter() - self._began
        upper, operations = self.incumbent.upper, self.root.operations
        return Snapshot(seconds, self.nodes, self.open, upper, self.bound, operations)

    # ---- the loop ----------------------------------------------------------------------------

    def begin(self, parts: Sequence[Node]) -> None:
        """Take the parts that are to be searched: until they are, nothing is proved of them."""
        for node in parts:
            self._push(node)

    def run(self, nodes: int | None = None) -> None:
        """Search until every part is closed, time is up, or the callback or Ctrl-C ends it.

        With ``nodes`` also once so many were looked at; another call goes on.
        """
        while self._open and not (self._over() and self.nodes):
            if nodes is not None and self.nodes >= nodes:
                return
            bound, _, node = self._open[0]
            self._current = bound
            heapq.heappop(self._open)
            if bound >= self.cutoff:
                self.floor = min(self.floor, bound)
            else:
                self._look(node)
            self._current = math.inf
        self._report()

    def _push(self, node: Node) -> None:
        self._ticket += 1
        heapq.heappush(self._open, (node.bound, self._ticket, node))

    def _late(self) -> bool:
        if self._deadline is None:
            return False
        spare = self.delay - self.opening - self.check * self.recorder.count
        return time.perf_counter() >= self._deadline + spare

    @property
    def delay(self) -> float:
        """Return the seconds that compiling took, which do not count as search."""
        return self.root.delay + self.waited

    @property
    def over(self) -> bool:
        """Return whether the search was stopped, or a limit was met."""
        return self.stopped or self._late() or self.full

    @property
    def full(self) -> bool:
        """Return whether it has looked at as many nodes as it may, or its record has room for."""
        most = self._max_nodes is not None and self.nodes >= self._max_nodes
        return most or (self.root.needs_record and self.recorder.full)

    @property
    def gives_up(self) -> bool:
        """Return whether it ends as a part keeps a gap."""
        return not self.patient and self.floor < self.cutoff

    def _over(self) -> bool:
        return self._report() or self.over or self.gives_up

    def _report(self) -> bool:
        now = self.snapshot()
        self.history.append(now)
        report(lambda: _words(now))
        stop = self._progress is not None and self._progress(now) is True
        self.stopped = self.stopped or stop
        return self.stopped

    # ---- one node ----------------------------------------------------------------------------

    def _look(self, node: Node) -> None:
        """Raise a node's bound; then it is closed, given up, or divided."""
        if node.impossible:
            return
        while True:
            soon = node.link is not None and node.part.finishes(node)
            if soon and self._finish(node, roughly=True):
                return
            before = node.undecided.size
            proved = self._relax(node)
            if proved is None:
                if not self._finish(node):
                    self._give_up(node)
                return
            better = self.incumbent.offer(node)
            for x in node.part.proposals(node, self.incumbent.upper):
                better = self.incumbent.take(x) or better
            if better:
                self._report()
            if self._done(node):
                return
            fixed = self._fix(node, proved)
            if self._done(node):
                return
            if not node.undecided.size:
                self._conclude(node, fixed)
                return
            smaller = None
            if fixed and not self._late():
                smaller = node.part.shrunk(node, before)
            if smaller is None:
                break
            node = node.moved(smaller)
        if not self._finish(node):
            self._divide(node, proved)

    def _relax(self, node: Node, *, exact: bool = False) -> Proved | None:
        """Solve a node's relaxation and raise its bound by what is proved."""
        aim = Aim(self.cutoff, self.incumbent.upper, self._deadline, exact)
        found = None if self.nodes else node.part.at_start(node, aim)
        if found is None or not (self._late() or self._closes(node, found)):
            found = node.part.relax(node, aim)
        if found is None:
            return None
        self.nodes += 1
        node.link = (self.recorder.relaxed(found, node.link), 0)
        if node.depth == 0:
            self.first = found
        node.start, node.hint, node.sizes = found.x, found.hint, found.sizes
        node.slopes = found.slopes
        low = found.minorant
        proved = None if low is None else node.decided(low)
        if proved is not None:
            node.bound = self._current = max(node.bound, proved.bound)
        if found.interrupted:
            raise KeyboardInterrupt  # what the node proves is kept
        return proved

    def _closes(self, node: Node, found: Relaxed) -> bool:
        low = found.minorant
        proved = None if low is None else node.decided(low)
        return proved is not None and proved.bound >= self.cutoff

    def _done(self, node: Node) -> bool:
        """Close a node whose bound is high enough; return whether it is."""
        if node.bound < self.cutoff:
            return False
        self.floor = min(self.floor, node.bound)
        return True

    def _give_up(self, node: Node) -> None:
        """Leave a node with the bound of its parent."""
        if node.link is None:  # a later proof goes on from here
            node.link = (self.recorder.begun(), 0)
        self.given_up += 1
        self.floor = min(self.floor, node.bound)

    def _fix(self, node: Node, proved: Proved) -> bool:
        """Decide what the bound decides; the parts cut off are closed at their bounds."""
        cutoff = self.cutoff
        undecided = (node.status == UNDECIDED) & (node.k > 0)
        out = undecided & (proved.if_in >= cutoff)
        into = undecided & (proved.if_out >= cutoff) & ~out
        if not (out.any() or into.any()):
            return False
        if not node.allows(np.flatnonzero(into), beside_others=True):
            return False
        closed = float(proved.if_in[out].min(initial=math.inf))
        closed = min(closed, float(proved.if_out[into].min(initial=math.inf)))
        units = node.part.units
        if node.link is not None:
            self.recorder.decided(node.link[0], units[out], units[into])
        self.floor = min(self.floor, closed)
        node.status = node.status.copy()
        node.status[out], node.status[into] = OUT, IN
        node.k -= int(into.sum())
        self.fixed += int(out.sum() + into.sum())
        return True

    def _conclude(self, node: Node, fixed: bool) -> None:
        """Close a node where fixing left nothing to choose."""
        if fixed:
            self.incumbent.offer(node)
        if node.bound < self.cutoff and not self._finish(node):
            self._relax(node, exact=True)
        self.floor = min(self.floor, node.bound)

    def _finish(self, node: Node, *, roughly: bool = False) -> bool:
        """Bound a node with little left to choose once and for all; return whether that went."""
        found: Finished | None = node.part.finish(node, roughly=roughly)
        if found is None:
            return False
        self.nodes += 1
        node.link = (self.recorder.finished(found, node.link), 0)
        better = found.x is not None and self.incumbent.take(found.x)
        if found.units is not None:
            better = self.incumbent.refit(node.part, found.units)
        node.bound = self._current = max(node.bound, found.bound)
        if better:
            self._report()
        if found.rough and node.bound < self.cutoff:
            return False
        self.floor = min(self.floor, node.bound)
        return True

    def _divide(self, node: Node, proved: Proved) -> None:
        """Branch on the largest undecided unit; sides that the bound closes are not looked at."""
        undecided = node.undecided
        aim = Aim(self.cutoff, self.incumbent.upper, self._deadline)
        place = node.part.branching(node, aim)
        if place is None:
            place = int(undecided[int(np.argmax(node.sizes[undecided]))])
        if node.link is None:
            raise ValueError("a node is divided after it was recorded")
        number, unit = node.link[0], int(node.part.units[place])
        self.recorder.branched(number, unit)
        small = node.part.copied(node)
        parent = node if small is None else node.moved(small, hint=node.hint)
        own = int(np.searchsorted(parent.part.units, unit))
        for decision, bounds, side in ((IN, proved.if_in, 1), (OUT, proved.if_out, 2)):
            bound = max(node.bound, float(bounds[place]))
            if bound >= self.cutoff:
                self.floor = min(self.floor, bound)
            else:
                self._push(parent.child(own, decision, bound, (number, side)))
