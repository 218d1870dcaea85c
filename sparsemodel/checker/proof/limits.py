"""Limits on norms and eigenvalues: what keeps them, and how far a linear function goes within."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsemodel.checker.files import Refuted, array, in_words, index, real
from sparsemodel.checker.proof.arithmetic import UNIT

FEASIBLE = 1e-9
"""Violation of declared bounds, relative to their size, that counts as rounding."""


@dataclass(frozen=True, eq=False)
class Norm:
    """A limit ``||C x + s|| <= r``, as floats."""

    matrix: Any
    shift: Any
    radius: float
    order: int
    index: Any
    """The coordinates where ``C x`` is some of them, else None."""

    def away(self, p: int) -> Any:
        """Return which coordinates it keeps away from zero."""
        return np.zeros(p, dtype=bool)

    @property
    def words(self) -> str:
        """Return the limit in words."""
        ball = f"||C x + s||_{self.order} <= {self.radius!r}"
        return f"{ball}: C {in_words(self.matrix)}, s {in_words(self.shift)}"

    def broken(self, x: Any) -> str:
        """Return what is wrong at a point, or nothing."""
        part = self.matrix @ x + self.shift
        size, reach = float(np.linalg.norm(part, self.order)), np.abs(self.shift) + np.abs(part)
        rounding = (part.size + 8) * 2.0**-53 * float(reach.sum())
        rounding += 2.0**-52 * float(np.linalg.norm(x))
        kept = size - self.radius - rounding <= FEASIBLE * (self.radius + min(size, 1.0))
        return "" if kept else "a norm is beyond its limit"

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
    least: float
    most: float

    @property
    def shift(self) -> Any:
        return np.zeros(len(self.matrix))

    def away(self, p: int) -> Any:
        """Return which coordinates it keeps away from zero: a diagonal, if all are positive."""
        diagonal = np.diag(self.square(np.arange(len(self.matrix)))).astype(int)
        return (self.least > 0.0) & self.matrix[diagonal].any(axis=0)

    @property
    def words(self) -> str:
        """Return the limit in words."""
        size = f"a symmetric matrix with eigenvalues from {self.least!r} to {self.most!r}"
        return f"{size}: its upper triangle C x, C {in_words(self.matrix)}"

    def broken(self, x: Any) -> str:
        """Return what is wrong at a point, or nothing."""
        values = np.linalg.eigvalsh(self.square(self.matrix @ x))
        ends = [abs(end) for end in (self.least, self.most) if math.isfinite(end)]
        slack = FEASIBLE * max(*np.abs(values), *ends)
        kept = values[0] >= self.least - slack and values[-1] <= self.most + slack
        return "" if kept else "an eigenvalue is beyond its limit"

    def square(self, entries: Any) -> Any:
        """Return the matrix of these entries."""
        p = int(np.sqrt(2 * entries.size))
        out = np.zeros((p, p))
        out[np.triu_indices(p)] = entries
        return out + np.triu(out, 1).T

    def end(self, y: Any) -> Any:
        r"""Return ``b`` with :math:`y'b \ge y'Cx`, infinite where there is none.

        :math:`y'Cx = \langle Y, W \rangle` is at most :math:`l\,\mathrm{tr}\,Y + (u - l)` times the
        sum of the positive eigenvalues of ``Y``; those are computed by a backward stable method.
        """
        if not np.any(y):
            return self.shift
        diagonal = np.diag(self.square(np.arange(y.size))).astype(int)
        halves = 0.5 * y
        halves[diagonal] = y[diagonal]
        start, far, sign = (
            (self.least, self.most, 1.0) if self.least > -np.inf else (self.most, self.least, -1.0)
        )
        Y = sign * self.square(halves)
        values = np.linalg.eigvalsh(Y) + 8.0 * len(Y) * UNIT * np.linalg.norm(Y)
        positive, out = float(np.maximum(values, 0.0).sum()), np.zeros(y.size)
        out[diagonal] = start
        if positive > 0.0 and math.isinf(far):
            return np.full(y.size, np.inf)
        more = abs(far - start) * positive * (y / (y @ y)) if positive > 0.0 else 0.0 * y
        slack = (16.0 + 2.0 * y.size) * UNIT * (np.abs(out) + np.abs(more)) + 2.0**-1022
        return out + more + np.sign(y) * slack


def limits_of(held: dict[str, Any], shape: tuple[int, ...]) -> tuple[Norm | Eigenvalues, ...]:
    """Return the limits on norms and eigenvalues."""
    out = list[Norm | Eigenvalues]()
    for one in held.get("norms", []):
        if "eigenvalues" in one:
            ends, on = array(one["eigenvalues"]), index(one["columns"], shape[0])
            p = int(np.sqrt(2 * on.size))
            fits = len(shape) == 1 and ends.shape == (2,) and p * (p + 1) == 2 * on.size > 0
            if not fits or not ends[0] <= ends[1] or not np.any(np.isfinite(ends)):
                raise Refuted("the limits on eigenvalues do not fit the problem.")
            out.append(Eigenvalues(np.eye(shape[0])[on], *ends.tolist()))
            continue
        shift, radius, order, on = array(one["shift"]), real(one["radius"]), one["order"], None
        if "columns" in one:
            on = index(one["columns"], shape[0])
        matrix = array(one["matrix"]) if on is None else np.eye(shape[0])[on]
        fits = len(shape) == 1 and order in (1, 2) and matrix.shape == (shift.size, shape[0])
        numbers = np.append(matrix.ravel(), [*shift, radius])
        if not fits or not np.all(np.isfinite(numbers)) or radius < 0.0:
            raise Refuted("the limits on norms do not fit the problem.")
        out.append(Norm(matrix, shift, radius, int(order), on))
    return tuple(out)
