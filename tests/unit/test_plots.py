"""Pictures: what is drawn is what was handed over, on the axes that were given."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex

import sparsemodel as sm
from sparsemodel.documents.document import Chart, Series
from sparsemodel.documents.picture import line_chart
from sparsemodel.interfaces import DataError, Iteration
from sparsemodel.reporting import plots
from sparsemodel.reporting.plots.plot_style import BLUE, ORANGE


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    yield
    plt.close("all")


def history(*values: float, backend: str = "nhtp") -> list[Iteration]:
    return [
        Iteration(backend, i, v, v, np.array([0]), 0.0, 0.1 * i, np.ones(1))
        for i, v in enumerate(values, 1)
    ]


def words(axes: Any) -> str:
    texts = [*axes.texts, axes.title, axes.xaxis.label, axes.yaxis.label]
    return " | ".join(t.get_text() for t in [*texts, axes._left_title])


def saved(axes: Any, tmp_path: Path) -> None:
    figure = getattr(axes, "figure", axes)
    figure.savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 1000


# ---- convergence ---------------------------------------------------------------------------------


def test_convergence_draws_the_best_so_far_and_the_bound(tmp_path: Path) -> None:
    axes = plots.convergence(history(5.0, 3.0, 4.0, 2.0), bound=1.0)
    curve = next(line for line in axes.lines if len(line.get_ydata()) == 4)
    np.testing.assert_array_equal(curve.get_ydata(), [5.0, 3.0, 3.0, 2.0])
    assert "lower bound 1" in words(axes)
    assert "Gap: 50 %" in words(axes)
    assert axes.get_ylim()[0] < 1.0
    saved(axes, tmp_path)


def test_convergence_names_the_stages(tmp_path: Path) -> None:
    axes = plots.convergence(history(3.0, 2.0) + history(2.0, 1.5, backend="iht"))
    assert "nhtp" in words(axes)
    assert "iht" in words(axes)
    assert "Gap" not in words(axes)
    saved(axes, tmp_path)


@pytest.mark.parametrize(
    ("values", "bound", "scale"),
    [
        ((1000.0, 1.0), 0.5, "log"),
        ((1000.0, 1.0), -1.0, "linear"),
        ((2.0, 1.0), None, "linear"),
        ((1000.0, 1.0), -np.inf, "log"),
    ],
)
def test_convergence_is_logarithmic_where_that_helps(
    tmp_path: Path, values: tuple[float, ...], bound: float | None, scale: str
) -> None:
    axes = plots.convergence(history(*values), bound=bound)
    assert axes.get_yscale() == scale
    saved(axes, tmp_path)


# ---- coefficients --------------------------------------------------------------------------------


def test_coefficients_are_sorted_bars(tmp_path: Path) -> None:
    axes = plots.coefficients({"a": 1.0, "b": -3.0, "c": 2.0, "intercept": 99.0}, most=2)
    assert [t.get_text() for t in axes.get_yticklabels()] == ["b", "c"]
    assert [bar.get_width() for bar in axes.patches] == [-3.0, 2.0]
    assert [to_hex(bar.get_facecolor()) for bar in axes.patches] == [ORANGE, BLUE]
    assert axes.get_xlabel() == "coefficient (1 smaller one is not shown)"
    saved(axes, tmp_path)


def test_numbers_of_coefficients_do_not_cover_their_names(tmp_path: Path) -> None:
    values = {"a": 9.0, "b": -1e-3, "c" * 60: -2e-9}
    axes = plots.coefficients(values)
    axes.figure.canvas.draw()
    names = [label.get_window_extent() for label in axes.get_yticklabels()]
    numbers = [text.get_window_extent() for text in axes.texts]
    assert len(numbers) == len(names) == 3
    assert not any(number.overlaps(name) for number in numbers for name in names)
    saved(axes, tmp_path)


def test_coefficients_of_several_classes_are_a_map(tmp_path: Path) -> None:
    values = {"a": np.array([1.0, 0.0, -1.0]), "b": np.array([0.0, 5.0, 0.0])}
    axes = plots.coefficients(values, classes=["x", "y", "z"])
    image = axes.images[0]
    np.testing.assert_array_equal(image.get_array(), [[0.0, 5.0, 0.0], [1.0, 0.0, -1.0]])
    assert image.get_clim() == (-5.0, 5.0), "white is zero"
    saved(axes, tmp_path)


# ---- paths and supports --------------------------------------------------------------------------


def test_a_path_with_its_choice(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((50, 6))
    w = sm.Variable(6)
    goal = sm.minimize(sm.squared_loss(A @ w, A[:, 1] + 0.1 * rng.standard_normal(50)))
    path = sm.Problem(goal, sm.card(w) <= 1).path(range(5))
    chosen = path.select("bic")
    axes = path.plot(chosen=chosen)
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), path.objective)
    assert f"k = {chosen.k}" in words(axes)
    other = next(a for a in axes.figure.axes if a is not axes)
    np.testing.assert_array_equal(other.lines[0].get_ydata(), chosen.scores)
    saved(axes, tmp_path)


def test_supports_beside_the_truth(tmp_path: Path) -> None:
    axes = plots.support_recovery([[3], [3, 7], np.array([3, 5])], truth=[3, 5], ks=[1, 2, 2])
    assert [t.get_text() for t in axes.get_yticklabels()] == ["3", "5", "7"]
    filled = [
        (int(line.get_xdata()[0]), int(line.get_ydata()[0]), to_hex(line.get_markerfacecolor()))
        for line in axes.lines
        if line.get_marker() == "s" and line.get_markerfacecolor() != "none"
    ]
    assert filled == [(0, 0, BLUE), (1, 0, BLUE), (1, 2, ORANGE), (2, 0, BLUE), (2, 1, BLUE)]
    assert "wrong" in words(axes)
    saved(axes, tmp_path)


def test_supports_by_name_are_cut_to_size(tmp_path: Path) -> None:
    axes = plots.support_recovery([["a"], ["a", "b", "c"]], most=2)
    assert [t.get_text() for t in axes.get_yticklabels()] == ["a", "b"]
    assert "1 later rows" in words(axes)
    saved(axes, tmp_path)


# ---- graphs --------------------------------------------------------------------------------------


def test_a_graph_with_signs(tmp_path: Path) -> None:
    nx = pytest.importorskip("networkx")
    network = nx.Graph()
    network.add_nodes_from("abcde")
    network.add_weighted_edges_from([("a", "b", 0.8), ("b", "c", -0.4)])
    axes = plots.graph(network)
    assert {t.get_text() for t in axes.texts} >= {"a", "b", "c"}
    assert "d" not in {t.get_text() for t in axes.texts}
    assert "not drawn: 2 without an edge" in words(axes)
    assert "orange: negative" in words(axes)
    edges = axes.collections[0]
    assert {to_hex(c) for c in edges.get_colors()} == {BLUE, ORANGE}
    widths = sorted(edges.get_linewidths())
    assert widths[0] < widths[1]
    saved(axes, tmp_path)
    saved(plots.graph(network, lonely=True), tmp_path)


# ---- pictures ------------------------------------------------------------------------------------


def test_weights_become_pictures(tmp_path: Path) -> None:
    coef = np.zeros((3, 6))
    coef[:, 1], coef[1, 4] = [1.0, -2.0, 0.0], 0.5
    figure = plots.weights_as_pictures(coef, (2, 3), labels=["x", "y", "z"], columns=2)
    pictures = [axes.images[0].get_array() for axes in figure.axes if axes.images]
    assert len(pictures) == 3
    np.testing.assert_array_equal(pictures[1].filled(9.0), [[9.0, -2.0, 9.0], [9.0, 0.5, 9.0]])
    assert len({axes.images[0].get_clim() for axes in figure.axes if axes.images}) == 1
    saved(figure, tmp_path)
    saved(plots.weights_as_pictures(np.zeros(6), (2, 3)), tmp_path)


# ---- all of them ---------------------------------------------------------------------------------


def test_given_axes_are_used() -> None:
    nx = pytest.importorskip("networkx")
    _, grid = plt.subplots(1, 5)
    path = SimpleNamespace(k=[1, 2], objective=[2.0, 1.0])
    drawn = [
        plots.convergence(history(2.0, 1.0), axes=grid[0]),
        plots.coefficients({"a": 1.0}, axes=grid[1]),
        plots.path(path, axes=grid[2]),
        plots.support_recovery([[1]], axes=grid[3]),
        plots.graph(nx.path_graph(3), axes=grid[4]),
    ]
    assert drawn == list(grid)
    assert len(plt.get_fignums()) == 1


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plots.convergence([]),
        lambda: plots.coefficients({"intercept": 1.0}),
        lambda: plots.support_recovery([[], []]),
        lambda: plots.graph(pytest.importorskip("networkx").empty_graph(3)),
        lambda: plots.weights_as_pictures(np.ones((2, 5)), (2, 3)),
        lambda: plots.weights_as_pictures(np.ones((2, 6)), (2, 3), labels=["one"]),
    ],
)
def test_nothing_to_draw_is_an_error(draw: Any) -> None:
    with pytest.raises(sm.SparseModelError):
        draw()
    assert plt.get_fignums() == []


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(sm.MissingDependencyError, match="plot"):
        plots.coefficients({"a": 1.0})


def test_gaps_along_k(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((20, 30))
    k, w = sm.Parameter(integer=True), sm.Variable(30)
    goal = sm.minimize(sm.squared_loss(a @ w, a[:, 0] + rng.standard_normal(20)) + sm.ridge(w, 0.2))
    problem = sm.Problem(goal, sm.card(w) <= k)
    found = []
    for k.value in (3, 1, 2):
        found.append(problem.certify())
    axes = plots.gaps(found)
    objective, bound = axes.get_lines()
    assert objective.get_xdata().tolist() == [1, 2, 3]
    assert np.all(objective.get_ydata() >= bound.get_ydata())
    axes.figure.savefig(tmp_path / "gaps.png")
    with pytest.raises(DataError, match="no certificate"):
        plots.gaps([])


def test_a_chart_of_nothing_is_not_drawn() -> None:
    flat = Series("gap", [1.0, 2.0, 3.0], [1.71e-12, 1.71e-12, 1.705e-12], "value")
    assert line_chart(Chart((flat,), "t", "x", "y", "", log=True)) == ""
    falling = Series("gap", [1.0, 2.0, 3.0], [1.0, 0.1, 0.01], "value")
    assert "<svg" in line_chart(Chart((falling,), "t", "x", "y", "", log=True))


def test_gaps_of_graphs_are_shares_of_what_edges_explain() -> None:
    p = 5
    scatter = np.cov(np.random.default_rng(0).standard_normal((40, p)).T)
    k, omega = sm.Parameter(integer=True), sm.Variable((p, p), symmetric=True)
    goal = sm.minimize(sm.gaussian_nll(omega, scatter))
    problem = sm.Problem(goal, sm.card(sm.offdiag(omega)) <= 2 * k)
    found = []
    for k.value in (1, 2):
        found.append(problem.certify())
    shares = [f"{100.0 * c.open_share:.2g} %" for c in found if c.open_share > 1e-3]
    assert shares == [text.get_text() for text in plots.gaps(found).texts]
    assert shares


def test_scores_of_several_ridges_are_drawn_above_their_objectives() -> None:
    values = np.array([[2.0, 2.0], [1.0, 1.5], [0.5, 1.2]])
    followed = SimpleNamespace(k=np.arange(3), objective=values, ridges=np.array([0.1, 1.0]))
    chosen = SimpleNamespace(k=1, ridge=0.1, scores=values, chosen_by="cross-validation")
    axes = plots.path(followed, chosen=chosen)
    scores = next(other for other in axes.figure.axes if other is not axes)

    def heights(one: Any) -> Any:
        lines = [line for line in one.get_lines() if len(line.get_ydata()) == 3]
        low, high = one.get_ylim()
        return np.array([(line.get_ydata() - low) / (high - low) for line in lines])

    assert heights(axes).shape == heights(scores).shape == (2, 3)
    assert heights(axes).max() < heights(scores).min()
    assert min(scores.get_yticks()) >= 0.4


@pytest.mark.parametrize(
    ("ks", "objective"),
    [([5], [2.0]), ([1, 2, 3], [-0.75, -0.75 - 1e-12, -0.75 - 1e-12])],
)
def test_a_path_has_whole_k_and_no_slope_made_of_rounding(ks: list, objective: list) -> None:
    followed = SimpleNamespace(k=np.array(ks), objective=np.array(objective) * 1e18)
    axes = plots.path(followed)
    axes.figure.canvas.draw()
    assert all(label.get_text().isdigit() for label in axes.get_xticklabels())
    assert axes.yaxis.get_offset_text().get_text() == ""
    low, high = axes.get_ylim()
    assert high - low > 0.05 * abs(low)


def test_a_solution_is_drawn_by_its_coefficients() -> None:
    solution = SimpleNamespace(coefficients={"age": 1.0, "size": -2.0})
    axes = plots.coefficients(solution)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["size", "age"]
