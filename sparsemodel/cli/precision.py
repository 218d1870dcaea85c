"""``sparsemodel precision``: a sparse precision matrix, that is a graph of dependences."""

from __future__ import annotations

import argparse
import csv
import io
from pathlib import Path
from typing import Any

import numpy as np

from sparsemodel._version import __version__
from sparsemodel.cli.exits import Exit, UsageError
from sparsemodel.cli.files import check_free, to_json, write_text
from sparsemodel.cli.options import add_data, add_overwrite, add_run, output_file, read
from sparsemodel.cli.records import finite
from sparsemodel.cli.text import table as columns
from sparsemodel.interfaces import DataError

NAME = "precision"
USAGE = "precision DATA --edges K [options]"
SUMMARY = "a graph of conditional dependences with at most k edges"
DESCRIPTION = """\
Fit a Gaussian whose precision matrix has at most K edges (nonzero pairs off the diagonal) to the
columns of a table: an edge says that two variables depend on each other given all others.
"""
EPILOG = """\
examples:
  sparsemodel precision stocks.csv --drop date --edges 60 --edge-list edges.csv
  sparsemodel precision genes.csv --edges 40 --correlation --json
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("data", metavar="DATA", help="the file of data; - is standard input (CSV)")
    add_data(parser, target=False)
    group = parser.add_argument_group("model")
    group.add_argument("--edges", type=int, metavar="K", help="at most this many edges")
    group.add_argument(
        "--correlation", action="store_true", help="scale every column to variance one first"
    )
    group.add_argument(
        "--alpha", type=float, metavar="A", help="lower bound on the eigenvalues (default: safe)"
    )
    group.add_argument("--beta", type=float, metavar="B", help="upper bound on the eigenvalues")
    add_run(parser)
    output = parser.add_argument_group("output")
    output.add_argument(
        "--edge-list", type=output_file, metavar="FILE", help="pairs with correlations: .csv"
    )
    output.add_argument("--no-certificate", action="store_true", help="do not compute one (faster)")
    output.add_argument("--json", action="store_true", help="print JSON instead of text")
    add_overwrite(output)


def run(arguments: argparse.Namespace) -> int:
    """Fit the graph."""
    import sparsemodel as sm

    if arguments.edges is None:
        raise UsageError("Say how many edges there may be with --edges.")
    output: Path | None = arguments.edge_list
    if output is not None:
        if output.suffix.lower() != ".csv":
            raise UsageError(f"--edge-list {output}: the name must end in .csv.")
        check_free(output, overwrite=arguments.overwrite)
    table = read(arguments.data, arguments)
    X = table.X if isinstance(table.X, np.ndarray) else table.X.toarray()
    names = table.names or tuple(f"column_{j}" for j in range(1, X.shape[1] + 1))
    if arguments.correlation:
        X = _standardised(X, names)
    p = X.shape[1]
    omega = sm.Variable((p, p), symmetric=True, name="Omega", names=names)
    constraints: list[Any] = [sm.card(sm.offdiag(omega)) <= 2 * arguments.edges]
    if arguments.alpha is not None:
        constraints.append(omega >> arguments.alpha)
    if arguments.beta is not None:
        constraints.append(omega << arguments.beta)
    problem = sm.Problem(sm.minimize(sm.gaussian_nll(omega, data=X)), constraints)
    solution = problem.solve(
        arguments.backend,
        seed=arguments.seed,
        time_limit=arguments.time_limit,
        verbose=not arguments.quiet,
    )
    certificate: Any = None if arguments.no_certificate else problem.certify()
    edges = sorted(
        ((a, b, data["weight"]) for a, b, data in solution.graph().edges(data=True)),
        key=lambda edge: -abs(edge[2]),
    )
    if output is not None:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["one", "other", "partial_correlation"])
        writer.writerows((a, b, repr(float(r))) for a, b, r in edges)
        write_text(output, text.getvalue(), overwrite=arguments.overwrite)
    if arguments.json:
        print(to_json(_record(solution, certificate, edges, table.notes)))
        return Exit.OK
    for note in table.notes:
        print(f"note: {note}")
    print(
        f"{solution.status} by {solution.backend}: objective {solution.value:.8g}, "
        f"{len(edges)} edges among {p} variables, {solution.timings['total']:.3g} s\n"
    )
    rows = [("variable", "variable", "partial correlation")]
    rows += [(a, b, f"{r:+.3f}") for a, b, r in edges[:30]]
    print(columns(rows))
    if len(edges) > 30:
        print(f"... and {len(edges) - 30} weaker ones (--edge-list has them all)")
    if certificate is not None:
        print(f"\n{certificate}")
    if output is not None:
        print(f"edges: {output}")
    return Exit.OK


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
            "value": finite(certificate.value),
            "bound": finite(certificate.bound),
            "gap": finite(certificate.gap),
            "nats_per_sample": finite(certificate.nats_per_sample),
            "assumptions": list(certificate.assumptions),
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


__all__ = ["add", "run"]
