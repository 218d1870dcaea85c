"""Ask the library, and have every answer judged by the referee."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

import sparsemodel as sm
from sparsemodel.modelling.problem import Problem
from sparsemodel.testing.referee import RefereeError, Ruling, rule

LATE, SLACK = 1.1, 0.3
"""A run may take so many times its time limit, and so many seconds more."""


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
    worse: list[float] = field(default_factory=list)
    """Of the judged answers: by which share of its objective a better point is known."""

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
            if isinstance(error, sm.BackendContractError):
                self.faults.append(f"broken contract: {plain(str(error))}")
            return None
        except RefereeError as error:  # where a watch is kept as well
            self.faults += [f"{_kind(fault)}: {what}: {fault}" for fault in error.faults]
            return None
        except Exception as error:  # noqa: BLE001 - what is being looked for
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
        if ruling.best is not None and ruling.value is not None:
            size = max(abs(ruling.best), 1e-300)
            self.worse.append(max(0.0, (ruling.value - ruling.best) / size))
        for fault in ruling.faults:
            self.faults.append(f"{_kind(fault)}: {what}: {fault}")


def referee_faults(problem: Problem, *answers: Any) -> list[str]:
    """Return what the referee finds wrong with some answers to one problem."""
    found = []
    for answer in answers:
        ruling = rule(problem, answer)
        found += [f"{_kind(fault)}: {ruling.kind}: {fault}" for fault in ruling.faults]
    return found


def _kind(fault: str) -> str:
    """Return under which name a fault of the referee is counted."""
    if fault.startswith("infeasible") or ": infeasible" in fault:
        return "dropped constraint"
    if "bound = " in fault:
        return "invalid bound"
    if fault.startswith('"'):
        return "false claim"
    told = "the value says" in fault or "in CVXPY's words" in fault
    return "wrong value" if told else "wrong statement"
