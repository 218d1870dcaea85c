"""``sparsemodel precision``: a sparse precision matrix, that is a graph of dependences."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

import sparsemodel as sm
from sparsemodel._version import __version__
from sparsemodel.cli.declaring import flag, option, part, positional
from sparsemodel.cli.exits import Exit, UsageError
from sparsemodel.cli.files import to_json, write_text
from sparsemodel.cli.options import (
    DATA,
    FileOptions,
    OutputFile,
    OutputOptions,
    RunOptions,
    ks_of,
    output_file,
)
from sparsemodel.cli.printing import as_csv, cell, distinct, noted, show
from sparsemodel.cli.printing import table as columns
from sparsemodel.cli.reading import Table
from sparsemodel.cli.recording import save
from sparsemodel.cli.records import certificate_record, finite
from sparsemodel.interfaces import DataError, FloatArray
from sparsemodel.modelling.precision_matrices.covariance import dependence

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


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GraphModel:
    """What defines the problem, given its columns."""

    edges: int | None = option("at most this many edges", metavar="K", kind=int)
    correlation: bool = flag("scale every column to variance one first")
    shrinkage: float = option(
        "draw the covariance towards its diagonal, in [0, 1); for few samples (default: 0)",
        metavar="RHO",
        kind=float,
        default=0.0,
    )
    alpha: float | None = option(
        "lower bound on the eigenvalues (default: safe)", metavar="A", kind=float
    )
    beta: float | None = option("upper bound on the eigenvalues", metavar="B", kind=float)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GraphOptions:
    """What defines the problem, given its data."""

    file: FileOptions = part("data")
    model: GraphModel = part("model")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """How the number of edges is chosen, in place of given."""

    among: list[int] | None = option(
        "in place of --edges: a range with both ends (0:100:10) or a list, chosen from",
        metavar="KS",
        kind=ks_of,
    )
    select: str = option(
        "aic, bic, ebic, gic or cv (default: ebic)",
        metavar="RULE",
        choices=("aic", "bic", "ebic", "gic", "cv"),
        default="ebic",
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Output(OutputOptions):
    """What is written and printed."""

    edge_list: Path | None = option(
        "pairs with correlations: .csv", metavar="FILE", kind=output_file
    )

    def files(self) -> tuple[OutputFile, ...]:
        """Return the files that may be asked for."""
        own = OutputFile("--edge-list", self.edge_list, (".csv",))
        return (*OutputOptions.files(self), own)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Which problem, how it is solved, and what comes out."""

    data: str = positional("DATA", DATA)
    problem: GraphOptions = part()
    choice: Choice = part("choice of the number of edges")
    run: RunOptions = part("run")
    output: Output = part("output")


def declare_graph(table: Table, model: GraphModel, edges: int) -> Any:
    """Return the problem that the options describe."""
    X, names = _columns_of(table)
    if model.correlation:
        X = _standardised(X, names)
    p = X.shape[1]
    omega = sm.Variable((p, p), symmetric=True, name="Omega", names=names)
    constraints: list[Any] = [sm.card(sm.offdiag(omega)) <= 2 * edges]
    if model.alpha is not None:
        constraints.append(omega >> model.alpha)
    if model.beta is not None:
        constraints.append(omega << model.beta)
    likelihood = sm.gaussian_nll(omega, data=X, shrinkage=model.shrinkage)
    return sm.Problem(sm.minimize(likelihood), constraints)


def _columns_of(table: Table) -> tuple[FloatArray, tuple[str, ...]]:
    if table.features != table.names:
        pairs = zip(table.names or (), table.features or (), strict=True)
        text = next(name for name, feature in pairs if name != feature)
        raise DataError(
            f"A covariance is of numbers, and {text!r} is a category; leave its column out with "
            "--drop."
        )
    X = table.X if isinstance(table.X, np.ndarray) else table.X.toarray()
    return X, distinct(table.names or [f"column_{j}" for j in range(1, X.shape[1] + 1)])


def _refuse_dependent(table: Table, model: GraphModel) -> None:
    """Refuse columns that determine each other where only a default bounds the likelihood."""
    if model.shrinkage > 0.0 or model.beta is not None:
        return
    words = dependence(*_columns_of(table))
    if words:
        raise DataError(
            f"{words}. Leave one of them out (--drop), draw the covariance towards its diagonal "
            "(--shrinkage 0.1), or bound the eigenvalues (--beta)."
        )


def run(options: Options) -> int:
    """Fit the graph."""
    model, output = options.problem.model, options.output
    if (model.edges is None) == (options.choice.among is None):
        raise UsageError("Say how many edges there may be with --edges K, or --among KS.")
    if model.edges is not None and model.edges < 0:
        raise UsageError(f"--edges must be at least 0, not {model.edges}.")
    output.check(options.data)
    table = options.problem.file.read(options.data)
    _refuse_dependent(table, model)
    chosen = _chosen(table, options)
    problem = declare_graph(table, model, chosen.edges)
    solution = options.run.solve(problem, chosen.start)
    certificate: Any = None if output.no_certificate else problem.certify()
    if certificate is not None:
        # The choice is what was asked for now: the certificate remembers no more.
        of_problem = replace(options.problem, model=replace(model, edges=chosen.edges))
        about = {"data": f"{Path(options.data).name}, {table.X.shape[0]} rows"}
        save(certificate, of_problem, output, about=about, data=options.data)
    edges = sorted(
        ((a, b, data["weight"]) for a, b, data in solution.graph().edges(data=True)),
        key=lambda edge: -abs(edge[2]),
    )
    if output.edge_list is not None:
        write_text(output.edge_list, _as_csv(edges), overwrite=output.overwrite)
    if output.json:
        print(to_json(_record(solution, certificate, edges, table.notes)))
        return Exit.OK
    for note in (*table.notes, *solution.notes):
        print(f"note: {note}")
    if chosen.words:
        print(chosen.words)
    _print(solution, problem.form.order, edges)
    if certificate is not None:
        print("\ncertified")
        show(f"{certificate.title()}. {certificate.headline()}")
    for name, path in output.named():
        print(f"{name}: {path}")
    return Exit.OK


class _Chosen(NamedTuple):
    """The number of edges, where the search starts, and a word on how it was chosen."""

    edges: int
    start: Any = None
    words: str = ""


def _chosen(table: Table, options: Options) -> _Chosen:
    model, choice = options.problem.model, options.choice
    if choice.among is None:
        return _Chosen(model.edges or 0)
    path = declare_graph(table, model, max(choice.among)).path(choice.among)
    rule = choice.select
    with noted() as notes:
        found = path.cross_validate(seed=options.run.seed) if rule == "cv" else path.select(rule)
    words = f"{found.k} edges of {path.k[0]} to {path.k[-1]} by {found.chosen_by}"
    words = " - ".join([words, *notes])
    return _Chosen(found.k, found.values["Omega"], words)


def _as_csv(edges: list[tuple[str, str, float]]) -> str:
    rows = [(cell(a), cell(b), repr(float(r))) for a, b, r in edges]
    return as_csv([("one", "other", "partial_correlation"), *rows])


def _print(solution: Any, order: int, edges: list[tuple[str, str, float]]) -> None:
    print(
        f"{solution.status} by {solution.backend}: objective {solution.value:.8g}, "
        f"{len(edges)} edges among {order} variables, "
        f"{solution.timings['total']:.3g} s\n"
    )
    rows = [("variable", "variable", "partial correlation")]
    rows += [(a, b, f"{r:+.3f}") for a, b, r in edges[:30]]
    print(columns(rows))
    if len(edges) > 30:
        print(f"... and {len(edges) - 30} weaker ones (--edge-list has them all)")


def _standardised(X: Any, names: tuple[str, ...]) -> Any:
    spread = X.std(axis=0)
    constant = np.flatnonzero(spread == 0.0)
    if constant.size:
        raise DataError(f"The column {names[constant[0]]!r} is constant; leave it out with --drop.")
    return (X - X.mean(axis=0)) / spread


def _record(
    solution: Any, certificate: Any, edges: list[Any], notes: tuple[str, ...]
) -> dict[str, Any]:
    known = None if certificate is None else certificate_record(certificate, "nats_per_sample")
    return {
        "command": NAME,
        "version": __version__,
        "status": solution.status,
        "stop": solution.stop.value,
        "backend": solution.backend,
        "objective": finite(solution.value),
        "edges": [{"one": a, "other": b, "partial_correlation": float(r)} for a, b, r in edges],
        "seconds": {name: round(value, 6) for name, value in solution.timings.items()},
        "certificate": known,
        "data_notes": list(notes),
    }
