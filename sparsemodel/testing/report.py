"""What a conformance suite returns: every check with how it ended, and nothing skipped silently."""

from __future__ import annotations

import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from typing import NoReturn, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike


class CheckFailure(AssertionError):
    """A law of the suite does not hold; the message says which, with the numbers."""


class Refusal(Exception):
    """A check does not apply because its subject objects to the problem; carries the reasons."""


@final
class Outcome(Enum):
    """How one check ended."""

    PASSED = "passed"
    REFUSED = "refused"
    """Not executed: the subject objects to the problem, with a reason."""
    FAILED = "failed"
    EXPECTED_FAILURE = "expected failure"
    UNEXPECTED_PASS = "unexpected pass"
    """Listed among the expected failures, and passed: the list is out of date."""


@final
@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check of one subject."""

    name: str
    """``"check"`` or ``"check[problem]"``."""
    outcome: Outcome
    detail: str = ""
    """The failure's message or the reasons of the refusal."""
    seconds: float = 0.0


@final
@dataclass(frozen=True, slots=True)
class Report:
    """All checks of one subject.

    Examples
    --------
    >>> report = run_checks("addition", [("commutes", lambda: check(1 + 2 == 2 + 1, "it does"))])
    >>> print(report.summary())
    addition: 1 executed, 0 refused, 0 failed, 0 expected failures
    >>> report.ok
    True
    """

    subject: str
    results: tuple[CheckResult, ...]

    def count(self, *outcomes: Outcome) -> int:
        """Return how many checks ended in one of ``outcomes``."""
        tally = Counter(result.outcome for result in self.results)
        return sum(tally[outcome] for outcome in outcomes)

    @property
    def executed(self) -> int:
        """Return how many checks were run to an end, good or bad."""
        return len(self.results) - self.refused

    @property
    def refused(self) -> int:
        """Return how many checks the subject objected to."""
        return self.count(Outcome.REFUSED)

    @property
    def failures(self) -> tuple[CheckResult, ...]:
        """Return the failed checks and the expected failures that passed."""
        bad = (Outcome.FAILED, Outcome.UNEXPECTED_PASS)
        return tuple(result for result in self.results if result.outcome in bad)

    @property
    def ok(self) -> bool:
        """Return whether something was executed and nothing failed."""
        return self.executed > 0 and not self.failures

    def summary(self) -> str:
        """Return the counts in one line."""
        return (
            f"{self.subject}: {self.executed} executed, {self.refused} refused, "
            f"{len(self.failures)} failed, "
            f"{self.count(Outcome.EXPECTED_FAILURE)} expected failures"
        )

    def __str__(self) -> str:
        lines = [self.summary()]
        lines += [f"  {r.outcome.value}: {r.name}: {r.detail}" for r in self.failures]
        return "\n".join(lines)

    def raise_if_failed(self) -> None:
        """Raise :class:`CheckFailure` with every failure, or when nothing was executed."""
        if not self.ok:
            nothing = "" if self.executed else "\n  no check was executed"
            raise CheckFailure(f"{self}{nothing}")


NamedCheck: TypeAlias = tuple[str, Callable[[], None]]
"""A name and what to run; it raises :class:`CheckFailure` or :class:`Refusal`."""


def run_checks(
    subject: str,
    checks: Iterable[NamedCheck],
    *,
    expected_failures: Mapping[str, str] | None = None,
) -> Report:
    """Run ``checks`` one after the other and return what happened.

    Parameters
    ----------
    subject
        What is checked, for the report.
    checks
        Names with functions of no argument. Any exception is a failure, except
        :class:`Refusal`.
    expected_failures
        Reasons by name of a check; the name may be a pattern (``"equivariant*"``). Strict: a
        listed check that passes, and a pattern that matches no check, are failures.
    """
    listed = dict(expected_failures or {})
    unused = set(listed)
    results = []
    for name, run in checks:
        # Not fnmatch: the brackets of "check[problem]" are no character class here.
        patterns = [key for key in listed if fnmatchcase(name, key.replace("[", "[[]"))]
        unused.difference_update(patterns)
        results.append(_run(name, run, listed[patterns[0]] if patterns else None))
    results += [
        CheckResult(key, Outcome.UNEXPECTED_PASS, "listed as an expected failure, matches no check")
        for key in sorted(unused)
    ]
    return Report(subject, tuple(results))


def quietly(function: Callable[..., None], *arguments: object) -> Callable[[], None]:
    """Return what calls a check; a warning is a failure."""

    def run() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            function(*arguments)

    return run


def _run(name: str, run: Callable[[], None], expected: str | None) -> CheckResult:
    began = time.perf_counter()
    detail = ""
    try:
        run()
    except Refusal as refusal:
        outcome, detail = Outcome.REFUSED, str(refusal)
    except CheckFailure as failure:
        outcome, detail = Outcome.FAILED, str(failure)
    except Exception as error:  # noqa: BLE001 - a subject may raise anything; that is the finding
        outcome, detail = Outcome.FAILED, _where(error)
    else:
        outcome = Outcome.PASSED
    if expected is not None and outcome is Outcome.FAILED:
        outcome, detail = Outcome.EXPECTED_FAILURE, f"{expected} ({detail})"
    elif expected is not None and outcome is Outcome.PASSED:
        outcome, detail = Outcome.UNEXPECTED_PASS, f"expected to fail because {expected}"
    return CheckResult(name, outcome, detail, time.perf_counter() - began)


def _where(error: Exception) -> str:
    """Return the error with the innermost line that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}: {error}{place}"


def fail(message: str) -> NoReturn:
    """Raise :class:`CheckFailure`."""
    raise CheckFailure(message)


def check(condition: object, message: str) -> None:
    """Raise :class:`CheckFailure` with ``message`` unless ``condition`` is true."""
    if not condition:
        raise CheckFailure(message)


def check_close(
    actual: ArrayLike, expected: ArrayLike, what: str, *, rtol: float, atol: float = 0.0
) -> None:
    """Raise :class:`CheckFailure` unless the shapes agree and no entry is off by more.

    The bound on a difference is ``rtol * max|expected| + atol``: one scale for a whole array,
    so that rounding in its small entries does not count against it.
    """
    a, e = np.asarray(actual, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    if a.shape != e.shape:
        fail(f"{what}: shape {a.shape}, expected {e.shape}")
    if not e.size:
        return
    finite = np.isfinite(e)
    same_elsewhere = finite.all() or np.array_equal(a[~finite], e[~finite], equal_nan=True)
    if not (np.array_equal(np.isfinite(a), finite) and same_elsewhere):
        fail(f"{what}: {a} where {e} was expected")
    bound = rtol * float(np.max(np.abs(e[finite]), initial=0.0)) + atol
    worst = float(np.max(np.abs(a[finite] - e[finite]), initial=0.0))
    if not worst <= bound:
        fail(f"{what}: differs by {worst:.3g}, allowed {bound:.3g}")
