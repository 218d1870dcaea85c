"""Problems and paths in words, as notebooks show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparsemodel.documents.document import Bar, Bars, Document, Facts, Items, Section, Table
from sparsemodel.interfaces import FloatArray


def problem_document(goal: Any, constraints: Sequence[Any], variables: Sequence[Any]) -> Document:
    """Return what was declared."""
    sizes = (
        (v.label, " x ".join(map(str, v.shape)) + " unknowns" if v.shape else "a number")
        for v in variables
    )
    rows = [("subject to" if i == 0 else "", repr(c)) for i, c in enumerate(constraints)]
    return Document("Problem", repr(goal), (Section("", (Facts([*rows, *sizes]),), folded=False),))


def path_document(
    ks: Sequence[int], ridges: Any, objectives: FloatArray, supports: Sequence[Any]
) -> Document:
    """Return the objective at each k (and ridge), and what the largest model is made of."""
    if ridges is not None:
        header = ("k", *(f"ridge {ridge:g}" for ridge in ridges))
        cells = [[f"{value:.5g}" for value in row] for row in objectives.tolist()]
        rows = [[str(k), *row] for k, row in zip(ks, cells, strict=True)]
        table = Section("Objective", (Table(header, rows),), folded=False)
        title = f"{objectives.size} models, k = {ks[0]} to {ks[-1]}, {len(ridges)} ridges"
        return Document("Path", title, (table,))
    pairs = zip(ks, objectives.tolist(), strict=True)
    bars = [
        Bar(
            f"k = {k}",
            value,
            f"{value:.5g}" if np.isfinite(value) else "infeasible",
            value < np.inf,
        )
        for k, value in pairs
    ]
    last = ", ".join(str(name) for name in supports[-1])
    return Document(
        "Path",
        f"{len(ks)} models, k = {ks[0]} to {ks[-1]}",
        (
            Section("", (Bars(bars, ("k", "objective")),), folded=False),
            Section(f"Support at k = {ks[-1]}", (Items((last,)),)),
        ),
    )
