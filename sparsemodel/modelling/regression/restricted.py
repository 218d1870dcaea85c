"""The problem on a chosen support, as a CVXPY problem."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsemodel.compiler.canonical.layout import Layout
from sparsemodel.interfaces import BoolArray, IntArray, ModelError, SparseRegression
from sparsemodel.interfaces.numeric import plain_array


def restricted(form: SparseRegression, layout: Layout, counted: BoolArray, support: Any) -> Any:
    """Return the CVXPY problem over the entries in ``support`` and those that are not counted.

    Its variables carry the labels of the problem's, each with its entries that are left.
    """
    from sparsemodel.cvx import labelled_problem

    chosen = _coordinates(layout, np.flatnonzero(counted), support)
    kept = np.union1d(chosen, np.flatnonzero(~counted))
    if not kept.size:
        raise ModelError("There is nothing to solve for: no entry is in the support, or free.")
    sizes = [
        (spec.label, int(np.intersect1d(layout.rows(i), kept).size))
        for i, spec in enumerate(layout.variables)
    ]
    return labelled_problem(form, kept, [part for part in sizes if part[1]])


def _coordinates(layout: Layout, counted: IntArray, support: Any) -> Any:
    """Return the coordinates of indices (or names) within the counted variable."""
    given = plain_array(support, "A support")
    if given.dtype.kind in "US" and given.ndim == 1:
        names = {name: j for j, name in enumerate(layout.names())}
        unknown = [str(name) for name in given if str(name) not in names]
        if unknown:
            raise ModelError(f"There is no entry {unknown[0]!r} to restrict to.")
        return np.unique([names[str(name)] for name in given])
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise ModelError("A support is a list of indices or of names, such as solution.support.")
    own = [layout.rows(i) for i in range(len(layout.variables))]
    places = np.concatenate([rows for rows in own if np.isin(rows, counted).any()] or [counted])
    indices = np.unique(given.astype(np.intp))
    known = indices[(indices >= 0) & (indices < places.size)]
    chosen = places[known]
    if known.size < indices.size or not np.all(np.isin(chosen, counted)):
        raise ModelError("The support names entries that are not counted, or out of range.")
    return chosen
