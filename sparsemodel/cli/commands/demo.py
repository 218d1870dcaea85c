"""``sparsemodel demo``: one problem from end to end, on real data that come with the package."""

from __future__ import annotations

import tempfile
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path
from typing import cast, final

import sparsemodel as sm
from sparsemodel.cli.declaring import option
from sparsemodel.cli.exits import Exit, OutputError
from sparsemodel.cli.files import free_names, written
from sparsemodel.cli.printing import heading, show
from sparsemodel.interfaces import SparseRegression

NAME = "demo"
USAGE = "demo [--output FOLDER]"
SUMMARY = "a problem from end to end, on real data"
DESCRIPTION = """\
Declare, explain, solve and certify a sparse classification problem on real data that come with
the package: 38 leukaemia patients, 3051 genes, two types of leukaemia. Takes a few seconds and
writes a report and a certificate to a temporary folder; nothing is overwritten.
"""
EPILOG = """\
examples:
  sparsemodel demo
  sparsemodel demo --output results
"""

_PROGRAM = """\
data = sm.datasets.load_golub()
w = sm.Variable(3051, name="w", names=data.feature_names)
c = sm.Variable(name="intercept")
problem = sm.Problem(
    sm.minimize(sm.logistic_loss(data.X @ w + c, data.y) + sm.ridge(w, 1e-2)),
    sm.card(w) <= 10,
)
"""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Where the files go."""

    output: Path | None = option(
        "where report.html and certificate.json go (default: a new temporary folder); "
        "they get a number when there are such files already",
        metavar="FOLDER",
        kind=Path,
        default=None,
    )


def run(options: Options) -> int:
    """Run the demonstration."""
    from sparsemodel.certificates import verify

    folder = options.output or Path(tempfile.mkdtemp(prefix="sparsemodel-demo-"))
    if not folder.is_dir():
        raise OutputError(f"There is no folder {folder}; create it first.")
    began = time.perf_counter()
    data = sm.datasets.load_golub()
    heading("1. The data")
    show(
        f"{data.X.shape[0]} leukaemia patients, {data.X.shape[1]} genes each, two types of "
        f"leukaemia ({' and '.join(data.target_names)}). Which 10 genes tell them apart?"
    )
    show(f"Source: {data.source}", indent="  ")

    heading("2. Declare the problem, as on paper")
    print(textwrap.indent(_PROGRAM, "  "), end="")
    w = sm.Variable(data.X.shape[1], name="w", names=data.feature_names)
    c = sm.Variable(name="intercept")
    problem = sm.Problem(
        sm.minimize(sm.logistic_loss(data.X @ w + c, data.y) + sm.ridge(w, 1e-2)),
        sm.card(w) <= 10,
    )

    heading("3. print(problem.explain()): what will run, and why")
    print(textwrap.indent(problem.explain(), "  "))

    heading("4. print(problem.solve())")
    solution = problem.solve()
    print(textwrap.indent(str(solution), "  "))

    heading("5. certificate = problem.certify(): how much better could any other answer be?")
    certificate = problem.certify()
    show(f"{certificate.title().capitalize()}. {certificate.headline()}")

    heading("6. The files")
    report, record = free_names(folder, ("report.html", "certificate.json"))
    for path, what in ((report, "to read in a browser"), (record, "to verify from the data")):
        with written(path) as temporary:
            certificate.save(temporary)
        print(f"  {path}: {what}")
    verify(record, cast(SparseRegression, problem.form))  # raises where a number does not hold
    show("The certificate was read back, and every number recomputed from the data: it holds.")
    print(f"\nDone in {time.perf_counter() - began:.1f} s. Your own data: sparsemodel solve --help")
    return Exit.OK
