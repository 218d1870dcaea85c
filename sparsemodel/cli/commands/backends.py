"""``sparsemodel backends``: the solvers that were found."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from sparsemodel.cli.declaring import flag, positional
from sparsemodel.cli.exits import Exit
from sparsemodel.cli.files import to_json
from sparsemodel.cli.printing import table
from sparsemodel.registry import available_backends, backend_class

NAME = "backends"
USAGE = "backends [NAME] [--json]"
SUMMARY = "list the solvers that were found, third parties' included"
DESCRIPTION = """\
List every backend that is installed, with the distribution it comes from. With a NAME, print its
paper, its guarantee and its options.
"""
EPILOG = """\
examples:
  sparsemodel backends
  sparsemodel backends nhtp
"""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What to list."""

    name: str | None = positional("NAME", "tell all about this one", optional=True)
    json: bool = flag("print JSON")


def run(options: Options) -> int:
    """List the backends, or describe one."""
    if options.name is not None:
        backend = backend_class(options.name)
        about = {
            "name": options.name,
            "class": f"sm.backends.{backend.__name__}",
            "summary": (backend.__doc__ or "").strip().partition("\n")[0],
            "reference": backend.reference,
            "guarantee": backend.guarantee,
            "options": {name: repr(value) for name, value in backend().options().items()},
        }
        print(to_json(about) if options.json else _described(about))
        return Exit.OK
    found = available_backends()
    if options.json:
        print(
            to_json(
                [
                    {"name": b.name, "distribution": b.distribution, "problem": b.problem}
                    for b in found
                ]
            )
        )
        return Exit.OK
    rows = [("backend", "from", "paper, or what is wrong")]
    for info in found:
        note = info.problem or backend_class(info.name).reference
        rows.append((info.name, info.distribution, textwrap.shorten(note, 90, placeholder=" ...")))
    print(table(rows))
    return Exit.OK


def _described(about: Mapping[str, object]) -> str:
    lines = []
    for key, value in about.items():
        if key == "options" and isinstance(value, dict):
            shown = [f"{name} = {default}" for name, default in value.items()]
            lines.append(f"{key:<10} {', '.join(shown) or 'none'}")
        elif value:
            text = textwrap.fill(str(value), 96, subsequent_indent=" " * 11)
            lines.append(f"{key:<10} {text}")
    return "\n".join(lines)
