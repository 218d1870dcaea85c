"""Text for people: headings, wrapped sentences, tables."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Sequence

_WIDTH = 96


def heading(text: str) -> None:
    """Print a heading, in bold where the output is a terminal."""
    print("\n" + (f"\x1b[1m{text}\x1b[0m" if _styled() else text))


def show(text: str, *, indent: str = "  ") -> None:
    """Print sentences, wrapped."""
    print(textwrap.fill(text, _WIDTH, initial_indent=indent, subsequent_indent=indent))


def block(text: str, *, until: str | None = None, indent: str = "  ") -> None:
    """Print lines as they are, long ones wrapped under their own beginning.

    ``until`` leaves out the line that begins with it, and everything after.
    """
    kept = []
    for line in text.splitlines():
        if until is not None and line.lstrip().startswith(until):
            break
        kept.append(line)
    for line in "\n".join(kept).strip("\n").splitlines():
        own = " " * (len(line) - len(line.lstrip()))
        filled = textwrap.fill(
            line.strip(), _WIDTH, initial_indent=indent + own, subsequent_indent=indent + own + "  "
        )
        # Filling would close up the columns of a table; short lines stay as they are.
        print((indent + line).rstrip() if len(indent + line) <= _WIDTH else filled)


def table(rows: Sequence[Sequence[str]], *, indent: str = "") -> str:
    """Return rows of cells as columns; the last column is not padded."""
    if not rows:
        return ""
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
    widths[-1] = 0
    lines = (
        indent + "  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
    return "\n".join(lines)


def _styled() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


__all__ = ["block", "heading", "show", "table"]
