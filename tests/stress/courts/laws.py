"""Laws that tell of a search without knowing the optimum: the same problem, declared otherwise.

What is solved is a value that can be changed (:class:`~tests.stress.posing.linked.Linked`). The
answer to a changed problem is a point, and where that is feasible for the problem itself, the
problem's own answer may not be above it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

import sparsemodel as sm
from sparsemodel.interfaces import FloatArray
from tests.stress.courts.court import Court, plain

if TYPE_CHECKING:
    from tests.stress.posing.linked import Linked

ABOVE = 0.01
"""Share of an objective that an answer may be above another one."""

_EXACT = 1e-6
"""The same of the mean size of the target, for models that fit."""

_LAWS = 3
"""Laws that a problem is asked for, drawn at random: each is a solve."""

_ENUMERATED = 40
"""Supports up to which all are compared."""

_PROVED, _PROOF = 0.15, 5.0
"""Share of the problems that are proved, and seconds for each."""


def keep_laws(court: Court, posed: Linked) -> None:
    """Solve a problem and some that differ from it, and count laws that are broken as faults."""
    problem = court.ask("declare", posed.problem)
    if problem is None:
        return
    if court.ask("solve", problem.solve, problem) is None:
        court.faults.append(f"feasible problem refused: {court.refusals[-1]} ({posed})")
        return
    answer = _Answer(court, posed, problem)
    for law, value in answer.known():
        answer.compare(law, value)


@final
class _Answer:
    """The answer to a problem, which others are compared with."""

    def __init__(self, court: Court, posed: Linked, problem: sm.Problem) -> None:
        self._court, self._posed, self._problem = court, posed, problem
        self._value: float = problem.solution.value
        x = problem.variables[0].value
        if not posed.keeps(x):
            court.faults.append(f"dropped constraint: solve: not all of {posed} holds")

    def compare(self, law: str, other: float, mine: float | None = None) -> None:
        """Count the value of a feasible point that is below that of the answer."""
        if not math.isfinite(other):
            return
        mine = self._value if mine is None else mine
        self._court.compared += 1
        floor = _EXACT * float(np.mean(np.abs(self._posed.y)))
        share = (mine - other) / max(abs(other), floor, 1e-300)
        self._court.worse.append(max(share, 0.0))
        if share > ABOVE and mine - other > floor:
            self._court.faults.append(
                f"above a law: {law}: {mine:.6g}, and {other:.6g} is known ({self._posed})"
            )

    def known(self) -> Iterator[tuple[str, float]]:
        """Yield laws and values of feasible points, those that cost little first."""
        posed, rng = self._posed, self._court.rng
        yield "CVXPY on the planted support", self._on(posed.planted)
        laws: dict[str, Callable[[], float]] = {
            "a constraint less": lambda: self._solved(posed.without_one(rng)),
            "a limit that does not bind": lambda: self._solved(posed.with_idle_limit()),
            "a permutation": self._permuted,
            "other units": self._in_other_units,
            "a row twice": self._repeated,
            "a ridge of 1e-9": lambda: self._solved(replace(posed, ridge=posed.ridge + 1e-9)),
            "a smaller k": self._with_fewer,
            "a start": lambda: self._solved(posed, start=posed.truth),
        }
        names = list(laws)
        for place in rng.permutation(len(names))[:_LAWS]:
            yield names[place], laws[names[place]]()
        if math.comb(posed.units, posed.k) <= _ENUMERATED:
            supports = itertools.combinations(range(posed.units), posed.k)
            each = (posed.coordinates(np.array(units)) for units in supports)
            yield "all supports", min(self._on(s) for s in each if posed.counts(s))
        if rng.random() < _PROVED:
            yield "a proof", self._proved()

    def _on(self, support: Any) -> float:
        """Return the optimum on a support by CVXPY, infinite where there is none."""
        try:
            value = self._problem.restricted(support).solve()
        except Exception:  # noqa: BLE001 - a reference that fails is none
            return math.inf
        return math.inf if value is None else float(value)

    def _point(self, other: Linked | None, start: Any = None) -> FloatArray | None:
        """Return what solves another problem, which has a feasible point; None where none is."""
        if other is None:
            return None
        made = other.problem()
        try:
            made.solve(start=start)
        except sm.SparseModelError as error:
            told = f"{type(error).__name__}: {plain(str(error))}"
            self._court.faults.append(f"feasible problem refused: solve: {told} ({other})")
            return None
        x: FloatArray = made.variables[0].value
        return x

    def _worth(self, x: FloatArray | None) -> float:
        """Return the objective at a point, infinite where that is not feasible."""
        feasible = x is not None and self._posed.keeps(x)
        return self._posed.objective(x) if x is not None and feasible else math.inf

    def _solved(self, other: Linked | None, start: Any = None) -> float:
        return self._worth(self._point(other, start))

    def _permuted(self) -> float:
        order = self._court.rng.permutation(self._posed.truth.size)
        found = self._point(self._posed.permuted(order))
        return math.inf if found is None else self._worth(found[np.argsort(order)])

    def _in_other_units(self) -> float:
        if self._posed.ridge:
            return math.inf  # which would be another ridge
        units = np.exp2(self._court.rng.integers(-6, 7, self._posed.truth.size).astype(np.float64))
        found = self._point(self._posed.scaled(units))
        return math.inf if found is None else self._worth(found * units)

    def _with_fewer(self) -> float:
        fewer = replace(self._posed, k=max(self._posed.k - 1, 1)).problem()
        try:
            fewer.solve()
        except sm.SparseModelError:  # it need not be feasible
            return math.inf
        return self._worth(fewer.variables[0].value)

    def _repeated(self) -> float:
        """Compare a weight of two with a row that is there twice; their means are of others."""
        posed, n = self._posed, self._posed.y.size
        row = int(self._court.rng.integers(n))
        heavy = replace(posed, weights=np.where(np.arange(n) == row, 2.0, 1.0))
        mine = self._point(heavy)
        twice = self._point(replace(posed.repeated(row), ridge=posed.ridge * n / (n + 1)))
        if mine is not None and twice is not None and posed.keeps(twice):
            self.compare("a row twice", heavy.objective(twice), heavy.objective(mine))
        return math.inf

    def _proved(self) -> float:
        made = self._posed.problem()
        try:
            return float(made.prove(time_limit=_PROOF).value)
        except sm.SparseModelError:
            return math.inf
