"""Supports that a model ranks next, judged by the objective before a search goes on."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.interfaces import Context, Limits
from sparsemodel.numerics import (
    ExchangeTrials,
    RegressionObjective,
    Rounds,
    SupportBeam,
    minimise_on_support,
    minimise_restricted,
)
from sparsemodel.numerics.exchange import batched_newton
from sparsemodel.numerics.exchange.batched_newton import lowest_first
from sparsemodel.numerics.exchange.models import ExchangeModels
from sparsemodel.numerics.exchange.swaps import CachedSolver
from sparsemodel_backends.exchange import Exchange


def correlated(seed: int, n: int = 60, p: int = 18) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, p))
    for j in range(1, p):
        A[:, j] = 0.7 * A[:, j - 1] + np.sqrt(0.51) * A[:, j]
    rates = np.exp(np.clip(A[:, :16:4] @ rng.choice([-0.6, 0.6], 4), -3, 3))
    return A, rng.poisson(rates).astype(float)


def counts(seed: int, k: int = 4) -> sm.Problem:
    A, y = correlated(seed)
    w = sm.Variable(A.shape[1], name="w")
    return sm.Problem(sm.minimize(sm.poisson_loss(A @ w, y) + sm.ridge(w, 1e-3)), sm.card(w) <= k)


def with_free(loss: str = "poisson_loss", k: int = 3) -> RegressionObjective:
    """Weights, offsets, an intercept and two coordinates that are not counted."""
    A, y = correlated(1)
    w, b = sm.Variable(A.shape[1], name="w"), sm.Variable(name="b")
    rng = np.random.default_rng(0)
    prediction = A @ w + b + 0.1 * rng.standard_normal(len(y))
    fit = getattr(sm, loss)(prediction, y, weights=rng.uniform(0.5, 2.0, len(y)))
    problem = sm.Problem(sm.minimize(fit + sm.ridge(w, 1e-3)), sm.card(w[2:]) <= k)
    return RegressionObjective(problem.form)


@pytest.mark.parametrize("seed", [5, 88, 95, 102])
def test_optima_that_the_model_promises_a_loss_of_are_found(seed: int) -> None:
    best = counts(seed).solve("exhaustive").value
    assert counts(seed).solve().value == pytest.approx(best, rel=1e-9)


def test_few_units_or_clear_ones_are_not_perturbed_unless_more_effort_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rounds: list[int] = []
    whole = ExchangeTrials.round

    def counted(self: ExchangeTrials, *arguments: object) -> object:
        rounds.append(1)
        return whole(self, *arguments)

    monkeypatch.setattr(ExchangeTrials, "round", counted)

    def perturbed(n: int, k: int, effort: Literal["medium", "high"] = "medium") -> bool:
        rng = np.random.default_rng(8)
        A, w = rng.standard_normal((n, 30)), sm.Variable(30)
        y = 0.8 * A[:, :k].sum(axis=1) + 2.0 * rng.standard_normal(n)
        fit = sm.huber_loss(A @ w, y, delta=0.5) + sm.ridge(w, 1e-3)
        rounds.clear()
        sm.Problem(sm.minimize(fit), sm.card(w) <= k).solve(effort=effort)
        return bool(rounds)

    assert not perturbed(60, 4), "the cheapest exchange costs .94 of what another feature gains"
    assert perturbed(60, 4, "high")
    assert perturbed(39, 4), "fewer than ten observations for each"
    assert perturbed(60, 6), ".03"
    for k, seed in ((4, 0), (6, 3)):  # the cheapest exchange costs .66 and .63
        rounds.clear()
        counts(seed, k).solve()
        assert rounds, "second derivatives have no bound"


def test_a_search_that_runners_up_improve_goes_on_for_longer() -> None:
    objective = with_free()
    trials = ExchangeTrials(objective, minimise_restricted, 6, lambda: False)
    wrong = np.union1d(objective.cardinality.free, [7, 11, 17])
    start = trials.debiased(objective.point(wrong, np.zeros(wrong.size)))
    rounds, usual = Rounds(1.0, 1000), Rounds(1.0, 1000)
    assert trials.beside(start, rounds) is not None
    for one in (rounds, usual):
        one.count([bytes([end]) for end in range(20)], better=False)
        one.count([], better=False, searches=30)
    assert usual.enough
    assert not rounds.enough


def test_the_supports_ranked_next_have_their_minimisers_and_are_near() -> None:
    objective = with_free("squared_loss")
    free = objective.cardinality.free
    support = np.union1d(free, [4, 9, 14])
    point = minimise_on_support(objective, support, objective.origin())
    found = ExchangeModels(objective).runners_up(point, 30)
    assert found is not None
    supports, x, rises = found
    assert supports.shape == x.shape == (30, 3 + free.size)
    assert np.all(np.diff(rises) >= 0.0)
    apart = [len(np.setdiff1d(some, support)) for some in supports]
    assert set(apart) == {1, 2, 3}
    assert len({tuple(np.sort(some)) for some in supports}) == 30
    single = {}
    for some, values, rise in zip(supports, x, rises, strict=True):
        order = np.argsort(some)
        there = objective.point(some[order], values[order])
        least = minimise_on_support(objective, some[order], point)
        assert there.value == pytest.approx(least.value, rel=1e-9)
        assert there.value - point.value == pytest.approx(rise, rel=1e-9)
        single[tuple(some[order])] = there.value
    first = [
        minimise_on_support(objective, np.sort(np.append(np.setdiff1d(support, i), j)), point).value
        for i in (4, 9, 14)
        for j in np.setdiff1d(np.arange(18), support)
    ]
    ones = sorted(v for (_, v), many in zip(single.items(), apart, strict=True) if many == 1)
    assert ones == pytest.approx(sorted(first)[: len(ones)], rel=1e-9)


def test_supports_below_a_bar_come_lowest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    objective = with_free()
    free = objective.cardinality.free
    point = minimise_on_support(objective, np.union1d(free, [5, 10, 15]), objective.origin())
    found = ExchangeModels(objective).runners_up(point, 40)
    assert found is not None
    supports, x, rises = found
    values = [minimise_on_support(objective, np.sort(some), point).value for some in supports]
    bar = float(np.median(values))
    lower = lowest_first(objective, bar, supports, x, rises)
    order = np.argsort(values)[: len(lower)]
    assert len(lower) == pytest.approx(np.sum(np.array(values) < bar), abs=1)
    assert np.array_equal(lower[:5], supports[order[:5]])
    assert not len(lowest_first(objective, min(values), supports, x, rises))
    monkeypatch.setattr(batched_newton, "_AT_ONCE", 2**10)
    again = lowest_first(objective, bar, supports, x, rises)
    assert np.array_equal(again, lower), "a few at a time"


@pytest.mark.parametrize("error", [0.0, 1.0])
def test_no_more_are_judged_where_the_model_would_have_to_be_in_error_by_more_than_it_was(
    monkeypatch: pytest.MonkeyPatch, error: float
) -> None:
    objective = with_free("squared_loss")
    support = np.union1d(objective.cardinality.free, [4, 9, 14])
    point = minimise_on_support(objective, support, objective.origin())
    found = ExchangeModels(objective).runners_up(point, 40)
    assert found is not None
    supports, x, rises = found
    bar, judged = point.value + min(rises[0], 0.0), []
    rises = point.value + rises - bar
    monkeypatch.setattr(batched_newton, "_LITTLE", 1)
    least = batched_newton._least
    monkeypatch.setattr(batched_newton, "_least", lambda *a: judged.append(len(a[2])) or least(*a))
    lowest_first(objective, bar, supports, x, rises + 9.0 * error * rises[-1])
    assert sum(judged) == (40 if error else 16)


def classes(seed: int, n: int = 60, p: int = 120) -> tuple[np.ndarray, np.ndarray]:
    """Two classes, from six of the columns, which resemble their neighbours."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, p))
    for j in range(1, p):
        A[:, j] = 0.9 * A[:, j - 1] + np.sqrt(0.19) * A[:, j]
    truth = np.zeros(p)
    truth[rng.choice(p, 6, False)] = rng.standard_normal(6)
    return A, np.sign(A @ truth + 0.5 * rng.standard_normal(n))


@pytest.mark.parametrize("gamma", [1.0, 0.4])
def test_steps_beside_a_kink_are_shortened(gamma: float) -> None:
    A, y = classes(4)
    w = sm.Variable(120, name="w")
    loss = sm.smoothed_hinge_loss(A @ w, y, gamma=gamma)
    problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 1e-2)), sm.card(w) <= 6)
    objective = RegressionObjective(problem.form)
    support = np.array([7, 35, 44, 63, 101, 116])
    point = minimise_restricted(objective, support, objective.origin())
    found = ExchangeModels(objective).runners_up(point, 60)
    assert found is not None
    values = [minimise_restricted(objective, some, point).value for some in found[0]]
    lower = lowest_first(objective, float(np.median(values)), *found)
    assert len(lower) == pytest.approx(30, abs=3)
    assert found[0][np.argmin(values)].tolist() in lower[:2].tolist()


@pytest.mark.parametrize(
    ("seed", "known"),
    [
        (4, 0.0623374),
        *(pytest.param(*one, marks=pytest.mark.slow) for one in ((0, 0.1071241), (3, 0.1023143))),
    ],
)
def test_losses_with_kinks_are_judged_beside_the_ends_of_smoothed_searches(
    seed: int, known: float
) -> None:
    A, y = classes(seed)
    w = sm.Variable(120, name="w")
    loss = sm.hinge_loss(A @ w, y) + sm.ridge(w, 1e-2)
    assert sm.Problem(sm.minimize(loss), sm.card(w) <= 6).solve().value <= known


@pytest.mark.parametrize("held", ["outstanding", "groups", "nothing"])
def test_none_are_near_where_they_are_not_looked_for(held: str) -> None:
    A, y = classes(3)
    w = sm.Variable(120, name="w")
    if held == "outstanding":
        A = np.random.default_rng(0).standard_normal(A.shape)
        y = 3.0 * A[:, 5]
    groups = np.arange(120) // 2 if held == "groups" else None
    goal = sm.minimize(sm.huber_loss(A @ w, y) + sm.ridge(w, 1e-2))
    objective = RegressionObjective(sm.Problem(goal, sm.card(w, groups=groups) <= 2).form)
    support = np.array([], dtype=int) if held == "nothing" else np.array([5])
    trials = ExchangeTrials(objective, minimise_restricted, 6, lambda: False)
    assert not trials.near(minimise_restricted(objective, support, objective.origin()))
    if held == "nothing":
        point = minimise_restricted(objective, np.array([40, 80]), objective.origin())
        assert len(trials.near(point)) > 60


def test_no_more_are_judged_than_memory_holds_and_none_of_other_losses() -> None:
    assert batched_newton.batch_limit(with_free(), 6) == 2**22 // (60 * 6)
    A, y = correlated(1)
    w = sm.Variable(A.shape[1], name="w")
    problem = sm.Problem(sm.minimize(sm.absolute_loss(A @ w, y)), sm.card(w) <= 3)
    assert batched_newton.batch_limit(RegressionObjective(problem.form), 3) == 0


def test_nothing_is_judged_beside_what_stands_out_or_is_constrained() -> None:
    A, y = correlated(1)
    w = sm.Variable(A.shape[1], name="w")
    goal = sm.minimize(sm.poisson_loss(A @ w, y) + sm.ridge(w, 1e-3))
    for limits in ((sm.card(w) <= 3, w >= 0), (sm.card(w, groups=np.arange(18) // 2) <= 2,)):
        objective = RegressionObjective(sm.Problem(goal, *limits).form)
        trials = ExchangeTrials(objective, minimise_restricted, 6, lambda: False)
        point = trials.debiased(objective.point(np.array([2, 3]), np.zeros(2)))
        assert trials.beside(point, Rounds(1.0, 100)) is None
        assert not trials.conclusive(point, Rounds(1.0, 100))


def test_where_every_column_is_a_member_there_is_no_runner_up() -> None:
    objective = with_free(k=16)
    everything = np.arange(objective.shape[0])
    point = minimise_on_support(objective, everything, objective.origin())
    found = ExchangeModels(objective).runners_up(point, 30)
    assert found is not None
    assert not len(found[0])
    assert not len(lowest_first(objective, np.inf, *found))
    trials = ExchangeTrials(objective, minimise_restricted, 6, lambda: False)
    assert trials.beside(point, Rounds(1.0, 100)) is None


@pytest.mark.parametrize("alike", [False, True])
def test_other_sizes_are_searched_where_columns_look_alike(
    monkeypatch: pytest.MonkeyPatch, alike: bool
) -> None:
    rng = np.random.default_rng(6)
    A = rng.standard_normal((80, 40)) + 2.0 * alike * rng.standard_normal((80, 1))
    y = rng.standard_normal(80)
    w = sm.Variable(40, name="w")
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, y)), sm.card(w) <= 5)
    objective = RegressionObjective(problem.form)
    begun: list[int] = []

    def beam(*given: Any, **options: Any) -> SupportBeam:
        begun.append(given[2])
        return SupportBeam(*given, **options)

    monkeypatch.setattr("sparsemodel_backends.exchange.SupportBeam", beam)
    Exchange().solve(objective, Context(minimise_on_support))
    assert bool(begun) is alike


@pytest.mark.parametrize(("n", "anew"), [(300, True), (4000, False)])
def test_models_of_few_numbers_are_made_anew_sooner(n: int, anew: bool) -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, 10))
    w = sm.Variable(10)
    y = np.where(A[:, 0] + rng.standard_normal(n) > 0.0, 1.0, -1.0)
    problem = sm.Problem(sm.minimize(sm.logistic_loss(A @ w, y)), sm.card(w) <= 2)
    objective = RegressionObjective(problem.form)
    models = ExchangeModels(objective)
    assert models.renew(objective.origin())
    point = objective.point(np.arange(2), np.array([0.8, 0.0]))  # curvatures change by an eighth
    assert models.renew(point) is anew
    assert models.renew(point, 0.05) is not anew


def test_supports_that_come_back_are_not_minimised_again() -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 12))
    w = sm.Variable(12)
    y = np.where(A[:, 0] + rng.standard_normal(60) > 0.0, 1.0, -1.0)
    problem = sm.Problem(sm.minimize(sm.logistic_loss(A @ w, y)), sm.card(w) <= 3)
    objective = RegressionObjective(problem.form)
    asked: list[tuple[int, ...]] = []

    def counted(one: object, support: np.ndarray, start: object, **how: object) -> object:
        asked.append(tuple(support.tolist()))
        return minimise_restricted(one, support, start, **how)  # type: ignore[arg-type]

    solver, origin = CachedSolver(objective, counted), objective.origin()  # type: ignore[arg-type]
    rough = solver(objective, np.array([0, 3]), origin, tol=1e-3)
    assert solver(objective, np.array([0, 3]), origin, tol=8e-4) is rough
    exact = solver(objective, np.array([0, 3]), rough)
    assert exact is not rough
    assert solver(objective, np.array([0, 3]), origin, tol=1e-3) is exact
    assert solver(objective, np.array([0, 3]), origin) is exact
    assert len(asked) == 2
    for j in range(1, 12):
        for i in range(j):
            solver(objective, np.array([i, j]), origin, tol=1e-3)
    assert len(asked) == 2 + 65
    solver(objective, np.array([0, 1]), origin, tol=1e-3)  # has gone for others
    assert len(asked) == 2 + 66


@pytest.mark.parametrize("seed", [1, 3, 11])
def test_a_search_minimises_no_support_twice_as_accurately(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((200, 50))
    y = np.where(0.2 * A[:, :5].sum(axis=1) + rng.logistic(size=200) > 0.0, 1.0, -1.0)
    w = sm.Variable(50)
    problem = sm.Problem(sm.minimize(sm.logistic_loss(A @ w, y) + sm.ridge(1e-3)), sm.card(w) <= 5)
    objective = RegressionObjective(problem.form)
    asked: list[tuple[bytes, bool]] = []

    def counted(one: object, support: np.ndarray, start: object, *, tol: object = None) -> object:
        asked.append((support.tobytes(), tol is None))
        return minimise_restricted(one, support, start, tol=tol)  # type: ignore[arg-type]

    Exchange().solve(objective, Context(restricted=counted, limits=Limits(max_iter=1000)))  # type: ignore[arg-type]
    assert len(asked) > 5
    assert len(asked) == len(set(asked))


def test_a_loss_with_kinks_is_minimised_once_on_each_support() -> None:
    A, y = classes(0)
    w = sm.Variable(120, name="w")
    problem = sm.Problem(sm.minimize(sm.hinge_loss(A @ w, y) + sm.ridge(w, 1e-2)), sm.card(w) <= 6)
    adapted = problem.plan("exchange").stages[0].backend
    objective = RegressionObjective(problem.form)
    supports: list[bytes] = []

    def counted(which: Any, support: Any, start: Any, *, tol: float | None = None) -> Any:
        if which is objective:
            supports.append(support.tobytes())
        return minimise_restricted(which, support, start, tol=tol)

    adapted.solve(objective, Context(counted))
    assert len(set(supports)) == len(supports) > 8
