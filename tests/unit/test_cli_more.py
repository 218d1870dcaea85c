"""The commands ``path`` and ``precision``."""

from __future__ import annotations

import csv
import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.cli import main
from sparsemodel.cli.exits import Exit

N, P = 60, 6


@pytest.fixture
def X(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """Write two tables into an empty current folder, and return their features."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P))
    y = 2 * X[:, 0] - X[:, 2] + 0.5 * rng.standard_normal(N)
    np.savetxt(
        "data.csv", np.column_stack([X, y]), "%.17g", ",", header="a,b,c,d,e,f,y", comments=""
    )
    chain = X.copy()
    for j in range(1, P):
        chain[:, j] += 0.9 * chain[:, j - 1]
    np.savetxt("chain.csv", chain, "%.17g", ",", header="a,b,c,d,e,f", comments="")
    return X


# ---- path ----------------------------------------------------------------------------------------


def test_path_is_that_of_the_language(X: np.ndarray, capsys: pytest.CaptureFixture) -> None:
    line = "path data.csv --target y --ks 0:4 --ridge 0.01 --plain-ridge --json --table t.csv"
    assert main([*line.split(), "--select", "bic"]) == 0
    found = json.loads(capsys.readouterr().out)
    y = np.loadtxt("data.csv", delimiter=",", skiprows=1)[:, -1]
    w, c = sm.Variable(P, names=list("abcdef")), sm.Variable(name="intercept")
    problem = sm.Problem(
        sm.minimize(sm.squared_loss(sm.as_design(X) @ w + c, y) + sm.ridge(w, 0.01)),
        sm.card(w) <= 4,
    )
    path = problem.path(range(5))
    assert found["k"] == [0, 1, 2, 3, 4]
    np.testing.assert_allclose(found["objective"], path.objective, rtol=1e-9)
    assert found["support"][:3] == [[], ["a"], ["a", "c"]]
    assert found["chosen"]["k"] == path.select("bic").k
    with Path("t.csv").open(newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    assert [float(row["objective"]) for row in rows] == found["objective"]
    assert [int(row["k"]) for row in rows if row["chosen"] == "1"] == [found["chosen"]["k"]]


def test_path_over_ridges(X: np.ndarray, capsys: pytest.CaptureFixture) -> None:
    line = "path data.csv --target y --ks 0:2 --ridges 1,0.01 --select bic"
    assert main([*line.split(), "--json", "--table", "r.csv"]) == Exit.OK
    found = json.loads(capsys.readouterr().out)
    assert found["ridges"] == [0.01, 1.0]
    assert np.shape(found["objective"]) == np.shape(found["scores"]) == (3, 2)
    assert found["chosen"]["ridge"] == found["ridges"][int(np.argmin(found["scores"])) % 2]
    rows = Path("r.csv").read_text().splitlines()
    assert rows[0] == "k,ridge,objective,score,chosen,support"
    assert sum(row.split(",")[4] == "1" for row in rows[1:]) == 1
    assert main(line.split()) == Exit.OK
    assert "bic, ridge 0.01" in capsys.readouterr().out


def test_path_by_cross_validation(X: np.ndarray, capsys: pytest.CaptureFixture) -> None:
    line = "path data.csv --target y"
    assert main([*line.split(), "--ks", "1,2,3", "--select", "cv", "--folds", "3"]) == 0
    shown = capsys.readouterr().out
    assert "note: cross-validation chooses k = 3, the largest of the path" in shown
    assert "+c" in shown
    best = "--ks 1,2,3 --select cv --folds 3 --one-standard-error"
    assert main([*line.split(), *best.split()]) == 0
    assert "k = 2 by cross-validation (one standard error)" in capsys.readouterr().out
    assert main([*line.split(), "--ks", "1:3", "--loss", "huber", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rule"].startswith("cross-validation")


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("path data.csv --target y", Exit.USAGE, "--ks"),
        ("path data.csv --target y --ks 3:1", Exit.USAGE, "not a range"),
        ("path data.csv --target y --ks 1:9:0", Exit.USAGE, "not a range"),
        ("path data.csv --target y --ks one", Exit.USAGE, "not a range"),
        ("path data.csv --target y --ks 1:3 --table data.csv", Exit.OUTPUT, "exists"),
        ("path data.csv --target y --ks 1:3 --table t.txt", Exit.USAGE, ".csv"),
        ("precision chain.csv", Exit.USAGE, "--edges"),
        ("precision chain.csv --edges -1", Exit.USAGE, "at least 0"),
        ("precision chain.csv --edges 99", Exit.USAGE, "15 edges"),
        ("precision chain.csv --edges 2 --target a", Exit.USAGE, "--target"),
        ("precision chain.csv --edges 2 --edge-list chain.csv", Exit.OUTPUT, "exists"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(
    X: np.ndarray, capsys: pytest.CaptureFixture, line: str, code: Exit, said: str
) -> None:
    assert main(line.split()) == code
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


# ---- precision -----------------------------------------------------------------------------------


def test_precision_finds_a_chain(X: np.ndarray, capsys: pytest.CaptureFixture) -> None:
    line = "precision chain.csv --edges 5 --edge-list e.csv --json"
    assert main(line.split()) == 0
    found = json.loads(capsys.readouterr().out)
    pairs = {frozenset((edge["one"], edge["other"])) for edge in found["edges"]}
    assert pairs == {frozenset(pair) for pair in ("ab", "bc", "cd", "de", "ef")}
    assert found["certificate"]["bound"] <= found["objective"]
    with Path("e.csv").open(newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    assert [float(row["partial_correlation"]) for row in rows] == [
        edge["partial_correlation"] for edge in found["edges"]
    ]


def test_precision_of_correlations_in_words(X: np.ndarray, capsys: pytest.CaptureFixture) -> None:
    line = "precision chain.csv --edges 2 --correlation --drop f --no-certificate"
    assert main(line.split()) == 0
    shown = capsys.readouterr().out
    assert "2 edges among 5 variables" in shown
    assert "partial correlation" in shown


def test_precision_refuses_constant_columns(X: np.ndarray, capsys: pytest.CaptureFixture) -> None:
    Path("flat.csv").write_text("a,b\n1,2\n1,3\n1,5\n", encoding="utf-8")
    for options in ([], ["--correlation"]):
        assert main(["precision", "flat.csv", "--edges", "1", *options]) == Exit.DATA
        captured = capsys.readouterr()
        assert "constant" in captured.err
        assert "a" in captured.err


def test_warnings_are_one_line(
    X: np.ndarray, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sparsemodel.cli.commands import backends

    def warning(_: object) -> int:
        warnings.simplefilter("always")
        warnings.warn("two\nlines", UserWarning, stacklevel=1)
        return 0

    monkeypatch.setattr(backends, "run", warning)
    assert main(["backends"]) == 0
    assert capsys.readouterr().err == "sparsemodel: warning: two lines\n"
