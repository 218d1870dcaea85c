"""The scripts of the papers' experiments: what they share, and that each runs."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import subprocess
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from sparsemodel.experiments import read_trials

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


def test_a_run_that_was_stopped_goes_on(common: ModuleType, tmp_path: Path) -> None:
    begun: list[tuple[int, int]] = []

    def trial(n: int, seed: int) -> dict[str, float]:
        begun.append((n, seed))
        return {"value": float(10 * n + seed)}

    chosen = common.Options(full=False, data=None, output=tmp_path, seed=0)
    keys = [(2, 0), (2, 1)]
    assert common.Trials(chosen, "kept", trial).means(keys) == {"value": 20.5, "trials": 2}
    with (tmp_path / "kept.jsonl").open("a") as file:
        file.write('{"trial": [3, 0], "num')  # it was stopped here
    again = common.Trials(chosen, "kept", trial)
    assert again.means([*keys, (3, 0)]) == {"value": pytest.approx(71 / 3), "trials": 3}
    assert begun == [*keys, (3, 0)]
    late = common.Trials(replace(chosen, minutes=-1.0), "kept", trial)
    assert late.means([*keys, (4, 0)]) == {"value": 20.5, "trials": 2}
    assert late.means([(4, 0)]) == {}


def test_what_rounding_changes_is_noted(common: ModuleType, tmp_path: Path) -> None:
    def trial(seed: int, method: str, data: str = "") -> dict[str, float]:
        moved = 0.1 * (method == "IHT") * (data == common.ROUNDED)
        return {"objective": 1.0 - moved, "s": float(bool(data))}

    chosen = common.Options(full=False, data=None, output=tmp_path, seed=0)
    trials = common.Trials(chosen, "kept", trial)
    for method in ("IHT", "OMP"):
        trials(0, method)
        assert trials.stability("objective") == ""
    for method in ("IHT", "OMP"):
        trials(0, method, common.ROUNDED)
    words = "Largest change in 2 trials on rounded data: IHT 10 %, OMP 0 %."
    assert trials.stability("objective") == words
    A = np.random.default_rng(1).standard_normal((5, 4))
    assert np.abs(common.rounded(A) - A).max() > 0.0
    np.testing.assert_allclose(common.rounded(A), A, rtol=1e-15)


def test_what_runs_took_is_noted(
    common: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def main(chosen: object) -> None:
        trials = common.Trials(chosen, "kept", lambda seed: {"value": float(seed)})
        trials.means([(0,), (1,)])

    monkeypatch.setattr(common.Trials, "made", [])
    monkeypatch.setattr(sys, "argv", ["some.py", "--full", "--output", os.fspath(tmp_path)])
    common.program(main, "Nothing.")
    (tmp_path / "kept.jsonl").write_text('{"trial": [0], "numbers": {"value": 0}, "seconds": 70}\n')
    monkeypatch.setattr(common.Trials, "made", [])
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--trials", "9", "--minutes", "0"])
    common.program(main, "Nothing.")
    table = (tmp_path / "costs.txt").read_text().splitlines()[4:]
    today = date.today().isoformat()
    assert table == [
        f"| `some.py` | `--full --trials 9` | 1 | 2 | 70 | {today} |",
        f"| `some.py` | `--full` | 2 | 2 | 0 | {today} |",
    ]


def program(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(os.fspath(FOLDER))
    return importlib.import_module(name)


@pytest.mark.parametrize("n", [5, 12, 22])
def test_the_instance_of_the_lower_bound(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both supports fit; on a part of the n - 2 each that is left looks better than the two."""
    A, b = program("arht_lower_bound", monkeypatch).instance(n)
    assert np.linalg.norm(A, axis=0) == pytest.approx(np.ones(n))
    for fitting in (A[:, -2:], A[:, :-2]):
        assert np.linalg.norm(b - fitting @ np.linalg.lstsq(fitting, b, rcond=None)[0]) < 1e-9
    for used in range(n - 2):
        rest = np.concatenate([np.zeros(used), b[used:]])
        gradient = np.abs(A.T @ rest)
        assert gradient[-2:].max() < gradient[used:-2].min()


RECORDED = sorted((Path(__file__).parents[2] / "docs/explanation/papers").glob("*.jsonl"))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_sample_of_the_recorded_trials_comes_out_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty of the numbers behind every table: not times, nor of trials of over ten seconds."""
    trials, judged = read_trials(path), 0
    papers = program("common", monkeypatch)
    unstable = papers.changes(trials)
    keys = [key for key, line in trials.items() if line.get("seconds", 0.0) <= 10.0]
    for key in (keys[i] for i in np.random.default_rng(0).permutation(len(keys))):
        again = program(path.stem, monkeypatch).trial(*key)
        for name, value in trials[key]["numbers"].items():
            if name != "s" and not name.endswith(", s"):
                # How far a bound comes in its time depends on the machine; a number that changes
                # with the last digit of the data may change as much from one to another.
                change = unstable.get(papers.method_and_number(key, name), 0.0)
                rel = 1e-2 if name == "bound" else max(1e-3, 2.0 * change)
                assert again[name] == pytest.approx(value, rel=rel, abs=1e-12), key
                judged += 1
        if judged >= 20:
            break


WHOLE = ("arht_sparsity", "grahtp_contraction")
"""Programs without trials whose tables on the page are those of the short run, times apart."""


def cells(table: Path) -> list[float]:
    """Return the numbers of a table of the page."""
    rows = [line.split("|") for line in table.read_text(encoding="utf-8").splitlines()[4:]]
    return [float(cell) for row in rows for cell in row if re.fullmatch(r" [-+.\de]+ ", cell)]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_quick_runs(script: Path, tmp_path: Path) -> None:
    command = [sys.executable, os.fspath(script), "--quick", "--output", os.fspath(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.glob("*.csv"))
    if script.stem in WHOLE:
        page = RECORDED[0].parent / f"{script.stem}.txt"
        assert cells(tmp_path / page.name) == pytest.approx(cells(page), rel=5e-3)
