"""True certificates of small and degenerate problems are accepted by the checker and by verify."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import Claim, verify
from sparsemodel.certificates.arithmetic.independent import independent
from sparsemodel.checker import regression
from sparsemodel.checker.__main__ import main
from sparsemodel.checker.proof.columns import independent as columns_of


def accepted(problem: sm.Problem, folder: Path, *, proof: bool = True, **data: Any) -> sm.Problem:
    np.savez(folder / "data.npz", **data)
    made = [problem.certify(), *([problem.prove()] if proof else [])]
    for number, certificate in enumerate(made):
        path = certificate.save(folder / f"{number}.json")
        assert verify(path, problem.form).claim is certificate.claim
        assert main([str(path), str(folder / "data.npz")]) == 0
    return problem


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("n", [1, 2, 9])
def test_a_cox_loss_of_exactly_zero(n: int, reduction: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(n)
    A, w = rng.standard_normal((n, 3)), sm.Variable(3)
    y = np.column_stack([np.arange(n) + 1.0, np.arange(n) == n - 1.0])  # the last one of all
    goal = sm.minimize(sm.cox_loss(A @ w, y, reduction=reduction) + sm.ridge(w, 0.1))
    problem = accepted(sm.Problem(goal, sm.card(w) <= 2), tmp_path, A=A, y=y)
    assert problem.value == 0.0
    assert problem.certify().claim is Claim.ZERO


def test_a_cox_gradient_that_cancels(tmp_path: Path) -> None:
    A = np.array([[-0.26381923], [0.20565781], [1.23981939]])
    y, w = np.array([[0.5, 0.0], [1.1, 0.0], [5.1, 1.0]]), sm.Variable(1)
    weights = np.array([1.09859653e-06, 1.91372270e-07, 3.91616774e-07])
    loss = sm.cox_loss(A @ w, y, weights=weights, reduction="sum") + sm.ridge(w, 1e-3)
    accepted(sm.Problem(sm.minimize(loss), sm.card(w) <= 0), tmp_path, A=A, y=y)


@pytest.mark.parametrize("seed", [0, 28, 30, 38])
def test_a_gradient_that_is_rounding(seed: int, tmp_path: Path) -> None:
    """All margins are one up to rounding; whether it is zero depends on the order of sums."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(2, 8)), int(rng.integers(1, 6))
    A, y, w, c = rng.standard_normal((n, p)), -np.ones(n), sm.Variable(p), sm.Variable()
    goal = sm.minimize(sm.squared_hinge_loss(A @ w + c, y) + sm.ridge(w, 1e-3))
    accepted(sm.Problem(goal, sm.card(w) <= p), tmp_path, A=A, y=y)


@pytest.mark.parametrize("target", [3.7, 0.0])
def test_a_constant_target(target: float, tmp_path: Path) -> None:
    A = (np.random.default_rng(1).random((8, 5)) < 0.5).astype(float)
    w, c, y = sm.Variable(5), sm.Variable(), np.full(8, target)
    goal = sm.minimize(sm.squared_loss(A @ w + c, y, reduction="sum"))
    limits = [sm.card(w) <= 1, sm.semicontinuous(w, 0.05, 0.6)]
    accepted(sm.Problem(goal, limits), tmp_path, A=A, y=y)
    goal = sm.minimize(sm.squared_loss(A[:1] @ w + c, y[:1]) + sm.ridge(w, 0.1))
    accepted(sm.Problem(goal, sm.card(w) <= 1, sm.norm(w) <= 0.6), tmp_path, A=A[:1], y=y[:1])


def test_bounds_that_leave_nothing_to_choose(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    A, y, w = rng.standard_normal((20, 2)), rng.standard_normal(20), sm.Variable(2)
    goal = sm.minimize(sm.squared_loss(A @ w, y))
    accepted(sm.Problem(goal, sm.card(w[1:]) <= 1, w[1] >= 0.1), tmp_path, A=A, y=y)


@pytest.mark.parametrize("seed", range(5))
def test_a_reference_that_is_the_point_itself(seed: int, tmp_path: Path) -> None:
    """Where all that is counted is held in, the reference is the point itself."""
    rng = np.random.default_rng(seed)
    A, w, c = rng.standard_normal((4, 1)), sm.Variable(1), sm.Variable()
    y = np.exp(A[:, 0] + 0.1 * rng.standard_normal(4))
    goal = sm.minimize(sm.gamma_loss(A @ w + c, y) + sm.ridge(w, 1.0))
    problem = accepted(sm.Problem(goal, sm.card(w) <= 1, w >= 0.2), tmp_path, A=A, y=y)
    assert problem.certify().stationarity.residual <= 1e-6


@pytest.mark.parametrize("seed", [24, 33])
def test_little_data_that_floats_do_not_decide(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nine coefficients of four observations, which a small ridge alone tells apart."""
    rng = np.random.default_rng(seed)
    A, w = rng.standard_normal((4, 9)), sm.Variable(9)
    y = 100.0 + A[:, 0] + 0.01 * rng.standard_normal(4)
    goal = sm.minimize(sm.squared_loss(A @ w + sm.Variable(), y) + sm.ridge(w, 1e-4))
    accepted(sm.Problem(goal, sm.card(w[7:]) <= 1), tmp_path, A=A, y=y)
    monkeypatch.setattr(regression, "_EXACTLY", 0)
    assert main([str(tmp_path / "1.json"), str(tmp_path / "data.npz")]) == 1


@pytest.mark.parametrize("loss", [sm.huber_loss, sm.absolute_loss])
def test_copied_observations(loss: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    A = np.repeat(rng.standard_normal((4, 8)), 5, axis=0)
    y, w = A[:, 0] + rng.standard_normal(20), sm.Variable(8)
    goal = sm.minimize(loss(A @ w + sm.Variable(), y))
    accepted(sm.Problem(goal, sm.card(w) <= 1), tmp_path, A=A, y=y)


def test_copied_rows_span_no_more_than_the_others() -> None:
    rows = np.random.default_rng(0).standard_normal((5, 30))
    columns = np.repeat(rows, 20, axis=0)
    (found,), (other,) = independent([columns]), columns_of([columns], exact=False)
    assert found.shape == other.shape == (100, 5)
