"""Compile precision-matrix problems: their layout, and the facts worth telling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from sparsemodel.compiler.canonical.declaration import VariableSpec
from sparsemodel.compiler.facts.fact_sheet import FactSheet, bytes_words
from sparsemodel.interfaces import FloatArray
from sparsemodel.interfaces.precision import JointPrecision, SparsePrecision


@final
@dataclass(frozen=True, slots=True, eq=False)
class PrecisionLayout:
    """How the entries on and above the diagonal make up the one matrix variable."""

    variables: tuple[VariableSpec, ...]
    form: SparsePrecision
    starts: tuple[int, ...] = (0,)

    def split(self, x: FloatArray) -> tuple[FloatArray, ...]:
        """Return the symmetric matrix with the entries ``x``."""
        return (self.form.matrix(x),)

    def join(self, values: tuple[FloatArray | float | None, ...]) -> FloatArray:
        """Return the entries of a symmetric matrix; None means the identity."""
        value = values[0]
        omega = np.eye(self.form.order) if value is None else np.asarray(value, dtype=np.float64)
        return self.form.entries((omega + omega.T) / 2.0)

    def nodes(self) -> tuple[str, ...]:
        """Return a name for each of the ``p`` variables behind the matrix."""
        return self.form.names or tuple(str(j) for j in range(self.form.order))

    def name(self, coordinate: int) -> str:
        """Return the name of one coordinate, an entry of the matrix."""
        known, i, j = self.form.names, *self._ends(coordinate)
        first, second = (str(i), str(j)) if known is None else (known[i], known[j])
        return first if i == j else f"{first} -- {second}"

    def _ends(self, coordinate: int) -> tuple[int, int]:
        return int(self.form.rows[coordinate]), int(self.form.cols[coordinate])

    def names(self) -> tuple[str, ...]:
        """Return a name for every coordinate: ``"a"`` on the diagonal, ``"a -- b"`` off it."""
        node = self.nodes()
        pairs = zip(self.form.rows.tolist(), self.form.cols.tolist(), strict=True)
        return tuple(node[i] if i == j else f"{node[i]} -- {node[j]}" for i, j in pairs)


@final
@dataclass(frozen=True, slots=True, eq=False)
class JointLayout:
    """How the columns of the coordinates make up a matrix variable each."""

    variables: tuple[VariableSpec, ...]
    form: JointPrecision

    @property
    def _first(self) -> PrecisionLayout:
        return PrecisionLayout(self.variables[:1], self.form.parts[0])

    @property
    def starts(self) -> tuple[int, ...]:
        """Return where each variable begins: at the same coordinates as the others."""
        return (0,) * len(self.variables)

    def split(self, x: FloatArray) -> tuple[FloatArray, ...]:
        """Return the symmetric matrices with the entries ``x``."""
        columns = zip(self.form.parts, self.form.columns(x), strict=True)
        return tuple(part.matrix(column) for part, column in columns)

    def join(self, values: tuple[FloatArray | float | None, ...]) -> FloatArray:
        """Return the entries of symmetric matrices; None means the identity."""
        return np.stack([self._first.join((value,)) for value in values], axis=1)

    def name(self, coordinate: int) -> str:
        """Return the name of one coordinate, an entry of every matrix."""
        return self._first.name(coordinate)

    def names(self) -> tuple[str, ...]:
        """Return a name for every coordinate, as those of one matrix."""
        return self._first.names()


def joint_facts(form: JointPrecision) -> FactSheet:
    """Return what the form says of itself: what is known of its first matrix, and of all."""
    facts = precision_facts(form.parts[0])
    m, p = len(form.parts), form.order
    facts.record("matrices", f"{m} with one pattern", "declared", "by the limit on their edges")
    weights = ", ".join(f"{part.weight:.3g}" for part in form.parts)
    facts.record("weights", weights, "declared", "in front of the likelihoods")
    samples = ", ".join("?" if p.samples is None else str(p.samples) for p in form.parts)
    facts.record("samples", samples, "declared", "by the user or the data")
    held, added = bytes_words(8.0 * m * p * p), bytes_words(50.0 * 8.0 * m * p * p)
    facts.record("memory of the data", held, "derived", "its shape")
    facts.record("memory of a solve", f"about {added}", "estimated", "fifty matrices for each")
    return facts


def precision_facts(form: SparsePrecision) -> FactSheet:
    """Return what the form says of itself; nothing is computed beyond O(p^2)."""
    facts = FactSheet()
    p = form.order
    traits = "-log det + trace: twice differentiable inside the eigenvalue bounds, conjugate known"
    facts.record("loss", traits, "declared", "by the loss")
    facts.record("covariance", f"order {p}", "declared", "its shape")
    if form.samples is not None:
        facts.record("samples", str(form.samples), "declared", "by the user or the data")
        if form.samples <= p:
            few = "fewer than the order needs: the covariance matrix is singular"
            facts.record("rank", f"at most {form.samples}", "derived", few)
    held, source = f"{bytes_words(8.0 * p * p)}", "its shape"
    facts.record("memory of the data", held, "derived", source)
    added = f"about {bytes_words(50.0 * 8.0 * p * p)}"
    facts.record("memory of a solve", added, "estimated", "fifty matrices of this order")
    curvature = f"{form.weight / form.beta**2:.3g}" if np.isfinite(form.beta) else "none known"
    source = "one over the square of the upper bound"
    facts.record("strong convexity", curvature, "derived", source)
    smooth = f"{form.weight / form.alpha**2:.3g}" if form.alpha > 0.0 else "unbounded"
    facts.record("smoothness", smooth, "derived", "one over the square of the lower bound")
    required = int(form.sparsity.free.size) - p
    if required:
        facts.record("edges that must be there", str(required), "declared", "by the user")
    forbidden = p * (p + 1) // 2 - form.sparsity.size
    if forbidden:
        facts.record("edges that must not be there", str(forbidden), "declared", "by the user")
    return facts
