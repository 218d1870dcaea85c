"""Options that several commands share: which data, which model, how to run, which outputs."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, make_dataclass, replace
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, final, get_args

from sparsemodel.cli.declaring import flag, option, part
from sparsemodel.cli.exits import UsageError
from sparsemodel.cli.files import check_free
from sparsemodel.cli.reading import FORMATS, Columns, Table, read_table
from sparsemodel.compiler.choice.effort import Effort
from sparsemodel.designs.tables.encoding import Encoding
from sparsemodel.interfaces import ModelError, TargetKind
from sparsemodel.losses import SmoothedPinballLoss
from sparsemodel.registry import builtin_loss_classes, loss_class
from sparsemodel.selection.weights import WeightsAre

if TYPE_CHECKING:
    from sparsemodel.modelling import Problem, Solution

DATA = "the file of data; - is standard input (CSV)"


# ---- what values may be ----------------------------------------------------------------------


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


def count(text: str) -> int:
    """Return a whole number, 0 or more."""
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, 0 or more")
    return number


def positive(text: str) -> float:
    """Return a number above 0."""
    number = nonnegative(text)
    if number == 0.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not positive")
    return number


def nonnegative(text: str) -> float:
    """Return a number, 0 or more."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0.0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number, 0 or more")
    return number


def ks_of(text: str) -> list[int]:
    """Return the values of ``1:20`` (both ends), ``0:50:5`` or ``1,2,4``, sorted.

    >>> ks_of("1:4"), ks_of("0:10:5"), ks_of("8,2")
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


def ridges_of(text: str) -> list[float]:
    """Return the numbers of a list such as ``0.001,0.1,1``, sorted.

    >>> ridges_of("1,0.1")
    [0.1, 1.0]
    """
    return sorted({nonnegative(part) for part in text.split(",")})


def loss_name(text: str) -> str:
    """Return the name of a loss, which is there; found out before any data are read."""
    try:
        loss_class(text)
    except ModelError as error:  # no such loss, or a broken plug-in
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


# ---- what several commands ask for -----------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TargetOptions:
    """Which column is predicted, and how much each row counts."""

    target: str | None = option(
        "the column to predict, by name or number (from 1; -1 is the last); text is read as "
        "classes",
        metavar="COLUMN",
    )
    weights: str | None = option("nonnegative weights of the observations", metavar="COLUMN")
    weights_are: str = option(
        "what they are: precision (one over a variance), frequency (a weight of three is three "
        "equal rows) or sampling (one over the chance to be in the data) (default: precision)",
        choices=get_args(WeightsAre),
        default="precision",
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FileOptions:
    """How a file of data is read, and which columns of it are used."""

    format: str | None = option(
        f"{', '.join(FORMATS)} (default: from the file extension)",
        metavar="FORMAT",
        choices=FORMATS,
    )
    features: tuple[str, ...] | None = option(
        "the only columns to use, separated by commas (default: all others)",
        metavar="COLUMNS",
        kind=_listed,
    )
    drop: tuple[str, ...] = option(
        "columns to leave out", metavar="COLUMNS", kind=_listed, default=()
    )
    missing: str = option(
        "missing values: raise an error, drop the rows, or fill in the mean (for text the most "
        "frequent value) (default: error)",
        choices=("error", "drop", "mean"),
        default="error",
    )
    delimiter: str | None = option("CSV: separator of fields", metavar="CHAR", kind=_character)
    matrix: str | None = option("npz: the array of features (default: X)", metavar="NAME")
    max_gigabytes: float = option(
        "refuse larger files, unpacked size included (default: 8)",
        metavar="GB",
        kind=positive,
        default=8.0,
    )

    def read(
        self, path: str, target: TargetOptions | None = None, encoding: Encoding | None = None
    ) -> Table:
        """Read the table; ``target`` is None where every column is a feature."""
        columns = Columns(
            target=None if target is None else target.target,
            needs_target=target is not None,
            weights=None if target is None else target.weights,
            drop=self.drop,
            keep=self.features,
            matrix=self.matrix,
            missing=self.missing,
            encoding=encoding,
            delimiter=self.delimiter,
            max_bytes=int(self.max_gigabytes * 1e9),
        )
        table = read_table(path, columns, kind=self.format)
        return table if target is None else replace(table, weights_are=target.weights_are)


_LOSSES = {
    name: kind
    for name, kind in builtin_loss_classes().items()
    if kind.target_kind is not TargetKind.TIMES  # a table has one column of targets
    and kind is not SmoothedPinballLoss  # what losses with kinks are smoothed to
}


def _loss_parameters() -> Iterator[tuple[str, Any, Any]]:
    """Yield an option for every numerical parameter of the losses, as a field of a dataclass."""
    owners: dict[str, list[str]] = {}
    for loss, kind in _LOSSES.items():
        for spec in fields(kind):  # type: ignore[arg-type]
            if isinstance(spec.default, float):
                owners.setdefault(spec.name, []).append(loss)
    for name, losses in sorted(owners.items()):
        kind = _LOSSES[losses[0]]
        text = re.search(rf"^(?:\w+, )*{name}\b.*\n +([^;:.]*)", getdoc(kind) or "", re.MULTILINE)
        meaning = text[1].replace("``", "") if text else name
        meaning = f"{meaning[0].lower()}{meaning[1:]} (default: {getattr(kind(), name):g})"
        yield (
            name,
            float | None,
            option(
                f"of --loss {' or '.join(losses)}: {meaning}",
                metavar=name.upper(),
                kind=float,
            ),
        )


if TYPE_CHECKING:
    LossParameters: TypeAlias = Any
else:
    LossParameters = make_dataclass("LossParameters", _loss_parameters(), frozen=True, kw_only=True)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """The loss, the ridge and the constraints of a regression, but for k."""

    loss: str | None = option(
        f"the loss: {', '.join(_LOSSES)}, or that of a plug-in (default: squared; for a target of "
        "text logistic with two classes, multinomial with more)",
        metavar="LOSS",
        kind=loss_name,
    )
    parameters: LossParameters = part("model")
    ridge: float = option(
        "weight of the penalty (LAMBDA/2) * sum of s_j^2 w_j^2 with s_j the standard deviation of "
        "column j (to three digits), so that units do not matter (default: 0.001)",
        metavar="LAMBDA",
        kind=nonnegative,
        default=1e-3,
    )
    plain_ridge: bool = flag("take s_j = 1 for every loss: (LAMBDA/2) * ||w||^2")
    no_intercept: bool = flag("fit no intercept")
    always: tuple[str, ...] = option(
        "columns that are always in the model and not counted",
        metavar="COLUMNS",
        kind=_listed,
        default=(),
    )
    group_prefix: str | None = option(
        "columns whose names agree up to SEP (colour=red, colour=blue) count as one feature; the "
        "categories of a text column always do",
        metavar="SEP",
    )
    lower: float | None = option("lower bound of all coefficients", metavar="L", kind=float)
    upper: float | None = option("upper bound of all coefficients", metavar="U", kind=float)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionOptions:
    """What defines a regression problem, given its data."""

    columns: TargetOptions = part("data")
    file: FileOptions = part("data")
    k: int | None = option(
        "at most this many coefficients are nonzero", metavar="K", kind=count, group="model"
    )
    model: ModelOptions = part("model")

    def limit(self) -> int:
        """Return k, or raise an error that asks for it."""
        if self.k is None:
            raise UsageError("Say how many coefficients may be nonzero with --k.")
        return self.k


def effort_option() -> Any:
    """Declare ``--effort``."""
    return option(
        "how long the search continues without improvement (default: medium)",
        choices=("low", "medium", "high"),
        default="medium",
    )


def model_option() -> Any:
    """Declare ``--model``."""
    return option(
        "write the model for `sparsemodel predict`: .json", metavar="FILE", kind=output_file
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How to solve."""

    backend: str | None = option(
        "algorithm, see `sparsemodel backends` (default: chosen automatically)", metavar="NAME"
    )
    effort: Effort = effort_option()
    time_limit: float | None = option(
        "stop after this time and return the best model found", metavar="SECONDS", kind=positive
    )
    seed: int = option("seed of randomised backends", kind=count, default=0)
    verbose: bool = flag("write to the error stream what each stage does")

    def solve(self, problem: Problem, start: Any = None) -> Solution:
        """Solve a problem as the options say."""
        return problem.solve(
            self.backend,
            start=start,
            effort=self.effort,
            seed=self.seed,
            time_limit=self.time_limit,
            verbose=self.verbose,
        )


class OutputFile(NamedTuple):
    """A file to be written, by the option that names it."""

    option: str
    path: Path | None
    endings: tuple[str, ...]
    needs_certificate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions:
    """What is written and printed about a solution; a command adds files of its own."""

    report: Path | None = option(
        "write a report: .html, .md or .txt", metavar="FILE", kind=output_file
    )
    certificate: Path | None = option(
        "write the certificate for `sparsemodel verify`: .json", metavar="FILE", kind=output_file
    )
    no_certificate: bool = flag("do not compute a certificate (faster)")
    json: bool = flag("print JSON instead of text")
    overwrite: bool = flag("replace output files that exist already")

    def files(self) -> tuple[OutputFile, ...]:
        """Return the files that may be asked for."""
        return (
            OutputFile("--report", self.report, (".html", ".htm", ".md", ".txt"), True),
            OutputFile("--certificate", self.certificate, (".json",), True),
        )

    def named(self) -> list[tuple[str, str]]:
        """Return the files that are asked for, each with what is in it."""
        files = [file for file in self.files() if file.path is not None]
        return [(file.option.removeprefix("--"), str(file.path)) for file in files]

    def check(self, data: str) -> None:
        """Refuse before the work what would fail after it."""
        check_outputs(
            self.files(), overwrite=self.overwrite, data=data, certified=not self.no_certificate
        )


def check_outputs(
    outputs: Iterable[OutputFile], *, overwrite: bool, data: str, certified: bool = False
) -> None:
    """Refuse before the work what would fail after it."""
    wanted: dict[str, str] = {}
    for name, path, endings, needs_certificate in outputs:
        if path is None:
            continue
        if path.suffix.lower() not in endings:
            raise UsageError(f"{name} {path}: the name must end in {' or '.join(endings)}.")
        if needs_certificate and not certified:
            raise UsageError(f"{name} needs the certificate that --no-certificate leaves out.")
        check_free(path, overwrite=overwrite, data=data)
        real = os.path.realpath(path)
        if real in wanted:
            raise UsageError(f"{name} and {wanted[real]} name the same file.")
        wanted[real] = name
