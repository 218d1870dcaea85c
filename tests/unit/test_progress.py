"""Progress of long calls: a line where somebody looks, nothing elsewhere."""

from __future__ import annotations

import io
import threading
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel import progress
from sparsemodel.certificates import verify
from sparsemodel.progress import Line, counted, doing, is_watched, report, showing, shown


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return not super().isatty()  # raises once it is closed, as a terminal does


def screen(written: str) -> str:
    """Return what is to be seen after carriage returns have done their work."""
    line = ""
    for part in written.split("\r"):
        line = part + line[len(part) :]
    return line.rstrip()


def looked_at(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Return what takes the place of standard error (in a fixture, pytest would take it back)."""
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(progress, "DELAY", 0.0)
    monkeypatch.setattr(progress, "INTERVAL", 0.001)
    return stream


def written(monkeypatch: pytest.MonkeyPatch, line: Line) -> str:
    """Return the next text that the line's thread writes."""
    done, inner = threading.Event(), line._write
    found: list[str] = []

    def watched(text: str) -> None:
        inner(text)
        if text and not found:
            found.append(text)
            done.set()

    monkeypatch.setattr(line, "_write", watched)
    assert done.wait(10.0)
    return found[0]


def test_the_line_rewrites_itself_and_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = looked_at(monkeypatch)
    with showing("Solving"):
        line = progress._LINE.get()
        assert line is not None
        report(lambda: "nhtp 7  objective 1.5")
        report(lambda: "3 of 8 groups of rows", "workers")
        progress.allow(60.0)
        text = written(monkeypatch, line)
        assert text == "Solving  nhtp 7  objective 1.5  3 of 8 groups of rows  0 s of at most 60"
        with showing("Certifying"):
            assert progress._LINE.get() is line, "a call within another one has no line"
        progress.clear()
    assert screen(terminal.getvalue()) == ""
    assert "\n" not in terminal.getvalue()
    assert not line._thread.is_alive()


def test_what_has_ended_is_said_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at(monkeypatch)
    assert list(counted([3, 4], "fold")) == [3, 4], "without a line it yields the items"
    with showing("Solving"):
        line = progress._LINE.get()
        assert line is not None
        for fold in counted("ab", "fold"):
            with doing("eigenvalues"):
                text = line.text()
            report(lambda: "size 3 of 3")
            if fold == "b":
                break
        assert text == "Solving  fold 2 of 2  size 3 of 3  eigenvalues  0 s"
        assert line.text() == "Solving  0 s", "what was a part of it has ended with it"


def test_it_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at(monkeypatch)
    monkeypatch.setenv("COLUMNS", "30")
    with showing("Solving"):
        line = progress._LINE.get()
        assert line is not None
        report(lambda: "x" * 100)
        assert len(written(monkeypatch, line)) < 30


def test_short_calls_files_and_a_switch_show_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    short = Terminal()
    monkeypatch.setattr("sys.stderr", short)
    with showing("Solving"):
        assert shown()
    assert short.getvalue() == ""
    monkeypatch.setattr(sm.config, "progress", False)
    with showing("Solving"):
        assert not shown()
    monkeypatch.setattr(sm.config, "progress", True)
    monkeypatch.setattr("sys.stderr", io.StringIO())
    with showing("Solving"):
        assert not shown()
    closed = Terminal()
    closed.close()
    assert not any(is_watched(stream) for stream in (closed, io.StringIO(), None))
    with pytest.raises(sm.ModelError, match="True or False, not 2"):
        sm.config.progress = 2  # type: ignore[assignment]


def test_a_terminal_that_is_closed_ends_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = looked_at(monkeypatch)
    with showing("Solving"):
        terminal.close()


def problem() -> sm.Problem:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 12))
    w = sm.Variable(12)
    goal = sm.minimize(sm.squared_loss(A @ w, rng.standard_normal(30)) + sm.ridge(w, 0.1))
    return sm.Problem(goal, sm.card(w) <= 3)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda p: p.solve("grahtp"), "Solving  grahtp 1  objective"),
        (lambda p: p.certify(), "Certifying  "),
        (lambda p: p.path(range(1, 6)), "Following the path  "),
        (lambda p: p.prove(), "Proving  "),
        (lambda p: p.path(range(3)).cross_validate(folds=2), "Cross-validating  fold 2 of 2"),
        (lambda p: p.path(range(3)).stability(resamples=2), "Drawing halves  half 2 of 2"),
        (lambda p: p.path(range(3), ridges=[0.1, 1.0]), "Following the path  ridge 2 of 2"),
        (lambda p: verify(p.prove(), p.form), "Verifying  1 of "),
    ],
)
def test_every_call_says_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, call: Any, said: str
) -> None:
    terminal = looked_at(monkeypatch)
    texts: list[str] = []
    inner = Line.note

    def noted(line: Line, step: Any, part: str) -> None:
        inner(line, step, part)
        texts.append(line.text())

    monkeypatch.setattr(Line, "note", noted)
    call(problem())
    assert any(text.startswith(said) and len(text) > len(said) + 4 for text in texts), texts[:5]
    assert screen(terminal.getvalue()) == ""


def test_a_log_stays_and_the_line_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = looked_at(monkeypatch)
    problem().solve("grahtp", verbose=True)
    *stays, last = [screen(line) for line in terminal.getvalue().split("\n")]
    assert stays[-1].startswith("  1. grahtp: objective")
    assert last == "", "the moving line is gone at the end"


def test_without_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", None)  # as under pythonw
    problem().solve("grahtp", verbose=True)
