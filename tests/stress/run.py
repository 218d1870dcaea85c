"""Many random problems in a few processes, with a limit on the time of each."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any, TextIO, final

import numpy as np

from sparsemodel.certificates.precision_matrices.proving import ascent_compiled
from sparsemodel.interfaces import MissingDependencyError, ModelError
from tests.stress.courts.judging import AnyRecipe, Verdict, judge
from tests.stress.posing.declared import declared_recipe
from tests.stress.posing.precision import random_precision_recipe
from tests.stress.posing.recipe import random_recipe

KINDS = (
    "crash",
    "hang",
    "late",
    "invalid bound",
    "false claim",
    "dropped constraint",
    "forgery accepted",
    "proof below certificate",
    "refused path",
    "wrong statement",
    "invalid upper",
    "worse than its start",
    "above a law",
    "feasible problem refused",
    "wrong value",
    "wrong support",
    "warning",
    "changed",
    "broken contract",
    "its own certificate does not verify",
    "cannot be printed",
    "an error that explains nothing",
)
"""Everything that must not happen, in the order of the report."""


_PATIENCE = 10.0
"""How many times its limit a process may take by the clock, on a machine that is busy."""

_PRECISION = 8
"""One problem in so many is about a precision matrix."""

LIMIT = 30.0
"""Seconds that count as a hang."""


_DECLARED = 4
"""One problem in so many is one of the language alone."""


def recipe_number(
    index: int, seed: int, *, small: bool = False, declared: bool | None = False
) -> AnyRecipe:
    """Return recipe ``index`` of the run with a seed, whichever process asks for it.

    ``declared`` says whether a quarter of the problems exist in the language alone (see
    :mod:`tests.stress.posing.declared`); None takes nothing else.
    """
    rng = np.random.default_rng([seed, index])
    if declared is None:
        return declared_recipe(index, rng)
    if declared and index % _DECLARED == 1:
        return declared_recipe(index // _DECLARED, rng)
    if index % _PRECISION == _PRECISION - 1:
        return random_precision_recipe(rng)
    return random_recipe(rng, small=small)


@final
@dataclass(frozen=True, slots=True)
class Series:
    """Where the recipes of a run come from."""

    seed: int
    small: bool
    declared: bool | None = False

    def recipe(self, number: int) -> AnyRecipe:
        """Return the recipe with a number."""
        return recipe_number(number, self.seed, small=self.small, declared=self.declared)


@final
@dataclass(slots=True)
class Kind:
    """The counts of one loss, of precision matrices, or of a kind of declarations."""

    tried: int = 0
    judged: int = 0
    worse: int = 0
    """Answers that are worse by a thousandth than a point that the judge found."""
    solved: int = 0
    refused: int = 0
    faulty: int = 0
    seconds: float = 0.0


@final
@dataclass(slots=True)
class Tally:
    """The counts of a run."""

    tried: int = 0
    solved: int = 0
    bounded: int = 0
    compared: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    kinds: dict[str, Kind] = field(default_factory=dict)
    interrupted: bool = False
    """Whether Ctrl-C ended the run: what was counted until then stands."""

    def add(self, number: int, verdict: Verdict) -> None:
        """Count a verdict."""
        self.tried += 1
        self.solved += verdict.outcome == "solved"
        self.bounded += verdict.bounded
        self.compared += verdict.compared
        self.seconds.append(verdict.seconds)
        one = self.kinds.setdefault(verdict.recipe.loss, Kind())
        one.tried += 1
        one.judged += verdict.judged
        one.worse += sum(share > 1e-3 for share in verdict.worse)
        one.solved += verdict.outcome == "solved"
        one.refused += verdict.outcome == "refused"
        one.faulty += bool(verdict.faults)
        one.seconds += verdict.seconds
        if verdict.outcome == "refused":
            self.refusals[verdict.reason] += 1
        for kind in {next((k for k in KINDS if f.startswith(k)), f) for f in verdict.faults}:
            self.faults[kind] += 1
        for fault in verdict.faults:
            kind = next((k for k in KINDS if fault.startswith(k)), fault)
            told = self.examples.setdefault(kind, [])
            told.append(f"problem {number}: {fault}\n      {verdict.recipe}")

    def report(self, out: TextIO, *, examples: int = 5, refusals: int = 40) -> None:
        """Write the counts, and of each fault the first few."""
        refused = sum(self.refusals.values())
        spent = sorted(self.seconds) or [0.0]
        lines = [
            f"problems tried      {self.tried}",
            f"solved              {self.solved}",
            f"refused             {refused}",
            f"with a finite bound {self.bounded}",
            f"answers compared    {self.compared}, with points that the referee found",
            f"seconds a problem   median {spent[len(spent) // 2]:.3g}, largest {spent[-1]:.3g}",
            *(f"{kind:<36} {self.faults.get(kind, 0)}" for kind in KINDS),
            "",
            f"{'':22}{'tried':>8}{'solved':>8}{'refused':>8}{'judged':>8}{'worse':>8}{'faulty':>8}",
            *(
                f"{name:22}{one.tried:8d}{one.solved:8d}{one.refused:8d}{one.judged:8d}"
                f"{one.worse:8d}{one.faulty:8d}{1e3 * one.seconds / one.tried:9.0f} ms"
                for name, one in sorted(self.kinds.items())
            ),
            "",
            "refused, by reason:",
            *(f"{count:7d}  {why}" for why, count in self.refusals.most_common(refusals)),
        ]
        if len(self.refusals) > refusals:
            lines.append(f"         and {len(self.refusals) - refusals} reasons more")
        for kind, told in sorted(self.examples.items()):
            lines += ["", f"{kind}: {self.faults[kind]}", *(f"  {one}" for one in told[:examples])]
        out.write("\n".join(lines) + "\n")


def run_stress(
    problems: int,
    *,
    seed: int = 0,
    jobs: int = 1,
    limit: float | None = None,
    first: int = 0,
    small: bool = False,
    declared: bool | None = False,
    told: Callable[[int, Verdict], None] | None = None,
) -> Tally:
    """Judge problems ``first`` to ``first + problems - 1`` of a seed.

    Parameters
    ----------
    problems, seed, first, small, declared
        Which problems (see :func:`recipe_number`): the same whatever ``jobs`` is.
    jobs
        Processes.
    limit
        Seconds of its own time after which a process is ended and its problem counted as a hang
        (ten times as many by the clock, on a busy machine); the run goes on.
        None, which needs ``jobs=1``, runs everything in this process, where nothing ends a hang.
    told
        Called with every number and verdict as they come.
    """
    if limit is None and jobs > 1:
        raise ModelError("Several processes need a limit; give limit=30, in seconds.")
    tally = Tally()
    numbers = range(first, first + problems)
    made = Series(seed, small, declared)
    verdicts = _alone(numbers, made) if limit is None else _together(numbers, made, jobs, limit)
    try:
        for number, verdict in verdicts:
            tally.add(number, verdict)
            if told is not None:
                told(number, verdict)
    except KeyboardInterrupt:
        tally.interrupted = True
    return tally


def _alone(numbers: range, series: Series) -> Iterator[tuple[int, Verdict]]:
    _compile()
    for number in numbers:
        yield number, judge(series.recipe(number))


def _work(connection: Connection, series: Series, limit: float) -> None:
    """Judge what comes, until there is nothing more; the system ends what takes too long."""
    _compile()
    while True:
        number = connection.recv()
        if number is None:
            return
        _alarm(limit)
        verdict = judge(series.recipe(number))
        _alarm(0.0)
        connection.send(verdict)


def _compile() -> None:
    """Do what a process does once: compile what searches call, which time limits do not count."""
    with suppress(MissingDependencyError):
        from sparsemodel.certificates.dual_bounds.coefficient_bounds import rows_compiled
        from sparsemodel.certificates.proving.gram.kernels import node_compiled

        node_compiled.compiling()
        rows_compiled.compiling()
        ascent_compiled.compiling()
    with suppress(ImportError):
        import_module("cvxpy")  # which draws from NumPy's random numbers, once


def _alarm(seconds: float) -> None:
    """End this process after so many seconds of its own time, whatever it is in; 0 is never."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


@final
@dataclass(slots=True)
class _Worker:
    process: Any
    connection: Any
    number: int = -1
    since: float = 0.0


def _together(
    numbers: range, series: Series, jobs: int, limit: float
) -> Iterator[tuple[int, Verdict]]:
    todo = iter(numbers)
    workers = [_hired(series, limit) for _ in range(jobs)]
    try:
        for worker in workers:
            _hand(worker, todo)
        while busy := [w for w in workers if w.number >= 0]:
            ready = wait([w.connection for w in busy], timeout=min(1.0, limit))
            for worker in busy:
                number, elapsed = worker.number, time.monotonic() - worker.since
                if worker.connection in ready:
                    try:
                        verdict = worker.connection.recv()
                    except (EOFError, OSError):  # the process is gone: a fault, out of memory
                        verdict = _lost(number, series, _end(worker, limit), elapsed)
                        _replace(worker, series, limit)
                elif elapsed > _PATIENCE * limit:
                    verdict = _lost(number, series, f"hang: more than {limit:g} s", elapsed)
                    _replace(worker, series, limit)
                else:
                    continue
                _hand(worker, todo)
                yield number, verdict
    finally:
        for worker in workers:
            _dismiss(worker)


def _end(worker: _Worker, limit: float) -> str:
    """Return why a process that is gone is gone."""
    worker.process.join(timeout=10.0)
    code = worker.process.exitcode
    if code is not None and code == -getattr(signal, "SIGPROF", 0) != 0:
        return f"hang: more than {limit:g} s"
    return f"crash: the process ended with {code}"


def _hired(series: Series, limit: float) -> _Worker:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, series, limit), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours)


def _hand(worker: _Worker, todo: Iterator[int]) -> None:
    """Give a worker its next problem, or send it home."""
    number = next(todo, None)
    worker.number = -1 if number is None else number
    worker.since = time.monotonic()
    worker.connection.send(number)


def _replace(worker: _Worker, series: Series, limit: float) -> None:
    _dismiss(worker)
    fresh = _hired(series, limit)
    worker.process, worker.connection = fresh.process, fresh.connection


def _dismiss(worker: _Worker) -> None:
    if worker.number >= 0:
        worker.process.kill()
    worker.process.join(timeout=10.0)
    with suppress(OSError):
        worker.connection.close()


def _lost(number: int, series: Series, fault: str, seconds: float) -> Verdict:
    return Verdict(series.recipe(number), "crashed", fault, (fault,), seconds)
