"""What solving costs, counted: passes, factorisations and calls, never seconds.

The limits are what was measured when a change made things faster, with a little room; a test
that fails here says that something is done twice.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from scipy.fft import dct, idct
from scipy.sparse.linalg import LinearOperator

import sparsemodel as sm
import sparsemodel_backends
from sparsemodel.compiler.canonical.canonicalize import canonicalize
from sparsemodel.compiler.choice import openings
from sparsemodel.designs import DenseDesign
from sparsemodel.driver import Outcome
from sparsemodel.interfaces import Context, Design, Stop
from sparsemodel.numerics import RegressionObjective, minimise_on_support, separation
from sparsemodel.sklearn import SparseLinearRegression
from sparsemodel_backends.local_search import LocalSearch
from sparsemodel_backends.nhtp import NHTP


class Counting(Design):
    """A dense design that counts its full products and the columns it hands out."""

    def __init__(self, array: np.ndarray) -> None:
        self.inner = DenseDesign(array)
        self.products = 0
        self.columns = 0

    @property
    def shape(self) -> tuple[int, int]:
        return self.inner.shape

    @property
    def access(self) -> Any:
        return self.inner.access

    def matvec(self, x: np.ndarray) -> np.ndarray:
        self.products += 1
        return self.inner.matvec(x)

    def rmatvec(self, r: np.ndarray) -> np.ndarray:
        self.products += 1
        return self.inner.rmatvec(r)

    def restrict(self, support: np.ndarray) -> Any:
        self.columns += support.size
        return self.inner.restrict(support)

    def restrict_again(self, support: np.ndarray, last: np.ndarray, restricted: Any) -> Any:
        self.columns += np.setdiff1d(support, last).size
        return self.inner.restrict_again(support, last, restricted)

    def column_square_norms(self, h: np.ndarray | None = None) -> np.ndarray:
        self.products += 1
        return self.inner.column_square_norms(h)

    def sampled_square_norms(self, rows: int) -> Any:
        return self.inner.sampled_square_norms(rows)


def cosines(p: int, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.choice(p, p // 4, replace=False))
    A = np.cos(np.pi * np.outer(rows, np.arange(p) + 0.5) / p)
    A /= np.linalg.norm(A, axis=0)
    x = np.zeros(p)
    x[rng.choice(p, k, replace=False)] = rng.standard_normal(k)
    return A, A @ x, x


def outcome_of(problem: Any) -> Outcome:
    return problem._outcome


@pytest.mark.parametrize(("share", "passes"), [(0.01, 3.0), (0.05, 5.0)])
def test_noiseless_recovery_takes_a_few_passes(share, passes):
    p = 2000
    k = round(share * p)
    A, b, x = cosines(p, k)
    design = Counting(A)
    w = sm.Variable(p)
    problem = sm.Problem(sm.minimize(sm.squared_loss(design @ w, b)), sm.card(w) <= k)
    solution = problem.solve()
    np.testing.assert_allclose(w.value, x, atol=1e-10)
    assert solution.passes <= passes
    assert design.products <= 2.0 * solution.passes + 1  # what is counted is what was done
    assert design.columns <= 4 * k  # columns that stay are not read again
    assert outcome_of(problem).factorizations <= solution.iterations + 1


@pytest.mark.unrefereed("products are counted, and the referee multiplies as well")
def test_a_wide_problem_in_single_precision_takes_a_product_for_each_step(monkeypatch):
    """Sizes of columns come from a sample, rounding ends no run late, a clear support the plan."""
    monkeypatch.setattr(openings, "TOO_LONG", 1e-3)
    rng = np.random.default_rng(0)
    A = rng.standard_normal((200, 30_000), dtype=np.float32)
    b = A[:, ::6000].sum(axis=1) + 0.5 * rng.standard_normal(200)
    design, w = Counting(A), sm.Variable(30_000)
    loss = sm.squared_loss(design @ w, b) + sm.ridge(w, 0.1)
    problem = sm.Problem(sm.minimize(loss), sm.card(w) <= 5)
    problem.solve()
    # At zero, after two steps, and at the minimiser on their support, where no insertion helps.
    assert design.products == 4
    assert problem.plan().outline == "nhtp | gomp"
    assert outcome_of(problem).stop is Stop.CONVERGED
    assert np.flatnonzero(w.value).tolist() == list(range(0, 30_000, 6000))


def test_polishing_reuses_the_last_factor():
    A, b, _ = cosines(1000, 10)
    w = sm.Variable(1000)
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, b)), sm.card(w) <= 10)
    form = problem.form
    objective = RegressionObjective(form)
    point = NHTP().solve(objective, Context(minimise_on_support)).point
    before = objective.work.factorizations
    minimise_on_support(objective, point.support, point)
    assert objective.work.factorizations == before


def test_minimisers_on_a_support_need_no_full_product():
    A, b, _ = cosines(400, 8)
    design = Counting(A)
    w = sm.Variable(400)
    problem = sm.Problem(sm.minimize(sm.squared_loss(design @ w, b)), sm.card(w) <= 8)
    objective = RegressionObjective(problem.form)
    origin = objective.origin()
    for start in range(5):
        minimise_on_support(objective, np.arange(start, start + 8), origin)
    assert design.products == 0
    assert design.columns == 8 + 4  # one new column each time


def test_matrix_free_newton_systems_take_conjugate_gradients():
    p, k = 2**12, 40
    rng = np.random.default_rng(0)
    rows = np.sort(rng.choice(p, p // 4, replace=False))
    calls = []

    def matvec(v: np.ndarray) -> np.ndarray:
        calls.append(1)
        return 2.0 * dct(v.ravel(), norm="ortho")[rows]

    def rmatvec(r: np.ndarray) -> np.ndarray:
        calls.append(1)
        full = np.zeros(p)
        full[rows] = r.ravel()
        return 2.0 * idct(full, norm="ortho")

    operator = LinearOperator((p // 4, p), matvec=matvec, rmatvec=rmatvec, dtype=float)
    x = np.zeros(p)
    x[rng.choice(p, k, replace=False)] = rng.standard_normal(k)
    b = operator.matvec(x)
    calls.clear()
    w = sm.Variable(p)
    problem = sm.Problem(
        sm.minimize(sm.squared_loss(sm.as_design(operator) @ w, b)), sm.card(w) <= k
    )
    solution = problem.solve("nhtp")
    np.testing.assert_allclose(w.value, x, atol=1e-8)
    assert len(calls) <= 130  # forming k columns of each Hessian would take hundreds
    comparison = 6  # of the operator with its adjoint, once
    assert len(calls) <= 2.0 * solution.passes + 4 + comparison


def test_generalised_pursuit_takes_half_a_pass_a_block():
    rng = np.random.default_rng(1)
    A = rng.standard_normal((300, 800))
    y = np.where(A[:, :10].sum(axis=1) + rng.standard_normal(300) > 0.0, 1.0, -1.0)
    w = sm.Variable(800)
    objective = sm.minimize(sm.logistic_loss(A @ w, y) + sm.ridge(w, 1e-3))
    solution = sm.Problem(objective, sm.card(w) <= 40).solve("gomp")
    assert solution.passes <= 20 / 2 + 2.0


def test_solving_again_reads_nothing_twice():
    A, b, _ = cosines(1000, 10)
    design = Counting(A)
    w = sm.Variable(1000)
    problem = sm.Problem(sm.minimize(sm.squared_loss(design @ w, b)), sm.card(w) <= 10)
    first = problem.solve("nhtp").passes
    second = problem.solve("nhtp").passes
    assert second < first


def test_single_precision_data_end_as_soon_as_nothing_moves() -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((300, 600)).astype(np.float32)
    truth = np.zeros(600)
    truth[:8] = 1.0
    b = A @ truth + 0.01 * rng.standard_normal(300)
    w = sm.Variable(600)
    solution = sm.Problem(sm.minimize(sm.squared_loss(A @ w, b)), sm.card(w) <= 8).solve("nhtp")
    assert solution.support.tolist() == list(range(8))
    assert solution.passes <= 4


def test_a_swap_of_the_local_search_takes_one_pass():
    """Axiotis and Sviridenko (2020), Algorithm 4, squared loss: all insertions priced at once."""
    rng = np.random.default_rng(4)
    A = rng.standard_normal((200, 1000))
    b = A[:, :20] @ np.ones(20) + 0.1 * rng.standard_normal(200)
    w = sm.Variable(1000)
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, b)), sm.card(w) <= 20)
    objective = RegressionObjective(problem.form)
    start = np.zeros(1000)
    start[5:25] = 1.0
    context = Context(minimise_on_support, start=start)
    backend = LocalSearch(removal="cheapest")
    state = backend.init(objective, context)
    swaps = 0
    while not state.done:
        support, before = state.point.support, objective.work.passes
        state = backend.step(objective, state, context)
        if not state.done:
            swaps += 1
            # An eighth more where a quarter of the columns is priced before one enters.
            assert 1.0 <= objective.work.passes - before <= 1.125
            assert np.setdiff1d(state.point.support, support).size == 1
    assert swaps >= 5
    np.testing.assert_array_equal(state.point.support, np.arange(20))


def test_a_plan_ends_when_the_support_stands_out() -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((400, 1200))
    b = A[:, :10].sum(axis=1) + 0.1 * rng.standard_normal(400)
    w = sm.Variable(1200)
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, b)), sm.card(w) <= 10)
    solution = problem.solve()
    assert solution.support.tolist() == list(range(10))
    assert solution.passes <= 3.0
    assert "ends early" in problem.explain(full=True)


def test_the_share_that_stands_out_is_that_of_exact_exchanges() -> None:
    rng = np.random.default_rng(1)
    A = rng.standard_normal((30, 14))  # of a column outside the support leaves two thirds
    b = A[:, :10] @ rng.uniform(1.0, 2.0, 10) + 0.1 * rng.standard_normal(30)
    w = sm.Variable(14)
    form = sm.Problem(sm.minimize(sm.squared_loss(A @ w, b)), sm.card(w) <= 10).form
    objective = RegressionObjective(form)
    support = np.arange(10)
    point = minimise_on_support(objective, support, objective.origin())

    def value(chosen: list[int]) -> float:
        x = np.linalg.lstsq(A[:, chosen], b, rcond=None)[0]
        return 0.5 * float(np.mean(np.square(A[:, chosen] @ x - b)))

    here, inside = value(list(support)), list(support)
    cheapest = min(value([*inside[:i], *inside[i + 1 :]]) - here for i in range(10))
    largest = max(here - value([*inside, j]) for j in range(10, 14))
    assert separation(objective, point) == pytest.approx(cheapest / largest, rel=1e-6)


@pytest.mark.unrefereed("products are counted, and the referee multiplies as well")
def test_local_search_of_a_loss_without_closed_form_takes_half_a_pass_a_step():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((300, 800))
    y = np.where(A[:, :60] @ rng.standard_normal(60) > 0.0, 1.0, -1.0)
    design = Counting(A)
    w = sm.Variable(800)
    objective = sm.minimize(sm.logistic_loss(design @ w, y) + sm.ridge(w, 1e-8))
    solution = sm.Problem(objective, sm.card(w) <= 60).solve("local_search")
    assert np.count_nonzero(w.value) == 60
    # Gradients of each step and of the removals at the end, curvatures when the loss has halved.
    halvings = np.log2(np.log(2.0) / solution.value) + 2.0
    assert solution.iterations <= 100
    assert solution.passes <= 0.5 * (solution.iterations + halvings) + 3.0
    assert design.products <= 2.0 * solution.passes + 2  # and the norms of the columns, once


def calls_of_a_solve(loss: Any, A: np.ndarray, y: np.ndarray) -> int:
    """Return how many functions this package calls, its own and others', from goal to solution."""
    folders = tuple(str(Path(module.__file__).parent) for module in (sm, sparsemodel_backends))
    calls = 0

    def counted(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        if event == "call":
            caller = frame.f_back
            files = (frame.f_code.co_filename, "" if caller is None else caller.f_code.co_filename)
            calls += any(file.startswith(folders) for file in files)
        elif event == "c_call":
            calls += frame.f_code.co_filename.startswith(folders)

    before = sys.getprofile()
    for profile in (None, counted):  # the first time is another matter
        w = sm.Variable(A.shape[1])
        sys.setprofile(profile)
        try:
            sm.Problem(sm.minimize(loss(A @ w, y)), sm.card(w) <= 5).solve()
        finally:
            sys.setprofile(before)
    return calls


@pytest.mark.parametrize(
    ("loss", "most"), [("squared", 4000), ("logistic", 13500), ("poisson", 6000)]
)
@pytest.mark.unrefereed("calls are counted, and the referee calls as well")
def test_small_problems_take_few_calls(
    loss: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Where it is loaded it may ask what our objects are, which takes a few calls each time.
    monkeypatch.delitem(sys.modules, "cvxpy", raising=False)
    rng = np.random.default_rng(0)
    A = rng.standard_normal((200, 50))
    eta = A[:, :5] @ np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    y = {
        "squared": lambda: eta + 0.5 * rng.standard_normal(200),
        "logistic": lambda: np.where(rng.random(200) < 1.0 / (1.0 + np.exp(-eta)), 1.0, -1.0),
        "poisson": lambda: rng.poisson(np.exp(0.4 * eta)).astype(float),
    }[loss]()
    assert calls_of_a_solve(getattr(sm, f"{loss}_loss"), A, y) <= most


@pytest.mark.unrefereed("calls are counted, and the referee compiles as well")
def test_an_estimator_compiles_its_problem_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def counted(*arguments: Any) -> Any:
        made.append(arguments)
        return canonicalize(*arguments)

    monkeypatch.setattr("sparsemodel.modelling.regression.compiled.canonicalize", counted)
    rng = np.random.default_rng(0)
    A = rng.standard_normal((50, 20))
    SparseLinearRegression(3).fit(A, A[:, 0] + rng.standard_normal(50))
    assert len(made) == 1
