"""What solving returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from sparsemodel.documents import Bar, Bars, Document, Facts, Section, as_notebook, as_text
from sparsemodel.interfaces import FloatArray, IntArray, Iteration, ModelError, Stop


@final
@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """The point that was found, how it was found, and what is known about it.

    ``status`` says whether the run came to its end, and whether a proof came with it; what can be
    checked again is a certificate (:meth:`Problem.certify`, :meth:`Problem.prove`). ``bound`` is a
    valid lower bound on the optimum that came with the run, ``-inf`` where there is none (it needs
    a ridge or a loss bounded below).
    """

    value: float
    """Objective at the solution."""
    status: str
    """``"solved"`` or ``"stopped early"``; ``"optimal (proved)"`` where a short branch and bound
    closed, to the gap at which a certificate says "globally optimal"."""
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
    counts: str = "nonzero"
    """What the support has, behind their number."""

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

    def document(self) -> Document:
        """Return what was found, and how, in words."""
        known = f"{self.bound:.8g}, gap {max(self.gap, 0.0):.3g}"
        none = "none came with the run; problem.certify() says what is known"
        work = f"{self.passes:.3g} passes over the data, {self.timings['total']:.3g} s"
        rows = [
            ("objective", f"{self.value:.8g}"),
            ("lower bound", known if np.isfinite(self.bound) else none),
            ("stopped", f"{self.stop.value}, {self.iterations} iterations"),
            ("work", work),
            *(("note", note) for note in self.notes),
        ]
        return Document(
            kind="Solution",
            title=f"{self.status} by {self.backend}, {self.indices.shape[0]} {self.counts}",
            sections=(
                Section("", (Facts(rows),), folded=False),
                Section("Coefficients", (self._bars(),), folded=False),
            ),
        )

    def _bars(self) -> Bars:
        numbers = {name for name, value in self.values.items() if np.ndim(value) == 0}
        rows = []
        for name, value in self.coefficients.items():
            entries = np.atleast_1d(value)
            size = float(value) if np.ndim(value) == 0 else float(np.linalg.norm(entries))
            text = ", ".join(f"{v:.6g}" for v in entries.tolist())
            rows.append(Bar(str(name), size, text, name not in numbers))
        rows.sort(key=lambda bar: (not bar.drawn, -abs(bar.size)))
        return Bars(rows)

    def __str__(self) -> str:
        return as_text(self.document())

    def _repr_html_(self) -> str:
        return as_notebook(self.document())


__all__ = ["Solution"]
