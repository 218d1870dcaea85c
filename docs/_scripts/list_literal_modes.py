"""List the literal modes: ``python docs/_scripts/list_literal_modes.py`` writes their table."""

from __future__ import annotations

import re
from pathlib import Path

from sparsemodel.registry import usable_backends

PAGE = Path(__file__).parents[1] / "explanation" / "papers" / "literal_modes.txt"

_HEAD = """\
| backend | as printed in | options | what the mode is |
| --- | --- | --- | --- |
"""


def table() -> str:
    """Return the table: a row for every backend that has a literal mode, from its docstring."""
    rows = {}
    for _, cls in usable_backends():
        if cls.published is None or not cls.__module__.startswith("sparsemodel_backends"):
            continue
        options = [f"{name}={_short(value)}" for name, value in cls.published.items()]
        given = f"`{', '.join(options)}`" if cls.published else ""
        words = _markdown(_paragraph(cls.__doc__ or ""))
        rows[cls.__name__] = f"| `{cls.__name__}` | {cls.reference} | {given} | {words} |\n"
    return _HEAD + "".join(rows[name] for name in sorted(rows))


def _short(value: object) -> str:
    return "2**62" if value == 2**62 else repr(value)


def _paragraph(doc: str) -> str:
    """Return the sentences on the literal mode, to the end of their paragraph."""
    found = re.search(r"Literal mode.*?(?=\n\s*\n|\Z)", doc, re.DOTALL)
    return "" if found is None else " ".join(found.group().split())


def _bars(formula: str) -> str:
    """Return a formula without the character that ends a cell."""
    formula = re.sub(r"\\\|([^|]*)\\\|", r"\\lVert \1 \\rVert", formula)
    return re.sub(r"\|([^|]*)\|", r"\\lvert \1 \\rvert", formula)


def _markdown(text: str) -> str:
    text = re.sub(r":math:`([^`]*)`", lambda m: f"${_bars(m[1])}$", text)
    return text.replace("``", "`")


if __name__ == "__main__":
    PAGE.write_text(table(), encoding="utf-8", newline="\n")
