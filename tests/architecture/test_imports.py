"""Who imports whom, and what an import of the package costs."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

from sparsemodel import registry

ROOT = Path(__file__).parents[2]
HEAVY = {"array_api_compat", "cvxpy", "dask", "matplotlib", "networkx", "numba"}
HEAVY |= {"pandas", "sklearn"}

PROBE = """
import json, sys, time
import numpy
start = time.process_time()
import {module}
spent = time.process_time() - start
print(json.dumps([spent, sorted({{name.partition(".")[0] for name in sys.modules}})]))
"""


def cost_of_importing(module: str) -> tuple[float, set[str]]:
    """Return the CPU seconds beyond NumPy's own import, and the top-level modules loaded."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(module=module)],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    spent, modules = json.loads(done.stdout)
    return spent, set(modules)


def test_import_loads_no_heavy_package() -> None:
    _, modules = cost_of_importing("sparsemodel")
    assert "sparsemodel" in modules
    assert not modules & (HEAVY | {"sparsemodel_backends"})


def test_import_adds_less_than_a_tenth_of_a_second_to_numpy() -> None:
    # The least of several runs: the first may compile, and other programs share the machine.
    assert min(cost_of_importing("sparsemodel")[0] for _ in range(5)) < 0.1


def test_import_contracts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.syspath_prepend(str(ROOT / "backends"))
    monkeypatch.chdir(ROOT)
    status = lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)
    assert status == EXIT_STATUS_SUCCESS, capsys.readouterr().out


def at_import_time(tree: ast.AST) -> set[str]:
    """Return the packages imported when a module is, leaving out functions and TYPE_CHECKING."""
    found = set()
    todo = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            todo += node.orelse
            continue
        todo += ast.iter_child_nodes(node)
    return found


def test_heavy_packages_are_imported_inside_functions() -> None:
    eager = {}
    for folder in ("sparsemodel", "backends/sparsemodel_backends"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if name.startswith(("sparsemodel/sklearn", "sparsemodel/testing")):
                continue  # nobody imports these without wanting the package they are for
            heavy = at_import_time(ast.parse(path.read_text(encoding="utf-8"))) & HEAVY
            # Compiled kernels live in files of their own, which are imported when first needed.
            heavy -= {"numba"} if path.stem.endswith("_compiled") else set()
            if heavy:
                eager[name] = sorted(heavy)
    assert not eager


def test_the_core_names_no_backend() -> None:
    """What is true of a backend it says itself: the core must treat a stranger's alike."""
    names = {entry.name for entry in entry_points(group=registry.GROUP)}
    named = []
    for path in sorted((ROOT / "sparsemodel").rglob("*.py")):
        if "testing" in path.parts:
            continue
        named += [
            f"{path.relative_to(ROOT)}:{node.lineno} {node.value}"
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Constant) and node.value in names
        ]
    assert not named


@pytest.mark.parametrize("every", [6, pytest.param(1, marks=pytest.mark.slow)])
def test_every_room_and_module_of_certificates_can_be_the_first_to_be_loaded(every: int) -> None:
    """Packages load what their ``__init__`` names, which may need what is half loaded."""
    code = """
import importlib, pkgutil, sys

def first(name, unloaded):
    for loaded in [m for m in sys.modules if m.startswith(unloaded)]:
        del sys.modules[loaded]
    try:
        importlib.import_module(name)
    except ImportError as error:
        print(name, error)

for package in ("compiler", "driver", "documents", "reporting", "testing", "certificates"):
    first(f"sparsemodel.{package}", "sparsemodel")
import sparsemodel, sparsemodel.certificates as package
names = [m.name for m in pkgutil.walk_packages(package.__path__, "sparsemodel.certificates.")]
for name in names[:: int(sys.argv[1])]:
    if name.endswith("_compiled") or name.endswith(".warm"):
        continue
    first(name, "sparsemodel.certificates")
from sparsemodel.certificates import certify, verify
import sparsemodel.certificates.certify
from sparsemodel.certificates import certify as again
assert callable(certify) and callable(verify) and callable(again)
"""
    command = [sys.executable, "-c", code, str(every)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
