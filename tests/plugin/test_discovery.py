"""A stranger's package joins by its entry point alone, and a broken one harms nobody.

Installing is imitated by a folder on ``sys.path`` with the metadata that an installer would have
written from the stranger's ``pyproject.toml``.
"""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel import registry
from sparsemodel.cli import main
from sparsemodel.cli.exits import Exit
from sparsemodel.compiler.choice.candidates import _by_promise
from sparsemodel.interfaces import Prior, Role
from sparsemodel.interfaces.self_description import Guarantee, Theorem

PROJECT = Path(__file__).parent / "sparsemodel-stranger"


def _install(folder: Path, name: str, groups: dict[str, dict[str, str]]) -> None:
    info = folder / f"{name.replace('-', '_')}-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
    lines = []
    for group, entry_points in groups.items():
        lines += [f"[{group}]", *(f"{key} = {value}" for key, value in entry_points.items()), ""]
    (info / "entry_points.txt").write_text("\n".join(lines))


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder where packages can be 'installed'; forgotten afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    monkeypatch.undo()
    registry.refresh()


@pytest.fixture
def stranger(site):
    """The stranger's package, installed."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    _install(site, project["name"], project["entry-points"])
    registry.refresh()


def _table(A, b) -> str:
    names = [f"x{j}" for j in range(A.shape[1])]
    lines = [",".join(map(repr, [*a, t])) for a, t in zip(A.tolist(), b.tolist(), strict=True)]
    return "\n".join([",".join([*names, "y"]), *lines, ""])


def _info(name: str) -> registry.PluginInfo:
    (found,) = (info for info in sm.available_backends() if info.name == name)
    return found


@pytest.fixture
def data():
    rng = np.random.default_rng(8)
    A = rng.standard_normal((60, 12))
    b = A[:, [2, 5, 7]] @ np.array([2.0, -1.5, 1.0]) + 0.05 * rng.standard_normal(60)
    b[0] += 100.0  # an outlier, for which the stranger's loss was made
    return A, b


def test_not_there_before_it_is_installed():
    assert "forward" not in {info.name for info in sm.available_backends()}


@pytest.mark.usefixtures("stranger")
def test_is_listed_with_its_distribution():
    found = _info("forward")
    assert found.available
    assert found.distribution == "sparsemodel-stranger"
    assert registry.backend_class("forward").name == "forward"


@pytest.mark.usefixtures("stranger")
def test_solves_by_name_and_as_a_value(data):
    from sparsemodel_stranger import Forward

    A, b = data
    w = sm.Variable(12, name="w")
    problem = sm.Problem(sm.minimize(sm.squared_loss(A[1:] @ w, b[1:])), sm.card(w) <= 3)
    for backend in ("forward", Forward()):
        solution = problem.solve(backend)
        assert solution.support.tolist() == [2, 5, 7]
        assert "forward" in solution.backend
    assert "forward" in problem.explain("forward")


@pytest.mark.usefixtures("stranger")
def test_the_strangers_loss_is_an_equal_of_the_built_in_ones(data):
    from sparsemodel_stranger import PseudoHuberLoss

    A, b = data
    w = sm.Variable(12, name="w")
    loss = sm.loss_term(PseudoHuberLoss(), A @ w, b)
    problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 1e-3)), sm.card(w) <= 3)
    assert problem.solve("forward").support.tolist() == [2, 5, 7]
    assert problem.solve().support.tolist() == [2, 5, 7]  # and the compiler's own choice
    certificate = problem.certify()
    assert -np.inf < certificate.bound <= certificate.value


@pytest.mark.usefixtures("stranger")
def test_a_backend_without_a_prior_is_run_when_it_is_asked_for_only(data):
    A, b = data
    w = sm.Variable(12, name="w")
    problem = sm.Problem(sm.minimize(sm.squared_loss(A[1:] @ w, b[1:])), sm.card(w) <= 6)
    assert all(stage.label != "forward" for stage in problem.plan().stages)


@pytest.mark.usefixtures("stranger")
def test_a_backend_that_takes_a_role_and_promises_most_is_chosen_unasked(monkeypatch):
    from sparsemodel_stranger import Forward

    rng = np.random.default_rng(3)
    A = rng.standard_normal((60, 40))
    w = sm.Variable(40, name="w")
    b = A[:, :6] @ np.ones(6) + 0.1 * rng.standard_normal(60)
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, b)), sm.card(w) <= 6)
    assert problem.plan().chosen != "forward"
    monkeypatch.setattr(Forward, "roles", frozenset({Role.FINISH}))
    monkeypatch.setattr(Forward, "prior", Prior(close=1.0, excess=0.0))
    monkeypatch.setattr(Forward, "purpose", "adds what helps most")
    _by_promise.cache_clear()  # classes do not change otherwise
    assert problem.plan().chosen == "forward"
    assert "adds what helps most" in problem.explain(full=True)
    assert "forward" in problem.solve().backend
    monkeypatch.setattr(Forward, "prior", Prior(close=0.0, excess=1.0))
    _by_promise.cache_clear()
    assert problem.plan().chosen != "forward"


@pytest.mark.usefixtures("stranger")
def test_a_strangers_theorem_is_judged_with_the_numbers_of_the_problem(data, monkeypatch):
    from sparsemodel_stranger import Forward

    def judge(setting):
        return Guarantee("Folklore, Theorem 1", "holds", f"k = {setting.k}", "it ends")

    monkeypatch.setattr(Forward, "theorems", lambda _: (Theorem("Folklore, Theorem 1", judge),))
    A, b = data
    w = sm.Variable(12, name="w")
    problem = sm.Problem(sm.minimize(sm.squared_loss(A[1:] @ w, b[1:])), sm.card(w) <= 3)
    theory = problem.theory()
    assert theory.applies("Folklore, Theorem 1")
    assert "k = 3" in str(theory)


def test_a_plugin_that_cannot_be_imported_is_listed_with_the_reason(site, data):
    (site / "broken_plugin.py").write_text("import a_module_that_is_not_there\n")
    _install(
        site,
        "broken-plugins",
        {
            registry.GROUP: {
                "no_module": "nowhere_to_be_found:Backend",
                "no_dependency": "broken_plugin:Backend",
                "no_attribute": "json:Backend",
                "no_backend": "json:JSONDecoder",
            }
        },
    )
    registry.refresh()
    expected = {
        "no_module": "nowhere_to_be_found",
        "no_dependency": "a_module_that_is_not_there",
        "no_attribute": "Backend",
        "no_backend": "not a subclass of sparsemodel.interfaces.Backend",
    }
    for name, reason in expected.items():
        found = _info(name)
        assert not found.available
        assert reason in found.problem
        with pytest.raises(sm.BackendUnavailableError, match=name):
            registry.backend_class(name)
    assert _info("iht").available
    A, b = data
    w = sm.Variable(12, name="w")
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, b)), sm.card(w) <= 3)
    assert problem.solve("iht").support.size == 3


@pytest.mark.parametrize("first", [True, False])
def test_a_stranger_cannot_take_the_name_of_a_built_in_backend(site, monkeypatch, first):
    if not first:
        monkeypatch.setattr(sys, "path", [*sys.path, str(site)])
        sys.path.remove(str(site))
    _install(site, "usurper", {registry.GROUP: {"iht": "sparsemodel_stranger.forward:Forward"}})
    registry.refresh()
    assert registry.backend_class("iht").__module__.startswith("sparsemodel_backends")
    assert _info("iht").distribution == "sparsemodel"


@pytest.mark.usefixtures("stranger")
def test_listing_the_names_imports_nobodys_code(monkeypatch):
    monkeypatch.delitem(sys.modules, "sparsemodel_stranger.forward", raising=False)
    assert "forward" in registry.entries()
    assert "sparsemodel_stranger.forward" not in sys.modules


def test_unknown_names_suggest_close_ones(data):
    A, b = data
    w = sm.Variable(12, name="w")
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, b)), sm.card(w) <= 3)
    with pytest.raises(sm.BackendUnavailableError, match="Did you mean 'grahtp'"):
        problem.solve("graphtp")


def test_losses_are_listed_and_found_by_name(stranger, data):
    A, b = data
    found = {info.name: info for info in sm.available_losses()}
    assert found["pseudo-huber"].distribution == "sparsemodel-stranger"
    assert found["squared"].distribution == "sparsemodel"
    assert all(info.available for info in found.values())
    w = sm.Variable(12, name="w")
    term = sm.loss_term("pseudo-huber", A @ w, b)
    problem = sm.Problem(sm.minimize(term + sm.ridge(w, 1e-3)), sm.card(w) <= 3)
    assert problem.solve().support.tolist() == [2, 5, 7]


def test_the_command_line_takes_the_strangers_loss(stranger, data, tmp_path, capsys):
    file = tmp_path / "data.csv"
    file.write_text(_table(*data))
    line = ["solve", str(file), "--target", "y", "--k", "3", "--no-certificate", "--json"]
    assert main([*line, "--loss", "pseudo-huber"]) == 0
    assert set(json.loads(capsys.readouterr().out)["support"]) == {"x2", "x5", "x7"}


def test_an_unknown_loss_is_named_with_what_there_is(site):
    registry.refresh()
    w = sm.Variable(2, name="w")
    with pytest.raises(sm.ModelError, match=r"no loss 'hubre'. Did you mean 'huber'\? Known: "):
        sm.loss_term("hubre", np.eye(2) @ w, [1.0, 2.0])
    with pytest.raises(sm.ModelError, match="no loss 'pseudo-huber'"):
        sm.loss_term("pseudo-huber", np.eye(2) @ w, [1.0, 2.0])


def test_the_command_line_says_which_losses_it_cannot_take(data, tmp_path, capsys):
    file = tmp_path / "data.csv"
    file.write_text(_table(*data))
    line = ["solve", str(file), "--target", "y", "--k", "3", "--loss"]
    for loss, words in (("squard", "Did you mean 'squared'?"), ("cox", "needs two columns")):
        assert main([*line, loss]) == Exit.USAGE
        assert words in capsys.readouterr().err
