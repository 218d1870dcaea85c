"""What solving returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from sparsemodel import markup
from sparsemodel.interfaces import FloatArray, IntArray, Iteration, ModelError, Stop


@final
@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """The point that was found, how it was found, and what is known about it.

    ``status`` says whether the run came to its end; how good the point is, only a certificate
    says (:meth:`Problem.certify`). ``bound`` is a valid lower bound on the optimum that came
    with the run, ``-inf`` where there is none (it needs a ridge or a loss bounded below).
    """

    value: float
    """Objective at the solution."""
    status: str
    """``"solved"`` or ``"stopped early"``."""
    stop: Stop
    backend: str
    iterations: int
    indices: IntArray
    """Sorted indices of the nonzero counted entries (rows), within their variable."""
    support_names: tuple[Any, ...] | None
    """Their names, if they have any; pairs of names for the edges of a precision matrix."""
    coefficients: Mapping[str, float | FloatArray]
    """Nonzero coefficients by name, uncounted ones (the intercept) included."""
    values: Mapping[str, Any]
    """Each variable's value by its label."""
    history: tuple[Iteration, ...] = field(repr=False)
    timings: Mapping[str, float] = field(repr=False)
    """Seconds: compile, solve, total."""
    passes: float
    """Work of the solve in passes over the data (``A @ x`` and ``A.T @ r``)."""
    bound: float
    notes: tuple[str, ...] = ()
    nodes: tuple[str, ...] | None = None
    """Names of the variables behind a precision matrix, if they have any."""

    @property
    def support(self) -> Any:
        """Return the names of the nonzero counted entries, or their indices if unnamed."""
        return self.indices if self.support_names is None else list(self.support_names)

    @property
    def gap(self) -> float:
        """Return ``value - bound``; infinite without a bound."""
        return self.value - self.bound

    def graph(self) -> Any:
        """Return the graph of a precision-matrix solution: an edge per nonzero off the diagonal.

        Edges carry the partial correlation as ``weight`` and the matrix entry as ``precision``.
        """
        from sparsemodel.reporting.graphs import precision_graph

        matrices = [v for v in self.values.values() if np.ndim(v) == 2]
        if self.indices.ndim != 2 or len(matrices) != 1:
            raise ModelError("graph() is for the solutions of precision-matrix problems.")
        return precision_graph(matrices[0], self.nodes)

    def __str__(self) -> str:
        work = f"{self.iterations} iterations, {self.passes:.3g} passes over the data"
        unit = "edges" if self.indices.ndim == 2 else "nonzero"
        found = f"objective {self.value:.8g}, {self.indices.shape[0]} {unit}"
        lines = [
            f"{self.status} by {self.backend}: {found}",
            f"stopped: {self.stop.value}, {work}, {self.timings['total']:.3g} s",
        ]
        if np.isfinite(self.bound):
            lines.append(f"lower bound {self.bound:.8g}, gap {max(self.gap, 0.0):.3g}")
        else:
            lines.append("no lower bound came with the run; problem.certify() says what is known")
        width = max((len(name) for name in self.coefficients), default=0)
        for name, coefficient in list(self.coefficients.items())[:30]:
            shown = np.array2string(np.asarray(coefficient), precision=6, suppress_small=True)
            lines.append(f"  {name:<{width}}  {shown}")
        if len(self.coefficients) > 30:
            lines.append(f"  ... and {len(self.coefficients) - 30} more")
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        unit = "edges" if self.indices.ndim == 2 else "nonzero"
        known = f"{self.bound:.8g}, gap {max(self.gap, 0.0):.3g}"
        rows = [
            ("objective", f"{self.value:.8g}"),
            ("lower bound", known if np.isfinite(self.bound) else "none came with the run"),
            ("stopped", f"{self.stop.value}, {self.iterations} iterations"),
            ("work", f"{self.passes:.3g} passes over the data, {self.timings['total']:.3g} s"),
            *(("note", note) for note in self.notes),
        ]
        return markup.panel(
            "Solution",
            f"{self.status} by {self.backend}, {self.indices.shape[0]} {unit}",
            markup.facts(rows),
            self._coefficients_html(),
        )

    def _coefficients_html(self, most: int = 20) -> str:
        items = list(self.coefficients.items())
        if all(np.ndim(value) == 0 for _, value in items):
            numbers = {name for name, value in self.values.items() if np.ndim(value) == 0}
            plain = [(name, float(value)) for name, value in items if name in numbers]
            barred = [(name, float(value)) for name, value in items if name not in numbers]
            barred.sort(key=lambda item: -abs(item[1]))
            return markup.bars(barred[:most], plain=plain, more=len(barred) - most)
        columns = max(int(np.size(value)) for _, value in items)
        rows = [
            (name, *(f"{v:.4g}" for v in np.atleast_1d(value).tolist()))
            for name, value in items[:most]
        ]
        more = len(items) - len(rows)
        tail = markup.sentence(f"and {more} more") if more > 0 else ""
        return markup.table(("", *map(str, range(columns))), rows) + tail


__all__ = ["Solution"]
