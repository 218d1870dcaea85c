"""``sparsemodel path``: models for a range of k, and the choice among them."""

from __future__ import annotations

import argparse
import csv
import io
from pathlib import Path as File
from typing import Any

from sparsemodel._version import __version__
from sparsemodel.cli.exits import Exit, UsageError
from sparsemodel.cli.files import check_free, to_json, write_text
from sparsemodel.cli.model import declare
from sparsemodel.cli.options import (
    add_data,
    add_model,
    add_overwrite,
    add_time_limit,
    output_file,
    read,
)
from sparsemodel.cli.plain import cell
from sparsemodel.cli.records import plain_coefficients
from sparsemodel.cli.text import table

NAME = "path"
USAGE = "path DATA --target COLUMN --ks KS [options]"
SUMMARY = "models for a range of k, and the choice of one"
DESCRIPTION = """\
Solve for every k of a range, each from its neighbours, and choose one of the models by an
information criterion or by cross-validation.
"""
EPILOG = """\
examples:
  sparsemodel path houses.csv --target price --ks 1:20
  sparsemodel path genes.csv --target type --loss logistic --ks 1:30 --select cv
  sparsemodel path houses.csv --target price --ks 1,2,4,8,16 --table path.csv

KS is a range with both ends (1:20), a range with a step (0:50:5), or a list (1,2,4,8).
"""

_RULES = ("aic", "bic", "ebic", "gic", "cv")


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("data", metavar="DATA", help="the file of data; - is standard input (CSV)")
    add_data(parser)
    add_model(parser, k=False)
    group = parser.add_argument_group("path")
    group.add_argument("--ks", type=parse_ks, metavar="KS", help="the values of k, see below")
    add_time_limit(group, "end the path with the k done by then")
    group.add_argument(
        "--select",
        choices=_RULES,
        metavar="RULE",
        help=f"{', '.join(_RULES)} (default: ebic; cv for losses that are no likelihoods)",
    )
    group.add_argument("--folds", type=int, default=5, metavar="N", help="of cv (default: 5)")
    group.add_argument(
        "--best-mean",
        action="store_true",
        help="cv: take the best mean, not the smallest k within one standard error of it",
    )
    group.add_argument("--seed", type=int, default=0, help="of the folds (default: 0)")
    output = parser.add_argument_group("output")
    output.add_argument(
        "--table", type=output_file, metavar="FILE", help="k, objective, score, support: .csv"
    )
    output.add_argument("--json", action="store_true", help="print JSON instead of text")
    add_overwrite(output)


def run(arguments: argparse.Namespace) -> int:
    """Follow the path and choose."""
    if arguments.ks is None:
        raise UsageError("Say which k to try with --ks, for example --ks 1:20.")
    output: File | None = arguments.table
    if output is not None:
        if output.suffix.lower() != ".csv":
            raise UsageError(f"--table {output}: the name must end in .csv.")
        check_free(output, overwrite=arguments.overwrite, data=arguments.data)
    data = read(arguments.data, arguments)
    declared = declare(data, arguments, arguments.ks[-1])
    path = declared.problem.path(arguments.ks, time_limit=arguments.time_limit)
    rule = arguments.select or ("ebic" if _is_likelihood(arguments.loss) else "cv")
    if rule == "cv":
        chosen = path.cross_validate(
            folds=arguments.folds,
            one_standard_error=not arguments.best_mean,
            seed=arguments.seed,
        )
    else:
        chosen = path.select(rule)
    if output is not None:
        write_text(output, _as_csv(path, chosen), overwrite=arguments.overwrite)
    if arguments.json:
        print(to_json(_record(declared.classes, path, chosen)))
        return Exit.OK
    for note in data.notes:
        print(f"note: {note}")
    if path.stop.requested:
        print(f"note: the path ends at k = {int(path.k[-1])}: {path.stop.value}")
    print(_as_text(path, chosen))
    print(f"\n{chosen}")
    width = max((len(name) for name in chosen.coefficients), default=0)
    for name, value in plain_coefficients(chosen.coefficients).items():
        shown = value if isinstance(value, list) else [value]
        print(f"  {name:<{width}}  {'  '.join(f'{v:.6g}' for v in shown)}")
    if output is not None:
        print(f"table: {output}")
    return Exit.OK


def parse_ks(text: str) -> list[int]:
    """Return the values of ``1:20`` (both ends), ``0:50:5`` or ``1,2,4``, sorted.

    >>> parse_ks("1:4"), parse_ks("0:10:5"), parse_ks("8,2")
    ([1, 2, 3, 4], [0, 5, 10], [2, 8])
    """
    try:
        if ":" in text:
            first, last, *step = (int(part) for part in text.split(":"))
            values = list(range(first, last + 1, *step))
        else:
            values = [int(part) for part in text.split(",")]
    except (TypeError, ValueError):
        values = []
    if not values or min(values) < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a range such as 1:20 or a list 1,2,4")
    return sorted(set(values))


def _is_likelihood(loss: str) -> bool:
    return loss in ("squared", "logistic", "multinomial", "poisson", "gamma")


def _steps(path: Any) -> list[tuple[list[str], list[str]]]:
    """Return what enters and what leaves at every k."""
    out, last = [], set[str]()
    for support in path.support:
        names = [str(name) for name in support]
        out.append(([n for n in names if n not in last], sorted(last.difference(names))))
        last = set(names)
    return out


def _as_text(path: Any, chosen: Any) -> str:
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
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["k", "objective", "score", "chosen", "support"])
    for place, support in enumerate(path.support):
        k = int(path.k[place])
        names = " ".join(str(name) for name in support)
        row = [k, repr(float(path.objective[place])), repr(float(chosen.scores[place]))]
        writer.writerow([*row, int(k == chosen.k), cell(names)])
    return text.getvalue()


def _record(classes: tuple[str, ...], path: Any, chosen: Any) -> dict[str, Any]:
    return {
        "command": NAME,
        "version": __version__,
        "classes": list(classes),
        "k": [int(k) for k in path.k],
        "objective": [float(v) for v in path.objective],
        "support": [[str(name) for name in support] for support in path.support],
        "passes": float(path.passes),
        "stop": path.stop.value,
        "rule": chosen.chosen_by,
        "scores": [float(v) for v in chosen.scores],
        "chosen": {
            "k": chosen.k,
            "objective": float(chosen.value),
            "support": [str(name) for name in chosen.support],
            "coefficients": plain_coefficients(chosen.coefficients),
        },
    }


__all__ = ["add", "parse_ks", "run"]
