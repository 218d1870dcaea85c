"""The certificate of a sparse regression, line by line, and what its numbers prove."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from sparsemodel.checker import files, statements
from sparsemodel.checker.files import real, require
from sparsemodel.checker.proof.arithmetic import high, low, middle
from sparsemodel.checker.proof.bound import dual, objective
from sparsemodel.checker.proof.constraints import FEASIBLE, without_rows
from sparsemodel.checker.proof.equations import Equations
from sparsemodel.checker.proof.problem import Problem, build
from sparsemodel.checker.proof.quadratic import boxed, check_curvature, least_of_all, within
from sparsemodel.checker.proof.supports import Tree

_MOST = 3_000_000
"""Supports that one part may have for all of them to be looked at again."""

_EXACTLY = 300_000
"""Products up to which rational numbers decide where floats do not: about a second."""


def check(body: dict[str, Any], data: files.Data, exact: bool) -> str:
    """Check everything and return the claim; what does not hold is raised as :class:`Refuted`."""
    problem = build(body["problem"], data, exact)
    x = files.array(body["witness"]["x"])
    fits = x is not None and x.shape == problem.shape and np.all(np.isfinite(x))
    require(fits, "the point does not fit the problem, or is not finite")
    broken = _violations(problem, x)
    words = f"line 'violations' says {body['violations']}, and found: {broken or 'none'}"
    require(bool(broken) == bool(body["violations"]), words)
    files.said("feasible", not body["violations"], not broken)
    upper = _value(body, problem, x)
    statements.check_point(body, problem, x)
    null = float(middle(objective(problem, np.zeros(problem.shape))))
    files.compare("null value", files.real(body["null_value"]), null, rounded=True)
    stated, constant = files.real(body["bound"]), statements.constant_part(problem)
    files.compare("constant", files.real(body["constant"]), constant, rounded=True)
    stationary = statements.check_first_order(body, problem, x)
    share = statements.relative_gap_of(upper, stated, constant)
    files.compare("gap", files.real(body["gap"]), statements.gap_of(upper, stated))
    files.compare("relative gap", files.real(body["relative_gap"]), share)
    zero = 0.0 <= stated < math.inf and statements.exact_fit(problem, x, files.real(body["value"]))
    claim = statements.claim_of(not broken, share, zero, stationary)
    files.compare("claim", body["claim"], claim)
    found = _decided(body, problem, upper, not broken)
    if stated == -math.inf:
        weaker = body["bound_reason"] == "the bound contradicts the point"
        none = body["proof"] is not None or found == -math.inf or weaker
        require(none, f"line 'bound' says that there is none, and it is {float(found)!r}")
    words = f"line 'bound' says {stated!r}, and only {float(found)!r} is proved"
    require(stated == -math.inf or stated <= found, words)
    for line, words in (("multipliers", "fit"), ("bounds", "hold")):
        if body["witness"].get(line) is not None:
            files.said(f"{line} of the witness", words, words)
    files.said("bound D", stated, float(found))
    files.write(
        "  not compared: bound_method, bound_reason, assumptions (words), allowance (given away)"
    )
    return claim


def _value(body: dict[str, Any], problem: Problem, x: Any) -> float:
    value = objective(problem, x)
    stated, upper = files.real(body["value"]), files.real(body["upper"])
    found, most = float(middle(value)), float(high(value))
    # What the writer allowed for is not known here, but that is how far floats may be.
    error = min(upper - stated, statements.rounding(problem, x)) + float(high(value) - low(value))
    require(abs(stated - found) <= error, f"line 'value' says {stated!r}, and it is {found!r}")
    files.said("objective P", stated, found)
    require(upper >= high(value), f"line 'upper' says {upper!r}, and P may be {most!r}")
    files.said("P is at most", upper, most)
    return upper


def _violations(problem: Problem, x: Any) -> list[str]:
    """Return what keeps a point from being feasible, in words."""
    out = problem.supports.broken(problem.units_of(x))
    if problem.rows is not None:
        matrix, least, most = problem.rows
        value, reach = matrix @ x, np.abs(matrix) @ np.abs(x)
        over = np.maximum(np.maximum(value - most, least - value), 0.0)
        ends = [np.where(np.isfinite(e), np.abs(e), 0.0) for e in (least, most)]
        size = np.minimum(reach, 1.0) + np.abs(value) + np.maximum(*ends)
        rounded = (np.count_nonzero(x) + 1) * 2.0**-53 * reach
        out += ["a linear constraint does not hold"] * bool(
            np.any(over - rounded > FEASIBLE * size)
        )
    beyond = any(norm.broken(x) for norm in problem.norms)
    out += ["a norm or an eigenvalue is beyond its limit"] * beyond
    if np.any((x != 0.0) & (np.abs(x) < problem.least * (1.0 - FEASIBLE))):
        out.append("a coordinate is nearer to zero than it may be")
    largest = min(float(np.abs(x).max(initial=0.0)), 1.0)
    for side, end in ((1.0, problem.lower), (-1.0, problem.upper)):
        size = np.where(end == 0.0, largest, np.where(np.isfinite(end), np.abs(end), 0.0))
        outside = bool(np.any(side * (x - end) < -FEASIBLE * size))
        out += ["a coordinate is outside of its bounds"] * outside
    return out


def _decided(body: dict[str, Any], problem: Problem, upper: float, feasible: bool) -> Any:
    """Return the best bound that the numbers of the file prove.

    Where floats do not come to the one that is stated, rational numbers do on little data.
    """
    nodes = ((body["proof"] or {}).get("tree") or {}).get("nodes", [])
    size = sum(t.matrix.size for t in problem.terms) * problem.shape[0] * (len(nodes) + 1)
    exact = all(t.loss.piecewise for t in problem.terms) and size <= _EXACTLY
    exact = exact and not (problem.exact or problem.norms)
    try:
        found = _proved(body, problem, upper, feasible)
    except files.Refuted:
        if not exact:
            raise
        found = -math.inf
    if not exact or real(body["bound"]) <= found:
        return found
    files.write("  floats do not tell: the bound again in rational numbers")
    return max(found, _proved(body, problem.in_rationals(), upper, feasible))


def _proved(body: dict[str, Any], problem: Problem, upper: float, feasible: bool) -> Any:
    """Return the best bound that the numbers of the file prove."""
    witness, proof = body["witness"], body["proof"]
    whole, held = problem, witness.get("multipliers")
    if held is not None:
        problem = without_rows(whole, held, files.array(held["slopes"]))
    if witness["bounds"] is not None:
        problem = within(whole, problem, witness["bounds"], upper, feasible)
    taken, at = files.array(witness["extraction"]), files.array(witness["at"])
    points = [files.array(a) for a in witness["duals"]]
    tangent = taken is not None or any(a is None for a in points)
    fits = at is not None and at.shape == problem.shape and bool(np.all(np.isfinite(at)))
    if tangent and not (problem.squares and fits):
        raise files.NotChecked("a loss that is bounded by a tangent, as its conjugate is not known")
    found = [-math.inf]
    if proof is not None or not points:
        found.append(problem.supports.bound(*dual(problem, [None] * len(problem.terms))))
    if taken is not None:
        check_curvature(problem, taken, np.ones(problem.shape[0], dtype=bool))
    if tangent:
        found.append(problem.supports.bound(*dual(problem, None, at, taken)))
    elif points:
        found.append(problem.supports.bound(*dual(problem, _fitting(problem, points))))
    if proof is not None and proof["tree"] is not None:
        try:
            names = [t.loss.name for t in problem.terms]
            own = held is not None and held.get("own")
            priced = names.index("linear_term", len(whole.terms)) if own else None
            tree = _Parts(problem, proof["tree"], whole.rows, priced)
            if held is not None:  # most bounds on the coefficients hold for one choice of slopes
                tree.at = lambda y: _anywhere(witness, without_rows(whole, held, y))
            found.append(tree.bound())
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise files.Refuted(f"the tree is malformed: {error!r}.") from None
    elif proof is not None and files.real(body["bound"]) > max(found):
        raise files.NotChecked(
            f"a search without its tree: the file proves only {float(max(found))!r}"
        )
    most = real(witness["bounds"]["level"]) if _at_a_level(witness) else math.inf
    return min(max(found), most)


def _at_a_level(witness: dict[str, Any]) -> bool:
    """Return whether there are bounds on the coefficients of all points below a level."""
    return witness["bounds"] is not None and witness["bounds"].get("room") is not None


def _anywhere(witness: dict[str, Any], problem: Problem) -> Problem:
    """Return a problem with the bounds on the coefficients, where these hold whatever the slopes.

    They have been checked.
    """
    return (
        boxed(problem, files.array(witness["bounds"]["radius"]))
        if _at_a_level(witness)
        else problem
    )


class _Parts(Tree):
    """The tree of a regression, whose records hold points or dual points.

    With them may be coordinates ``balanced`` whose slopes vanish nearby, and slopes of a part's own
    for linear constraints: ``slopes`` beside a point, or the dual point of their term.
    """

    at: Callable[[Any], Problem] | None = None
    """The problem with other slopes of linear constraints, where these are in the objective."""

    def __init__(
        self,
        problem: Problem,
        tree: dict[str, Any],
        rows: Any = None,
        priced: int | None = None,
    ) -> None:
        """``rows`` are the linear constraints.

        Where parts have slopes of their own for them, ``priced`` is the term that has these.
        """
        self.priced = priced
        super().__init__(tree["nodes"], problem.supports)
        self.problem = problem
        self.stages: list[Any] = []
        said = all(isinstance(tree[name], bool) for name in ("gram", "boxed"))
        require(said, "the tree does not say how its parts were bounded")
        if tree.get("kind") != "parts":
            raise files.NotChecked(f"a proof of the kind {tree.get('kind')!r}")
        self.equations: Equations | None = None
        if any("stiffness" in stage for stage in tree["stages"]):
            own = rows is not None and priced is not None
            require(own, "a stage has equations that the problem has not")
            terms = [t for i, t in enumerate(problem.terms) if i != priced]
            self.equations = Equations(replace(problem, terms=terms), rows)
            self.stages = [self.equations.stage(stage) for stage in tree["stages"]]
            return
        for stage in tree["stages"]:
            active = files.index(stage["active"], problem.shape[0])
            taken, member = np.zeros(problem.shape[0]), ~problem.counted
            taken[active] = files.numbers(stage["delta"])
            member[active] = True
            check_curvature(problem, taken, member)
            self.stages.append((member, taken))

    def evaluate(self, record: Any, inside: Any, out: Any, facts: Any) -> Any:
        """Return what the numbers of a record prove: a base and gains."""
        problem, nobody = self.problem, np.zeros(self.count)
        if self.equations is not None:
            return self._beside_rows(self.equations, record, inside, out)
        alive, certain = ~np.append(out, False)[problem.unit], np.append(inside, True)[problem.unit]
        if record.get("enumerated") is True:
            left, k = np.flatnonzero(alive & ~certain), problem.supports.budget - int(inside.sum())
            fits: Any = problem.single and 0 <= k <= 3
            require(fits, "a part has too many supports to have been looked at")
            if left.size**k > 6 * _MOST:
                raise files.NotChecked(f"a part where all {k} of {left.size} coordinates are tried")
            return least_of_all(problem, np.flatnonzero(alive & certain), left, k), nobody
        balanced = files.index(record.get("balanced", []), problem.shape[0])
        if "at" in record:
            stage = record["stage"]
            fits = type(stage) is int and 0 <= stage < len(self.stages)
            require(fits, "a stage of the tree is not there")
            member, taken = self.stages[stage]
            if inside.sum() >= problem.supports.budget:
                alive &= member | certain  # no other one can be nonzero
            fits = np.all(member[alive])
            require(fits, "curvature was taken out for fewer coordinates than are left")
            at = np.zeros(problem.shape)
            at[files.index(record["at"], at.size)] = files.numbers(record["x"])
            at[~alive] = 0.0
            require(np.all(np.isfinite(at)), "a point of the tree is not finite")
            if "slopes" in record:
                require(self.at is not None, "a part has slopes without linear constraints")
                problem = self.at(files.numbers(record["slopes"]))  # type: ignore[misc]
            return dual(problem, None, at, taken, balanced)
        if "duals" not in record:
            return -np.inf, nobody
        points = [files.numbers(a) for a in record["duals"]]
        if self.at is not None and self.priced is not None:
            problem = self.at(points[self.priced])
        return dual(problem, _fitting(problem, points), balanced=balanced)

    def _beside_rows(self, equations: Equations, record: Any, inside: Any, out: Any) -> Any:
        """Return what a point and slopes of the linear constraints prove."""
        problem = self.problem
        if "at" not in record:
            return -np.inf, np.zeros(self.count)
        stage = record["stage"]
        fits = type(stage) is int and 0 <= stage < len(self.stages)
        require(fits, "a stage of the tree is not there")
        member = self.stages[stage][0]
        more = np.ones(equations.count - problem.shape[0], dtype=bool)
        alive = np.append(~np.append(out, False)[problem.unit], more)
        if inside.sum() >= problem.supports.budget:
            alive &= member | np.append(np.append(inside, True)[problem.unit], more)
        require(
            np.all(member[alive]), "curvature was taken out for fewer coordinates than are left"
        )
        v = np.zeros(equations.count)
        v[files.index(record["at"], v.size)] = files.numbers(record["x"])
        v[~alive] = 0.0
        require(np.all(np.isfinite(v)), "a point of the tree is not finite")
        return equations.bound(self.stages[stage], v, files.numbers(record["slopes"]), alive)


def _fitting(problem: Problem, points: list[Any]) -> list[Any]:
    """Return dual points that fit the predictions and are finite."""
    fits = [a.shape for a in points] == [(len(t.matrix), *problem.shape[1:]) for t in problem.terms]
    fits = fits and all(np.all(np.isfinite(a)) for a in points)
    require(fits, "a dual point does not fit the predictions")
    return points
