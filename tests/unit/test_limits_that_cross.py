"""Limits on sets that overlap, and several budgets over costs, against all supports."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import Claim, verify
from sparsemodel.certificates.dual_bounds.gains import best_selection
from sparsemodel.certificates.proving.node import IN, OUT, Minorant, decide
from sparsemodel.checker.__main__ import main
from sparsemodel.checker.proof.arithmetic import Ball
from sparsemodel.checker.proof.supports import Supports
from sparsemodel.interfaces import Cardinality, Knapsack
from sparsemodel.numerics import best_units
from tests.referee import judge

P, N = 9, 40
ROWS, COLUMNS = np.arange(P) // 3, np.arange(P) % 3


def supports():
    return chain.from_iterable(combinations(range(P), size) for size in range(P + 1))


class Posed:
    """A fit with limits of one kind, whose best support is known."""

    def __init__(self, kind: str, seed: int, scale: float = 1.0) -> None:
        rng = np.random.default_rng(seed)
        self.a = rng.standard_normal((N, P)) + 0.5 * rng.standard_normal((N, 1))
        self.b = scale * (self.a @ rng.standard_normal(P) + 0.5 * rng.standard_normal(N))
        w = sm.Variable(P, name="w")
        self.costs = rng.uniform(0.0, 1.0, (2, P))
        self.most, self.sets = np.array([1.3, 1.6]), []
        if kind != "budgets":
            self.sets = [(np.flatnonzero(s == i), 1) for s in (ROWS, COLUMNS) for i in range(3)]
        if kind == "crossing":
            self.costs[:] = 0.0
        limits = [sm.card(w[s]) <= most for s, most in self.sets]
        limits += [c @ sm.chosen(w) <= most for c, most in zip(self.costs, self.most, strict=True)]
        goal = sm.minimize(sm.squared_loss(self.a @ w, self.b) + sm.ridge(w, 0.05))
        self.problem = sm.Problem(goal, limits)
        self.best = min(self.value(s) for s in supports() if self.allowed(s))

    def allowed(self, units) -> bool:
        chosen = list(units)
        within = np.all(self.costs[:, chosen].sum(axis=1) <= self.most)
        return bool(within) and all(np.isin(chosen, s).sum() <= most for s, most in self.sets)

    def value(self, units) -> float:
        a = self.a[:, list(units)]
        h = a.T @ self.b / N
        fit = h @ np.linalg.solve(a.T @ a / N + 0.05 * np.eye(a.shape[1]), h)
        return 0.5 * (self.b @ self.b / N - fit)


@pytest.mark.parametrize("kind", ["budgets", "crossing", "both"])
@pytest.mark.parametrize(
    ("seed", "scale"),
    [
        (0, 1.0),
        pytest.param(2, 1e-4, marks=pytest.mark.slow),
        pytest.param(3, 1e4, marks=pytest.mark.slow),
    ],
)
def test_the_best_of_all_supports_is_found_and_proved(kind, seed, scale, tmp_path):
    posed = Posed(kind, seed, scale)
    for backend in (None, "exchange"):
        solution = posed.problem.solve(backend)
        assert posed.allowed(solution.indices)
        assert solution.value == pytest.approx(posed.best, rel=1e-9)
        judge(posed.problem, solution)
    certificate = posed.problem.prove(gap=1e-6)
    assert certificate.claim is Claim.OPTIMAL
    assert posed.best * (1.0 - 1e-5) <= certificate.bound <= posed.best * (1.0 + 1e-12)
    judge(posed.problem, certificate)
    verify(certificate, posed.problem.form)
    certificate.save(tmp_path / "c.json")
    np.savez(tmp_path / "d.npz", A=posed.a, b=posed.b)
    for more in ([], ["--exact"])[: 2 if seed else 1]:
        assert main([str(tmp_path / "c.json"), str(tmp_path / "d.npz"), *more]) == 0


@pytest.mark.parametrize("kind", ["budgets", "crossing", "both"])
def test_bounds_of_parts_are_below_those_of_all_their_supports(kind):
    posed, rng = Posed(kind, 5), np.random.default_rng(5)
    sparsity = posed.problem.form.sparsity
    limits, crossing = (sparsity.limited_sets(crossing=which) for which in (False, True))
    pairs = [(one.costs, one.most) for one in sparsity.knapsacks]
    nobody = np.zeros(P, dtype=bool)
    budgets = pairs + [(np.bincount(s, minlength=P) * 1.0, most) for s, most in crossing]
    checker = Supports(sparsity.budget, Ball(np.zeros(P)), nobody, limits, budgets)
    for _ in range(15):
        gains = rng.integers(0, 16, P) / 8.0
        worth = {s: 5.0 - gains[list(s)].sum() for s in supports() if posed.allowed(s)}
        assert 5.0 - best_selection(gains, np.zeros(P), sparsity) <= min(worth.values()) + 1e-12
        assert sparsity.within(best_units(sparsity, gains))
        status = rng.choice([OUT, 0, 0, 0, IN], P).astype(np.int8)
        inside = set(np.flatnonzero(status == IN).tolist())
        outside = set(np.flatnonzero(status == OUT).tolist())
        here = [(s, v) for s, v in worth.items() if inside <= set(s) and not outside & set(s)]
        least = min((v for _, v in here), default=np.inf)
        found = decide(Minorant(5.0, gains), status, sparsity.budget - len(inside), sparsity)
        assert found.bound <= least
        assert found.bound - 1e-9 <= checker.bound(5.0, gains, status == IN, status == OUT) <= least
        for unit in np.flatnonzero(status == 0).tolist():
            assert found.if_in[unit] <= min((v for s, v in here if unit in s), default=np.inf)
            assert found.if_out[unit] <= min((v for s, v in here if unit not in s), default=np.inf)


def test_room_and_exchanges_are_those_of_the_definition():
    posed, rng = Posed("both", 1), np.random.default_rng(1)
    sparsity = posed.problem.form.sparsity
    for _ in range(20):
        units = best_units(sparsity, rng.random(P))
        assert posed.allowed(units)
        room, swaps = sparsity.room(units), sparsity.exchangeable(units)
        for j in set(range(P)) - set(units.tolist()):
            assert room[j] == posed.allowed([*units, j])
            for place in range(units.size):
                assert swaps[place, j] == posed.allowed([*np.delete(units, place), j])


def test_entries_and_groups_of_two_kinds_are_counted_through_columns_of_zeros():
    posed = Posed("budgets", 4)
    w, row, column = sm.Variable(P), sm.Variable(3), sm.Variable(3)
    nothing, z = np.zeros((N, 3)), sm.chosen(w)
    fit = sm.squared_loss(posed.a @ w + nothing @ row + nothing @ column, posed.b)
    problem = sm.Problem(
        sm.minimize(fit + sm.ridge(w, 0.05)),
        [z <= sm.chosen(row)[ROWS], z <= sm.chosen(column)[COLUMNS]],
        [sm.card(row) <= 2, sm.card(column) <= 2, np.sum(z) <= 3],
    )

    def allowed(units) -> bool:
        used = [set(labels[list(units)]) for labels in (ROWS, COLUMNS)]
        return len(units) <= 3 and max(map(len, used)) <= 2

    best = min(posed.value(s) for s in supports() if allowed(s))
    assert problem.solve().value == pytest.approx(best, rel=1e-9)
    assert problem.prove(gap=1e-6).bound == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_groups_within_a_budget_are_bounded_without_a_ridge(ridge):
    posed, groups = Posed("budgets", 6), np.array([0, 0, 1, 1, 2, 2, 2, 3, 3])
    w = sm.Variable(P)
    goal = sm.squared_loss(posed.a @ w, posed.b) + sm.ridge(w, ridge)
    cost = np.array([1.0, 2.0, 3.0, 2.0]) @ sm.chosen(w, groups=groups)
    problem = sm.Problem(sm.minimize(goal), cost <= 5.0, sm.card(w, groups=groups) <= 2)
    value = problem.solve("exhaustive").value
    assert value * (1.0 - 1e-6) <= problem.certify().bound <= value * (1.0 + 1e-12)


def test_the_bound_of_an_assignment_is_its_linear_relaxation():
    """That of rows and columns has whole numbers; greedily, four of the five would be counted."""
    gains = np.array([5.0, 4.0, 0.0, 4.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    sparsity = Posed("crossing", 0).problem.form.sparsity
    assert best_selection(gains, np.zeros(P), sparsity) == pytest.approx(9.0)


def test_two_budgets_say_more_than_either():
    first, second = (
        Knapsack(np.array([1.0, 1.0, 9.0]), 2.0),
        Knapsack(np.array([9.0, 1.0, 1.0]), 2.0),
    )
    gains = np.array([3.0, 2.0, 3.0])
    both = Cardinality(3, 3, knapsacks=(first, second))
    one = Cardinality(3, 3, knapsacks=(first,))
    bounds = [best_selection(gains, np.zeros(3), which) for which in (one, both)]
    assert best_units(both, gains).tolist() == [1]
    assert 2.0 <= bounds[1] < bounds[0]
