"""What rounding leaves of coefficients is zero in solutions; what the data say is not."""

from __future__ import annotations

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.compiler.reductions.base import Reduced
from sparsemodel.compiler.services import objective_of
from sparsemodel.driver.finish import restored


def _data(n: int, p: int) -> np.ndarray:
    return np.random.default_rng(5).standard_normal((n, p))


@pytest.mark.parametrize("backend", ["exhaustive", "exchange", None])
def test_a_constant_target_has_a_constant_alone(backend: str | None) -> None:
    w, c = sm.Variable(8, name="w"), sm.Variable(name="c")
    fit = sm.squared_loss(_data(40, 8) @ w + c, np.full(40, 3.7))
    solution = sm.Problem(sm.minimize(fit), sm.card(w) <= 2).solve(backend)
    assert list(solution.coefficients) == ["c"]


def test_one_class_is_fitted_by_the_constant() -> None:
    w, c = sm.Variable(6), sm.Variable()
    loss = sm.squared_hinge_loss(_data(3, 6) @ w + c, -np.ones(3)) + sm.ridge(w, 1e-3)
    problem = sm.Problem(sm.minimize(loss), sm.card(w) <= 6)
    assert not problem.solve().indices.size
    assert not np.any(w.value)


@pytest.mark.parametrize("seed", range(5))
def test_a_limit_on_the_1_norm_leaves_zeros(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, w, c = rng.standard_normal((40, 6)), sm.Variable(6), sm.Variable()
    goal = sm.minimize(sm.absolute_loss(A @ w + c, A @ rng.standard_normal(6)) + sm.ridge(w, 1e-3))
    sm.Problem(goal, sm.card(w) <= 6, sm.norm(w, 1) <= 0.4).solve()
    sizes = np.abs(w.value)
    assert np.all((sizes == 0.0) | (sizes > 1e-8))


def test_small_coefficients_that_the_data_need_stay() -> None:
    A, w = _data(30, 4), sm.Variable(4)
    goal = sm.minimize(sm.squared_loss(A @ w, A @ [1.0, 0.0, 3e-11, 0.0]))
    assert sm.Problem(goal, sm.card(w) <= 2).solve().indices.tolist() == [0, 2]
    scaled = A * [1.0, 1.0, 1e12, 1.0]
    goal = sm.minimize(sm.squared_loss(scaled @ w, A @ [1.0, 0.0, 1.0, 0.0] + 0.1 * A[:, 3]))
    assert sm.Problem(goal, sm.card(w) <= 2).solve().indices.tolist() == [0, 2]
    q = np.linalg.qr(_data(30, 3))[0]
    u, y = sm.Variable(2), q @ [1.0, 1e-6, 0.1]
    goal = sm.minimize(sm.squared_loss(q[:, :2] * [1.0, 1e6] @ u, y))  # 1e-12 lowers it by 1e-10
    assert sm.Problem(goal, sm.card(u) <= 2).solve().indices.tolist() == [0, 1]


def test_what_others_need_stays() -> None:
    """A parent is in the model with any coefficient but zero."""
    A, w = _data(30, 3), sm.Variable(3)
    goal = sm.minimize(sm.squared_loss(A @ w, A[:, 1]))
    order = sm.chosen(w)[1:] <= sm.chosen(w)[0]
    for limit, rule, kept in (
        (sm.card(w) <= 3, order, [1e-15, 1.0, 0.0]),
        (sm.card(w) <= 3, w <= 2.0, [0.0, 1.0, 0.0]),
        (sm.card(w[1:]) <= 2, w <= 2.0, [0.0, 1.0, 0.0]),
    ):
        form = sm.Problem(goal, limit, rule).form
        objective = objective_of(form)
        point = objective.point_from(np.array([1e-15, 1.0, 0.0]))
        found = restored(form, Reduced(form, (), None), point)[0]
        assert found.tolist() == kept
