"""Run the code of a page and compare, or write, what the page says that it prints.

A ``text`` block that directly follows a ``python`` or ``console`` block is its output. Of a
console block the lines with ``$ sparsemodel`` are run, in this process. Run this file as a script
to write the outputs of pages, ``python docs/_scripts/page_outputs.py README.md``; without names it
writes all of them.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from sybil import Example, Sybil
from sybil.parsers.myst import CodeBlockParser, PythonCodeBlockParser, SkipParser

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = "88"
"""Width of the terminal that pages show."""

_OUTPUT = re.compile(r"\s*^```text\n(.*?)^```$", re.M | re.S)
_OF_THE_RUN = re.compile(
    r"[\d.e+-]+ (?:s|ms|iterations|passes|nodes|regions)\b|/tmp/\S+|\d{4}-\d\d-\d\d[ \d:]*"
)
_TIME = re.compile(r"(?<![\w.])[\d.]+(?:e[+-]?\d+)? s\b")
_WAY = re.compile(
    r"^  (?:run  |lower bound .*problem\.(?:certify|prove)\(\)).*\n(?: {10,}.*\n)*", re.M
)
"""What a run proved on its way, which pages say in other words."""
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)")


class Shown(NamedTuple):
    """An output on a page: where it stands, what it says, and what was printed."""

    start: int
    end: int
    said: str
    printed: str


def outputs(page: Path) -> Iterator[Shown]:
    """Run a page as one session from top to bottom, in the current folder; yield its outputs."""
    parsers = [PythonCodeBlockParser(), CodeBlockParser("console", _commands), SkipParser()]
    document = Sybil(parsers=parsers, path=os.fspath(ROOT)).parse(page)
    session = ModuleType("session")  # a module, so that classes defined on the page can be pickled
    sys.modules["session"] = session
    document.namespace = vars(session)
    for example in document.examples():
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            example.evaluate()
        found = _OUTPUT.match(document.text, example.end)
        if found is not None:
            text = "\n".join(line.rstrip() for line in printed.getvalue().splitlines()) + "\n"
            yield Shown(found.start(1), found.end(1), found[1], text)


def differ(said: str, printed: str) -> str:
    """Return how two outputs differ; empty where they agree.

    Times, dates, counts of iterations, names of temporary files, and what a solve proved on its way
    are those of a run. Other numbers agree to three digits, and what is below 1e-8 is rounding.
    """
    one, two = (_NUMBER.split(_OF_THE_RUN.sub("#", _WAY.sub("", text))) for text in (said, printed))
    words = [" ".join(w.split()) for w in one[::2]], [" ".join(w.split()) for w in two[::2]]
    for before, after in zip(*words, strict=False):
        if before != after:
            return f"the page says {before!r}, and printed is {after!r}"
    if len(one) != len(two):
        return f"{len(one) // 2} numbers on the page, and {len(two) // 2} printed"
    for first, second in zip(map(float, one[1::2]), map(float, two[1::2]), strict=True):
        if not math.isclose(first, second, rel_tol=2e-3, abs_tol=1e-8):
            return f"the page says {first}, and printed is {second}"
    return ""


def _commands(example: Example) -> None:
    """Run the commands of a console block whose output is shown."""
    if _OUTPUT.match(example.document.text, example.end) is None:
        return
    from sparsemodel.cli import main

    for line in example.parsed.splitlines():
        if line.startswith("$ sparsemodel "):
            status = main(shlex.split(line)[2:])
            if status:
                raise AssertionError(f"{line} ended with {status}")


def write(page: Path) -> None:
    """Write what the code of a page prints into the page, times as dots."""
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for shown in reversed(list(outputs(page))):
            printed = _TIME.sub("... s", shown.printed)  # of this run on this machine
            text = text[: shown.start] + printed + text[shown.end :]
    page.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    os.environ["COLUMNS"] = COLUMNS
    every = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for name in map(Path, sys.argv[1:]) if sys.argv[1:] else every:
        if "```text" in name.read_text(encoding="utf-8"):
            write(name.resolve())
