"""What every test file shares: a hypothesis profile, a seeded generator, and the referee.

Every answer that a test asks the library for is judged by ``tests.referee`` as well.
Tests that break something on purpose say ``@pytest.mark.unrefereed("why")``.
"""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from threadpoolctl import threadpool_limits

from sparsemodel.certificates.proving import beyond_root

# The referee, the benchmarks and the stress run are in the source tree only.
sys.path.append(str(Path(__file__).parents[1]))

from sparsemodel import registry
from tests import referee

# Tests call what runs call, but outside of a run, which would keep small work to one thread.
threadpool_limits(1)

# Derandomised, so that a failure is the same failure for everybody; no deadline, because a time
# limit belongs to pytest-timeout and a loaded machine is not a bug.
settings.register_profile(
    "sparsemodel",
    derandomize=True,
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("sparsemodel")


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator with a fixed seed, new for every test."""
    return np.random.default_rng(20240229)


@pytest.fixture
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Certificates rest on a bound without branching: no search over supports comes before it."""
    monkeypatch.setattr(beyond_root, "worth_searching", lambda *given, **options: False)


def pytest_collection_finish() -> None:
    # What was imported and collected stays to the end: no collection has to walk through it again.
    gc.freeze()


_JUDGED = "judged by the referee"


@pytest.fixture(autouse=True)
def _registrations() -> Iterator[None]:
    """Forget the backends that a test, or a page, registered."""
    yield
    if registry.registered():
        registry._backends._registered.clear()
        registry.usable_backends.cache_clear()


@pytest.fixture(autouse=True)
def _refereed(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> Iterator[None]:
    """Judge what problems answer during the test; a fault is an error where it is met."""
    mark = request.node.get_closest_marker("unrefereed")
    if mark is not None:
        assert mark.args, "unrefereed needs a reason"
        record_property(_JUDGED, [{}, {f"test left out: {mark.args[0]}": 1}, 0.0])
        yield
        return
    names = ("tests.stress.courts.judging", "tests.stress.posing.precision")
    modules = [getattr(request, "module", None), *map(sys.modules.get, names)]
    with referee.watching([module for module in modules if module is not None]) as watch:
        yield
    if watch.judged or watch.unjudged:
        # A property of the test travels from the workers of xdist to the process that prints.
        record_property(_JUDGED, [dict(watch.judged), dict(watch.unjudged), watch.seconds])


_SPENT = "seconds of the processor"
_LONG = 5.0
"""Above that an everyday test is named at the end. One that had to compile a kernel is no mistake;
another belongs on a smaller problem, or among the slow tests."""


def _spent() -> float:
    return sum(os.times()[:4])  # of processes that were waited for as well


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    began = _spent()
    try:
        return (yield)
    finally:
        if item.get_closest_marker("slow") is None:
            item.user_properties.append((_SPENT, _spent() - began))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [
        report
        for several in terminalreporter.stats.values()
        for report in several
        if isinstance(report, pytest.TestReport) and report.when == "teardown"
    ]
    _name_the_long(terminalreporter, reports)
    _count_the_judged(terminalreporter, reports)


def _name_the_long(
    terminalreporter: pytest.TerminalReporter, reports: list[pytest.TestReport]
) -> None:
    took = [(dict(report.user_properties).get(_SPENT, 0.0), report.nodeid) for report in reports]
    long = sorted((one for one in took if one[0] > _LONG), reverse=True)
    if long:
        terminalreporter.section(f"tests that took over {_LONG:g} s of the processor")
    for seconds, name in long:
        terminalreporter.write_line(f"{seconds:.1f} s  {name}")


def _count_the_judged(
    terminalreporter: pytest.TerminalReporter, reports: list[pytest.TestReport]
) -> None:
    judged: Counter[str] = Counter()
    unjudged: Counter[str] = Counter()
    seconds = 0.0
    for report in reports:
        for key, counts in report.user_properties:
            if key == _JUDGED:
                judged.update(counts[0])
                unjudged.update(counts[1])
                seconds += counts[2]
    if not judged and not unjudged:
        return
    terminalreporter.section(f"the referee, {seconds:.0f} s of the processor")
    for kind in sorted(name for name in judged if ": " not in name):
        parts = ", ".join(
            f"{count} {name.partition(': ')[2]}"
            for name, count in sorted(judged.items())
            if name.startswith(f"{kind}: ")
        )
        terminalreporter.write_line(f"{kind}: {judged[kind]} judged ({parts})")
    for reason, count in unjudged.most_common():
        terminalreporter.write_line(f"not judged, {count}: {reason}")
