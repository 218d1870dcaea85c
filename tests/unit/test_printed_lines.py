"""What is printed fits a screen: few lines, none wider than the terminal."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

import sparsemodel as sm

RNG = np.random.default_rng(0)
A = RNG.standard_normal((60, 40))
B = A[:, 0] - A[:, 3] + RNG.standard_normal(60)


def entries() -> sm.Variable:
    return sm.Variable(40, name="w", names=[f"a feature with a long name {j}" for j in range(40)])


def squared() -> sm.Problem:
    w = entries()
    return sm.Problem(sm.minimize(sm.squared_loss(A @ w, B)), sm.card(w) <= 3, w >= 0, w.sum() == 1)


def hinge() -> sm.Problem:
    w = entries()
    goal = sm.minimize(sm.hinge_loss(A @ w, B > 0) + sm.ridge(w, 0.1))
    return sm.Problem(goal, sm.card(w) <= 3)


def classes() -> sm.Problem:
    W = sm.Variable((40, 3), name="W")
    goal = sm.minimize(sm.multinomial_loss(A @ W, np.arange(60) % 3) + sm.ridge(W, 0.1))
    return sm.Problem(goal, sm.card(W, axis=1) <= 3)


def graph() -> sm.Problem:
    omega = sm.Variable((8, 8), symmetric=True, name="Omega")
    return sm.Problem(
        sm.minimize(sm.gaussian_nll(omega, data=A[:, :8])), sm.card(sm.offdiag(omega)) <= 10
    )


@pytest.mark.parametrize("posed", [squared, hinge, classes, graph])
def test_few_lines_and_none_too_wide(
    posed: Callable[[], sm.Problem], monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = posed()
    solution, certificate = problem.solve(), problem.certify()
    for width in (60, 100):
        monkeypatch.setenv("COLUMNS", str(width))
        brief = problem.explain()
        if width == 100:
            assert len(brief.splitlines()) <= 25
        assert len(brief) < len(problem.explain(full=True))
        for text in (brief, str(solution), str(certificate)):
            assert max(map(len, text.splitlines())) <= width


def test_a_graph_lists_its_edges_by_size() -> None:
    text = str(graph().solve())
    assert "of 28 edges" in text
    sizes = [abs(float(line.split()[-1])) for line in text.split("Edges")[1].splitlines() if line]
    assert sizes == sorted(sizes, reverse=True)
    assert 0 < len(sizes) <= 5


def words(solution: sm.Solution) -> str:
    return " ".join(str(solution).split())


def test_one_of_a_thing_is_singular() -> None:
    solution = graph().solve()
    text = words(dataclasses.replace(solution, iterations=1, passes=1.0))
    assert ", 1 iteration, 1 pass over the data" in text
    text = words(dataclasses.replace(solution, iterations=2, passes=1.5))
    assert ", 2 iterations, 1.5 passes over the data" in text


def test_one_line_in_the_shell() -> None:
    problem = hinge()
    for shown in (problem.solve(), problem.plan(), problem.certify()):
        assert "\n" not in repr(shown)
        assert len(repr(shown)) < 100
