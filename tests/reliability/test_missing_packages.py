"""Each optional package absent: everything else works, and what needs it says what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest

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

DERIVED = """
from sparsemodel.losses.differentiated import differentiated
differentiated(lambda u: (u * u).sum(), "f")
"""
TABLE = """
from pathlib import Path
from sparsemodel.cli import main
Path("table.parquet").write_bytes(b"PAR1" + bytes(100) + b"PAR1")
assert main(["solve", "table.parquet", "--target", "y", "--k", "1"]) not in (0, 1)
"""
NEEDS = {
    "matplotlib": ("from sparsemodel.reporting import plots; plots.path(None)", "[plot]"),
    "sklearn": ("import sparsemodel.sklearn", "[sklearn]"),
    "jax": (DERIVED, "[jax]"),
    "pandas": (TABLE, "[parquet]"),
}


def run(names: set[str], more: str, folder: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", ABSENT.format(names=names) + more],
        capture_output=True,
        text=True,
        timeout=100,
        cwd=str(folder),
    )


def test_without_any_of_them(tmp_path):
    names = {"matplotlib", "sklearn", "dask", "distributed", "pandas", "pyarrow", "jax"}
    done = run(names, "", tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("name", sorted(NEEDS))
def test_what_needs_one_says_which_extra_to_install(name, tmp_path):
    code, extra = NEEDS[name]
    names = {name, "pyarrow"} if name == "pandas" else {name}
    done = run(names, code, tmp_path)
    assert f"sparsemodel{extra}" in done.stderr, done.stderr[-3000:]
