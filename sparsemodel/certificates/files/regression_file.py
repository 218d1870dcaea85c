"""Certificates as JSON: plain values only, floats that come back bit by bit, a checked digest.

What the data decide stands at the top; what the writer says of itself stands under ``writer``.
Files of the first version, which mixes the two, are read as well.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import Any

from sparsemodel.certificates.dual_bounds.coefficient_bounds.file import packed, unpacked
from sparsemodel.certificates.files.json_document import (
    BESIDE,
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
from sparsemodel.certificates.files.packing import pack, unpack, unpack_item
from sparsemodel.certificates.statements.certificate import VERSION, Certificate, Progress, Witness
from sparsemodel.certificates.statements.problem_facts import ProblemFacts, TermFacts
from sparsemodel.certificates.statements.stationarity import Stationarity
from sparsemodel.interfaces import CertificateError

FORMAT = "sparsemodel-certificate"
_FACTS = ("smooth", "residual", "smallest", "largest", "step", "threshold")


def to_dict(certificate: Certificate) -> dict[str, Any]:
    """Return a certificate as JSON-ready values; infinite floats become strings."""
    c = certificate
    proof = {} if c.proof is None else c.proof
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
        "constant": c.constant,
        "bound_method": c.bound_method,
        "bound_reason": c.bound_reason,
        "assumptions": [asdict(a) for a in c.assumptions],
        "stationarity": {name: getattr(c.stationarity, name) for name in _FACTS},
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
        "proof": None if c.proof is None else {"tree": proof.get("tree")},
        "writer": {
            "backend": c.backend,
            "bound_source": c.bound_source,
            "target": c.target,
            "search": proof.get("summary", {}),
            "progress": [[p.seconds, p.value, p.bound, p.phase] for p in c.progress],
            "seconds": c.seconds,
            "created": c.created,
            "versions": dict(c.versions),
        },
    }
    body = plain(body)
    body["digest"] = digest(body)
    return body


def dumps(certificate: Certificate) -> str:
    """Return the JSON text of a certificate."""
    return json.dumps(to_dict(certificate), indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def load(path: str | os.PathLike[str]) -> Certificate:
    """Read a certificate from a JSON file, checking its structure and its digest."""
    text, name = read_text(path)
    return loads(text, where=name)


def loads(text: str, *, where: str = "the text") -> Certificate:
    """Return the certificate in a JSON text."""
    body = checked_body(text, FORMAT, range(1, VERSION + 1), where=where)
    try:
        found = _build(Reader(body), body["version"])
        written = to_dict(found)
        if found.version == VERSION:
            no_other_lines(body, written)
        else:
            _first_version(body, written)
        return found
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, CertificateError):
            raise CertificateError(f"{where}: {error}") from error
        raise CertificateError(f"{where} is malformed: {error}") from error


def _first_version(body: dict[str, Any], written: dict[str, Any]) -> None:
    """Compare what follows from the rest of a file of the first version."""
    known = {*written, *written["writer"], *BESIDE} - {"constant", "writer", "search"}
    for key in body:
        if key not in known:
            raise CertificateError(f"line '{key}' does not belong into a certificate.")
    for key in ("gap", "relative_gap", "coefficients"):
        if key == "relative_gap" and body["problem"]["constant"] != 0.0:
            continue  # measured otherwise then
        no_other_lines(body.get(key), written[key], key + ".")
    facts = body["stationarity"]
    if facts["smooth"]:
        no_other_lines(facts["step"], written["stationarity"]["step"], "stationarity.step.")


def _build(r: Reader, version: int) -> Certificate:
    problem = _problem(r.at("problem"))
    shape, terms = problem.shape, problem.terms
    witness = r.at("witness")
    x = unpack(witness, "x", rows=shape[0] if shape else None)
    if x.shape != shape:
        raise CertificateError(f"line 'witness.x' has shape {x.shape}, the problem {shape}.")
    duals = witness.sequence("duals")
    if len(duals) > len(terms):
        raise CertificateError(f"line 'witness.duals' has {len(duals)} entries, not {len(terms)}.")
    writer = r if version == 1 else r.at("writer")
    return Certificate(
        claim=claim_of(r.string("claim")),
        value=r.number("value"),
        upper=r.number("upper"),
        bound=r.number("bound"),
        allowance=r.number("allowance"),
        null_value=r.number("null_value"),
        constant=problem.constant if version == 1 else r.number("constant"),
        target=size_of(writer, "target"),
        bound_method=r.string("bound_method"),
        bound_source=writer.string("bound_source"),
        bound_reason=r.string("bound_reason"),
        assumptions=assumptions_of(r),
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
        backend=writer.string("backend"),
        progress=tuple(_progress(p, i) for i, p in enumerate(writer.sequence("progress"))),
        seconds=size_of(writer, "seconds"),
        created=writer.string("created"),
        versions=versions_of(writer),
        proof=_proof(r, writer, version),
        version=version,
    )


def _problem(p: Reader) -> ProblemFacts:
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
        for t in p.items("terms")
    )
    return ProblemFacts(
        terms=terms,
        shape=tuple(p.integers("shape")),
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
        forced=p.integer("forced") if p.has("forced") else None,
    )


def _proof(r: Reader, writer: Reader, version: int) -> dict[str, Any] | None:
    if not r.has("proof"):
        r.raw("proof")
        return None
    kept = r.at("proof")
    if version == 1:
        summary = kept.mapping("summary") if kept.has("summary") else {}
    else:
        summary = writer.mapping("search")
    for key, value in summary.items():
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise CertificateError(f"the search's line {key!r} must be a text or a number.")
    return {"summary": summary, "tree": kept.mapping("tree") if kept.has("tree") else None}


def _names(r: Reader, size: int) -> dict[int, str]:
    out = {}
    for key, name in r.mapping("names").items():
        if not (key.isdecimal() and int(key) < size and isinstance(name, str)):
            raise CertificateError(f"line 'names' has the entry {key!r}: {name!r}.")
        out[int(key)] = name
    return out


def _stationarity(r: Reader) -> Stationarity:
    r.number("step")
    numbers = {f: r.number(f) for f in ("residual", "smallest", "largest", "threshold")}
    return Stationarity(smooth=r.boolean("smooth"), **numbers)


def _progress(item: Any, index: int) -> Progress:
    if not isinstance(item, list) or len(item) != 4 or not isinstance(item[3], str):
        raise CertificateError(f"line 'progress[{index}]' is not [seconds, value, bound, phase].")
    r = Reader({"a": item[0], "b": item[1], "c": item[2]}, f"progress[{index}].")
    return Progress(r.number("a"), r.number("b"), r.number("c"), item[3])


__all__ = ["FORMAT", "VERSION", "digest", "dumps", "load", "loads", "read_text", "to_dict"]
