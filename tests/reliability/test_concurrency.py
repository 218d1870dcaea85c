"""Threads and processes give the answers of a lone run; everything travels between processes."""

from __future__ import annotations

import pickle
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates.arithmetic.readings import remembered
from sparsemodel.designs import DenseDesign
from sparsemodel.designs.elsewhere.columns import ReadColumns

# The paths are short, and their ends are chosen.
pytestmark = pytest.mark.filterwarnings("ignore:bic chooses")

LOSSES = ("squared", "logistic", "huber", "hinge")


def problem_of(number: int) -> sm.Problem:
    rng = np.random.default_rng(number)
    A = rng.standard_normal((30, 9))
    loss = LOSSES[number % len(LOSSES)]
    u = A[:, 0] - A[:, 3] + rng.standard_normal(30)
    target = u if loss in ("squared", "huber") else np.where(u > 0.0, 1.0, -1.0)
    w = sm.Variable(9, name="w")
    term = getattr(sm, f"{loss}_loss")(A @ w, target)
    return sm.Problem(sm.minimize(term + sm.ridge(w, 0.05)), sm.card(w) <= 3)


def answer(number: int) -> tuple[float, tuple[int, ...]]:
    solution = problem_of(number).solve()
    assert solution.bound <= solution.value  # how far it is looked for depends on the time
    return solution.value, tuple(solution.support.tolist())


def solved_elsewhere(content: bytes) -> bytes:
    problem = pickle.loads(content)
    solution = problem.solve()
    return pickle.dumps((solution, problem.certify(), problem.plan()))


def test_threads_give_the_same_answers_to_the_last_bit():
    alone = [answer(number) for number in range(4)]  # one of each loss
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(answer, [*range(4), *range(4)])) == alone + alone


def test_threads_may_share_the_data_of_different_problems():
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((50, 20)), rng.standard_normal(50)
    design = sm.as_design(A)

    def value(k: int) -> float:
        w = sm.Variable(20, name="w")
        loss = sm.squared_loss(design @ w, b)
        return sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= k).solve().value

    alone = [value(k) for k in range(8)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(value, range(8))) == alone


def test_threads_share_what_was_read(tmp_path, monkeypatch):
    np.save(tmp_path / "A.npy", np.zeros((9, 2)))
    design = sm.as_design(np.load(tmp_path / "A.npy", mmap_mode="r"))
    monkeypatch.setattr("sparsemodel.certificates.arithmetic.readings._MANY", 20)

    def asked(seed: int) -> bool:  # more results than are kept
        keys = np.random.default_rng(seed).integers(0, 30, 2000).tolist()
        found = [remembered(design, key, lambda key=key: (np.full(1, key),)) for key in keys]
        return [int(numbers[0]) for (numbers,) in found] == keys

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # threads are interrupted nearly anywhere
    try:
        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(asked, range(4)))
    finally:
        sys.setswitchinterval(interval)


def test_columns_that_two_threads_read_are_kept_once(monkeypatch):
    monkeypatch.setattr("sparsemodel.designs.elsewhere.columns.KEPT_BYTES", 20 * 8)
    entries = np.arange(80.0)[None, :]
    nothing = np.zeros(0, dtype=np.intp)
    first_columns: list[int] = []

    def asked(support: np.ndarray) -> np.ndarray:
        return kept.restrict(support, nothing, DenseDesign(entries[:, nothing]), "stamp").to_array()

    def read(support: np.ndarray) -> np.ndarray:
        first_columns.append(support[0])
        if first_columns.count(support[0]) == 1:  # another thread asks while this one reads
            asked(support)
        return entries.T[support]

    kept = ReadColumns(read)
    for start in range(0, 80, 8):
        support = np.arange(start, start + 8)
        np.testing.assert_array_equal(asked(support)[0], support)
    assert len(first_columns) == 2 * 10
    asked(support)
    assert len(first_columns) == 2 * 10


@pytest.mark.slow
def test_problems_solutions_plans_and_certificates_travel():
    numbers = range(4)
    alone = [answer(number) for number in numbers]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        contents = [pickle.dumps(problem_of(number)) for number in numbers]
        for (value, support, _), content in zip(
            alone, pool.map(solved_elsewhere, contents), strict=True
        ):
            solution, certificate, plan = pickle.loads(content)
            assert solution.value == pytest.approx(value, rel=1e-12)
            assert tuple(solution.support.tolist()) == support
            assert certificate.bound <= certificate.upper
            assert "Plan" in str(plan)
            assert str(certificate)


def graph_of(number: int) -> sm.Problem:
    X = np.random.default_rng(number).standard_normal((25, 5))
    X[:, 1] += X[:, 0]
    X[:, 3] -= X[:, 2]
    omega = sm.Variable((5, 5), symmetric=True, name="Omega")
    goal = sm.minimize(sm.gaussian_nll(omega, data=X))
    return sm.Problem(goal, sm.card(sm.offdiag(omega)) <= 6)


def told(path: object) -> tuple:
    """Return all that a path says, its choice included, as plain values."""
    chosen = path.select("bic")
    return (
        list(path.k),
        [float(value) for value in path.objective],
        [[str(name) for name in support] for support in path.support],
        float(path.passes),
        chosen.k,
        float(chosen.value),
        str(chosen.support),
        {name: np.asarray(value).tolist() for name, value in chosen.values.items()},
        str(path),
    )


def path_of(kind: str) -> object:
    return (graph_of(1) if kind == "graph" else problem_of(0)).path(range(4))


def path_and_problem(kind: str) -> tuple:
    problem = graph_of(2) if kind == "graph" else problem_of(1)
    certificate = problem.certify() if problem.solve() else None
    return told(path_of(kind)), problem.value, certificate.bound, certificate.upper


def proof_of(kind: str) -> tuple[sm.Problem, object]:
    problem = graph_of(3) if kind == "graph" else problem_of(4)
    problem.solve()
    return problem, problem.certify() if kind == "graph" else problem.prove()


def opened_elsewhere(content: bytes) -> tuple:
    """Return what another process makes of a path, a certificate and its problem."""
    from sparsemodel.certificates import verify

    path, problem, certificate = pickle.loads(content)
    verify(certificate, problem.form)
    again = path_of("graph" if "Omega" in str(problem) else "regression")
    return told(path), told(again), certificate.bound, str(certificate), pickle.dumps(path)


@pytest.mark.parametrize("kind", ["regression", "graph"])
def test_threads_follow_paths_and_solve_graphs_at_once(kind: str):
    alone = path_and_problem(kind)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(path_and_problem, [kind] * 3)) == [alone] * 3


@pytest.mark.slow
def test_paths_certificates_and_proofs_travel():
    """To processes that start from nothing, two at once, and back."""
    kinds = ("regression", "graph")
    sent = [(path_of(kind), *proof_of(kind)) for kind in kinds]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        back = list(pool.map(opened_elsewhere, [pickle.dumps(things) for things in sent]))
        at_once = list(pool.map(path_and_problem, kinds))
    for (path, _, certificate), (there, again, bound, text, returned) in zip(
        sent, back, strict=True
    ):
        assert there == told(path) == told(pickle.loads(returned))
        assert again == there
        assert bound == certificate.bound
        assert text == str(certificate)
    assert at_once == [path_and_problem(kind) for kind in kinds]


@pytest.mark.parametrize("kind", ["regression", "graph"])
def test_a_path_is_pickled_with_its_choice(kind: str):
    path = path_of(kind)
    assert told(pickle.loads(pickle.dumps(path))) == told(path)


@pytest.mark.parametrize(  # squares, and a loss with kinks
    "number", [0, pytest.param(3, marks=pytest.mark.slow)]
)
def test_a_solved_problem_is_pickled_with_its_state(number: int):
    problem = problem_of(number)
    solution, certificate = problem.solve(), problem.certify()
    again = pickle.loads(pickle.dumps(problem))
    assert again.value == solution.value
    assert again.certify().bound == pytest.approx(certificate.bound, rel=1e-12)
    assert str(pickle.loads(pickle.dumps(certificate))) == str(certificate)
    assert str(pickle.loads(pickle.dumps(solution))) == str(solution)
    assert again.solve().value == pytest.approx(solution.value, rel=1e-12)


def test_nothing_global_is_changed():
    state, errors = np.random.get_state(), np.geterr()  # noqa: NPY002
    answer(0)
    after = np.random.get_state()  # noqa: NPY002
    assert all(np.array_equal(a, b) for a, b in zip(state, after, strict=True))
    assert np.geterr() == errors
