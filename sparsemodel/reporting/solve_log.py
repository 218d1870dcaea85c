"""What ``solve(verbose=True)`` writes: what was compiled, then a line for every stage."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO, final

from sparsemodel.compiler.plans.plan import Plan
from sparsemodel.driver import StageEnd
from sparsemodel.progress import clear


@final
class SolveLog:
    """Writes lines that stay."""

    def __init__(self, stream: TextIO, stages: int) -> None:
        self._stream = stream
        self._stages = stages

    def stage(self, end: StageEnd) -> None:
        """Write what a stage did."""
        self.write(f"  {describe_stage(end, of=self._stages)}")

    def write(self, text: str) -> None:
        """Write a line that stays."""
        clear()
        self._stream.write(f"{text}\n")
        self._stream.flush()


def compile_log(plan: Plan) -> str:
    """Return what the compiler saw, did and chose, in a few lines."""
    lines = [plan.words.problem]
    lines += [f"  {fact.name}: {fact.value}" for fact in plan.facts]
    lines += [f"  reduced: {text}" for text in plan.words.reductions]
    lines += [f"  on the way: {text}" for text in plan.words.adapters]
    lines.append(f"plan: {plan.outline}")
    return "\n".join(lines)


def describe_stage(end: StageEnd, *, of: int) -> str:
    """Return what a stage did in a line; ``of`` so many stages."""
    if end.skipped:
        rest = ", nor what follows" if end.number < of else ""
        return f"{end.number}. {end.label}: not needed{rest}: {end.skipped}"
    gained = "the best so far" if end.improved else "no better"
    count = f"{end.iterations} iteration{'' if end.iterations == 1 else 's'}"
    passes = f", {end.passes:.3g} passes" if end.passes else ""
    return (
        f"{end.number}. {end.label}: objective {end.value:.6g} ({gained}), "
        f"{count}{passes}, {end.seconds:.2g} s, {end.stop.value}"
    )


@contextmanager
def solve_log(verbose: bool, plan: Plan) -> Iterator[SolveLog | None]:
    """Write the compile log to standard error and give a :class:`SolveLog`; None if not wanted."""
    if not verbose or sys.stderr is None:
        yield None
        return
    log = SolveLog(sys.stderr, len(plan.stages))
    log.write(compile_log(plan))
    yield log
