"""What a researcher does: own methods, printed iterates, counted work, experiments that resume."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel import experiments, registry
from sparsemodel.interfaces import (
    BackendContractError,
    Capabilities,
    IterativeBackend,
    Loss,
    ModelError,
    Point,
)
from sparsemodel.interfaces.self_description import Guarantee, Theorem
from sparsemodel.numerics import drawn_block, epoch, project


@dataclass(frozen=True)
class State:
    point: Point
    done: bool = False


@dataclass(frozen=True)
class Blocks(IterativeBackend[State]):
    """Thresholded steps on random blocks (StoIHT), which count nothing themselves."""

    blocks: int = 4
    max_iter: int = 200
    name: ClassVar[str] = "random_blocks"
    capabilities: ClassVar[Capabilities] = Capabilities(facets=(Loss,), matrix=False)

    def init(self, objective, context):
        return State(context.first_point(objective))

    def step(self, objective, state, context):
        g = np.zeros(objective.shape)
        for part in drawn_block(objective, self.blocks, context.rng):
            loss = objective.form.terms[part.index].loss
            u = part.margins(part.design.matvec(state.point.x))
            g += part.design.rmatvec(loss.gradient(u, part.target, part.weights))
        return State(objective.point(*project(objective, state.point.x - 0.3 * self.blocks * g)))

    def theorems(self):
        return (Theorem("Here, Theorem 1", lambda s: Guarantee("Here, Theorem 1", "open", "", "")),)


@pytest.fixture
def registered():
    registry.register(Blocks)
    yield Blocks
    registry._backends._registered.clear()
    registry.usable_backends.cache_clear()


def uneven(n=60, p=12, k=3, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, p)) / np.sqrt(n)
    A[:, 3] *= 10.0
    w = sm.Variable(p, name="w")
    b = A[:, 0] - 2.0 * A[:, 5] + 0.01 * rng.standard_normal(n)
    return sm.Problem(sm.minimize(sm.squared_loss(A @ w, b)), sm.card(w) <= k), A, b


def test_the_declared_numbers_are_run():
    problem, A, b = uneven()
    seen, x = [], np.zeros(12)
    backend = sm.backends.IHT(step_size=0.5)
    problem.solve(backend, reductions=False, max_iter=6, callback=lambda e: seen.append(e.x))
    for iterate in seen:
        z = x - 0.5 * A.T @ (A @ x - b) / len(b)
        x, keep = np.zeros(12), np.argsort(-np.abs(z))[:3]
        x[keep] = z[keep]
        np.testing.assert_allclose(iterate, x, rtol=1e-12, atol=1e-15)
    scaled = []
    problem.solve(backend, max_iter=6, callback=lambda e: scaled.append(e.x))
    assert not np.allclose(scaled[0], seen[0]), "columns of such sizes are scaled by default"
    given = sm.backends.IHT.as_published(step_size=0.5, units="mean")
    printed = []
    problem.solve(given, max_iter=6, callback=lambda e: printed.append(e.x))
    np.testing.assert_allclose(printed, seen)  # in units of a paper without being asked
    with pytest.raises(sm.DataTypeError, match="reductions must be"):
        problem.solve(reductions="no")


def test_callbacks_see_the_iterate_of_the_paper():
    problem, _, _ = uneven()
    wide, states = [], []

    def watch(event):
        wide.append(np.count_nonzero(event.x))
        states.append(event.state)

    solution = problem.solve(
        sm.backends.PGD.as_published(relaxation=2.0), max_iter=4, callback=watch
    )
    assert max(wide) == 6, "2 k entries, before they are pruned"
    assert len(solution.support) <= 3
    sizes = [np.count_nonzero(state.relaxed.x) for state in states]
    assert sizes == wide
    assert all(event.x is None and event.state is None for event in solution.history)


def test_the_objective_counts():
    problem, _, _ = uneven()
    work = []
    problem.solve(Blocks(), reductions=False, max_iter=40, callback=lambda e: work.append(e.work))
    assert [w.row_gradients for w in work] == list(range(15, 615, 15))
    assert work[-1].gradients == 0
    assert work[-1].passes == pytest.approx(10.0, abs=0.6)
    counts = []
    problem.solve(sm.backends.GraHTP(), reductions=False, callback=lambda e: counts.append(e.work))
    assert [w.gradients for w in counts] == list(range(1, len(counts) + 1))
    assert [w.restricted_solves for w in counts] == list(range(1, len(counts) + 1))
    objective = _objective(problem)
    list(epoch(objective, 7, np.random.default_rng(0)))
    assert objective.work.row_gradients == 60
    assert objective.work.passes == pytest.approx(1.0)


def _objective(problem):
    from sparsemodel.numerics import RegressionObjective

    return RegressionObjective(problem._compiled().form)


def test_a_registered_backend_has_a_name_everywhere(registered):
    problem, _, _ = uneven()
    assert problem.solve("random_blocks").backend == "random_blocks"
    assert problem.solve("random_blocks > omp").backend == "random_blocks + omp"
    assert problem.solve("random_blocks:blocks=2", max_iter=3).backend == "random_blocks"
    assert sm.backends.Blocks is registered
    assert "random_blocks" in problem.explain(full=True)
    (info,) = (i for i in sm.available_backends() if i.name == "random_blocks")
    assert (info.distribution, info.available) == ("this session", True)
    assert "Here, Theorem 1" in [g.source for g in problem.theory().guarantees]

    @sm.register
    @dataclass(frozen=True)
    class Again(Blocks):
        max_iter: int = 7

    assert problem.solve("random_blocks").iterations == 7  # the cell was run again
    assert issubclass(Again, Blocks)


def test_what_cannot_be_registered_is_told_what_to_write():
    class Nameless(Blocks):
        name = None

    class Blind(Blocks):
        capabilities = None

    class Taken(Blocks):
        name = "omp"

    with pytest.raises(ModelError, match=r'name: ClassVar\[str\] = "nameless"'):
        sm.register(Nameless)
    with pytest.raises(ModelError, match="capabilities: ClassVar"):
        sm.register(Blind)
    with pytest.raises(ModelError, match='"my_omp"'):
        sm.register(Taken)
    with pytest.raises(ModelError, match="without brackets"):
        sm.register(Blocks())
    problem, _, _ = uneven()
    with pytest.raises(ModelError, match="has no name"):
        problem.solve(Nameless())


def test_points_are_read_only():
    problem, _, _ = uneven()
    objective = _objective(problem)
    point = objective.point(np.array([1, 2]), np.array([3.0, 4.0]))
    with pytest.raises(ValueError, match="read-only"):
        point.x[0] = 1.0
    own = np.zeros(12)
    objective.point_from(own)
    own[0] = 1.0  # the caller's array stays the caller's
    problem.solve()
    (w,) = problem.variables
    w.value[0] = 5.0  # as does the value of a variable


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (lambda point: point.x, "a value of type ndarray, which has no point"),
        (lambda point: None, "None, which has no point"),
        (lambda point: State(point.x), "is a value of type ndarray, not a Point"),
    ],
)
def test_a_malformed_state_is_told_what_to_write(returned, words):
    @dataclass(frozen=True)
    class Broken(Blocks):
        def step(self, objective, state, context):
            return returned(state.point)

    problem, _, _ = uneven()
    with pytest.raises(BackendContractError, match=words) as caught:
        problem.solve(Broken())
    assert "objective.point" in str(caught.value)
    assert "Broken" in str(caught.value)


def test_a_sweep_goes_on_where_it_ended(tmp_path):
    begun = []

    def trial(n, k, number):
        begun.append((n, k, number))
        return {"value": float(100 * n + 10 * k + number)}

    path, axes = tmp_path / "sweep.jsonl", {"n": [1, 2], "k": [3]}
    late = experiments.Trials(path, trial, minutes=-1.0)
    assert experiments.sweep(late, axes, repeats=2).rows == []
    trials = experiments.Trials(path, trial)
    table = experiments.sweep(trials, axes, repeats=2, seed=5)
    assert begun == [(1, 3, 5), (2, 3, 5), (1, 3, 6), (2, 3, 6)], "one of each point first"
    assert table.header == ("n", "k", "trials", "value")
    assert table.rows == [(1, 3, 2, 135.5), (2, 3, 2, 235.5)]
    again = experiments.sweep(experiments.Trials(path, trial), axes, repeats=3, seed=5)
    assert begun[4:] == [(1, 3, 7), (2, 3, 7)]
    assert again.column("trials") == [3, 3]
    path.write_text("no trial\n")
    with pytest.raises(sm.DataError, match="file of their own"):
        experiments.Trials(path, trial)


def test_tables_are_saved(tmp_path):
    table = experiments.Table(("n_1", "50 %"), [(1, 0.25), (22, float("nan"))])
    assert table.latex().splitlines()[2] == r"n\_1 & 50 \% \\"
    assert str(table).splitlines() == ["n_1  50 %", "  1  0.25", " 22      "]
    for end, text in ((".md", "| 1 | 0.25 |"), (".tex", r"1 & 0.25 \\"), (".csv", "1,0.25")):
        table.save(tmp_path / f"table{end}")
        assert text in (tmp_path / f"table{end}").read_text().splitlines()
    with pytest.raises(ModelError, match=r"\.md, \.tex or \.csv"):
        table.save(tmp_path / "table.xls")
    with pytest.raises(ModelError, match="Is 'n_1' meant"):
        table.column("n1")


def test_a_phase_diagram_has_a_square_for_every_point():
    pytest.importorskip("matplotlib")
    rows = [(n, k, 1, n / 30.0) for n in (10, 20, 30) for k in (1, 2)]
    table = experiments.Table(("n", "k", "trials", "recovered"), rows[:-1])
    axes = experiments.phase_diagram(table, "n", "k", "recovered")
    grid = axes.collections[0].get_array()
    assert grid.shape == (2, 3)
    assert np.ma.count_masked(np.ma.masked_invalid(grid)) == 1
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("n", "k")
    assert np.isnan(experiments.transition([1, 2], [0.0, 0.1], 0.5))
    assert experiments.transition([1, 2], [0.6, 0.7], 0.5) == 1.0


def test_the_page_needs_as_few_lines_as_it_says():
    """The method, the instances and the sweep: lines without imports and blank ones."""
    page = Path(__file__).parents[2] / "docs" / "how-to" / "do-research-on-an-algorithm.md"
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    counted = [block for block in blocks if "callback=watch" not in block]
    assert len(counted) == 3
    lines = [line for block in counted for line in block.splitlines() if line.strip()]
    assert "in less than 40 lines of code" in text
    assert sum(not line.startswith(("import ", "from ")) for line in lines) < 40
