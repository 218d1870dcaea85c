"""Columns of numbers by a formula, ``age * colour``, which the package formulaic reads."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import Any, final

import numpy as np

from sparsemodel.designs.tables.encoding import fields_of
from sparsemodel.interfaces import BoolArray, DataError, FloatArray, MissingDependencyError
from sparsemodel.loading import uninterrupted


@final
@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """How a table becomes a matrix by a formula, and new rows of it in the same way."""

    spec: Any
    """formulaic's, with the categories and the scales of the first table."""
    names: tuple[str, ...]
    features: tuple[str, ...]
    """For each column of the matrix the term that it belongs to."""
    kept: BoolArray
    """Which of formulaic's columns these are: the constant is not among them."""

    @classmethod
    def of(cls, text: str, frame: Any, where: str) -> tuple[Formula, FloatArray]:
        """Return the formula and the matrix of its first table; what stands left of ``~`` is not
        read."""
        formulaic, right = _formulaic(), text.rpartition("~")[2].strip()
        matrix = _made(
            lambda: formulaic.model_matrix(
                right, frame, output="numpy", na_action="raise", context={}
            ),
            f"{where}, formula {text!r}",
            frame,
        )
        spec: Any = getattr(matrix, "model_spec", None)
        if not hasattr(spec, "term_slices"):
            raise DataError(f"{where}: the formula {text!r} has several parts; write one sum.")
        terms = [str(term) for term, columns in spec.term_slices.items() for _ in _listed(columns)]
        kept = np.array([term != "1" for term in terms], dtype=bool)
        if not kept.any():
            raise DataError(f"{where}: the formula {text!r} has no term but the constant.")
        chosen = np.flatnonzero(kept).tolist()
        names = tuple(str(spec.column_names[j]) for j in chosen)
        formula = cls(spec, names, tuple(terms[j] for j in chosen), kept)
        return formula, formula._numbers(matrix)

    def needed(self, _nonzero: BoolArray) -> tuple[tuple[str, ...], BoolArray]:
        """Return the columns of the table that predictions need, and which of the matrix."""
        return tuple(sorted(map(str, self.spec.required_variables))), self.kept[self.kept]

    def of_frame(self, frame: Any, _wanted: tuple[str, ...], where: str) -> FloatArray:
        """Return the matrix of new rows."""
        made = _made(lambda: self.spec.get_model_matrix(frame, context={}), where, frame)
        return self._numbers(made)

    def _numbers(self, matrix: Any) -> FloatArray:
        return np.ascontiguousarray(np.asarray(matrix, dtype=np.float64)[:, self.kept])


def _listed(columns: Any) -> range:
    return range(columns.start, columns.stop)


def _made(make: Any, where: str, frame: Any) -> Any:
    """Return a matrix of formulaic's; its errors, and categories that are new, are ours.

    Where a column of something else cannot be made numbers, such as dates, it is named.
    """
    errors = import_module("formulaic.errors")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", errors.DataMismatchWarning)
            return make()
    except errors.DataMismatchWarning as error:
        raise DataError(
            f"{where}: a column holds categories that are not known: {error}"
        ) from error
    except TypeError as error:
        fields_of(frame, where)
        raise DataError(f"{where}: {str(error).splitlines()[0]}") from error
    except (errors.FormulaicError, ValueError) as error:
        hint = " Drop such rows, of the target too." if "null" in str(error) else ""
        raise DataError(f"{where}: {str(error).splitlines()[0]}{hint}") from error


def _formulaic() -> Any:
    try:
        with uninterrupted():
            return import_module("formulaic")
    except ImportError as error:
        raise MissingDependencyError(
            "Formulas are read by the package formulaic, which is missing; pip install formulaic, "
            "or make dummies of all columns, sm.encode(df)."
        ) from error
