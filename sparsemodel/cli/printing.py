"""Text for people: made safe to print, wrapped, in columns."""

from __future__ import annotations

import csv
import io
import os
import shutil
import sys
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

from sparsemodel.documents.escaping import visible

LONGEST = 80
"""Characters of one name that are printed."""

_MOST = 2_000
"""Characters of one word of a message that are printed; lists of names have blanks."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@contextmanager
def noted() -> Iterator[list[str]]:
    """Collect what is warned of inside, to be printed as notes."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield notes
    notes.extend(str(warning.message) for warning in caught)


def name(text: str, longest: int = LONGEST) -> str:
    """Return a name as it is printed: visible, and shortened in the middle where it is long.

    >>> name("x" * 100_000, 20)
    'xxxxxxxx...xxxxxxxxx'
    """
    if len(text) > longest:
        head = (longest - 3) // 2
        text = f"{text[:head]}...{text[head + 3 - longest :]}"
    return visible(text)


def message(text: str) -> str:
    """Return a message on one line: visible, and without endless words or an endless whole."""
    words = " ".join(name(word, 200) for word in text[: 50 * _MOST].split())
    return words if len(words) <= _MOST else f"{words[: _MOST - 4]} ..."


def cell(text: str) -> str:
    """Return a name or a text for a CSV file that spreadsheets will not take for a formula.

    What begins like one is written after an apostrophe, as spreadsheets do themselves.
    """
    return f"'{text}" if text.startswith(_FORMULA) else text


def as_csv(rows: Iterable[Iterable[Any]]) -> str:
    """Return rows of cells as the text of a CSV file."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def encodable(stream: TextIO | None) -> None:
    """Make a stream accept every character: those its encoding lacks are written as escapes."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def distinct(names: Sequence[str]) -> tuple[str, ...]:
    r"""Return the names that a model gives to columns: visible, not endless, still distinct.

    >>> distinct(["a", "b\x07", "b\x07"])
    ('a', 'b\\x07', 'b\\x07 (column 3)')
    """
    out: list[str] = []
    taken: set[str] = set()
    for number, raw in enumerate(names, start=1):
        shown = name(raw, 200)
        if shown in taken:
            shown = f"{shown} (column {number})"
        taken.add(shown)
        out.append(shown)
    return tuple(out)


def heading(text: str) -> None:
    """Print a heading, in bold where the output is a terminal."""
    print("\n" + (f"\x1b[1m{text}\x1b[0m" if _styled() else text))


def show(text: str, *, indent: str = "  ") -> None:
    """Print sentences, wrapped."""
    width = min(100, shutil.get_terminal_size((100, 24)).columns)
    print(textwrap.fill(text, width, initial_indent=indent, subsequent_indent=indent))


def table(rows: Sequence[Sequence[str]], *, indent: str = "") -> str:
    """Return rows of cells as columns; the last column is not padded."""
    if not rows:
        return ""
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
    widths[-1] = 0
    lines = (
        indent + "  ".join(f"{shown:<{w}}" for shown, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
    return "\n".join(lines)


def _styled() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ
