"""Read one data set from a folder of ``.npz`` files beside their ``datasheet.toml``."""

from __future__ import annotations

import hashlib
import io
import tomllib
from importlib.resources.abc import Traversable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsemodel.interfaces.errors import DataError

SHEET = "datasheet.toml"


def read_sheet(folder: Traversable) -> dict[str, dict[str, Any]]:
    """Return the data sheet of ``folder``: one table per data set, by name."""
    return tomllib.loads((folder / SHEET).read_text(encoding="utf-8"))


def read_entry(folder: Traversable, name: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the sheet's table and the arrays of one data set, after checking the checksum.

    Nothing is unpickled.

    Raises
    ------
    DataError
        If ``name`` is not in the sheet, or the file is not the one the sheet describes.
    """
    sheet = read_sheet(folder)
    if name not in sheet:
        raise DataError(f"there is no data set {name!r} here; there are {', '.join(sorted(sheet))}")
    entry = sheet[name]
    content = (folder / f"{name}.npz").read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != entry["sha256"]:
        raise DataError(
            f"{name}.npz is damaged or was replaced: its SHA-256 is {found}, and the data sheet "
            f"says {entry['sha256']}; install the package again"
        )
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return entry, {key: archive[key] for key in archive.files}


def describe(entry: dict[str, Any]) -> str:
    """Return the sentences of a sheet's table that a user wants to read first."""
    return f"{entry['title']}. Target: {entry['target']}. {entry['preprocessing']}"
