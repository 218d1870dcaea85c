"""Every option of the command line does something: whatever is parsed is read afterwards."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest

import sparsemodel.cli
from sparsemodel.cli import main
from sparsemodel.cli.declaring import flag, option, parsed, recorded
from sparsemodel.cli.exits import Exit
from sparsemodel.cli.options import RegressionOptions
from sparsemodel.cli.parser import COMMANDS, Common
from sparsemodel.registry import available_losses

LINES = (
    "solve d.csv --target y --k 2 --certificate c.json --report r.html",
    "solve d.csv --target y --k 2 --no-certificate --json --model m.json",
    "predict m.json d.csv --output p.csv",
    "path d.csv --target y --ks 0:3 --select cv --table t.csv",
    "explain d.csv --target y --k 2",
    "verify c.json --data d.csv",
    "precision d.csv --edges 2 --certificate g.json",
    "precision d.csv --among 0:3 --json --no-certificate",
    "verify g.json --data d.csv",
    "backends nhtp --json",
    "backends nobody",
    "demo --output nowhere",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).standard_normal((30, 5))
    rows = "\n".join(",".join(map(repr, row)) for row in X.tolist())
    (tmp_path / "d.csv").write_text(f"a,b,c,d,y\n{rows}\n", encoding="utf-8")
    return tmp_path


def kinds(options: type[Any]) -> set[type[Any]]:
    """Return the dataclasses of options that a command is made of."""
    types = get_type_hints(options)
    inner = [types[spec.name] for spec in fields(options) if spec.metadata.get("part")]
    return {options}.union(*map(kinds, inner))


class Reader:
    """Notes which options are read, and not by the code that declares and records them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read: set[tuple[type[Any], str]] = set()
        self.patch = monkeypatch

    def watch(self, kind: type[Any]) -> None:
        names = {spec.name for spec in fields(kind)}

        def looked_up(held: Any, name: str) -> Any:
            asking = sys._getframe(1).f_globals["__name__"]
            if name in names and asking not in ("sparsemodel.cli.declaring", "dataclasses"):
                self.read.add((kind, name))
            return object.__getattribute__(held, name)

        self.patch.setattr(kind, "__getattribute__", looked_up, raising=False)

    def unread(self, kind: type[Any]) -> set[str]:
        return {spec.name for spec in fields(kind)} - {n for of, n in self.read if of is kind}


def test_every_option_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    reader = Reader(monkeypatch)
    declared = set().union(*(kinds(module.Options) for module in COMMANDS)) | {Common}
    for kind in declared:
        reader.watch(kind)
    for line in LINES:
        status = 6 if line.startswith("demo") else 5 if line.endswith("nobody") else 0
        assert main(line.split()) == status, (line, capsys.readouterr().err)
    ignored = {kind.__qualname__: reader.unread(kind) for kind in declared if reader.unread(kind)}
    assert not ignored
    assert len(declared) >= 18


def test_an_option_that_nobody_reads_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options:
        used: str = option("is read")
        ignored: bool = flag("is not")

    reader = Reader(monkeypatch)
    reader.watch(Options)
    options = parsed(Options, argparse.ArgumentParser(), ["--used=yes", "--ignored"])
    assert recorded(options) == ["--used=yes", "--ignored"]
    assert options.used == "yes"
    assert reader.unread(Options) == {"ignored"}


def test_the_help_names_every_loss_of_one_column(capsys: pytest.CaptureFixture) -> None:
    assert main(["solve", "--help"]) == 0
    listed = capsys.readouterr().out.partition("--loss LOSS")[2].partition(" or that")[0]
    named = set("".join(listed.split()).partition(":")[2].split(","))
    names = {info.name for info in available_losses() if info.distribution == "sparsemodel"}
    # The smoothed pinball loss only approximates the quantile loss.
    assert names - named == {"cox", "smoothed-pinball"}


def test_what_is_recorded_is_read_back() -> None:
    line = "--target=y --features=a,b --missing=drop --k=0 --loss=huber --delta=1.5 --ridge=0.0"
    given = [*line.split(), "--plain-ridge", "--lower=-2.0", "--delimiter=;"]
    options = parsed(RegressionOptions, argparse.ArgumentParser(), given)
    assert options.file.features == ("a", "b")
    assert options.k == 0
    assert options.model.plain_ridge
    again = parsed(RegressionOptions, argparse.ArgumentParser(), recorded(options))
    assert again == options
    assert sorted(recorded(options)) == sorted(given)
    assert recorded(parsed(RegressionOptions, argparse.ArgumentParser(), [])) == []


def test_a_parsed_line_is_typed_at_once() -> None:
    """Nothing but the module that declares options knows what argparse holds them in."""
    folder = Path(sparsemodel.cli.__file__).parent
    for path in folder.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "argparse._" not in text, path.name
        assert "._actions" not in text, path.name
        if path.name != "declaring.py":
            assert "Namespace" not in text, path.name


def test_options_of_a_regression_are_refused_for_a_graph(
    folder: Path, capsys: pytest.CaptureFixture
) -> None:
    assert main(["precision", "d.csv", "--edges", "2", "--certificate", "g.json"]) == 0
    assert (
        main(["verify", "g.json", "--data", "d.csv", "--k", "3", "--loss", "huber"]) == Exit.USAGE
    )
    assert "--k=3, --loss=huber: these options declare a regression" in capsys.readouterr().err


def test_the_cross_check_is_made(folder: Path, capsys: pytest.CaptureFixture) -> None:
    line = "solve d.csv --target y --k 2 --ridge 0.1 --certificate c.json"
    assert main(line.split()) == 0
    capsys.readouterr()
    assert main(["verify", "c.json", "--data", "d.csv"]) == 0
    assert "cross-check" not in capsys.readouterr().out
    assert main(["verify", "c.json", "--data", "d.csv", "--cross-check"]) == 0
    assert "cross-check" in capsys.readouterr().out
    assert main(["verify", "c.json", "--data", "d.csv", "--cross-check", "--json"]) == 0
    assert "is not above it" in json.loads(capsys.readouterr().out)["checked"]["cross-check"]
    assert main(["precision", "d.csv", "--edges", "1", "--certificate", "g.json"]) == 0
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
        assert main(["precision", "e.csv", "--edges", "2"]) == Exit.DATA
        assert "built and age are linearly dependent" in capsys.readouterr().err
        for remedy in ("--drop age", "--shrinkage 0.1"):
            line = f"precision e.csv --edges 2 --no-certificate {remedy}"
            assert main(line.split()) == 0, capsys.readouterr().err
    capsys.readouterr()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "solve d.csv --target y --k 2 --loss squard",
            "--loss: There is no loss 'squard'",
        ),
        ("solve d.csv --target y --k 2 --groups a,b", "did you mean --group-prefix?"),
        ("solve d.csv --target y -k 2", "-k 2; did you mean --k?"),
        ("solve d.csv --target y --cardinality 2", "did you mean --k (--ks of path, --edges of"),
        ("solve d.csv --target y --k 2 --sep ;", "--sep ;; did you mean --delimiter?"),
        ("solve d.csv --target y --k two", "sparsemodel solve: argument --k: 'two' is not a whole"),
    ],
)
def test_a_misspelt_line_is_refused_before_any_data_are_read(
    line: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    name = str(tmp_path / "d.csv")  # is not there
    assert main([part if part != "d.csv" else name for part in line.split()]) == 2
    assert said in capsys.readouterr().err
