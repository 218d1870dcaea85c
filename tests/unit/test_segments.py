"""The best steps of a sequence, against all choices of jumps."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import Claim, certify, verify
from sparsemodel.numerics import as_sequence, best_segments, costs_of_segments
from sparsemodel.numerics.support.segments import SquareCosts
from tests.referee import judge

RNG = np.random.default_rng(12)
N = 300
LEVELS = RNG.standard_normal(9) * 2.0
T = np.repeat(LEVELS, [20, 50, 30, 10, 60, 30, 40, 20, 40]) + 0.4 * RNG.standard_normal(N)


def cost(y, weights, jumps) -> float:
    ends = [0, *(j + 1 for j in jumps), y.size]
    total = 0.0
    for a, b in pairwise(ends):
        mean = weights[a:b] @ y[a:b] / weights[a:b].sum()
        total += 0.5 * weights[a:b] @ np.square(y[a:b] - mean)
    return float(total)


@pytest.mark.parametrize("seed", range(40))
def test_no_other_jumps_are_better(seed):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(1, 22)), int(rng.integers(0, 4))
    y = rng.choice([0.0, 1e3]) + np.cumsum(rng.standard_normal(n) * (rng.random(n) < 0.3))
    y, weights = y + 0.5 * rng.standard_normal(n), rng.random(n) + 0.01
    found = best_segments(SquareCosts(y, weights), k)
    assert found.size <= k
    every = combinations(range(n - 1), min(k, n - 1))
    least = min(cost(y, weights, jumps) for jumps in every)
    assert cost(y, weights, found) <= least * (1.0 + 1e-9) + 1e-9
    price = 0.2
    priced = best_segments(SquareCosts(y, weights), k, price=price)
    every = (jumps for m in range(min(k, n - 1) + 1) for jumps in combinations(range(n - 1), m))
    least = min(cost(y, weights, jumps) + price * len(jumps) for jumps in every)
    assert cost(y, weights, priced) + price * priced.size <= least * (1.0 + 1e-9) + 1e-9


def test_pruning_leaves_the_best():
    weights = np.ones(N)
    for k in (3, 8, 15):
        table = np.full((k + 2, N + 1), np.inf)
        table[0, 0] = 0.0
        sums, squares = np.cumsum([0.0, *T]), np.cumsum([0.0, *(T * T)])
        for j in range(1, N + 1):
            i = np.arange(j)
            one = 0.5 * (squares[j] - squares[i] - (sums[j] - sums[i]) ** 2 / (j - i))
            table[1:, j] = (table[:-1, i] + one).min(axis=1)
        assert np.isclose(
            cost(T, weights, best_segments(SquareCosts(T, weights), k)), table[k + 1, N]
        )


def test_a_declared_sequence_is_solved_so():
    w = sm.Variable(N)
    problem = sm.Problem(sm.minimize(sm.squared_loss(w, T)), sm.card(sm.diff(w)) <= 8)
    assert "dynamic programming" in str(problem.explain())
    solution = problem.solve()
    assert solution.backend == "segments"
    jumps = best_segments(SquareCosts(T, np.ones(N)), 8)
    assert np.isclose(solution.value, cost(T, np.ones(N), jumps) / N)
    assert np.array_equal(solution.indices, jumps)
    assert not judge(problem, solution).faults
    other = problem.solve("exchange").value
    assert solution.value <= other * (1.0 + 1e-9)


def test_weights_offsets_and_prices_are_those_declared():
    w, c = sm.Variable(N), 1.0 + RNG.random(N)
    loss = sm.squared_loss(w + 2.0, T, weights=c, reduction="sum")
    solution = sm.Problem(sm.minimize(loss + 3.0 * sm.card(sm.diff(w)))).solve()
    jumps = best_segments(SquareCosts(T - 2.0, c), N, price=3.0)
    assert np.isclose(solution.value, cost(T, c, jumps) + 3.0 * jumps.size)


@pytest.mark.parametrize(
    "more",
    [
        lambda w: (sm.squared_loss(w, T) + sm.ridge(w, 0.1), [sm.card(sm.diff(w)) <= 2]),
        lambda w: (sm.squared_loss(w, T), [sm.card(sm.diff(w)) <= 2, w >= -1.0]),
        lambda w: (sm.huber_loss(w, T) + sm.absolute_loss(w, T), [sm.card(sm.diff(w)) <= 2]),
        lambda w: (sm.squared_loss(w, T), [sm.card(w) <= 2]),
    ],
)
def test_another_problem_is_none_of_a_sequence(more):
    w = sm.Variable(N)
    goal, limits = more(w)
    assert as_sequence(sm.Problem(sm.minimize(goal), limits).form) is None


def exact_cost(y, weights, jumps) -> Fraction:
    ends = [0, *(j + 1 for j in jumps), len(y)]
    total = Fraction(0)
    for a, b in pairwise(ends):
        weight, moment = (
            sum(weights[a:b]),
            sum(w * v for w, v in zip(weights[a:b], y[a:b], strict=True)),
        )
        total += sum(w * v * v for w, v in zip(weights[a:b], y[a:b], strict=True))
        total -= moment * moment / weight if weight else 0
    return total / 2


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("shift", [0.0, 1e4])
@pytest.mark.parametrize("seed", range(6))
def test_the_bound_is_below_every_choice_of_jumps_in_rational_arithmetic(seed, shift, scale):
    rng = np.random.default_rng(seed)
    n, k, price = int(rng.integers(2, 12)), int(rng.integers(0, 3)), float(rng.choice([0.0, 0.125]))
    y = scale * (shift + rng.standard_normal(n))
    offset = scale * float(rng.choice([0.0, 0.3]))
    weights = rng.random(n) * (rng.random(n) < 0.9) + 2.0**-20
    w, price = sm.Variable(n), price * scale * scale
    loss = sm.squared_loss(w + offset if offset else w, y, weights=weights, reduction="sum")
    goal = loss + price * sm.card(sm.diff(w)) if price else loss
    problem = sm.Problem(sm.minimize(goal), sm.card(sm.diff(w)) <= min(k, n - 1))
    problem.solve()
    certificate = problem.certify()
    target = [Fraction(v) - Fraction(offset) for v in y]
    exact = min(
        exact_cost(target, [Fraction(v) for v in weights], jumps) + Fraction(price) * len(jumps)
        for m in range(min(k, n - 1) + 1)
        for jumps in combinations(range(n - 1), m)
    )
    assert Fraction(certificate.bound) <= exact <= Fraction(certificate.upper)
    assert float(exact) - certificate.bound <= 1e-9 * float(exact)
    assert certificate.claim is Claim.OPTIMAL
    assert certificate.bound_method == "dynamic programming"
    verify(certificate, problem.form)


def test_a_bound_of_steps_is_computed_again_on_the_data():
    def declared(t, k):
        w = sm.Variable(N, name="w")
        return sm.Problem(sm.minimize(sm.squared_loss(w, t)), sm.card(sm.diff(w)) <= k)

    problem = declared(T, 8)
    solution = problem.solve()
    certificate = problem.prove()
    assert certificate.claim is Claim.OPTIMAL
    worse = certify(problem.form, 0.999 * problem.layout.join((solution.values["w"],)))
    assert worse.claim is Claim.WITHIN_GAP
    with pytest.raises(sm.CertificateError, match="bound"):
        verify(replace(certificate, bound=certificate.bound * (1.0 + 1e-7)), problem.form)
    other = T.copy()
    other[0] += 1.0
    for changed in (declared(other, 8), declared(T, 7)):
        with pytest.raises(sm.CertificateError, match="does not fit"):
            verify(certificate, changed.form)


def test_time_may_be_up():
    assert best_segments(SquareCosts(T, np.ones(N)), 5, over=lambda: True) is None


LOSSES = {
    "absolute": lambda w, t, **how: sm.absolute_loss(w, t, **how),
    "quantile": lambda w, t, **how: sm.quantile_loss(w, t, tau=0.8, **how),
    "huber": lambda w, t, **how: sm.huber_loss(w, t, delta=0.7, **how),
    "epsilon": lambda w, t, **how: sm.epsilon_insensitive_loss(w, t, epsilon=0.3, **how),
}


def level_cost(loss, y, weights, a, b) -> float:
    """Return the least cost of one level, by golden sections of a convex function."""

    def total(v):
        return float(weights[a:b] @ loss.value(np.full(b - a, v), y[a:b]))

    low, high, shrink = y[a:b].min() - 1.0, y[a:b].max() + 1.0, (np.sqrt(5.0) - 1.0) / 2.0
    for _ in range(90):
        left, right = high - shrink * (high - low), low + shrink * (high - low)
        low, high = (low, right) if total(left) <= total(right) else (left, high)
    return total(0.5 * (low + high))


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("seed", range(8))
def test_no_other_jumps_are_better_for_losses_with_kinks(name, seed):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(2, 14)), int(rng.integers(0, 4))
    y = rng.choice([0.0, 1e3]) + np.cumsum(rng.standard_normal(n) * 2.0 * (rng.random(n) < 0.3))
    y = y + rng.standard_t(1.5, n) if seed % 2 else np.round(y + rng.standard_t(1.5, n))
    weights = rng.random(n) * (rng.random(n) < 0.8) + 0.01
    price = float(rng.choice([0.0, 0.2]))
    w = sm.Variable(n)
    loss = LOSSES[name](w, y, weights=weights, reduction="sum")
    goal = loss + price * sm.card(sm.diff(w)) if price else loss
    problem = sm.Problem(sm.minimize(goal), sm.card(sm.diff(w)) <= min(k, n - 1))
    (term,) = problem.form.terms
    found = best_segments(costs_of_segments(problem.form), k, price=price)
    costs = {
        (a, b): level_cost(term.loss, y, weights, a, b)
        for a in range(n)
        for b in range(a + 1, n + 1)
    }

    def whole(jumps) -> float:
        ends = [0, *(j + 1 for j in jumps), n]
        return sum(costs[ends_] for ends_ in pairwise(ends)) + price * len(jumps)

    sizes = range(min(k, n - 1) + 1)
    least = min(whole(jumps) for m in sizes for jumps in combinations(range(n - 1), m))
    assert whole(found) <= least + 1e-8 * (1.0 + abs(least))
    solution = problem.solve()
    assert solution.backend == "segments"
    assert solution.value <= least + 1e-8 * (1.0 + abs(least))
    assert not judge(problem, solution).faults


def test_a_single_outlier_is_a_segment_of_its_own():
    y = np.repeat([0.0, 3.0], 15) + 0.1 * RNG.standard_normal(30)
    y[7] = 4000.0
    w = sm.Variable(30)
    problem = sm.Problem(sm.minimize(sm.absolute_loss(w, y)), sm.card(sm.diff(w)) <= 3)
    assert problem.solve().indices.tolist() == [6, 7, 14]


def test_a_search_may_find_nothing_worth_choosing():
    rng = np.random.default_rng(5)
    y = np.repeat([0.0, 3.0, -1.0, 1.0], 15) + rng.standard_t(1.5, 60)
    w = sm.Variable(60)
    problem = sm.Problem(sm.minimize(sm.absolute_loss(w, y)), sm.card(sm.diff(w)) <= 3)
    best = problem.solve().value
    assert best <= problem.solve("exchange").value


def test_few_steps_are_no_linear_program():
    w, y = sm.Variable(20), RNG.standard_normal(20)
    problem = sm.Problem(sm.minimize(sm.absolute_loss(w, y)), sm.card(sm.diff(w)) <= 3)
    assert problem.plan().stages[0].label == "segments"
