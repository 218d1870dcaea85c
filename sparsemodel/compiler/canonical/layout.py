"""Where the variables stand among the coordinates of the canonical form."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, final

import numpy as np

from sparsemodel.compiler.canonical.declaration import Change, Declaration, VariableSpec
from sparsemodel.interfaces import FloatArray, IntArray, ModelError


class VariableLayout(Protocol):
    """How variables make up the coordinates of a form."""

    @property
    def variables(self) -> tuple[VariableSpec, ...]:
        """Return the variables, in the order of their appearance."""

    @property
    def starts(self) -> tuple[int, ...]:
        """Return the first coordinate of each variable."""

    def split(self, x: FloatArray) -> tuple[FloatArray, ...]:
        """Return each variable's value, in its own shape."""

    def join(self, values: tuple[FloatArray | float | None, ...]) -> FloatArray:
        """Return the coordinates of the variables' values; None stands for a default."""

    def name(self, coordinate: int) -> str:
        """Return the name of one coordinate."""

    def names(self) -> tuple[str, ...]:
        """Return a name for every coordinate."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Where each variable's rows stand among the coordinates."""

    variables: tuple[VariableSpec, ...]
    starts: tuple[int, ...]
    size: int
    outputs: int
    matrix: bool
    entries: bool = False
    """Whether matrix variables stand entry by entry, row by row."""
    changes: Mapping[int, Change] = field(default_factory=dict)
    """By variable: the coordinates that stand in its place."""

    def rows(self, variable: int, rows: IntArray | None = None) -> IntArray:
        """Return the coordinates of (some rows of) a variable."""
        if rows is None:
            rows = np.arange(self.height(variable))
        return self.starts[variable] + rows

    def height(self, variable: int) -> int:
        """Return how many coordinates a variable has."""
        shape = self.variables[variable].shape
        if self.is_row(variable) or not shape:
            return 1
        return self.variables[variable].height if self.entries else shape[0]

    def is_row(self, variable: int) -> bool:
        """Return whether a vector variable is one row (an intercept) of a matrix problem."""
        return self.matrix and len(self.variables[variable].shape) == 1

    def split(self, x: FloatArray) -> tuple[FloatArray, ...]:
        """Return each variable's value, in its own shape."""
        return tuple(
            self._value(i, x[self.rows(i)]).reshape(spec.shape)
            for i, spec in enumerate(self.variables)
        )

    def _value(self, variable: int, z: FloatArray) -> FloatArray:
        change = self.changes.get(variable)
        if self.variables[variable].symmetric:
            return z[self.variables[variable].places]
        return z if change is None else change.value(z)

    def join(self, values: tuple[FloatArray | float | None, ...]) -> FloatArray:
        """Return the coordinates of the variables' values; None means zero."""
        shape = (self.size, self.outputs) if self.matrix else (self.size,)
        x = np.zeros(shape)
        for i, value in enumerate(values):
            if value is not None:
                rows = self.rows(i)
                array = np.asarray(value, dtype=np.float64)
                if self.variables[i].symmetric:
                    array = (0.5 * (array + array.T))[np.triu_indices(array.shape[0])]
                array = array.reshape(x[rows].shape)
                change = self.changes.get(i)
                x[rows] = array if change is None else change.coordinates(array)
            elif i in self.changes:
                x[self.rows(i)] = self.changes[i].coordinates(np.zeros(self.height(i)))
        return x

    def name(self, coordinate: int) -> str:
        """Return the name of one coordinate; all of them take a second for a million."""
        i = bisect_right(self.starts, coordinate) - 1
        spec, row = self.variables[i], coordinate - self.starts[i]
        if i in self.changes:
            return _changed_name(self.changes[i], row)
        if self.entries and len(spec.shape) == 2:
            if spec.symmetric:
                row = int(np.flatnonzero(spec.places == row)[0])
            i, j = divmod(row, spec.shape[1])
            return f"{spec.names[i]}[{j}]" if spec.names else f"{spec.label}[{i}, {j}]"
        if spec.names is not None:
            return spec.names[row]
        return spec.label if self.height(i) == 1 else f"{spec.label}[{row}]"

    def names(self) -> tuple[str, ...]:
        """Return a name for every coordinate."""
        out: list[str] = []
        for i, spec in enumerate(self.variables):
            height = self.height(i)
            if i in self.changes or (self.entries and len(spec.shape) == 2):
                start = self.starts[i]
                out.extend(self.name(j) for j in range(start, start + height))
            elif spec.names is not None:
                out.extend(spec.names)
            elif height == 1:
                out.append(spec.label)
            else:
                out.extend(f"{spec.label}[{j}]" for j in range(height))
        return tuple(out)


def _changed_name(change: Change, row: int) -> str:
    """Return the name of a coordinate of an expression, or of what the expression does not see."""
    place = int(np.searchsorted(change.counted, row))
    if place < change.counted.size and change.counted[place] == row:
        return f"({change.label})[{place}]"
    return f"({change.label}) free[{row - place}]"


def lay_out(declaration: Declaration) -> Layout:
    """Assign coordinates to the variables, in the order of their appearance."""
    if declaration.entries:
        sizes = [spec.height for spec in declaration.variables]
        ends = np.cumsum(sizes).tolist()
        begins = tuple(end - size for end, size in zip(ends, sizes, strict=True))
        return Layout(declaration.variables, begins, ends[-1], 1, False, True, declaration.changes)
    matrices = {spec.shape[1] for spec in declaration.variables if len(spec.shape) == 2}
    if len(matrices) > 1:
        raise ModelError(
            "All matrix variables of a problem need the same number of columns, not "
            f"{sorted(matrices)}."
        )
    matrix = bool(matrices)
    outputs = matrices.pop() if matrix else 1
    starts, size = [], 0
    for spec in declaration.variables:
        starts.append(size)
        if matrix and len(spec.shape) < 2:
            if spec.shape != (outputs,):
                raise ModelError(
                    f"{spec.label} has shape {spec.shape}; beside a matrix variable with {outputs} "
                    f"columns, a variable is a matrix too or a row (an intercept) of shape "
                    f"({outputs},)."
                )
            size += 1
        else:
            size += spec.shape[0] if spec.shape else 1
    return Layout(
        declaration.variables, tuple(starts), size, outputs, matrix, changes=declaration.changes
    )
