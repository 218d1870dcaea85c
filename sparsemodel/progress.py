"""What a long call is doing and how far it is: one line, rewritten on a terminal or in a notebook.

Long loops call :func:`report`, which costs next to nothing where no line is shown.
The line is shown on terminals and in notebooks, from :data:`DELAY` on, and is gone when the call
returns; elsewhere nothing is written: a log file is no place for a line that is overwritten.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TextIO, TypeVar, final

from sparsemodel.threads import config

INTERVAL = 0.2
"""Seconds between two changes of the line."""

DELAY = 2.0
"""Seconds a call may take without anything being shown."""

T = TypeVar("T")


@final
class Line:
    """The line of one call; a thread rewrites it, so that a long step is seen to go on."""

    def __init__(self, stream: TextIO, what: str) -> None:
        self._stream, self._what = stream, what
        self._limit: float | None = None
        self._began = time.perf_counter()
        self._steps: dict[str, Callable[[], str]] = {}
        self._shown = 0
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._rewrite, name="progress", daemon=True)
        self._thread.start()

    def note(self, step: Callable[[], str], part: str) -> None:
        """Keep what says how far a part is; it is called when the line is written next."""
        self._steps[part] = step

    def forget(self, part: str) -> None:
        """Say no more of a part, which has ended, and of what was a part of it."""
        parts = list(self._steps)
        for ended in parts[parts.index(part) :] if part in parts else ():
            self._steps.pop(ended, None)

    def allow(self, seconds: float) -> None:
        """Take note of the time limit of the call."""
        self._limit = seconds

    def text(self) -> str:
        """Return what the line says now."""
        seconds = f"{time.perf_counter() - self._began:.0f} s"
        if self._limit is not None:
            seconds += f" of at most {self._limit:g}"
        steps = [step() for step in tuple(self._steps.values())]
        return "  ".join((self._what, *steps, seconds))

    def clear(self) -> None:
        """Take the line away, so that what comes next starts on a clean one."""
        with self._lock:
            self._write("")

    def close(self) -> None:
        """Take the line away for good."""
        self._ended.set()
        self._thread.join()
        self.clear()

    def _rewrite(self) -> None:
        wait = DELAY
        while not self._ended.wait(wait):
            wait = INTERVAL
            with self._lock:
                self._write(self.text()[: max(20, shutil.get_terminal_size().columns - 1)])

    def _write(self, text: str) -> None:
        if not text and not self._shown:
            return
        try:
            self._stream.write("\r" + text + " " * (self._shown - len(text)))
            self._stream.write("" if text else "\r")
            self._stream.flush()
        except (OSError, ValueError):  # closed while the call ran
            return
        self._shown = len(text)


_LINE: ContextVar[Line | None] = ContextVar("line", default=None)


def is_watched(stream: TextIO | None) -> bool:
    """Return whether a stream is watched: a terminal, or the output of a notebook."""
    try:
        terminal = stream is not None and stream.isatty()
    except (AttributeError, ValueError):  # replaced by something else, or closed
        return False
    return terminal or type(stream).__module__.partition(".")[0] == "ipykernel"


@contextmanager
def showing(what: str) -> Iterator[None]:
    """Show a line while a call runs, where the output is watched and ``sm.config.progress`` is on.

    A call within another one has no line of its own.
    """
    stream = sys.stderr
    if _LINE.get() is not None or not config.progress or not is_watched(stream):
        yield
        return
    line = Line(stream, what)
    token = _LINE.set(line)
    try:
        yield
    finally:
        _LINE.reset(token)
        line.close()


def shown() -> bool:
    """Return whether a line is shown, or will be if the call takes long."""
    return _LINE.get() is not None


def report(step: Callable[[], str], part: str = "") -> None:
    """Report how far the call is: ``step`` returns a few words, and is called only to show them.

    It replaces what was said before of the same ``part`` of the work.
    """
    line = _LINE.get()
    if line is not None:
        line.note(step, part)


def allow(seconds: float) -> None:
    """Set how long the call may take, for the line that is shown."""
    line = _LINE.get()
    if line is not None:
        line.allow(seconds)


def clear() -> None:
    """Take the line away before something is written that stays; it comes again."""
    line = _LINE.get()
    if line is not None:
        line.clear()


def counted(items: Collection[T], what: str) -> Iterator[T]:
    """Yield the items, and report which one of how many is looked at: "fold 2 of 5"."""
    line = _LINE.get()
    if line is None:
        yield from items
        return
    number = 0

    def step() -> str:
        return f"{what} {number} of {len(items)}"

    line.note(step, what)
    try:
        for item in items:
            number += 1
            line.note(step, what)
            yield item
    finally:
        line.forget(what)


@contextmanager
def doing(what: str) -> Iterator[None]:
    """Report what is being done, until it is done: one step that takes long by itself."""
    line = _LINE.get()
    if line is not None:
        line.note(lambda: what, "doing")
    try:
        yield
    finally:
        if line is not None:
            line.forget("doing")
