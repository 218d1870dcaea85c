"""A run ends at its limits, and reports truthfully how it went."""

from __future__ import annotations

import time

import numpy as np

from sparsemodel.interfaces import Iteration, Result, Stop
from sparsemodel.testing.instances.subject import AnyInstance, Subject, check_support
from sparsemodel.testing.report import Refusal, check, check_close


def honours_the_iteration_limit(subject: Subject, instance: AnyInstance) -> None:
    """No more iterations than allowed, and the reason given when they were too few."""
    free = subject.run(instance)
    for limit in (0, 1, 2):
        result = subject.run(instance, max_iter=limit)
        check(result.iterations <= limit, f"{result.iterations} iterations, allowed {limit}")
        check(len(result.history) <= limit, "the history is longer than the limit")
        if limit < free.iterations:
            check(
                result.stop is Stop.MAX_ITERATIONS,
                f"ended with {result.stop} at limit {limit} of {free.iterations} iterations",
            )


def honours_the_deadline(subject: Subject, instance: AnyInstance) -> None:
    """A deadline that has passed leaves time for one iteration at most."""
    free = subject.run(instance)
    result = subject.run(instance, deadline=time.perf_counter() - 1.0)
    check(result.iterations <= 1, f"{result.iterations} iterations after the deadline")
    if free.iterations > 1:
        check(result.stop is Stop.TIME_LIMIT, f"ended with {result.stop} after the deadline")
    later = subject.run(instance, deadline=time.perf_counter() + 3600.0)
    check(np.array_equal(later.point.x, free.point.x), "a far deadline changes the result")


def callback_ends_the_run(subject: Subject, instance: AnyInstance) -> None:
    """True from the callback ends the run at once; False changes nothing."""
    seen: list[Iteration] = []

    def watch(event: Iteration) -> bool:
        seen.append(event)
        return False

    free = subject.run(instance)
    watched = subject.run(instance, on_iterate=watch)
    check(np.array_equal(watched.point.x, free.point.x), "watching changes the result")
    if not free.iterations:
        raise Refusal("no iterations on this instance")
    check(seen, "the callback was never called")
    calls: list[Iteration] = []

    def end(event: Iteration) -> bool:
        calls.append(event)
        return len(calls) == stop_at

    for stop_at in {1, len(seen)}:
        calls.clear()
        ended = subject.run(instance, on_iterate=end)
        check(ended.stop is Stop.CALLBACK, f"ended with {ended.stop} when the callback said so")
        check(len(calls) == stop_at, f"called {len(calls)} times, ended at call {stop_at}")
        value, best = instance.value(ended.point.x), calls[-1].best
        check(value <= best + _rounding(instance, best), f"returned {value}, best was {best}")


def callback_errors_surface(subject: Subject, instance: AnyInstance) -> None:
    """An exception of the callback reaches the caller."""

    class Mishap(Exception):
        pass

    def raise_it(event: Iteration) -> bool:
        raise Mishap

    try:
        result = subject.run(instance, on_iterate=raise_it)
    except Mishap:
        return
    check(result.iterations == 0, "an exception in the callback was swallowed")


def history_is_true(subject: Subject, instance: AnyInstance) -> None:
    """Every event is feasible and has the value of its point; the best is the best so far."""
    seen: list[Iteration] = []

    def watch(event: Iteration) -> bool:
        seen.append(event)
        return False

    result = subject.run(instance, on_iterate=watch)
    origin = instance.origin
    if result.iterations and instance.value(result.point.x) < origin:
        check(result.history, "better than its start, without a history")
    indices = {event.index for event in seen}
    kept = {event.index for event in result.history}
    check(kept <= indices, "the history has events that the callback never saw")
    for events in (seen, list(result.history)):
        _check_events(subject, instance, events, result)


def _check_events(
    subject: Subject, instance: AnyInstance, events: list[Iteration], result: Result
) -> None:
    best, index, elapsed = np.inf, 0, 0.0
    for event in events:
        check(event.backend == subject.backend.name, f"event of {event.backend!r}")
        check(index < event.index <= result.iterations, f"index {event.index} after {index}")
        check(event.elapsed >= elapsed, "elapsed time goes backwards")
        check(event.best <= best, "the best value rises")
        check(event.best <= event.value, f"best {event.best} above the value {event.value}")
        index, elapsed, best = event.index, event.elapsed, event.best
        check_support(instance, event.support)
        x = np.zeros(instance.shape)
        check(event.values.shape == x[event.support].shape, "values do not fit the support")
        x[event.support] = event.values
        value = instance.value(x)
        check_close(
            event.value, value, f"value of event {index}", rtol=0.0, atol=_rounding(instance, value)
        )
    if events:
        value = instance.value(result.point.x)
        allowed = _rounding(instance, value)
        check(value <= best + allowed, f"returned {value}, the history has {best}")


def _rounding(instance: AnyInstance, value: float) -> float:
    return 1e-9 * (abs(value) + abs(instance.origin))
