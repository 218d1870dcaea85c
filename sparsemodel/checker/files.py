"""What is read: the certificate, and the reader's data.

A certificate is JSON with nothing twice, a digest that fits, and packed arrays. The reader's arrays
may have any names: each is found again by its fingerprint.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np


class Refuted(Exception):
    """Something that the certificate says is not so."""


class NotChecked(Exception):
    """Something that cannot be checked with what there is."""


FORMATS = ("sparsemodel-certificate", "sparsemodel-precision-certificate")


def read(path: str) -> dict[str, Any]:
    """Return the certificate in a file; only its form has been looked at."""
    try:
        with open(path, encoding="utf-8") as stream:
            body = json.load(stream, object_pairs_hook=_once, parse_constant=_no_constant)
    except OSError as error:
        raise NotChecked(f"{path} cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise Refuted(f"{path} is not a certificate: {error}") from None
    if not isinstance(body, dict) or body.get("format") not in FORMATS:
        raise Refuted(f"{path} is not a certificate: line 'format' says something else.")
    if body.get("version") != 2:
        raise NotChecked(f"files of version {body.get('version')!r}; this checker reads version 2")
    kept = {key: value for key, value in body.items() if key != "digest"}
    text = json.dumps(kept, sort_keys=True, separators=(",", ":"), allow_nan=False)
    if body.get("digest") != hashlib.sha256(text.encode()).hexdigest():
        raise Refuted("line 'digest' does not fit: the file was changed or damaged.")
    if body["problem"].get("numbers") is None:
        raise NotChecked("line 'problem.numbers' is missing: weights, ridge and bounds are in it")
    return body


class Lines(dict[str, Any]):
    """An object of the file, which knows the lines that somebody has read."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.seen = set[str]()

    def __getitem__(self, key: str) -> Any:
        self.seen.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Return a line that may be missing."""
        self.seen.add(key)
        return super().get(key, default)


WORDS = {"bound_method", "bound_reason", "method", "active", "assumptions", "allowance"}
"""What is not compared, as the report says; so are the writer's own words."""

_WHOLE = {"coefficients", "names", "tree"}
"""Objects that are compared as they are, or whose lines are not all needed."""


def unread(item: Any, at: str = "") -> list[str]:
    """Return the lines that nobody has read, and that the report does not say so of."""
    if isinstance(item, list):
        return [line for i, inner in enumerate(item) for line in unread(inner, f"{at}[{i}]")]
    if not isinstance(item, Lines):
        return []
    known = item.seen if at else item.seen | WORDS | {"digest", "recipe", "writer"}
    out = [f"{at}.{key}" for key in item if key not in known]
    for key in item.keys() & item.seen - _WHOLE:
        out += unread(item.get(key), f"{at}.{key}")
    return out


def _once(pairs: list[tuple[str, Any]]) -> Lines:
    found = Lines(pairs)
    if len(found) < len(pairs):
        raise ValueError("a line is there twice")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def real(value: Any) -> float:
    """Return a number of the file; the texts inf, -inf and nan stand for themselves."""
    if isinstance(value, str) and value in ("inf", "-inf", "nan"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Refuted(f"{value!r} stands where a number must be.")
    return float(value)


def whole(value: Any) -> int:
    """Return a whole number of the file."""
    if type(value) is not int or abs(value) > 2**62:
        raise Refuted(f"{value!r} stands where a whole number must be.")
    return value


def numbers(values: Any) -> Any:
    """Return an array of the numbers in a list."""
    found = np.array(values)
    if found.dtype.kind not in "fiu":
        raise Refuted("a text stands where a number must be.")
    return found.astype(np.float64)


def array(item: Any) -> Any:
    """Return a packed array, None for null: base64 of float64, or one number for all entries."""
    if item is None:
        return None
    shape = tuple(whole(s) for s in item["shape"])
    if min(shape, default=0) < 0 or math.prod(shape) > 2**28:
        raise Refuted(f"an array of shape {shape}.")
    if "every" in item:
        return np.full(shape, real(item["every"]))
    values = np.frombuffer(base64.b64decode(item["values"], validate=True), dtype="<f8")
    if "positions" not in item:
        return values.reshape(shape).astype(np.float64)
    positions = np.frombuffer(base64.b64decode(item["positions"], validate=True), dtype="<i8")
    if positions.size and (positions.min() < 0 or positions.max() >= math.prod(shape)):
        raise Refuted("an array has positions that do not exist.")
    out = np.zeros(math.prod(shape))
    out[positions] = values
    return out.reshape(shape)


def index(item: Any, size: int) -> Any:
    """Return a list of different indices below ``size``, or a range ``from .. to``."""
    if isinstance(item, dict):
        out = np.arange(whole(item["from"]), whole(item["to"]))
    else:
        out = np.array([whole(i) for i in item], dtype=np.int64)
    if out.ndim != 1 or np.unique(out).size != out.size:
        raise Refuted("an index appears twice.")
    if out.size and (out.min() < 0 or out.max() >= size):
        raise Refuted("an index does not exist.")
    return out


@dataclass
class Data:
    """Arrays by name, with names of their columns where a file gives them."""

    arrays: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, list[str]] = field(default_factory=dict)

    def matrix(self, print_: str, rows: int, columns: int) -> tuple[str, Any]:
        """Return the matrix with that fingerprint, and its name."""
        if print_ == f"ones:{rows}" and columns == 1:
            return "a column of ones", np.ones((rows, 1))
        if not print_.startswith("sha256:"):
            raise NotChecked("the data: the certificate is about a matrix without known entries")
        for name, values in self.arrays.items():
            found = values[:, None] if values.ndim == 1 else values
            if found.shape == (rows, columns) and fingerprint(found) == print_:
                return name, found
        shapes = ", ".join(f"{name} {v.shape}" for name, v in self.arrays.items())
        raise Refuted(
            f"none of your arrays ({shapes}) is the certificate's matrix ({rows} rows, {columns} "
            "columns): it is about other data, or about a matrix that was computed from yours."
        )

    def vector(self, print_: str) -> tuple[str, Any]:
        """Return the target with that hash, and how it was found."""
        for name, values in self.arrays.items():
            flat = values.ravel() if values.ndim == 2 and 1 in values.shape else values
            ways = {name: flat, f"+1 where {name} > 0, else -1": np.where(flat > 0.0, 1.0, -1.0)}
            ways["zeros"] = np.zeros(values.shape[0])
            for label, candidate in ways.items():
                if array_hash(candidate) == print_:
                    return label, candidate
        raise Refuted("none of your arrays has the hash of the certificate's target.")


def fingerprint(matrix: Any) -> str:
    """Return the SHA-256 of the float64 entries, in blocks of 256 rows.

    A block without zeros is hashed as it is, another one as the counts of its rows, then the
    columns and values of what is not zero.
    """
    digest = hashlib.sha256(repr(tuple(int(s) for s in matrix.shape)).encode())
    for start in range(0, matrix.shape[0], 256):
        rows = np.ascontiguousarray(matrix[start : start + 256], dtype="<f8")
        if np.all(rows):
            digest.update(b"dense" + rows.tobytes())
        else:
            digest.update(b"sparse" + (rows != 0.0).sum(axis=1).astype("<i8").tobytes())
            digest.update(np.nonzero(rows)[1].astype("<i8").tobytes() + rows[rows != 0.0].tobytes())
    return "sha256:" + digest.hexdigest()


def array_hash(values: Any) -> str:
    """Return the SHA-256 of the shape and the float64 entries; ``none`` for no array."""
    if values is None:
        return "none"
    values = np.ascontiguousarray(values, dtype="<f8") + 0.0
    return hashlib.sha256(repr(values.shape).encode() + values.tobytes()).hexdigest()


def load(paths: list[str]) -> Data:
    """Return the arrays in ``.npz``, ``.npy`` and ``.csv`` files (sparse ``.npz`` as well)."""
    data = Data()
    for path in paths:
        name, ending = Path(path).stem, Path(path).suffix.lower()
        try:
            if ending == ".npz":
                _add_npz(data, path, name)
            elif ending == ".npy":
                _add(data, name, np.load(path, allow_pickle=False))
            elif ending == ".csv":
                _add_csv(data, path, name)
            else:
                raise NotChecked(f"{path}: data must be .npz, .npy or .csv files")
        except (OSError, ValueError, KeyError) as error:
            raise NotChecked(f"{path}: it cannot be read ({error})") from None
    if not data.arrays:
        raise NotChecked("there are no arrays of numbers in the data")
    return data


def _add_npz(data: Data, path: str, name: str) -> None:
    with np.load(path, allow_pickle=False) as arrays:
        if {"format", "shape", "data"} <= set(arrays.files):
            import scipy.sparse

            if int(np.prod(arrays["shape"])) > 2**27:
                raise NotChecked(f"{path}: too large to be made dense")
            _add(data, name, scipy.sparse.load_npz(path).toarray())
            return
        for key in arrays.files:
            if arrays[key].dtype.kind in "US":
                data.headers[key] = [str(v) for v in arrays[key].ravel()]
            else:
                _add(data, key, arrays[key])


def _add_csv(data: Data, path: str, name: str) -> None:
    """Add a table; one with a header also column by column, and without each of its columns."""
    with open(path, encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.reader(stream) if row]
    header: list[str] = []
    try:
        [float(v) for v in rows[0]]
    except ValueError:
        header, rows = rows[0], rows[1:]
    table = np.array([[float(v) for v in row] for row in rows])
    _add(data, name, table)
    data.headers[name] = header
    for j, column in enumerate(header if len(header) > 1 else []):
        _add(data, column, table[:, j])
        _add(data, f"{name} without {column}", np.delete(table, j, axis=1))
        data.headers[f"{name} without {column}"] = header[:j] + header[j + 1 :]


def _add(data: Data, name: str, values: Any) -> None:
    values = np.asarray(values, dtype=np.float64)
    if values.ndim in (1, 2):
        data.arrays[name] = values


def vector(values: Any, shape: tuple[int, ...], what: str, least: float = -math.inf) -> Any:
    """Return an array of finite numbers, none below ``least``, that has the shape it must have."""
    fits = values is not None and values.shape == shape and bool(np.all(np.isfinite(values)))
    if not fits or np.any(values < least):
        raise Refuted(f"the {what} do not fit the problem.")
    return values


def in_words(values: Any) -> str:
    """Return an array in words."""
    if not values.size:
        return "none"
    return f"{values.size} numbers from {float(values.min())!r} to {float(values.max())!r}"


def listed(at: Any) -> str:
    """Return the first of some indices in words."""
    shown = ", ".join(str(int(j)) for j in at[:12])
    return f"{shown}, ... ({at.size})" if at.size > 12 else shown or "none"
