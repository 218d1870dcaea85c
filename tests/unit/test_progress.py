"""Progress of long runs."""

from __future__ import annotations

import io

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.interfaces import Iteration
from sparsemodel.reporting.progress import ProgressLine, describe, is_watched, progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def screen(written: str) -> str:
    """Return what is to be seen after carriage returns have done their work."""
    line = ""
    for part in written.split("\r"):
        line = part + line[len(part) :]
    return line.rstrip()


def iteration(index: int, support: list[int], backend: str = "nhtp") -> Iteration:
    return Iteration(backend, index, 2.0, 1.5, np.array(support), 0.1, 12.34, np.ones(len(support)))


def test_a_line_says_what_matters() -> None:
    text = describe(iteration(7, [1, 2, 5]), changes=2, lower_bound=1.25)
    assert text == "nhtp 7  objective 1.5  gap 0.25  support 3 (2 new)  12.3 s"
    assert "gap" not in describe(iteration(7, [1]), changes=0, lower_bound=-np.inf)


def test_the_line_rewrites_itself_and_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparsemodel.reporting.progress.INTERVAL", 0.0)
    stream = Terminal()
    line = ProgressLine(stream, delay=0.0)
    line(iteration(100, [1, 2]))
    assert screen(stream.getvalue()).startswith("nhtp 100")
    line(iteration(1, [1, 3], backend="iht"))
    assert "new" not in screen(stream.getvalue()), "another stage starts afresh"
    line(iteration(2, [1, 4], backend="iht"))
    assert screen(stream.getvalue()) == "iht 2  objective 1.5  support 2 (1 new)  12.3 s"
    line.close()
    assert screen(stream.getvalue()) == ""
    assert "\n" not in stream.getvalue()


def test_changes_between_two_lines_add_up() -> None:
    stream = Terminal()
    line = ProgressLine(stream, delay=0.0)
    line._next = np.inf
    for support in ([1, 2], [1, 3], [4, 5]):
        line(iteration(1, support))
    line._next = 0.0
    line(iteration(2, [4, 5]))
    assert "(3 new)" in stream.getvalue()


def test_it_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    stream = Terminal()
    ProgressLine(stream, delay=0.0)(iteration(1, list(range(50))))
    assert len(stream.getvalue().strip("\r")) < 30


def test_short_runs_and_files_show_nothing() -> None:
    stream = Terminal()
    with progress(True, stream=stream) as line:
        assert line is not None
        line(iteration(1, [1]))
    assert stream.getvalue() == ""
    with progress(True, stream=io.StringIO()) as line:
        assert line is None
    with progress(False, stream=stream) as line:
        assert line is None
    closed = Terminal()
    closed.close()
    assert not is_watched(io.StringIO())
    assert not is_watched(None)  # type: ignore[arg-type]  # as under pythonw


def test_solving_verbosely_shows_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparsemodel.reporting.progress.DELAY", -1.0)
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 12))
    w = sm.Variable(12)
    problem = sm.Problem(
        sm.minimize(sm.squared_loss(A @ w, rng.standard_normal(30))), sm.card(w) <= 3
    )
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    problem.solve("grahtp", verbose=True)
    assert "grahtp 1  objective" in stream.getvalue()
    last = stream.getvalue().splitlines()[-1]
    assert screen(last).startswith("  1. grahtp: objective"), "the moving line is gone at the end"
    monkeypatch.setattr("sys.stderr", None)  # as under pythonw
    problem.solve("grahtp", verbose=True)
