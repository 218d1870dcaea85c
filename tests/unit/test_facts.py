"""Facts: true, with where they come from, and paid for only by those who read them."""

from __future__ import annotations

import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

import sparsemodel as sm
from sparsemodel.compiler.facts.analysis import _working_memory
from sparsemodel.compiler.facts.probes import Guess, Screened
from sparsemodel.designs import DenseDesign
from sparsemodel.interfaces import Access, Design
from sparsemodel.numerics import RegressionObjective

N, P, K = 200, 300, 8
COX = np.column_stack([np.arange(1.0, N + 1.0), np.arange(N) % 2])


class Reading(Design):
    """A dense design that counts what is read of it, in numbers."""

    def __init__(self, array: np.ndarray) -> None:
        self.inner = DenseDesign(array)
        self.read = 0

    @property
    def shape(self) -> tuple[int, int]:
        return self.inner.shape

    @property
    def access(self) -> Access:
        return self.inner.access

    def matvec(self, x: np.ndarray) -> np.ndarray:
        self.read += self.entries
        return self.inner.matvec(x)

    def rmatvec(self, r: np.ndarray) -> np.ndarray:
        self.read += self.entries
        return self.inner.rmatvec(r)

    def restrict(self, support: np.ndarray) -> Any:
        self.read += self.shape[0] * support.size
        return self.inner.restrict(support)

    def sampled_square_norms(self, rows: int) -> Any:
        return self.inner.sampled_square_norms(rows)


def data(sigma: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((N, P))
    return A, 2.0 * A[:, :K].sum(axis=1) + sigma * rng.standard_normal(N)


def posed(A: Any, b: np.ndarray, loss: Any = sm.squared_loss, ridge: float = 0.0) -> sm.Problem:
    w = sm.Variable(P, name="w")
    goal = loss(A @ w, b)
    return sm.Problem(sm.minimize(goal + sm.ridge(w, ridge) if ridge else goal), sm.card(w) <= K)


def facts_of(problem: sm.Problem, backend: str | None = None) -> dict[str, Any]:
    return {fact.name: fact for fact in problem.plan(backend).facts}


# ---- what they cost --------------------------------------------------------------------------


@pytest.mark.parametrize("backend", [None, "nhtp"])
def test_solving_does_not_pay_for_what_only_readers_want(backend: str | None) -> None:
    A, b = data()
    solved, read = Reading(A), Reading(A)
    posed(solved, b).solve(backend)
    problem = posed(read, b)
    plan = problem.plan(backend)
    before = read.read
    facts = {fact.name for fact in plan.facts}
    assert {"correlation", "conditioning", "noise", "memory of a solve", "finite sum"} <= facts
    after = read.read
    assert after - before <= 0.1 * A.size, "looking is cheap beside a pass"
    assert after > before, "planning has read none of these columns"
    problem.explain(backend)
    assert read.read == after, "nothing is read twice"
    read.read = 0
    problem.solve(backend)
    assert read.read < solved.read, "what was looked at is not looked at again"


def test_passes_are_those_of_the_sum() -> None:
    A, b = data()
    problem = posed(A, b)
    facts = problem.plan("nhtp").facts
    paid = problem._compiled().analysed
    assert paid == pytest.approx(sum(fact.passes for fact in facts), abs=0.011)
    assert paid < 0.6


def test_every_fact_says_where_it_comes_from() -> None:
    A, b = data()
    for fact in posed(A, b).plan().facts:
        assert fact.provenance in ("declared", "derived", "measured", "estimated")
        assert fact.source
    content = posed(A, b).plan().to_dict()["facts"]
    assert {"name", "value", "provenance", "source", "passes"} == set(content[0])


def test_a_plan_is_pickled_with_its_facts_and_without_the_data() -> None:
    A, b = data()
    plan = posed(A, b).plan()
    packed = pickle.dumps(plan)
    assert len(packed) < A.nbytes / 10
    assert pickle.loads(packed).facts == plan.facts


def test_facts_of_an_old_plan_are_of_its_own_k() -> None:
    A, b = data()
    k = sm.Parameter(integer=True, value=3)
    w = sm.Variable(P)
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, b)), sm.card(w) <= k)
    old = problem.plan()
    k.value = 12
    new = problem.plan()
    sources = [{fact.name: fact.source for fact in plan.facts}["noise"] for plan in (new, old)]
    assert "12 largest" in sources[0]
    assert "3 largest" in sources[1]


# ---- whether they are true -------------------------------------------------------------------


def test_the_conditioning_is_that_of_the_columns_that_were_read() -> None:
    A, b = data()
    form = posed(A, b).form
    gradient = A.T @ b / N
    gram = Screened.of(form, gradient).gram
    chosen = np.sort(np.argsort(-np.abs(gradient), kind="stable")[: gram.shape[0]])
    values = np.linalg.eigvalsh(A[:, chosen].T @ A[:, chosen] / N)
    text = facts_of(posed(A, b))["conditioning"].value
    assert f"condition number {values[-1] / values[0]:.3g}" in text
    assert f"between {values[0]:.3g} and {values[-1]:.3g}" in text
    A[:, 1] = A[:, 0] + A[:, 2]
    assert "linearly dependent" in facts_of(posed(A, A[:, :3].sum(axis=1)))["conditioning"].value


@pytest.mark.parametrize("sigma", [0.3, 3.0])
@pytest.mark.parametrize("scale", [1.0, 7.0])
def test_the_noise_is_seen(sigma: float, scale: float) -> None:
    """The first guess has the right columns here, so that what it leaves is noise alone."""
    A, b = data(sigma)
    value = facts_of(posed(A, scale * b))["noise"].value
    seen = float(value.split("deviation ")[1].split(" ")[0])
    assert seen == pytest.approx(scale * sigma, rel=0.35)


def test_the_noise_is_that_of_the_data_whatever_was_reduced() -> None:
    rng = np.random.default_rng(1)
    A = rng.standard_normal((6000, 40)) * np.logspace(0, 2, 40)
    b = 5.0 + A[:, -3:].sum(axis=1) + 2.0 * rng.standard_normal(6000)
    w, c = sm.Variable(40, name="w"), sm.Variable(name="c")
    goal = sm.squared_loss(A @ w + c, b) + sm.ridge(w, 1e-6)
    plan = sm.Problem(sm.minimize(goal), sm.card(w) <= 12).plan("nhtp")
    assert any("compressed" in text for text in plan.words.reductions)
    noise = {fact.name: fact.value for fact in plan.facts}["noise"]
    assert float(noise.split("deviation ")[1].split(" ")[0]) == pytest.approx(2.0, rel=0.05)


def test_noise_is_not_told_where_it_cannot_be_seen() -> None:
    """Where the guess could fit most observations, what it leaves says nothing."""
    A, b = data()
    weights = np.zeros(N)
    weights[: 2 * K - 1] = 1.0
    w = sm.Variable(P)
    for fit, told in (
        (sm.squared_loss(A @ w, b, weights=weights), False),
        (sm.squared_loss(A @ w, b), True),
    ):
        names = facts_of(sm.Problem(sm.minimize(fit), sm.card(w) <= K))
        assert ("noise" in names) is told


def test_the_share_left_is_that_of_least_squares() -> None:
    A, b = data()
    form = posed(A, b).form
    objective = RegressionObjective(form)
    gradient = objective.gradient(objective.origin())
    guess = Guess.of(form, gradient)
    chosen = np.argsort(-np.abs(gradient))[:K]
    residual = b - A[:, chosen] @ np.linalg.lstsq(A[:, chosen], b, rcond=None)[0]
    assert guess.value == pytest.approx(0.5 * np.mean(residual**2), rel=1e-10)
    assert guess.left == pytest.approx(np.sum(residual**2) / np.sum(b**2), rel=1e-9)
    assert guess.size == K


@pytest.mark.parametrize("kind", ["dense", "sparse", "operator"])
def test_memory_is_read_off_the_design(kind: str) -> None:
    A, b = data()
    given = {"dense": A, "sparse": sparse.csr_array(A), "operator": aslinearoperator(A)}[kind]
    facts = facts_of(posed(sm.as_design(given), b))
    if kind == "operator":
        assert "memory of the data" not in facts
        assert facts["conditioning"].value == "unknown"
    else:
        assert facts["memory of the data"].value == {"dense": "480 kB", "sparse": "721 kB"}[kind]


@pytest.mark.parametrize(("n", "p", "k"), [(1000, 2000, 20), (6000, 200, 10), (100, 8000, 30)])
def test_the_memory_of_a_solve_is_about_right(n: int, p: int, k: int) -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, p))
    w = sm.Variable(p)
    y = np.sign(A[:, :k].sum(axis=1) + 5.0 * rng.standard_normal(n))
    goal = sm.logistic_loss(A @ w, y) + sm.ridge(w, 1e-3)
    problem = sm.Problem(sm.minimize(goal), sm.card(w) <= k)
    reduced = problem._compiled().analysis()[1]
    problem.solve("exchange", max_iter=1)  # imports and compiled code are not of the solve
    tracemalloc.start()
    problem.solve("gomp > exchange", max_iter=3)
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert used / 3.0 <= _working_memory(reduced.form) <= 3.0 * used


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        (lambda z, b: sm.squared_loss(z, b), f"mean of {N} terms, stochastic steps apply"),
        (lambda z, b: sm.squared_loss(z, b, reduction="sum"), f"sum of {N} terms, stochastic"),
        (lambda z, b: sm.cox_loss(z, COX), "no: cox_loss couples observations"),
    ],
)
def test_what_is_a_finite_sum_says_so(goal: Any, words: str) -> None:
    A, b = data()
    w = sm.Variable(P)
    problem = sm.Problem(sm.minimize(goal(A @ w, b) + sm.ridge(w, 0.1)), sm.card(w) <= K)
    assert facts_of(problem)["finite sum"].value.startswith(words)


def test_two_terms_have_their_own_facts() -> None:
    A, b = data()
    w = sm.Variable(P)
    goal = sm.squared_loss(A @ w, b) + sm.squared_loss(A[:50] @ w, b[:50])
    names = set(facts_of(sm.Problem(sm.minimize(goal), sm.card(w) <= K)))
    assert {"loss 1", "loss 2", "design 1", "design 2", "finite sum 1", "finite sum 2"} <= names
