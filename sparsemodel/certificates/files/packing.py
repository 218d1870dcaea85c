"""Arrays as JSON values, exactly: base64 of little-endian float64 with their shape.

Where most entries are zero, positions and values are kept.
"""

from __future__ import annotations

import base64
import binascii
import math
from typing import Any

import numpy as np

from sparsemodel.certificates.files.json_reader import Reader
from sparsemodel.interfaces import CertificateError, FloatArray

MAX_BYTES = 2**31
"""Larger files are refused unread."""


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


def unpack(r: Reader, key: str, *, rows: int | None = None) -> FloatArray:
    """Return the array under ``key``."""
    array = unpack_item(r.raw(key), r.where(key), rows=rows)
    if array is None:
        raise CertificateError(f"line '{r.where(key)}' is missing.")
    return array


def unpack_item(item: Any, where: str, *, rows: int | None = None) -> FloatArray | None:
    """Return a packed array, or None for null; ``rows`` is the length it must have."""
    if item is None:
        return None
    r = Reader(item, where + ".")
    shape = tuple(r.integers("shape"))
    size = math.prod(shape)
    if len(shape) > 2 or min(shape, default=0) < 0 or size > MAX_BYTES // 8:
        raise CertificateError(f"line '{where}.shape' is {shape}.")
    if rows is not None and shape[:1] != (rows,):
        raise CertificateError(f"line '{where}.shape' is {shape}; {rows} rows are needed.")
    values = np.frombuffer(_decode(r.string("values"), where), dtype="<f8")
    if not r.has("positions"):
        if values.size != size:
            raise CertificateError(f"line '{where}' holds {values.size} numbers for {shape}.")
        return np.array(values.reshape(shape), dtype=np.float64)
    positions = np.frombuffer(_decode(r.string("positions"), where), dtype="<i8")
    inside = positions.size == values.size and np.all((positions >= 0) & (positions < size))
    if not inside:
        raise CertificateError(f"line '{where}.positions' does not fit the shape {shape}.")
    out = np.zeros(size)
    out[positions] = values
    return out.reshape(shape)


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _decode(text: str, where: str) -> bytes:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise CertificateError(f"line '{where}' is not valid base64.") from error
    if len(data) % 8:
        raise CertificateError(f"line '{where}' does not hold whole numbers of 8 bytes.")
    return data


__all__ = ["MAX_BYTES", "pack", "unpack", "unpack_item"]
