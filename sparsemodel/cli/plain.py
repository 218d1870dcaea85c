"""Text from files made safe to print: no control characters, nothing endless, no formulas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from sparsemodel.markup import visible

LONGEST = 80
"""Characters of one name that are printed."""

_MOST = 2_000
"""Characters of one word of a message that are printed; lists of names have blanks."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


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


def encodable(stream: TextIO | None) -> None:
    """Let a stream write every character: what its encoding lacks comes as an escape."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def distinct(names: Sequence[str], longest: int = 200) -> tuple[str, ...]:
    r"""Return the names that a model gives to columns: visible, not endless, still distinct.

    >>> distinct(["a", "b\x07", "b\x07"])
    ('a', 'b\\x07', 'b\\x07 (column 3)')
    """
    out: list[str] = []
    taken: set[str] = set()
    for number, raw in enumerate(names, start=1):
        shown = name(raw, longest)
        if shown in taken:
            shown = f"{shown} (column {number})"
        taken.add(shown)
        out.append(shown)
    return tuple(out)


__all__ = ["LONGEST", "cell", "distinct", "encodable", "message", "name"]
