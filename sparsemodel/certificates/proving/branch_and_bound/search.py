r"""Branch and bound on the perspective relaxation, with variables fixed by their gains.

Best bound first; branching on the largest coefficient of the relaxation that is still open; a
node's relaxation is solved only until it prunes, or until it is clear that it will not. When fixing
has deleted enough coordinates the region becomes a problem of its own, with more curvature to take
out of the data.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from sparsemodel.certificates.dual_bounds.bound import Bound, nothing
from sparsemodel.certificates.dual_bounds.diagonal_shift import applies, hessian
from sparsemodel.certificates.dual_bounds.witness import from_point
from sparsemodel.certificates.proving.branch_and_bound.domain import (
    Domain,
    forced_values,
    node_value,
)
from sparsemodel.certificates.proving.branch_and_bound.incumbent import Incumbent
from sparsemodel.certificates.proving.branch_and_bound.record import Leaf
from sparsemodel.certificates.proving.branch_and_bound.subproblem import scattered
from sparsemodel.certificates.proving.branch_and_bound.tree import Node, discarded
from sparsemodel.certificates.relaxation.regulariser import unit_of
from sparsemodel.certificates.statements.objective_interval import constant_part
from sparsemodel.interfaces import BoolArray, FloatArray, IntArray, SparseRegression

_SHRINK = 0.7
"""A region becomes a domain of its own when fixing leaves this share of the units."""


@final
@dataclass(frozen=True, slots=True)
class Standing:
    """Where a proof stands, for progress reports."""

    seconds: float
    nodes: int
    open: int
    value: float
    """Best objective so far."""
    bound: float
    """What is proved so far."""


@final
class Search:
    """One proof: the tree, the open regions, the best point."""

    def __init__(
        self,
        form: SparseRegression,
        x: FloatArray,
        gap: float,
        *,
        deadline: float | None = None,
        progress: Callable[[Standing], bool] | None = None,
        max_nodes: int | None = None,
        points: SparseRegression | None = None,
    ) -> None:
        """``points`` is the problem that points are for, where ``form`` has narrower bounds."""
        self.form: SparseRegression = form
        self.gap: float = gap
        self._constant = constant_part(form)
        self.deadline: float | None = deadline
        self.incumbent: Incumbent = Incumbent(form if points is None else points, x)
        self.domains: list[Domain] = []
        self.nodes: list[Node] = []
        self.bounds: list[Bound] = []
        self.closed: float = math.inf
        """Smallest bound on anything that was discarded."""
        self._heap: list[tuple[float, int, int, bool, FloatArray]] = []
        self._ticket = 0
        self._began = time.perf_counter()
        self._progress = progress
        self._max_nodes = max_nodes
        self.history: list[Standing] = []
        self.interrupted: bool = False
        self._leaves: tuple[Leaf, ...] | None = None
        self._matrix: FloatArray | None = None
        self.reopened: dict[int, int] = {}
        """For every part of an earlier search that was looked at: its node."""

    # ---- what is needed, what is proved ------------------------------------------------------

    @property
    def needed(self) -> float:
        """Return the bound at which a region is done."""
        upper = self.incumbent.upper
        size = min(abs(upper), abs(upper - self._constant))
        return upper - self.gap * size if math.isfinite(upper) else math.inf

    @property
    def proved(self) -> float:
        """Return the lower bound on the whole problem."""
        waiting = self._heap[0][0] if self._heap else math.inf
        return min(self.closed, waiting)

    def standing(self) -> Standing:
        """Return where the proof stands."""
        seconds = time.perf_counter() - self._began
        return Standing(
            seconds, len(self.nodes), len(self._heap), self.incumbent.upper, self.proved
        )

    # ---- the loop ----------------------------------------------------------------------------

    def run(self) -> None:
        """Search until everything is closed, or until time is up or the user says stop."""
        everything = np.arange(self.form.sparsity.size)
        root = self._enter(everything, np.empty(0, dtype=np.intp), self.incumbent.x, None)
        self._work(root, self.incumbent.x, -math.inf)
        self._empty()

    def resume(self, closed: float, leaves: tuple[Leaf, ...]) -> None:
        """Go on with the parts that an earlier search left; ``closed`` bounds all others."""
        self.closed, self._leaves = closed, leaves
        if applies(self.form) and not self.form.matrix:
            self._matrix = hessian(self.form)
        for i, leaf in enumerate(leaves):
            if leaf.bound >= self.needed:
                self.closed = min(self.closed, leaf.bound)
                continue
            self._ticket += 1
            heapq.heappush(self._heap, (leaf.bound, self._ticket, -1 - i, False, self.incumbent.x))
        self._empty()

    def _empty(self) -> None:
        """Look at the open part with the least bound until none is left."""
        while self._heap:
            if self._stop():
                self.interrupted = True
                break
            bound, _, parent, is_in, start = heapq.heappop(self._heap)
            if bound >= self.needed:
                self.closed = min(self.closed, bound)
                continue
            if parent < 0:
                self._reopen(-1 - parent, start, bound)
                continue
            inside, out = self.nodes[parent].child(is_in)
            index = self._add(Node(self.nodes[parent].domain, inside, out))
            one, two = self.nodes[parent].children
            self.nodes[parent].children = (index, two) if is_in else (one, index)
            self._work(index, start, bound)
        self._report()

    def _reopen(self, number: int, start: FloatArray, bound: float) -> None:
        """Enter a part of an earlier search as a problem of its own."""
        if self._leaves is None:
            raise ValueError("there is no earlier search")
        leaf, unit = self._leaves[number], unit_of(self.form)
        keep = np.flatnonzero(~np.append(leaf.out, False)[unit])
        inside = np.flatnonzero(np.append(leaf.inside, False)[unit])
        matrix = None if self._matrix is None else self._matrix[np.ix_(keep, keep)]
        index = self._enter(keep, inside, start[keep], matrix)
        self.reopened[number] = index
        self._work(index, start[keep], bound)

    def _stop(self) -> bool:
        late = self.deadline is not None and time.perf_counter() >= self.deadline
        many = self._max_nodes is not None and len(self.nodes) >= self._max_nodes
        return self._report() or late or many

    def _report(self) -> bool:
        now = self.standing()
        self.history.append(now)
        return self._progress is not None and self._progress(now) is True

    def _add(self, node: Node) -> int:
        self.nodes.append(node)
        self.bounds.append(nothing("not looked at"))
        return len(self.nodes) - 1

    def _enter(
        self,
        coordinates: IntArray,
        inside: IntArray,
        start: FloatArray,
        matrix: FloatArray | None,
    ) -> int:
        """Make a domain and return the node that is all of it; ``start`` is in its coordinates."""
        domain = Domain(self.form, coordinates, inside, matrix=matrix)
        domain.prepare(self._enough, start, self.deadline)
        self.domains.append(domain)
        units = domain.units
        empty = np.zeros(units, dtype=bool)
        return self._add(Node(len(self.domains) - 1, empty, empty.copy()))

    def _enough(self, value: float, bound: float) -> bool:
        return bound >= self.needed

    # ---- one node ----------------------------------------------------------------------------

    def _work(self, index: int, start: FloatArray, inherited: float) -> None:
        """Solve a node's relaxation; close it, move it to a smaller domain, or divide it."""
        node = self.nodes[index]
        domain = self.domains[node.domain]
        if self.deadline is not None and time.perf_counter() >= self.deadline:
            self._leave(inherited)
            return
        if self._settled(index, inherited):
            return
        if domain.fast is None and (node.inside.any() or node.out.any()):
            self._move(node, domain, node.inside, node.out, start, inherited)
            return

        open_units = int((~node.inside & ~node.out).sum())
        everything = open_units <= domain.form.sparsity.budget - int(node.inside.sum())

        def goal(value: float, bound: float) -> bool:
            needed = self.needed
            if bound >= needed + 1e-9 * abs(needed):
                return True
            tight = value - bound <= 1e-9 * max(abs(value), abs(bound))
            # It will not prune: what remains to be known is which units can be fixed.
            return tight or (
                not everything and value < needed and value - bound <= 0.05 * (needed - bound)
            )

        solved = domain.solve(node.inside, node.out, start, goal, self.deadline)
        if solved is None:
            self._leave(inherited)
            return
        if self.incumbent.offer(scattered(solved.x, domain.coordinates, self.form.sparsity.size)):
            self._report()
        node.witness = solved.witness
        bound = domain.evaluate(solved.witness)
        self.bounds[index] = bound
        if solved.interrupted:
            raise KeyboardInterrupt  # what the node proves is kept
        value = max(node_value(bound, domain.form, node.inside, node.out), inherited)
        if value >= self.needed:
            self.closed = min(self.closed, value)
            return
        self._fix(node, domain, bound)
        inside, out = node.refined()
        self.closed = min(self.closed, max(discarded(node, self.domains, bound), inherited))
        undecided = ~inside & ~out
        left, room = int(undecided.sum()), domain.form.sparsity.budget - int(inside.sum())
        after = max(value, node_value(bound, domain.form, inside, out))
        if after >= self.needed:
            self.closed = min(self.closed, after)
            return
        decided = left == 0 or (left <= room and domain.form.sparsity.price == 0.0)
        if decided and np.array_equal(inside, node.inside) and np.array_equal(out, node.out):
            # Nothing was to be chosen: the relaxation is the problem itself.
            self.closed = min(self.closed, after)
            return
        if decided:
            self._move(node, domain, inside, out, solved.x, after)
            return
        separate = domain.fast is None and (inside.any() or out.any())
        if separate or int((~out).sum()) <= _SHRINK * domain.units:
            self._move(node, domain, inside, out, solved.x, after)
        else:
            self._divide(index, domain, undecided, solved.x, bound)

    def _settled(self, index: int, inherited: float) -> bool:
        """Close a region where nothing is left to choose: one convex problem, solved directly."""
        node = self.nodes[index]
        domain = self.domains[node.domain]
        undecided = ~node.inside & ~node.out
        room = domain.form.sparsity.budget - int(node.inside.sum())
        everything = int(undecided.sum()) <= room and domain.form.sparsity.price == 0.0
        if undecided.any() and room > 0 and not everything:
            return False
        chosen = node.inside | undecided if everything else node.inside
        support = domain.form.sparsity.coordinates(np.flatnonzero(chosen))
        x = self.incumbent.minimum(domain.coordinates[support])
        if x is None:
            return False
        self._report()
        node.witness = from_point(domain.form, x[domain.coordinates])
        self.bounds[index] = domain.evaluate(node.witness)
        value = node_value(self.bounds[index], domain.form, node.inside, node.out)
        self.closed = min(self.closed, max(value, inherited))
        return True

    def _leave(self, inherited: float) -> None:
        """Give a node up unsolved: what its parent proved is all that is known."""
        self.interrupted = True
        self.closed = min(self.closed, inherited)

    def _fix(self, node: Node, domain: Domain, bound: Bound) -> None:
        if not bound.finite:
            return
        if_in, if_out = forced_values(bound, domain.form, node.inside, node.out)
        room = domain.form.sparsity.budget - int(node.inside.sum())
        cannot_in, cannot_out = if_in >= self.needed, if_out >= self.needed
        if int(cannot_out.sum()) > room:
            cannot_out[:] = False
        node.cannot_in, node.cannot_out = cannot_in, cannot_out

    def _move(
        self,
        node: Node,
        domain: Domain,
        inside: BoolArray,
        out: BoolArray,
        x: FloatArray,
        inherited: float,
    ) -> None:
        """Go on with the same region as a smaller problem."""
        unit = unit_of(domain.form)
        deleted = (unit >= 0) & np.append(out, False)[unit]
        taken = (unit >= 0) & np.append(inside, False)[unit]
        keep = np.flatnonzero(~deleted)
        coordinates = domain.coordinates[keep]
        # Units taken in earlier domains are free coordinates of this one.
        all_in = np.union1d(domain.inside, domain.coordinates[taken])
        matrix = None if domain.matrix is None else domain.matrix[np.ix_(keep, keep)]
        node.successor = self._enter(coordinates, all_in, x[keep], matrix)
        self._work(node.successor, x[keep], inherited)

    def _divide(
        self, index: int, domain: Domain, undecided: BoolArray, x: FloatArray, bound: Bound
    ) -> None:
        node = self.nodes[index]
        sizes = np.sqrt(domain.form.sparsity.unit_scores(np.square(_rows(x))))
        sizes = np.where(undecided, sizes, -1.0)
        gains = np.where(undecided, bound.gains, -1.0) if bound.finite else sizes
        node.branch = int(np.argmax(sizes if sizes.max() > 0.0 else gains))
        for is_in in (True, False):
            value = node_value(bound, domain.form, *node.child(is_in))
            if value >= self.needed:
                self.closed = min(self.closed, value)
                continue
            self._ticket += 1
            heapq.heappush(self._heap, (value, self._ticket, index, is_in, x))


def _rows(x: FloatArray) -> FloatArray:
    return x if x.ndim == 1 else np.sqrt(np.einsum("ij,ij->i", x, x))


__all__ = ["Search", "Standing"]
