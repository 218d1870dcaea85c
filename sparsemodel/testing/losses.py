r"""The conformance suite for losses: laws that every :class:`DataFit` must obey.

A third party tests a loss with::

    def test_my_loss():
        report = run_loss_suite(MyLoss(), lambda rng, n: rng.normal(size=n))
        print(report)
        report.raise_if_failed()

Each check is a plain function of a loss, a target in the loss's own coding and a random
generator. It raises :class:`CheckFailure` where the contract is broken and :class:`Refusal` where
the loss lacks the facet in question. Nothing here needs pytest; CVXPY is imported only for the
losses that have a CVXPY form.
"""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from sparsemodel.interfaces import (
    Conjugable,
    Curved,
    CvxModelled,
    DataFit,
    FloatArray,
    Loss,
    TwiceDifferentiable,
)
from sparsemodel.testing.laws.loss_laws import (
    SCALES,
    check_closed_forms,
    check_convexity,
    check_curvature_bounds,
    check_dual_projection,
    check_fenchel_young,
    check_gradient_by_differences,
    check_hessian_by_differences,
    check_infimum,
    check_pieces,
    check_quadratic,
    check_smoothing,
    check_weights,
    expect,
    near,
    predictions,
    weights,
)
from sparsemodel.testing.report import (
    CheckFailure,
    NamedCheck,
    Refusal,
    Report,
    quietly,
    run_checks,
)

Check: TypeAlias = Callable[[DataFit, FloatArray, np.random.Generator], None]
MakeTarget: TypeAlias = Callable[[np.random.Generator, int], FloatArray]


def check_extreme_predictions(loss: DataFit, y: FloatArray, rng: np.random.Generator) -> None:
    """Check that nothing overflows, warns or is NaN at ``|u| = 1e3``."""
    for extreme in (1e3, -1e3, None):
        u = predictions(loss, y, rng)
        u[...] = rng.choice([-1e3, 0.0, 1e3], size=u.shape) if extreme is None else extreme
        c = weights(y, rng)
        with np.errstate(all="raise", under="ignore"):
            results: list[FloatArray] = [np.asarray(loss.total(u, y, c)), loss.gradient(u, y, c)]
            if isinstance(loss, TwiceDifferentiable):
                results.append(loss.hessian_product(u, y, c, rng.normal(size=u.shape)))
            if isinstance(loss, Loss):
                results += [loss.value(u, y), loss.derivative(u, y)]
                if isinstance(loss, Conjugable):
                    results.append(loss.conjugate(loss.derivative(u, y), y))
        for result in results:
            expect(np.isfinite(result), "not finite at |u| = 1e3")


def check_arrays(loss: DataFit, y: FloatArray, rng: np.random.Generator) -> None:
    """Check shapes and dtypes, and that inputs are neither changed nor handed back."""
    u, c = predictions(loss, y, rng), weights(y, rng)
    v = rng.normal(size=u.shape)
    inputs = u, y.copy(), c, v
    for array in inputs:
        array.flags.writeable = False  # writing raises
    outputs: list[tuple[str, FloatArray, tuple[int, ...]]] = []
    for rows in (slice(None), slice(0, 1), slice(None, None, 2)):
        at, target, scale = u[rows], inputs[1][rows], c[rows]
        total = loss.total(at, target, scale)
        expect(isinstance(total, float), f"total returns {type(total).__name__}, not float")
        outputs.append(("gradient", loss.gradient(at, target, scale), at.shape))
        if isinstance(loss, TwiceDifferentiable):
            product = loss.hessian_product(at, target, scale, v[rows])
            outputs.append(("hessian_product", product, at.shape))
            if u.ndim == 1:
                several = np.stack([v[rows], at, scale], axis=1)
                product = loss.hessian_product(at, target, scale, several)
                outputs.append(("hessian_product of (n, q)", product, several.shape))
                single = loss.hessian_product(at, target, scale, v[rows])
                near(product[:, 0], single, "directions of hessian_product are mixed up")
        if isinstance(loss, Loss):
            outputs.append(("value", loss.value(at, target), at.shape[:1]))
            outputs.append(("derivative", loss.derivative(at, target), at.shape))
            near(loss.value(at, target), loss.value(u, y)[rows], "rows are not independent")
        if isinstance(loss, Curved):
            outputs.append(("second_derivative", loss.second_derivative(at, target), at.shape[:1]))
        if isinstance(loss, Conjugable):
            a = loss.project_dual(at, target)
            outputs.append(("project_dual", a, at.shape))
            outputs.append(("conjugate", loss.conjugate(a, target), at.shape[:1]))
    for what, result, shape in outputs:
        expect(isinstance(result, np.ndarray), f"{what} returns {type(result).__name__}")
        expect(result.dtype == np.float64, f"{what} has dtype {result.dtype}, not float64")
        expect(result.shape == shape, f"{what} has shape {result.shape}, not {shape}")
        shared = any(np.shares_memory(result, array) for array in inputs)
        expect(not shared, f"{what} hands back the memory of an input")


def check_target_coding(loss: DataFit, y: FloatArray, rng: np.random.Generator) -> None:
    """Check that a coded target is coded already, has rows as before, and is not written to."""
    frozen = y.copy()
    frozen.flags.writeable = False
    again = loss.check_target(frozen, "target")
    expect(again.dtype == np.float64, "check_target changes the dtype")
    expect(again.shape == y.shape and bool(np.all(again == y)), "check_target is not idempotent")
    expect(loss.outputs(y) >= 1, "outputs(y) must be at least one")


def check_value_semantics(loss: DataFit, y: FloatArray, rng: np.random.Generator) -> None:
    """Check that the loss is a small value: named, immutable, hashable, and can be pickled."""
    expect(isinstance(loss.name, str), "the name of the loss is no string")
    expect(loss.name != "", "the loss has no name")
    for twin in (pickle.loads(pickle.dumps(loss)), copy.deepcopy(loss)):
        expect(twin == loss, "a copy is not equal to the loss")
        expect(hash(twin) == hash(loss), "a copy has another hash")
    expect(dataclasses.is_dataclass(loss), "the loss is not a dataclass")
    for field in dataclasses.fields(loss):  # type: ignore[arg-type]
        try:
            setattr(loss, field.name, getattr(loss, field.name))
        except AttributeError:  # FrozenInstanceError is one
            continue
        raise CheckFailure(f"field {field.name} can be set: use @dataclass(frozen=True)")


def check_cvxpy_agrees(loss: DataFit, y: FloatArray, rng: np.random.Generator) -> None:
    """Check the CVXPY form: convex by CVXPY's rules, and with the same values."""
    if not isinstance(loss, CvxModelled):
        raise Refusal("not CvxModelled")
    try:
        import cvxpy as cp
    except ImportError as error:
        raise Refusal("CVXPY is not installed") from error
    for scale in SCALES:
        u, c = predictions(loss, y, rng, scale), weights(y, rng)
        u = np.abs(u) if loss.misplaced(u, y) else u
        variable = cp.Variable(u.shape)
        total = loss.cvxpy_total(cp, variable, y, c)
        single = loss.cvxpy_value(cp, variable, y)
        expect(total.shape == () and single.shape == u.shape[:1], "CVXPY form has a shape")
        expect(total.is_dcp() and single.is_convex(), "CVXPY form does not follow the rules")
        variable.value = u
        near(float(total.value), loss.total(u, y, c), "CVXPY total differs", 1e-10)
        if isinstance(loss, Loss):
            near(single.value, loss.value(u, y), "CVXPY values differ", 1e-10)
        else:
            unweighted = loss.total(u, y, np.ones(c.size))
            near(float(single.value.sum()), unweighted, "CVXPY values differ", 1e-10)


LOSS_CHECKS: tuple[Check, ...] = (
    check_target_coding,
    check_value_semantics,
    check_arrays,
    check_gradient_by_differences,
    check_hessian_by_differences,
    check_quadratic,
    check_closed_forms,
    check_convexity,
    check_curvature_bounds,
    check_infimum,
    check_fenchel_young,
    check_dual_projection,
    check_pieces,
    check_smoothing,
    check_extreme_predictions,
    check_weights,
    check_cvxpy_agrees,
)
"""All checks, in the order in which a broken loss is best repaired."""


def run_loss_suite(
    loss: DataFit,
    make_target: MakeTarget,
    *,
    n: int = 24,
    rounds: int = 3,
    seed: int = 0,
    expected_failures: Mapping[str, str] | None = None,
) -> Report:
    """Run every check on several random targets and report all of it.

    Parameters
    ----------
    loss
        The loss to test.
    make_target
        ``make_target(rng, n)`` returns a target of ``n`` observations as a user would pass it
        (a float64 array); it goes through ``loss.check_target`` before anything else.
    n, rounds, seed
        Observations per target, number of targets, seed of the generator.
    expected_failures
        Reasons by name of a check, which may be a pattern, as for :func:`run_checks`.

    Returns
    -------
    Report
        Results are named ``check[round]``. Nothing is raised: :meth:`Report.raise_if_failed`
        does that. A warning counts as a failure.
    """

    def named(check: Check, index: int) -> NamedCheck:
        def run() -> None:
            rng = np.random.default_rng((seed, index))
            check(loss, loss.check_target(make_target(rng, n), "target"), rng)

        return f"{check.__name__}[{index}]", quietly(run)

    checks = [named(check, index) for check in LOSS_CHECKS for index in range(rounds)]
    return run_checks(loss.name, checks, expected_failures=expected_failures)


__all__ = [
    "LOSS_CHECKS",
    "Check",
    "MakeTarget",
    "check_arrays",
    "check_convexity",
    "check_curvature_bounds",
    "check_cvxpy_agrees",
    "check_dual_projection",
    "check_extreme_predictions",
    "check_fenchel_young",
    "check_gradient_by_differences",
    "check_hessian_by_differences",
    "check_infimum",
    "check_pieces",
    "check_quadratic",
    "check_smoothing",
    "check_target_coding",
    "check_value_semantics",
    "check_weights",
    "run_loss_suite",
]
