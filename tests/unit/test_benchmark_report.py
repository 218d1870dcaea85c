"""The page of the benchmarks: what it states, and that a failure loses nothing else."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import __main__ as program
from benchmarks.measure import Record, Timing, peak_beyond, timed
from benchmarks.report import save, write_page

MACHINE = {
    "date": "2026-01-02",
    "processor": "a processor",
    "cores": 2,
    "memory_gb": 8.0,
    "system": "a system",
    "python": "3.12",
    "versions": {"numpy": "2.0", "abess (peer)": "0.4"},
    "threads": "1",
    "load": [0.1, 0.1, 0.1],
}


def result(family: str, threads: int, *solvers: str) -> dict[str, Any]:
    records = [
        Record(family, "a case", name, {"error": 1e-9}, Timing(2.0 + i, 3.0, 2.0, 5), 0.5).to_dict()
        for i, name in enumerate(solvers)
    ]
    machine = MACHINE | {"threads": str(threads)}
    return {"family": family, "machine": machine, "records": records}


def test_the_page_states_machine_threads_runs_and_ratios(tmp_path: Path) -> None:
    for threads in (1, 2):
        save(tmp_path, f"recovery-{threads}", result("recovery", threads, "sparsemodel", "abess"))
    text = write_page(tmp_path).read_text()
    for fact in ("a processor", "numpy 2.0", "abess (peer) 0.4"):
        assert text.count(fact) == 1
    assert text.count("2026-01-02") == 2
    assert "OPENBLAS_NUM_THREADS=1" in text
    assert "OPENBLAS_NUM_THREADS=2" in text
    rows = [
        [cell.strip() for cell in line.strip("| ").split("|")]
        for line in text.splitlines()
        if line.startswith("| ")
    ]
    head, _, ours, peer = rows[:4]
    assert head.index("error") < head.index("CPU s")  # quality before cost
    cells = dict(zip(head, peer, strict=False))
    assert dict(zip(head, ours, strict=False))["ratio"] == "1"
    assert cells["ratio"] == "1.5"
    assert cells["units"] == "6"
    assert cells["threads"] == "1"
    assert cells["runs"] == "5"


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        ((2e-4, 2.0), (1e-4, 4.0), ["0.0002 in 2 s, **worse**", "peer: 0.0001 | 2 |"]),
        ((1e-4, 2.0), (2e-4, 1.0), ["0.0001 in 2 s, better", "peer: 0.0002 | 0.5 |"]),
        ((1e-4, 2.0), (1.0005e-4, 1.0), ["0.0001 in 2 s, as good", "peer: 0.0001"]),
    ],
)
def test_the_summary_judges_answers_before_times(
    tmp_path: Path, ours: tuple[float, float], theirs: tuple[float, float], said: list[str]
) -> None:
    solvers = {"sparsemodel": ours, "peer": theirs, "hasty peer": (1.0, 0.1)}
    records = [
        Record("logistic", "a case", name, {"loss": loss}, Timing(cpu, cpu, cpu, 1), 0.5).to_dict()
        for name, (loss, cpu) in solvers.items()
    ]
    machine = MACHINE | {"threads": "1"}
    save(tmp_path, "logistic-1", {"family": "logistic", "machine": machine, "records": records})
    write_page(tmp_path)
    (row,) = (tmp_path / "summary.md").read_text().splitlines()[2:]
    assert row.startswith("| logistic, a case | loss |")
    assert [text for text in said if text not in row] == []


def test_a_family_that_failed_is_on_the_page_beside_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path, "recovery-1", result("recovery", 1, "sparsemodel"))
    monkeypatch.setattr(program, "_spawn", _fails)
    arguments = ["benchmarks", "growth", "--threads", "1", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", [*arguments, "--data-folder", str(tmp_path)])
    assert program.main() == 1
    text = (tmp_path / "results-all.md").read_text()
    assert "## recovery" in text
    assert "| a case | sparsemodel |" in text
    assert "## growth" in text
    assert "No result: not finished within 1 s" in text
    assert "failure" in json.loads((tmp_path / "growth-1.json").read_text())
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []  # nothing is left


def _fails(family: str, threads: int, arguments: Any, folder: Path) -> dict[str, Any]:
    (folder / "out-of-core.bin").write_bytes(bytes(8))
    return result(family, threads) | {"failure": "not finished within 1 s"}


def test_an_unknown_family_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", "speed"])
    with pytest.raises(SystemExit, match="no family 'speed'; there are compressed_sensing"):
        program.main()


def test_a_process_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    arguments = program._parser().parse_args(["flights", "--limit", "0.01"])
    ended = program._spawn("flights", 1, arguments, tmp_path)
    assert ended["failure"] == "not finished within 0.01 s"
    assert ended["records"] == []


def test_timings_are_medians_and_peaks_count_arrays() -> None:
    calls: list[int] = []
    last, timing = timed(lambda: calls.append(1) or len(calls), 3)
    assert last == timing.repeats == 3
    assert peak_beyond(lambda: np.ones(2**20).sum()) == pytest.approx(8.0, abs=0.5)
