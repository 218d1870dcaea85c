"""Losses written by somebody else are treated by their facets, never by their class or name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from scipy.special import entr, expit
from scipy.stats import nbinom

import sparsemodel as sm
from sparsemodel.certificates import verify
from sparsemodel.certificates.dual_bounds.bound_search import extractable
from sparsemodel.certificates.proving.gram.searchable import objections
from sparsemodel.compiler.reductions.compress import Compress
from sparsemodel.interfaces import (
    Affine,
    Curved,
    FloatArray,
    IntervalConjugable,
    Likelihood,
    Loss,
    LossTraits,
    SquaredDistance,
    TargetKind,
)
from sparsemodel.losses import builtin_losses
from sparsemodel.numerics import RegressionObjective
from sparsemodel.selection.criteria import Criterion
from sparsemodel.selection.path import PathPoint
from sparsemodel.selection.regressions import regression_criterion_values
from sparsemodel.testing import run_loss_suite


@dataclass(frozen=True)
class SquaredLogs(SquaredDistance, IntervalConjugable, Loss):
    """``(3/2) (u - log y)**2``: neither the centre nor the factor of the built-in loss."""

    name: ClassVar[str] = "squared_logs"
    steepness: ClassVar[float] = 3.0

    def centre(self, y: FloatArray) -> FloatArray:
        return np.log(y)

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return 1.5 * np.square(u - np.log(y))

    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return 3.0 * (u - np.log(y))

    def second_derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return np.full(u.shape[0], 3.0)

    def curvature(self, y: FloatArray) -> tuple[float, float]:
        return 3.0, 3.0

    def infimum(self, y: FloatArray, c: FloatArray) -> float:
        return 0.0

    def conjugate(self, a: FloatArray, y: FloatArray) -> FloatArray:
        return a * a / 6.0 + a * np.log(y)

    def dual_interval(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.full(y.shape, -np.inf), np.full(y.shape, np.inf)


@dataclass(frozen=True)
class Reward(Affine, IntervalConjugable, Loss):
    """``-2 y u``: a linear term whose slope is not the target."""

    name: ClassVar[str] = "reward"

    def slope(self, y: FloatArray) -> FloatArray:
        return -2.0 * y

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return -2.0 * y * u

    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return -2.0 * y + 0.0 * u

    def second_derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return np.zeros(u.shape[0])

    def curvature(self, y: FloatArray) -> tuple[float, float]:
        return 0.0, 0.0

    def conjugate(self, a: FloatArray, y: FloatArray) -> FloatArray:
        return np.where(a == -2.0 * y, 0.0, np.inf)

    def dual_interval(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return -2.0 * y, -2.0 * y


@dataclass(frozen=True)
class Odds(Curved, IntervalConjugable, Loss):
    """``log(1 + exp(-y u))`` under another name."""

    name: ClassVar[str] = "odds"
    strictly_convex: ClassVar[bool] = True
    target_kind: ClassVar[TargetKind] = TargetKind.TWO_CLASSES

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return np.logaddexp(0.0, -y * u)

    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return -y * expit(-y * u)

    def second_derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return expit(u) * expit(-u)

    def curvature(self, y: FloatArray) -> tuple[float, float]:
        return 0.0, 0.25

    def infimum(self, y: FloatArray, c: FloatArray) -> float:
        return 0.0

    def conjugate(self, a: FloatArray, y: FloatArray) -> FloatArray:
        s = -a * y
        return -(entr(s) + entr(1.0 - s))

    def dual_interval(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.minimum(-y, 0.0), np.maximum(-y, 0.0)


@dataclass(frozen=True)
class NegativeBinomial(Curved, Likelihood, Loss):
    """``(y + r) log(r + exp u) - y u``: counts with mean ``exp u`` and ``r`` known."""

    r: float = 2.0
    name: ClassVar[str] = "negative_binomial"
    strictly_convex: ClassVar[bool] = True

    def value(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return (y + self.r) * np.logaddexp(np.log(self.r), u) - y * u

    def derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        return (y + self.r) * expit(u - np.log(self.r)) - y

    def second_derivative(self, u: FloatArray, y: FloatArray) -> FloatArray:
        t = u - np.log(self.r)
        return (y + self.r) * expit(t) * expit(-t)

    def curvature(self, y: FloatArray) -> tuple[float, float]:
        return 0.0, 0.25 * (float(y.max(initial=0.0)) + self.r)


def counts(rng: np.random.Generator, n: int) -> FloatArray:
    return rng.poisson(2.0, n).astype(np.float64)


def positive(rng: np.random.Generator, n: int) -> FloatArray:
    return rng.gamma(2.0, size=n)


@pytest.fixture
def data():
    rng = np.random.default_rng(5)
    A = rng.standard_normal((60, 9)) + 0.4 * rng.standard_normal((60, 1))
    return A, np.exp(A[:, [1, 4, 6]] @ [1.0, -0.8, 0.5] + 0.3 * rng.standard_normal(60))


def both(A, y, *, reward: bool = False):
    """The stranger's problem, and the same one with built-in losses."""
    out = []
    for own in (True, False):
        w = sm.Variable(A.shape[1], name="w")
        u = A @ w
        fit = sm.loss_term(SquaredLogs(), u, y) if own else 3.0 * sm.squared_loss(u, np.log(y))
        more = sm.ridge(w, 1e-2)
        if reward and own:
            more = more + sm.loss_term(Reward(), A[:5] @ w, np.arange(5.0))
        elif reward:
            more = more - 2.0 / 5.0 * (np.arange(5.0) @ A[:5]) @ w
        out.append(sm.Problem(sm.minimize(fit + more), sm.card(w) <= 3))
    return out


def test_the_suite_knows_what_the_facets_promise():
    for loss, target in (
        (SquaredLogs(), positive),
        (Reward(), positive),
        (NegativeBinomial(), counts),
    ):
        run_loss_suite(loss, target, rounds=2).raise_if_failed()


@pytest.mark.parametrize("reward", [False, True])
def test_a_squared_loss_of_ones_own_is_proved_by_the_products_of_the_data(data, reward):
    own, builtin = both(*data, reward=reward)
    assert objections(own.form) == ()
    assert extractable(own.form)
    certificates = [problem.prove(time_limit=30) for problem in (own, builtin)]
    assert certificates[0].claim is certificates[1].claim
    assert certificates[0].value == pytest.approx(certificates[1].value, rel=1e-9)
    assert certificates[0].bound == pytest.approx(certificates[1].bound, rel=1e-7)
    assert verify(certificates[0], own.form).claim is certificates[0].claim


def test_the_curvature_of_the_data_serves_its_bound(data):
    own, builtin = both(*data)
    bounds = []
    for problem in (own, builtin):
        problem.solve("nhtp")
        bounds.append(problem.certify().bound)
    assert bounds[0] == pytest.approx(bounds[1], rel=1e-4)


def test_many_observations_of_it_are_compressed():
    rng = np.random.default_rng(6)
    A = rng.standard_normal((9000, 20))
    y = np.exp(A[:, 3] + 0.1 * rng.standard_normal(9000))
    (own, _) = both(A, y)
    assert Compress.pays(own.form)
    small = Compress.from_form(own.form).apply(own.form)
    x = rng.standard_normal(20)
    value = [RegressionObjective(form).point_from(x).value for form in (own.form, small)]
    assert value[1] == pytest.approx(value[0], rel=1e-10)


def test_labels_that_can_be_separated_are_called_so():
    A = np.random.default_rng(7).standard_normal((30, 4))
    w = sm.Variable(4, name="w")
    term = sm.loss_term(Odds(), A @ w, np.sign(A[:, 2]))
    problem = sm.Problem(sm.minimize(term), sm.card(w) <= 1)
    with pytest.raises(sm.SeparableDataError, match="odds has no minimiser"):
        problem.solve()


def test_traits_follow_from_facets_and_cannot_be_changed():
    traits = LossTraits.of(SquaredLogs(), np.ones(1))
    assert traits.quadratic
    assert traits.square
    assert traits.gram
    assert not traits.affine
    assert (traits.lower, traits.upper) == (3.0, 3.0)
    with pytest.raises(AttributeError):
        traits.quadratic = False  # type: ignore[misc]
    assert LossTraits.of(Odds(), np.ones(1)).separable
    by_name = {loss.name: LossTraits.of(loss, np.ones(1)) for loss in builtin_losses()}
    assert {n for n, t in by_name.items() if t.separable} == {"logistic_loss", "multinomial_loss"}
    assert {n for n, t in by_name.items() if t.gram} == {"squared_loss", "linear_term"}
    assert not any(t.smooth for n, t in by_name.items() if n in ("hinge_loss", "absolute_loss"))


def test_traits_of_a_sum_are_what_all_share():
    both_kinds = LossTraits.common(
        [LossTraits.of(SquaredLogs(), np.ones(1)), LossTraits.of(Odds(), np.ones(1))]
    )
    assert both_kinds.curved
    assert both_kinds.has_hessian
    assert not both_kinds.quadratic
    assert (both_kinds.lower, both_kinds.upper) == (0.0, 3.0)


@pytest.fixture
def counted():
    rng = np.random.default_rng(9)
    A = rng.standard_normal((80, 8))
    mean = np.exp(A[:, [0, 5]] @ [0.9, -0.7] + 0.5)
    return A, rng.negative_binomial(2.0, 2.0 / (2.0 + mean)).astype(np.float64)


def of_counts(A, y):
    w, c = sm.Variable(A.shape[1], name="w"), sm.Variable(name="c")
    fit = sm.loss_term(NegativeBinomial(), A @ w + c, y)
    return sm.Problem(sm.minimize(fit + sm.ridge(w, 1e-4)), sm.card(w) <= 2)


@pytest.mark.parametrize("backend", ["pgd", "ht_svrg"])
def test_bounds_on_the_curvature_may_depend_on_the_target(counted, backend):
    A, y = counted
    problem = of_counts(A, y)
    assert problem.form.traits.upper == 0.25 * (y.max() + 2.0)
    exact = problem.solve("exhaustive").value
    assert problem.solve(backend).value == pytest.approx(exact, rel=1e-6)


def test_its_information_criteria_are_those_of_the_likelihood(counted):
    A, y = counted
    problem = of_counts(A, y)
    assert problem.path(range(5)).select("ebic").k == 2
    x = np.random.default_rng(1).standard_normal((2, 9)) * [1, 0, 0, 1, 0, 0, 0, 0, 1]
    points = [PathPoint(2, one, 0.0) for one in x]
    scores = regression_criterion_values(problem.form, points, Criterion("ebic"))
    means = [np.exp(A @ one[:8] + one[8]) for one in x]
    logs = [nbinom.logpmf(y, 2.0, 2.0 / (2.0 + mean)).sum() for mean in means]
    assert scores[0] - scores[1] == pytest.approx(2.0 * (logs[1] - logs[0]), rel=1e-9)
