"""A stranger's package joins by its entry point alone, and a broken one harms nobody.

Installing is imitated by a folder on ``sys.path`` with the metadata that an installer would have
written from the stranger's ``pyproject.toml``.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel import registry
from sparsemodel.interfaces import Prior
from sparsemodel.interfaces.standing import Guarantee, Theorem

PROJECT = Path(__file__).parent / "sparsemodel-stranger"


def _install(folder: Path, name: str, entry_points: dict[str, str]) -> None:
    info = folder / f"{name.replace('-', '_')}-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
    lines = [f"{key} = {value}" for key, value in entry_points.items()]
    (info / "entry_points.txt").write_text("\n".join([f"[{registry.GROUP}]", *lines, ""]))


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
    _install(site, project["name"], project["entry-points"][registry.GROUP])
    registry.refresh()


def _info(name: str) -> registry.BackendInfo:
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
def test_a_backend_with_a_good_prior_is_chosen_unasked(monkeypatch):
    from sparsemodel_stranger import Forward

    rng = np.random.default_rng(3)
    A = rng.standard_normal((60, 40))
    w = sm.Variable(40, name="w")
    b = A[:, :6] @ np.ones(6) + 0.1 * rng.standard_normal(60)
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, b)), sm.card(w) <= 6)
    assert problem.plan().chosen != "forward"
    monkeypatch.setattr(Forward, "prior", Prior(close=1.0, excess=0.0, passes=1.0))
    monkeypatch.setattr(Forward, "purpose", "adds what helps most")
    text = problem.explain()
    assert problem.plan().chosen == "forward"
    assert "adds what helps most" in text
    assert "what the author of forward expects" in text
    assert "forward" in problem.solve().backend
    monkeypatch.setattr(Forward, "prior", Prior(close=0.0, excess=1.0, passes=1.0))
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
            "no_module": "nowhere_to_be_found:Backend",
            "no_dependency": "broken_plugin:Backend",
            "no_attribute": "json:Backend",
            "no_backend": "json:JSONDecoder",
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
    _install(site, "usurper", {"iht": "sparsemodel_stranger.forward:Forward"})
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
