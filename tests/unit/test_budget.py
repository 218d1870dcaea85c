"""Work that cannot be stopped is not begun where it would not end in time."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates.dual_bounds import bound_search as search
from sparsemodel.certificates.dual_bounds import curvature
from sparsemodel.certificates.proving import compiling
from sparsemodel.certificates.proving.dual.subproblem import in_memory
from sparsemodel.certificates.proving.gram import stage
from sparsemodel.designs.chunked import ChunkedDesign
from sparsemodel.interfaces import Cardinality, SparseRegression, Term
from sparsemodel.losses import SquaredLoss
from sparsemodel.numerics.budget import Budget, budget, ending_by, gram_cost, rate


def _problem(n: int, p: int, k: int) -> sm.Problem:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p)) + 0.3 * rng.standard_normal((n, 1))
    y = X[:, :10] @ rng.standard_normal(10) + 20.0 * rng.standard_normal(n)
    w = sm.Variable(p)
    return sm.Problem(sm.minimize(sm.squared_loss(X @ w, y) + sm.ridge(w, 1e-3)), sm.card(w) <= k)


def test_a_budget_forecasts_and_always_allows_what_is_small() -> None:
    assert Budget(None).fits(1e300)
    assert Budget(None).left == np.inf
    late = Budget(time.perf_counter() - 1.0)
    assert late.over()
    assert late.fits(1e6)
    assert not late.fits(1e12)
    ahead = Budget(time.perf_counter() + 100.0)
    assert ahead.fits(10.0 * rate())
    assert not ahead.fits(gram_cost(1000, 1000), 1000.0 * rate())


def test_factorisations_that_do_not_fit_are_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = _problem(300, 250, 20)
    problem.solve(time_limit=0.2)
    begun: list[str] = []

    def refuse(what: str) -> Any:
        def call(*_: Any, **__: Any) -> Any:
            begun.append(what)
            raise AssertionError(what)

        return call

    monkeypatch.setattr("sparsemodel.numerics.budget._FREE", 0.0)
    monkeypatch.setattr("sparsemodel.numerics.budget.rate", lambda: 1e5)
    monkeypatch.setattr(search, "hessian", refuse("Gram matrix"))
    monkeypatch.setattr(search, "curvature", refuse("Schur complement"))
    monkeypatch.setattr(stage, "extraction", refuse("Cholesky"))
    monkeypatch.setattr(curvature, "simple_diagonals", refuse("eigenvalues"))
    certificate = problem.certify(time_limit=0.3)
    proof = problem.prove(time_limit=0.3)
    assert not begun
    for found in (certificate, proof):
        assert 0.0 <= found.bound <= found.value


def test_without_a_limit_everything_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = _problem(60, 40, 10)
    free = problem.solve().lower.value
    whole = problem.certify().bound
    assert whole > free
    monkeypatch.setattr("sparsemodel.numerics.budget._FREE", 0.0)
    monkeypatch.setattr("sparsemodel.numerics.budget.rate", lambda: 1.0)
    assert problem.certify(time_limit=0.5).bound <= whole * (1 + 1e-9)


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that each solve of the test was given."""
    given: list[float] = []
    solve = sm.Problem.solve

    def watched(problem: sm.Problem) -> Any:
        given.append(budget().left)
        return solve(problem)

    monkeypatch.setattr(sm.Problem, "solve", watched)
    return given


@pytest.mark.parametrize("call", ["certify", "prove", "theory"])
def test_a_first_solve_leaves_half_of_the_time(call: str, given: list[float]) -> None:
    problem = _problem(60, 12, 2)
    getattr(problem, call)(time_limit=40.0)
    assert len(given) == 1
    assert 10.0 < given[0] <= 20.0
    assert budget().left == np.inf
    posed = _problem(60, 12, 2)
    posed.certify()
    assert given[1:] == [np.inf]


@pytest.mark.parametrize("call", ["certify", "prove"])
def test_a_first_search_for_the_fewest_leaves_half(call: str, given: list[float]) -> None:
    w = sm.Variable(3)
    loss = sm.squared_loss(np.eye(3) @ w, [3.0, 0.1, -2.0])
    problem = sm.Problem(sm.minimize(sm.card(w)), loss <= 0.1)
    getattr(problem, call)(time_limit=40.0)
    assert problem.value == 2
    assert 10.0 < given[0] <= 20.0


def test_files_are_not_gathered_where_the_time_would_pass(tmp_path: Any) -> None:
    data = np.memmap(tmp_path / "A.bin", dtype=np.float64, mode="w+", shape=(50, 4))
    term = Term(ChunkedDesign(data), SquaredLoss(), np.ones(50), np.ones(50))
    form = SparseRegression((term,), np.ones(4), Cardinality(4, 2))
    assert in_memory(form).terms[0].design is not term.design
    with ending_by(time.perf_counter()):
        assert in_memory(form).terms[0].design is term.design


def test_compiling_is_not_counted_by_any_deadline_around_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compiling, "LOADING", 0.0)
    began = time.perf_counter()
    with ending_by(began + 10.0) as outer, ending_by(began + 5.0) as inner:
        compiling.warmed(compiling.Code("", ""), lambda: time.sleep(0.02))
        assert budget() is inner
        assert inner.deadline is not None
        assert inner.deadline >= began + 5.02
        with ending_by(None) as later:
            assert later.deadline == inner.deadline
    assert outer.deadline is not None
    assert began + 10.02 <= outer.deadline < began + 11.0
