"""Proofs without ridge where minima are degenerate and columns depend on each other."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import verify
from sparsemodel.certificates.arithmetic.independent import independent
from sparsemodel.certificates.statements.claims import Claim
from sparsemodel.checker.__main__ import main
from sparsemodel.checker.proof.arithmetic import middle
from sparsemodel.checker.proof.columns import independent as columns_of_checker


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


def _alike() -> list[tuple[list[Any], int]]:
    """Return columns, and how many of them no others make up for."""
    rng = np.random.default_rng(3)
    a, d, one, zero = rng.standard_normal(9), rng.standard_normal(9), np.ones(9), np.zeros(9)
    c = rng.integers(0, 2, 9).astype(float)
    near = a.copy()
    near[4] = np.nextafter(near[4], 9.0)
    m, i = 64.0 + np.arange(9.0), rng.integers(-9, 9, (9, 2)).astype(float)
    cases = [([a, a], 1), ([a, -4.0 * a], 1), ([a, near], 2), ([a, zero], 1), ([c, 1.0 - c], 2)]
    cases += [([c, one, 1.0 - c], 2), ([zero, c, 1.0 - c], 2), ([a, 3.0 * a], 2)]
    cases += [([one, 2.0 * one, a], 2), ([one, c, 1.0 - near], 3)]
    cases += [([m, m + 2.0**-24], 2), ([m, one, m + 2.0**-24], 2), ([zero], 0)]
    cases += [([*i.T, 3.0 * i[:, 0] - 7.0 * i[:, 1]], 2), ([3.0 * i[:, 0], one, 5.0 * i[:, 0]], 2)]
    cases += [([*np.eye(3)[np.arange(9) % 3].T, one, a], 4), ([1e200 * a, 1e-200 * a, d], 3)]
    cases += [([a, d, 0.3 * a + 0.7 * d], 3)]
    return cases


@pytest.mark.parametrize(("columns", "kept"), _alike())
@pytest.mark.parametrize("exact", [None, True, False])
def test_columns_are_replaced_by_what_others_do_not_make_up_for(
    columns: list[Any], kept: int, exact: bool | None
) -> None:
    matrix = np.column_stack(columns)
    for parts in ([matrix], [matrix[:4], matrix[4:]]):
        if exact is None:
            found = np.concatenate(independent(parts))
        else:
            checked = columns_of_checker(parts, exact)
            found = np.concatenate([middle(ball) for ball in checked])
            numbers = np.concatenate([ball.mid for ball in columns_of_checker(parts, True)])
            if exact:  # in the same span
                assert rank(np.column_stack([matrix.astype(object), numbers])) == kept
            else:
                limits = np.concatenate([ball.rad for ball in checked]).ravel().tolist()
                assert np.all(limits <= 2.0**-52 * np.abs(found.ravel()))
                each = zip(found.ravel().tolist(), numbers.ravel().tolist(), limits, strict=True)
                assert all(abs(Fraction(f) - v) <= Fraction(most) for f, v, most in each)
        assert found.shape == (9, kept)
        sizes = np.linalg.norm(found / np.abs(found).max(axis=0, initial=0.0), axis=0)
        units = found / np.abs(found).max(axis=0, initial=0.0) / sizes
        assert np.linalg.svd(units, compute_uv=False).min(initial=1.0) > 1e-4
    assert rank(matrix) == kept


@pytest.mark.parametrize(  # each with two losses, and in the slow suite with the others
    ("loss", "kind"),
    [
        pytest.param(loss, kind, marks=[pytest.mark.slow] * ((i + j) % 2))
        for i, kind in enumerate(("classes", "total", "rounded total"))
        for j, loss in enumerate(
            (sm.squared_loss, sm.absolute_loss, sm.hinge_loss, sm.squared_hinge_loss)
        )
    ],
)
def test_classes_beside_an_intercept_and_totals_beside_their_parts(
    tmp_path: Path, kind: str, loss: Any
) -> None:
    rng = np.random.default_rng({"classes": 3, "total": 5, "rounded total": 11}[kind])
    a, n = rng.standard_normal((20, 6)), 20
    if kind == "classes":
        a[:, :3] = np.eye(3)[rng.integers(0, 3, n)]
    else:
        a = a if kind == "rounded total" else np.round(4.0 * a)
        a[:, 2] = a[:, 0] + a[:, 1]
    y = a[:, 0] - a[:, 4] + a[:, 5] + 3.0 * rng.standard_normal(n)
    if loss in (sm.hinge_loss, sm.squared_hinge_loss):
        y = np.where(y > np.median(y), 1.0, -1.0)
        # Data of one class that are all of one sign are separable in part.
        y = np.where(a[:, 0] == 1.0, 1.0, y) if kind == "classes" else y
    w, c = sm.Variable(6), sm.Variable()
    proved(sm.Problem(sm.minimize(loss(a @ w + c, y)), sm.card(w) <= 3), tmp_path, A=a, y=y)


def rank(matrix: Any) -> int:
    """Return the rank in exact arithmetic."""
    rows, found = [[Fraction(v) for v in row] for row in matrix.tolist()], 0
    for j in range(matrix.shape[1]):
        pivot = next((i for i in range(found, len(rows)) if rows[i][j]), None)
        if pivot is None:
            continue
        rows[found], rows[pivot] = rows[pivot], rows[found]
        for i in range(found + 1, len(rows)):
            times = rows[i][j] / rows[found][j]
            rows[i] = [v - times * w for v, w in zip(rows[i], rows[found], strict=True)]
        found += 1
    return found


def test_columns_that_span_everything_are_not_looked_at_further() -> None:
    wide = np.random.default_rng(0).standard_normal((5, 40))
    assert independent([wide])[0].shape == (5, 5)
    assert columns_of_checker([wide], False)[0].shape == (5, 5)


def test_nothing_is_searched_where_nothing_is_left_to_gain() -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((15, 28))
    w = sm.Variable(28)
    loss = sm.smoothed_hinge_loss(a @ w, np.sign(a[:, 0]))
    problem = sm.Problem(sm.minimize(loss), sm.card(w) <= 5)
    proof = problem.prove()
    assert proof.claim is Claim.ZERO
    assert proof.proof is None
    verify(proof, problem.form)


@pytest.mark.parametrize("seed", [2, 3, 6])
def test_gradients_that_are_rounding_are_no_news_to_the_checker(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 2 + seed % 2
    a, y = rng.standard_normal((n, 8)), rng.poisson(2.0, n) + 1.0
    w, c = sm.Variable(8), sm.Variable()
    loss = sm.negative_binomial_loss(a @ w + c, y, theta=2.0)
    problem = sm.Problem(sm.minimize(loss), sm.card(w) <= 2)
    problem.solve()
    certificate = problem.certify()
    assert certificate.stationarity.residual <= 1e-6
    certificate.save(tmp_path / "certificate.json")
    np.savez(tmp_path / "data.npz", A=a, y=y)
    assert main([str(tmp_path / "certificate.json"), str(tmp_path / "data.npz")]) == 0
