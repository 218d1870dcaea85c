"""Plans of several stages as text: parsed, obeyed or refused, and what holds across stages."""

from __future__ import annotations

import io
import time

import networkx as nx
import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.compiler.choice.recipes import Step, parse
from sparsemodel.interfaces import Stop
from sparsemodel.reporting import plots

TWO_CHAINS = "nhtp > local_search | gomp > local_search"


@pytest.fixture
def problem() -> sm.Problem:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((80, 60))
    b = A[:, :6] @ rng.standard_normal(6) + rng.standard_normal(80)
    w = sm.Variable(60, name="w")
    return sm.Problem(sm.minimize(sm.squared_loss(A @ w, b) + sm.ridge(w, 0.01)), sm.card(w) <= 8)


def test_a_recipe_is_parsed() -> None:
    assert parse("nhtp:patience=10 > local_search | gomp|best local_search : removal=all") == (
        Step("nhtp", "zero", {"patience": "10"}),
        Step("local_search", "last"),
        Step("gomp", "zero"),
        Step("local_search", "best", {"removal": "all"}),
    )


@pytest.mark.parametrize("text", ["nhtp >", "| nhtp", "nhtp:patience", "nhtp:=3", "a > > b"])
def test_what_is_no_recipe_says_how_one_looks(problem: sm.Problem, text: str) -> None:
    with pytest.raises(sm.ModelError, match="nhtp > local_search"):
        problem.solve(text)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("nhtp:patiense=3", sm.ModelError, "no option 'patiense'; it has .*patience"),
        ("nhtp:patience=often", sm.ModelError, "needs a value of kind int"),
        ("nhtp > lokal_search", sm.BackendUnavailableError, "Did you mean 'local_search'"),
        ("nhtp > precision_swap", sm.UnsupportedProblemError, "is for precision matrices"),
        ("local_search:removal=none", sm.ModelError, "removal must be 'smallest' or"),
    ],
)
def test_a_recipe_is_refused_with_the_reason(problem, text, error, message) -> None:
    with pytest.raises(error, match=message):
        problem.solve(text)


def test_a_recipe_is_obeyed(problem: sm.Problem) -> None:
    plan = problem.plan("nhtp:patience=7 > local_search:removal=all | best foba")
    assert [stage.label for stage in plan.stages] == ["nhtp", "local_search", "foba"]
    assert [stage.start for stage in plan.stages] == ["zero", "last", "best"]
    assert plan.stages[0].backend.options()["patience"] == 7
    assert plan.stages[1].backend.options()["removal"] == "all"
    assert plan.outline == "nhtp:patience=7 > local_search:removal=all | best foba"
    solution = problem.solve(TWO_CHAINS)
    assert solution.backend == "nhtp + local_search + gomp + local_search"
    seen = list(dict.fromkeys(event.backend for event in solution.history))
    assert seen == ["nhtp", "local_search", "gomp"]


def test_the_best_stage_wins(problem: sm.Problem) -> None:
    alone = [problem.solve(name).value for name in ("nhtp > local_search", "gomp > local_search")]
    assert problem.solve(TWO_CHAINS).value == pytest.approx(min(alone), rel=1e-12)


# ---- what holds across stages ----------------------------------------------------------------


def test_a_callback_ends_the_whole_plan(problem: sm.Problem) -> None:
    seen: list[str] = []

    def callback(event) -> bool:
        seen.append(event.backend)
        return event.backend == "local_search"

    solution = problem.solve(TWO_CHAINS, callback=callback)
    assert solution.stop is Stop.CALLBACK
    assert seen[-1] == "local_search"
    assert "gomp" not in seen, "a stage was run after the callback had ended the plan"


def test_one_deadline_for_all_stages(problem: sm.Problem) -> None:
    def slow(event) -> None:
        time.sleep(0.03)

    began = time.perf_counter()
    solution = problem.solve(TWO_CHAINS, time_limit=0.1, callback=slow)
    assert time.perf_counter() - began < 0.6
    assert solution.stop is Stop.TIME_LIMIT
    assert solution.indices.size <= 8
    assert problem.solve(time_limit=0.0).stop is Stop.TIME_LIMIT


def test_the_seed_makes_a_plan_reproducible(problem: sm.Problem) -> None:
    recipe = "ht_svrg > local_search | ht_svrg"
    first, second = (problem.solve(recipe, seed=3, max_iter=4) for _ in range(2))
    assert [e.value for e in first.history] == [e.value for e in second.history]
    third = problem.solve(recipe, seed=4, max_iter=4)
    assert [e.value for e in first.history] != [e.value for e in third.history]


def test_stages_that_cannot_gain_are_skipped() -> None:
    rng = np.random.default_rng(1)
    A = rng.standard_normal((60, 100))
    w = sm.Variable(100)
    noiseless = sm.Problem(
        sm.minimize(sm.squared_loss(A @ w, A[:, :4] @ np.ones(4))), sm.card(w) <= 4
    )
    solution = noiseless.solve("nhtp > local_search | omp")
    assert any("skipped local_search" in note for note in solution.notes)
    assert {event.backend for event in solution.history} == {"nhtp"}


# ---- the plan as a graph, and what verbose writes --------------------------------------------


def test_the_plan_is_a_directed_graph_without_cycles(problem: sm.Problem) -> None:
    graph = problem.plan("nhtp > local_search | gomp | best local_search").graph()
    assert nx.is_directed_acyclic_graph(graph)
    assert nx.has_path(graph, "problem", "solution")
    assert set(graph.predecessors("stage 4")) == {"stage 1", "stage 2", "stage 3"}
    assert set(graph.successors("problem")) == {"stage 1", "stage 3"}
    assert all(data["label"] and data["kind"] for _, data in graph.nodes(data=True))
    single = problem.plan("omp").graph()
    assert list(nx.topological_sort(single)) == ["problem", "stage 1", "polish", "solution"]


def test_the_plan_is_drawn(problem: sm.Problem) -> None:
    axes = plots.plan(problem.plan(TWO_CHAINS))
    texts = [text.get_text() for text in axes.texts]
    assert "1. nhtp" in texts
    assert "4. local_search" in texts
    assert "its point" in texts
    best = plots.plan(problem.plan("nhtp > local_search | gomp | best foba"))
    assert "4. foba\nfrom the best point" in [text.get_text() for text in best.texts]
    arrows = [text for text in best.texts if text.arrow_patch is not None]
    assert len(arrows) == 7  # none past stage 2 from stage 1, whose point stage 4 may take too
    options = plots.plan(problem.plan("nhtp:patience=7 > local_search:removal=all")).texts
    assert {"1. nhtp\npatience=7", "2. local_search\nremoval=all"} <= {
        text.get_text() for text in options
    }


def test_the_outline_can_be_typed(problem: sm.Problem) -> None:
    plan = problem.plan("nhtp:patience=7:tol=1e-09 > local_search:removal=all | gomp | best foba")
    again = problem.plan(plan.outline)
    assert again.outline == plan.outline
    assert [s.backend for s in again.stages] == [s.backend for s in plan.stages]
    assert [s.start for s in again.stages] == [s.start for s in plan.stages]


def test_a_solution_names_the_stages_that_ran() -> None:
    rng = np.random.default_rng(1)
    A = rng.standard_normal((60, 100))
    w = sm.Variable(100)
    noiseless = sm.Problem(
        sm.minimize(sm.squared_loss(A @ w, A[:, :4] @ np.ones(4))), sm.card(w) <= 4
    )
    assert noiseless.solve("nhtp > local_search | omp").backend == "nhtp"


def test_verbose_writes_what_was_compiled_and_a_line_for_every_stage(
    problem: sm.Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    problem.solve("nhtp > local_search", verbose=True)
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("minimise squared_loss + ridge")
    assert "plan: nhtp > local_search" in lines
    assert any(line.startswith("  1. nhtp: objective") for line in lines)
    assert any(line.startswith("  2. local_search: objective") for line in lines)
    problem.solve("nhtp", verbose=True)
    assert "conditioning: condition number" in stream.getvalue()
    assert "\r" not in stream.getvalue(), "a file is no place for lines that rewrite themselves"
