"""``sparsemodel solve``: fit a sparse model, and say how good it is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from sparsemodel._version import __version__
from sparsemodel.cli.declaring import option, part, positional
from sparsemodel.cli.exits import Exit
from sparsemodel.cli.files import to_json, write_text
from sparsemodel.cli.model import Declared, declare
from sparsemodel.cli.options import (
    DATA,
    OutputFile,
    OutputOptions,
    RegressionOptions,
    RunOptions,
    model_option,
    output_file,
)
from sparsemodel.cli.recording import save
from sparsemodel.cli.records import (
    certificate_record,
    coefficient_csv,
    model_record,
    solution_record,
)
from sparsemodel.documents.document import Document, Facts, Section
from sparsemodel.documents.text import as_text

NAME = "solve"
USAGE = "solve DATA --target COLUMN --k K [options]"
SUMMARY = "fit a model with at most k nonzero coefficients, and certify it"
DESCRIPTION = """\
Minimise the mean loss plus a ridge over all models with at most K nonzero coefficients, and
compute a certificate: a lower bound on what any such model could reach, evaluated on your data.
"""
EPILOG = """\
examples:
  sparsemodel solve houses.csv --target price --k 8
  sparsemodel solve genes.csv --target type --loss logistic --k 10 --report report.html
  sparsemodel solve houses.csv --target price --k 8 --certificate proof.json
  sparsemodel verify proof.json --data houses.csv
  sparsemodel solve houses.csv --target price --k 8 --model model.json
  sparsemodel predict model.json new.csv
  sparsemodel solve news.svm --loss logistic --k 50 --json | jq .support

which loss, by target:
  a number                 squared; huber or absolute to reduce the influence of outliers
  a quantile of a number   quantile, for example with --tau 0.9
  one of two classes       logistic; squared-hinge, smoothed-hinge, hinge (support vectors)
  one of several classes   multinomial
  a count                  poisson; negative-binomial if counts vary more
  a positive amount        gamma; tweedie if some are zero

which k: `sparsemodel path` compares models of several sizes and selects one.

A feature column of text is a category: it becomes one column for each category except the first
(colour[red]), and these count as one feature. A target of text is read as classes.

The model has an intercept, which is not counted, unless --no-intercept. The status says whether
the run finished. The certificate says how good the model is: no model with at most K coefficients
has an objective below its bound. If the gap is large, a larger --ridge makes it smaller.
"""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Output(OutputOptions):
    """What is written and printed."""

    coefficients: Path | None = option(
        "write the nonzero coefficients: .csv", metavar="FILE", kind=output_file
    )
    model: Path | None = model_option()

    def files(self) -> tuple[OutputFile, ...]:
        """Return the files that may be asked for."""
        return (
            *OutputOptions.files(self),
            OutputFile("--coefficients", self.coefficients, (".csv",)),
            OutputFile("--model", self.model, (".json",)),
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Which problem, how it is solved, and what comes out."""

    data: str = positional("DATA", DATA)
    problem: RegressionOptions = part()
    run: RunOptions = part("run")
    output: Output = part("output")


def run(options: Options) -> int:
    """Solve, certify and write what was asked for."""
    asked, output = options.problem, options.output
    k = asked.limit()
    output.check(options.data)
    table = asked.file.read(options.data, asked.columns)
    declared = declare(table, asked.model, k)
    problem = declared.problem
    solution = options.run.solve(problem)
    certificate = None if output.no_certificate else problem.certify()
    if output.coefficients is not None:
        text = coefficient_csv(declared, solution)
        write_text(output.coefficients, text, overwrite=output.overwrite)
    if output.model is not None:
        text = to_json(model_record(declared, table, solution)) + "\n"
        write_text(output.model, text, overwrite=output.overwrite)
    about = _about(options, declared, table, solution)
    if certificate is not None:
        save(certificate, asked, output, about=about, data=options.data)
    if output.json:
        print(to_json(_record(declared, solution, certificate, table.notes)))
        return Exit.OK
    for note in table.notes:
        print(f"note: {note}")
    print(as_text(_document(about, solution, certificate, output)))
    return Exit.OK


def _about(options: Options, declared: Declared, table: Any, solution: Any) -> dict[str, str]:
    """Return what the model is made from and how it fits, for people."""
    rows, features = table.X.shape
    found = {"data": f"{Path(options.data).name}, {rows} rows, {features} features"}
    if options.problem.columns.target:
        found["target"] = str(options.problem.columns.target)
    if len(declared.classes) == 2:
        found["classes"] = f"{declared.classes[0]} (0), {declared.classes[1]} (1)"
    elif declared.classes:
        found["classes"] = ", ".join(declared.classes)
    found["loss"] = declared.loss
    fit = solution.summary().measures()
    return found | {f"{name} on these rows": value for name, value in fit.items()}


def _record(
    declared: Declared, solution: Any, certificate: Any, notes: tuple[str, ...]
) -> dict[str, Any]:
    return {
        "command": NAME,
        "version": __version__,
        "problem": declared.problem.plan().words.problem,
        "classes": list(declared.classes),
        **solution_record(solution),
        "certificate": None if certificate is None else certificate_record(certificate),
        "data_notes": list(notes),
    }


def _document(about: dict[str, str], solution: Any, certificate: Any, output: Output) -> Document:
    """Return what is printed: data and fit, coefficients, what is certified, what to do next."""
    known = solution.document()
    run, coefficients = known.sections[0].blocks[0], known.sections[1]
    (_, bound), *rows = run.rows
    known_bound = bound.partition(";")[0]  # what follows are words of Python
    first = ("lower bound", f"{known_bound}; leave out --no-certificate for a certificate")
    if certificate is not None:
        first = ("certified", f"{certificate.title()}. {certificate.headline()}")
    files = output.named()
    written = {name for name, _ in files}
    hints = {"report": "--report report.html", "certificate": "--certificate proof.json"}
    missing = [hint for name, hint in hints.items() if name not in written]
    tail = [*files, ("next", " or ".join([*missing, "sparsemodel path compares other k"]))]
    return Document(
        kind="Solution",
        title=known.title,
        sections=(
            Section("", (Facts([*about.items()]),)),
            coefficients,
            Section("", (Facts([first, *rows, *tail]),)),
        ),
    )
