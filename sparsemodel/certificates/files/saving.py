"""Certificates as files: the ending of the name says which, and none is ever there in part."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path

from sparsemodel.interfaces import CertificateError, DataTypeError


def save(path: str | os.PathLike[str], writers: Mapping[str, Callable[[], str]]) -> Path:
    """Write what the writer for the ending of ``path`` returns, and return where.

    Raises
    ------
    CertificateError
        When no writer has that ending.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise DataTypeError(f"save needs a path, not {type(path).__name__}.")
    target = Path(path)
    writer = writers.get(target.suffix.lower())
    if writer is None:
        known = ", ".join(sorted(writers))
        raise CertificateError(
            f"Cannot tell the format of {target.name!r} from its ending; use one of {known}."
        )
    write_atomically(target, writer())
    return target


def write_atomically(path: Path, text: str) -> None:
    """Write ``text`` to ``path`` so that the file is there whole or not at all."""
    if not path.parent.is_dir():  # the system's error would name the temporary file
        raise FileNotFoundError(errno.ENOENT, "There is no such folder", str(path.parent))
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
    try:
        with temporary.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
