"""Every option of the command line does something: whatever is parsed is read afterwards."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparsemodel.cli import main
from sparsemodel.cli.exits import Exit
from sparsemodel.cli.parser import build_parser

LINES = (
    "solve d.csv --target y --k 2 --certificate c.json --report r.html --quiet",
    "solve d.csv --target y --k 2 --no-certificate --json",
    "path d.csv --target y --ks 0:3 --select cv --table t.csv",
    "explain d.csv --target y --k 2",
    "verify c.json --data d.csv",
    "precision d.csv --edges 2 --certificate g.json --quiet",
    "precision d.csv --among 0:3 --json --no-certificate --quiet",
    "verify g.json --data d.csv",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).standard_normal((30, 5))
    rows = "\n".join(",".join(map(repr, row)) for row in X.tolist())
    (tmp_path / "d.csv").write_text(f"a,b,c,d,y\n{rows}\n", encoding="utf-8")
    return tmp_path


def test_every_option_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    read: dict[str, set[str]] = {}
    command = ""

    class Watched(argparse.Namespace):
        def __getattribute__(self, name: str) -> Any:
            if sys._getframe(1).f_globals["__name__"] != "argparse":
                read.setdefault(command, set()).add(name)
            return super().__getattribute__(name)

    monkeypatch.setattr(argparse, "Namespace", Watched)
    for line in LINES:
        command = line.split()[0]
        assert main(line.split()) == 0, (line, capsys.readouterr().err)
    subparsers = next(
        a for a in build_parser()._actions if isinstance(a, argparse._SubParsersAction)
    )
    for name, parser in subparsers.choices.items():
        if name not in read:
            continue
        elsewhere = ("help", "==SUPPRESS==", "traceback")  # the last after an error
        declared = {a.dest for a in parser._actions if a.dest not in elsewhere}
        assert declared <= read[name], f"{name} ignores {sorted(declared - read[name])}"


def test_the_cross_check_is_made(folder: Path, capsys: pytest.CaptureFixture) -> None:
    line = "solve d.csv --target y --k 2 --ridge 0.1 --certificate c.json --quiet"
    assert main(line.split()) == 0
    capsys.readouterr()
    assert main(["verify", "c.json", "--data", "d.csv"]) == 0
    assert "cross-check" not in capsys.readouterr().out
    assert main(["verify", "c.json", "--data", "d.csv", "--cross-check"]) == 0
    assert "cross-check" in capsys.readouterr().out
    assert main(["verify", "c.json", "--data", "d.csv", "--cross-check", "--json"]) == 0
    assert "is not above it" in json.loads(capsys.readouterr().out)["checked"]["cross-check"]
    assert main(["precision", "d.csv", "--edges", "1", "--certificate", "g.json", "--quiet"]) == 0
    assert main(["verify", "g.json", "--data", "d.csv", "--cross-check"]) != Exit.OK
    assert "regressions" in capsys.readouterr().err


def test_dependent_columns_are_named(folder: Path, capsys: pytest.CaptureFixture) -> None:
    rng = np.random.default_rng(1)
    for scale in (1.0, 1e-8, 1e8):
        X = rng.standard_normal((60, 4))
        built = 1900.0 + 100.0 * rng.uniform(size=60)
        table = np.column_stack([X, built, 2020.0 - built]) * scale
        rows = "\n".join(",".join(map(repr, row)) for row in table.tolist())
        (folder / "e.csv").write_text(f"a,b,c,d,built,age\n{rows}\n", encoding="utf-8")
        assert main(["precision", "e.csv", "--edges", "2", "--quiet"]) == Exit.DATA
        assert "built and age are linearly dependent" in capsys.readouterr().err
        for remedy in ("--drop age", "--shrinkage 0.1"):
            line = f"precision e.csv --edges 2 --quiet --no-certificate {remedy}"
            assert main(line.split()) == 0, capsys.readouterr().err
    capsys.readouterr()
