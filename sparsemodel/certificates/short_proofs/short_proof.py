"""A branch and bound that is over soon, or is left: what a solve can afford, without compiled code.

Parts are quadratics of their own (:class:`Part`), so that a branch is one elimination. A part is
closed by curvature chosen for its best support where that goes (one factorisation), by a tangent of
the perspective relaxation, or by looking at all its supports where one or two units are left.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from sparsemodel.certificates.arithmetic.rounding import U
from sparsemodel.certificates.proving.gram.quadratic import Quadratic
from sparsemodel.certificates.short_proofs.one_factorisation import bound_by_one_factorisation
from sparsemodel.certificates.short_proofs.part import Part, Tangent
from sparsemodel.certificates.short_proofs.relaxation import relaxed
from sparsemodel.certificates.short_proofs.root_node import RootNode
from sparsemodel.certificates.statements.claims import OPTIMAL_GAP, Claim, relative_gap_of
from sparsemodel.certificates.statements.objective_interval import (
    Primal,
    constant_part,
    null_value,
    primal,
)
from sparsemodel.interfaces import FloatArray, IntArray, SparseRegression
from sparsemodel.numerics.budget import Budget, budget

_BETTER = 1e-9
"""Relative difference from which on a point is another one."""

_FACTORISATIONS = 4.0
"""Of all columns, in the root."""

_HOPELESS = 0.5
"""Share of what the point explains that the first bound may leave open."""

_FEW = 20_000
"""Supports up to which a search is tried all the same: it looks at all of them."""


@final
@dataclass(frozen=True, slots=True)
class Patience:
    """How long a short proof may be."""

    nodes: int
    """Parts that are looked at, where one factorisation does not do."""
    rounds: int
    """Of steps for the bound of each."""
    operations: float
    """Of the Gram matrix and of a few factorisations."""


WHEN_READ = Patience(nodes=200, rounds=3, operations=1e9)
WITH_HIGH_EFFORT = Patience(nodes=1000, rounds=6, operations=1e9)


@final
@dataclass(frozen=True, slots=True, eq=False)
class ShortProofResult:
    """The result of a short proof."""

    x: FloatArray
    """The best point, in the form's coordinates."""
    value: float
    """Its objective."""
    upper: float
    """The same, rounded up."""
    bound: float
    """No feasible point has an objective below."""
    closed: bool
    """Whether that proves the point globally optimal, as a certificate would say."""

    @property
    def claim(self) -> Claim:
        """Return what is proved of the point."""
        return Claim.OPTIMAL if self.closed else Claim.WITHIN_GAP


@np.errstate(all="ignore")  # a bound that overflows is not finite, and none
def short_proof(
    form: SparseRegression, x: FloatArray, patience: Patience
) -> ShortProofResult | None:
    """Search supports for a better point, within a few parts; None where no proof would be short.

    Only for squared losses with a limit on the number of units and nothing else. The bound is
    valid as that of :func:`prove` is, and nothing is compiled for it.

    Parameters
    ----------
    form
        The problem as the user declared it.
    x
        A feasible point.
    patience
        How long it may be.
    """
    operations = root_cost(form)
    if not searchable(form) or operations > patience.operations or not budget().allows(operations):
        return None
    q, at = Quadratic.of(form), primal(form, x)
    if not (q.sound and q.finite) or at.violations:
        return None
    near = x if q.shifts is None else q.shifts.carry(x)
    bound = bound_by_one_factorisation(form, q, near, 0.5 * OPTIMAL_GAP)
    if bound is not None:
        found = _concluded(form, x, at, bound)
        if found is not None and found.closed:
            return found
    root = RootNode.of(form, q)
    if root is None:
        return None
    search = _Search(root, x, constant_part(form), patience)
    search.run()
    if search.better is not None:
        better = root.minimiser(np.array(search.better, dtype=np.intp))
        if better is not None:
            x, at = better, primal(form, better)
    return _concluded(form, x, at, search.bound)


def _concluded(
    form: SparseRegression, x: FloatArray, at: Primal, bound: float
) -> ShortProofResult | None:
    """Return what a bound says of a point; None where that is nothing."""
    bound = min(bound, at.upper)
    if at.violations or not (math.isfinite(bound) and math.isfinite(at.upper)):
        return None
    share = relative_gap_of(at.upper, bound, constant_part(form))
    return ShortProofResult(x, at.value, at.upper, bound, share <= OPTIMAL_GAP)


def root_cost(form: SparseRegression) -> float:
    """Return the operations of the Gram matrix and of taking curvature out of it."""
    p = float(form.sparsity.size)
    rows = sum(term.design.shape[0] for term in form.terms)
    return p * p * (rows + _FACTORISATIONS * p)


def searchable(form: SparseRegression) -> bool:
    """Return whether there are squared losses and a limit on the number of units alone."""
    sparsity = form.sparsity
    plain = form.traits.square and not form.matrix and not form.constrained
    counted = sparsity.bare and sparsity.groups is None and 0 < sparsity.budget < sparsity.units
    return plain and counted and curved(form)


def curved(form: SparseRegression) -> bool:
    """Return whether the objective may be strictly convex, without which bounds say little."""
    rows = sum(term.design.shape[0] for term in form.terms)
    return rows > form.sparsity.size or bool(np.all(form.ridge[form.sparsity.counted] > 0.0))


def hopeless(form: SparseRegression) -> Callable[[float, float, int], bool]:
    """Return what tells that a search will not be short, by its value, its bound and its nodes."""
    constant, above = constant_part(form), null_value(form)

    def left(value: float, bound: float, nodes: int) -> bool:
        # Nothing need be feasible at zero beside linear constraints.
        room = above - value if form.region is None else value - constant
        return nodes > 0 and value - bound > _HOPELESS * room

    return left


@final
class _Search:
    """One search: the open parts, the best support, what is proved."""

    def __init__(self, node: RootNode, x: FloatArray, constant: float, patience: Patience) -> None:
        self._patience, self._constant = patience, constant
        self._left: Budget = budget()
        self._rounding = node.quadratic.unit * node.quadratic.aim**2
        root = node.started(x)
        self._nothing = root.constant
        point = root.point
        product = point @ root.matrix
        self.value = root.constant + float(point @ (0.5 * product - root.linear))
        """The objective of the best support, in plain arithmetic."""
        self.better: tuple[int, ...] | None = None
        """That support, where it is better than the given point."""
        self.nodes = 0
        self._floor, self._ticket = math.inf, 0
        self._open: list[tuple[float, int, Part, int, bool]] = []
        self._push(root, -1, True, -math.inf)

    @property
    def bound(self) -> float:
        """Return the lower bound over all parts, open and closed."""
        return min(self._floor, self._open[0][0] if self._open else math.inf)

    @property
    def cutoff(self) -> float:
        """Return the bound from which on a part is closed."""
        size = min(abs(self.value), abs(self.value - self._constant))
        return self.value - 0.5 * OPTIMAL_GAP * size

    def run(self) -> None:
        """Search until every part is closed, or it is no longer short."""
        if not self.value - self.cutoff > 4.0 * self._rounding:
            return  # rounding leaves a larger gap
        while self._open and not self._over():
            bound, _, parent, place, into = heapq.heappop(self._open)
            if bound >= self.cutoff:
                self._close(bound)
                continue
            part: Part | None = parent
            if place >= 0:
                part = parent.having(place) if into else parent.without(place)
            if part is None:  # too nearly dependent
                self._close(bound)
                return
            part.bound = bound
            if not self._look(part):
                return

    def _over(self) -> bool:
        return self.nodes >= self._patience.nodes or self._left.left <= 0.0

    def _push(self, parent: Part, place: int, into: bool, bound: float) -> None:
        self._ticket += 1
        heapq.heappush(self._open, (bound, self._ticket, parent, place, into))

    def _close(self, bound: float) -> None:
        self._floor = min(self._floor, bound)

    # ---- one part ----------------------------------------------------------------------------

    def _look(self, part: Part) -> bool:
        """Close a part, or divide it; False where the search is to end, with the part open."""
        while True:
            self.nodes += 1
            if self._settled(part):
                return True
            if not part.extract_curvature():
                break
            found = relaxed(part, self.cutoff, self._patience.rounds)
            part.bound = max(part.bound, found.bound)
            self._offer(part, found.order[: part.k])
            if part.bound >= self.cutoff:
                self._close(part.bound)
                return True
            if self.nodes == 1 and self._hopeless(part):
                break
            smaller = self._fixed(part, found)
            if smaller is None:
                self._divide(part, found)
                return True
            part = smaller
            if self._over():
                break
        self._push(part, -1, True, part.bound)
        return False

    def _hopeless(self, root: Part) -> bool:
        """Return whether the first bound leaves too much open, for all but a few supports."""
        room = _HOPELESS * (self._nothing - self.value)
        few = math.comb(root.units.size, root.k) <= _FEW
        return not (few or self.value - root.bound <= room)

    def _settled(self, part: Part) -> bool:
        """Close a part that needs no relaxation; return whether that went."""
        if part.k <= 0 or not part.units.size:
            if part.constant < self.value:
                self._take(part.inside, part.constant)
            self._close(part.constant)
            return True
        if part.units.size <= part.k:
            below = part.having(0)
            return below is not None and self._settled(below)
        if part.k <= 2:
            ends = part.enumerated()
            if ends is not None:
                self._offer(part, ends[1])
                self._close(ends[0])
                return True
        on = _candidate(part)
        found = self._offer(part, on)
        if found is None:
            return False
        bound = part.bound_from(on, *found, self.cutoff)
        if not bound >= self.cutoff:
            return False
        self._close(bound)
        return True

    def _offer(self, part: Part, on: IntArray) -> tuple[FloatArray, float] | None:
        """Minimise on some units beside those that are in; keep the support if it is better."""
        found = part.minimised(on)
        if found is not None and found[1] < self.value:
            self._take((*part.inside, *part.units[on].tolist()), found[1])
        return found

    def _take(self, units: tuple[int, ...], value: float) -> None:
        if value < self.value - _BETTER * abs(self.value):
            self.value, self.better = value, units

    def _fixed(self, part: Part, found: Tangent) -> Part | None:
        """Return what is left where the bound decides units; None where it decides none."""
        k, gains, order, cutoff = part.k, found.gains, found.order, self.cutoff
        base = found.bound - 8.0 * U * (abs(found.bound) + 2.0 * float(gains[order[0]]))
        last, following = float(gains[order[k - 1]]), float(gains[order[k]])
        out = order[k:][base + (last - gains[order[k:]]) >= cutoff]
        into = order[:k][base + (gains[order[:k]] - following) >= cutoff]
        if not (out.size or into.size):
            return None
        self._close(cutoff)
        chosen = part.units[into].tolist()
        keep = np.ones(part.units.size, dtype=bool)
        keep[out] = False
        left: Part | None = part.on(np.flatnonzero(keep))
        for unit in chosen:
            left = None if left is None else left.having(int(np.flatnonzero(left.units == unit)[0]))
        return left

    def _divide(self, part: Part, found: Tangent) -> None:
        """Branch on the largest unit; sides that the bound closes are not looked at."""
        gains, order, k = found.gains, found.order, part.k
        place = int(np.argmax(np.abs(part.point)))
        last, following = float(gains[order[k - 1]]), float(gains[order[k]])
        base = found.bound - 8.0 * U * (abs(found.bound) + 2.0 * float(gains[order[0]]))
        sides = (max(last - float(gains[place]), 0.0), max(float(gains[place]) - following, 0.0))
        for more, into in zip(sides, (True, False), strict=True):
            bound = max(part.bound, base + more)
            if bound >= self.cutoff:
                self._close(bound)
            else:
                self._push(part, place, into, bound)


def _candidate(part: Part) -> IntArray:
    """Return the support that a part's point tells of."""
    on = np.flatnonzero(part.point)
    if on.size == part.k:
        return on
    sizes = np.abs(part.point)
    slopes = np.abs(part.point[on] @ part.matrix[on] - part.linear)
    slopes[on] = sizes[on] + slopes.max()
    return np.sort(np.argsort(-slopes)[: part.k])
