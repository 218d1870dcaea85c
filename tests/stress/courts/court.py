"""Ask the library, and have every answer judged by the referee."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

import sparsemodel as sm
from sparsemodel.certificates import verify
from sparsemodel.modelling.problem import Problem
from tests.referee import RefereeError, Ruling, rule
from tests.referee.constraints import violations
from tests.referee.expressions import Values
from tests.referee.objective import Worth, objective_at, tolerance

LATE, SLACK = 1.1, 0.3
"""A run may take so many times its time limit, and so many seconds more."""

_SAME = 1e-8
"""Relative difference of two evaluations in double precision."""


def plain(text: str) -> str:
    """Return a message without its numbers, so that equal reasons are counted together."""
    short = re.sub(r"[-+]?\d[\d.]*(e[-+]?\d+)?", "#", " ".join(text.split()))
    return short[:160]


def place_of(error: BaseException) -> str:
    """Return where an error was raised, in a few characters."""
    at = error.__traceback__
    if at is None:
        return ""
    while at.tb_next is not None:
        at = at.tb_next
    code = at.tb_frame.f_code
    return f" [{code.co_filename.rpartition('/')[2]}:{at.tb_lineno} {code.co_name}]"


@final
@dataclass(slots=True)
class Court:
    """What was asked in one random problem, what was judged, and what was wrong."""

    rng: np.random.Generator
    faults: list[str] = field(default_factory=list)
    judged: Counter[str] = field(default_factory=Counter)
    refusals: list[str] = field(default_factory=list)
    bounded: bool = False
    compared: int = 0
    """Answers that were compared with points which the referee found itself."""
    worse: list[float] = field(default_factory=list)
    """Of the judged answers: by which share of its objective a better point is known."""
    kept: list[tuple[Any, Any]] = field(default_factory=list)
    """Arrays of the caller, with what was in them."""

    def ask(
        self,
        what: str,
        call: Callable[[], Any],
        problem: Problem | None = None,
        *,
        time_limit: float | None = None,
    ) -> Any:
        """Return the answer of a call, None where the library refuses or fails.

        With a problem the answer is judged; a time limit is judged by the time of the processor,
        which other programs do not use up.
        """
        began = time.process_time()
        try:
            answer = call()
        except sm.SparseModelError as error:
            self.refusals.append(f"{what}: {type(error).__name__}: {plain(str(error))}")
            if len(str(error)) < 20:
                self.faults.append(f"an error that explains nothing: {what}: {error}")
            if isinstance(error, sm.BackendContractError):
                self.faults.append(f"broken contract: {plain(str(error))}")
            return None
        except RefereeError as error:  # where a watch is kept as well
            self.faults += [f"{_kind(fault)}: {what}: {fault}" for fault in error.faults]
            return None
        except (Exception, SystemExit) as error:  # noqa: BLE001 - what is being looked for
            told = f"{type(error).__name__}: {plain(str(error))}"
            self.faults.append(f"crash: {what}: {told}{place_of(error)}")
            return None
        spent = time.process_time() - began
        if time_limit is not None and spent > LATE * time_limit + SLACK:
            self.faults.append(f"late: {what} took {spent:.2f} s of {time_limit:g} s")
        if problem is not None:
            self.hear(what, rule(problem, answer))
        return answer

    def hear(self, what: str, ruling: Ruling) -> None:
        """Count a ruling and its faults, by what they are about."""
        self.judged[ruling.kind] += 1
        self.bounded = self.bounded or "bound" in ruling.judged
        self.compared += "every support" in ruling.judged or "some supports" in ruling.judged
        if ruling.best is not None and ruling.value is not None:
            size = max(abs(ruling.best), 1e-300)
            self.worse.append(max(0.0, (ruling.value - ruling.best) / size))
        for fault in ruling.faults:
            self.faults.append(f"{_kind(fault)}: {what}: {fault}")

    def keep(self, arrays: Iterable[Any]) -> None:
        """Remember what is in some arrays, which nothing may change."""
        self.kept += [(array, _content(array)) for array in arrays]

    def answers(
        self,
        problem: Problem,
        *,
        backend: str | None,
        start: Any = None,
        time_limit: float | None = None,
    ) -> bool:
        """Solve, certify, and verify the certificate's file; return whether there is a solution."""
        solution = self.ask(
            "solve",
            lambda: problem.solve(backend, start=start, time_limit=time_limit),
            problem,
        )
        if solution is None:
            return False
        certificate = self.ask("certify", lambda: problem.certify(time_limit=time_limit), problem)
        if certificate is not None:
            if not (str(solution) and repr(solution) and str(certificate)):
                self.faults.append("cannot be printed")
            self.ask("verify", lambda: self._verify(problem, certificate))
        return True

    def _verify(self, problem: Problem, certificate: Any) -> None:
        try:
            verify(type(certificate).from_json(certificate.to_json()), problem.form)
        except sm.CertificateError as error:
            self.faults.append(f"its own certificate does not verify: {plain(str(error))}")

    def same_as_declared(self, problem: Problem, exact: Any) -> None:
        """Compare the objective of the arrays with that of what was declared of them."""
        worth = _worth(problem)
        if not abs(float(exact - worth.value)) <= tolerance(worth) and np.isfinite(worth.error):
            self.faults.append(
                f"wrong value: declared {float(worth.value)!r}, the arrays say {float(exact)!r}"
            )

    def no_worse_than(self, problem: Problem, first: Values) -> None:
        """Compare the solution with the point where it began."""
        if violations(problem.constraints, problem.variables, first)[0]:
            return
        began = _worth(problem, first)
        worth = _worth(problem)
        room = tolerance(worth) + tolerance(began) + _SAME * abs(float(began.value))
        if float(worth.value - began.value) > room:
            self.faults.append(
                f"worse than its start: {float(worth.value)!r}, began at {float(began.value)!r}"
            )

    def close(self) -> None:
        """Look at the arrays of the caller once more."""
        if any(_content(array) != before for array, before in self.kept):
            self.faults.append("changed an array of the caller")


def _worth(problem: Problem, values: Values | None = None) -> Worth:
    """Return the objective at ``values``, without them at those of the variables."""
    if values is None:
        values = {id(v): np.asarray(v.value) for v in problem.variables}
    return objective_at(problem.goal.objective, problem.variables, values)


def _content(array: Any) -> tuple[bytes, str, tuple[int, ...]]:
    return array.tobytes(), array.dtype.str, array.shape


def _kind(fault: str) -> str:
    """Return under which name a fault of the referee is counted."""
    if fault.startswith("infeasible") or ": infeasible" in fault:
        return "dropped constraint"
    if "bound = " in fault:
        return "invalid bound"
    if fault.startswith('"'):
        return "false claim"
    words = {
        "the value says": "wrong value",
        "in CVXPY's words": "wrong value",
        "upper says": "invalid upper",
        "the support says": "wrong support",
    }
    return next((kind for told, kind in words.items() if told in fault), "wrong statement")
