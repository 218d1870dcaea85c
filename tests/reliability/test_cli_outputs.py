"""Where the command line writes: only to the name that was typed, and never over it unasked."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from sparsemodel.cli import main

ON_POSIX = pytest.mark.skipif(sys.platform == "win32", reason="links and rights as POSIX has them")


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Be in a folder ``inside`` that has data, one level below a folder of its own."""
    folder = tmp_path / "inside"
    folder.mkdir()
    rows = np.random.default_rng(0).standard_normal((12, 3))
    np.savetxt(folder / "data.csv", rows, delimiter=",", header="a,b,y", comments="")
    monkeypatch.chdir(folder)
    return folder


def save(name: str, *more: str) -> int:
    arguments = ["solve", "data.csv", "--target", "y", "--k", "1", "--certificate", name]
    return main([*arguments, *more])


def refused(capsys: pytest.CaptureFixture[str], words: str, name: str, *more: str) -> int:
    code = save(name, *more)
    lines = capsys.readouterr().err.strip().split("\n")
    assert len(lines) == 1, lines
    assert words in lines[0]
    return code


def test_absolute_names_and_names_above_are_written_once(inside: Path, capsys):
    for name in (str(inside / "absolute.json"), "../above.json"):
        assert save(name) == 0
        content = Path(name).read_text()
        capsys.readouterr()
        assert refused(capsys, "exists already", name) == 6
        assert Path(name).read_text() == content
        Path(name).write_text("old")
        assert save(name, "--overwrite") == 0
        assert Path(name).read_text().startswith("{")
        capsys.readouterr()
    assert sorted(p.name for p in inside.parent.iterdir()) == ["above.json", "inside"]
    assert sorted(p.name for p in inside.iterdir()) == ["absolute.json", "data.csv"]


def leads(kind: str, link: Path, target: Path) -> None:
    if kind == "hard":
        os.link(target, link)
    else:
        link.symlink_to({"to nothing": "none/x.json", "loop": link.name}.get(kind, target))


@ON_POSIX
@pytest.mark.parametrize("kind", ["symbolic", "hard", "to nothing", "loop"])
def test_a_link_is_in_the_way_and_is_replaced_when_asked(kind, inside: Path, capsys):
    target = inside.parent / "mine.json"
    target.write_text("mine")
    link = Path("link.json")
    leads(kind, link, target)
    assert refused(capsys, "link.json exists already", "link.json") == 6
    assert target.read_text() == "mine"
    assert save("link.json", "--overwrite") == 0
    assert target.read_text() == "mine"
    assert link.is_file()
    assert not link.is_symlink()
    assert link.stat().st_nlink == 1
    assert link.read_text().startswith("{")


@ON_POSIX
def test_a_link_to_a_folder(inside: Path, capsys):
    Path("sub").mkdir()
    Path("way").symlink_to("sub")
    Path("way.json").symlink_to("sub")
    assert save("way/c.json") == 0
    assert Path("sub/c.json").is_file()
    capsys.readouterr()
    assert refused(capsys, "is a folder", "way.json", "--overwrite") == 6


@pytest.mark.parametrize(
    ("name", "words", "code"),
    [
        ("no/such/c.json", "There is no folder", 6),
        ("data.csv/c.json", "There is no folder", 6),
        ("x" * 300 + ".json", "cannot be written", 6),
        ("c\0.json", "null character", 2),
        ("", "is empty", 2),
    ],
)
def test_what_cannot_be_written_is_told_before_the_work(
    name, words, code, inside: Path, capsys, monkeypatch
):
    monkeypatch.setattr("sparsemodel.cli.options.read_table", None)  # never called
    assert refused(capsys, words, name) == code
    assert [p.name for p in inside.iterdir()] == ["data.csv"]


@ON_POSIX
def test_a_folder_one_may_not_write_to_or_look_into(inside: Path, capsys, monkeypatch):
    monkeypatch.setattr("sparsemodel.cli.options.read_table", None)
    for name, rights in (("closed", 0o555), ("hidden", 0o000)):
        Path(name).mkdir()
        Path(name).chmod(rights)
    inside.chmod(0o755)
    root = os.geteuid() == 0
    if root:  # to whom everything is allowed: as nobody, for as long as this takes
        os.seteuid(65534)
    try:
        assert refused(capsys, "cannot be written: files may not be made in", "closed/c.json") == 6
        assert refused(capsys, "hidden/c.json cannot be written", "hidden/c.json") == 6
    finally:
        if root:
            os.seteuid(0)


@ON_POSIX
def test_the_data_are_never_replaced(inside: Path, capsys):
    Path("link.csv").symlink_to("data.csv")
    before = Path("data.csv").read_bytes()
    solve = ["solve", "data.csv", "--target", "y", "--k", "1", "--coefficients"]
    path = ["path", "data.csv", "--target", "y", "--ks", "1:2", "--table"]
    graph = ["precision", "data.csv", "--edges", "1", "--edge-list"]
    for command in (solve, path, graph):
        for name in ("data.csv", "./data.csv", "../inside/data.csv", "link.csv"):
            assert main([*command, name, "--overwrite"]) == 2
            assert "would replace the data" in capsys.readouterr().err
    assert Path("data.csv").read_bytes() == before
