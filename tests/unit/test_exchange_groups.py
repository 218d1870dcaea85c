"""Searches among groups end where no others are worth looking for."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.interfaces import Context
from sparsemodel.numerics import (
    ExchangeTrials,
    RegressionObjective,
    Rounds,
    minimise_on_support,
    minimise_restricted,
)
from sparsemodel.numerics.exchange.models import ExchangeModels
from sparsemodel.numerics.exchange.quadratics.rounds import searches_for
from sparsemodel.numerics.exchange.removal import groups_clear_up_to
from sparsemodel_backends.exchange import Exchange


def grouped(seed: int, alike: float) -> tuple[RegressionObjective, np.ndarray]:
    """Return six groups of one to three columns; one of the third is like one of the first."""
    rng = np.random.default_rng(seed)
    groups = np.array([0, 0, 1, 1, 1, 2, 2, 3, 4, 4, 5, 5, 5])
    A = rng.standard_normal((60, groups.size))
    A[:, 5] = alike * A[:, 0] + math.sqrt(1.0 - alike**2) * A[:, 5]
    y = A[:, :5].sum(axis=1) + rng.uniform(0.5, 3.0) * rng.standard_normal(60)
    w = sm.Variable(groups.size)
    goal = sm.minimize(sm.squared_loss(A @ w, y))
    form = sm.Problem(goal, sm.card(w, groups=groups) <= 2).form
    return RegressionObjective(form), A / np.linalg.norm(A, axis=0)


@pytest.mark.parametrize("alike", [0.0, 0.5, 0.7, 0.95])
@pytest.mark.parametrize("seed", range(6))
def test_groups_stand_out_by_the_cost_of_exchanges_and_by_canonical_correlations(
    seed: int, alike: float
) -> None:
    objective, A = grouped(seed, alike)
    coordinates = objective.cardinality.coordinates

    def minimised(*units: int) -> float:
        support = coordinates(np.array(sorted(units)))
        return minimise_on_support(objective, support, objective.origin()).value

    point = minimise_on_support(objective, np.arange(5), objective.origin())
    outside = range(2, 6)
    cost = min(minimised(kept, other) for kept in (0, 1) for other in outside) - point.value
    gain = point.value - min(minimised(0, 1, other) for other in outside)
    bases = [np.linalg.qr(A[:, coordinates(np.array([unit]))])[0] for unit in range(6)]
    likest = max(np.linalg.norm(bases[i].T @ bases[j], 2) for i in (0, 1) for j in outside)
    expected = bool(likest <= groups_clear_up_to(cost / gain))
    assert ExchangeModels(objective).contrast(point) == (
        pytest.approx(cost / gain, rel=1e-6),
        expected,
    )
    trials = ExchangeTrials(objective, minimise_restricted, 6, lambda: False)
    assert trials.conclusive(point, Rounds(1.0, 500)) is expected
    assert not expected or alike < 0.95


def test_groups_that_stand_out_are_not_perturbed() -> None:
    objective, _ = grouped(0, 0.0)
    found = Exchange().solve(objective, Context(minimise_on_support))
    assert found.point.support.tolist() == [0, 1, 2, 3, 4]
    assert found.iterations <= 4, "insertions, and one look that finds no exchange"


def test_few_searches_that_come_back_are_enough_for_groups_with_exact_prices() -> None:
    objective, _ = grouped(0, 0.95)
    trials = ExchangeTrials(objective, minimise_restricted, 6, lambda: False)
    point = trials.debiased(objective.point(np.arange(5), np.zeros(5)))
    wanted = searches_for(ExchangeModels(objective).contrast(point)[0])
    rounds = Rounds(1.0, 500)
    rounds.note(point.support.tobytes())
    for more, expected in ((wanted - 1, False), (1, True)):
        rounds.count([], better=False, searches=more)
        assert trials.conclusive(point, rounds) is expected
    rounds.note(b"another")
    assert not trials.conclusive(point, rounds), "there are two ends to choose from"


def test_groups_without_curvature_where_a_hinge_is_straight_are_exchanged() -> None:
    rng = np.random.default_rng(0)
    A, groups = rng.standard_normal((12, 6)), np.arange(6) // 2
    w = sm.Variable(6)
    loss = sm.smoothed_hinge_loss(A @ w, np.sign(A[:, 0]))
    objective = RegressionObjective(
        sm.Problem(sm.minimize(loss), sm.card(w, groups=groups) <= 1).form
    )
    point = objective.point(np.arange(2), np.array([1e3 / np.abs(A[:, 0]).min(), 0.0]))
    models = ExchangeModels(objective)
    units, costs, gains = models.exchanges(point)
    assert units.tolist() == [0]
    assert costs.tolist() == [0.0]
    assert gains.tolist() == [[-math.inf, 0.0, 0.0]]
    assert models.contrast(point) == (math.inf, False)


def test_rows_for_classes_are_searched_on_where_perturbations_end_at_many() -> None:
    rng, n, p, k = np.random.default_rng(24), 30, 25, 5
    A = rng.standard_normal((n, 3)) @ rng.standard_normal((3, p))
    A += 0.5 * rng.standard_normal((n, p))
    truth = np.zeros((p, 3))
    truth[:k] = rng.standard_normal((k, 3))
    classes = np.argmax(A @ truth + rng.gumbel(size=(n, 3)), axis=1)
    classes[:3] = range(3)

    def least(A: np.ndarray) -> float:
        W = sm.Variable((A.shape[1], 3), name="W")
        goal = sm.minimize(sm.multinomial_loss(A @ W, classes) + sm.ridge(W, 1e-3))
        return sm.Problem(goal, sm.card(W, axis=1) <= k).solve().value

    assert least(A) <= (1.0 + 1e-6) * least(A[:, [1, 4, 5, 20, 21]])
