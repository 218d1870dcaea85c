"""The command line: run in this process where possible, as a program where it matters."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.cli import main
from sparsemodel.cli.exits import Exit, OutputError, code_of, one_line
from sparsemodel.cli.files import free_names, write_text, written
from sparsemodel.cli.parser import COMMANDS

N, P, K = 40, 6, 2


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table whose target depends on two columns, in an empty current folder."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P)) * np.array([1, 10, 100, 1, 1, 1])
    y = 3 + 2 * X[:, 0] - 0.02 * X[:, 2] + 0.01 * rng.standard_normal(N)
    kind = np.where(X[:, 0] + 0.5 * rng.standard_normal(N) > 0, "pos", "neg")
    path = tmp_path / "data.csv"
    rows = [
        ",".join([*map(repr, x.tolist()), repr(float(t)), c])
        for x, t, c in zip(X, y, kind, strict=True)
    ]
    path.write_text("a,b,c,d,e,f,y,kind\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def run_json(capsys: pytest.CaptureFixture, *line: str) -> dict:
    assert main(["solve", *line, "--json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture, *line: str) -> tuple[int, str]:
    """Return code and message of a command that must fail, with one line on stderr alone."""
    code = main([str(part) for part in line])
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    return code, captured.err


# ---- solve ---------------------------------------------------------------------------------------


def test_solve_is_the_language_by_another_name(data: Path, capsys: pytest.CaptureFixture) -> None:
    found = run_json(
        capsys, str(data), "--target", "y", "--drop", "kind", "--k", "2",
        "--ridge", "0.01", "--plain-ridge",
    )  # fmt: skip
    table = np.loadtxt(data, delimiter=",", skiprows=1, usecols=range(7))
    w, c = sm.Variable(P, names=list("abcdef")), sm.Variable(name="intercept")
    loss = sm.squared_loss(table[:, :6] @ w + c, table[:, 6])
    problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.01)), sm.card(w) <= K)
    solution = problem.solve()
    assert found["support"] == solution.support == ["a", "c"]
    assert found["objective"] == pytest.approx(solution.value, rel=1e-12)
    assert found["coefficients"] == pytest.approx(dict(solution.coefficients))
    assert found["certificate"]["bound"] <= found["objective"]


def test_the_bound_is_printed_without_words_of_python(
    data: Path, capsys: pytest.CaptureFixture
) -> None:
    words = f"solve {data} --target y --drop kind --k 2 --no-certificate".split()
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert "leave out --no-certificate for a certificate" in " ".join(printed.split())
    assert "problem." not in printed


def test_units_of_the_columns_do_not_matter(data: Path, capsys: pytest.CaptureFixture) -> None:
    options = ("--target", "y", "--drop", "kind", "--k", "2", "--ridge", "0.1", "--no-certificate")
    before = run_json(capsys, str(data), *options)
    lines = data.read_text(encoding="utf-8").splitlines()
    scaled = [lines[0]]
    for line in lines[1:]:
        first, *rest = line.split(",")
        scaled.append(",".join([repr(1024 * float(first)), *rest]))
    data.write_text("\n".join(scaled), encoding="utf-8")
    after = run_json(capsys, str(data), *options)
    assert after["objective"] == pytest.approx(before["objective"], rel=1e-9)
    assert after["coefficients"]["a"] * 1024 == pytest.approx(before["coefficients"]["a"])


def test_classes_constraints_and_files(data: Path, capsys: pytest.CaptureFixture) -> None:
    line = (
        "solve data.csv --target kind --drop y --loss logistic --k 2 --always d "
        "--coefficients w.csv --report r.html --certificate c.json"
    )
    status = main(line.split())
    shown = capsys.readouterr().out
    assert status == 0
    assert "neg (0), pos (1)" in shown
    assert "accuracy on these rows" in shown
    report = Path("r.html").read_text(encoding="utf-8")
    assert "sparsemodel verify c.json --data data.csv" in report
    assert "neg (0), pos (1)" in report
    coefficients = dict(line.split(",") for line in Path("w.csv").read_text().splitlines()[1:])
    assert {"a", "d"} <= set(coefficients)
    assert all(float(v) for n, v in coefficients.items() if n != "name")
    assert Path("r.html").read_text(encoding="utf-8").lstrip().startswith("<!")
    assert not list(Path().glob(".*")), "temporary files are left behind"


def test_several_classes_and_groups(data: Path, capsys: pytest.CaptureFixture) -> None:
    lines = data.read_text(encoding="utf-8").splitlines()
    lines[0] = "g=a,g=b,c,d,e,f,y,kind"
    lines[1:] = [line[: line.rindex(",")] + f",{i % 3}" for i, line in enumerate(lines[1:])]
    data.write_text("\n".join(lines), encoding="utf-8")
    found = run_json(
        capsys, "data.csv", "--target", "kind", "--loss", "multinomial", "--k", "1",
        "--group-prefix", "=", "--always", "y", "--no-certificate",
    )  # fmt: skip
    assert found["classes"] == ["0", "1", "2"]
    assert len(found["coefficients"]["intercept"]) == 3
    assert found["certificate"] is None


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("solve data.csv --k 2", Exit.USAGE, "--target"),
        ("solve data.csv --target y", Exit.USAGE, "--k"),
        ("solve data.csv --target z --k 2", Exit.USAGE, "no column 'z'"),
        ("solve data.csv --target y --k 2.5", Exit.USAGE, "whole number"),
        ("solve data.csv --target y --k -1", Exit.USAGE, "whole number"),
        ("solve data.csv --target kind --k 2 --loss squared", Exit.DATA, "--loss logistic"),
        ("precision data.csv --edges 2", Exit.DATA, "'kind[pos]' is a category"),
        ("solve data.csv --target y --drop kind --k 2 --loss logistic", Exit.DATA, "two classes"),
        ("solve data.csv --target y --drop kind --k 2 --tau 0.1", Exit.USAGE, "or quantile"),
        ("solve data.csv --target y --loss gamma --k 2 --theta 2", Exit.USAGE, "negative-binomial"),
        ("solve data.csv --target y --drop kind --k 2 --always z", Exit.USAGE, "'z'"),
        ("solve data.csv --target y --drop kind --k 2 --backend nope", Exit.MISSING, "nope"),
        ("solve data.csv --target y --drop kind --k 2 --lower 2 --upper 1", Exit.PROBLEM, ""),
        ("solve none.csv --target y --k 2", Exit.DATA, "none.csv: No such file"),
        ("solve . --target y --k 2", Exit.USAGE, "--format"),
        ("solve data.csv --target y --k 2 --report data.csv", Exit.USAGE, ".html"),
        ("solve data.csv --target y --k 2 --coefficients data.csv", Exit.OUTPUT, "exists"),
        ("solve data.csv --target y --k 2 --coefficients data.csv --overwrite", Exit.USAGE, ""),
        ("solve data.csv --target y --k 2 --report no/r.html", Exit.OUTPUT, "no folder no"),
        ("solve data.csv --target y --k 2 --report r.md --no-certificate", Exit.USAGE, "--report"),
        ("solve data.csv --target y --k 2 --report ./r.txt --coefficients r.csv --frobnicate",
         Exit.USAGE, "--frobnicate"),
        ("verify none.json --data data.csv", Exit.DATA, "none.json"),
        ("explain data.csv --target y", Exit.USAGE, "--k"),
        ("backends nope", Exit.MISSING, "nope"),
        ("demo --output nowhere", Exit.OUTPUT, "no folder nowhere"),
        ("frobnicate", Exit.USAGE, "frobnicate"),
    ],
)  # fmt: skip
def test_errors_are_one_line_with_a_code(
    data: Path, capsys: pytest.CaptureFixture, line: str, code: Exit, said: str
) -> None:
    before = data.read_bytes()
    found, message = refused(capsys, *line.split())
    assert found == code, message
    assert said in message
    assert data.read_bytes() == before
    assert sorted(p.name for p in Path().iterdir()) == ["data.csv"]


def test_a_bug_is_not_blamed_on_the_data(
    data: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("two\nlines")

    monkeypatch.setattr(sm.Problem, "solve", broken)
    line = f"solve {data} --target y --drop kind --k 2".split()
    code, message = refused(capsys, *line)
    assert code == Exit.INTERNAL
    assert "ZeroDivisionError: two lines" in message
    assert "--traceback" in message
    with pytest.raises(ZeroDivisionError):
        main([*line, "--traceback"])


def test_every_error_of_the_tree_has_a_code() -> None:
    assert code_of(KeyboardInterrupt()) == Exit.INTERRUPTED
    assert code_of(MemoryError()) == Exit.DATA
    assert code_of(sm.SeparableDataError("x")) == Exit.PROBLEM
    assert code_of(sm.ModelError("x")) == Exit.USAGE
    assert code_of(sm.MissingDependencyError("x")) == Exit.MISSING
    assert code_of(RuntimeError("x")) == Exit.INTERNAL
    assert one_line(FileNotFoundError(2, "No such file", "f")) == "f: No such file"
    assert one_line(KeyboardInterrupt()) == "interrupted"


# ---- verify --------------------------------------------------------------------------------------


@pytest.fixture
def proved(data: Path, capsys: pytest.CaptureFixture) -> Path:
    line = "solve data.csv --target y --drop kind --k 2 --always e --certificate c.json"
    assert main(line.split()) == 0
    capsys.readouterr()
    return Path("c.json")


def test_verify_declares_the_problem_again(proved: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["verify", str(proved), "--data", "data.csv"]) == 0
    shown = capsys.readouterr().out
    assert "--target=y --drop=kind --k=2 --always=e" in " ".join(shown.split())
    assert "verified" in shown
    assert main(["verify", str(proved), "--data", "data.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["holds"] is True


def test_verify_refutes(proved: Path, data: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["verify", str(proved), "--data", "data.csv", "--k", "3"]) == Exit.REFUTED
    assert "does NOT hold" in capsys.readouterr().out
    lines = data.read_text(encoding="utf-8").splitlines()
    data.write_text("\n".join(lines[:-1]), encoding="utf-8")
    assert main(["verify", str(proved), "--data", "data.csv", "--json"]) == Exit.REFUTED
    assert json.loads(capsys.readouterr().out)["holds"] is False


def test_verify_believes_no_edited_file(proved: Path, capsys: pytest.CaptureFixture) -> None:
    body = json.loads(proved.read_text(encoding="utf-8"))
    body["recipe"] = ["--report=stolen.html"]
    proved.write_text(json.dumps(body), encoding="utf-8")
    code, message = refused(capsys, "verify", proved, "--data", "data.csv")
    assert code == Exit.DATA
    assert "digest" in message
    from sparsemodel.certificates.files.json_document import digest

    body["digest"] = digest(body)
    proved.write_text(json.dumps(body), encoding="utf-8")
    code, message = refused(capsys, "verify", proved, "--data", "data.csv")
    assert code == Exit.DATA
    assert "recipe" in message
    assert not Path("stolen.html").exists()


def test_verify_of_a_certificate_made_in_python(data: Path, capsys: pytest.CaptureFixture) -> None:
    table = np.loadtxt(data, delimiter=",", skiprows=1, usecols=range(7))
    w = sm.Variable(P, name="w")
    loss = sm.squared_loss(table[:, :6], table[:, 6])
    problem = sm.Problem(sm.minimize(loss + sm.ridge(0.1)), sm.card(w) <= 2)
    problem.certify().save("c.json")
    code, message = refused(capsys, "verify", "c.json", "--data", "data.csv")
    assert code == Exit.USAGE
    assert "--target" in message
    line = "--target y --drop kind --k 2 --ridge 0.1 --plain-ridge --no-intercept"
    assert main(["verify", "c.json", "--data", "data.csv", *line.split()]) == 0


# ---- the other commands --------------------------------------------------------------------------


def test_explain_and_backends(data: Path, capsys: pytest.CaptureFixture) -> None:
    line = ["explain", "data.csv", "--target", "y", "--drop", "kind", "--k", "2"]
    assert main(line) == 0
    printed = capsys.readouterr().out
    assert "Plan" in printed
    assert "--full adds" in printed
    assert "problem." not in printed
    assert main([*line, "--full"]) == 0
    assert "Not chosen" in capsys.readouterr().out
    assert main([*line, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["stages"]
    assert main(["backends"]) == 0
    shown = capsys.readouterr().out
    assert all(info.name in shown for info in sm.available_backends())
    assert main(["backends", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == len(sm.available_backends())
    assert main(["backends", "nhtp"]) == 0
    assert "sm.backends.NHTP" in capsys.readouterr().out


def test_every_command_has_help(capsys: pytest.CaptureFixture) -> None:
    assert main(["--help"]) == 0
    overview = capsys.readouterr().out
    for name in (module.NAME for module in COMMANDS):
        assert name in overview
        assert main([name, "--help"]) == 0
        shown = capsys.readouterr().out
        assert "example" in shown, name
        assert max(map(len, shown.splitlines())) <= 100, name
    assert main([]) == Exit.USAGE
    assert "start here" in capsys.readouterr().err


def test_the_demonstration_writes_new_files_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("report.html").write_text("mine", encoding="utf-8")
    assert main(["demo", "--output", "."]) == 0
    shown = capsys.readouterr().out
    assert "Plan" in shown
    assert "gene_" in shown
    assert Path("report.html").read_text(encoding="utf-8") == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "certificate-2.json", "report-2.html", "report.html",
    ]  # fmt: skip


# ---- files ---------------------------------------------------------------------------------------


def test_files_are_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "f.txt"

    def interrupted() -> None:
        with written(path) as temporary:
            temporary.write_text("half", encoding="utf-8")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        interrupted()
    assert list(tmp_path.iterdir()) == []
    write_text(path, "one")
    with pytest.raises(OutputError, match="--overwrite"):
        write_text(path, "two")
    assert path.read_text(encoding="utf-8") == "one"
    write_text(path, "two", overwrite=True)
    assert path.read_text(encoding="utf-8") == "two"
    with pytest.raises(OutputError, match="is a folder"):
        write_text(tmp_path, "x")


def test_a_file_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "f.txt"

    def overtaken() -> None:
        with written(path) as temporary:
            temporary.write_text("mine", encoding="utf-8")
            path.write_text("theirs", encoding="utf-8")

    with pytest.raises(OutputError, match="exists already"):
        overtaken()
    assert [p.read_text(encoding="utf-8") for p in tmp_path.iterdir()] == ["theirs"]


def test_free_names_agree_on_a_number(tmp_path: Path) -> None:
    (tmp_path / "b-2.json").touch()
    (tmp_path / "a.html").touch()
    names = free_names(tmp_path, ("a.html", "b.json"))
    assert [n.name for n in names] == ["a-3.html", "b-3.json"]


# ---- as a program --------------------------------------------------------------------------------


def program(*line: str, **options: object) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "sparsemodel", *line]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)


def test_as_a_program_with_a_pipe(data: Path) -> None:
    line = ("solve", "-", "--target", "y", "--drop", "kind", "--k", "2", "--json")
    done = program(*line, input=data.read_text(encoding="utf-8"))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["support"] == ["a", "c"]
    assert done.stderr == "", "progress is for terminals"


def test_as_a_program_that_fails(data: Path) -> None:
    done = program("solve", "data.csv", "--target", "z", "--k", "2")
    assert done.returncode == Exit.USAGE
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1


def test_a_closed_pipe_is_no_error() -> None:
    command = f'set -o pipefail; "{sys.executable}" -m sparsemodel backends | true'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
