"""Limits on norms and eigenvalues, and constraints put into the objective by multipliers."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sparsemodel.checker import files
from sparsemodel.checker.files import require
from sparsemodel.checker.proof.arithmetic import TINY, UNIT
from sparsemodel.checker.proof.losses import Term, loss_of

FEASIBLE = 1e-9
"""Violation of declared bounds, relative to their size, that counts as rounding."""


@dataclass(frozen=True, eq=False)
class Norm:
    """A limit ``||C x + s|| <= r``, as floats."""

    matrix: Any
    shift: Any
    radius: float
    order: int
    index: Any  # the coordinates where C x is some of them, else None

    def away(self, p: int) -> Any:
        """Return which coordinates it keeps away from zero."""
        return np.zeros(p, dtype=bool)

    def broken(self, x: Any) -> bool:
        """Return whether a point violates it."""
        part = self.matrix @ x + self.shift
        size, reach = float(np.linalg.norm(part, self.order)), np.abs(self.shift) + np.abs(part)
        rounding = (part.size + 8) * 2.0**-53 * float(reach.sum())
        rounding += 2.0**-52 * float(np.linalg.norm(x))
        return bool(size - self.radius - rounding > FEASIBLE * (self.radius + min(size, 1.0)))

    def end(self, y: Any) -> Any:
        r"""Return ``b`` with :math:`y'b \ge r \|y\|_* - y's`, which :math:`y'Cx` never exceeds.

        That is where it is largest, but for rounding moved away along ``y``.
        """
        if not np.any(y):
            return -self.shift
        far = np.abs(y) / np.abs(y).max()
        one = np.arange(y.size) == np.argmax(far)
        far = far / np.linalg.norm(far) if self.order == 2 else np.where(one, 1.0, 0.0)
        slack = (16.0 + 2.0 * y.size) * UNIT * (self.radius + np.abs(self.shift)) + 2.0**-1022
        return np.sign(y) * (self.radius * far + slack) - self.shift


@dataclass(frozen=True, eq=False)
class Eigenvalues:
    """Limits on the eigenvalues of a symmetric matrix, whose upper triangle is ``C x``."""

    matrix: Any
    shift: Any  # zeros
    least: float
    most: float
    identity: Any  # its upper triangle
    index = None

    def away(self, p: int) -> Any:
        """Return which coordinates it keeps away from zero: a diagonal, if all are positive."""
        return (self.least > 0.0) & self.matrix[self.identity > 0.0].any(axis=0)

    def values(self, entries: Any) -> Any:
        """Return the eigenvalues, in rising order, of the matrix with this upper triangle."""
        p = int(self.identity.sum())
        out = np.zeros((p, p))
        out[np.triu_indices(p)] = entries
        return np.linalg.eigvalsh(out, UPLO="U")

    def broken(self, x: Any) -> bool:
        """Return whether a point violates it."""
        values = self.values(self.matrix @ x)
        ends = [abs(end) for end in (self.least, self.most) if math.isfinite(end)]
        slack = FEASIBLE * max(*np.abs(values), *ends)
        return not (values[0] >= self.least - slack and values[-1] <= self.most + slack)

    def end(self, y: Any) -> Any:
        r"""Return ``b`` with :math:`y'b \ge y'Cx`, infinite where there is none.

        :math:`y'Cx = \langle Y, W \rangle` is at most :math:`l\,\mathrm{tr}\,Y + (u - l)` times the
        sum of the positive eigenvalues of ``Y``; those are computed by a backward stable method.
        """
        start, far, sign = self.least, self.most, 1.0
        if start == -np.inf:
            start, far, sign = far, start, -1.0
        values = self.values(sign * y * (0.5 + 0.5 * self.identity))
        values = values + 8.0 * values.size * UNIT * np.linalg.norm(values)
        positive = float(np.maximum(values, 0.0).sum())
        if positive > 0.0 and math.isinf(far):
            return np.full(y.size, np.inf)
        out = start * self.identity
        more = abs(far - start) * positive * (y / (y @ y)) if positive > 0.0 else 0.0 * y
        slack = (16.0 + 2.0 * y.size) * UNIT * (np.abs(out) + np.abs(more)) + 2.0**-1022
        return out + more + np.sign(y) * slack


def limits_of(held: dict[str, Any], shape: tuple[int, ...]) -> tuple[Norm | Eigenvalues, ...]:
    """Return the limits on norms and eigenvalues."""
    out = list[Norm | Eigenvalues]()
    for one in held.get("norms", []):
        on = files.index(one["columns"], shape[0]) if "columns" in one else None
        matrix = files.array(one["matrix"]) if on is None else np.eye(shape[0])[on]
        if "eigenvalues" in one:
            ends, p = files.array(one["eigenvalues"]), int(np.sqrt(2 * len(matrix)))
            fits = len(shape) == 1 and ends.shape == (2,) and p * (p + 1) == 2 * len(matrix) > 0
            fits = fits and ends[0] <= ends[1] and np.any(np.isfinite(ends))
            require(fits, "the limits on eigenvalues do not fit the problem")
            eye, (least, most) = np.eye(p)[np.triu_indices(p)], ends.tolist()
            out.append(Eigenvalues(matrix, 0.0 * eye, least, most, eye))
            continue
        shift, radius, order = files.array(one["shift"]), files.real(one["radius"]), one["order"]
        fits = len(shape) == 1 and order in (1, 2) and matrix.shape == (shift.size, shape[0])
        numbers = np.append(matrix.ravel(), [*shift, radius])
        fits = fits and np.all(np.isfinite(numbers)) and radius >= 0.0
        require(fits, "the limits on norms do not fit the problem")
        out.append(Norm(matrix, shift, radius, int(order), on))
    return tuple(out)


def without_rows(problem: Any, held: dict[str, Any], y: Any) -> Any:
    r"""Return the problem with :math:`y'(Cx - b) + \tfrac12 \sum_i \rho_i (Cx - b)_i^2` in place of
    its constraints: nowhere above it, with ``b`` an end where :math:`y'Cx` is largest. Of limits on
    norms ``y`` has further entries, or for all parts it is :math:`\tfrac\mu2(\|Cx + s\|_2^2 - r^2)`
    or :math:`\mu(\|Cx + s\|_1 - r)`.
    """
    some = problem.rows is not None or problem.norms
    require(some and len(problem.shape) == 1, "multipliers without linear constraints")
    matrix, low, high = problem.rows or (np.zeros((0, problem.shape[0])), np.zeros(0), np.zeros(0))
    stiff, mu = files.array(held["stiffness"]), files.array(held.get("norms"))
    own = held.get("own", False)
    sloped = problem.norms if y.size > low.size else ()
    mu = np.zeros(len(problem.norms)) if mu is None else mu
    sizes = [low.size, *(norm.shift.size for norm in sloped)]
    shapes = (sum(sizes),), low.shape, (len(problem.norms),)
    fits: Any = (y.shape, stiff.shape, mu.shape) == shapes
    require(fits, "the multipliers do not fit the constraints")
    first, *others = np.split(y, np.cumsum(sizes)[:-1])
    ends = [np.where(first > 0.0, high, np.where(first < 0.0, low, 0.0))]
    ends += [norm.end(part) for norm, part in zip(sloped, others, strict=True)]
    fits = np.all(np.isfinite([*y, *stiff, *np.concatenate(ends), *mu]))
    require(fits, "the multipliers do not fit the constraints")
    fits = np.all(stiff >= 0.0) and not np.any(stiff[low < high]) and np.all(mu >= 0.0)
    require(fits, "a multiplier has the wrong sign")
    require(isinstance(own, bool), "line 'witness.multipliers.own' says neither yes nor no")
    terms, constant = list(problem.terms), problem.constant

    def add(name: str, entries: Any, aim: Any, c: Any, o: Any) -> None:
        A, c, o = (problem.number(v) for v in (entries, c, o + np.zeros(aim.shape)))
        terms.append(Term(entries, A, c, o, loss_of(name, {}, aim, aim.shape), aim))

    for norm, m in zip(problem.norms, mu.tolist(), strict=True):
        if m > 0.0:
            require(isinstance(norm, Norm), "bounds on eigenvalues have slopes alone")
            name = "squared_loss" if norm.order == 2 else "absolute_loss"
            add(name, norm.matrix, -norm.shift, np.full(norm.shift.size, m), 0.0)
            reach = problem.number(norm.radius)
            most = reach * reach / 2 if norm.order == 2 else reach
            constant = constant - most * m
    if own or np.any(y):  # parts have others, though all of them are zero here
        every = np.concatenate([matrix, *(norm.matrix for norm in sloped)])
        add("linear_term", every, y, np.ones(y.size), -np.concatenate(ends))
        # Another slope of the same sign, or of an equation, is as good.
        rows = np.arange(y.size) < low.size
        equal = np.append(low == high, np.zeros(y.size - low.size, dtype=bool)) & (y != 0.0)
        below, above = rows & ((y < 0.0) | equal), rows & ((y > 0.0) | equal)
        terms[-1].loss.lower = np.where(below, -np.inf, np.where(rows, 0.0, y))
        terms[-1].loss.upper = np.where(above, np.inf, np.where(rows, 0.0, y))
    if np.any(stiff):
        add("squared_loss", matrix, np.where(stiff > 0.0, low, 0.0), stiff, 0.0)
    lower, upper = implied(problem, matrix, low, high, problem.counted)
    supports = _with_budget(problem, matrix, low, high)
    return replace(
        problem,
        terms=terms,
        constant=constant,
        lower=lower,
        upper=upper,
        rows=None,
        norms=(),
        supports=supports,
    )


def _with_budget(problem: Any, matrix: Any, low: Any, high: Any) -> Any:
    """Return the supports with the budget of the row that has room for the fewest units.

    What units add up to is at least what their least sizes do. None beside declared budgets.
    """
    ends, counted, found = problem.chosen, problem.counted, copy(problem.supports)
    alone = np.any(problem.least) and problem.units == counted.sum()
    if not alone or found.priced or found.order:
        return found
    for row, end in (*zip(matrix, high, strict=True), *zip(-matrix, -low, strict=True)):
        on, least = row != 0.0, np.zeros(row.size)
        least[on] = np.minimum(row[on] * ends[0][on], row[on] * ends[1][on])
        if np.isfinite(end) and np.all(np.isfinite(least)) and np.all(least[counted] >= 0.0):
            size = abs(end) + np.abs(least).sum()
            most = end - least[~counted].sum() + 16.0 * UNIT * (row.size + 8) * size
            one = least[counted] * (1.0 - 4.0 * UNIT), max(float(most), 0.0)
            other = copy(problem.supports)
            other.rows, other.priced, other.plain = [one, *other.rows], 1, False
            nobody = np.zeros(other.count, dtype=bool)
            other.budget = min(other.budget, other.room(nobody, ~nobody))
            found = other if other.budget < found.budget else found
    return found


def implied(problem: Any, matrix: Any, low: Any, high: Any, among: Any) -> tuple[Any, Any]:
    """Return bounds with what constraints imply for ``among`` without one, rounded outwards."""
    lower, upper = problem.lower.copy(), problem.upper.copy()

    def within(on: Any, near: Any, far: Any) -> None:
        on, near, far = on[among[on]], near[among[on]], far[among[on]]
        upper[on] = np.where(upper[on] == np.inf, far, upper[on])
        lower[on] = np.where(lower[on] == -np.inf, near, lower[on])

    for norm in problem.norms:
        if norm.index is not None:
            slack = 16.0 * UNIT * (norm.radius + np.abs(norm.shift)) + TINY
            far = np.maximum(norm.radius - norm.shift + slack, 0.0)
            within(norm.index, np.minimum(-norm.radius - norm.shift - slack, 0.0), far)
    for row, end in (*zip(matrix, high, strict=True), *zip(-matrix, -low, strict=True)):
        on = np.flatnonzero(row)
        c = row[on]
        least = np.where(c > 0.0, c * lower[on], c * upper[on])
        if not np.isfinite(end) or np.isinf(least).sum() > 1:
            continue
        known = np.where(np.isinf(least), 0.0, least)
        rest = known.sum() - known  # of the others; where one of them has no end, this is for it
        rest = np.where(np.any(np.isinf(least)) & ~np.isinf(least), -np.inf, rest)
        slack = 16.0 * UNIT * (on.size + 8) * (abs(end) + np.abs(known).sum())
        reach = np.maximum((end - rest + slack) / np.abs(c), 0.0)
        within(on, np.where(c < 0.0, -reach, -np.inf), np.where(c > 0.0, reach, np.inf))
    return lower, upper
