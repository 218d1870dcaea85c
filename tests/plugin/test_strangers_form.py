"""A form of problem from another distribution: the one that the how-to page writes.

The code of the page is installed as a package of its own, found by its entry points alone.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel import registry
from sparsemodel.certificates import verify
from sparsemodel.interfaces import SparseRegression, Stop
from sparsemodel.modelling import available_formulations
from sparsemodel.modelling.formulations import registered

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "add-a-form.md"
TARGET = np.array([3.0, 0.1, -2.0, 0.5, 0.0, -1.0])

pytestmark = pytest.mark.unrefereed("the referee knows no sparse means")


def _blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE)


@pytest.fixture
def page(tmp_path, monkeypatch):
    """The module that the page writes, installed with the entry points that it asks for."""
    code = "\n".join(_blocks("python")).partition("w = sm.Variable")[0]
    code = code.replace("register_formulation(SparseMeans())\n", "")
    (tmp_path / "your_package.py").write_text(code)
    info = tmp_path / "sparse_means-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sparse-means\nVersion: 0.1.0\n")
    entries = _blocks("toml")[0].replace('[project.entry-points."', "[").replace('"]', "]")
    (info / "entry_points.txt").write_text(entries.replace('"', ""))
    monkeypatch.syspath_prepend(str(tmp_path))
    registry.refresh()
    registered.refresh()
    import your_package

    yield your_package
    monkeypatch.undo()
    sys.modules.pop("your_package", None)
    registry.refresh()
    registered.refresh()


def problem(page, k) -> sm.Problem:
    w = sm.Variable(TARGET.size, name="w")
    return sm.Problem(sm.minimize(page.distance(w, TARGET)), sm.card(w) <= k)


def test_it_is_declared_planned_and_solved(page):
    chosen = problem(page, 2)
    assert isinstance(chosen.form, page.SparseMean)
    assert [info.name for info in available_formulations() if info.available] == [
        "precision_matrices",
        "regressions",
        "sparse_means",
    ]
    assert chosen.plan().chosen == "largest_entries"
    assert "quadratic" in chosen.explain(full=True)
    assert "is for regressions, not for sparse means" in chosen.explain(full=True)
    solution = chosen.solve()
    assert solution.support.tolist() == [0, 2]
    assert solution.value == pytest.approx(np.sum(np.square(TARGET[[1, 3, 4, 5]])))
    assert chosen.variables[0].value == pytest.approx([3.0, 0.0, -2.0, 0.0, 0.0, 0.0])
    assert solution.bound == -np.inf
    with pytest.raises(sm.ModelError, match="2 nonzero units, and the constraint allows 1"):
        problem(page, 1).solve(start=[1.0, 2.0, 0.0, 0.0, 0.0, 0.0])


def test_every_support_is_no_better(page):
    from itertools import combinations

    for k in range(TARGET.size + 1):
        value = problem(page, k).solve().value
        rests = [np.delete(TARGET, list(chosen)) for chosen in combinations(range(6), k)]
        assert value == pytest.approx(min(float(rest @ rest) for rest in rests), abs=1e-12)


def test_it_is_certified_and_verified(page):
    chosen = problem(page, 3)
    certificate = chosen.certify()
    assert certificate.bound == pytest.approx(chosen.value)
    assert verify(certificate, chosen.form) == "the bound holds"
    wrong = page.MeanCertificate(certificate.value, certificate.bound + 0.1)
    with pytest.raises(sm.CertificateError, match="line 'bound'"):
        verify(wrong, chosen.form)


def test_what_it_does_not_say_has_an_answer(page, monkeypatch):
    monkeypatch.delattr(page.CompiledMean, "certify")
    chosen = problem(page, 2)
    with pytest.raises(sm.UnsupportedProblemError, match="No lower bound is known for sparse mean"):
        chosen.certify()
    with pytest.raises(sm.ModelError, match=r"prove.* is not for sparse means"):
        chosen.prove()
    with pytest.raises(sm.ModelError, match="not for sparse means"):
        chosen.theory()
    with pytest.raises(sm.ModelError, match="no CVXPY form of sparse means"):
        chosen.restricted([0])
    path = chosen.path([1])
    for ask in (path.select, path.cross_validate, path.stability):
        with pytest.raises(sm.ModelError, match="sparse means"):
            ask()


def test_a_path_goes_along_k_and_along_a_parameter(page):
    k = sm.Parameter(integer=True, nonneg=True, name="k")
    chosen = problem(page, k)
    for path in (chosen.path(k, range(5)), problem(page, 2).path(range(5))):
        assert path.k.tolist() == [0, 1, 2, 3, 4]
        assert path.stop is Stop.CONVERGED
        assert path.support[3].tolist() == [0, 2, 5]
        squares = np.sort(np.square(TARGET))[::-1]
        assert path.objective == pytest.approx([squares[j:].sum() for j in range(5)])
        assert path.unit == "nonzero coefficients"


def test_errors_of_the_declaration_are_its_own(page):
    w = sm.Variable(3, name="w")
    with pytest.raises(sm.ModelError, match="limited by card"):
        sm.Problem(sm.minimize(page.distance(w, np.ones(3))), w >= 0.0)
    with pytest.raises(sm.ModelError, match="one distance"):
        sm.Problem(sm.minimize(page.distance(w, np.ones(3)) + sm.ridge(w, 1.0)), sm.card(w) <= 1)


def test_a_built_in_form_stays_and_a_wrong_value_is_refused(page):
    class Usurper(page.SparseMeans):
        form = SparseRegression

    with pytest.raises(sm.ModelError, match="built-in form"):
        registered.register_formulation(Usurper())
    with pytest.raises(sm.ModelError, match="derived from Formulation"):
        registered.register_formulation(page.SparseMeans)


def test_one_that_cannot_be_loaded_is_named_and_harms_nobody(page, tmp_path):
    (tmp_path / "sparse_means-0.1.0.dist-info" / "entry_points.txt").write_text(
        f"[{registered.GROUP}]\nbroken = nowhere_to_be_found:Form\nok = your_package:SparseMeans\n"
        f"[{registry.GROUP}]\nlargest_entries = your_package:LargestEntries\n"
    )
    registered.refresh()
    (broken,) = (info for info in available_formulations() if not info.available)
    assert broken.name == "broken"
    assert "nowhere_to_be_found" in broken.problem
    assert problem(page, 1).solve().support.tolist() == [0]
    w = sm.Variable(2, name="w")
    graph = sm.Problem(sm.minimize(sm.squared_loss(np.eye(2) @ w, [1.0, 2.0])), sm.card(w) <= 1)
    assert graph.solve().support.tolist() == [1]
