"""Each optional package absent: everything else works, and what needs it says what to install."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import sparsemodel as sm

ABSENT = """
import importlib.abc, sys

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
import numpy as np
import sparsemodel as sm

rng = np.random.default_rng(0)
A = rng.standard_normal((30, 6))
b = A[:, 1] + 0.1 * rng.standard_normal(30)
w = sm.Variable(6, name="w")
problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, b) + sm.ridge(w, 0.1)), sm.card(w) <= 2)
solution = problem.solve()
assert 1 in solution.support
certificate = problem.certify()
assert certificate.bound <= certificate.upper
proved = problem.prove()
assert proved.bound >= certificate.bound - 1e-9
assert str(solution) and str(certificate) and problem.explain()
omega = sm.Variable((6, 6), symmetric=True, name="Omega")
graph = sm.Problem(sm.minimize(sm.gaussian_nll(omega, data=A)), sm.card(sm.offdiag(omega)) <= 4)
assert np.isfinite(graph.solve().value)
assert all(info.available for info in sm.available_backends())
"""

DRAWN = """
from types import SimpleNamespace
from sparsemodel.reporting import plots
plots.path(SimpleNamespace(objective=[1.0]))
"""
DERIVED = """
from sparsemodel.losses.functions.differentiated import differentiated
differentiated(lambda u: (u * u).sum(), "f")
"""
TABLE = """
from pathlib import Path
from sparsemodel.cli import main
Path("table.parquet").write_bytes(b"PAR1" + bytes(100) + b"PAR1")
assert main(["solve", "table.parquet", "--target", "y", "--k", "1"]) not in (0, 1)
"""
NEEDS = {
    DRAWN: "pip install matplotlib",
    "import sparsemodel.sklearn": "pip install scikit-learn",
    DERIVED: "pip install jax",
    TABLE: "pip install pandas pyarrow",
}
"""What needs a package, and what it says where that is absent."""
ADVISED = """
import contextlib, io
for code, advice in {needs!r}.items():
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        try:
            exec(code, dict())
        except Exception as error:
            said.write(str(error))
    assert advice in said.getvalue(), (code, said.getvalue())
"""


def test_without_any_of_them_and_what_needs_one_says_which_to_install(tmp_path):
    names = {"matplotlib", "sklearn", "dask", "distributed", "pandas", "pyarrow", "jax"}
    names |= {"array_api_compat", "torch"}
    done = subprocess.run(
        [sys.executable, "-c", ABSENT.format(names=names) + ADVISED.format(needs=NEEDS)],
        capture_output=True,
        text=True,
        timeout=100,
        cwd=str(tmp_path),
    )
    assert done.returncode == 0, done.stderr[-3000:]


NO_NUMBA = """
import importlib.abc, sys

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "numba":
            raise ImportError("Numba needs another NumPy")

sys.meta_path.insert(0, Absent())
import numpy as np
import pytest
import sparsemodel as sm

rng = np.random.default_rng(0)
A = rng.standard_normal((40, 24))
b = A[:, [1, 3]].sum(axis=1) + rng.standard_normal(40)

for loss, target in ((sm.squared_loss, b), (sm.logistic_loss, b > 0.0)):
    w = sm.Variable(24, name="w")
    problem = sm.Problem(sm.minimize(loss(A @ w, target) + sm.ridge(w, 0.1)), sm.card(w) <= 6)
    solution = problem.solve("nhtp")
    if loss is sm.squared_loss:
        assert solution.bound <= solution.value
        with pytest.warns(RuntimeWarning, match=r"slower.*Numba.*another NumPy.*pip install"):
            first = problem.certify()
        proof = problem.prove(time_limit=0.3)
        assert first.bound <= proof.bound <= problem.value <= solution.value
    assert problem.certify().bound <= problem.value
A = A[:, :12]
omega = sm.Variable((12, 12), symmetric=True, name="Omega")
graph = sm.Problem(sm.minimize(sm.gaussian_nll(omega, data=A)), sm.card(sm.offdiag(omega)) <= 8)
graph.solve()
assert graph.certify().bound <= graph.value

from scipy import sparse

X = rng.standard_normal((200, 110)) * (rng.random((200, 110)) < 0.95)
assert np.allclose(sm.as_design(sparse.csr_array(X)).gram(), X.T @ X)
"""


def test_without_a_numba_that_works_proofs_are_only_slower(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", NO_NUMBA],
        capture_output=True,
        text=True,
        timeout=100,
        cwd=str(tmp_path),
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("part", ["dask.base", "dask.delayed"])
def test_a_dask_array_without_all_of_dask(part: str, monkeypatch: pytest.MonkeyPatch):
    """As after an upgrade that was broken off: the array is there, what computes it is not."""
    da = pytest.importorskip("dask.array")
    array = da.from_array(np.ones((6, 2)), chunks=(3, 2))
    monkeypatch.setitem(sys.modules, part, None)
    with pytest.raises(
        sm.MissingDependencyError,
        match=r"A is a Dask array.*pip install .dask\[array,distributed\]",
    ):
        sm.as_design(array)


def test_a_dask_array_without_distributed(monkeypatch: pytest.MonkeyPatch):
    """Only clusters need it; the threads of the machine do not."""
    da = pytest.importorskip("dask.array")
    monkeypatch.setitem(sys.modules, "distributed", None)
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 8))
    values = []
    for matrix in (A, da.from_array(A, chunks=(20, 8))):
        w = sm.Variable(8, name="w")
        loss = sm.squared_loss(sm.as_design(matrix) @ w, A[:, 1] - A[:, 5])
        problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 2)
        values.append(problem.solve("nhtp").value)
    assert values[0] == pytest.approx(values[1], rel=1e-12)


def test_an_array_whose_package_is_gone():
    class Array:
        __module__ = "dask.array.core"

        def __array__(self, *_: object, **__: object) -> np.ndarray:
            raise ModuleNotFoundError("No module named 'dask'", name="dask")

    with pytest.raises(sm.MissingDependencyError, match=r"Dask cannot be imported whole"):
        sm.as_design(Array())
