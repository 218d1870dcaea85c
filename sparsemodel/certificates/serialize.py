"""Certificates as JSON: plain values only, floats that come back bit by bit, a checked digest.

Nothing is ever unpickled or evaluated. Arrays are written as base64 of little-endian float64
with their shape, or as positions and values where most entries are zero.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import os
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from sparsemodel.certificates.base import Certificate, Progress, Witness
from sparsemodel.certificates.claims import Assumption, Claim
from sparsemodel.certificates.coefficient_bounds.file import packed, unpacked
from sparsemodel.certificates.description import ProblemFacts, TermFacts
from sparsemodel.certificates.reading import Reader
from sparsemodel.certificates.stationarity import Stationarity
from sparsemodel.interfaces import CertificateError, FloatArray

FORMAT = "sparsemodel-certificate"
VERSION = 1
MAX_BYTES = 2**31
"""Larger files are refused unread."""


def to_dict(certificate: Certificate) -> dict[str, Any]:
    """Return a certificate as JSON-ready values; infinite floats become strings."""
    c = certificate
    body: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "claim": c.claim.value,
        "value": c.value,
        "upper": c.upper,
        "bound": c.bound,
        "gap": c.gap,
        "relative_gap": c.relative_gap,
        "allowance": c.allowance,
        "null_value": c.null_value,
        "target": c.target,
        "bound_method": c.bound_method,
        "bound_source": c.bound_source,
        "bound_reason": c.bound_reason,
        "assumptions": [asdict(a) for a in c.assumptions],
        "stationarity": asdict(c.stationarity),
        "violations": list(c.violations),
        "support": list(c.support),
        "names": {str(j): name for j, name in sorted(c.names.items())},
        "coefficients": c.coefficients,
        "problem": asdict(c.problem),
        "witness": {
            "x": pack(c.x),
            "duals": [None if a is None else pack(a) for a in c.witness.duals],
            "at": None if c.witness.at is None else pack(c.witness.at),
            "extraction": None if c.witness.extraction is None else pack(c.witness.extraction),
            "bounds": packed(c.witness.bounds, pack),
        },
        "backend": c.backend,
        "progress": [[p.seconds, p.value, p.bound, p.phase] for p in c.progress],
        "seconds": c.seconds,
        "created": c.created,
        "versions": dict(c.versions),
        "proof": c.proof,
    }
    body = plain(body)
    body["digest"] = digest(body)
    return body


def dumps(certificate: Certificate) -> str:
    """Return the JSON text of a certificate."""
    return json.dumps(to_dict(certificate), indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def digest(body: dict[str, Any]) -> str:
    """Return the SHA-256 of all entries but the digest itself, in a canonical order."""
    kept = {key: value for key, value in body.items() if key != "digest"}
    text = json.dumps(kept, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def load(path: str | os.PathLike[str]) -> Certificate:
    """Read a certificate from a JSON file, checking its structure and its digest."""
    text, name = read_text(path)
    return loads(text, where=name)


def read_text(path: str | os.PathLike[str]) -> tuple[str, str]:
    """Return the text of a certificate's file, and the name of the file."""
    file = Path(path)
    try:
        if not file.is_file() and file.exists():  # a pipe or a device may give text for ever
            raise CertificateError(f"{file.name} is not a regular file, so it is no certificate.")
        with file.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise CertificateError(
                f"{file.name} has more than {MAX_BYTES} bytes: too large for a certificate."
            )
        return content.decode("utf-8"), file.name
    except UnicodeDecodeError as error:
        raise CertificateError(f"{file.name} is not text, so it is not a certificate.") from error
    except OSError as error:
        raise CertificateError(f"Cannot read {file.name}: {error.strerror or error}.") from error


def loads(text: str, *, where: str = "the text") -> Certificate:
    """Return the certificate in a JSON text."""
    body = checked_body(text, FORMAT, VERSION, where=where)
    try:
        return _build(Reader(body))
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, CertificateError):
            raise CertificateError(f"{where}: {error}") from error
        raise CertificateError(f"{where} is malformed: {error}") from error


def checked_body(text: str, kind: str, version: int, *, where: str) -> dict[str, Any]:
    """Return the object in a JSON text, of the format ``kind`` and with a digest that fits."""
    try:
        body = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise CertificateError(
            f"{where} is not valid JSON ({error}); save certificates with a name ending in .json."
        ) from error
    if not isinstance(body, dict) or body.get("format") != kind:
        found = body.get("format") if isinstance(body, dict) else None
        raise CertificateError(
            f"{where} is not a {kind.replace('-', ' ')} (line 'format'"
            + (f" says {found!r})." if isinstance(found, str) else ").")
        )
    if body.get("version") != version:
        raise CertificateError(
            f"{where}: line 'version' says {body.get('version')!r}; this release reads {version}."
        )
    try:
        expected = digest(body)
    except (ValueError, RecursionError, TypeError) as error:
        raise CertificateError(f"{where}: the digest cannot be computed ({error}).") from error
    if body.get("digest") != expected:
        raise CertificateError(
            f"{where}: line 'digest' does not match the rest of the file; it was changed or "
            "damaged after it was written."
        )
    return body


def _build(r: Reader) -> Certificate:
    shape = tuple(r.at("problem").integers("shape"))
    witness = r.at("witness")
    terms = tuple(
        TermFacts(
            loss=t.string("loss"),
            parameters=t.mapping("parameters"),
            observations=t.integer("observations"),
            coordinates=t.integer("coordinates"),
            design=t.string("design"),
            target=t.string("target"),
            weights=t.string("weights"),
            offset=t.string("offset"),
            total_weight=t.number("total_weight"),
        )
        for t in r.at("problem").items("terms")
    )
    p = r.at("problem")
    problem = ProblemFacts(
        terms=terms,
        shape=shape,
        k=p.integer("k"),
        units=p.integer("units"),
        free=p.integer("free"),
        grouped=p.boolean("grouped"),
        price=p.number("price"),
        constant=p.number("constant"),
        ridge_smallest=p.number("ridge_smallest"),
        ridge_largest=p.number("ridge_largest"),
        ridge=p.string("ridge"),
        structure=p.string("structure"),
        box=p.string("box"),
        region=p.string("region"),
    )
    x = unpack(witness, "x", rows=shape[0] if shape else None)
    if x.shape != shape:
        raise CertificateError(f"line 'witness.x' has shape {x.shape}, the problem {shape}.")
    duals = witness.sequence("duals")
    if len(duals) > len(terms):
        raise CertificateError(f"line 'witness.duals' has {len(duals)} entries, not {len(terms)}.")
    certificate = Certificate(
        claim=claim_of(r.string("claim")),
        value=r.number("value"),
        upper=r.number("upper"),
        bound=r.number("bound"),
        allowance=r.number("allowance"),
        null_value=r.number("null_value"),
        target=r.number("target"),
        bound_method=r.string("bound_method"),
        bound_source=r.string("bound_source"),
        bound_reason=r.string("bound_reason"),
        assumptions=tuple(
            Assumption(a.string("text"), a.boolean("checked"), a.boolean("holds"))
            for a in r.items("assumptions")
        ),
        stationarity=_stationarity(r.at("stationarity")),
        violations=tuple(r.strings("violations")),
        x=x,
        support=tuple(r.integers("support")),
        names=_names(r, shape[0]),
        problem=problem,
        witness=Witness(
            duals=tuple(
                unpack_item(d, f"witness.duals[{i}]", rows=terms[i].observations)
                for i, d in enumerate(duals)
            ),
            at=unpack(witness, "at", rows=shape[0]) if witness.has("at") else None,
            extraction=unpack(witness, "extraction", rows=shape[0])
            if witness.has("extraction")
            else None,
            bounds=unpacked(witness.at("bounds"), unpack) if witness.has("bounds") else None,
        ),
        backend=r.string("backend"),
        progress=tuple(_progress(item, i) for i, item in enumerate(r.sequence("progress"))),
        seconds=r.number("seconds"),
        created=r.string("created"),
        versions={str(k): str(v) for k, v in r.mapping("versions").items()},
        proof=_proof(r.at("proof")) if r.has("proof") else None,
    )
    for line, found in (("gap", certificate.gap), ("relative_gap", certificate.relative_gap)):
        if r.number(line) != found:
            raise CertificateError(f"line '{line}' says {r.number(line)!r}, and it is {found!r}.")
    return certificate


def _proof(r: Reader) -> dict[str, Any]:
    kept = {"summary": r.mapping("summary")} if r.has("summary") else {"summary": {}}
    if r.has("tree"):
        kept["tree"] = r.mapping("tree")
    return r.all() | kept


def _names(r: Reader, size: int) -> dict[int, str]:
    out = {}
    for key, name in r.mapping("names").items():
        if not (key.isdecimal() and int(key) < size and isinstance(name, str)):
            raise CertificateError(f"line 'names' has the entry {key!r}: {name!r}.")
        out[int(key)] = name
    return out


def _stationarity(r: Reader) -> Stationarity:
    numbers = {f.name: r.number(f.name) for f in fields(Stationarity) if f.name != "smooth"}
    return Stationarity(smooth=r.boolean("smooth"), **numbers)


def _progress(item: Any, index: int) -> Progress:
    if not isinstance(item, list) or len(item) != 4 or not isinstance(item[3], str):
        raise CertificateError(f"line 'progress[{index}]' is not [seconds, value, bound, phase].")
    r = Reader({"a": item[0], "b": item[1], "c": item[2]}, f"progress[{index}].")
    return Progress(r.number("a"), r.number("b"), r.number("c"), item[3])


def claim_of(word: str) -> Claim:
    """Return the claim with that word."""
    try:
        return Claim(word)
    except ValueError:
        words = ", ".join(repr(c.value) for c in Claim)
        raise CertificateError(f"line 'claim' says {word!r}; it must be one of {words}.") from None


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


def plain(value: Any) -> Any:
    """Return nested values as JSON can hold them; floats that are not finite become strings."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if isinstance(value, np.generic):
        return plain(value.item())
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


__all__ = [
    "FORMAT",
    "VERSION",
    "checked_body",
    "claim_of",
    "digest",
    "dumps",
    "load",
    "loads",
    "pack",
    "plain",
    "read_text",
    "to_dict",
    "unpack",
    "unpack_item",
]
