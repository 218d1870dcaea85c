"""The shipped suite on every built-in loss, on a user's loss, and on losses broken on purpose."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from sparsemodel.interfaces import (
    Affine,
    Conjugable,
    Curved,
    CvxModelled,
    DataError,
    DataFit,
    FloatArray,
    IntervalConjugable,
    Loss,
    OfDifference,
    OfResidual,
    Piecewise,
    Quadratic,
    SimplexConjugable,
    Smoothable,
    SquaredDistance,
    TargetKind,
    TwiceDifferentiable,
)
from sparsemodel.losses import (
    CoxLoss,
    EpsilonInsensitiveLoss,
    ExpectileLoss,
    HuberLoss,
    LinearLoss,
    LogisticLoss,
    MultinomialLoss,
    NegativeBinomialLoss,
    PoissonIdentityLoss,
    QuantileLoss,
    SmoothedHingeLoss,
    SmoothedPinballLoss,
    SquaredLoss,
    TweedieLoss,
    builtin_losses,
)
from sparsemodel.testing import CheckFailure, Outcome, run_loss_suite
from sparsemodel.testing.losses import LOSS_CHECKS, MakeTarget

Generator = np.random.Generator


def real(rng: Generator, n: int) -> FloatArray:
    return 2.0 * rng.normal(size=n)


def zero_one(rng: Generator, n: int) -> FloatArray:
    return np.append(rng.integers(0, 2, n - 2), [0, 1]).astype(np.float64)


def positive(rng: Generator, n: int) -> FloatArray:
    return rng.gamma(1.5, size=n)


def amounts(rng: Generator, n: int) -> FloatArray:
    return rng.gamma(1.5, size=n) * (np.arange(n) % 3 > 0)


def classes(rng: Generator, n: int) -> FloatArray:
    return np.append(rng.integers(0, 4, n - 4), np.arange(4)).astype(np.float64)


def survival(rng: Generator, n: int) -> FloatArray:
    time = rng.integers(0, n // 2, n)  # ties, among events and censored alike
    return np.column_stack([time, np.append(rng.integers(0, 2, n - 1), 1)]).astype(np.float64)


LABELS = {
    TargetKind.TWO_CLASSES: zero_one,
    TargetKind.CLASSES: classes,
    TargetKind.TIMES: survival,
}


def targets_of(loss: DataFit) -> MakeTarget:
    """Return what draws targets of the kind that a loss accepts; numbers as general as may be."""
    if loss.target_kind is not TargetKind.NUMBERS:
        return LABELS[loss.target_kind]
    for draw in (real, amounts):
        try:
            loss.check_target(draw(np.random.default_rng(0), 24), "target")
        except DataError:
            continue
        return draw
    return positive


VARIANTS: tuple[DataFit, ...] = (
    EpsilonInsensitiveLoss(epsilon=0.0),
    EpsilonInsensitiveLoss(epsilon=1.5),
    ExpectileLoss(tau=0.9),
    HuberLoss(delta=0.05),
    HuberLoss(delta=20.0),
    MultinomialLoss(classes=6),
    NegativeBinomialLoss(theta=0.1),
    NegativeBinomialLoss(theta=1e6),
    QuantileLoss(tau=0.03),
    QuantileLoss(tau=0.9),
    SmoothedHingeLoss(gamma=0.05),
    SmoothedHingeLoss(gamma=3.0),
    SmoothedPinballLoss(below=0.2, above=0.8, epsilon=0.5, mu=0.1),
    TweedieLoss(power=1.05),
    TweedieLoss(power=1.9),
)


def refused(loss: DataFit) -> set[str]:
    """Return the checks that a loss with these facets may refuse, and no others."""
    facets = {
        "check_hessian_by_differences": isinstance(loss, TwiceDifferentiable),
        "check_quadratic": isinstance(loss, Quadratic),
        "check_closed_forms": isinstance(
            loss, (SquaredDistance, Affine, OfResidual, SimplexConjugable)
        )
        or (isinstance(loss, OfDifference) and loss.even),
        "check_curvature_bounds": loss.curvature(np.ones(1)) != (0.0, np.inf),
        "check_fenchel_young": isinstance(loss, Conjugable),
        "check_dual_projection": isinstance(loss, Conjugable),
        "check_infimum": not isinstance(loss, (LinearLoss, PoissonIdentityLoss)),
        "check_pieces": isinstance(loss, Piecewise),
        "check_smoothing": isinstance(loss, Smoothable),
        "check_cvxpy_agrees": isinstance(loss, CvxModelled),
    }
    return {check for check, applies in facets.items() if not applies}


@pytest.mark.parametrize("loss", [*builtin_losses(), *VARIANTS], ids=repr)
def test_builtin_losses_conform(loss: DataFit) -> None:
    report = run_loss_suite(loss, targets_of(loss), rounds=3)
    report.raise_if_failed()
    skipped = [r.name.split("[")[0] for r in report.results if r.outcome is Outcome.REFUSED]
    assert set(skipped) == refused(loss)
    assert report.executed == 3 * (len(LOSS_CHECKS) - len(refused(loss)))


def test_squared_loss_of_a_matrix_variable_conforms() -> None:
    report = run_loss_suite(SquaredLoss(), lambda rng, n: rng.normal(size=(n, 3)))
    assert (report.raise_if_failed(), report.refused) == (None, 6)


def test_builtin_facets_are_what_the_documentation_says() -> None:
    without_conjugate = {loss.name for loss in builtin_losses() if not isinstance(loss, Conjugable)}
    nonsmooth = {loss.name for loss in builtin_losses() if isinstance(loss, Smoothable)}
    flat = {loss.name for loss in builtin_losses() if not isinstance(loss, TwiceDifferentiable)}
    assert without_conjugate == {"cox_loss"}
    assert flat == nonsmooth
    assert nonsmooth == {"absolute_loss", "epsilon_insensitive_loss", "hinge_loss", "quantile_loss"}
    assert all(isinstance(loss, CvxModelled) for loss in builtin_losses())


# A user's loss: all that is needed to join as an equal.
@dataclass(frozen=True)
class LogCoshLoss(Curved, Loss):
    name: ClassVar[str] = "log_cosh_loss"

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return np.logaddexp(u - y, y - u) - np.log(2.0)

    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return np.tanh(u - y)

    def second_derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return 1.0 - np.tanh(u - y) ** 2

    def curvature(self, y: FloatArray) -> tuple[float, float]:
        return 0.0, 1.0

    def infimum(self, y: FloatArray, c: FloatArray) -> float:
        return 0.0


def test_a_user_loss_of_fifteen_lines_conforms() -> None:
    report = run_loss_suite(LogCoshLoss(), real)
    report.raise_if_failed()
    assert report.executed == 3 * (len(LOSS_CHECKS) - len(refused(LogCoshLoss())))


@dataclass(frozen=True)
class HalfSlope(LogCoshLoss):
    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return 0.5 * np.tanh(u - y)


@dataclass(frozen=True)
class WrongHessian(LogCoshLoss):
    def second_derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return 1.01 - np.tanh(u - y) ** 2


@dataclass(frozen=True)
class TooSmooth(LogCoshLoss):
    def curvature(self, y: FloatArray) -> tuple[float, float]:
        return 0.0, 0.9


@dataclass(frozen=True)
class TooConvex(LogCoshLoss):
    def curvature(self, y: FloatArray) -> tuple[float, float]:
        return 0.1, 1.0


@dataclass(frozen=True)
class HighInfimum(LogCoshLoss):
    def infimum(self, y: FloatArray, c: FloatArray) -> float:
        return 0.01


@dataclass(frozen=True)
class Bounded(LogCoshLoss):
    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return 1.0 - np.exp(-((u - y) ** 2))

    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return 2.0 * (u - y) * np.exp(-((u - y) ** 2))


@dataclass(frozen=True)
class Overflowing(LogCoshLoss):
    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return np.log(np.cosh(u - y))


@dataclass(frozen=True)
class Overwriting(LogCoshLoss):
    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        u -= y
        return np.tanh(u)


@dataclass(frozen=True)
class HandsBack(LogCoshLoss):
    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return u

    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return np.ones(u.shape)


@dataclass(frozen=True)
class SinglePrecision(LogCoshLoss):
    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return LogCoshLoss.value(self, u, y).astype(np.float32)


@dataclass(frozen=True)
class CountsRows(LogCoshLoss):
    def total(self, u: FloatArray, y: FloatArray, c: FloatArray) -> float:
        return float(np.mean(c * self.value(u, y)))

    def gradient(self, u: FloatArray, y: FloatArray, c: FloatArray) -> FloatArray:
        return c * self.derivative(u, y) / u.shape[0]


@dataclass(unsafe_hash=True)
class Mutable(Loss):
    name: ClassVar[str] = "mutable_loss"
    scale: float = 1.0

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return self.scale * np.abs(u - y)

    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return self.scale * np.sign(u - y)


@dataclass(frozen=True)
class LowConjugate(IntervalConjugable, LogCoshLoss):
    """Claims the conjugate of the absolute loss, which is smaller inside."""

    def conjugate(self, a: FloatArray, y: FloatArray) -> FloatArray:
        return np.where(np.abs(a) <= 1.0, a * y, np.inf)

    def dual_interval(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return -np.ones(y.shape), np.ones(y.shape)


@dataclass(frozen=True)
class WideProjection(LowConjugate):
    def dual_interval(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.full(y.shape, -2.0), np.full(y.shape, 2.0)


@dataclass(frozen=True)
class NarrowProjection(LowConjugate):
    def project_dual(self, a: FloatArray, y: FloatArray) -> FloatArray:
        return np.clip(a, -0.5, 0.5)


@dataclass(frozen=True)
class FarSmoothing(Smoothable, LogCoshLoss):
    def smoothed(self, mu: float) -> Loss:
        return SquaredLoss()

    def smoothing_error(self, mu: float) -> float:
        return 0.5 * mu


@dataclass(frozen=True)
class WrongModel(CvxModelled, LogCoshLoss):
    def cvxpy_value(self, cp: object, u: object, y: FloatArray) -> object:
        return SquaredLoss().cvxpy_value(cp, u, y)


@dataclass(frozen=True)
class FalselyEven(OfResidual, LogCoshLoss):
    even: ClassVar[bool] = True

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return np.where(u > y, 2.0, 1.0) * LogCoshLoss.value(self, u, y)

    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return np.where(u > y, 2.0, 1.0) * LogCoshLoss.derivative(self, u, y)


@dataclass(frozen=True)
class Recoding(LogCoshLoss):
    def check_target(self, y: FloatArray, where: str) -> FloatArray:
        return y + 1.0


BROKEN = [
    (HalfSlope(), "check_gradient_by_differences"),
    (WrongHessian(), "check_hessian_by_differences"),
    (TooSmooth(), "check_curvature_bounds"),
    (TooConvex(), "check_curvature_bounds"),
    (HighInfimum(), "check_infimum"),
    (Bounded(), "check_convexity"),
    (Overflowing(), "check_extreme_predictions"),
    (Overwriting(), "check_arrays"),
    (HandsBack(), "check_arrays"),
    (SinglePrecision(), "check_arrays"),
    (CountsRows(), "check_weights"),
    (Mutable(), "check_value_semantics"),
    (LowConjugate(), "check_fenchel_young"),
    (WideProjection(), "check_dual_projection"),
    (NarrowProjection(), "check_dual_projection"),
    (FarSmoothing(), "check_smoothing"),
    (WrongModel(), "check_cvxpy_agrees"),
    (FalselyEven(), "check_closed_forms"),
    (Recoding(), "check_target_coding"),
]


@pytest.mark.parametrize(
    ("loss", "check"), BROKEN, ids=lambda v: v if isinstance(v, str) else type(v).__name__
)
def test_the_suite_finds_what_is_broken(loss: DataFit, check: str) -> None:
    report = run_loss_suite(loss, real, rounds=1)
    assert check in {result.name.split("[")[0] for result in report.failures}
    with pytest.raises(CheckFailure, match=check):
        report.raise_if_failed()


@dataclass(frozen=True)
class FalselyQuadratic(Quadratic, LogCoshLoss):
    """Its second derivative varies."""


def test_the_suite_finds_a_false_quadratic() -> None:
    report = run_loss_suite(FalselyQuadratic(), real, rounds=1)
    assert [result.name for result in report.failures] == ["check_quadratic[0]"]


def test_an_unusable_target_is_a_failure_not_a_skip() -> None:
    report = run_loss_suite(LogisticLoss(), real, rounds=1)
    assert not report.ok
    assert "two classes" in report.failures[0].detail


def test_the_suite_needs_no_test_framework() -> None:
    program = (
        "import sys\n"
        "sys.modules['pytest'] = sys.modules['hypothesis'] = sys.modules['cvxpy'] = None\n"
        "import numpy as np\n"
        "from sparsemodel.losses import SquaredLoss\n"
        "from sparsemodel.testing import run_loss_suite\n"
        "report = run_loss_suite(SquaredLoss(), lambda rng, n: rng.normal(size=n), rounds=1)\n"
        "report.raise_if_failed()\n"
        "refused = [r for r in report.results if r.outcome.value == 'refused']\n"
        "assert 'CVXPY is not installed' in [r.detail for r in refused]\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_losses_that_share_nothing_are_different_values() -> None:
    losses = builtin_losses()
    assert len(set(losses)) == len(losses)
    assert len({HuberLoss(delta=2), HuberLoss(delta=2.0), HuberLoss(), CoxLoss(), CoxLoss()}) == 3
