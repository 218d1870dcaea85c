"""The laws for backends of precision matrices."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from sparsemodel.interfaces import (
    FloatArray,
    IntArray,
    Iteration,
    Objective,
    Point,
    Stop,
)
from sparsemodel.numerics.precision import minimise_precision_on_support, precision_objective
from sparsemodel.testing.graphs import GraphInstance, best_graph
from sparsemodel.testing.instances.subject import Subject
from sparsemodel.testing.report import Refusal, check, check_close


def graph_is_feasible_for_every_k(subject: Subject, instance: GraphInstance) -> None:
    """From no edges to all of them; at both ends the answer is that of a convex problem."""
    units = instance.form().sparsity.units
    values = []
    for k in range(units + 1):
        limited = instance.with_k(k)
        result = subject.run(limited)
        values.append(result.point.value)
        if k in (0, units):
            form = limited.form()
            objective = precision_objective(form)
            everything = form.sparsity.coordinates(np.arange(k, dtype=np.intp))
            best = minimise_precision_on_support(objective, everything, objective.origin()).value
            atol = 1e-6 * instance.weight
            check_close(result.point.value, best, f"value for k = {k}", rtol=0.0, atol=atol)
    check(min(values) >= values[-1] - 1e-6 * instance.weight, "fewer edges are better than all")


def graph_is_never_worse_than_start(subject: Subject, instance: GraphInstance) -> None:
    """From its own result, from random graphs and from few edges, with and without a limit."""
    form = instance.form()
    objective = precision_objective(form)
    sparsity = form.sparsity
    rng = np.random.default_rng(3)
    starts = [subject.run(instance).point.x, objective.origin().x]
    for edges in {1, instance.k // 2, instance.k}:
        units = np.sort(rng.choice(sparsity.units, size=min(edges, sparsity.units), replace=False))
        support = sparsity.coordinates(units.astype(np.intp))
        starts.append(minimise_precision_on_support(objective, support, objective.origin()).x)
    for start in starts:
        for limit in (None, 0, 1):
            subject.run(instance, start=start.copy(), max_iter=limit)


def graph_agrees_with_brute_force(subject: Subject, instance: GraphInstance) -> None:
    """The value is the smallest over all graphs, and never below it."""
    _, best = best_graph(instance)
    excess = (subject.run(instance).point.value - best) / instance.weight
    check(excess >= -1e-8, f"{-excess:.3g} nats below the minimum: a wrong value or reference")
    check(excess <= 1e-6, f"{excess:.3g} nats above the minimum")


def graph_is_recovered(subject: Subject, instance: GraphInstance) -> None:
    """The edges that generated the data are found, and the matrix is the best one on them."""
    result = subject.run(instance)
    omega = instance.form().matrix(result.point.x)
    found = np.triu(omega, 1) != 0.0
    same = instance.planted is not None and np.array_equal(found, instance.planted)
    check(same, "other edges were found")
    joined = omega != 0.0
    residual = np.abs(np.linalg.inv(omega) - instance.covariance)[joined].max()
    allowed = 1e-5 * np.abs(instance.covariance).max()
    check(residual <= allowed, f"covariances on the edges are missed by {residual:.3g}")


def _compare(
    subject: Subject,
    instance: GraphInstance,
    other: GraphInstance,
    back: Callable[[FloatArray], FloatArray],
    what: str,
) -> None:
    """Check that ``back`` maps the solution of ``other`` to that of ``instance``."""
    mine = instance.form().matrix(subject.run(instance).point.x)
    theirs = back(other.form().matrix(subject.run(other).point.x))
    d = np.sqrt(np.diagonal(instance.covariance))
    scaled = np.outer(d, d)
    check(np.array_equal(mine != 0.0, theirs != 0.0), f"{what} changes the edges")
    check_close(theirs * scaled, mine * scaled, what, rtol=max(subject.resolution, 1e-5))


def relabelling_variables(subject: Subject, instance: GraphInstance) -> None:
    """Variables in another order give the same graph with other labels."""
    order = np.random.default_rng(5).permutation(instance.order)
    position = np.argsort(order)
    other = instance.permuted(order)
    _compare(subject, instance, other, lambda m: m[np.ix_(position, position)], "relabelling")


def rescaling_variables(subject: Subject, instance: GraphInstance) -> None:
    """Variables in other units, ``D S D``, give the solution in those units."""
    d = np.geomspace(1e-2, 30.0, instance.order)
    _compare(subject, instance, instance.rescaled(d), lambda m: m * np.outer(d, d), "other units")


def flipping_variables(subject: Subject, instance: GraphInstance) -> None:
    """Variables times -1 flip the signs of their edges and nothing else."""
    signs = np.where(np.arange(instance.order) % 2, -1.0, 1.0)
    other = instance.rescaled(signs)
    _compare(subject, instance, other, lambda m: m * np.outer(signs, signs), "flipping signs")


def scaling_the_likelihood(subject: Subject, instance: GraphInstance) -> None:
    """The objective times a constant has the same solution."""
    for c in (1e-3, 50.0):
        other = instance.with_objective_times(c)
        _compare(subject, instance, other, lambda m: m, f"the objective times {c:g}")


def graph_interrupted_returns_the_best(subject: Subject, instance: GraphInstance) -> None:
    """Ctrl-C during any restricted minimisation after the first iteration is survived."""
    total, first = [0], [0]

    def count() -> None:
        total[0] += 1

    def watch(event: Iteration) -> bool:
        if event.index == 1:
            first[0] = total[0]
        return False

    _fused(subject, count).run(instance, on_iterate=watch)
    if total[0] <= first[0]:
        raise Refusal("fewer than two iterations on this instance")
    for at in sorted({first[0] + 1, total[0]}):
        calls = [0]

        def interrupt(calls: list[int] = calls, at: int = at) -> None:
            calls[0] += 1
            if calls[0] == at:
                raise KeyboardInterrupt

        try:
            result = _fused(subject, interrupt).run(instance)
        except KeyboardInterrupt:
            check(False, f"Ctrl-C at minimisation {at} went through, and the best point with it")
            raise  # not reached
        check(result.stop is Stop.INTERRUPTED, f"ended with {result.stop} at Ctrl-C")


def _fused(subject: Subject, fuse: Callable[[], None]) -> Subject:
    """Return the subject with ``fuse`` called before every restricted minimisation."""
    inner = subject.restricted or minimise_precision_on_support

    def restricted(
        objective: Objective, support: IntArray, start: Point, *, tol: float | None = None
    ) -> Point:
        fuse()
        return inner(objective, support, start, tol=tol)

    return replace(subject, restricted=restricted)


def graph_is_thread_safe(subject: Subject, instance: GraphInstance) -> None:
    """Two threads solving at once get what one would."""
    alone = subject.run(instance)
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(lambda _: subject.run(instance), range(4)))
    for result in together:
        check_close(result.point.x, alone.point.x, "solution in a thread", rtol=1e-9)
