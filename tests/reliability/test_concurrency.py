"""Threads and processes give the answers of a lone run; everything travels between processes."""

from __future__ import annotations

import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

import sparsemodel as sm

LOSSES = ("squared", "logistic", "huber", "hinge")


def problem_of(number: int) -> sm.Problem:
    rng = np.random.default_rng(number)
    A = rng.standard_normal((40, 12))
    loss = LOSSES[number % len(LOSSES)]
    u = A[:, 0] - A[:, 3] + rng.standard_normal(40)
    target = u if loss in ("squared", "huber") else np.where(u > 0.0, 1.0, -1.0)
    w = sm.Variable(12, name="w")
    term = getattr(sm, f"{loss}_loss")(A @ w, target)
    return sm.Problem(sm.minimize(term + sm.ridge(w, 0.05)), sm.card(w) <= 3)


def answer(number: int) -> tuple[float, tuple[int, ...], float]:
    solution = problem_of(number).solve()
    return solution.value, tuple(solution.support.tolist()), solution.bound


def solved_elsewhere(content: bytes) -> bytes:
    problem = pickle.loads(content)
    solution = problem.solve()
    return pickle.dumps((solution, problem.certify(), problem.plan()))


def test_threads_give_the_same_answers_to_the_last_bit():
    alone = [answer(number) for number in range(8)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(answer, [*range(8), *range(8)])) == alone + alone


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


@pytest.mark.parametrize("number", range(4))
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
