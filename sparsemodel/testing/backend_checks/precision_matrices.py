"""The laws for backends of precision matrices."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from sparsemodel.interfaces import (
    Context,
    FloatArray,
    IntArray,
    Iteration,
    Limits,
    Objective,
    Point,
    Result,
    Stop,
)
from sparsemodel.numerics.precision import minimise_precision_on_support, precision_objective
from sparsemodel.testing.graphs import GraphInstance, best_graph
from sparsemodel.testing.instances.subject import Subject
from sparsemodel.testing.report import Refusal, check, check_close


def solve(
    subject: Subject,
    instance: GraphInstance,
    *,
    start: FloatArray | None = None,
    seed: int = 0,
    max_iter: int | None = None,
    deadline: float | None = None,
    on_iterate: Callable[[Iteration], bool] | None = None,
    fuse: Callable[[], None] | None = None,
) -> Result:
    """Solve the instance and check what every result must satisfy.

    ``fuse`` is called before every restricted minimisation.
    """
    form = instance.form()
    reasons = subject.backend.objections(form)
    if reasons:
        raise Refusal("; ".join(reasons))
    inner = subject.restricted or minimise_precision_on_support

    def restricted(
        objective: Objective, support: IntArray, start: Point, *, tol: float | None = None
    ) -> Point:
        if fuse is not None:
            fuse()
        return inner(objective, support, start, tol=tol)

    objective = precision_objective(form)
    context = Context(
        restricted=restricted,
        limits=Limits(max_iter=max_iter, deadline=deadline),
        rng=np.random.default_rng(seed),
        start=start,
        on_iterate=on_iterate,
    )
    result = subject.backend.solve(objective, context)
    _check_point(instance, result.point.x, result.point.support)
    value = instance.value(form.matrix(result.point.x))
    check_close(result.point.value, value, "value of the point", rtol=1e-9, atol=1e-9)
    first = objective.origin() if start is None else objective.point_from(start)
    allowed = 1e-9 * instance.weight * instance.order
    check(
        value <= first.value + allowed, f"the result has {value:.15g}, its start {first.value:.15g}"
    )
    return result


def _check_point(instance: GraphInstance, x: FloatArray, support: IntArray) -> None:
    form = instance.form()
    check(x.shape == form.shape and x.dtype == np.float64, f"x has shape {x.shape}, {x.dtype}")
    check(np.all(np.isfinite(x)), "x is not finite")
    check(np.all(np.diff(support) > 0), f"support is not sorted: {support}")
    check(np.isin(form.sparsity.free, support).all(), "diagonal or required edges are missing")
    outside = np.ones(x.size, dtype=bool)
    outside[support] = False
    check(not np.any(x[outside]), "x is not zero outside its support")
    edges = int(np.count_nonzero(form.sparsity.counted[support]))
    check(edges <= instance.k, f"{edges} edges, {instance.k} are allowed")
    omega = form.matrix(x)
    spectrum = np.linalg.eigvalsh(omega)
    check(spectrum[0] > 0.0, f"the smallest eigenvalue is {spectrum[0]:.3g}")
    slack = 1e-9 * spectrum[-1]
    check(
        spectrum[0] >= instance.alpha - slack and spectrum[-1] <= instance.beta + slack,
        f"eigenvalues in [{spectrum[0]:.6g}, {spectrum[-1]:.6g}]",
    )
    if instance.forbidden is not None:
        mask = instance.forbidden | instance.forbidden.T
        check(not np.any(omega[mask]), "a forbidden edge is there")


def graph_is_feasible_for_every_k(subject: Subject, instance: GraphInstance) -> None:
    """From no edges to all of them; at both ends the answer is that of a convex problem."""
    units = instance.form().sparsity.units
    values = []
    for k in range(units + 1):
        limited = instance.with_k(k)
        result = solve(subject, limited)
        values.append(result.point.value)
        if k in (0, units):
            form = limited.form()
            objective = precision_objective(form)
            everything = form.sparsity.coordinates(np.arange(k, dtype=np.intp))
            best = minimise_precision_on_support(objective, everything, objective.origin()).value
            atol = 1e-6 * instance.weight
            check_close(result.point.value, best, f"value for k = {k}", rtol=0.0, atol=atol)
    check(min(values) >= values[-1] - 1e-6 * instance.weight, "fewer edges are better than all")


def graph_is_deterministic(subject: Subject, instance: GraphInstance) -> None:
    """The same seed gives the same bits."""
    one, two = solve(subject, instance, seed=7), solve(subject, instance, seed=7)
    same = np.array_equal(one.point.x, two.point.x) and one.iterations == two.iterations
    check(same, "two runs with the same seed differ")


def graph_inputs_are_untouched(subject: Subject, instance: GraphInstance) -> None:
    """Neither covariance, masks nor start are written to, nor handed back as the result."""
    start = solve(subject, instance, max_iter=1).point.x.copy()
    arrays = instance.arrays() | {"start": start}
    before = {name: array.copy() for name, array in arrays.items()}
    for array in arrays.values():
        array.flags.writeable = False  # writing raises at the place where it happens
    result = solve(subject, instance, start=start)
    for name, array in arrays.items():
        check(np.array_equal(array, before[name]), f"{name} was changed")
        check(not np.shares_memory(result.point.x, array), f"the result shares memory of {name}")


def graph_is_never_worse_than_start(subject: Subject, instance: GraphInstance) -> None:
    """From its own result, from random graphs and from few edges, with and without a limit."""
    form = instance.form()
    objective = precision_objective(form)
    sparsity = form.sparsity
    rng = np.random.default_rng(3)
    starts = [solve(subject, instance).point.x, objective.origin().x]
    for edges in {1, instance.k // 2, instance.k}:
        units = np.sort(rng.choice(sparsity.units, size=min(edges, sparsity.units), replace=False))
        support = sparsity.coordinates(units.astype(np.intp))
        starts.append(minimise_precision_on_support(objective, support, objective.origin()).x)
    for start in starts:
        for limit in (None, 0, 1):
            solve(subject, instance, start=start.copy(), max_iter=limit)


def graph_agrees_with_brute_force(subject: Subject, instance: GraphInstance) -> None:
    """The value is the smallest over all graphs, and never below it."""
    _, best = best_graph(instance)
    excess = (solve(subject, instance).point.value - best) / instance.weight
    check(excess >= -1e-8, f"{-excess:.3g} nats below the minimum: a wrong value or reference")
    check(excess <= 1e-6, f"{excess:.3g} nats above the minimum")


def graph_is_recovered(subject: Subject, instance: GraphInstance) -> None:
    """The edges that generated the data are found, and the matrix is the best one on them."""
    result = solve(subject, instance)
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
    mine = instance.form().matrix(solve(subject, instance).point.x)
    theirs = back(other.form().matrix(solve(subject, other).point.x))
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


def graph_honours_limits(subject: Subject, instance: GraphInstance) -> None:
    """No more iterations than allowed, and none after a deadline but one that had begun."""
    free = solve(subject, instance)
    for limit in (0, 1, 2):
        result = solve(subject, instance, max_iter=limit)
        check(result.iterations <= limit, f"{result.iterations} iterations, allowed {limit}")
        if limit < free.iterations:
            check(result.stop is Stop.MAX_ITERATIONS, f"ended with {result.stop} at {limit}")
    late = solve(subject, instance, deadline=time.perf_counter() - 1.0)
    check(late.iterations <= 1, f"{late.iterations} iterations after the deadline")
    if free.iterations > 1:
        check(late.stop is Stop.TIME_LIMIT, f"ended with {late.stop} after the deadline")


def graph_callback_ends_the_run(subject: Subject, instance: GraphInstance) -> None:
    """True from the callback ends the run at once; an exception of it reaches the caller."""
    free = solve(subject, instance)
    if not free.iterations:
        raise Refusal("no iterations on this instance")
    calls: list[Iteration] = []

    def end(event: Iteration) -> bool:
        calls.append(event)
        return True

    ended = solve(subject, instance, on_iterate=end)
    check(len(calls) == 1, f"called {len(calls)} times after it said to end")
    check(ended.stop is Stop.CALLBACK, f"ended with {ended.stop} when the callback said so")

    class Mishap(Exception):
        pass

    def raise_it(event: Iteration) -> bool:
        raise Mishap

    try:
        solve(subject, instance, on_iterate=raise_it)
    except Mishap:
        return
    check(False, "an exception in the callback was swallowed")


def graph_history_is_true(subject: Subject, instance: GraphInstance) -> None:
    """Every event is feasible and has the value of its point; the best is the best so far."""
    seen: list[Iteration] = []

    def watch(event: Iteration) -> bool:
        seen.append(event)
        return False

    result = solve(subject, instance, on_iterate=watch)
    plain = solve(subject, instance)
    check(np.array_equal(result.point.x, plain.point.x), "watching changes the result")
    form, best = instance.form(), np.inf
    for event in seen:
        x = np.zeros(form.shape)
        x[event.support] = event.values
        _check_point(instance, x, event.support)
        value = instance.value(form.matrix(x))
        check_close(event.value, value, f"value of event {event.index}", rtol=1e-9, atol=1e-9)
        check(event.best <= min(best, event.value), "the best is not the best so far")
        best = event.best
    if seen:
        check(result.point.value <= best + 1e-9 * instance.weight, "the best point was lost")


def graph_interrupted_returns_the_best(subject: Subject, instance: GraphInstance) -> None:
    """Ctrl-C during any restricted minimisation after the first iteration is survived."""
    total, first = [0], [0]

    def count() -> None:
        total[0] += 1

    def watch(event: Iteration) -> bool:
        if event.index == 1:
            first[0] = total[0]
        return False

    solve(subject, instance, fuse=count, on_iterate=watch)
    if total[0] <= first[0]:
        raise Refusal("fewer than two iterations on this instance")
    for at in sorted({first[0] + 1, total[0]}):
        calls = [0]

        def interrupt(calls: list[int] = calls, at: int = at) -> None:
            calls[0] += 1
            if calls[0] == at:
                raise KeyboardInterrupt

        try:
            result = solve(subject, instance, fuse=interrupt)
        except KeyboardInterrupt:
            check(False, f"Ctrl-C at minimisation {at} went through, and the best point with it")
            raise  # not reached
        check(result.stop is Stop.INTERRUPTED, f"ended with {result.stop} at Ctrl-C")


def graph_is_thread_safe(subject: Subject, instance: GraphInstance) -> None:
    """Two threads solving at once get what one would."""
    alone = solve(subject, instance)
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(lambda _: solve(subject, instance), range(4)))
    for result in together:
        check_close(result.point.x, alone.point.x, "solution in a thread", rtol=1e-9)
