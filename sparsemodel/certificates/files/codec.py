"""Dataclasses as JSON values and back, by the types of their fields.

What is read is not trusted: every value is checked against the type that its field declares, and
an error names the line it stands in. Floats that are not finite are written as texts, arrays of
floats packed (:mod:`~sparsemodel.certificates.files.packing`). A dataclass may list in ``LINES``
what is written of it, in which order: properties among them follow from the fields, so they are
written and not read. Lines in ``NEWER`` are left out where there is nothing, as in files that were
written before they were thought of.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from sparsemodel.certificates.files.packing import pack, unpack
from sparsemodel.interfaces import CertificateError, FloatArray, IntArray

_WORDS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_KINDS: dict[Any, tuple[Any, str]] = {
    str: (str, "a text"),
    bool: (bool, "true or false"),
    int: (int, "a whole number"),
    float: ((int, float), "a number"),
}


def encode(value: Any) -> Any:
    """Return a value as JSON can hold it."""
    if is_dataclass(value):
        return lines_of(value, getattr(value, "LINES", [field.name for field in fields(value)]))
    if isinstance(value, np.ndarray):
        return pack(value) if value.dtype.kind == "f" else value.tolist()
    if isinstance(value, dict):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if isinstance(value, (Enum, np.generic)):
        return encode(value.value if isinstance(value, Enum) else value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value


def lines_of(value: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return what is named of an object as JSON values by name."""
    newer = getattr(value, "NEWER", ())
    found = {name: getattr(value, name) for name in names}
    return {name: encode(v) for name, v in found.items() if v is not None or name not in newer}


def decode(kind: Any, value: Any, where: str) -> Any:
    """Return a JSON value as the type ``kind``, from line ``where`` of a file.

    Raises
    ------
    CertificateError
        When it is none; the message names the line and says what it must be.
    """
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin in (Union, UnionType):
        return _any_of(inner, value, where)
    if kind == FloatArray:
        return unpack(value, where)
    if kind == IntArray:
        return np.array(decode(tuple[int, ...], value, where), dtype=np.int64)
    if kind in _KINDS:
        return _plain(kind, value, where)
    if origin is tuple:
        items = _checked(value, list, "a list", where)
        return tuple(decode(inner[0], item, f"{where}[{i}]") for i, item in enumerate(items))
    if origin is dict:
        items = _checked(value, dict, "an object", where)
        return {
            _key(inner[0], key, where): decode(inner[1], item, f"{where}.{key}")
            for key, item in items.items()
        }
    if is_dataclass(kind):
        return kind(**read_lines(kind, value, where))  # type: ignore[operator]
    if issubclass(kind, Enum):
        return _word(kind, value, where)
    if issubclass(kind, tuple):  # a NamedTuple, written as a list
        types = get_type_hints(kind)
        items = _checked(value, list, "a list", where)
        if len(items) != len(types):
            raise CertificateError(f"line '{where}' is not [{', '.join(types)}].")
        return kind(
            *(decode(t, v, f"{where}.{n}") for (n, t), v in zip(types.items(), items, strict=True))
        )
    raise TypeError(f"no line of a file is a {kind}")


def read_lines(
    kind: Any, body: Any, where: str, *, only: Iterable[str] | None = None
) -> dict[str, Any]:
    """Return the fields of the dataclass ``kind`` that an object holds, each of its type.

    ``only`` are the names of the fields to read; None reads all. A line that is missing is an
    error unless the field has a default.
    """
    items = _checked(body, dict, "an object", where)
    found = {}
    for name, (hint, required) in _fields(kind).items():
        if only is not None and name not in only:
            continue
        line = f"{where}.{name}" if where else name
        if name in items:
            found[name] = decode(hint, items[name], line)
        elif required:
            raise CertificateError(f"line '{line}' is missing.")
    return found


@cache
def _fields(kind: Any) -> dict[str, tuple[Any, bool]]:
    """Return the fields of a dataclass: their types, and whether they have no default."""
    hints = get_type_hints(kind)
    return {
        field.name: (
            hints[field.name],
            field.default is MISSING and field.default_factory is MISSING,
        )
        for field in fields(kind)
    }


def _checked(value: Any, kind: Any, words: str, where: str) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise CertificateError(f"line '{where}' must be {words}.")
    return value


def _plain(kind: Any, value: Any, where: str) -> Any:
    if kind is float and isinstance(value, str) and value in _WORDS:
        return _WORDS[value]
    return kind(_checked(value, *_KINDS[kind], where))


def _any_of(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and NoneType in kinds:
        return None
    kinds = tuple(kind for kind in kinds if kind is not NoneType)
    for kind in kinds[:-1]:
        try:
            return decode(kind, value, where)
        except CertificateError:
            continue
    if len(kinds) == 1 or isinstance(value, _KINDS[kinds[-1]][0]):
        return decode(kinds[-1], value, where)
    words = " or ".join(_KINDS[kind][1] for kind in kinds)
    raise CertificateError(f"line '{where}' must be {words}.")


def _key(kind: Any, key: str, where: str) -> Any:
    if kind is not int:
        return key
    if not key.isdecimal():
        raise CertificateError(f"line '{where}' has the entry {key!r}, which is no whole number.")
    return int(key)


def _word(kind: type[Enum], value: Any, where: str) -> Enum:
    words = [member.value for member in kind]
    if value not in words:
        known = ", ".join(map(repr, words))
        raise CertificateError(f"line '{where}' says {value!r}; it must be one of {known}.")
    return kind(value)
