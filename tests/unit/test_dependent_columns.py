"""Proofs without ridge where minima are degenerate and columns depend on each other."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import verify
from sparsemodel.checker.__main__ import main


def proved(problem: sm.Problem, folder: Path, **data: Any) -> Any:
    """Return a proof that closes, is verified, and holds for the separate checker."""
    proof = problem.prove(gap=1e-6)
    assert proof.relative_gap <= 1.1e-6
    verify(proof, problem.form)
    proof.save(folder / "proof.json")
    np.savez(folder / "data.npz", **data)
    assert main([str(folder / "proof.json"), str(folder / "data.npz")]) == 0
    return proof


@pytest.mark.parametrize(
    "loss", [sm.absolute_loss, sm.quantile_loss, sm.epsilon_insensitive_loss, sm.hinge_loss]
)
def test_kinks_that_fewer_observations_lie_on_than_there_are_coefficients(
    tmp_path: Path, loss: Any
) -> None:
    rng = np.random.default_rng(2)
    a = rng.integers(-2, 3, (14, 4)).astype(float)
    y = a[:, 0] - a[:, 1] + rng.integers(-2, 3, 14)
    y = np.where(y > 0.0, 1.0, -1.0) if loss is sm.hinge_loss else y
    w, c = sm.Variable(4), sm.Variable()
    problem = sm.Problem(sm.minimize(loss(a @ w + c, y)), sm.card(w) <= 2)
    proof = proved(problem, tmp_path, A=a, y=y)
    supports = itertools.combinations(range(4), 2)
    truth = min(problem.restricted(np.array(s)).solve() for s in supports)
    assert proof.value == pytest.approx(truth, rel=2e-6)
