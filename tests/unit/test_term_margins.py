"""What a term contributes to a bound, in exact arithmetic: never less is given away than rounds."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates.dual_bounds import unpenalised
from sparsemodel.certificates.dual_bounds.conjugates import domain_slack, plane_error, term_bound
from sparsemodel.certificates.statements.objective_interval import (
    TermValue,
    feasible_upper,
    primal,
)
from sparsemodel.designs import DenseDesign
from sparsemodel.interfaces import Term
from sparsemodel.losses import (
    AbsoluteLoss,
    GammaLoss,
    HingeLoss,
    LogisticLoss,
    MultinomialLoss,
    PoissonLoss,
    QuantileLoss,
    SquaredLoss,
    TweedieLoss,
)


def exact_constant(term: Term, a: np.ndarray, delta: np.ndarray) -> Fraction:
    """Return the least ``sum_i c_i (a_i o_i - a_i^2 / 2 - a_i y_i)`` within ``delta`` of ``a``."""
    offset = np.zeros(a.size) if term.offset is None else term.offset
    total = Fraction(0)
    for i, (y, c, o) in enumerate(zip(term.target, term.weights, offset, strict=True)):
        ends = [Fraction(a[i]) + s * Fraction(delta[i]) for s in (-1, 0, 1)]
        total += Fraction(c) * min(
            e * Fraction(o) - e * e / 2 - e * Fraction(y) for e in ends
        )  # concave
    return total


@pytest.mark.parametrize("cancels", ["nothing", "the conjugate", "the offsets"])
@pytest.mark.parametrize("moved", [0.0, 1e-9])
def test_the_constant_of_a_term_is_rounded_down(cancels: str, moved: float) -> None:
    """Also where next to nothing is left of large numbers, and for every dual point nearby."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        a, c, y = rng.standard_normal(2), rng.uniform(0.5, 2.0, 2), rng.standard_normal(2)
        offset = None
        if cancels == "the conjugate":
            y = -0.5 * a * (1.0 + 1e-9 * rng.standard_normal(2))
        if cancels == "the offsets":
            offset = 1e6 / (c * a) * [1.0, -1.0]
        term = Term(DenseDesign(np.ones((2, 1))), SquaredLoss(), y, c, offset)
        delta = np.full(2, moved)
        found = term_bound(term, a, delta)
        assert not isinstance(found, str)
        assert Fraction(found.constant) <= exact_constant(term, a, delta)
        for i, end in product(range(2), (-1, 1)):
            slope = Fraction(c[i]) * (Fraction(a[i]) + end * Fraction(moved))
            assert abs(Fraction(found.slopes[i]) - slope) <= Fraction(found.slope_error[i])


@pytest.mark.parametrize(
    "loss", [AbsoluteLoss(), QuantileLoss(0.3), HingeLoss(), LogisticLoss()], ids=lambda x: x.name
)
def test_a_dual_point_may_move_by_its_slack(loss) -> None:
    rng = np.random.default_rng(0)
    y = rng.choice([-1.0, 1.0], 40)
    term = Term(DenseDesign(np.ones((40, 1))), loss, y, np.ones(40), None)
    lower, upper = loss.dual_interval(y)
    a = lower + (upper - lower) * rng.uniform(0.0, 1.0, 40)
    slack = domain_slack(term, a)
    assert slack.min() >= 0.0
    assert slack.max() > 0.1
    for sign in (-1.0, 1.0):
        assert np.all(np.isfinite(loss.conjugate(a + sign * slack * (1.0 - 1e-12), y)))


def test_a_dual_point_of_classes_is_as_far_from_its_plane_as_is_said() -> None:
    rng = np.random.default_rng(0)
    loss, y = MultinomialLoss(3), rng.integers(0, 3, 30).astype(float)
    a = loss.derivative(rng.standard_normal((30, 3)), y)
    term = Term(DenseDesign(np.ones((30, 1))), loss, y, np.ones(30), None)
    error = plane_error(term, a)
    sums = [abs(sum(map(Fraction, row))) for row in a.tolist()]
    assert max(sums) > 0
    assert all(
        total <= sum(map(Fraction, e)) for total, e in zip(sums, error.tolist(), strict=True)
    )


@pytest.mark.parametrize(
    "loss", [SquaredLoss(), AbsoluteLoss(), LogisticLoss(), HingeLoss()], ids=lambda x: x.name
)
def test_the_value_of_a_term_is_at_most_what_is_said_for_all_predictions_nearby(loss) -> None:
    rng = np.random.default_rng(0)
    y, u = rng.choice([-1.0, 1.0], 30), rng.standard_normal(30)
    for error in (1e-12, 1e-3, 2.0):
        found = TermValue(Term(DenseDesign(np.ones((30, 1))), loss, y, np.ones(30), None))
        found.add(slice(0, 30), u, np.full(30, error))
        value, more = found.ends()
        worst = np.maximum(loss.value(u - error, y), loss.value(u + error, y)).sum()
        assert value + more >= worst * (1.0 - 1e-13)


def test_the_value_of_classes_is_at_most_what_is_said_for_all_predictions_nearby() -> None:
    rng = np.random.default_rng(0)
    y, u = rng.integers(0, 3, 30).astype(float), rng.standard_normal((30, 3))
    loss = MultinomialLoss(3)
    for error in (1e-12, 1e-3, 2.0):
        found = TermValue(Term(DenseDesign(np.ones((30, 1))), loss, y, np.ones(30), None))
        found.add(slice(0, 30), u, np.full((30, 3), error))
        value, more = found.ends()
        own = np.arange(3) == y[:, None]
        assert value + more >= loss.value(u + np.where(own, -error, error), y).sum() * (1 - 1e-13)


@pytest.mark.parametrize(
    ("loss", "u", "y", "known"),
    [
        (GammaLoss(), -460.0, 1e-200, False),  # the true value is about -459, its tangent's -460
        (TweedieLoss(power=1.9), -400.0, 1e-150, False),
        (PoissonLoss(), 301.0, 1.0, False),
        (PoissonLoss(), -1e6, 0.0, True),
        (GammaLoss(), 1e6, 1.0, True),
        (TweedieLoss(power=1.2), -1e8, 0.0, True),  # nothing falls at a target of zero
        (TweedieLoss(power=1.9), 310.0, 0.0, True),
    ],
)
def test_a_value_is_unknown_where_a_tangent_stands_for_an_exponential(loss, u, y, known) -> None:
    """The sign of a prediction says where: a margin of its size alone knows only half of them."""
    found = TermValue(Term(DenseDesign(np.ones((1, 1))), loss, np.full(1, y), np.ones(1), None))
    found.add(slice(0, 1), np.full(1, u), np.full(1, 1e-13 * abs(u)))
    value, more = found.ends()
    assert np.isfinite(more) == known
    if known:
        assert more <= 1e-12 * (1.0 + abs(u)) * (1.0 + abs(value))


def test_large_amounts_of_zero_have_a_model(rng: np.random.Generator) -> None:
    """A model of small amounts and zeros at predictions of -1e8 was refused as an overflow."""
    small = rng.standard_normal((20, 1))
    w, c = sm.Variable(1), sm.Variable()
    loss = sm.poisson_loss(small @ w + c, rng.poisson(1.0, 20))
    zeros = sm.tweedie_loss(np.full((2, 1), -1e8) @ w, np.zeros(2), power=1.2)
    problem = sm.Problem(sm.minimize(loss + zeros + sm.ridge(w, 0.01)), sm.card(w) <= 1)
    certificate = problem.certify()
    assert w.value[0] > 1e-3
    assert certificate.upper - certificate.value < 1e-6


@pytest.mark.parametrize("kind", ["bound", "sum", "norm"])
def test_only_what_rounding_may_break_counts_as_kept(kind: str) -> None:
    """A billionth of the size of a constraint; an infeasible point has no objective to compare."""
    w = sm.Variable(3, name="w")
    kept = {"bound": w <= 1.0, "sum": w[0] + 0.0 * w[1] <= 1.0, "norm": sm.norm(w) <= 1.0}[kind]
    problem = sm.Problem(sm.minimize(sm.squared_loss(np.eye(3) @ w, 2.0 * np.eye(3)[0])), kept)
    for off, holds in ((4e-10, True), (1e-8, False), (1e-6, False), (-1e-3, True)):
        x = np.array([1.0 + off, 0.0, 0.0])
        assert (not primal(problem.form, x).violations) is holds
        assert np.isfinite(feasible_upper(problem.form, x)) == holds


@pytest.mark.parametrize("ridge", [0.0, 1.0])
def test_the_objective_at_a_point_is_at_most_what_is_said(ridge: float) -> None:
    """Of a fit without residuals but for rounding, or of little but the ridge; exactly."""
    rng, w = np.random.default_rng(0), sm.Variable(3, name="w")
    for _ in range(20):
        A, x = rng.standard_normal((5, 3)), rng.standard_normal(3)
        A, b = (1e-9 * A, np.zeros(5)) if ridge else (A, A @ x)
        problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, b) + sm.ridge(w, ridge)))
        form, total = problem.form, Fraction(0)
        for row, y, c in zip(A, form.terms[0].target, form.terms[0].weights, strict=True):
            u = sum(Fraction(v) * Fraction(t) for v, t in zip(row, x, strict=True))
            total += Fraction(c) * (u - Fraction(y)) ** 2 / 2
        total += sum(Fraction(r) * Fraction(t) ** 2 / 2 for r, t in zip(form.ridge, x, strict=True))
        assert Fraction(primal(form, x).upper) >= total


def test_supports_that_break_a_limit_are_infeasible() -> None:
    w, costs = sm.Variable(4, name="w"), np.array([1.0, 0.5, 0.75, 0.25])
    limits = [sm.card(w) <= 3, sm.card(w[:2]) <= 1, costs @ sm.chosen(w) <= 1.5]
    form = sm.Problem(sm.minimize(sm.squared_loss(np.eye(4) @ w, np.ones(4))), limits).form
    for units, holds in (((0, 3), True), ((1, 2, 3), True), ((0, 1), False), ((0, 2), False)):
        x = np.isin(np.arange(4), units).astype(float)
        assert (not primal(form, x).violations) is holds


@pytest.mark.parametrize("seed", range(6))
def test_many_observations_are_balanced_in_a_few_steps(seed, monkeypatch):
    rng, n, calls = np.random.default_rng(seed), 100_000, []
    potential = unpenalised._potential
    monkeypatch.setattr(
        unpenalised, "_potential", lambda *given: (calls.append(1), potential(*given))[1]
    )
    slopes = np.clip(rng.standard_t(2, size=n) + 1e-3, -1.0, 1.0)
    c, ends = np.full(n, 1.0 / n), np.full(n, 1.0 - 1e-9)
    theta = unpenalised._balance_newton(np.ones((n, 1)), c, slopes, -ends, ends)
    moved = np.clip(slopes + theta, -ends, ends)
    assert abs(c @ moved) <= 1e-15 * float(c @ np.abs(moved))
    assert len(calls) <= 12


@pytest.mark.parametrize("seed", range(4))
def test_classes_are_balanced_whatever_the_units_of_free_columns(seed, monkeypatch):
    rng, n, q, calls = np.random.default_rng(seed), 400, 6, []
    F = rng.standard_normal((n, q)) * 10.0 ** rng.uniform(-4.0, 4.0, q)
    scores, W, V = rng.standard_normal((n, 3)), sm.Variable((2, 3)), sm.Variable((q, 3))
    goal = sm.multinomial_loss(rng.standard_normal((n, 2)) @ W + F @ V, scores.argmax(axis=1))
    limits = sm.card(W, axis=1) <= 1
    form = sm.Problem(sm.minimize(goal + sm.ridge(W, 0.1)), limits).form
    term = form.terms[0]
    a = term.loss.derivative(3.0 * rng.standard_normal((n, 3)), term.target)
    columns = unpenalised.free_columns(form, unpenalised.unbounded_coordinates(form))
    total = MultinomialLoss.total
    monkeypatch.setattr(
        MultinomialLoss, "total", lambda *given: (calls.append(1), total(*given))[1]
    )
    slopes = term.weights[:, None] * unpenalised._tilted(form, columns[0], a, unpenalised._ROOM)
    left, size = np.abs(columns[0].T @ slopes), np.abs(columns[0].T) @ np.abs(slopes)
    assert np.all(left <= 1e-13 * size)
    assert len(calls) <= 20
