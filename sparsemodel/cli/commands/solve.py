"""``sparsemodel solve``: fit a sparse model, and say how good it is."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from sparsemodel._version import __version__
from sparsemodel.cli.exits import Exit, UsageError
from sparsemodel.cli.files import check_free, to_json, write_text, written
from sparsemodel.cli.model import Declared, declare
from sparsemodel.cli.options import (
    add_data,
    add_model,
    add_overwrite,
    add_run,
    output_file,
    read,
)
from sparsemodel.cli.recording import with_recipe
from sparsemodel.cli.records import certificate_record, coefficient_csv, solution_record
from sparsemodel.reporting.progress import is_watched

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
  sparsemodel solve news.svm --loss logistic --k 50 --json | jq .support

which loss, by what the target is:
  a number                 squared; huber or absolute where outliers should count less
  a number to stay below   quantile, with --tau 0.9 to be right nine times in ten
  one of two classes       logistic; squared-hinge, smoothed-hinge, hinge (support vectors)
  one of several classes   multinomial
  a count                  poisson
  a positive amount        gamma

which k: `sparsemodel path` compares models of several sizes and names one.

An intercept is in the model and not counted, unless --no-intercept. The status says whether the
run came to its end; how good the answer is, only the certificate says: no model with at most K
coefficients lies below its bound. If the gap is wide, a larger --ridge narrows it.
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("data", metavar="DATA", help="the file of data; - is standard input (CSV)")
    add_data(parser)
    add_model(parser)
    add_run(parser)
    group = parser.add_argument_group("output")
    group.add_argument(
        "--report", type=output_file, metavar="FILE", help="for people: .html, .md or .txt"
    )
    group.add_argument(
        "--certificate", type=output_file, metavar="FILE", help="for `sparsemodel verify`: .json"
    )
    group.add_argument(
        "--coefficients", type=output_file, metavar="FILE", help="the nonzero ones: .csv"
    )
    group.add_argument("--no-certificate", action="store_true", help="do not compute one (faster)")
    group.add_argument("--json", action="store_true", help="print JSON instead of text")
    add_overwrite(group)


def run(arguments: argparse.Namespace) -> int:
    """Solve, certify and write what was asked for."""
    if arguments.k is None:
        raise UsageError("Say how many coefficients may be nonzero with --k.")
    _check_outputs(arguments)
    table = read(arguments.data, arguments)
    declared = declare(table, arguments, arguments.k)
    problem = declared.problem
    solution = problem.solve(
        arguments.backend,
        seed=arguments.seed,
        time_limit=arguments.time_limit,
        verbose=not arguments.quiet and is_watched(sys.stderr),
    )
    certificate = None if arguments.no_certificate else problem.certify()
    if arguments.coefficients is not None:
        text = coefficient_csv(declared, solution)
        write_text(arguments.coefficients, text, overwrite=arguments.overwrite)
    if certificate is not None:
        _save(certificate, arguments)
    if arguments.json:
        print(to_json(_record(declared, solution, certificate, table.notes)))
    else:
        _print(declared, solution, certificate, table.notes, arguments)
    return Exit.OK


def _check_outputs(arguments: argparse.Namespace) -> None:
    """Refuse before the work what would fail after it."""
    wanted: dict[str, str] = {}
    for option, endings in (
        ("report", (".html", ".htm", ".md", ".txt")),
        ("certificate", (".json",)),
        ("coefficients", (".csv",)),
    ):
        path: Path | None = getattr(arguments, option)
        if path is None:
            continue
        if path.suffix.lower() not in endings:
            raise UsageError(f"--{option} {path}: the name must end in {' or '.join(endings)}.")
        if option != "coefficients" and arguments.no_certificate:
            raise UsageError(f"--{option} needs the certificate that --no-certificate leaves out.")
        check_free(path, overwrite=arguments.overwrite, data=arguments.data)
        real = os.path.realpath(path)
        if real in wanted:
            raise UsageError(f"--{option} and --{wanted[real]} name the same file.")
        wanted[real] = option


def _save(certificate: Any, arguments: argparse.Namespace) -> None:
    if arguments.report is not None:
        with written(arguments.report, overwrite=arguments.overwrite) as temporary:
            certificate.save(temporary)
    if arguments.certificate is not None:
        text = json.dumps(with_recipe(certificate, arguments), indent=1, ensure_ascii=False)
        write_text(arguments.certificate, text + "\n", overwrite=arguments.overwrite)


def _record(
    declared: Declared, solution: Any, certificate: Any, notes: tuple[str, ...]
) -> dict[str, Any]:
    return {
        "command": NAME,
        "version": __version__,
        "problem": declared.problem.plan().problem,
        "classes": list(declared.classes),
        **solution_record(solution),
        "certificate": None if certificate is None else certificate_record(certificate),
        "data_notes": list(notes),
    }


def _print(
    declared: Declared,
    solution: Any,
    certificate: Any,
    notes: tuple[str, ...],
    arguments: argparse.Namespace,
) -> None:
    for note in notes:
        print(f"note: {note}")
    if len(declared.classes) == 2:
        print(f"classes: {declared.classes[0]} (0), {declared.classes[1]} (1)")
    elif declared.classes:
        print(f"classes: {', '.join(declared.classes)}")
    print(solution)
    if certificate is not None:
        print(f"\n{certificate}")
    for option in ("report", "certificate", "coefficients"):
        if getattr(arguments, option) is not None:
            print(f"{option}: {getattr(arguments, option)}")


__all__ = ["add", "run"]
