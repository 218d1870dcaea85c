"""What every result must satisfy: feasibility, determinism, no side effects."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np

from sparsemodel.interfaces import Result
from sparsemodel.testing.instances.problems import Instance
from sparsemodel.testing.instances.reference import brute_force
from sparsemodel.testing.instances.subject import AnyInstance, Subject
from sparsemodel.testing.report import check, check_close


def feasible_for_every_k(subject: Subject, instance: Instance) -> None:
    """From nothing allowed to everything allowed; at both ends the answer is known."""
    units = instance.sparsity.units
    for k in range(units + 1):
        limited, convex = instance.with_k(k), k in (0, units)
        # Between, methods may go round in circles, every point of which is feasible or none.
        result = subject.run(limited, max_iter=None if convex else 30)
        if convex:
            reference = brute_force(limited)
            check_close(
                limited.value(result.point.x),
                reference.value,
                f"value for k = {k} of {units} units",
                rtol=0.0,
                atol=subject.accuracy * reference.scale,
            )


def deterministic(subject: Subject, instance: AnyInstance) -> None:
    """The same seed gives the same bits, whatever the global generator has been through."""
    results = []
    before = np.random.get_state()  # noqa: NPY002 - a backend that reads it is what we look for
    try:
        for state in (1, 2):  # not the same: what is drawn from it must differ
            np.random.seed(state)  # noqa: NPY002
            results.append(subject.run(instance, seed=7))
    finally:
        np.random.set_state(before)  # noqa: NPY002
    check(_identical(*results), "two runs with the same seed differ")


def _identical(first: Result, second: Result) -> bool:
    return (
        np.array_equal(first.point.x, second.point.x)
        and np.array_equal(first.point.support, second.point.support)
        and first.point.value == second.point.value
        and first.stop is second.stop
        and first.iterations == second.iterations
        and [e.value for e in first.history] == [e.value for e in second.history]
    )


def inputs_untouched(subject: Subject, instance: AnyInstance) -> None:
    """Neither data nor start are written to, nor handed back as the result."""
    start = subject.run(instance, max_iter=1).point.x.copy()
    arrays: dict[str, Any] = {**instance.arrays(), "start": start}
    before = {name: array.copy() for name, array in arrays.items()}
    for array in arrays.values():
        array.flags.writeable = False  # writing raises at the place where it happens
    result = subject.run(instance, start=start)
    for name, array in arrays.items():
        check(np.array_equal(array, before[name]), f"{name} was changed")
        check(not np.shares_memory(result.point.x, array), f"the result shares memory of {name}")


def quiet(subject: Subject, instance: Instance) -> None:
    """Nothing is printed, and the global random generator is left alone."""
    before = _global_state()
    with (
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(io.StringIO()) as err,
    ):
        subject.run(instance)
    said = out.getvalue() + err.getvalue()
    check(not said, f"printed {said[:80]!r}")
    check(_global_state() == before, "drew from NumPy's global random generator")


def _global_state() -> tuple[bytes, int]:
    """Return key and position: a few draws only move the position."""
    _, key, position, *_ = np.random.get_state(legacy=True)  # noqa: NPY002
    return np.asarray(key).tobytes(), int(position)


def never_worse_than_start(subject: Subject, instance: Instance) -> None:
    """From the best point, its own result and random points, with and without a limit.

    That the result is no worse than its start is checked by :meth:`Subject.run` itself.
    """
    rng = np.random.default_rng(3)
    sparsity = instance.sparsity
    starts = [brute_force(instance).x, subject.run(instance).point.x]
    for _ in range(2):
        units = rng.choice(sparsity.units, size=min(sparsity.budget, sparsity.units), replace=False)
        support = sparsity.coordinates(np.sort(units))
        x = np.zeros(instance.shape)
        x[support] = rng.standard_normal(x[support].shape)
        if instance.box is not None:
            x = np.clip(x, instance.box.lower, instance.box.upper)
        starts.append(x)
    for start in starts:
        for limit in (None, 0, 1):
            subject.run(instance, start=start.copy(), max_iter=limit)


def stays_at_the_minimum(subject: Subject, instance: Instance) -> None:
    """Started from the global minimum, the value stays what it is."""
    reference = brute_force(instance)
    result = subject.run(instance, start=reference.x.copy())
    check_close(
        instance.value(result.point.x),
        reference.value,
        "value from the minimum",
        rtol=0.0,
        atol=subject.accuracy * reference.scale,
    )
