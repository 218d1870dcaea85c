"""What is read, and what of it is wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sparsemodel.cli.exits import UsageError
from sparsemodel.designs.tables.encoding import Encoding, Field, Missing
from sparsemodel.interfaces import DataError
from sparsemodel.interfaces.errors import closest

MISSING = frozenset({"", "?", "na", "n/a", "nan", "null", "none"})
"""Fields that stand for a missing value, in lower case."""


@final
@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns play which part, by name or by number (from 1, or from the end if negative)."""

    target: str | None = None
    weights: str | None = None
    needs_target: bool = False
    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] | None = None
    """The only features; None takes every column with no other part."""
    matrix: str | None = None
    """NumPy archives: the array of features."""
    missing: str = "error"
    """``"error"``, ``"drop"`` the rows, or ``"mean"``."""
    encoding: Encoding | None = None
    """How the features are encoded, where a model prescribes it."""
    delimiter: str | None = None
    max_bytes: int = 8_000_000_000

    @property
    def fills(self) -> bool:
        """Return whether missing values of features are left to the encoding."""
        return self.missing == "mean" or (self.encoding is not None and self.missing != "drop")

    def select(self, names: Sequence[str], where: str) -> Selection:
        """Return the positions of the features, the target and the weights among ``names``."""
        if len(set(names)) < len(names):
            twice = next(name for name in names if list(names).count(name) > 1)
            raise DataError(f"{where} has two columns named {twice!r}; rename one of them.")
        target = None if self.target is None else _find(self.target, names, where)
        weights = None if self.weights is None else _find(self.weights, names, where)
        dropped = {_find(name, names, where) for name in self.drop}
        used = {j for j in (target, weights) if j is not None}
        if self.keep is None:
            features = [j for j in range(len(names)) if j not in used and j not in dropped]
        else:
            features = [_find(name, names, where) for name in self.keep]
            if used.intersection(features):
                both = next(names[j] for j in features if j in used)
                raise UsageError(f"The column {both!r} cannot be a feature and something else too.")
        if not features:
            raise DataError(f"{where} has no column left for the features{_spaced(names)}.")
        return Selection(tuple(features), target, weights)


@final
@dataclass(frozen=True, slots=True)
class Selection:
    """Positions of columns."""

    features: tuple[int, ...]
    target: int | None
    weights: int | None

    @property
    def others(self) -> tuple[int, ...]:
        """Return the target and the weights, those there are."""
        return tuple(j for j in (self.target, self.weights) if j is not None)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Features with what belongs to the observations."""

    X: Any
    """An array or a SciPy sparse array, shape ``(n, p)``."""
    names: tuple[str, ...] | None
    """One name per feature; None where the file has none."""
    target: Any = None
    """Numbers, or text as an array of strings, shape ``(n,)``."""
    weights: Any = None
    weights_are: str = "precision"
    notes: tuple[str, ...] = ()
    """What was done to the data on the way, for example dropped rows."""
    encoding: Encoding | None = None
    """How columns of text became numbers; None where the file has no names."""

    @property
    def features(self) -> tuple[str, ...] | None:
        """Return the column of the file that each column of ``X`` comes from."""
        return self.names if self.encoding is None else self.encoding.features


def encoded(fields: Sequence[Field], columns: Columns, where: str) -> tuple[Any, Encoding]:
    """Return the features as a matrix, and how they became it."""
    missing: Missing = "mean" if columns.missing == "mean" else "refuse"
    encoding = columns.encoding or Encoding.of(fields, missing, where)
    return encoding.apply({field.name: field.values for field in fields}, where), encoding


def number_of(text: str) -> float:
    """Return a number as tables write it; ``2020_1``, which is one in Python, is text."""
    if "_" in text:
        raise ValueError(f"{text!r} is not a number")
    return float(text)


def as_numbers_or_text(values: Sequence[str]) -> Any:
    """Return strings as numbers where every one of them is a number, or as an array of strings."""
    try:
        return np.array([number_of(value) for value in values])
    except ValueError:
        return np.asarray(values)


def _find(wanted: str, names: Sequence[str], where: str) -> int:
    if wanted in names:
        return list(names).index(wanted)
    try:
        number = int(wanted)
    except ValueError:
        number = 0
    if 1 <= number <= len(names):
        return number - 1
    if -len(names) <= number <= -1:
        return len(names) + number
    close = closest(wanted, names, cutoff=0.5)
    hint = f"did you mean {close!r}?" if close else f"it has {_shown(names)}."
    spaced = _spaced(names)
    raise UsageError(
        f"{where} has no column {wanted!r}" + (f"{spaced}." if spaced else f"; {hint}")
    )


def _spaced(names: Sequence[str]) -> str:
    """Return what to write where spaces may separate the fields of the only column."""
    if len(names) != 1 or " " not in names[0].strip():
        return ""
    return f"; its only column is {names[0]!r}: if spaces separate fields, write --delimiter ' '"


def _shown(names: Sequence[str]) -> str:
    shown = ", ".join(names[:6])
    return shown if len(names) <= 6 else f"{shown}, ... ({len(names)} columns)"
