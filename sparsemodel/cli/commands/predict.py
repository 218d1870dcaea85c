"""``sparsemodel predict``: what a model says of new rows."""

from __future__ import annotations

import csv
import io
import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np

from sparsemodel.cli.declaring import flag, option, part, positional
from sparsemodel.cli.exits import Exit
from sparsemodel.cli.files import check_free, write_text
from sparsemodel.cli.options import DATA, FileOptions, output_file
from sparsemodel.cli.printing import cell
from sparsemodel.cli.records import MODEL_FORMAT
from sparsemodel.designs.tables.encoding import Column, Encoding
from sparsemodel.interfaces import DataError, FloatArray, Likelihood, ModelError
from sparsemodel.modelling.results.predicting import Predictor
from sparsemodel.registry import loss_class

NAME = "predict"
USAGE = "predict MODEL DATA [options]"
SUMMARY = "predict new rows with a model of `solve --model` or `path --model`"
DESCRIPTION = """\
Predict the target of every row: values, means of counts and amounts, or classes with their
probabilities. Columns are found by their names; those that the model does not use may be absent.
"""
EPILOG = """\
examples:
  sparsemodel solve houses.csv --target price --k 8 --model model.json
  sparsemodel predict model.json new.csv --output predictions.csv

Categories are encoded, and missing values filled, as they were for the model (--missing mean).
"""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Which model, which rows, and where the predictions go."""

    model: Path = positional("MODEL", "the file that --model of solve or path wrote", kind=Path)
    data: str = positional("DATA", DATA)
    file: FileOptions = part("data")
    output: Path | None = option(
        "write them there (default: print them): .csv", metavar="FILE", kind=output_file
    )
    overwrite: bool = flag("replace an output file that exists already")


def run(options: Options) -> int:
    """Predict, row by row of the file."""
    if options.output is not None:
        check_free(options.output, overwrite=options.overwrite, data=options.data)
    predictor, encoding, width, indices = _opened(options.model)
    file = options.file
    if encoding is not None:
        file = replace(file, features=tuple(column.name for column in encoding.columns))
    table = file.read(options.data, encoding=encoding)
    X = table.X if encoding is not None else _by_place(table.X, width, indices, options.data)
    text = _as_csv(predictor, X)
    for note in table.notes:
        print(f"note: {note}", file=sys.stderr)
    if options.output is None:
        print(text, end="")
    else:
        write_text(options.output, text, overwrite=options.overwrite)
    return Exit.OK


def _opened(file: Path) -> tuple[Predictor, Encoding | None, int, list[int]]:
    """Return what predicts, its columns, of how many it was made, and which of them it uses."""
    try:
        body = json.loads(file.read_text(encoding="utf-8"))
        if body["format"] != MODEL_FORMAT:
            raise ValueError(f"its format is {body['format']!r}")
        columns, encoding = body["columns"], None
        if columns is not None:
            encoding = Encoding(tuple(_column(column) for column in columns))
        coefficients = np.array(body["coefficients"], dtype=np.float64)
        constant = np.array(body["constant"], dtype=np.float64)
        indices = [int(j) for j in body["indices"]]
        if len(coefficients) != len(encoding.names if encoding else indices):
            raise ValueError("its coefficients do not fit its columns")
        if not coefficients.size:
            coefficients = np.zeros((0, *constant.shape))
        classes = tuple(str(name) for name in body["classes"]) or None
        loss = loss_class(str(body["loss"]))()
        return (
            Predictor(loss, classes, coefficients, constant, None),
            encoding,
            int(body["width"]),
            indices,
        )
    except (ValueError, KeyError, TypeError, RecursionError, ModelError) as error:
        raise DataError(
            f"{file} is not a model of `sparsemodel solve --model` ({error})."
        ) from error


def _column(body: dict[str, Any]) -> Column:
    levels = body["levels"]
    return Column(
        str(body["name"]), None if levels is None else tuple(map(str, levels)), body["fill"]
    )


def _by_place(X: Any, width: int, indices: list[int], where: str) -> Any:
    """Return the used columns of a file without names; of sparse ones the last may be absent."""
    sparse = hasattr(X, "tocsc")
    if X.shape[1] != width and not (sparse and X.shape[1] < width):
        raise DataError(
            f"{where} has {X.shape[1]} columns of features, and the model was made from {width}."
        )
    if not sparse:
        return X[:, indices]
    out = np.zeros((X.shape[0], len(indices)))
    there = [place for place, j in enumerate(indices) if j < X.shape[1]]
    if there:
        out[:, there] = X.tocsc()[:, [indices[place] for place in there]].toarray()
    return out


def _as_csv(predictor: Predictor, X: FloatArray) -> str:
    """Return the predictions, and the probability of each class where the loss knows them."""
    u = X @ predictor.coefficients + predictor.constant
    header, columns = ["prediction"], [predictor.of_linear(u, "response").tolist()]
    if predictor.classes is not None and isinstance(predictor.loss, Likelihood):
        chances = predictor.of_linear(u, "probability")
        both = np.stack([1.0 - chances, chances], axis=1) if chances.ndim == 1 else chances
        header += [f"P({cell(name)})" for name in predictor.classes]
        columns += both.T.tolist()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    for first, *rest in zip(*columns, strict=True):
        shown = cell(first) if isinstance(first, str) else repr(first)
        writer.writerow([shown, *map(repr, rest)])
    return text.getvalue()
