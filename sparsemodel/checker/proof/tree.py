"""Branch-and-bound trees: every part's bound again, and that the parts cover all supports.

A record is about the supports with some units in for good and some out. It may hold a point or dual
points (and coordinates ``balanced`` whose slopes vanish nearby; a part has slopes of its own for
linear constraints: ``slopes`` beside a point, or the dual point of their term), from which a bound
follows; units that this bound decides (``out``: whoever uses one is above the cut; ``in``: whoever
does without); and what came next: another record for what is left, or two, one with a unit in and
one with it out.
-1 is a part that was not examined: it has the bound known so far.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sparsemodel.checker.files import NotChecked, Refuted, index, numbers
from sparsemodel.checker.proof.bound import dual
from sparsemodel.checker.proof.problem import Problem
from sparsemodel.checker.proof.quadratic import check_curvature, least_of_all
from sparsemodel.checker.proof.supports import Supports

_MOST = 3_000_000
"""Supports that one part may have for all of them to be looked at again."""


class Tree:
    """A stored tree; what its records prove depends on the problem."""

    def __init__(self, nodes: list[Any], supports: Supports) -> None:
        self.nodes, self.supports, self.count = nodes, supports, supports.count

    def evaluate(self, record: Any, inside: Any, out: Any, facts: Any) -> tuple[Any, Any]:
        """Return what the numbers of a record prove (a base, gains of units, ...), and a bound."""
        raise NotImplementedError

    def below(self, found: Any, inside: Any, out: Any, facts: Any) -> Any:
        """Return what is known of the matrices of a part's two children, beside their units."""
        return facts

    def bound(self, out: Any = None, facts: Any = None) -> Any:
        """Return the least bound of all parts; the units ``out`` are out from the beginning."""
        parts, seen = [], set[int]()
        nobody = np.zeros(self.count, dtype=bool)
        start = (0, nobody, nobody if out is None else out, -np.inf, facts)
        todo: list[tuple[int, Any, Any, Any, Any]] = [start]
        while todo:
            number, inside, out, known, facts = todo.pop()
            if number == -1:
                parts.append(known)
                continue
            if isinstance(number, bool) or not isinstance(number, int) or number in seen:
                raise Refuted(f"record {number!r} of the tree appears twice, or is no number.")
            if not 0 <= number < len(self.nodes):
                raise Refuted(f"record {number} of the tree is not there.")
            seen.add(number)
            record = self.nodes[number]
            found, enumerated = self.evaluate(record, inside, out, facts)
            known = max(known, enumerated, self._at(found, inside, out))
            without, within = (index(record.get(name, []), self.count) for name in ("out", "in"))
            decided = nobody.copy()
            decided[np.concatenate([without, within])] = True
            if decided.sum() != without.size + within.size or np.any(decided & (inside | out)):
                raise Refuted(f"record {number} of the tree decides a unit twice.")
            if decided.any():
                parts += self._cut(found, inside, out, known, without, within)
                inside, out = inside.copy(), out.copy()
                inside[within], out[without] = True, True
                known = max(known, self._at(found, inside, out))
            if "next" in record:
                todo.append((record["next"], inside, out, known, facts))
            elif "branch" in record:
                unit, *children = record["branch"]
                j = int(index([unit], self.count)[0])
                if inside[j] or out[j] or len(children) != 2:
                    raise Refuted(f"record {number} of the tree branches on a decided unit.")
                unit_j = np.arange(self.count) == j
                below = self.below(found, inside, out, facts)
                for child, masks in zip(
                    children, ((inside | unit_j, out), (inside, out | unit_j)), strict=True
                ):
                    bound = max(known, self._at(found, *masks))
                    todo.append((child, *masks, bound, below))
            else:
                parts.append(known)
        return min(parts)

    def _at(self, found: Any, inside: Any, out: Any) -> Any:
        return self.supports.bound(found[0], found[1], inside, out)

    def _cut(
        self, found: Any, inside: Any, out: Any, known: Any, without: Any, within: Any
    ) -> list[Any]:
        """Return bounds on what the decisions cut off: the worst unit of either kind decides.

        Where nothing distinguishes units, that is the one with the largest or least gain.
        """
        parts, alone = [], np.eye(self.count, dtype=bool)
        for units, worst, way in ((without, np.argmax, 1), (within, np.argmin, 0)):
            some = units[[worst(found[1][units])]] if self.supports.plain and units.size else units
            for j in some:
                masks = (inside | alone[j], out) if way else (inside, out | alone[j])
                parts.append(max(known, self._at(found, *masks)))
        return parts


class RegressionTree(Tree):
    """The tree of a regression."""

    def __init__(self, problem: Problem, tree: dict[str, Any]) -> None:
        super().__init__(tree["nodes"], problem.supports)
        self.problem = problem
        self.at: Callable[[Any], Problem] | None = None
        """The problem with other slopes of linear constraints, where these are in the objective."""
        self.priced: int | None = None
        """The term with these slopes, where parts have slopes of their own."""
        if not all(isinstance(tree[name], bool) for name in ("gram", "boxed")):
            raise Refuted("the tree does not say how its parts were bounded.")
        if tree.get("kind") != "parts":
            raise NotChecked(f"a proof of the kind {tree.get('kind')!r}")
        self.stages = []
        for stage in tree["stages"]:
            active = index(stage["active"], problem.shape[0])
            taken, member = np.zeros(problem.shape[0]), np.zeros(problem.shape[0], dtype=bool)
            taken[active] = numbers(stage["delta"])
            member[active] = member[problem.free] = True
            check_curvature(problem, taken, member)
            self.stages.append((member, taken))

    def evaluate(self, record: Any, inside: Any, out: Any, facts: Any) -> tuple[Any, Any]:
        """Return what the numbers of a record prove, and the bound where all supports count."""
        problem, nothing = self.problem, (-np.inf, np.zeros(self.count))
        alive = ~np.append(out, False)[problem.unit]
        if record.get("enumerated") is True:
            left = np.flatnonzero(alive & ~np.append(inside, True)[problem.unit])
            fixed = np.flatnonzero(alive & np.append(inside, True)[problem.unit])
            k = problem.supports.budget - int(inside.sum())
            if not problem.single or not 0 <= k <= 3:
                raise Refuted("a part has too many supports to have been looked at.")
            if left.size**k > 6 * _MOST:
                raise NotChecked(f"a part of which all {k} of {left.size} coordinates are tried")
            return nothing, least_of_all(problem, fixed, left, k)
        balanced = index(record.get("balanced", []), problem.shape[0])
        if "at" in record:
            member, taken = self.stages[_natural(record["stage"], len(self.stages))]
            if not np.all(member[alive]):
                raise Refuted("curvature was taken out for fewer coordinates than are left.")
            at = np.zeros(problem.shape)
            at[index(record["at"], at.size)] = numbers(record["x"])
            at[~alive] = 0.0
            if not np.all(np.isfinite(at)):
                raise Refuted("a point of the tree is not finite.")
            if "slopes" in record:
                if self.at is None:
                    raise Refuted("a part has slopes without linear constraints.")
                problem = self.at(numbers(record["slopes"]))
            return dual(problem, None, at, taken, balanced), -np.inf
        if "duals" not in record:
            return nothing, -np.inf
        points = [numbers(a) for a in record["duals"]]
        if self.at is not None and self.priced is not None:
            problem = self.at(points[self.priced])
        return dual(problem, fitting(problem, points), balanced=balanced), -np.inf


def fitting(problem: Problem, points: list[Any]) -> list[Any]:
    """Return dual points that fit the predictions and are finite."""
    shapes = [(t.matrix.shape[0], *problem.shape[1:]) for t in problem.terms]
    if [a.shape for a in points] != shapes or not all(np.all(np.isfinite(a)) for a in points):
        raise Refuted("a dual point does not fit the predictions.")
    return points


def _natural(value: Any, size: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < size:
        raise Refuted("a stage of the tree is not there.")
    return value
