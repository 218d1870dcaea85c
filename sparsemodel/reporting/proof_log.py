"""The log of a proof: a line of a table now and then, as branch-and-bound solvers print it."""

from __future__ import annotations

import math
import time
from typing import TextIO, final

from sparsemodel.progress import clear

_FIRST, _SHARE = 0.5, 0.05
"""Seconds between two lines, at first and as a share of the time that has passed."""

_HEAD = ("time", "nodes", "open", "best objective", "best bound", "gap")
_WIDTHS = (9, 9, 9, 18, 18, 13)


@final
class ProofLog:
    """Writes where a proof stands; call it at every node, and :meth:`close` it at the end.

    Parameters
    ----------
    stream
        Where to write: a terminal, a file, a notebook.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._began = time.perf_counter()
        self._next, self._best = 0.0, math.inf
        self._last: tuple[float, float, int, int] | None = None
        self._shown, self._headed = True, False

    def __call__(self, value: float, bound: float, nodes: int, left: int) -> None:
        """Take note of the best objective, the bound, the nodes and the open ones."""
        seconds = time.perf_counter() - self._began
        self._last, self._shown = (value, bound, nodes, left), False
        if value < self._best or seconds >= self._next:
            self._best = min(self._best, value)
            self._next = seconds + max(_FIRST, _SHARE * seconds)
            self._write()

    def close(self) -> None:
        """Write the last line, unless it has been."""
        self._write()

    def _write(self) -> None:
        if self._shown or self._last is None:
            return
        if not self._headed:
            self._line(_HEAD)
            self._headed = True
        value, bound, nodes, left = self._last
        seconds = time.perf_counter() - self._began
        self._line((f"{seconds:.1f} s", str(nodes), str(left), *_numbers(value, bound)))
        self._shown = True

    def _line(self, cells: tuple[str, ...]) -> None:
        row = "".join(f"{cell:>{width}}" for cell, width in zip(cells, _WIDTHS, strict=True))
        clear()
        self._stream.write(row + "\n")
        self._stream.flush()


def _numbers(value: float, bound: float) -> tuple[str, str, str]:
    """Return the objective, the bound and the gap in words."""
    bound = min(bound, value)  # beyond the best point there is nothing to bound
    if not math.isfinite(bound):
        return f"{value:.9g}", "none", "-"
    size = max(abs(value), abs(bound))
    gap = 100.0 * (value - bound) / size if size > 0.0 else 0.0
    return f"{value:.9g}", f"{bound:.9g}", f"{gap:.3g} %"
