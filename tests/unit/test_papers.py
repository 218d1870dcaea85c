"""The scripts of the papers' experiments: what they share, and that each runs."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "papers"
SCRIPTS = sorted(path for path in FOLDER.glob("*.py") if path.name != "common.py")


@pytest.fixture(scope="module")
def common() -> ModuleType:
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location("papers_common", FOLDER / "common.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_methods_are_solved_and_timed(common: ModuleType) -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 10))
    answer = common.least_squares(A, A[:, 3] - A[:, 7], 2, "omp")
    assert np.flatnonzero(answer.x).tolist() == [3, 7]
    assert answer.cpu > 0.0


def test_tables_and_pictures_are_written(common: ModuleType, tmp_path: Path) -> None:
    chosen = common.Options(full=False, data=None, output=tmp_path, seed=0)
    common.table(chosen, "numbers", ("k", "value"), [(1, 0.5), (2, 0.25)])
    assert (tmp_path / "numbers.csv").read_text().splitlines() == ["k,value", "1,0.5", "2,0.25"]
    figure, axes = common.panels(1, 2)
    common.curve(axes[0], "NHTP", [1, 2], [3.0, 4.0])
    common.save(chosen, figure, "picture")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_data_of_the_user_are_read(common: ModuleType, tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", X=np.eye(3), y=np.arange(3))
    (tmp_path / "yours.svm").write_text("1 1:2.0\n-1 2:0.5\n")
    found = common.own_data(tmp_path)
    assert sorted(found) == ["mine", "yours"]
    assert found["yours"][0].shape == (2, 2)


def test_every_script_says_what_it_regenerates() -> None:
    assert len(SCRIPTS) >= 11
    for path in SCRIPTS:
        first = path.read_text(encoding="utf-8").splitlines()[0]
        assert first.startswith('"""'), path.name
        assert "figure" in first or "table" in first, path.name


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_quick_runs(script: Path, tmp_path: Path) -> None:
    command = [sys.executable, os.fspath(script), "--quick", "--output", os.fspath(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.glob("*.csv"))
