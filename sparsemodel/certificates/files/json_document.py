"""Certificate files as JSON documents: plain values only, no line twice, a checked digest.

Nothing is ever unpickled or evaluated.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from sparsemodel.certificates.files.packing import MAX_BYTES
from sparsemodel.interfaces import CertificateError

BESIDE = frozenset({"digest", "recipe"})
"""Lines that are no part of a certificate: the digest, and how the command line declares the
problem again from the data."""


def digest(body: dict[str, Any]) -> str:
    """Return the SHA-256 of all entries but the digest itself, in a canonical order."""
    kept = {key: value for key, value in body.items() if key != "digest"}
    text = json.dumps(kept, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def signed(body: dict[str, Any]) -> dict[str, Any]:
    """Return a document with its digest."""
    return body | {"digest": digest(body)}


def json_text(body: dict[str, Any]) -> str:
    """Return a document as JSON text."""
    return json.dumps(body, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


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
    except ValueError as error:  # a null character or a lone surrogate in the name
        raise CertificateError(f"{str(file)!a} cannot be the name of a file: {error}.") from error


def checked_body(text: str, kind: str, versions: range, *, where: str) -> dict[str, Any]:
    """Return the object in a JSON text, of the format ``kind`` and with a digest that fits."""
    try:
        body = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_duplicates)
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
    version = body.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version not in versions:
        known = " and ".join(str(v) for v in versions)
        raise CertificateError(
            f"{where}: line 'version' says {version!r}; this release reads {known}."
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


def no_other_lines(body: Any, written: Any, where: str = "", *, fewer: bool) -> None:
    """Raise an error at the first line that the certificate itself would not write.

    ``written`` is what the certificate that was read from ``body`` says. So everything in a file
    is read, and whatever follows from the rest of it follows. With ``fewer`` lines may be missing.
    """
    if isinstance(body, dict) and isinstance(written, dict):
        for key in [*body, *written]:
            line = f"{where}{key}"
            if not where and key in BESIDE:
                continue
            if key not in body:
                if fewer:
                    continue
                raise CertificateError(f"line '{line}' is missing.")
            if key not in written:
                raise CertificateError(f"line '{line}' does not belong into a certificate.")
            no_other_lines(body[key], written[key], line + ".", fewer=fewer)
    elif isinstance(body, list) and isinstance(written, list) and len(body) == len(written):
        for index, (one, two) in enumerate(zip(body, written, strict=True)):
            no_other_lines(one, two, f"{where.rstrip('.')}[{index}].", fewer=fewer)
    elif body != written or isinstance(body, bool) != isinstance(written, bool):
        line = where.rstrip(".")
        raise CertificateError(
            f"line '{line}' says {_shown(body)}, and from the rest it is {_shown(written)}."
        )


def _shown(value: Any) -> str:
    """Return a value of a file for a message, cut to a line."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the line {twice!r} is there twice")
    return found
