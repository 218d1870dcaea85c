"""Exchanges that a model prices and the objective judges, and of several units at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import nnls
from scipy.signal import lfilter
from scipy.special import expit

import sparsemodel as sm
from sparsemodel.designs import DenseDesign
from sparsemodel.interfaces import Context, Stop, UnboundedError
from sparsemodel.numerics import (
    ExchangeSearch,
    ExchangeTrials,
    RegressionObjective,
    Rounds,
    Threshold,
    armijo_step,
    minimise_on_support,
    minimise_restricted,
)
from sparsemodel.numerics.exchange import batched_newton
from sparsemodel.numerics.exchange.greedy import grown
from sparsemodel.numerics.exchange.hessian_rows import HessianRows
from sparsemodel.numerics.support.thresholding import thresholded
from sparsemodel.testing.instances import catalogue
from sparsemodel.testing.instances.sabotage import Fuse, SabotagedDesign, poison
from sparsemodel_backends.exchange import Exchange
from sparsemodel_backends.iiht import IIHT


def separable(n: int = 80, p: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    A = rng.standard_normal((n, p))
    return A, np.sign(A[:, :8] @ np.tile([1.0, -1.0], 4))


def test_nearly_separable_classes_cost_less_with_more_columns() -> None:
    A, y = separable()
    w = sm.Variable(A.shape[1], name="w")
    goal = sm.minimize(sm.logistic_loss(A @ w, y) + sm.ridge(w, 1e-6))
    values = [sm.Problem(goal, sm.card(w) <= k).solve(effort="low").value for k in (8, 20)]
    assert values == sorted(values, reverse=True)


def test_fresh_starts_replace_a_worse_support_only_and_are_made_once() -> None:
    A, y = separable()
    w = sm.Variable(A.shape[1], name="w")
    goal = sm.minimize(sm.logistic_loss(A @ w, y) + sm.ridge(w, 1e-6))
    objective = RegressionObjective(sm.Problem(goal, sm.card(w) <= 20).form)
    trials = ExchangeTrials(objective, minimise_restricted, 6, lambda: False)
    mixed = sm.minimize(sm.logistic_loss(A @ w, y) + sm.ridge(w, 1.0))
    other = RegressionObjective(sm.Problem(mixed, sm.card(w) <= 8).form)
    telling = ExchangeTrials(other, minimise_restricted, 6, lambda: False)
    following, end = telling.improved(other.origin()), other.origin()
    while following is not None:
        end, following = following, telling.improved(following)
    assert telling.restarted(end, Rounds(1.0, 100)) is None, "the model tells of other supports"
    start = trials.debiased(objective.point(np.arange(20), np.zeros(20)))
    found = trials.restarted(start, Rounds(1.0, 100))
    assert found is not None
    assert found.value < start.value
    how = (minimise_restricted, 20, trials._minimised_on, trials.better, lambda: False)
    assert grown(objective, *how).support.size == 20, "its columns each gain something"
    assert trials.restarted(start, Rounds(1.0, 100)) is None, "the starts would be the same"


def test_no_fresh_starts_where_a_smooth_loss_refuses_what_the_model_ranks_next() -> None:
    """Those of a loss with kinks are asked for in the next test."""
    rng = np.random.default_rng(6)
    A, x = rng.standard_normal((200, 50)), np.zeros(50)
    x[rng.choice(50, 5, replace=False)] = rng.choice([-1, 1], 5) * rng.uniform(0.5, 2.0, 5)
    y = np.where(rng.random(200) < expit(A @ x), 1.0, -1.0)
    w = sm.Variable(50)
    goal = sm.minimize(sm.logistic_loss(A @ w, y) + sm.ridge(w, 1e-3))
    objective = RegressionObjective(sm.Problem(goal, sm.card(w) <= 5).form)
    trials = ExchangeTrials(objective, minimise_restricted, 6, lambda: False)
    rounds = Rounds(1.0, 9)
    following = end = objective.origin()
    while following is not None:
        end, following = following, trials.improved(following)
    assert trials._misled(end), "the model promises a decrease that no exchange gives"
    assert trials.beside(end, rounds) is None
    before = objective.work.factorizations
    assert trials.restarted(end, rounds) is None
    assert objective.work.factorizations == before, "nothing was minimised"


@pytest.mark.parametrize(
    ("seed", "known"),
    [(8, 0.18692658), pytest.param(15, 0.10694905, marks=pytest.mark.slow)],
)
def test_fresh_starts_follow_where_the_model_promises_what_the_objective_refuses(
    seed: int, known: float
) -> None:
    """Where a hinge is straight the model knows no curvature; ends were 14 and 55 % higher."""
    rng = np.random.default_rng(seed)
    A = lfilter([1.0], [1.0, -0.9], rng.standard_normal((50, 24)), axis=1)
    x, w = np.zeros(24), sm.Variable(24)
    x[rng.choice(24, 6, replace=False)] = rng.standard_normal(6)
    z = A @ x
    y = np.where(rng.random(50) < expit(2.0 * z / z.std()), 1.0, -1.0)
    goal = sm.minimize(sm.smoothed_hinge_loss(A @ w, y, gamma=0.25) + sm.ridge(w, 1e-3))
    assert sm.Problem(goal, sm.card(w) <= 6).solve().value <= known + 1e-6


@pytest.mark.parametrize(
    ("method", "m", "k", "seed"),
    [
        pytest.param("grasp", 52, 13, 1, marks=pytest.mark.slow),
        pytest.param("iiht", 77, 13, 0, marks=pytest.mark.slow),
        ("iiht", 52, 10, 9),
    ],
)
def test_the_default_is_no_worse_than_its_starts_where_classes_are_separable(
    method: str, m: int, k: int, seed: int
) -> None:
    rng = np.random.default_rng((seed, 256, k))
    y = np.where(rng.permutation(m) < m // 2, 1.0, 0.0)
    A = y[:, None] * rng.standard_normal((m, 1)) + rng.standard_normal((m, 256))
    w = sm.Variable(256, name="w")
    goal = sm.minimize(sm.logistic_loss(A @ w, y) + sm.ridge(w, 2e-6 / m))
    problem = sm.Problem(goal, sm.card(w) <= k)
    known = problem.solve(method, start=np.zeros(256)).value
    assert problem.solve().value <= known * (1.0 + 1e-9)


def test_an_impatient_approach_ends_where_the_objective_hardly_falls() -> None:
    A, y = separable()
    w = sm.Variable(A.shape[1], name="w")
    goal = sm.minimize(sm.logistic_loss(A @ w, y) + sm.ridge(w, 1e-3))
    objective = RegressionObjective(sm.Problem(goal, sm.card(w) <= 8).form)
    patient, at, rest = Threshold(objective.origin()), [], IIHT().with_patience(0.1)
    assert IIHT().with_patience(2.0) == IIHT()
    while rest.stopped(objective, patient) is None:
        patient = armijo_step(objective, patient)
        at.append(patient.point.value)
    falls = 1.0 - np.divide(at[1:], at[:-1])
    assert 30 < len(at) < 400
    assert 0.9 ** len(at) + sum(0.1 * 0.9**i * f for i, f in enumerate(falls[::-1])) <= 1e-3
    slower = thresholded(objective, 400, lambda: False)
    assert slower.value <= at[-1] <= slower.value * 1.01
    assert thresholded(objective, 400, lambda: True).value == objective.origin().value


@pytest.mark.parametrize("scale", [1.0, 1e-8])
def test_large_supports_are_replaced_in_part_before_the_search_ends(scale: float) -> None:
    """Near interpolation no exchange, but several at a time, find much better supports."""
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((40, 80)), scale * rng.standard_normal(40)
    w = sm.Variable(80)
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, y)), sm.card(w) <= 32)
    objective = RegressionObjective(problem.form)
    origin = objective.origin()
    rows = HessianRows(objective, origin, places=32)
    linear = rows.reduced_gradient(-objective.gradient(origin))
    search = ExchangeSearch(rows, linear, most=32)
    assert search.descend(10_000, lambda: False)
    before, all_of_it = search.gain, float(np.mean(y**2))
    assert not search.exchange_blocks(lambda: True), "the time is over"
    assert search.exchange_blocks(lambda: False)
    assert all_of_it - search.gain < 0.7 * (all_of_it - before)
    found = A[:, search.support]
    left = float(np.mean((y - found @ np.linalg.lstsq(found, y, rcond=None)[0]) ** 2))
    assert all_of_it - search.gain == pytest.approx(left, rel=1e-6)
    assert not search.exchange_blocks(lambda: False)
    best = min(problem.solve(b).value for b in ("foba", "omp", "nhtp", "exchange:rounds=0"))
    assert problem.solve().value <= best * (1.0 + 1e-9)


@pytest.mark.parametrize(("classes", "k", "seed"), [(3, 2, 24), (4, 3, 19)])
def test_a_rough_model_of_classes_ends_no_search_that_an_exchange_improves(
    classes: int, k: int, seed: int
) -> None:
    rng, n = np.random.default_rng(seed), 10 * classes
    A, w = rng.standard_normal((n, 8)), sm.Variable((8, classes))
    A += 2.0 * rng.standard_normal((n, 1))
    y = (A[:, :classes] + rng.gumbel(size=(n, classes))).argmax(axis=1)
    goal = sm.minimize(sm.multinomial_loss(A @ w, y) + sm.ridge(w, 1e-4))
    objective = RegressionObjective(sm.Problem(goal, sm.card(w, axis=1) <= k).form)
    trials = ExchangeTrials(objective, minimise_restricted, k * (8 - k), lambda: False)
    start = np.sort(rng.choice(8, k, replace=False))
    point = trials.debiased(objective.point(start, np.zeros((k, classes))))
    while (following := trials.improved(point)) is not None:
        point = following
    for out in point.support:
        for into in np.setdiff1d(np.arange(8), point.support):
            other = np.sort(np.append(np.setdiff1d(point.support, out), into))
            assert not trials.better(minimise_restricted(objective, other, point), point)


@pytest.mark.parametrize("seed", [1, 15, 32])
def test_a_few_changes_of_level_in_few_rows_are_searched_for_beyond_the_model(seed: int) -> None:
    """A quadratic model of a Huber loss on 30 rows says nothing of supports far away."""
    rng, n, p, k = np.random.default_rng(seed), 30, 24, 4
    begins = np.sort(rng.choice(np.arange(1, n), p, replace=False))
    A = (np.arange(n)[:, None] >= begins).astype(float)
    levels = A[:, rng.choice(p, k, replace=False)] @ rng.choice([-1.0, 1.0], k)
    w = sm.Variable(p, name="w")
    loss = sm.huber_loss(A @ w, levels + 0.3 * rng.standard_t(2, n), delta=0.5)
    problem = sm.Problem(sm.minimize(loss), sm.card(w) <= k)
    assert problem.solve().value <= (1.0 + 1e-6) * problem.solve(effort="high").value


def test_perturbations_replace_most_of_a_support_of_signed_coefficients() -> None:
    """Columns of a factor model on 30 rows: replacing half of the support leads back to it."""
    rng, n, p, k = np.random.default_rng(4), 30, 60, 7
    A = rng.standard_normal((n, 4)) @ rng.standard_normal((4, p))
    A += 0.4 * rng.standard_normal((n, p))
    y = A[:, :k] @ rng.uniform(0.5, 2.0, k)
    y = y / y.std() + 0.5 * rng.standard_normal(n)
    w = sm.Variable(p, name="w")
    found = sm.Problem(sm.minimize(sm.squared_loss(A @ w, y)), sm.card(w) <= k, w >= 0).solve()
    known = nnls(A[:, [1, 4, 30, 31, 35, 36, 43]], y)[1] ** 2 / (2 * n)
    assert found.value <= (1.0 + 1e-6) * known


def test_classes_are_searched_on_where_their_model_knows_no_more() -> None:
    rng, n, p, m, r = np.random.default_rng(1065), 60, 200, 4, 0.7
    A = rng.standard_normal((n, p))
    for j in range(1, p):
        A[:, j] = r * A[:, j - 1] + np.sqrt(1.0 - r * r) * A[:, j]
    truth, w, c = np.zeros((p, m)), sm.Variable((p, m)), sm.Variable(m)
    truth[rng.choice(p, 3, replace=False)] = rng.standard_normal((3, m)) * rng.choice([1, 3])
    y = np.argmax(A @ truth + rng.gumbel(size=(n, m)), axis=1)
    goal = sm.minimize(sm.multinomial_loss(A @ w + c, y) + sm.ridge(w, 1e-2))
    problem = sm.Problem(goal, sm.card(w, axis=1) <= 3)
    objective = RegressionObjective(problem.form)
    better = np.sort(np.append([59, 84, 158], objective.cardinality.free))
    known = minimise_on_support(objective, better, objective.origin())
    assert problem.solve().value <= known.value * (1.0 + 1e-9)


def test_rows_for_classes_are_found_in_few_passes() -> None:
    rng, m = np.random.default_rng(0), 4
    A, w, b = rng.standard_normal((250, 100)), sm.Variable((100, m)), sm.Variable((1, m))
    truth = np.zeros((100, m))
    truth[:5] = 2.0 * rng.standard_normal((5, m))
    y = (A @ truth + rng.gumbel(size=(250, m))).argmax(axis=1)
    loss = sm.multinomial_loss(A @ w + np.ones((250, 1)) @ b, y)
    found = sm.Problem(sm.minimize(loss + sm.ridge(w, 1e-3)), sm.card(w, axis=1) <= 5).solve()
    assert np.flatnonzero(w.value.any(axis=1)).tolist() == [0, 1, 2, 3, 4]
    assert found.passes < 100


def test_groups_of_correlated_columns_end_no_higher_than_a_known_support() -> None:
    rng, r, better = np.random.default_rng(228), 0.9, [4, 18, 29, 31, 37]
    A = rng.normal(size=(150, 150))
    for j in range(1, 150):
        A[:, j] = r * A[:, j - 1] + np.sqrt(1.0 - r * r) * A[:, j]
    groups, truth = np.repeat(np.arange(50), 3), np.zeros(150)
    for group in rng.choice(50, 5, replace=False):
        truth[groups == group] = 0.5 * rng.normal(size=3)
    y = A @ truth + (A @ truth).std() * rng.normal(size=150)
    w = sm.Variable(150)
    goal = sm.minimize(sm.squared_loss(A @ w - y) + sm.ridge(w, 1e-2))
    problem = sm.Problem(goal, sm.card(w, groups=groups) <= 5)
    objective = RegressionObjective(problem.form)
    known = minimise_on_support(
        objective, np.flatnonzero(np.isin(groups, better)), objective.origin()
    )
    assert problem.solve().value <= known.value * (1.0 + 1e-9)


def test_a_descent_in_a_model_that_leads_no_lower_makes_the_next_shorter() -> None:
    """With classes nearly separable each would be as long as the first, and in vain."""
    rng = np.random.default_rng(7)
    A = rng.standard_normal((150, 600))
    for j in range(1, 600):
        A[:, j] = 0.5 * A[:, j - 1] + np.sqrt(0.75) * A[:, j]
    y = np.sign(A[:, :40] @ rng.standard_normal(40))
    w = sm.Variable(600, name="w")
    goal = sm.minimize(sm.logistic_loss(A @ w, y) + sm.ridge(w, 1e-8))
    solution = sm.Problem(goal, sm.card(w) <= 40).solve(Exchange(rounds=0))
    assert solution.passes < 700  # 1100 otherwise


def test_separable_classes_are_searched_without_each_unit() -> None:
    """Models at the end say too little there: the search had stayed a third above this support."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 400))
    y = (A[:, :4].sum(axis=1) + 0.3 * rng.standard_normal(60) > 0.0).astype(float)
    w = sm.Variable(400)
    objective = sm.minimize(sm.logistic_loss(A @ w, y) + sm.ridge(w, 1e-6))
    problem = sm.Problem(objective, sm.card(w) <= 6)
    assert problem.solve().value <= 0.00105


def test_a_search_does_not_claim_to_have_ended_where_products_fail() -> None:
    def ended(fuse: Fuse) -> tuple[Stop | None, float]:
        form = catalogue.logistic_ridge().form(lambda a: SabotagedDesign(DenseDesign(a), fuse))
        context = Context(minimise_on_support, on_iterate=lambda _: counts.append(fuse.products))
        try:
            with np.errstate(all="ignore"):
                found = Exchange().solve(RegressionObjective(form), context)
        except UnboundedError as error:
            said.add(str(error))
            return None, math.inf
        return found.stop, found.point.value

    counts: list[int] = []
    said = set[str]()
    (_, least), first = ended(Fuse()), counts[0]
    failing = range(first, counts[-1] - 1)  # the last is a gradient at the point that is returned
    assert len(failing) > 20
    for after in failing:
        stop, value = ended(Fuse(poison, after))
        assert stop in {None, Stop.NON_FINITE}, f"products fail from {after + 1} on"
        assert value > least, "nothing was minimised to full accuracy"
    assert len(said) == 1
    assert "entries that are NaN" in said.pop()  # the problem has a ridge already


def test_five_units_are_found_with_two_hessians_and_two_gradients() -> None:
    rng = np.random.default_rng(0)
    A, w = rng.standard_normal((200, 50)), sm.Variable(50)
    y = np.sign(A[:, :5] @ np.array([2.0, -2.0, 2.0, -2.0, 2.0]) + 0.5 * rng.standard_normal(200))
    goal = sm.minimize(sm.logistic_loss(A @ w, y) + sm.ridge(w, 1e-3))
    objective = RegressionObjective(sm.Problem(goal, sm.card(w) <= 5).form)
    objective.gradient(objective.origin())
    before = objective.work.passes
    found = Exchange().solve(objective, Context(minimise_on_support))
    assert found.point.support.tolist() == [0, 1, 2, 3, 4]
    # Half a pass for each row of a Hessian and for a gradient, at zero and at the minimiser, and
    # where that is reached to full accuracy none: the model hardly differs.
    assert objective.work.passes - before <= 2 * 25.0 + 0.5
    trials = ExchangeTrials(objective, minimise_on_support, 6, lambda: False)
    assert trials.debiased(found.point) is found.point


def test_supports_that_are_judged_in_parts_share_one_reading_of_their_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    A, w = rng.standard_normal((300, 30)), sm.Variable(30)
    y = rng.poisson(np.exp(0.3 * A[:, 0])).astype(float)
    goal = sm.minimize(sm.poisson_loss(A @ w, y))
    objective = RegressionObjective(sm.Problem(goal, sm.card(w) <= 3).form)
    supports = np.array([[0, 1, 2], [0, 3, 4], [0, 5, 6], [1, 7, 8]])
    ask = (objective, np.inf, supports, np.zeros((4, 3)), np.arange(4.0))
    whole = batched_newton.lowest_first(*ask)
    read, restrict = [], DenseDesign.restrict
    monkeypatch.setattr(DenseDesign, "restrict", lambda s, c: read.append(c.size) or restrict(s, c))
    monkeypatch.setattr(batched_newton, "_AT_ONCE", 1)
    parts = batched_newton.lowest_first(*ask)
    np.testing.assert_array_equal(parts, whole)
    assert read == [9]


def test_rows_that_are_likely_to_be_needed_are_read_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    A, w = rng.standard_normal((400, 300)), sm.Variable(300)
    loss = sm.squared_loss(A @ w, A[:, :16] @ rng.uniform(1.0, 2.0, 16))
    read, form = [], HessianRows._form
    monkeypatch.setattr(HessianRows, "_form", lambda s, new: read.append(new.size) or form(s, new))
    sm.Problem(sm.minimize(loss), sm.card(w) <= 16).solve("exchange")
    assert len(read) <= 5, "eight at a time, or all others at last"


def test_what_perturbations_cost_is_counted_and_not_forecast_where_prices_are_not_exact() -> None:
    A, y = separable(40, 4200)
    for loss, effort in ((sm.logistic_loss, 0.5), (sm.squared_loss, 0.32)):
        w = sm.Variable(A.shape[1], name="w")
        problem = sm.Problem(sm.minimize(loss(A @ w, y) + sm.ridge(w, 1e-2)), sm.card(w) <= 80)
        state = Exchange().init(RegressionObjective(problem.form), Context(minimise_restricted))
        assert state.rounds._effort == pytest.approx(effort, abs=0.01)
    A, y = separable(80, 60)
    w = sm.Variable(60, name="w")
    problem = sm.Problem(
        sm.minimize(sm.logistic_loss(A @ w, y) + sm.ridge(w, 0.1)), sm.card(w) <= 4
    )
    objective = RegressionObjective(problem.form)
    trials = ExchangeTrials(objective, minimise_restricted, 6, lambda: False)
    point = trials.debiased(objective.point(np.array([0, 1, 2, 3]), np.zeros(4)))
    before = trials._changes
    trials.round(point, np.random.default_rng(0), Rounds(1.0, 100))
    assert trials._changes >= before + 24 * 4
