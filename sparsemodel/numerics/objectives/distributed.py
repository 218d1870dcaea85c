"""The objective of a regression whose observations are spread over blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, final

import numpy as np

from sparsemodel.designs.remote.workers import placed, sent, summed
from sparsemodel.interfaces import (
    FloatArray,
    IntArray,
    NormBound,
    Point,
    SparseRegression,
    Work,
)
from sparsemodel.numerics.objectives.distributed_parts import (
    applied,
    bundle,
    call,
    leaves,
    make,
    only_known,
)
from sparsemodel.numerics.objectives.regression import OfRegression, RegressionObjective

_TRIP = 2**23
"""Operations of a worker that take no longer than a trip to it: what may be asked for next comes
along."""

_NUMBERS = 24
"""Bytes that go to a block for each of its rows, at least: target, weight, offset."""


_NEIGHBOURS = 4
"""Columns that are looked at, in supports: fewer than fit would travel again and again."""


@final
class DistributedObjective(OfRegression):
    r"""Evaluate :math:`f(x) = \sum_b f_b(x) + \frac12 \sum_j \lambda_j x_j^2` on blocks of rows.

    Each block holds its observations, targets, weights and, for the last point, its columns and
    predictions. What crosses the network: a support with its values to every block (``2 k``
    numbers), and back a value with its slopes on the support (``1 + k``), a gradient (``p``), a
    Hessian on the support (``k^2``) or its product with a vector (``k``), added up in a tree.
    Never ``n`` numbers, but for targets, weights and offsets, once.

    Losses must act on observations one by one (:class:`~sparsemodel.interfaces.Curved`).
    """

    together: ClassVar[bool] = True

    def __init__(
        self,
        form: SparseRegression,
        *,
        gradient_at_zero: FloatArray | None = None,
        work: Work | None = None,
    ) -> None:
        super().__init__(form, gradient_at_zero, work)
        # What is not data, evaluated here: the ridge, the constant.
        self._rest = RegressionObjective(replace(form, terms=()))
        self._parts = _Parts(form)
        groups = sum(len(leaf.groups) for term in form.terms for leaf in leaves(term.design)[:1])
        rows = sum(term.design.shape[0] for term in form.terms)
        self._last_hessian: list[tuple[Point, IntArray, FloatArray]] = []
        self._rows: float = rows / max(groups, 1)  # of a group, which one thread works on

    @staticmethod
    def fits(form: SparseRegression) -> bool:
        """Return whether all designs are distributed alike and all losses act row by row."""
        for term in form.terms:
            found = leaves(term.design)
            if not found or not term.traits.curved or not only_known(term.design):
                return False
            if any(leaf.groups != found[0].groups for leaf in found):
                return False
        return bool(form.terms)

    @staticmethod
    def is_fetched(form: SparseRegression) -> bool:
        """Return whether the columns of a support and its neighbours are fetched instead, once."""
        found = [leaf for term in form.terms for leaf in leaves(term.design)]
        budget = min(form.sparsity.budget, form.sparsity.size)
        return all(leaf.is_fetched(_NEIGHBOURS * max(budget, 1)) for leaf in found)

    def point(self, support: IntArray, values: FloatArray) -> Point:
        rest = self._rest.point(support, values)
        # What a second trip would ask for: the slope on the support is few numbers more.
        whole, square = np.size(rest.x), np.size(values) ** 2
        gradient = whole if self._rows * whole <= _TRIP else 0
        hessian = square if self._rows * square <= _TRIP else 0
        found = self._sum("values", support, values, gradient > 0, hessian > 0)
        value, slope, g, h = np.split(np.asarray(found), np.cumsum([1, np.size(values), gradient]))
        slope = slope.reshape(np.shape(values))
        at = Point(rest.x, support, rest.value + float(value[0]), (rest, slope))
        if gradient:
            at.memo.gradient = self._rest.gradient(rest) + g.reshape(rest.x.shape)
            self.work.passes += 0.5
        if hessian:
            at.memo.hessian = self._ridged(h.reshape(slope.size, -1), support)
        return at

    def values_along(
        self, support: IntArray, values: FloatArray, step: FloatArray, lengths: FloatArray
    ) -> FloatArray:
        near = [self._rest.point(support, values + t * step).value for t in lengths]
        return near + _array(self._sum("values_along", support, values, step, lengths))

    def gradient(self, at: Point) -> FloatArray:
        if at.gradient is None:
            near = self._rest.gradient(at.state[0])
            far = _array(self._sum("gradient", at.support, at.x[at.support]))
            at.memo.gradient = total = near + far
            self.work.gradients += 1
            self.work.passes += 0.5
            return total
        return at.gradient

    def restricted_gradient(self, at: Point, support: IntArray) -> FloatArray:
        if at.gradient is not None:
            return at.gradient[support]
        near = self._rest.restricted_gradient(at.state[0], support)
        if np.array_equal(support, at.support):
            return near + _array(at.state[1])
        return near + _array(
            self._sum("restricted_gradient", at.support, at.x[at.support], support)
        )

    def hessian_product(self, at: Point, support: IntArray, v: FloatArray) -> FloatArray:
        if v.ndim == 1 and self._rows * support.size**2 <= _TRIP:  # the matrix is asked for next
            return np.asarray(self.hessian(at, support) @ v)
        near = self._rest.hessian_product(at.state[0], support, v)
        return near + _array(self._sum("hessian_product", at.support, at.x[at.support], support, v))

    def hessian(self, at: Point, support: IntArray) -> FloatArray:
        for there, known, matrix in ((at, at.support, at.memo.hessian), *self._last_hessian):
            if there is at and matrix is not None and np.array_equal(known, support):
                return matrix
            if there is at and matrix is not None and at.x.ndim == 1:
                inside = np.flatnonzero(np.isin(known, support, assume_unique=True))
                if inside.size == support.size:
                    return np.array(matrix[np.ix_(inside, inside)])
        found = self._ridged(self._sum("hessian", at.support, at.x[at.support], support), support)
        self._last_hessian[:] = [(at, support, found)]
        return found

    def _ridged(self, matrix: Any, support: IntArray) -> FloatArray:
        """Return a Hessian of the losses with that of the ridge."""
        out = np.array(matrix)
        out[np.diag_indices_from(out)] += np.repeat(self._form.ridge[support], self._form.outputs)
        return out

    def hessian_rows(self, at: Point, coordinates: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return rows of the Hessian, for vectors of coordinates, and its diagonal; one trip."""
        rows = np.array(self._sum("hessian_rows", at.support, at.x[at.support], coordinates))
        self.work.passes += 0.5
        rows, diagonal = rows[:-1], rows[-1] + self._form.ridge
        rows[np.arange(coordinates.size), coordinates] += self._form.ridge[coordinates]
        return rows, diagonal

    def hessian_diagonal(self, at: Point, support: IntArray) -> FloatArray:
        near = self._rest.hessian_diagonal(at.state[0], support)
        return near + _array(self._sum("hessian_diagonal", at.support, at.x[at.support], support))

    def full_hessian_product(self, at: Point, support: IntArray, v: FloatArray) -> FloatArray:
        near = self._rest.full_hessian_product(at.state[0], support, v)
        self.work.passes += 0.5
        return near + _array(
            self._sum("full_hessian_product", at.support, at.x[at.support], support, v)
        )

    def smoothness(self) -> NormBound:
        return RegressionObjective(self._form).smoothness()

    def strong_convexity(self) -> float:
        return self._rest.strong_convexity()

    def infimum(self) -> float:
        return self._form.infimum()

    def _sum(self, name: str, *arguments: Any) -> Any:
        return summed(
            lambda: [(call, part, name, arguments) for part in self._parts.there()],
            self._parts.forget,
        )


def _array(values: Any) -> FloatArray:
    return np.asarray(values, dtype=np.float64)


def over_blocks(form: SparseRegression, function: Callable[[SparseRegression], Any]) -> Any:
    """Return the sum of ``function`` over forms of a term and a block each, computed by workers.

    For what adds up over observations, on forms that :meth:`DistributedObjective.fits`. The forms
    have no ridge, no constant and no bounds.
    """
    parts = _Parts(form)
    return summed(lambda: [(applied, part, function) for part in parts.there()], parts.forget)


@final
class _Parts:
    """The objectives of the groups of blocks, on the workers."""

    def __init__(self, form: SparseRegression) -> None:
        self._form = form
        self._made: tuple[Any, ...] | None = None

    def there(self) -> tuple[Any, ...]:
        """Return handles of them, made where the blocks are."""
        if self._made is None:
            tasks = []
            for term in self._form.terms:
                found = leaves(term.design)
                for number, blocks in enumerate(found[0].groups):
                    bundles = [bundle(self._form, term, rows) for rows in blocks]
                    groups = [leaf.blocks[number] for leaf in found]
                    size = sum(_NUMBERS * (rows.stop - rows.start) for rows in blocks)
                    tasks.append((make, sent(bundles, size, number), *groups))
            self._made = tuple(placed(tasks))
        return self._made

    def forget(self) -> None:
        """Make them again when they are next needed: some were lost with a worker."""
        self._made = None
        for term in self._form.terms:
            for leaf in leaves(term.design):
                leaf.forget()
