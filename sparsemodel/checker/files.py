"""What is read: the certificate, and the reader's data; and what is printed.

A certificate is JSON with nothing twice, a digest that fits, and packed arrays. The reader's arrays
may have any names: each is found again by its fingerprint.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np


class Refuted(Exception):
    """Something that the certificate says is not so."""


class NotChecked(Exception):
    """Something that cannot be checked with what there is."""


def require(holds: Any, words: str) -> None:
    """Raise :class:`Refuted` with these words unless it holds."""
    if not holds:
        raise Refuted(words + ".")


FORMATS = ("sparsemodel-certificate", "sparsemodel-precision-certificate")
_UNCOMPARED = {"bound_method", "bound_reason", "method", "active", "assumptions", "allowance"}
_UNCOMPARED |= {"digest", "recipe", "writer"}  # the writer's own words, as the report says
_WHOLE = {"coefficients", "names", "tree"}  # compared as they are, or not all needed


class Lines(dict[str, Any]):
    """An object of the file, which knows the lines that somebody has read."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.seen = set[str]()
        if len(self) < len(pairs):
            raise ValueError("a line is there twice")

    def __getitem__(self, key: str) -> Any:
        self.seen.add(key)
        require(key in self, f"line '{key}' is missing")
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Return a line that may be missing."""
        self.seen.add(key)
        return super().get(key, default)


def unread(item: Any, at: str = "") -> list[str]:
    """Return the lines that nobody has read, and that the report does not say so of."""
    if isinstance(item, list):
        return [line for i, inner in enumerate(item) for line in unread(inner, f"{at}[{i}]")]
    if not isinstance(item, Lines):
        return []
    known = item.seen if at else item.seen | _UNCOMPARED
    out = [f"{at}.{key}" for key in item if key not in known]
    for key in item.keys() & item.seen - _WHOLE:
        out += unread(item.get(key), f"{at}.{key}")
    return out


def read(path: str) -> dict[str, Any]:
    """Return the certificate in a file; only its form has been looked at."""
    try:
        _regular(path)
        with open(path, encoding="utf-8") as stream:
            body: dict[str, Any] = json.load(
                stream, object_pairs_hook=Lines, parse_constant=_no_constant
            )
    except OSError as error:
        raise NotChecked(f"{path} cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise Refuted(f"{path} is not a certificate: {error}") from None
    known = isinstance(body, dict) and body.get("format") in FORMATS
    require(known, f"{path} is not a certificate: line 'format' says something else")
    if body.get("version") != 2:
        raise NotChecked(f"files of version {body.get('version')!r}; this checker reads version 2")
    kept = {key: value for key, value in body.items() if key != "digest"}
    text = json.dumps(kept, sort_keys=True, separators=(",", ":"), allow_nan=False)
    fits = body.get("digest") == hashlib.sha256(text.encode()).hexdigest()
    require(fits, "line 'digest' does not fit: the file was changed or damaged")
    if body["problem"].get("numbers") is None:
        raise NotChecked("line 'problem.numbers' is missing: weights, ridge and bounds are in it")
    return body


def _regular(path: str) -> None:
    """A pipe or a device may give text for ever."""
    if not Path(path).is_file() and Path(path).exists():
        raise NotChecked(f"{path} is not a regular file")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def real(value: Any) -> float:
    """Return a number of the file; the texts inf, -inf and nan stand for themselves."""
    if isinstance(value, str) and value in ("inf", "-inf", "nan"):
        return float(value)
    fits = isinstance(value, (int, float)) and not isinstance(value, bool)
    require(fits, f"{value!r} stands where a number must be")
    return float(value)


def whole(value: Any) -> int:
    """Return a whole number of the file."""
    fits = type(value) is int and abs(value) <= 2**62
    require(fits, f"{value!r} stands where a whole number must be")
    return int(value)


def numbers(values: Any) -> Any:
    """Return an array of the numbers in a list."""
    found = np.array(values)
    require(found.dtype.kind in "fiu", "a text stands where a number must be")
    return found.astype(np.float64)


def array(item: Any) -> Any:
    """Return a packed array, None for null: base64 of float64, or one number for all entries."""
    if item is None:
        return None
    shape, values, positions = _packed(item)
    if "every" in item:
        return np.broadcast_to(values, shape)  # takes no memory before its shape is looked at
    if positions is None:
        return values.reshape(shape).astype(np.float64)
    out = np.zeros(math.prod(shape))
    out[positions] = values
    return out.reshape(shape)


def _packed(item: Any) -> tuple[tuple[int, ...], Any, Any]:
    """Return the shape of a packed array, its numbers, and the positions of those, if it has any.

    Without positions the numbers are all entries, or the one that all entries are.
    """
    shape = tuple(whole(s) for s in item["shape"])
    size = math.prod(shape)
    require(min(shape, default=0) >= 0 and size <= 2**28, f"an array of shape {shape}")
    if "every" in item:
        return shape, np.array(real(item["every"])), None
    values = np.frombuffer(base64.b64decode(item["values"], validate=True), dtype="<f8")
    if "positions" not in item:
        return shape, values, None
    positions = np.frombuffer(base64.b64decode(item["positions"], validate=True), dtype="<i8")
    require(np.all((positions >= 0) & (positions < size)), "an array has no such positions")
    return shape, values, positions


def vector(item: Any, shape: tuple[int, ...], what: str, least: float = -math.inf) -> Any:
    """Return a packed array of finite numbers, none below ``least``, that has this shape."""
    values = array(item)
    fits = values is not None and values.shape == shape and np.all(np.isfinite(values))
    require(fits and not np.any(values < least), f"the {what} do not fit the problem")
    return values


def index(item: Any, size: int) -> Any:
    """Return a list of different indices below ``size``, or a range ``from .. to``."""
    if isinstance(item, dict):
        first, last = whole(item["from"]), whole(item["to"])
        require(first >= 0 and last <= size, "an index does not exist")  # before there are as many
        out = np.arange(first, last)
    else:
        out = np.array([whole(i) for i in item], dtype=np.int64)
    require(np.unique(out).size == out.size, "an index appears twice")
    require(np.all((out >= 0) & (out < size)), "an index does not exist")
    return out


class Data:
    """Arrays by name, with names of their columns where a file gives them."""

    def __init__(self, paths: list[str]) -> None:
        """Load ``.npz``, ``.npy`` and ``.csv`` files (sparse ``.npz`` as well)."""
        self.arrays, self.headers = dict[str, Any](), dict[str, list[str]]()
        loaders = {".npz": _npz, ".npy": _npy, ".csv": _csv}
        for path in paths:
            if Path(path).suffix.lower() not in loaders:
                raise NotChecked(f"{path}: data must be .npz, .npy or .csv files")
            try:
                _regular(path)
                for name, values in loaders[Path(path).suffix.lower()](path):
                    if isinstance(values, list):
                        self.headers[name] = values
                    elif np.ndim(values) in (1, 2):
                        self.arrays[name] = np.asarray(values, dtype=np.float64)
            except (MemoryError, NotChecked):
                raise
            except Exception as error:  # noqa: BLE001 - whatever a damaged archive or table raises
                why = "no arrays of numbers" if "pickle" in str(error) else error
                raise NotChecked(f"{path}: it cannot be read ({why})") from None
        if not self.arrays:
            raise NotChecked("there are no arrays of numbers in the data")

    def matrix(self, print_: str, rows: int, columns: int) -> tuple[str, Any]:
        """Return the matrix with that fingerprint, and its name."""
        if print_ == f"ones:{rows}" and columns == 1:
            return "a column of ones", np.ones((rows, 1))
        for name, values in self.arrays.items():
            found = values[:, None] if values.ndim == 1 else values
            if found.shape == (rows, columns) and of_matrix(print_, found):
                return name, found
        shapes = ", ".join(f"{name} {v.shape}" for name, v in self.arrays.items())
        raise NotChecked(
            f"none of your arrays ({shapes}) is the certificate's matrix ({rows} rows, {columns} "
            "columns): it is about other data, or about a matrix that was computed from yours, as "
            "for sm.card(sm.diff(w)); then give that matrix"
        )

    def vector(self, print_: str) -> tuple[str, Any]:
        """Return the target with that hash, and how it was found."""
        for name, values in self.arrays.items():
            flat = values.ravel() if values.ndim == 2 and 1 in values.shape else values
            ways = {name: values, f"{name} as a vector": flat}
            ways[f"+1 where {name} > 0, else -1"] = np.where(flat > 0.0, 1.0, -1.0)
            ways["zeros"] = np.zeros(values.shape[0])
            for label, candidate in ways.items():
                if array_hash(candidate) == print_:
                    return label, candidate
        raise NotChecked(
            "none of your arrays has the hash of the certificate's target: it is about other data, "
            "or about a target that was computed from yours; then give that target"
        )


def _npy(path: str) -> Iterator[tuple[str, Any]]:
    with open(path, "rb") as stream:
        yield Path(path).stem, np.load(stream, allow_pickle=False)


def _npz(path: str) -> Iterator[tuple[str, Any]]:
    with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        if {"format", "shape", "data"} <= set(arrays.files):
            import scipy.sparse

            if int(np.prod(arrays["shape"])) > 2**27:
                raise NotChecked(f"{path}: too large to be made dense")
            yield Path(path).stem, scipy.sparse.load_npz(path).toarray()
            return
        for key, values in arrays.items():
            yield key, values.ravel().tolist() if values.dtype.kind in "US" else values


def _csv(path: str) -> Iterator[tuple[str, Any]]:
    """Give a table; one with a header also column by column, and without each of its columns."""
    with open(path, encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.reader(stream) if row]
    header, name = list[str](), Path(path).stem
    try:
        [float(v) for row in rows[:1] for v in row]
    except ValueError:
        header, rows = rows[0], rows[1:]
    if not rows:
        raise NotChecked(f"{path}: it has no rows of numbers")
    table = np.array([[float(v) for v in row] for row in rows])
    yield from ((name, table), (name, header))
    for j, column in enumerate(header if len(header) > 1 else []):
        rest = f"{name} without {column}"
        yield from ((column, table[:, j]), (rest, np.delete(table, j, axis=1)))
        yield rest, header[:j] + header[j + 1 :]


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


def of_matrix(print_: str, matrix: Any) -> bool:
    """Return whether a fingerprint is that of a matrix: its hash, or products of random vectors."""
    if not print_.startswith("probe:"):
        return fingerprint(matrix) == print_
    rng, found = np.random.default_rng(20_180_906), list[float]()
    for _ in range(4):
        x = rng.standard_normal(matrix.shape[1])
        found.append(float(rng.standard_normal(matrix.shape[0]) @ (matrix @ x)))
    try:
        stated = np.array([float(v) for v in print_[6:].split(",")])
    except ValueError:
        return False
    size = max(float(np.abs(found).max()), 1e-300)
    return stated.size == 4 and bool(np.all(np.abs(stated - found) <= 1e-8 * size))


def array_hash(values: Any) -> str:
    """Return the SHA-256 of the shape and the float64 entries; ``none`` for no array."""
    if values is None:
        return "none"
    values = np.ascontiguousarray(values, dtype="<f8") + 0.0
    return hashlib.sha256(repr(values.shape).encode() + values.tobytes()).hexdigest()


def said(name: str, stated: Any, found: Any) -> None:
    """Print something that holds."""
    write(f"  {name}: stated {stated}, found {found}")


def compare(name: str, stated: Any, found: Any, *, rounded: bool = False) -> None:
    """Compare two values that must be the same, but for roundings where nothing is proved."""
    fits = stated == found and isinstance(stated, bool) == isinstance(found, bool)
    fits = fits or (stated != stated and found != found)
    fits = fits or (rounded and near(stated, found, abs(found)))
    require(fits, f"line '{name}' says {stated!r}, and from the rest it is {found!r}")
    said(name, stated, found)


def write(*lines: str) -> None:
    """Print lines; what a file says moves no cursor, starts no line and is of any alphabet."""
    shown = ("".join(c if c.isprintable() else ascii(c)[1:-1] for c in line) for line in lines)
    encoding = sys.stdout.encoding or "utf-8"
    text = "".join(line + "\n" for line in shown)
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))


def near(one: float, two: float, scale: float) -> bool:
    """Return whether two numbers agree as far as two computations of what proves nothing may."""
    if one == two or (math.isnan(one) and math.isnan(two)):
        return True
    return abs(one - two) <= 1e-9 * max(scale, 1e-300) < math.inf


def told(item: Any, at: str = "") -> Iterator[str]:
    """Give what a file declares line by line, but for hashes of what is there as well."""
    if isinstance(item, dict) and isinstance(item.get("shape"), list) and len(item) < 5 and at:
        shape, values, positions = _packed(item)
        size = math.prod(shape)
        if positions is not None and positions.size < size:
            values = np.append(values, 0.0)
        ends = f"{values.min().item()!r} to {values.max().item()!r}" if size else "none"
        yield f"  {at}: {size} numbers, {ends}"
    elif isinstance(item, dict):
        for key, inner in item.items():
            yield from told(inner, f"{at}.{key}" if at else key)
    elif isinstance(item, list) and any(isinstance(inner, (dict, list)) for inner in item):
        for i, inner in enumerate(item):
            yield from told(inner, f"{at}[{i}]")
    elif isinstance(item, list):
        more = f", ... ({len(item)})" if len(item) > 12 else ""
        yield f"  {at}: {', '.join(str(inner) for inner in item[:12])}{more}"
    elif item is not None and len(str(item)) < 40:
        yield f"  {at}: {item}"
