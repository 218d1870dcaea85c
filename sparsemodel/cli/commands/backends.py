"""``sparsemodel backends``: the solvers that were found."""

from __future__ import annotations

import argparse
import textwrap

from sparsemodel.cli.exits import Exit
from sparsemodel.cli.files import to_json
from sparsemodel.cli.text import table

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


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="tell all about this one")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """List the backends, or describe one."""
    from sparsemodel.registry import available_backends, backend_class

    if arguments.name is not None:
        backend = backend_class(arguments.name)
        about = {
            "name": arguments.name,
            "class": f"sm.backends.{backend.__name__}",
            "summary": (backend.__doc__ or "").strip().partition("\n")[0],
            "reference": backend.reference,
            "guarantee": backend.guarantee,
            "options": {name: repr(value) for name, value in backend().options().items()},
        }
        print(to_json(about) if arguments.json else _described(about))
        return Exit.OK
    found = available_backends()
    if arguments.json:
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


def _described(about: dict[str, object]) -> str:
    lines = []
    for key, value in about.items():
        if key == "options" and isinstance(value, dict):
            shown = [f"{name} = {default}" for name, default in value.items()]
            lines.append(f"{key:<10} {', '.join(shown) or 'none'}")
        elif value:
            text = textwrap.fill(str(value), 96, subsequent_indent=" " * 11)
            lines.append(f"{key:<10} {text}")
    return "\n".join(lines)


__all__ = ["add", "run"]
