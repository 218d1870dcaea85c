"""Certificates of precision matrices as JSON, in the manner of those of regressions.

Plain values only, floats that come back bit by bit, and a digest over all of it; see
:mod:`sparsemodel.certificates.files.regression_file`. Files of the first version are read as well.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import Any

from sparsemodel.certificates.files.json_document import (
    assumptions_of,
    checked_body,
    claim_of,
    digest,
    no_other_lines,
    plain,
    read_text,
    size_of,
    versions_of,
)
from sparsemodel.certificates.files.json_reader import Reader
from sparsemodel.certificates.files.packing import MAX_BYTES, pack, unpack, unpack_item
from sparsemodel.certificates.precision_matrices.certificate_of_precision import (
    PrecisionCertificate,
    PrecisionFacts,
    PrecisionWitness,
)
from sparsemodel.certificates.statements.certificate import VERSION
from sparsemodel.interfaces import CertificateError

FORMAT = "sparsemodel-precision-certificate"
_OF_THE_WRITER = ("backend", "target", "seconds", "created", "versions")


def to_dict(certificate: PrecisionCertificate) -> dict[str, Any]:
    """Return a certificate as JSON-ready values; infinite floats become strings."""
    c = certificate
    witness = c.witness
    body: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "claim": c.claim.value,
        "value": c.value,
        "upper": c.upper,
        "bound": c.bound,
        "gap": c.gap,
        "nats_per_sample": c.nats_per_sample,
        "trivial_bound": c.trivial_bound,
        "restricted_bound": c.restricted_bound,
        "null_value": c.null_value,
        "method": c.method,
        "active": list(c.active),
        "assumptions": [asdict(a) for a in c.assumptions],
        "edges": [
            {"one": i, "other": j, "names": list(names), "partial_correlation": r}
            for (i, j), names, r in zip(c.pairs, c.edge_names(), c.correlations, strict=True)
        ],
        "problem": asdict(c.problem),
        "witness": {
            "x": pack(c.x),
            "enclosing": [pack(U) for U in witness.enclosing],
            "final": None if witness.final is None else pack(witness.final),
            "restricted": None if witness.restricted is None else pack(witness.restricted),
        },
        "writer": {
            "backend": c.backend,
            "target": c.target,
            "seconds": c.seconds,
            "created": c.created,
            "versions": dict(c.versions),
        },
    }
    body = plain(body)
    body["digest"] = digest(body)
    return body


def dumps(certificate: PrecisionCertificate) -> str:
    """Return the JSON text of a certificate."""
    return json.dumps(to_dict(certificate), indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def load(path: str | os.PathLike[str]) -> PrecisionCertificate:
    """Read a certificate from a JSON file, checking its structure and its digest."""
    text, name = read_text(path)
    return loads(text, where=name)


def loads(text: str, *, where: str = "the text") -> PrecisionCertificate:
    """Return the certificate in a JSON text."""
    body = checked_body(text, FORMAT, range(1, VERSION + 1), where=where)
    try:
        found = _build(Reader(body), body["version"])
        if found.version == 1:  # what the writer says of itself stood among the rest
            body["writer"] = {key: body.pop(key) for key in _OF_THE_WRITER}
            body["version"] = VERSION
        no_other_lines(body, to_dict(found))
        return found
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, CertificateError):
            raise CertificateError(f"{where}: {error}") from error
        raise CertificateError(f"{where} is malformed: {error}") from error


def _build(r: Reader, version: int) -> PrecisionCertificate:
    writer = r if version == 1 else r.at("writer")
    p = r.at("problem")
    problem = PrecisionFacts(
        order=p.integer("order"),
        k=p.integer("k"),
        units=p.integer("units"),
        required=p.integer("required"),
        alpha=p.number("alpha"),
        beta=p.number("beta"),
        weight=p.number("weight"),
        constant=p.number("constant"),
        samples=p.integer("samples") if p.has("samples") else None,
        structure=p.string("structure"),
        probes=_numbers(p, "probes"),
        names=tuple(p.strings("names")) if p.has("names") else None,
    )
    if not problem.weight > 0.0 or problem.order < 1:
        raise CertificateError("line 'problem' describes no precision-matrix problem.")
    if problem.names is not None and len(problem.names) != problem.order:
        raise CertificateError(f"line 'problem.names' must hold {problem.order} names.")
    w = r.at("witness")
    edges = list(r.items("edges"))
    pairs = tuple((e.integer("one"), e.integer("other")) for e in edges)
    if any(not 0 <= i < j < problem.order for i, j in pairs):
        raise CertificateError("line 'edges' names a variable that is not there.")
    x = unpack(w, "x")
    rows = x.shape[0] if x.ndim == 1 else -1
    enclosing = w.sequence("enclosing")
    if rows < 0 or rows * (len(enclosing) + 3) > MAX_BYTES // 8:
        raise CertificateError(f"line 'witness' has {len(enclosing)} matrices for x {x.shape}.")
    return PrecisionCertificate(
        claim=claim_of(r.string("claim")),
        value=r.number("value"),
        upper=r.number("upper"),
        bound=r.number("bound"),
        trivial_bound=r.number("trivial_bound"),
        restricted_bound=r.number("restricted_bound"),
        null_value=r.number("null_value"),
        target=size_of(writer, "target"),
        method=r.string("method"),
        edges=len(pairs),
        active=tuple(r.strings("active")),
        assumptions=assumptions_of(r),
        problem=problem,
        x=x,
        pairs=pairs,
        correlations=tuple(e.number("partial_correlation") for e in edges),
        witness=PrecisionWitness(
            enclosing=tuple(
                unpack(Reader({"U": item}, f"witness.enclosing[{i}]."), "U", rows=rows)
                for i, item in enumerate(enclosing)
            ),
            final=unpack_item(w.raw("final"), "witness.final", rows=rows),
            restricted=unpack_item(w.raw("restricted"), "witness.restricted", rows=rows),
        ),
        backend=writer.string("backend"),
        seconds=size_of(writer, "seconds"),
        created=writer.string("created"),
        versions=versions_of(writer),
        version=version,
    )


def _numbers(r: Reader, key: str) -> tuple[float, ...]:
    items = r.sequence(key)
    return tuple(Reader({"n": item}, f"{r.where(key)}.").number("n") for item in items)


__all__ = ["FORMAT", "VERSION", "dumps", "load", "loads", "to_dict"]
