"""Progress of long runs: one line on standard error that rewrites itself.

It is shown on terminals and in notebooks, and is silent elsewhere: a log file is no place for a
line that is overwritten ten times a second.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO, final

import numpy as np

from sparsemodel.interfaces import IntArray, Iteration

INTERVAL = 0.1
"""Seconds between two changes of the line."""

DELAY = 0.3
"""Seconds a run may take without anything being shown."""


@final
class ProgressLine:
    """Shows the iterations of a run; call it with each one, and :meth:`close` it at the end.

    Parameters
    ----------
    stream
        Where to write.
    lower_bound
        A valid bound on the optimum, for the gap; None leaves the gap out.
    delay
        Seconds before the first line (:data:`DELAY`); runs that are over by then show nothing.
    """

    def __init__(
        self, stream: TextIO, *, lower_bound: float | None = None, delay: float | None = None
    ) -> None:
        self._stream = stream
        self._bound = lower_bound
        self._next = time.perf_counter() + (DELAY if delay is None else delay)
        self._support: IntArray | None = None
        self._backend = ""
        self._changes = 0
        self._shown = 0

    def __call__(self, event: Iteration) -> None:
        """Take note of an iteration, and show it if it is time."""
        if event.backend != self._backend:  # the next stage of the plan
            self._backend, self._support = event.backend, None
        if self._support is not None:
            new = np.setdiff1d(event.support, self._support, assume_unique=True)
            self._changes += int(new.size)
        self._support = event.support
        now = time.perf_counter()
        if now < self._next:
            return
        self._next = now + INTERVAL
        self._write(describe(event, changes=self._changes, lower_bound=self._bound))
        self._changes = 0

    def close(self) -> None:
        """Take the line away, so that what comes next starts on a clean one."""
        if self._shown:
            self._stream.write("\r" + " " * self._shown + "\r")
            self._stream.flush()
            self._shown = 0

    def _write(self, text: str) -> None:
        width = max(20, shutil.get_terminal_size().columns - 1)
        text = text[:width]
        self._stream.write("\r" + text + " " * (self._shown - len(text)))
        self._stream.flush()
        self._shown = len(text)


def describe(event: Iteration, *, changes: int, lower_bound: float | None = None) -> str:
    """Return an iteration in a line.

    ``changes`` counts the coordinates that entered the support since the last line.
    """
    parts = [f"{event.backend} {event.index}", f"objective {event.best:.6g}"]
    if lower_bound is not None and np.isfinite(lower_bound):
        parts.append(f"gap {max(event.best - lower_bound, 0.0):.2g}")
    parts.append(f"support {event.support.size}" + (f" ({changes} new)" if changes else ""))
    parts.append(f"{event.elapsed:.1f} s")
    return "  ".join(parts)


def is_watched(stream: TextIO) -> bool:
    """Return whether somebody looks at a stream: a terminal, or the output of a notebook."""
    try:
        terminal = stream.isatty()
    except (AttributeError, ValueError):  # replaced by something else, or closed
        return False
    return terminal or type(stream).__module__.partition(".")[0] == "ipykernel"


@contextmanager
def progress(
    verbose: bool, *, lower_bound: float | None = None, stream: TextIO | None = None
) -> Iterator[ProgressLine | None]:
    """Give a :class:`ProgressLine` while somebody wants and can see it, and None otherwise.

    Parameters
    ----------
    verbose
        Whether progress is wanted.
    lower_bound
        See :class:`ProgressLine`.
    stream
        None is standard error, as it is at this moment.
    """
    stream = sys.stderr if stream is None else stream
    if not verbose or not is_watched(stream):
        yield None
        return
    line = ProgressLine(stream, lower_bound=lower_bound)
    try:
        yield line
    finally:
        line.close()


__all__ = ["DELAY", "INTERVAL", "ProgressLine", "describe", "is_watched", "progress"]
