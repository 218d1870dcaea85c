r"""The problem that a certificate is about, put together from its file and the reader's data.

.. math:: P(x) = \sum_t \sum_i c_i \ell_t\bigl((A_t x + o_t)_i; y_i\bigr)
          + \tfrac12 \sum_j \lambda_j x_j^2 + \gamma\,\#\text{units} + \text{constant},

at most ``k`` counted units of ``x`` nonzero, ``lower <= x <= upper``, ``l <= C x <= u``. A unit is
a coordinate (a row of ``x`` when it has several columns) or a group of them; the others are always
in.
"""

from __future__ import annotations

import hashlib
import math
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sparsemodel.checker import files
from sparsemodel.checker.files import require
from sparsemodel.checker.proof.arithmetic import Ball, middle, number
from sparsemodel.checker.proof.constraints import Eigenvalues, Norm, limits_of
from sparsemodel.checker.proof.losses import FORMULAS, Term, cox_of, loss_of
from sparsemodel.checker.proof.supports import Supports, supports_of


@dataclass(eq=False)
class Problem:
    """A sparse regression."""

    terms: list[Term]
    shape: tuple[int, ...]
    ridge: Ball
    constant: Ball
    free: Any  # coordinates that are always in
    unit: Any  # the counted unit of each coordinate, -1 for the free ones
    supports: Supports
    lower: Any  # bounds in the shape of x, as floats, infinite where there are none
    upper: Any
    least: Any  # the least sizes of coordinates that are not zero, as floats; 0 for none
    exact: bool
    columns: dict[int, str]  # what the reader's files call the columns, where they do
    rows: tuple[Any, Any, Any] | None  # C, l and u of linear constraints, as floats
    norms: tuple[Norm | Eigenvalues, ...]

    def __post_init__(self) -> None:
        names = {t.loss.name for t in self.terms}
        self.squares = names <= {"squared_loss", "linear_term"}
        self.counted, self.units = self.unit >= 0, self.supports.count
        alone = len(self.shape) == 1 and self.units == self.counted.sum()
        self.single = self.squares and bool(alone)  # units of one coordinate

    @property
    def chosen(self) -> tuple[Any, Any]:
        """Return the bounds on coordinates that are not zero."""
        above = (self.least > 0.0) & (self.lower >= 0.0)
        below = (self.least > 0.0) & ~above
        lower = np.where(above, np.maximum(self.lower, self.least), self.lower)
        return lower, np.where(below, np.minimum(self.upper, -self.least), self.upper)

    @property
    def bounded(self) -> bool:
        """Return whether any coordinate has a bound."""
        ends = np.concatenate([self.lower, self.upper])
        return self.rows is not None or bool(self.norms) or bool(np.any(np.isfinite(ends)))

    def units_of(self, x: Any) -> Any:
        """Return the counted units that are not zero, and those that they need beside them."""
        return self.supports.closed(self.unit[rows_of(x) & self.counted].tolist())

    def per_unit(self, values: Any) -> Any:
        """Return upper bounds on the sums of coordinates' upper bounds over each unit."""
        if values.ndim > 1:
            values = _rounded_up(values.sum(axis=1), values.shape[1])
        out = np.zeros(self.units, dtype=values.dtype)
        np.add.at(out, self.unit[self.counted], values[self.counted])
        size = np.bincount(self.unit[self.counted], minlength=self.units).max(initial=1)
        return out if size == 1 else _rounded_up(out, size)

    def number(self, values: Any) -> Ball:
        """Return floats as numbers of the kind that is computed with."""
        return number(values, self.exact)

    def in_rationals(self) -> Problem:
        """Return the problem in rational numbers, which what a file holds is exactly."""
        held = [self.ridge, self.constant, self.supports.prices]
        ridge, constant, prices = (number(middle(v), True) for v in held)
        supports, terms = copy(self.supports), []
        supports.prices = prices
        for t in self.terms:
            A, c, o = (number(middle(v), True) for v in (t.A, t.c, t.o))
            terms.append(replace(t, A=A, c=c, o=o))
        own = replace(self, terms=terms, ridge=ridge, constant=constant)
        return replace(own, supports=supports, exact=True)


def _rounded_up(sums: Any, terms: Any) -> Any:
    return sums if sums.dtype.hasobject else sums + 2.0**-52 * terms * np.abs(sums)


def rows_of(x: Any) -> Any:
    """Return the coordinates with anything in them."""
    return x != 0 if x.ndim == 1 else np.any(x != 0, axis=1)


def build(facts: dict[str, Any], data: files.Data, exact: bool) -> Problem:
    """Return the problem, everything in the file compared with the data and with itself."""
    held, shape = facts["numbers"], tuple(files.whole(s) for s in facts["shape"])
    p, columns = shape[0], dict[int, str]()
    rows, norms = _rows(held, facts["region"], p), limits_of(held, shape)
    pairs = zip(facts["terms"], held["terms"], strict=True)
    terms = [_term(one, more, shape, data, exact, columns) for one, more in pairs]
    ridge, free = files.vector(held["ridge"], (p,), "ridge", 0.0), files.index(held["free"], p)
    unit = _units(held, p, free)
    low, high, least, box = _box(held, shape, unit >= 0)
    never = rows_of((low > 0.0) | (high < 0.0))
    for limit in norms:
        never |= limit.away(p)
    kept = np.bincount(unit[never & (unit >= 0)], minlength=int(unit.max(initial=-1)) + 1) > 0
    supports, hashes = supports_of(facts, held, kept, exact)
    forced, constant = files.whole(facts["forced"]), files.real(facts["constant"])
    fits = math.isfinite(constant) and forced <= never[free].sum()
    require(fits, "one of 'problem.forced', 'constant' makes no sense")
    groups = None if held["groups"] is None else unit
    counted = ridge[unit >= 0]
    for line, found in (
        ("ridge", files.array_hash(ridge)),
        ("structure", ":".join([files.array_hash(free), files.array_hash(groups), *hashes])),
        ("box", box),
        ("units", kept.size),
        ("free", int(free.size)),
        ("grouped", groups is not None),
        ("ridge_smallest", float(counted.min()) if counted.size else 0.0),
        ("ridge_largest", float(counted.max(initial=0.0))),
    ):
        stated = files.real(facts[line]) if isinstance(found, float) else facts[line]
        same = stated == found and isinstance(stated, bool) == isinstance(found, bool)
        require(same, f"line 'problem.{line}' says {stated!r}, and its numbers {found!r}")
    size, more = number(ridge, exact), number(constant, exact)
    return Problem(
        *(terms, shape, size, more, free, unit, supports, low, high, least),
        *(exact, columns, rows, norms),
    )


def _rows(held: dict[str, Any], region: str, p: int) -> tuple[Any, Any, Any] | None:
    """Return the linear constraints."""
    rows, norms = held.get("rows"), held.get("norms")
    linear, limited = "linear" in region, "norm" in region or "eigenvalues" in region
    if (linear and rows is None) or (limited and not norms):
        raise files.NotChecked("constraints beside bounds whose numbers are not in the file")
    fits: Any = linear is (rows is not None) and limited is bool(norms)
    fits = fits and (linear or limited or region == "none")
    require(fits, f"line 'problem.region' says {region!r}, and the numbers do not")
    if rows is None:
        return None
    matrix, low, high = (files.array(rows[name]) for name in ("matrix", "lower", "upper"))
    fits = matrix.shape == (low.size, p) and low.shape == high.shape == (low.size,)
    fits = fits and np.all(np.isfinite(matrix)) and np.all(low <= high)
    require(fits, "the linear constraints do not fit the problem")
    return matrix, low, high


def _units(held: dict[str, Any], p: int, free: Any) -> Any:
    """Return the counted unit of each coordinate, -1 for the free ones."""
    unit = np.full(p, -1)
    if held["groups"] is None:
        unit[np.setdiff1d(np.arange(p), free)] = np.arange(p - free.size)
        return unit
    unit = np.array([files.whole(g) for g in held["groups"]])
    fits = unit.shape == (p,) and unit.min(initial=0) >= -1
    fits = fits and set(np.flatnonzero(unit < 0)) == set(free)
    require(fits, "the groups do not fit the coordinates that are always in")
    return unit


def _box(held: dict[str, Any], shape: tuple[int, ...], counted: Any) -> tuple[Any, Any, Any, str]:
    """Return bounds and least sizes in the shape of ``x``, and their hash."""
    given = [files.array(held["lower"]), files.array(held["upper"]), files.array(held.get("least"))]
    none = given[0] is None and given[1] is None
    ends = zip(given, (-np.inf, np.inf, 0.0), strict=True)
    low, high, least = (np.full(shape, end) if a is None else a for a, end in ends)
    fits = low.shape == high.shape == least.shape == shape and np.all(low <= high)
    fits = fits and np.all(np.isfinite(least) & (least >= 0.0))
    require(fits, "the bounds do not fit the coordinates")
    alone = held["groups"] is None and len(shape) == 1 and not np.any(least[~counted])
    fits = alone and not np.any((least > 0.0) & (low < 0.0) & (high > 0.0))
    words = "a coordinate that is away from zero is not counted alone, or on both sides of it"
    require(fits or not np.any(least), words)
    hashes = [files.array_hash(a) for a in (low, high, least)[: 2 if given[2] is None else 3]]
    return low, high, least, "none" if none else ":".join(hashes)


def _term(
    one: Any, more: Any, shape: Any, data: files.Data, exact: bool, columns: dict[int, str]
) -> Term:
    """Return a data set with its loss; ``columns`` gets names of the reader's."""
    n, p = files.whole(one["observations"]), files.whole(one["coordinates"])
    if p != shape[0] or n < 0 or n * p > 2**28:
        raise files.NotChecked(
            f"a matrix of {n} rows and {p} columns: it does not fit or is too large"
        )
    matrix, parts, sources = np.zeros((n, p)), [], []
    for block in more["blocks"]:
        at = files.index(block["columns"], p)
        source, values = data.matrix(block["entries"], n, int(at.size))
        matrix[:, at] += values
        parts.append(f"{files.array_hash(at)}={block['entries']}")
        sources.append(source)
        names = data.headers.get(source) or data.headers.get("names") or []
        if len(names) == at.size > 0:
            columns.update(zip(at.tolist(), names, strict=True))
    text = f"stack {(n, p)} " + " ".join(sorted(parts))
    stacked = "sha256:" + hashlib.sha256(text.encode()).hexdigest()
    alone = len(parts) == 1 and more["blocks"][0]["entries"]
    words = "line 'design' does not follow from the fingerprints of the matrices"
    probed = one["design"].startswith("probe:") and files.of_matrix(one["design"], matrix)
    require(probed or one["design"] in (stacked, alone), words)
    label, y = data.vector(one["target"])
    name, given, u_shape, o = one["loss"], one["parameters"], (n, *shape[1:]), more["offset"]
    c = files.vector(more["weights"], (n,), "weights", 0.0)
    o = None if o is None else files.vector(o, u_shape, "offsets")
    cox = name == "cox_loss" and len(shape) == 1
    loss = cox_of(given, y, c) if cox else loss_of(name, given, y, u_shape)
    same = files.array_hash(c) == one["weights"] and files.array_hash(o) == one["offset"]
    require(same, "the weights or offsets are not those of their fingerprints")
    same = math.fsum(c) == files.real(one["total_weight"])
    require(same, "line 'total_weight' is not the sum of the weights")
    o = np.zeros(u_shape) if o is None else o
    if exact and not loss.piecewise:
        raise files.NotChecked(f"{loss.name} with --exact: it has logarithms or exponentials")
    require(np.all(np.isfinite(matrix)), "the matrix holds NaN or infinite entries")
    files.write(f"  data: c * {FORMULAS[name]}, A: {'; '.join(sources)}, y: {label}")
    A, c, o = (number(v, exact) for v in (matrix, c, o))
    return Term(matrix, A, c, o, loss, y)
