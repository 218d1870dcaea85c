"""The command line with hostile names, huge indices, closed streams and narrow encodings."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pytest

from sparsemodel.cli import main
from sparsemodel.cli.printing import cell, distinct, message, name
from sparsemodel.documents.escaping import visible

HOSTILE = ["\x1b[31mred", "nul\0l", "\u202egnp.exe", "=cmd|' /C calc'!A0", "|a|<b>", "x" * 10_000]


def _hidden(text: str) -> list[str]:
    kinds = {"Cc", "Cf", "Cs"}
    return [c for c in text if unicodedata.category(c) in kinds and c != "\n"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, len(HOSTILE)))
    y = X @ np.arange(1.0, len(HOSTILE) + 1.0)
    file = tmp_path / "data.csv"
    with file.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        writer.writerow([*HOSTILE, "y"])
        writer.writerows(np.column_stack([X, y]).tolist())
    return file


def shell(line: str, cwd: Path, encoding: str = "utf-8") -> subprocess.CompletedProcess[str]:
    """Run ``sparsemodel ...`` in a shell, so that streams can be closed."""
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    return subprocess.run(
        f"exec {sys.executable} -m sparsemodel {line}",
        shell=True,
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        timeout=60,
        check=False,
    )


def test_hidden_characters_are_escaped_and_long_texts_shortened() -> None:
    for text in (*HOSTILE, "\ud800", "a\u2028b", "\x9b31m"):
        assert not _hidden(visible(text))
        assert len(name(text)) <= 80 * 6
        assert "\n" not in message(text + "\n" + text)
        message(text).encode()
    assert visible("größer 漢字") == "größer 漢字"
    assert len(message("word " * 100_000)) <= 2_000
    names = distinct(["a", "x" * 1000 + "1" + "y" * 1000, "x" * 1000 + "2" + "y" * 1000])
    assert len(set(names)) == 3


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_names_that_look_like_formulas_are_written_as_text(text: str) -> None:
    assert cell(text) == f"'{text}"
    assert cell(f"a{text}") == f"a{text}"


def test_no_output_holds_what_steers_a_terminal_or_a_spreadsheet(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = table.parent
    k = str(len(HOSTILE))
    report, values, steps = folder / "r.md", folder / "c.csv", folder / "p.csv"
    common = [str(table), "--target", "y"]
    files = ["--report", str(report), "--coefficients", str(values)]
    files += ["--certificate", str(folder / "c.json")]
    assert main(["solve", *common, "--k", k, *files]) == 0
    assert main(["path", *common, "--ks", f"1:{k}", "--table", str(steps)]) == 0
    assert main(["explain", *common, "--k", k]) == 0
    assert main(["verify", str(folder / "c.json"), "--data", str(table)]) == 0
    shown = capsys.readouterr()
    for text in (shown.out, shown.err, report.read_text(), values.read_text(), steps.read_text()):
        assert not _hidden(text)
        assert "x" * 300 not in text
    with values.open(newline="") as handle:
        first = [row[0] for row in csv.reader(handle)]
    assert "'=cmd|' /C calc'!A0" in first
    assert not any(text.startswith(("=", "+", "@", "-")) for text in first)
    assert "\\|a\\|\\<b\\>" in report.read_text()


@pytest.mark.parametrize("line", ["--target missing --k 2", "--target y --k 2 --always missing"])
def test_errors_name_columns_safely(
    table: Path, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    assert main(["solve", str(table), *line.split()]) == 2
    error = capsys.readouterr().err
    assert not _hidden(error)
    assert len(error) < 2_500
    assert main(["solve", str(table), "--k", "\x1b[31m"]) == 2
    assert not _hidden(capsys.readouterr().err)


@pytest.mark.parametrize(
    "streams",
    [*(pytest.param(one, marks=pytest.mark.slow) for one in ("<&-", ">&-")), "<&- >&- 2>&-"],
)
def test_closed_streams_are_no_internal_error(table: Path, streams: str) -> None:
    ended = shell(f"solve data.csv --target y --k 2 --certificate c.json {streams}", table.parent)
    assert ended.returncode == 0, ended.stderr
    assert "internal error" not in ended.stderr
    assert (table.parent / "c.json").read_text().startswith("{")
    refused = shell(f"solve - --target y --k 2 {streams}", table.parent)
    assert refused.returncode == 3
    assert "internal error" not in refused.stderr


@pytest.mark.parametrize("encoding", ["ascii", pytest.param("utf-8", marks=pytest.mark.slow)])
def test_names_beyond_the_encoding_of_the_output_are_escaped(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "größe.csv"
    rows = "\n".join(f"{i},{i % 3},{2 * i}" for i in range(12))
    file.write_text(f"größe,漢字,y\n{rows}\n", encoding="utf-8")
    ended = shell("solve *.csv --target y --k 2", tmp_path, encoding)
    assert ended.returncode == 0, ended.stderr
    refused = shell("solve *.csv --target z --k 2", tmp_path, encoding)
    assert refused.returncode == 2
    assert "has no column" in refused.stderr


@pytest.mark.parametrize("index", ["4000000000", "99999999999999999999", "2147483648", "900000000"])
def test_indices_of_too_many_columns_are_refused_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], index: str
) -> None:
    file = tmp_path / "wide.svm"
    file.write_text(f"1 1:1\n\n-1 {index}:1\n")
    assert main(["solve", str(file), "--k", "1"]) == 3
    error = capsys.readouterr().err
    assert "line 3" in error
    assert "fewer columns" in error
    assert "warning" not in error
