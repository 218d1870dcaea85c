"""Nodes with many coordinates, solved on few of them: the same relaxation and the same proofs."""

from __future__ import annotations

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import verify
from sparsemodel.certificates.proving.gram import part, working_set
from sparsemodel.certificates.proving.gram import stage as stages
from sparsemodel.certificates.proving.gram.quadratic import Quadratic
from sparsemodel.designs import DenseDesign
from sparsemodel.interfaces import Box, Cardinality, FloatArray, SparseRegression, Term
from sparsemodel.losses import SquaredLoss

pytest.importorskip("numba")


def data(n: int, p: int, seed: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, p)) + 0.4 * rng.standard_normal((n, 1))
    return A, A[:, [3, p // 2, p - 4]] @ [1.0, -1.0, 1.0] + 0.5 * rng.standard_normal(n)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_slopes_and_products_are_those_of_the_whole_matrix(
    share: float, intercept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    A, b = data(80, 30, 0)
    A = np.column_stack([A, np.ones(80)]) if intercept else A
    p = A.shape[1]
    free = np.arange(30, p)
    term = Term(DenseDesign(A), SquaredLoss(), b, np.full(80, 1.0 / 80))
    ridge = np.where(np.arange(p) < 30, 0.2, 0.0)
    q = Quadratic.of(SparseRegression((term,), ridge, Cardinality(p, 3, free=free)))
    delta = share * np.random.default_rng(1).uniform(0.0, 0.1, 30)
    box = Box(np.full(p, -2.0), np.full(p, 3.0))
    whole = stages.make_stage(q, np.arange(30), free, delta, box)
    monkeypatch.setattr(stages, "WIDE", 8)
    wide = stages.make_stage(q, np.arange(30), free, delta, box, whole=False)
    assert whole is not None
    assert wide is not None
    assert whole.matrix is not None
    assert wide.matrix is None
    w = np.where(np.arange(30) % 7 == 3, np.linspace(-1.0, 1.0, 30), 0.0)
    np.testing.assert_allclose(wide.slopes(w), whole.matrix @ w - whole.linear, atol=1e-12)
    some = np.array([1, 4, 9, 28])
    np.testing.assert_allclose(wide.products(some), whole.matrix[np.ix_(some, some)], atol=1e-12)
    for count in (8, 20):
        part = wide.on(np.arange(30) < count)
        assert (part.matrix is None) == (count > 8)
    np.testing.assert_allclose(wide.on(np.arange(30) < 8).matrix, whole.matrix[:8, :8], atol=1e-12)


@pytest.mark.parametrize("ridge", [0.0, 1e-2, 0.3])
@pytest.mark.parametrize("intercept", [False, True])
def test_proofs_on_few_coordinates_are_as_good(
    ridge: float, intercept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    A, b = data(60, 90, 2)

    def proved() -> tuple[sm.Problem, sm.Certificate]:
        w, level = sm.Variable(90, name="w"), sm.Variable(name="level")
        fit = A @ w + level if intercept else A @ w
        goal = sm.squared_loss(fit, b + 2.0 * intercept) + sm.ridge(w, ridge)
        problem = sm.Problem(sm.minimize(goal), sm.card(w) <= 3)
        return problem, problem.prove(gap=1e-6)

    _, whole = proved()
    calls = []

    def counted(*arguments: object) -> object:
        calls.append(1)
        return on_few(*arguments)

    on_few = working_set.on_few
    monkeypatch.setattr(stages, "WIDE", 12)
    monkeypatch.setattr(part, "on_few", counted)
    monkeypatch.setattr(working_set, "_FIRST", 4)
    monkeypatch.setattr(working_set, "_MORE", 3)
    problem, few = proved()
    assert calls
    assert few.relative_gap <= 1e-6
    assert few.value == pytest.approx(whole.value, rel=1e-9)
    assert verify(few, problem.form)
