"""The judgement itself: from a problem and an answer to a ruling."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, final
from weakref import WeakKeyDictionary

import numpy as np

from sparsemodel.certificates import Certificate, PrecisionCertificate
from sparsemodel.certificates.statements.claims import Claim
from sparsemodel.interfaces import DataError
from sparsemodel.modelling.expressions.objective_terms import FormTerm
from sparsemodel.modelling.problem import Problem
from sparsemodel.modelling.results.path import Path
from sparsemodel.modelling.results.solution import PathSolution, Solution
from tests.referee.constraints import violations
from tests.referee.expressions import Unjudged, Values
from tests.referee.feasible_matrices import is_about_a_graph, witnesses_of
from tests.referee.given import broken_as_given
from tests.referee.hierarchies import worth_at
from tests.referee.objective import ROOM, Worth, tolerance
from tests.referee.rules import (
    OPTIMAL,
    certificate_rules,
    solution_rules,
)
from tests.referee.search.dense import Dense, make_dense
from tests.referee.search.optimum import Candidate, Search, best_on, search
from tests.referee.search.supports import pattern_of, support_faults


class RefereeError(AssertionError):
    """An answer is not what it says; every fault is listed, with its numbers."""

    def __init__(self, what: str, faults: list[str]) -> None:
        self.faults = tuple(faults)
        super().__init__(f"{what}:\n" + "\n".join(f"- {fault}" for fault in faults))


@final
@dataclass(slots=True)
class Ruling:
    """What was judged of an answer that stood the test."""

    kind: str
    """``"solution"``, ``"path point"``, ``"certificate"`` or ``"precision certificate"``."""
    judged: list[str] = field(default_factory=list)
    """``"value"``, ``"constraints"``, ``"bound"``, ``"optimum"``, ... """
    unjudged: list[str] = field(default_factory=list)
    """What could not be judged, with the reason."""
    faults: list[str] = field(default_factory=list)
    value: float | None = None
    """The objective, as the judge has it."""
    best: float | None = None
    """The lowest objective of a feasible point that the judge met, where it looked for one."""


@final
@dataclass(frozen=True, slots=True)
class Answer:
    """What was claimed, of whichever kind."""

    values: Values
    value: float
    bounds: dict[str, float]
    # At a point of a path: the limit, or the parameter's value where there are other limits.
    k: int | None = None
    along: int | None = None
    claim: Claim | None = None
    upper: float | None = None
    allowance: float = 0.0
    stopped: bool = False


def judge(problem: Problem, answer: Any, *, effort: float = 1.0) -> Ruling:
    """Judge an answer by the problem as it was declared, without the solver's code.

    Parameters
    ----------
    problem
        The problem; its parameters have the values for which the answer was given.
    answer
        What ``solve()``, ``certify()`` or ``prove()`` returned, or a ``Path`` (every point of it
        is judged) or a choice along one.
    effort
        How many supports methods of descent try to find a better point: 1 is up to sixty.

    Returns
    -------
    Ruling
        What was judged, and what could not be.

    Raises
    ------
    RefereeError
        When something in the answer is not true; an ``AssertionError`` that lists every fault.
    """
    ruling = rule(problem, answer, effort=effort)
    if ruling.faults:
        raise RefereeError(f"The {ruling.kind} of {problem!r} is not what it says", ruling.faults)
    return ruling


def rule(problem: Problem, answer: Any, *, effort: float = 1.0) -> Ruling:
    """Return the ruling on an answer, its faults in it."""
    if isinstance(answer, Path):
        whole = Ruling("path")
        declared = None if answer.ridges is None else 1.0
        there = np.isfinite(answer.objective).reshape(answer.k.size, -1).all(axis=1)
        has_declared = answer.ridges is None or 1.0 in answer.ridges
        for at in answer.k[there].tolist() if has_declared else ():
            with answer.parameter.assuming(at) if answer.parameter is not None else nullcontext():
                one = rule(problem, answer.at(at, declared), effort=effort)
            whole.judged += one.judged
            whole.unjudged += one.unjudged
            whole.faults += [f"k = {at}: {fault}" for fault in one.faults]
        fitted = answer.objective[there]
        if np.any(np.diff(fitted, axis=0) > 1e-9 * np.abs(fitted[1:])) or there.argmax() != np.sum(
            ~there
        ):
            whole.faults.append(f"the objective rises along the path: {answer.objective.tolist()}")
        return whole
    kinds: list[tuple[type, str, Callable[[Problem, Any, Ruling], Answer]]] = [
        (Solution, "solution", _of_solution),
        (PathSolution, "path point", _of_point),
        (Certificate, "certificate", _of_certificate),
        (PrecisionCertificate, "precision certificate", _of_graph),
    ]
    for kind, name, read in kinds:
        if isinstance(answer, kind):
            ruling = Ruling(name)
            with np.errstate(all="ignore"):
                _rule(problem, answer, read, ruling, effort)
            return ruling
    terms = problem.goal.objective.terms
    if any(isinstance(t, FormTerm) for t in terms) and not is_about_a_graph(problem):
        return Ruling(type(answer).__name__, unjudged=["an answer of a form that is not built in"])
    raise TypeError(f"The referee judges no {type(answer).__name__}.")


def _rule(
    problem: Problem,
    answer: Any,
    read: Callable[[Problem, Any, Ruling], Answer],
    ruling: Ruling,
    effort: float,
) -> None:
    variables, constraints = problem.variables, problem.constraints
    try:
        claimed = read(problem, answer, ruling)
    except Unjudged as reason:
        ruling.unjudged.append(str(reason))
        return
    broken, unknown = violations(constraints, variables, claimed.values, k=claimed.k)
    ruling.unjudged += unknown
    ruling.judged.append("constraints")
    try:
        worth = worth_at(problem, claimed.values, claimed.k)
    except Unjudged as reason:
        ruling.unjudged.append(str(reason))
        worth = None
    try:
        theirs = broken_as_given(problem, claimed.values, worth)
        broken += [text for text in theirs if text.startswith("CVXPY's constraint")]
        ruling.faults += [text for text in theirs if not text.startswith("CVXPY's constraint")]
    except (ValueError, TypeError, AttributeError) as error:
        ruling.unjudged.append(f"CVXPY cannot evaluate it: {type(error).__name__}")
    if claimed.claim is not Claim.NONE:
        ruling.faults += [f"infeasible: {text}" for text in broken]
    if worth is None:
        return
    if not np.isfinite(worth.value) or not np.isfinite(worth.error):
        ruling.unjudged.append("the objective is out of the range of the judge's arithmetic")
        return
    _judge_value(claimed, worth, ruling)
    if isinstance(answer, (Certificate, PrecisionCertificate)):
        ruling.faults += certificate_rules(answer)
        ruling.judged.append("claim")
    if not broken and (claimed.claim is not Claim.NONE):
        _judge_optimum(problem, claimed, worth, ruling, effort)


def _judge_value(claimed: Answer, worth: Worth, ruling: Ruling) -> None:
    exact = float(worth.value)
    if not abs(float(worth.value - np.longdouble(claimed.value))) <= tolerance(worth):
        ruling.faults.append(f"the value says {claimed.value!r}, and it is {exact!r}")
    if claimed.upper is not None and worth.value - worth.error > np.longdouble(claimed.upper):
        ruling.faults.append(f"upper says {claimed.upper!r}, and the objective is {exact!r}")
    for name, bound in claimed.bounds.items():
        if np.longdouble(bound) > worth.value + worth.error:
            ruling.faults.append(f"{name} = {bound!r} is above the objective {exact!r}")
    ruling.judged.append("value")
    ruling.judged += ["bound"] * any(np.isfinite(b) for b in claimed.bounds.values())


# ---- reading the answers ---------------------------------------------------------------------


def _of_solution(problem: Problem, s: Solution, ruling: Ruling) -> Answer:
    if problem._solution is s and problem._solved_for != tuple(
        p.version for p in problem.parameters
    ):
        raise Unjudged("a parameter has changed since the solution")
    values = _by_label(problem, s.values)
    ruling.faults += solution_rules(s)
    ruling.faults += support_faults(problem, values, s)
    ruling.judged.append("support")
    return Answer(values, s.value, {"solution.bound": s.bound}, stopped=s.status == "stopped early")


def _of_point(problem: Problem, p: PathSolution, ruling: Ruling) -> Answer:
    values = _by_label(problem, p.values)
    if sum(c.limit_on_units is not None for c in problem.constraints) < 2:
        return Answer(values, p.value, {}, k=p.k)
    if not any(p.version < 0 for p in problem.parameters):
        raise Unjudged("a path along the number in all, beside limits on parts")
    return Answer(values, p.value, {}, along=p.k)  # the parameter has the value of the point


def _by_label(problem: Problem, values: Any) -> Values:
    if len(values) != len(problem.variables):
        raise Unjudged("two variables have one name")
    return {
        id(v): np.asarray(value, dtype=np.float64)
        for v, value in zip(problem.variables, values.values(), strict=True)
    }


def _parts(problem: Problem, x: Any) -> Values:
    """Return the variables at a point of the canonical form."""
    all_of_it = x.size == sum(v.size for v in problem.variables)
    whole = all_of_it and x.ndim == 1
    folded = any(v.symmetric for v in problem.variables)
    changes = getattr(problem.layout, "changes", None)
    if folded or (all_of_it and changes):  # the layout's coordinates
        return {id(v): p for v, p in zip(problem.variables, problem.layout.split(x), strict=True)}
    outputs = x.shape[1:]
    values, start = {}, 0
    for v in problem.variables:
        rows = 1 if not v.shape or (v.shape == outputs and len(v.shape) == 1) else v.shape[0]
        rows = v.size if whole else rows  # entry by entry
        part = x[start : start + rows]
        if part.size != v.size:
            raise Unjudged("the point is of another shape than the problem")
        values[id(v)] = np.asarray(part, dtype=np.float64).reshape(v.shape)
        start += rows
    if start != len(x):
        raise Unjudged("the point is of another shape than the problem")
    return values


def _of_certificate(problem: Problem, c: Certificate, ruling: Ruling) -> Answer:
    if problem._declared.reading.fewest is not None:
        raise Unjudged("a certificate that fewer nonzeros will not do: judged where it was made")
    return Answer(
        _parts(problem, c.x),
        c.value,
        {"certificate.bound": c.bound},
        claim=c.claim,
        upper=c.upper,
        allowance=c.allowance,
    )


def _of_graph(problem: Problem, c: PrecisionCertificate, ruling: Ruling) -> Answer:
    if problem._solution is None:
        raise Unjudged("a graph's certificate without a solution")
    values = _by_label(problem, problem._solution.values)
    if pattern_of(values) != set(c.pairs):
        raise Unjudged("a graph's certificate of another matrix than the last solution")
    return Answer(values, c.value, {"certificate.bound": c.bound}, claim=c.claim, upper=c.upper)


# ---- the optimum -----------------------------------------------------------------------------


_searches: WeakKeyDictionary[Problem, dict[Any, tuple[Dense, Search]]] = WeakKeyDictionary()
"""What was found for each problem: many answers are about the same one."""


def _searched(problem: Problem, claimed: Answer, effort: float) -> tuple[Dense, Search]:
    key = (tuple(p.version for p in problem.parameters), claimed.k, claimed.along, effort)
    kept = _searches.setdefault(problem, {})
    if key not in kept:
        objective = problem.goal.objective
        dense = make_dense(objective, problem.constraints, problem.variables, claimed.k)
        kept[key] = dense, search(dense, objective, effort=effort)
    return kept[key]


def _judge_optimum(
    problem: Problem, claimed: Answer, worth: Worth, ruling: Ruling, effort: float
) -> None:
    ruling.value = float(worth.value)
    told = any(np.isfinite(bound) for bound in claimed.bounds.values())
    if not told and claimed.claim in (None, Claim.WITHIN_GAP) and effort < 1.0:
        return  # nothing is claimed that a better point could refute
    points: list[tuple[Values, Candidate | None]] = []
    try:
        if is_about_a_graph(problem):
            points += [(v, None) for v in witnesses_of(problem, claimed.k)]
            complete, own, empty = False, None, None
        else:
            dense, found = _searched(problem, claimed, effort)
            points += [(dense.values(c.z), c) for c in found.candidates]
            complete, empty = found.complete, found.empty
            own = best_on(dense, dense.coordinates(claimed.values))
    except Unjudged as reason:
        ruling.unjudged.append(f"optimum: {reason}")
        return
    except (DataError, np.linalg.LinAlgError, FloatingPointError, OverflowError) as error:
        ruling.unjudged.append(f"optimum: {type(error).__name__} in the judge's own search")
        return
    for values, candidate in points:
        _compare(problem, claimed, worth, ruling, values, candidate)
        if ruling.faults:
            break
    if own is not None and empty is not None and claimed.claim is Claim.STATIONARY:
        _judge_stationary(problem, claimed, worth, ruling, dense, own, empty)
    if points:
        ruling.judged.append("every support" if complete else "some supports")


def _at(problem: Problem, values: Values, k: int | None) -> Worth | None:
    """Return the objective at a point of the judge's, None unless it is feasible."""
    slack = 1e-3  # well inside what is allowed to the answer
    broken, unknown = violations(problem.constraints, problem.variables, values, k=k, slack=slack)
    if broken or unknown:
        return None
    worth = worth_at(problem, values, k)
    return worth if np.isfinite(worth.value) and np.isfinite(worth.error) else None


def _compare(
    problem: Problem,
    claimed: Answer,
    worth: Worth,
    ruling: Ruling,
    values: Values,
    candidate: Candidate | None,
) -> None:
    """Compare what was claimed with a point of the judge's own."""
    found = _at(problem, values, claimed.k)
    if found is None:
        return
    best = min(float(found.value), float(worth.value))
    ruling.best = best if ruling.best is None else min(best, ruling.best)
    exact = None if candidate is None else candidate.exact
    lowest, margin = found.value, found.error
    if _is_loose(problem):
        margin = margin + 1e-8 * max(abs(float(lowest)), abs(float(worth.value)))
    if exact is not None and float(exact) <= lowest:
        lowest = np.longdouble(float(exact))
        margin = np.abs(lowest) * 2.0**-52
    for name, bound in claimed.bounds.items():
        if np.longdouble(bound) > lowest + margin:
            how = "a feasible point has" if exact is None else "the optimum, in rationals, is"
            ruling.faults.append(
                f"{name} = {bound!r}, and {how} {float(lowest)!r} (+- {float(margin):.1g})"
            )
    if claimed.claim is Claim.OPTIMAL:
        size = max(abs(float(worth.value)), abs(claimed.bounds.get("certificate.bound", 0.0)))
        room = 2.0 * OPTIMAL * size + 4.0 * claimed.allowance + ROOM * worth.rounding
        if float(worth.value - lowest) > room + float(margin):
            ruling.faults.append(
                f'"globally optimal" at {float(worth.value)!r}, and a feasible point has '
                f"{float(lowest)!r}"
            )


def _is_loose(problem: Problem) -> bool:
    """Return whether points of the judge keep some constraint up to rounding only."""
    names = {type(c).__name__ for c in problem.constraints}
    return bool(names & {"LinearConstraint", "NormConstraint"})


def _judge_stationary(
    problem: Problem,
    claimed: Answer,
    worth: Worth,
    ruling: Ruling,
    dense: Dense,
    own: Candidate,
    empty: Candidate,
) -> None:
    """Compare with the best point on the same support: by shares of what the support explains."""
    better = _at(problem, dense.values(own.z), claimed.k)
    nothing = _at(problem, dense.values(empty.z), claimed.k)
    if better is None or nothing is None:
        return
    explained = max(float(nothing.value - better.value), 0.0)
    lost = float(worth.value - better.value)
    if lost > _STATIONARY * explained + ROOM * worth.rounding + float(worth.error):
        ruling.faults.append(
            f'"stationary" at {float(worth.value)!r}, and a point on the same support has '
            f"{float(better.value)!r}"
        )


_STATIONARY = 1e-3
"""Share of what a support explains that a stationary point may leave on it."""
