"""``sparsemodel explain``: what would be solved, by which backend, and why."""

from __future__ import annotations

import argparse

from sparsemodel.cli.exits import Exit, UsageError
from sparsemodel.cli.files import to_json
from sparsemodel.cli.model import declare
from sparsemodel.cli.options import add_data, add_model, read

NAME = "explain"
USAGE = "explain DATA --target COLUMN --k K [options]"
SUMMARY = "say what would be solved, by which backend, and why"
DESCRIPTION = """\
Read the data and print what the compiler sees in the problem, the backend it would take, and for
each of the others why not. Nothing is solved.
"""
EPILOG = """\
example:
  sparsemodel explain houses.csv --target price --k 8
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("data", metavar="DATA", help="the file of data; - is standard input (CSV)")
    add_data(parser)
    add_model(parser)
    parser.add_argument("--backend", metavar="NAME", help="what if this one were asked for?")
    parser.add_argument("--json", action="store_true", help="print the plan as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Explain the problem."""
    if arguments.k is None:
        raise UsageError("Say how many coefficients may be nonzero with --k.")
    declared = declare(read(arguments.data, arguments), arguments, arguments.k)
    plan = declared.problem.plan(arguments.backend)
    print(to_json(plan.to_dict()) if arguments.json else plan)
    return Exit.OK


__all__ = ["add", "run"]
