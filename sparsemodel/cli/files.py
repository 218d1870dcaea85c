"""Writing files: whole or not at all, and over another one only with --overwrite."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sparsemodel.cli.exits import OutputError, UsageError


def check_free(path: Path, *, overwrite: bool, data: str | None = None) -> None:
    """Raise :class:`OutputError` if ``path`` cannot be written; meant for before the work.

    A link is a file of its own here, wherever it leads: without ``overwrite`` it is in the way.
    The file ``data``, by whatever name, is never replaced (:class:`UsageError`).
    """
    try:
        if path.is_dir():
            raise OutputError(f"{path} is a folder; give the name of a file.")
        if not path.parent.is_dir():
            raise OutputError(f"There is no folder {path.parent}; create it first.")
        path.lstat()
        taken = True
    except FileNotFoundError:
        taken = False
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"{path} cannot be written: {error.strerror}.") from error
    if taken and not overwrite:
        raise OutputError(f"{path} exists already; choose another name or add --overwrite.")
    if taken and data is not None and os.path.realpath(path) == os.path.realpath(data):
        raise UsageError(f"{path} would replace the data.")
    if not os.access(path.parent, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        raise OutputError(f"{path} cannot be written: files may not be made in {path.parent}.")


@contextmanager
def written(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Give a temporary file beside ``path`` to write to, and move it to ``path`` at the end.

    ``path`` is either complete or untouched, whatever happens in between. Without ``overwrite``
    a file that appeared in the meantime is kept, and :class:`OutputError` raised. With it, a
    symbolic or hard link is replaced by a file of its own; what it led to is not touched.
    """
    check_free(path, overwrite=overwrite)
    try:
        handle, name = tempfile.mkstemp(
            prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent
        )
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}.") from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        if overwrite:
            temporary.replace(path)
        else:
            _move_to_free_name(temporary, path)
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def write_text(path: Path, text: str, *, overwrite: bool = False) -> None:
    """Write ``text`` as UTF-8."""
    with written(path, overwrite=overwrite) as temporary:
        temporary.write_text(text, encoding="utf-8")


def to_json(content: Any) -> str:
    """Return plain data as JSON without NaN and infinity, which JSON does not know."""
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)


def free_names(folder: Path, names: tuple[str, ...]) -> tuple[Path, ...]:
    """Return ``names`` in ``folder``, all with the first number that makes them new.

    ``report.html`` stays ``report.html`` where there is none, and is ``report-2.html`` otherwise.
    """
    number = 1
    while True:
        tail = "" if number == 1 else f"-{number}"
        paths = [folder / name for name in names]
        numbered = tuple(path.with_stem(path.stem + tail) for path in paths)
        if not any(os.path.lexists(path) for path in numbered):
            return numbered
        number += 1


def _move_to_free_name(temporary: Path, path: Path) -> None:
    try:
        os.link(temporary, path)  # fails where path exists, in one step
    except FileExistsError as error:
        raise OutputError(f"{path} exists already; choose another name.") from error
    except OSError:  # a file system without hard links
        if os.path.lexists(path):
            raise OutputError(f"{path} exists already; choose another name.") from None
        temporary.rename(path)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
