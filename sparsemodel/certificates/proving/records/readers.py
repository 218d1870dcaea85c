"""What the records of a tree hold, evaluated on the data of a regression."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from sparsemodel.certificates.arithmetic.products import column_norms
from sparsemodel.certificates.arithmetic.rounding import add_up
from sparsemodel.certificates.dual_bounds.bound import Bound, dual_bound, nothing
from sparsemodel.certificates.dual_bounds.diagonal_shift import (
    Extraction,
    applies,
    certainly_psd,
    hessian,
    squares_hold,
)
from sparsemodel.certificates.dual_bounds.witness import extracted
from sparsemodel.certificates.proving.gram import enumeration
from sparsemodel.certificates.proving.gram.quadratic import Quadratic, minorant
from sparsemodel.certificates.proving.gram.searchable import objections
from sparsemodel.certificates.proving.node import IN, OUT, UNDECIDED, Minorant
from sparsemodel.certificates.proving.records.rows import RowProblem, RowStage
from sparsemodel.compiler.reductions.shift_columns import ShiftColumns
from sparsemodel.interfaces import (
    CertificateError,
    FloatArray,
    SparseRegression,
)
from sparsemodel.interfaces.numeric import least_squares


class Reader(ABC):
    """Evaluates what a record holds on the data."""

    root: Bound | None = None
    """What the dual point of the first record proves, where it is one."""

    def begun(self) -> Any:
        """Return what is known of the whole problem beside the statuses of units."""
        return None

    @abstractmethod
    def minorant(self, record: Any, status: Any, known: Any) -> Minorant | None:
        """Return what the point of a record proves, over all units."""

    @abstractmethod
    def enumerated(self, status: Any, k: int) -> float:
        """Return the bound of a part whose supports are all looked at again."""

    def below(self, record: Any, status: Any, k: int, known: Any) -> Any:
        """Return what is known of the parts that a record is divided into."""
        return known


class GramReader(Reader):
    """Evaluates points of squared losses with their Gram matrix."""

    def __init__(
        self,
        form: SparseRegression,
        stages: Any,
        caution: float,
        quadratic: Quadratic | None = None,
        wide: SparseRegression | None = None,
    ) -> None:
        """``wide`` has the bounds that hold for other slopes of linear constraints, too."""
        reasons = objections(form)
        if reasons:
            raise ValueError("; ".join(reasons))
        self._form, self._caution = form, caution
        self._q = q = Quadratic.of(form) if quadratic is None else quadratic
        sparsity = form.sparsity
        self._counted, free = np.flatnonzero(sparsity.counted), sparsity.free
        self._balanced = free[form.ridge[free] == 0.0]
        self._always = np.setdiff1d(free, self._balanced)
        self._box, self._wider = form.box, (wide or form).box
        self._stages = [self._stage(q, stage) for stage in stages]

    def _stage(self, q: Quadratic, stage: Any) -> tuple[Any, FloatArray]:
        member, full = _stage(stage, self._form.sparsity.size)
        if np.any(full > 0.0):
            index = np.concatenate([np.flatnonzero(member), self._balanced])
            h = q.hessian[np.ix_(index, index)]
            diagonal = np.where(np.isin(index, self._balanced), 0.0, full[index])
            if np.any(full[self._balanced] > 0.0):
                raise ValueError("curvature is taken out of a coordinate without ridge")
            if not (q.sound and certainly_psd(h, diagonal, q.rows + 64)):
                raise _no_curvature()
        return member, full

    def minorant(self, record: Any, status: Any, known: Any) -> Minorant | None:
        """Return what a point proves, over all units."""
        if "x" not in record:
            return None
        number = record["stage"]
        member, delta = self._stages[number]
        if self._form.sparsity.budget <= np.sum(status == IN):  # no other one can be nonzero
            status = np.where((status == UNDECIDED) & ~member[self._counted], OUT, status)
        alive = _alive(self._form, status)
        live = np.flatnonzero(alive)
        live = live[~np.isin(live, self._balanced)]
        if number < 0 or not np.all(member[live]):
            raise ValueError("a stage does not cover a part")
        x = np.zeros(alive.size)
        x[indices(record["at"], x.size)] = numbers(record["x"])
        if self._q.shifts is not None:  # as good anywhere, and the file's has other columns
            h, loose = self._q.hessian, self._balanced
            right = self._q.linear[loose] - h[np.ix_(loose, live)] @ x[live]
            x[loose] = least_squares(h[np.ix_(loose, loose)], right)
        point = x[np.concatenate([live, self._balanced])]
        if not np.all(np.isfinite(point)):
            raise ValueError("a point is not finite")
        q, box = self._q, self._box
        if "slopes" in record:
            q, box = q.at(numbers(record["slopes"])), self._wider
        low = minorant(q, live, self._balanced, point, delta[live], box, caution=self._caution)
        if low is None:
            return None
        gains = np.zeros(alive.size)
        gains[live] = low.gains
        base = math.fsum([low.base, *(-gains[self._always]).tolist()])
        return Minorant(math.nextafter(base, -math.inf), gains[self._counted])

    def enumerated(self, status: Any, k: int) -> float:
        """Look at every support of a part again."""
        if not enumeration.applies(int(np.sum(status == UNDECIDED)), k, enumeration.WHOLE):
            raise ValueError("a part has too many supports to have been looked at")
        live = np.sort(np.concatenate([self._counted[status != OUT], self._always]))
        full = np.full(self._form.sparsity.size, IN, dtype=np.int8)
        full[self._counted] = status
        found = enumeration.enumerate_supports(
            self._q, live, full[live], self._balanced, k, caution=self._caution
        )
        return -math.inf if found is None else found.bound


class RowReader(Reader):
    """Evaluates points and slopes of squared losses with linear constraints."""

    def __init__(
        self,
        form: SparseRegression,
        stages: Any,
        caution: float,
    ) -> None:
        self._form, self._caution = form, caution
        self._problem = RowProblem(form, Quadratic.of(form, shifted=False))
        self._counted = np.flatnonzero(form.sparsity.counted)
        more = np.arange(form.sparsity.size, self._problem.coordinates)
        self._always = np.concatenate([form.sparsity.free, more])
        self._stages = [self._stage(stage) for stage in stages]

    def _stage(self, stage: Any) -> RowStage:
        if stage.keys() != {"active", "delta", "stiffness", "pairs"}:
            raise ValueError("a stage has other lines than it must have")
        size = self._problem.coordinates
        active = indices(stage["active"], size)
        member, delta = np.zeros(size, dtype=bool), np.zeros(size)
        member[active], delta[active] = True, numbers(stage["delta"])
        i, j = (indices(index, size, distinct=False) for index in stage["pairs"][:2])
        pairs = i, j, numbers(stage["pairs"][2])
        if not np.all(np.isfinite(np.concatenate([delta, pairs[2]]))):
            raise ValueError("extracted curvature is not finite")
        found = self._problem.stage(member, delta, numbers(stage["stiffness"]), pairs)
        if found is None:
            raise _no_curvature()
        return found

    def minorant(self, record: Any, status: Any, known: Any) -> Minorant | None:
        """Return what a point and slopes prove, over all units."""
        if "x" not in record:
            return None
        number, size = record["stage"], self._problem.coordinates
        stage = self._stages[number]
        if self._form.sparsity.budget <= np.sum(status == IN):  # no other one can be nonzero
            out = (status == UNDECIDED) & ~stage.member[self._counted]
            status = np.where(out, OUT, status)
        alive = np.append(
            _alive(self._form, status), np.ones(size - self._form.sparsity.size, bool)
        )
        if number < 0 or not np.all(stage.member[alive]):
            raise ValueError("a stage does not cover a part")
        v = np.zeros(size)
        v[indices(record["at"], size)] = numbers(record["x"])
        v[~alive] = 0.0
        if not np.all(np.isfinite(v)):
            raise ValueError("a point is not finite")
        low = self._problem.minorant(stage, alive, v, numbers(record["slopes"]), self._caution)
        if low is None:
            return None
        base = math.nextafter(low.base - add_up(low.gains[self._always]), -math.inf)
        return Minorant(base, low.gains[self._counted])

    def enumerated(self, status: Any, k: int) -> float:
        """Raise ValueError: supports beside constraints are not looked at one by one."""
        raise ValueError("supports of squared losses alone can be looked at one by one")


class DualReader(Reader):
    """Evaluates dual points on the data."""

    def __init__(self, form: SparseRegression, stages: Any, caution: float) -> None:
        self._form, self._caution = form, caution
        self._norms = tuple(column_norms(term.design) for term in form.terms)
        self.root: Bound | None = None
        sound = bool(stages) and applies(form) and squares_hold(form)
        h = hessian(form) if sound else None
        self._stages = [self._stage(stage, h) for stage in stages]

    def _stage(self, stage: Any, h: FloatArray | None) -> tuple[Any, FloatArray]:
        member, full = _stage(stage, self._form.sparsity.size)
        if h is None or self._form.matrix:
            raise ValueError("curvature can be taken out of squared losses only")
        rows = sum(term.design.shape[0] for term in self._form.terms)
        active = np.flatnonzero(member)
        if (
            np.any(full[self._form.sparsity.free] > 0.0)
            and ShiftColumns.find(self._form) is not None
        ):
            raise _no_curvature()  # the Hessian is that of shifted columns
        if np.any(full > 0.0) and not certainly_psd(h[np.ix_(active, active)], full[active], rows):
            raise _no_curvature()
        return member, full

    def minorant(self, record: Any, status: Any, known: Any) -> Minorant | None:
        """Return what a dual point proves, over all units."""
        bound = self._bound(record, _alive(self._form, status))
        self.root = bound if self.root is None else self.root
        return Minorant(bound.base, bound.gains) if math.isfinite(bound.base) else None

    def _bound(self, record: Any, alive: Any) -> Bound:
        form = self._form
        extraction, at = None, None
        if "stage" in record:
            number = record["stage"]
            member, full = self._stages[number]
            if number < 0 or not np.all(member[alive]):
                raise ValueError("a stage does not cover a part")
            at = np.zeros(form.shape)
            at[indices(record["at"], at.size)] = numbers(record["x"])
            if not np.all(np.isfinite(at)):
                raise ValueError("a point is not finite")
            at[~alive] = 0.0
            duals = extracted(form, at, full).duals
            extraction = Extraction(full)
        elif "duals" in record:
            points = tuple(numbers(a) for a in record["duals"])
            shapes = [(term.design.shape[0], *form.shape[1:]) for term in form.terms]
            finite = all(np.all(np.isfinite(a)) for a in points)
            if [a.shape for a in points] != shapes or not finite:
                raise ValueError("a dual point does not fit the predictions")
            duals = points
        else:
            return nothing("no dual point")
        return dual_bound(
            form,
            duals,
            at=at,
            extraction=extraction,
            norms=self._norms,
            caution=self._caution,
            balanced=indices(record.get("balanced", []), form.sparsity.size),
        )

    def enumerated(self, status: Any, k: int) -> float:
        """Raise ValueError: only quadratics are enumerated."""
        raise ValueError("supports of squared losses alone can be looked at one by one")


def _alive(form: SparseRegression, status: Any) -> Any:
    """Return the coordinates of units that are not out, and the free ones."""
    return np.append(status != OUT, True)[form.sparsity.unit_of]


def _stage(stage: Any, size: int) -> tuple[Any, FloatArray]:
    """Return which coordinates a stage covers, and the curvature claimed for all of them."""
    if stage.keys() != {"active", "delta"}:
        raise ValueError("a stage has other lines than its coordinates and their curvature")
    active = indices(stage["active"], size)
    full, member = np.zeros(size), np.zeros(size, dtype=bool)
    full[active], member[active] = numbers(stage["delta"]), True
    if not np.all(np.isfinite(full)) or np.any(full < 0.0):
        raise ValueError("extracted curvature is negative or not finite")
    return member, full


def _no_curvature() -> CertificateError:
    return CertificateError(
        "line 'proof.tree.stages' does not hold: the data do not have this curvature."
    )


def indices(values: Any, size: int, *, distinct: bool = True) -> Any:
    """Return indices below ``size``, all different if ``distinct``; raise ValueError else."""
    if not isinstance(values, list) or any(type(i) is not int for i in values):
        raise ValueError("an index is not a whole number")
    index = np.array(values, dtype=np.intp)
    if distinct and len(set(values)) != index.size:
        raise ValueError("an index appears twice")
    if index.size and (index.min() < 0 or index.max() >= size):
        raise ValueError("an index does not exist")
    return index


def numbers(values: Any) -> FloatArray:
    """Return an array of the numbers in a list; raise ValueError where others are among them."""
    found = np.array(values)
    if found.dtype.kind not in "fiu":
        raise ValueError("a text stands where a number must be")
    return found.astype(np.float64)
