"""``sparsemodel precision``: a sparse precision matrix, that is a graph of dependences."""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from sparsemodel._version import __version__
from sparsemodel.cli.commands.path import parse_ks
from sparsemodel.cli.exits import Exit, UsageError
from sparsemodel.cli.files import check_free, to_json, write_text, written
from sparsemodel.cli.options import add_data, add_overwrite, add_run, output_file, read
from sparsemodel.cli.plain import cell, distinct
from sparsemodel.cli.reading import Table
from sparsemodel.cli.recording import problem_parser, with_recipe
from sparsemodel.cli.records import finite
from sparsemodel.cli.text import table as columns
from sparsemodel.interfaces import DataError, FloatArray
from sparsemodel.modelling.precision_matrices.covariance import dependent_columns
from sparsemodel.reporting.progress import is_watched

NAME = "precision"
USAGE = "precision DATA --edges K | --among KS [options]"
SUMMARY = "a graph of conditional dependences with at most k edges"
DESCRIPTION = """\
Fit a Gaussian whose precision matrix has at most K edges (nonzero pairs off the diagonal) to the
columns of a table: an edge says that two variables depend on each other given all others.
"""
EPILOG = """\
examples:
  sparsemodel precision stocks.csv --drop date --edges 60 --edge-list edges.csv
  sparsemodel precision genes.csv --edges 40 --correlation --json
  sparsemodel precision genes.csv --among 0:200:20 --select cv
  sparsemodel precision genes.csv --edges 40 --certificate graph.json --report graph.html
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("data", metavar="DATA", help="the file of data; - is standard input (CSV)")
    add_problem(parser)
    choice = parser.add_argument_group("choice of the number of edges")
    choice.add_argument(
        "--among",
        type=parse_ks,
        metavar="KS",
        help="in place of --edges: a range with both ends (0:100:10) or a list, chosen from",
    )
    choice.add_argument(
        "--select",
        choices=("aic", "bic", "ebic", "gic", "cv"),
        default="ebic",
        metavar="RULE",
        help="aic, bic, ebic, gic or cv (default: ebic)",
    )
    add_run(parser)
    output = parser.add_argument_group("output")
    output.add_argument(
        "--edge-list", type=output_file, metavar="FILE", help="pairs with correlations: .csv"
    )
    output.add_argument(
        "--certificate", type=output_file, metavar="FILE", help="for `sparsemodel verify`: .json"
    )
    output.add_argument(
        "--report", type=output_file, metavar="FILE", help="the certificate to read: .html or .md"
    )
    output.add_argument("--no-certificate", action="store_true", help="do not compute one (faster)")
    output.add_argument("--json", action="store_true", help="print JSON instead of text")
    add_overwrite(output)


def add_problem(parser: argparse.ArgumentParser) -> None:
    """Declare the options that define the problem."""
    add_data(parser, target=False)
    group = parser.add_argument_group("model")
    group.add_argument("--edges", type=int, metavar="K", help="at most this many edges")
    group.add_argument(
        "--correlation", action="store_true", help="scale every column to variance one first"
    )
    group.add_argument(
        "--shrinkage",
        type=float,
        default=0.0,
        metavar="RHO",
        help="draw the covariance towards its diagonal, in [0, 1); for few samples (default: 0)",
    )
    group.add_argument(
        "--alpha", type=float, metavar="A", help="lower bound on the eigenvalues (default: safe)"
    )
    group.add_argument("--beta", type=float, metavar="B", help="upper bound on the eigenvalues")


def declare_graph(table: Table, arguments: argparse.Namespace) -> Any:
    """Return the problem that the options describe."""
    import sparsemodel as sm

    X, names = _columns_of(table)
    if arguments.correlation:
        X = _standardised(X, names)
    p = X.shape[1]
    omega = sm.Variable((p, p), symmetric=True, name="Omega", names=names)
    constraints: list[Any] = [sm.card(sm.offdiag(omega)) <= 2 * arguments.edges]
    if arguments.alpha is not None:
        constraints.append(omega >> arguments.alpha)
    if arguments.beta is not None:
        constraints.append(omega << arguments.beta)
    likelihood = sm.gaussian_nll(omega, data=X, shrinkage=arguments.shrinkage)
    return sm.Problem(sm.minimize(likelihood), constraints)


def _columns_of(table: Table) -> tuple[FloatArray, tuple[str, ...]]:
    X = table.X if isinstance(table.X, np.ndarray) else table.X.toarray()
    return X, distinct(table.names or [f"column_{j}" for j in range(1, X.shape[1] + 1)])


def _refuse_dependent(table: Table, arguments: argparse.Namespace) -> None:
    """Refuse columns that determine each other where only a default bounds the likelihood.

    With fewer observations than columns all are dependent, and the defaults are made for that.
    """
    X, names = _columns_of(table)
    free = arguments.shrinkage == 0.0 and arguments.beta is None
    if not free or X.shape[0] <= X.shape[1] or not np.all(np.isfinite(X)):
        return
    found = [names[j] for j in dependent_columns(X)]
    if found:
        raise DataError(
            f"{', '.join(found[:-1])} and {found[-1]} are linearly dependent: once they are joined "
            f"the likelihood has no maximum. Leave one out (--drop {found[-1]}), draw the "
            "covariance towards its diagonal (--shrinkage 0.1), or bound the eigenvalues (--beta)."
        )


def run(arguments: argparse.Namespace) -> int:
    """Fit the graph."""
    if (arguments.edges is None) == (arguments.among is None):
        raise UsageError("Say how many edges there may be with --edges K, or --among KS.")
    _check_outputs(arguments)
    output: Path | None = arguments.edge_list
    table = read(arguments.data, arguments)
    _refuse_dependent(table, arguments)
    start, choice = None, ""
    if arguments.among is not None:
        arguments.edges = max(arguments.among)
        path = declare_graph(table, arguments).path(arguments.among)
        rule = arguments.select
        chosen = path.cross_validate(seed=arguments.seed) if rule == "cv" else path.select(rule)
        # From here on the choice is what was asked for: the certificate remembers no more.
        arguments.edges, start = chosen.k, chosen.values["Omega"]
        choice = f"{chosen.k} edges of {path.k[0]} to {path.k[-1]} by {chosen.chosen_by}"
    problem = declare_graph(table, arguments)
    solution = problem.solve(
        arguments.backend,
        start=start,
        seed=arguments.seed,
        time_limit=arguments.time_limit,
        verbose=not arguments.quiet and is_watched(sys.stderr),
    )
    certificate: Any = None if arguments.no_certificate else problem.certify()
    if certificate is not None:
        _save(certificate, arguments)
    edges = sorted(
        ((a, b, data["weight"]) for a, b, data in solution.graph().edges(data=True)),
        key=lambda edge: -abs(edge[2]),
    )
    if output is not None:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["one", "other", "partial_correlation"])
        writer.writerows((cell(a), cell(b), repr(float(r))) for a, b, r in edges)
        write_text(output, text.getvalue(), overwrite=arguments.overwrite)
    if arguments.json:
        print(to_json(_record(solution, certificate, edges, table.notes)))
        return Exit.OK
    for note in (*table.notes, *solution.notes):
        print(f"note: {note}")
    if choice:
        print(choice)
    print(
        f"{solution.status} by {solution.backend}: objective {solution.value:.8g}, "
        f"{len(edges)} edges among {problem.form.order} variables, "
        f"{solution.timings['total']:.3g} s\n"
    )
    rows = [("variable", "variable", "partial correlation")]
    rows += [(a, b, f"{r:+.3f}") for a, b, r in edges[:30]]
    print(columns(rows))
    if len(edges) > 30:
        print(f"... and {len(edges) - 30} weaker ones (--edge-list has them all)")
    if certificate is not None:
        print(f"\n{certificate}")
    for option in ("edge_list", "certificate", "report"):
        if getattr(arguments, option) is not None:
            print(f"{option.replace('_', '-')}: {getattr(arguments, option)}")
    return Exit.OK


def _check_outputs(arguments: argparse.Namespace) -> None:
    for option, endings in (
        ("edge_list", (".csv",)),
        ("certificate", (".json",)),
        ("report", (".html", ".htm", ".md", ".txt")),
    ):
        path: Path | None = getattr(arguments, option)
        if path is None:
            continue
        name = "--" + option.replace("_", "-")
        if path.suffix.lower() not in endings:
            raise UsageError(f"{name} {path}: the name must end in {' or '.join(endings)}.")
        if option != "edge_list" and arguments.no_certificate:
            raise UsageError(f"{name} needs the certificate that --no-certificate leaves out.")
        check_free(path, overwrite=arguments.overwrite, data=arguments.data)


def _save(certificate: Any, arguments: argparse.Namespace) -> None:
    if arguments.report is not None:
        with written(arguments.report, overwrite=arguments.overwrite) as temporary:
            certificate.save(temporary)
    if arguments.certificate is not None:
        parser = problem_parser(add_problem)
        body = with_recipe(certificate, arguments, parser)
        text = json.dumps(body, indent=1, ensure_ascii=False) + "\n"
        write_text(arguments.certificate, text, overwrite=arguments.overwrite)


def _standardised(X: Any, names: tuple[str, ...]) -> Any:
    spread = X.std(axis=0)
    constant = np.flatnonzero(spread == 0.0)
    if constant.size:
        raise DataError(f"The column {names[constant[0]]!r} is constant; leave it out with --drop.")
    return (X - X.mean(axis=0)) / spread


def _record(
    solution: Any, certificate: Any, edges: list[Any], notes: tuple[str, ...]
) -> dict[str, Any]:
    bounds = None
    if certificate is not None:
        bounds = {
            "claim": certificate.claim.value,
            "value": finite(certificate.value),
            "bound": finite(certificate.bound),
            "gap": finite(certificate.gap),
            "nats_per_sample": finite(certificate.nats_per_sample),
            "assumptions": [str(a) for a in certificate.assumptions],
        }
    return {
        "command": NAME,
        "version": __version__,
        "status": solution.status,
        "stop": solution.stop.value,
        "backend": solution.backend,
        "objective": finite(solution.value),
        "edges": [{"one": a, "other": b, "partial_correlation": float(r)} for a, b, r in edges],
        "seconds": {name: round(value, 6) for name, value in solution.timings.items()},
        "certificate": bounds,
        "data_notes": list(notes),
    }


__all__ = ["add", "add_problem", "declare_graph", "run"]
