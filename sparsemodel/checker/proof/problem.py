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
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsemodel.checker.files import (
    Data,
    NotChecked,
    Refuted,
    array,
    array_hash,
    in_words,
    index,
    listed,
    real,
    vector,
    whole,
)
from sparsemodel.checker.proof.arithmetic import Number, number
from sparsemodel.checker.proof.cox import cox_of
from sparsemodel.checker.proof.limits import Eigenvalues, Norm, limits_of
from sparsemodel.checker.proof.losses import FORMULAS, Loss, loss_of
from sparsemodel.checker.proof.supports import Supports, supports_of


@dataclass(frozen=True, eq=False)
class Term:
    """One data set with its loss; ``matrix`` in floats, ``A``, ``c`` and ``o`` as numbers."""

    matrix: Any
    A: Number
    loss: Loss
    y: Any
    c: Number
    o: Number


@dataclass(eq=False)
class Problem:
    """A sparse regression."""

    terms: list[Term]
    shape: tuple[int, ...]
    ridge: Number
    constant: Number
    free: Any
    """Coordinates that are always in."""
    unit: Any
    """The counted unit of each coordinate, -1 for the free ones."""
    supports: Supports
    """Which units may be nonzero together, and what they cost."""
    lower: Any
    """Bounds, as floats (infinite where there are none), in the shape of ``x``."""
    upper: Any
    least: Any
    """The least sizes of coordinates that are not zero, as floats; 0 where there is none."""
    exact: bool
    squares: bool
    """Whether all losses are squares or linear."""
    words: list[str]
    columns: dict[int, str]
    """What the reader's files call the columns, where they do."""
    rows: tuple[Any, Any, Any] | None = None
    """``C``, ``l`` and ``u`` of linear constraints, as floats."""
    norms: tuple[Norm | Eigenvalues, ...] = ()

    def __post_init__(self) -> None:
        self.counted = self.unit >= 0
        self.units = self.supports.count

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

    @property
    def single(self) -> bool:
        """Return whether losses are squares and units single coordinates."""
        alone = len(self.shape) == 1 and self.units == self.counted.sum()
        return self.squares and bool(alone)

    def units_of(self, x: Any) -> Any:
        """Return the counted units that are not zero, and those that they need beside them."""
        return self.supports.closed(self.unit[rows_of(x) & self.counted].tolist())

    def per_unit(self, values: Any) -> Any:
        """Return upper bounds on the sums of coordinates' upper bounds over each unit."""
        values = values if values.ndim == 1 else _up_sum(values)
        out = np.zeros(self.units, dtype=values.dtype)
        np.add.at(out, self.unit[self.counted], values[self.counted])
        size = np.bincount(self.unit[self.counted], minlength=self.units).max(initial=1)
        return out if self.exact or size == 1 else out + 2.0**-52 * size * np.abs(out)

    def number(self, values: Any) -> Number:
        """Return floats as numbers of the kind that is computed with."""
        return number(values, self.exact)


def rows_of(x: Any) -> Any:
    """Return the coordinates with anything in them."""
    return x != 0 if x.ndim == 1 else np.any(x != 0, axis=1)


def _up_sum(values: Any) -> Any:
    out = values.sum(axis=1)
    return out if values.dtype == object else out + 2.0**-52 * values.shape[1] * abs(values).sum(1)


def build(facts: dict[str, Any], data: Data, exact: bool) -> Problem:
    """Return the problem, everything in the file compared with the data and with itself."""
    held, shape = facts["numbers"], tuple(whole(s) for s in facts["shape"])
    p, columns, terms, words = shape[0], dict[int, str](), list[Term](), list[str]()
    rows, norms = _rows(held, facts["region"], p), limits_of(held, shape)
    for one, more in zip(facts["terms"], held["terms"], strict=True):
        term, said = _term(one, more, shape, data, exact, columns)
        terms.append(term)
        words += said
    ridge, free = vector(array(held["ridge"]), (p,), "ridge", 0.0), index(held["free"], p)
    unit = _units(held, p, free)
    low, high, least, box = _box(held, shape, unit >= 0)
    never = rows_of((low > 0.0) | (high < 0.0))
    for limit in norms:
        never |= limit.away(shape[0])
    kept = np.bincount(unit[never & (unit >= 0)], minlength=int(unit.max(initial=-1)) + 1) > 0
    supports = supports_of(facts, held, kept, exact)
    forced, constant = whole(facts["forced"]), real(facts["constant"])
    _compare(facts, ridge, free, unit, held["groups"] is not None, box, supports.hashes)
    if not math.isfinite(constant) or forced > never[free].sum():
        raise Refuted("one of 'problem.forced', 'constant' makes no sense.")
    words += [
        f"plus 1/2 ridge_j x_j^2, ridge on the counted: {in_words(ridge[unit >= 0])}",
        f"  ridge on those always in: {in_words(ridge[free])}",
        f"plus the constant {constant!r}",
        *supports.words(forced, "coordinates" if held["groups"] is None else "groups"),
        f"always in, whatever the others are: coordinates {listed(free)}",
        f"bounds: lower {in_words(low)}; upper {in_words(high)}",
    ]
    if "least" in held:
        words.append(f"  or zero, with nothing nonzero nearer to it than: {in_words(least)}")
    if rows is not None:
        held_rows = [in_words(part) for part in rows]
        words.append("{} rows l <= C x <= u: C {}, l {}, u {}".format(rows[1].size, *held_rows))
    words += [one.words for one in norms]
    return Problem(
        terms=terms,
        shape=shape,
        ridge=number(ridge, exact),
        constant=number(constant, exact),
        free=free,
        unit=unit,
        supports=supports,
        lower=low,
        upper=high,
        least=least,
        exact=exact,
        squares=all(t.loss.name in ("squared_loss", "linear_term") for t in terms),
        words=words,
        columns=columns,
        rows=rows,
        norms=norms,
    )


def _rows(held: dict[str, Any], region: str, p: int) -> tuple[Any, Any, Any] | None:
    """Return the linear constraints."""
    if region == "none":
        return None
    rows = held.get("rows")
    limited = "norm" in region or "eigenvalues" in region
    if ("linear" in region and rows is None) or (limited and not held.get("norms")):
        raise NotChecked("constraints beside bounds whose numbers are not in the file")
    if rows is None:
        return None
    matrix, low, high = (array(rows[name]) for name in ("matrix", "lower", "upper"))
    fits = matrix.shape == (low.size, p) and low.shape == high.shape == (low.size,)
    if not fits or not np.all(np.isfinite(matrix)) or not np.all(low <= high):
        raise Refuted("the linear constraints do not fit the problem.")
    return matrix, low, high


def _units(held: dict[str, Any], p: int, free: Any) -> Any:
    """Return the counted unit of each coordinate, -1 for the free ones."""
    unit = np.full(p, -1)
    if held["groups"] is None:
        unit[np.setdiff1d(np.arange(p), free)] = np.arange(p - free.size)
    else:
        unit = np.array([whole(g) for g in held["groups"]])
        out = np.flatnonzero(unit < 0)
        if unit.shape != (p,) or unit.min(initial=0) < -1 or set(out) != set(free):
            raise Refuted("the groups do not fit the coordinates that are always in.")
    return unit


def _box(held: dict[str, Any], shape: tuple[int, ...], counted: Any) -> tuple[Any, Any, Any, str]:
    """Return bounds and least sizes in the shape of ``x``, and their hash."""
    low, high, least = array(held["lower"]), array(held["upper"]), array(held.get("least"))
    none = low is None and high is None
    low = np.full(shape, -np.inf) if low is None else low
    high = np.full(shape, np.inf) if high is None else high
    if low.shape != shape or high.shape != shape or not np.all(low <= high):
        raise Refuted("the bounds do not fit the coordinates.")
    hashes = [array_hash(a) for a in (low, high, *([] if least is None else [least]))]
    least = vector(np.zeros(shape) if least is None else least, shape, "least sizes", 0.0)
    alone = held["groups"] is None and len(shape) == 1 and not np.any(least[~counted])
    if np.any(least) and not (alone and not np.any((least > 0.0) & (low < 0.0) & (high > 0.0))):
        raise Refuted(
            "a coordinate that is away from zero is not counted alone, or on both sides of it."
        )
    return low, high, least, "none" if none else ":".join(hashes)


def _compare(
    facts: dict[str, Any], ridge: Any, free: Any, unit: Any, grouped: bool, box: str, more: Any
) -> None:
    """Compare what the file says of the problem with what its numbers say."""
    counted = ridge[unit >= 0]
    structure = [array_hash(free), array_hash(unit if grouped else None), *more]
    for line, found in (
        ("ridge", array_hash(ridge)),
        ("structure", ":".join(structure)),
        ("box", box),
        ("units", int(unit.max(initial=-1)) + 1),
        ("free", int(free.size)),
        ("grouped", grouped),
        ("ridge_smallest", float(counted.min()) if counted.size else 0.0),
        ("ridge_largest", float(counted.max(initial=0.0))),
    ):
        stated = real(facts[line]) if isinstance(found, float) else facts[line]
        if stated != found or isinstance(stated, bool) != isinstance(found, bool):
            raise Refuted(f"line 'problem.{line}' says {stated!r}, and its numbers {found!r}.")


def _term(
    one: Any, more: Any, shape: Any, data: Data, exact: bool, columns: dict[int, str]
) -> tuple[Term, list[str]]:
    """Return a data set with its loss, in words as well; ``columns`` gets names of the reader's."""
    n, p = whole(one["observations"]), whole(one["coordinates"])
    if p != shape[0] or n < 0 or n * p > 2**28:
        raise NotChecked(f"a matrix of {n} rows and {p} columns: it does not fit or is too large")
    matrix, parts, sources = np.zeros((n, p)), [], []
    for block in more["blocks"]:
        at = index(block["columns"], p)
        source, values = data.matrix(block["entries"], n, int(at.size))
        if values.shape != (n, at.size):
            raise Refuted(f"{source} has shape {values.shape}, and the file ({n}, {at.size})")
        matrix[:, at] += values
        parts.append(f"{array_hash(at)}={block['entries']}")
        sources.append(f"{source} on coordinates {listed(at)}")
        names = data.headers.get(source) or data.headers.get("names") or []
        if len(names) == at.size > 0:
            columns.update(zip(at.tolist(), names, strict=True))
    text = f"stack {(n, p)} " + " ".join(sorted(parts))
    stacked = "sha256:" + hashlib.sha256(text.encode()).hexdigest()
    alone = len(parts) == 1 and more["blocks"][0]["entries"]
    if one["design"] not in (stacked, alone):
        raise Refuted("line 'design' does not follow from the fingerprints of the matrices.")
    label, y = data.vector(one["target"])
    c = vector(array(more["weights"]), (n,), "weights", 0.0)
    name, u_shape = one["loss"], (n, *shape[1:])
    if name == "cox_loss" and len(shape) == 1:
        loss: Loss = cox_of(one["parameters"], y, c)
    else:
        loss = loss_of(name, one["parameters"], y, u_shape)
    o = array(more["offset"])
    if array_hash(c) != one["weights"] or array_hash(o) != one["offset"]:
        raise Refuted("the weights or offsets are not those of their fingerprints.")
    if math.fsum(c) != real(one["total_weight"]):
        raise Refuted("line 'total_weight' is not the sum of the weights.")
    offset = np.zeros(u_shape) if o is None else vector(o, u_shape, "offsets")
    if exact and not loss.piecewise:
        raise NotChecked(f"{loss.name} with --exact: it has logarithms or exponentials")
    if not np.all(np.isfinite(matrix)):
        raise Refuted("the matrix holds NaN or infinite entries.")
    given = "; ".join(f"{key} = {value}" for key, value in one["parameters"].items())
    words = [
        f"the sum over {n} observations of c * {FORMULAS[name]}; {given}",
        f"  u = A x + o, A: {'; '.join(sources)}",
        f"  y: {label}; c: {in_words(c)}; o: {in_words(offset)}",
    ]
    made = Term(matrix, number(matrix, exact), loss, y, number(c, exact), number(offset, exact))
    return made, words
