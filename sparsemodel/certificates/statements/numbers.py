"""The numbers behind the fingerprints of a problem: what somebody without this package needs to
declare it again from the data.

Plain JSON values. Data are not among them: of every matrix there is the fingerprint and the columns
it stands in, and targets have a fingerprint of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from sparsemodel.certificates.arithmetic.limits import Limit, NormLimit, SpectrumLimit
from sparsemodel.certificates.files.codec import encode
from sparsemodel.certificates.files.packing import pack
from sparsemodel.designs import DenseDesign
from sparsemodel.interfaces import (
    Access,
    Cardinality,
    Design,
    FloatArray,
    IntArray,
    SparseRegression,
)
from sparsemodel.interfaces.precision import SparsePrecision

_ROWS, _ENTRIES = 1000, 2**20
"""Linear constraints, and entries of their matrix, up to which files hold them."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The linear constraints of a problem, one below the other: ``lower <= C x <= upper``."""

    matrix: FloatArray
    """``C``, shape ``(m, p)``."""
    lower: FloatArray
    upper: FloatArray
    norms: tuple[Limit, ...] = ()
    """Limits on norms, and eigenvalues, that have slopes as well, in rows below these."""

    @property
    def design(self) -> Design:
        """Return all rows as a design."""
        return DenseDesign(
            np.concatenate([self.matrix, *(norm.design.to_array() for norm in self.norms)])
        )

    @property
    def outer(self) -> Rows:
        """Return linear rows alone, where norms leave each of their entries its interval."""
        ends = [norm.interval for norm in self.norms]
        lower, upper = (
            np.concatenate([own, *(end[side] for end in ends)])
            for side, own in enumerate((self.lower, self.upper))
        )
        return Rows(self.design.to_array(), lower, upper)

    def on(self, coordinates: IntArray) -> Rows:
        """Return the same on some of the coordinates."""
        norms = tuple(norm.on(coordinates) for norm in self.norms)
        return replace(self, matrix=self.matrix[:, coordinates], norms=norms)

    def divided(self, values: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
        """Return what belongs to linear rows, and to each norm.

        Raises
        ------
        ValueError
            When there are not as many values as rows.
        """
        sizes = [self.lower.size, *(norm.shift.size for norm in self.norms)]
        if values.shape != (sum(sizes),):
            raise ValueError("slopes do not fit the constraints")
        first, *others = np.split(values, np.cumsum(sizes)[:-1])
        return first, others

    def ends(self, y: FloatArray) -> FloatArray:
        """Return ``b`` with ``y' b`` at least ``y' C x`` where the constraints hold.

        Raises
        ------
        ValueError
            When a slope pushes away from an end that is not there, or there are not as many.
        """
        first, others = self.divided(y)
        ends = np.where(first > 0.0, self.upper, np.where(first < 0.0, self.lower, 0.0))
        parts = [norm.end(part) for norm, part in zip(self.norms, others, strict=True)]
        out = np.concatenate([ends, *parts])
        if not np.all(np.isfinite(y + out)):
            raise ValueError("slopes do not fit the constraints")
        return out


def norms_of(form: SparseRegression) -> tuple[Limit, ...]:
    """Return limits on norms and eigenvalues; none where one is too large or cannot be read."""
    region, p = form.region, form.sparsity.size
    found: list[NormLimit] = []
    if region is None or form.matrix:
        return ()
    for order, balls in ((2, region.balls), (1, region.one_norms)):
        for ball in balls:
            shift = np.zeros(ball.index.size) if ball.center is None else -ball.center
            found.append(NormLimit(ball.index, None, p, shift, float(ball.radius), order))
    for image in region.images:
        m = image.design.shape[0]
        if Access.ROWS not in image.design.access or m * p > _ENTRIES:
            return ()
        matrix = image.design.to_array()
        found.append(NormLimit(None, matrix, p, image.shift, float(image.radius), image.order))
    return (*found, *(SpectrumLimit(part, p) for part in region.spectra))


def rows_of(form: SparseRegression) -> Rows | None:
    """Return the linear constraints; None where there are none, or too many, or unreadable ones."""
    parts = () if form.region is None else form.region.linear
    count = sum(part.design.shape[0] for part in parts)
    readable = all(Access.ROWS in part.design.access for part in parts)
    if not 0 < count <= _ROWS or count * form.sparsity.size > _ENTRIES or not readable:
        return None
    matrix = np.concatenate([part.design.to_array() for part in parts])
    lower, upper = (np.concatenate([getattr(p, s) for p in parts]) for s in ("lower", "upper"))
    return Rows(matrix, lower, upper)


def constraints_of(form: SparseRegression) -> Rows | None:
    """Return linear constraints and limits on norms that may have slopes; None for none of them.

    Also where there are too many, or their entries cannot be read.
    """
    p, none, norms = form.sparsity.size, np.zeros(0), norms_of(form)
    rows = rows_of(form) or Rows(np.zeros((0, p)), none, none)
    size = (rows.lower.size + sum(norm.shift.size for norm in norms)) * p
    return replace(rows, norms=norms) if 0 < size <= _ENTRIES else None


def numbers_of(form: SparseRegression, blocks: list[list[tuple[IntArray, str]]]) -> dict[str, Any]:
    """Return weights, offsets, ridge, bounds, and which coordinates are always in or grouped.

    ``blocks`` are the columns and fingerprints of each term's matrices.
    """
    box, groups = form.box, form.sparsity.groups
    lower = None if box is None else box.lower
    upper = None if box is None else box.upper
    found = {
        "terms": [
            {
                "blocks": [
                    {"columns": _index(columns), "entries": entries}
                    for columns, entries in sorted(parts, key=lambda part: part[1])
                ],
                "weights": _array(term.weights),
                "offset": _array(term.offset),
            }
            for term, parts in zip(form.terms, blocks, strict=True)
        ],
        "ridge": _array(form.ridge),
        "free": _index(form.sparsity.free),
        "groups": None if groups is None else [int(g) for g in groups],
        **({"limits": _limits(form.sparsity)} if form.sparsity.limits else {}),
        **({"crossing": _limits(form.sparsity, crossing=True)} if form.sparsity.crossing else {}),
        **_costs(form.sparsity),
        **({} if form.sparsity.order is None else {"order": form.sparsity.order.as_lists}),
        "lower": _array(lower),
        "upper": _array(upper),
        **({} if box is None or box.least is None else {"least": _array(box.least)}),
    }
    rows = rows_of(form)
    if rows is not None:
        named = {"matrix": rows.matrix, "lower": rows.lower, "upper": rows.upper}
        found["rows"] = {name: _array(values) for name, values in named.items()}
    norms = norms_of(form)
    if norms:
        found["norms"] = list(map(_limit, norms))
    out: dict[str, Any] = encode(found)
    return out


def _limit(norm: Limit) -> dict[str, Any]:
    """Return a limit on a norm, or on eigenvalues."""
    if isinstance(norm, SpectrumLimit):
        part = norm.spectrum
        ends = np.array([part.lower, part.upper])
        return {"columns": _index(part.index), "eigenvalues": pack(ends)}
    where = (
        {"matrix": _array(norm.matrix)} if norm.index is None else {"columns": _index(norm.index)}
    )
    return {**where, "shift": _array(norm.shift), "radius": norm.radius, "order": norm.order}


def _limits(sparsity: Cardinality, *, crossing: bool = False) -> list[dict[str, Any]]:
    """Return the sets of units with their limits, inner ones first."""
    sets = sparsity.limited_sets(crossing=crossing)
    return [{"units": _index(units), "most": most} for units, most in sets]


def _costs(sparsity: Cardinality) -> dict[str, Any]:
    """Return prices that differ, and budgets with what each unit takes of them."""
    found: dict[str, Any] = {}
    if sparsity.prices is not None:
        found["prices"] = pack(sparsity.prices)
    budgets = [{"costs": pack(one.costs), "most": one.most} for one in sparsity.knapsacks]
    if budgets:
        found["knapsack"] = budgets if len(budgets) > 1 else budgets[0]
    return found


def edges_of(form: SparsePrecision) -> dict[str, Any]:
    """Return required and forbidden edges as numbers ``i * p + j`` with ``i < j``."""
    p = form.order
    keys = form.rows * p + form.cols
    absent = np.triu(np.ones((p, p), dtype=bool), 1).ravel()
    absent[keys] = False
    required = keys[form.sparsity.free]
    return {
        "required": _index(required[required % (p + 1) != 0]),  # without the diagonal
        "forbidden": _index(np.flatnonzero(absent)),
    }


def _array(values: FloatArray | None) -> dict[str, Any] | None:
    """Return an array as JSON values: one number where all entries are the same."""
    if values is None:
        return None
    if values.size and np.all(values == values.flat[0]):
        return {"shape": list(values.shape), "every": float(values.flat[0])}
    return pack(values)


def _index(values: IntArray) -> list[int] | dict[str, int]:
    """Return sorted indices; a range where they are one of more than two."""
    if values.size > 2 and np.array_equal(values, np.arange(values[0], values[0] + values.size)):
        return {"from": int(values[0]), "to": int(values[-1]) + 1}
    return [int(v) for v in values]
