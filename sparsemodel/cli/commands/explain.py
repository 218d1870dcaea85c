"""``sparsemodel explain``: what would be solved, by which backend, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from sparsemodel.cli.declaring import flag, option, part, positional
from sparsemodel.cli.exits import Exit
from sparsemodel.cli.files import to_json
from sparsemodel.cli.model import declare
from sparsemodel.cli.options import DATA, RegressionOptions
from sparsemodel.documents.text import as_text

_MORE = (
    "--full adds the reasons, all facts, reductions and theorems; `sparsemodel solve` bounds how "
    "far the result is from the best."
)

NAME = "explain"
USAGE = "explain DATA --target COLUMN --k K [options]"
SUMMARY = "say what would be solved, by which backend, and why"
DESCRIPTION = """\
Read the data and print which backend would run, why, and what it costs. Nothing is solved.
"""
EPILOG = """\
examples:
  sparsemodel explain houses.csv --target price --k 8
  sparsemodel explain houses.csv --target price --k 8 --full
"""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Which problem, and which backend."""

    data: str = positional("DATA", DATA)
    problem: RegressionOptions = part()
    backend: str | None = option("what if this one were asked for?", metavar="NAME")
    full: bool = flag("add all facts, the theorems, and why not the other backends")
    json: bool = flag("print the plan as JSON")


def run(options: Options) -> int:
    """Explain the problem."""
    problem = options.problem
    k = problem.limit()
    declared = declare(problem.file.read(options.data, problem.columns), problem.model, k)
    plan = declared.problem.plan(options.backend)
    if options.json:
        print(to_json(plan.to_dict()))
    else:
        print(as_text(plan.document() if options.full else plan.summary(_MORE)))
    return Exit.OK
