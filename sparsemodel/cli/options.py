"""Options that several commands share: which data, which model, which outputs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from sparsemodel.cli.reading import FORMATS, Columns, Table, read_table

LOSSES = {
    "squared": "SquaredLoss",
    "logistic": "LogisticLoss",
    "multinomial": "MultinomialLoss",
    "poisson": "PoissonLoss",
    "gamma": "GammaLoss",
    "huber": "HuberLoss",
    "absolute": "AbsoluteLoss",
    "quantile": "QuantileLoss",
    "hinge": "HingeLoss",
    "smoothed-hinge": "SmoothedHingeLoss",
    "squared-hinge": "SquaredHingeLoss",
}
"""Losses of the command line, with their classes in ``sparsemodel.losses``."""


def add_data(parser: argparse.ArgumentParser, *, target: bool = True) -> None:
    """Declare which columns of which file are meant."""
    group = parser.add_argument_group("data")
    group.add_argument(
        "--format",
        choices=FORMATS,
        metavar="FORMAT",
        help=f"{', '.join(FORMATS)} (default: by the ending of the name)",
    )
    if target:
        group.add_argument(
            "--target",
            metavar="COLUMN",
            help="the column to predict, by name or number (from 1; -1 is the last); text is "
            "read as classes, for the losses of classification",
        )
        group.add_argument(
            "--weights", metavar="COLUMN", help="nonnegative weights of the observations"
        )
    group.add_argument(
        "--features",
        metavar="COLUMNS",
        type=_listed,
        help="the only columns to use, separated by commas (default: all others)",
    )
    group.add_argument(
        "--drop", metavar="COLUMNS", type=_listed, default=(), help="columns to leave out"
    )
    group.add_argument(
        "--missing",
        choices=("error", "drop"),
        default="error",
        help="what to do with rows that have missing values (default: error)",
    )
    group.add_argument("--delimiter", metavar="CHAR", type=_character, help="CSV: between fields")
    group.add_argument("--matrix", metavar="NAME", help="npz: the array of features (default: X)")
    group.add_argument(
        "--max-gigabytes",
        metavar="GB",
        type=_positive,
        default=8.0,
        help="refuse larger files, unpacked size included (default: 8)",
    )


def add_model(parser: argparse.ArgumentParser, *, k: bool = True) -> None:
    """Declare the loss, the ridge and the constraints."""
    group = parser.add_argument_group("model")
    if k:
        group.add_argument(
            "--k", type=_count, metavar="K", help="at most this many coefficients are nonzero"
        )
    group.add_argument(
        "--loss",
        choices=LOSSES,
        metavar="LOSS",
        default="squared",
        help=f"how errors count: {', '.join(LOSSES)} (default: squared)",
    )
    group.add_argument(
        "--tau", type=float, metavar="T", help="the quantile of --loss quantile (default: 0.5)"
    )
    group.add_argument(
        "--delta", type=_positive, metavar="D", help="where --loss huber becomes linear"
    )
    group.add_argument(
        "--ridge",
        type=_nonnegative,
        metavar="LAMBDA",
        default=1e-3,
        help="weight of (LAMBDA/2) * sum of s_j^2 w_j^2 with s_j the standard deviation of column "
        "j (to three digits), so that units do not matter (default: 0.001); bounds need it > 0",
    )
    group.add_argument(
        "--plain-ridge", action="store_true", help="take s_j = 1: (LAMBDA/2) * ||w||^2"
    )
    group.add_argument("--no-intercept", action="store_true", help="no constant term")
    group.add_argument(
        "--always",
        metavar="COLUMNS",
        type=_listed,
        default=(),
        help="columns that are always in the model and not counted",
    )
    group.add_argument(
        "--group-prefix",
        metavar="SEP",
        help="columns whose names agree up to SEP (colour=red, colour=blue) count as one",
    )
    group.add_argument("--lower", type=float, metavar="L", help="no coefficient below this")
    group.add_argument("--upper", type=float, metavar="U", help="no coefficient above this")


def add_run(parser: argparse.ArgumentParser) -> None:
    """Declare how to solve."""
    group = parser.add_argument_group("run")
    group.add_argument(
        "--backend", metavar="NAME", help="see `sparsemodel backends` (default: the compiler's)"
    )
    add_time_limit(group, "return the best found by then")
    group.add_argument("--seed", type=_count, default=0, help="of backends that draw numbers")
    group.add_argument(
        "--quiet", action="store_true", help="no progress on the terminal's error stream"
    )


def add_time_limit(group: argparse._ArgumentGroup, meaning: str) -> None:
    """Declare ``--time-limit``."""
    group.add_argument("--time-limit", type=_positive, metavar="SECONDS", help=meaning)


def add_overwrite(parser: argparse._ArgumentGroup) -> None:
    """Declare ``--overwrite``."""
    parser.add_argument(
        "--overwrite", action="store_true", help="replace output files that exist already"
    )


def read(path: str, arguments: argparse.Namespace) -> Table:
    """Read the table that the data options describe."""
    columns = Columns(
        target=getattr(arguments, "target", None),
        needs_target=hasattr(arguments, "target"),
        weights=getattr(arguments, "weights", None),
        drop=arguments.drop,
        keep=arguments.features,
        matrix=arguments.matrix,
        drop_missing=arguments.missing == "drop",
        delimiter=arguments.delimiter,
        max_bytes=int(arguments.max_gigabytes * 1e9),
    )
    return read_table(path, columns, kind=arguments.format)


def recorded(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> list[str]:
    """Return the options of ``parser`` that differ from their defaults, as a command line.

    This is how a certificate remembers which problem it is about.
    """
    line: list[str] = []
    for action in parser._actions:
        value: Any = getattr(arguments, action.dest, None)
        if not action.option_strings or value is None or value == action.default:
            continue
        option = action.option_strings[-1]
        if action.nargs == 0:
            line.append(option)
        else:
            shown = ",".join(value) if isinstance(value, tuple) else str(value)
            line.append(f"{option}={shown}")
    return line


def output_file(text: str) -> Path:
    """Return a path; the type of options that name outputs."""
    if not text:
        raise argparse.ArgumentTypeError("the name of a file is empty")
    if "\0" in text:
        raise argparse.ArgumentTypeError("the name of a file has a null character")
    return Path(text)


def _listed(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of columns such as age,income")
    return names


def _character(text: str) -> str:
    character = {"\\t": "\t", "tab": "\t"}.get(text, text)
    if len(character) != 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not one character (or `tab`)")
    return character


def _count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, 0 or more")
    return number


def _positive(text: str) -> float:
    number = _nonnegative(text)
    if number == 0.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not positive")
    return number


def _nonnegative(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0.0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number, 0 or more")
    return number


__all__ = [
    "LOSSES",
    "add_data",
    "add_model",
    "add_overwrite",
    "add_run",
    "output_file",
    "read",
    "recorded",
]
