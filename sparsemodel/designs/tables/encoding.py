"""Columns of a table as columns of numbers: categories as dummies, missing values filled."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, final

import numpy as np

from sparsemodel.interfaces import BoolArray, DataError, DataTypeError, FloatArray

Missing = Literal["refuse", "mean"]
"""What is done about missing values."""


class Field(NamedTuple):
    """A column as it was read."""

    name: str
    values: Any
    """Numbers with NaN where they are missing, or texts with None."""
    order: tuple[str, ...] | None = None
    """Categories in the order that was declared; None sorts them."""


@final
@dataclass(frozen=True, slots=True)
class Column:
    """How a column of a table becomes columns of numbers."""

    name: str
    levels: tuple[str, ...] | None = None
    """The categories, compared with the first of them; None for numbers."""
    fill: float | str | None = None
    """What stands for missing values; None refuses them."""

    @classmethod
    def of(cls, field: Field, missing: Missing, where: str) -> Column:
        """Return how a column is encoded, as its own values say."""
        values = field.values
        if values.dtype.kind == "f":
            known = values[~np.isnan(values)]
            fill = float(known.mean()) if missing == "mean" and known.size else None
            return cls(field.name, None, fill)
        counts = Counter(value for value in values.tolist() if value is not None)
        if len(counts) > max(20, values.size // 10):
            first = next(iter(counts))
            hint = "leave it out"
            if re.fullmatch(r"[+-]?\d+,\d+", first):
                hint = f"they look like numbers with a decimal comma ({first}): write a point"
            elif re.match(r"\d{4}-\d\d-\d\d", first):
                hint = f"they look like dates ({first}): make numbers of them, or leave it out"
            raise DataError(
                f"{where}: the column {field.name!r} has {len(counts)} different texts in "
                f"{values.size} rows, which are hardly categories; {hint}."
            )
        order = sorted(counts) if field.order is None else field.order
        levels = tuple(level for level in order if level in counts)
        # Of equally frequent ones the first.
        fill_by = max(levels, key=lambda level: counts[level], default=None)
        return cls(field.name, levels, fill_by if missing == "mean" else None)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the columns of numbers."""
        if self.levels is None:
            return (self.name,)
        return tuple(f"{self.name}[{level}]" for level in self.levels[1:])

    def apply(self, values: Any, where: str) -> FloatArray:
        """Return the columns of numbers, shape ``(n, len(names))``."""
        if self.levels is not None and values.dtype.kind == "f" and np.isnan(values).all():
            values = np.full(values.shape, None)
        if (values.dtype.kind == "f") != (self.levels is None):
            held = "numbers" if self.levels is None else "categories"
            raise DataError(f"{where}: the column {self.name!r} held {held} before, and not now.")
        if self.levels is None:
            if self.fill is None:
                self._refuse(np.isnan(values), where)
            else:
                values = np.where(np.isnan(values), self.fill, values)
            return np.asarray(values, dtype=np.float64)[:, None]
        absent = np.array([value is None for value in values.tolist()], dtype=bool)
        if self.fill is None:
            self._refuse(absent, where)
        texts = np.array([self.fill if value is None else value for value in values.tolist()])
        unknown = sorted(set(texts.tolist()).difference(self.levels))
        if unknown:
            raise DataError(
                f"{where}: the column {self.name!r} holds {unknown[0]!r}, which is none of the "
                f"categories that are known: {', '.join(self.levels[:6])}"
                + (", ..." if len(self.levels) > 6 else ".")
            )
        equal = texts[:, None] == np.array(self.levels[1:], dtype=object)
        return np.asarray(equal, dtype=np.float64).reshape(texts.size, len(self.names))

    def _refuse(self, absent: Any, where: str) -> None:
        if absent.any():
            raise DataError(
                f"{where}, column {self.name!r}: {int(absent.sum())} value(s) are missing, the "
                f"first in row {int(np.argmax(absent))}. Drop such rows (of the target, too), or "
                "pass missing='mean', which fills in means and most frequent categories."
            )


@final
@dataclass(frozen=True, slots=True)
class Encoding:
    """How a table becomes a matrix, and new rows of it in the same way."""

    columns: tuple[Column, ...]

    @classmethod
    def of(cls, fields: Sequence[Field], missing: Missing, where: str) -> Encoding:
        """Return the encoding that the values of a table suggest."""
        if missing not in ("refuse", "mean"):
            dropped = str(missing) == "drop"
            advice = "; drop rows before, `df.dropna()`, of the target too" * dropped
            raise DataError(f"missing must be 'refuse' or 'mean', not {missing!r}{advice}.")
        return cls(tuple(Column.of(field, missing, where) for field in fields))

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the columns of the matrix."""
        return tuple(name for column in self.columns for name in column.names)

    @property
    def features(self) -> tuple[str, ...]:
        """Return for each column of the matrix the column of the table that it comes from."""
        return tuple(column.name for column in self.columns for _ in column.names)

    def needed(self, nonzero: BoolArray) -> tuple[tuple[str, ...], BoolArray]:
        """Return the columns of the table that some columns of the matrix need, and all theirs."""
        features: Any = np.array(self.features)
        kept = [c.name for c in self.columns if nonzero[features == c.name].any()]
        return tuple(kept), np.isin(features, kept)

    def of_frame(self, frame: Any, wanted: tuple[str, ...], where: str) -> FloatArray:
        """Return the columns of the matrix that come from the wanted ones of a table."""
        kept = Encoding(tuple(column for column in self.columns if column.name in wanted))
        return kept.apply({field.name: field.values for field in fields_of(frame, where)}, where)

    def apply(self, fields: Mapping[str, Any], where: str) -> FloatArray:
        """Return the matrix of a table; its columns are found by their names."""
        parts = [column.apply(fields[column.name], where) for column in self.columns]
        return np.ascontiguousarray(np.hstack(parts))


def fields_of(frame: Any, where: str) -> list[Field]:
    """Return the columns of a DataFrame.

    Raises
    ------
    DataTypeError
        For columns that are neither numbers, truth values nor text; the message names one.
    """
    return [_field(str(name), frame[name], where) for name in frame.columns]


def _field(name: str, series: Any, where: str) -> Field:
    values = series.to_numpy()
    order = getattr(series.dtype, "categories", None)  # pandas, and an Enum of Polars
    order = order if hasattr(order, "__len__") else None
    if values.dtype.kind in "biuf" and order is None:
        return Field(name, values.astype(np.float64))
    listed = [None if _is_missing(value) else value for value in values.tolist()]
    known = [value for value in listed if value is not None]
    if order is not None:
        texts = [None if value is None else str(value) for value in listed]
        return Field(name, _objects(texts), tuple(map(str, order)))
    if known and all(isinstance(value, str) for value in known):
        return Field(name, _objects(listed))
    dated = values.dtype.kind in "mM"  # nanoseconds are listed as whole numbers
    if not dated and all(isinstance(value, (bool, int, float)) for value in known):
        return Field(name, np.array([np.nan if v is None else v for v in listed], np.float64))
    kind = values.dtype if dated else type(known[0]).__name__
    raise DataTypeError(
        f"{where}: the column {name!r} holds {kind}, which is neither numbers nor text; make "
        "numbers of it (of dates, days since one of them), or leave it out."
    )


def _objects(values: Sequence[Any]) -> Any:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _is_missing(value: Any) -> bool:
    """Return whether a value is None, or differs from itself: NaN, NaT, pandas.NA."""
    same = value == value
    return value is None or (np.ndim(value) == 0 and not (isinstance(same, bool) and same))
