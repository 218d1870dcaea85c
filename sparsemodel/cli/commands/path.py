"""``sparsemodel path``: models for a range of k, and the choice among them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path as File
from typing import Any, cast, final

import numpy as np

from sparsemodel._version import __version__
from sparsemodel.cli.declaring import flag, option, part, positional
from sparsemodel.cli.exits import Exit, UsageError
from sparsemodel.cli.files import to_json, write_text
from sparsemodel.cli.model import declare
from sparsemodel.cli.options import (
    DATA,
    FileOptions,
    ModelOptions,
    OutputFile,
    TargetOptions,
    check_outputs,
    effort_option,
    ks_of,
    model_option,
    output_file,
    positive,
    ridges_of,
)
from sparsemodel.cli.printing import as_csv, cell, noted, table
from sparsemodel.cli.records import model_record, plain_coefficients
from sparsemodel.compiler.choice.effort import Effort
from sparsemodel.interfaces import SparseRegression
from sparsemodel.selection.criteria import CRITERIA

NAME = "path"
USAGE = "path DATA --target COLUMN --ks KS [options]"
SUMMARY = "fit models for a range of k, and select one"
DESCRIPTION = """\
Solve for every k of a range, starting from its neighbours, and select one of the models by an
information criterion or by cross-validation.
"""
EPILOG = """\
examples:
  sparsemodel path houses.csv --target price --ks 1:20
  sparsemodel path genes.csv --target type --loss logistic --ks 1:30 --select cv
  sparsemodel path houses.csv --target price --ks 1,2,4,8,16 --table path.csv
  sparsemodel path houses.csv --target price --ks 1:20 --model model.json
  sparsemodel path houses.csv --target price --ks 0:10 --ridges 0.001,0.1,1 --select cv

KS is a range with both ends (1:20), a range with a step (0:50:5), or a list (1,2,4,8).
"""

_RULES = (*CRITERIA, "cv")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which k are tried, and how one is chosen."""

    ks: list[int] | None = option("the values of k, see below", metavar="KS", kind=ks_of)
    ridges: list[float] | None = option(
        "select the ridge as well, for example from 0.001,0.1,1 (instead of --ridge)",
        metavar="LAMBDAS",
        kind=ridges_of,
    )
    effort: Effort = effort_option()
    time_limit: float | None = option(
        "end the path with the k done by then", metavar="SECONDS", kind=positive
    )
    select: str | None = option(
        f"{', '.join(_RULES)} (default: ebic; cv for losses that are not likelihoods)",
        metavar="RULE",
        choices=_RULES,
    )
    folds: int = option("number of folds for cv (default: 5)", metavar="N", kind=int, default=5)
    one_standard_error: bool = flag(
        "cv: take the smallest k within one standard error of the best mean"
    )
    seed: int = option("seed of the folds (default: 0)", kind=int, default=0)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What is written and printed."""

    table: File | None = option(
        "k, objective, score, support: .csv", metavar="FILE", kind=output_file
    )
    model: File | None = model_option()
    json: bool = flag("print JSON instead of text")
    overwrite: bool = flag("replace output files that exist already")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Which problems, which k, and what comes out."""

    data: str = positional("DATA", DATA)
    columns: TargetOptions = part("data")
    file: FileOptions = part("data")
    model: ModelOptions = part("model")
    choice: Choice = part("path")
    output: Output = part("output")


def run(options: Options) -> int:
    """Follow the path and choose."""
    choice, output = options.choice, options.output
    if choice.ks is None:
        raise UsageError("Say which k to try with --ks, for example --ks 1:20.")
    files = (
        OutputFile("--table", output.table, (".csv",)),
        OutputFile("--model", output.model, (".json",)),
    )
    check_outputs(files, overwrite=output.overwrite, data=options.data)
    data = options.file.read(options.data, options.columns)
    model = options.model if choice.ridges is None else replace(options.model, ridge=1.0)
    declared = declare(data, model, choice.ks[-1])
    with noted() as notes:
        path = declared.problem.path(
            choice.ks, ridges=choice.ridges, effort=choice.effort, time_limit=choice.time_limit
        )
        form = cast("SparseRegression", declared.problem.form)
        rule = choice.select or ("ebic" if form.traits.likelihood else "cv")
        if rule == "cv":
            chosen = path.cross_validate(
                folds=choice.folds,
                one_standard_error=choice.one_standard_error,
                seed=choice.seed,
            )
        else:
            chosen = path.select(rule)
    if output.table is not None:
        write_text(output.table, _as_csv(path, chosen), overwrite=output.overwrite)
    if output.model is not None:
        text = to_json(model_record(declared, data, chosen)) + "\n"
        write_text(output.model, text, overwrite=output.overwrite)
    if output.json:
        print(to_json(_record(declared.classes, path, chosen, notes)))
        return Exit.OK
    for note in [*data.notes, *notes]:
        print(f"note: {note}")
    if path.stop.requested:
        print(f"note: the path ends at k = {int(path.k[-1])}: {path.stop.value}")
    print(_as_text(path, chosen))
    print(f"\n{chosen}")
    width = max((len(name) for name in chosen.coefficients), default=0)
    for name, value in plain_coefficients(chosen.coefficients).items():
        shown = value if isinstance(value, list) else [value]
        print(f"  {name:<{width}}  {'  '.join(f'{v:.6g}' for v in shown)}")
    for file in files:
        if file.path is not None:
            print(f"{file.option.removeprefix('--')}: {file.path}")
    return Exit.OK


def _steps(path: Any) -> list[tuple[list[str], list[str]]]:
    """Return what enters and what leaves at every k."""
    out, last = [], set[str]()
    for support in path.support:
        names = [str(name) for name in support]
        out.append(([n for n in names if n not in last], sorted(last.difference(names))))
        last = set(names)
    return out


def _as_text(path: Any, chosen: Any) -> str:
    if path.ridges is not None:
        header = ("", "k", *(f"{chosen.chosen_by}, ridge {ridge:g}" for ridge in path.ridges))
        lines = [
            (">" if k == chosen.k else "", str(k), *(f"{score:.6g}" for score in scores))
            for k, scores in zip(path.k.tolist(), chosen.scores.tolist(), strict=True)
        ]
        return table([header, *lines])
    rows = [("", "k", "objective", chosen.chosen_by, "what changes")]
    for place, (new, gone) in enumerate(_steps(path)):
        mark = ">" if int(path.k[place]) == chosen.k else ""
        change = [f"+{name}" for name in new[:6]] + (["..."] if len(new) > 6 else [])
        change += [f"-{name}" for name in gone[:6]] + (["..."] if len(gone) > 6 else [])
        rows.append(
            (
                mark,
                str(int(path.k[place])),
                f"{path.objective[place]:.6g}",
                f"{chosen.scores[place]:.6g}",
                " ".join(change),
            )
        )
    return table(rows)


def _as_csv(path: Any, chosen: Any) -> str:
    several = path.ridges is not None
    rows: list[list[Any]] = [
        ["k", *(["ridge"] if several else []), "objective", "score", "chosen", "support"]
    ]
    for place, k in enumerate(path.k.tolist()):
        for column, ridge in enumerate(path.ridges.tolist() if several else [None]):
            at = (place, column) if several else place
            support = path.support[place][column] if several else path.support[place]
            names = " ".join(str(name) for name in support)
            row = [k, *([repr(ridge)] if several else [])]
            row += [repr(float(path.objective[at])), repr(float(chosen.scores[at]))]
            taken = k == chosen.k and ridge == chosen.ridge
            rows.append([*row, int(taken), cell(names)])
    return as_csv(rows)


def _record(classes: tuple[str, ...], path: Any, chosen: Any, notes: list[str]) -> dict[str, Any]:
    return {
        "command": NAME,
        "version": __version__,
        "classes": list(classes),
        "k": [int(k) for k in path.k],
        **({} if path.ridges is None else {"ridges": path.ridges.tolist()}),
        "objective": path.objective.tolist(),
        "support": [_names(support) for support in path.support],
        "passes": float(path.passes),
        "stop": path.stop.value,
        "rule": chosen.chosen_by,
        "notes": notes,
        "scores": chosen.scores.tolist(),
        "chosen": {
            "k": chosen.k,
            **({} if chosen.ridge is None else {"ridge": chosen.ridge}),
            "objective": float(chosen.value),
            "support": [str(name) for name in chosen.support],
            "coefficients": plain_coefficients(chosen.coefficients),
        },
    }


def _names(support: Any) -> Any:
    """Return names of a support as texts, or of the supports of several ridges."""
    if isinstance(support, list) and any(np.ndim(one) for one in support):
        return [_names(one) for one in support]
    return [str(name) for name in support]
