"""What happens when things go wrong: Ctrl-C, NaN, threads, forms never seen before."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from sparsemodel.designs import DenseDesign
from sparsemodel.interfaces import Design, FloatArray, Iteration, Result, SparseModelError, Stop
from sparsemodel.testing.instances.problems import Instance, Storage
from sparsemodel.testing.instances.sabotage import Fuse, SabotagedDesign, interrupt, poison
from sparsemodel.testing.instances.subject import Subject
from sparsemodel.testing.report import Refusal, check, check_close

_LONG = 60
"""Iterations of runs that are compared, at most; for all of them, as a limit may change the way."""


def interrupted_returns_the_best(subject: Subject, instance: Instance) -> None:
    """Ctrl-C at any product after the first iteration returns the best point so far."""
    counts, best = _products_at_events(subject, instance)
    if len(counts) < 2:
        raise Refusal("fewer than two iterations on this instance")
    for after in sorted({counts[0], (counts[0] + counts[-1]) // 2, counts[-1] - 1}):
        try:
            # PathResult like the run that was counted: a backend may go another way unseen.
            result = subject.run(
                instance,
                storage=_sabotaged(interrupt, after),
                max_iter=_LONG,
                on_iterate=lambda _: False,
            )
        except KeyboardInterrupt:
            message = f"Ctrl-C at product {after + 1} went through, and the best point with it"
            check(False, message)
            raise  # not reached
        check(result.stop is Stop.INTERRUPTED, f"ended with {result.stop} at Ctrl-C")
        known = [b for c, b in zip(counts, best, strict=True) if c <= after]
        value = instance.value(result.point.x)
        allowed = 1e-9 * (abs(value) + abs(instance.value(np.zeros(instance.shape))))
        check(value <= known[-1] + allowed, f"returned {value}, {known[-1]} was known")


def survives_nan(subject: Subject, instance: Instance) -> None:
    """Products that turn into NaN mid-run: the best point before, or an error of the tree.

    Feasibility and finiteness of what is returned are checked by :meth:`Subject.run`.
    """
    counts, best = _products_at_events(subject, instance)
    if len(counts) < 2:
        raise Refusal("fewer than two iterations on this instance")
    for after in sorted({counts[0], (counts[0] + counts[-1]) // 2}):
        with np.errstate(all="ignore"):
            try:
                result = subject.run(instance, storage=_sabotaged(poison, after), max_iter=_LONG)
            except SparseModelError:
                continue
        known = [b for c, b in zip(counts, best, strict=True) if c <= after]
        value = instance.value(result.point.x)
        allowed = 1e-9 * (abs(value) + abs(instance.value(np.zeros(instance.shape))))
        check(value <= known[-1] + allowed, f"returned {value}, {known[-1]} was known")
        # NaN may come when the search is over and only its end is still to be confirmed.
        done = value <= best[-1] + allowed
        check(done or result.stop is not Stop.CONVERGED, "claims to have converged on NaN")


def _products_at_events(subject: Subject, instance: Instance) -> tuple[list[int], list[float]]:
    """Return how many products had been made, and the best value, at every event."""
    fuse = Fuse()
    counts: list[int] = []
    best: list[float] = []

    def watch(event: Iteration) -> bool:
        counts.append(fuse.products)
        best.append(event.best)
        return False

    def storage(array: FloatArray) -> Design:
        return SabotagedDesign(DenseDesign(array), fuse)

    subject.run(instance, storage=storage, max_iter=_LONG, on_iterate=watch)
    return counts, best


def _sabotaged(action: Callable[[FloatArray], FloatArray], after: int) -> Storage:
    fuse = Fuse(action, after)
    return lambda array: SabotagedDesign(DenseDesign(array), fuse)


def objects_for_free(subject: Subject, instance: Instance) -> None:
    """Objections are sentences, the same every time, and cost no pass over the data."""
    fuse = Fuse()
    form = instance.form(lambda array: SabotagedDesign(DenseDesign(array), fuse))
    reasons = subject.backend.objections(form)
    check(isinstance(reasons, tuple), f"objections are a {type(reasons).__name__}, not a tuple")
    for reason in reasons:
        check(len(str(reason).split()) > 1, f"objection without words: {reason!r}")
    check(subject.backend.objections(form) == reasons, "objections change from call to call")
    check(fuse.products == 0, f"objections cost {fuse.products} products with the data")


def thread_safe(subject: Subject, instance: Instance) -> None:
    """Two threads solving at once, with one backend and one design, get what one would."""
    subject.require(instance)
    designs = [DenseDesign(d.array) for d in instance.data]

    def shared() -> Storage:
        order = iter(designs)
        return lambda array: next(order)

    def solve(seed: int) -> Result:
        return subject.run(instance, storage=shared(), seed=seed)

    alone = [solve(seed) for seed in (0, 1)]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(solve, (0, 1, 0, 1)))
    for index, result in enumerate(together):
        expected = alone[index % 2].point
        check(np.array_equal(result.point.support, expected.support), "another support in a thread")
        check_close(result.point.x, expected.x, "solution in a thread", rtol=1e-9)
