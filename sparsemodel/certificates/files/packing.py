"""Arrays as JSON values, exactly: base64 of little-endian float64 with their shape.

Where most entries are zero, positions and values are kept.
"""

from __future__ import annotations

import base64
import binascii
import math
from typing import Any

import numpy as np

from sparsemodel.interfaces import CertificateError, FloatArray

MAX_BYTES = 2**31
"""Larger files are refused unread, and so are files whose arrays would be larger."""


def pack(array: FloatArray) -> dict[str, Any]:
    """Return an array as JSON values, exactly."""
    flat = np.ascontiguousarray(array, dtype="<f8").ravel()
    shape = [int(s) for s in array.shape]
    positions = np.flatnonzero((flat != 0.0) | np.signbit(flat))
    if 2 * positions.size < flat.size:
        return {
            "shape": shape,
            "positions": _encode(positions.astype("<i8").tobytes()),
            "values": _encode(flat[positions].tobytes()),
        }
    return {"shape": shape, "values": _encode(flat.tobytes())}


def unpack(item: Any, where: str) -> FloatArray:
    """Return a packed array; ``where`` is the line that it stands in."""
    if not isinstance(item, dict):
        raise CertificateError(f"line '{where}' must be an object.")
    shape = _shape(item.get("shape"), where)
    size = math.prod(shape)
    values = np.frombuffer(_decode(item.get("values"), f"{where}.values"), dtype="<f8")
    if item.get("positions") is None:
        if values.size != size:
            raise CertificateError(f"line '{where}' holds {values.size} numbers for {shape}.")
        return np.array(values.reshape(shape), dtype=np.float64)
    positions = np.frombuffer(_decode(item["positions"], f"{where}.positions"), dtype="<i8")
    inside = positions.size == values.size and np.all((positions >= 0) & (positions < size))
    if not inside:
        raise CertificateError(f"line '{where}.positions' does not fit the shape {shape}.")
    out = np.zeros(size)
    out[positions] = values
    return out.reshape(shape)


def announced(value: Any) -> int:
    """Return how many numbers the packed arrays in a JSON value say that they hold."""
    if isinstance(value, dict):
        if "shape" in value:
            return math.prod(_shape(value["shape"], "shape"))
        return sum(map(announced, value.values()))
    return sum(map(announced, value)) if isinstance(value, list) else 0


def _shape(value: Any, where: str) -> tuple[int, ...]:
    whole = isinstance(value, list) and all(type(s) is int and s >= 0 for s in value)
    if not whole or len(value) > 2 or math.prod(value) > MAX_BYTES // 8:
        raise CertificateError(f"line '{where}' is of an array of no shape it can have: {value!r}.")
    return tuple(value)


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _decode(text: Any, where: str) -> bytes:
    if not isinstance(text, str):
        raise CertificateError(f"line '{where}' must be a text.")
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise CertificateError(f"line '{where}' is not valid base64.") from error
    if len(data) % 8:
        raise CertificateError(f"line '{where}' does not hold whole numbers of 8 bytes.")
    return data
