"""A backend under test: every solve goes through here, and every result is checked here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np

from sparsemodel.designs import DenseDesign
from sparsemodel.interfaces import (
    Backend,
    Context,
    FloatArray,
    IntArray,
    Iteration,
    Limits,
    Objective,
    Point,
    RestrictedSolver,
    Result,
    Stop,
)
from sparsemodel.numerics import minimise_on_support
from sparsemodel.numerics.precision import minimise_precision_on_support
from sparsemodel.testing.graphs import GraphInstance
from sparsemodel.testing.instances.problems import Instance, Storage
from sparsemodel.testing.instances.reference import minimise_in_box, minimum_on
from sparsemodel.testing.report import Refusal, check, check_close, fail

AnyInstance: TypeAlias = Instance | GraphInstance


@final
@dataclass(frozen=True, slots=True)
class Subject:
    """A backend with the accuracy that is asked of it.

    Parameters
    ----------
    backend
        What is tested.
    accuracy
        Largest error of a converged objective, relative to its decrease from zero.
    resolution
        Largest difference of solutions that ought to be the same, relative to their largest
        entry.
    restricted
        What the backend gets to minimise on a support; None takes the library's Newton method
        where it applies, and SciPy's minimisers for bounds and kinks.
    """

    backend: Backend
    accuracy: float = 1e-8
    resolution: float = 1e-5
    restricted: RestrictedSolver | None = None

    def require(self, instance: Instance) -> None:
        """Raise :class:`Refusal` with the backend's objections to the instance, if any."""
        reasons = self.backend.objections(instance.form())
        if reasons:
            raise Refusal("; ".join(reasons))

    def run(
        self,
        instance: AnyInstance,
        *,
        storage: Storage = DenseDesign,
        start: FloatArray | None = None,
        seed: int = 0,
        max_iter: int | None = None,
        deadline: float | None = None,
        on_iterate: Callable[[Iteration], bool] | None = None,
    ) -> Result:
        """Solve the instance and check what every result must satisfy.

        Raises
        ------
        Refusal
            When the backend objects to the problem.
        CheckFailure
            When the result is infeasible, not finite, worse than its start, or carries another
            value than the formulas give.
        """
        if isinstance(instance, GraphInstance):
            objective: Objective = instance.objective()
        else:
            objective = instance.objective(storage)
        reasons = self.backend.objections(objective.form)
        if reasons:
            raise Refusal("; ".join(reasons))
        context = Context(
            restricted=self.restricted or default_restricted(instance),
            limits=Limits(max_iter=max_iter, deadline=deadline),
            rng=np.random.default_rng(seed),
            start=start,
            on_iterate=on_iterate,
        )
        result = self.backend.solve(objective, context)
        check_result(instance, result, start)
        return result

    def converged(self, instance: Instance, *, storage: Storage = DenseDesign) -> Result:
        """Run without limits, and check that none was the reason to end."""
        result = self.run(instance, storage=storage)
        check(
            result.stop in (Stop.CONVERGED, Stop.STALLED, Stop.MAX_ITERATIONS),
            f"ended with {result.stop} although nothing limited it",
        )
        return result

    def same(self, actual: Result, expected: FloatArray, what: str) -> None:
        """Check that a result is the point ``expected``, to the resolution of the subject."""
        check_close(actual.point.x, expected, what, rtol=self.resolution)


def default_restricted(instance: AnyInstance) -> RestrictedSolver:
    """Return a restricted solver that is right for the instance."""
    if isinstance(instance, GraphInstance):
        return minimise_precision_on_support
    if instance.box is not None:
        return minimise_in_box
    if instance.objective().twice_differentiable:
        return minimise_on_support

    def with_kinks(
        objective: Objective, support: IntArray, start: Point, *, tol: float | None = None
    ) -> Point:
        return objective.point(support, minimum_on(instance, support)[support])

    return with_kinks


def check_result(instance: AnyInstance, result: Result, start: FloatArray | None) -> None:
    """Check feasibility, the value, and that the result is no worse than its start (or zero)."""
    check(isinstance(result, Result), f"solve returned {type(result).__name__}, not a Result")
    check(isinstance(result.stop, Stop), f"stop is {result.stop!r}")
    check(result.iterations >= 0, f"{result.iterations} iterations")
    x, support = result.point.x, result.point.support
    check(x.dtype == np.float64, f"x has dtype {x.dtype}")
    check(x.shape == instance.shape, f"x has shape {x.shape}, the form {instance.shape}")
    check(np.all(np.isfinite(x)), "x is not finite")
    check_support(instance, support)
    outside = np.ones(len(x), dtype=bool)
    outside[support] = False
    check(not np.any(x[outside]), "x is not zero outside its support")
    if isinstance(instance, GraphInstance):
        _check_matrix(instance, x)
    elif instance.box is not None:
        inside = np.all((x >= instance.box.lower) & (x <= instance.box.upper))
        check(inside, "x is outside its bounds")
    value, origin = instance.value(x), instance.origin
    price = instance.sparsity.price * instance.sparsity.count(x)
    rounding = 1e-9 * (abs(value) + abs(origin))
    check_close(result.point.value, value - price, "value of the point", rtol=0.0, atol=rounding)
    before = origin if start is None else instance.value(start)
    slack = 1e-12 * (abs(before) + abs(origin))
    if isinstance(instance, GraphInstance):  # its logarithms are rounded
        slack = 1e-9 * instance.weight * instance.order
    check(
        value <= before + slack,
        f"the result has the value {value:.17g}, its start {before:.17g}",
    )


def _check_matrix(instance: GraphInstance, x: FloatArray) -> None:
    """Check that a matrix is positive definite, within its bounds, and without forbidden edges."""
    omega = instance.form().matrix(x)
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


def check_support(instance: AnyInstance, support: IntArray) -> None:
    """Check that a support is sorted, in range, has the free coordinates and at most k units."""
    sparsity = instance.sparsity
    check(support.dtype.kind == "i" and support.ndim == 1, "support is no vector of indices")
    within = not support.size or (support[0] >= 0 and support[-1] < sparsity.size)
    if not within or np.any(np.diff(support) <= 0):
        fail(f"support is not sorted, distinct and in range: {support}")
    if not np.isin(sparsity.free, support).all():
        fail(f"free coordinates are not in the support {support}")
    members = np.zeros(sparsity.size)
    members[support] = 1.0
    units = sparsity.count(members)
    check(units <= sparsity.budget, f"support of {units} units, {sparsity.budget} are allowed")
