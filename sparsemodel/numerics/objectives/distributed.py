"""The objective of a regression whose observations are spread over blocks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from sparsemodel.designs import OnesDesign, StackedDesign, TransformedDesign
from sparsemodel.designs.dense import DenseDesign
from sparsemodel.designs.elsewhere.distributed import DistributedDesign
from sparsemodel.designs.elsewhere.workers import placed, sent, summed
from sparsemodel.interfaces import (
    Design,
    FloatArray,
    IntArray,
    NormBound,
    Point,
    SparseRegression,
    Term,
    Work,
)
from sparsemodel.numerics.objectives.regression import OfRegression, RegressionObjective

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

    @staticmethod
    def fits(form: SparseRegression) -> bool:
        """Return whether all designs are distributed alike and all losses act row by row."""
        for term in form.terms:
            leaves = _leaves(term.design)
            if not leaves or not term.traits.curved or not _only_known(term.design):
                return False
            if any(leaf.groups != leaves[0].groups for leaf in leaves):
                return False
        return bool(form.terms)

    @staticmethod
    def comes_over(form: SparseRegression) -> bool:
        """Return whether the columns of a support and its neighbours come over instead, once."""
        leaves = [leaf for term in form.terms for leaf in _leaves(term.design)]
        budget = min(form.sparsity.budget, form.sparsity.size)
        return all(leaf.comes_over(_NEIGHBOURS * max(budget, 1)) for leaf in leaves)

    def point(self, support: IntArray, values: FloatArray) -> Point:
        rest = self._rest.point(support, values)
        # The slope on the support, which a second trip would ask for, is few numbers more.
        found = self._sum("value_and_slope", support, values)
        slope = found[1:].reshape(np.shape(values))
        return Point(rest.x, support, rest.value + float(found[0]), (rest, slope))

    def gradient(self, at: Point) -> FloatArray:
        if at.gradient is None:
            near = self._rest.gradient(at.state[0])
            far = _array(self._sum("gradient", at.support, at.x[at.support]))
            at.memo.gradient = total = near + far
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
        near = self._rest.hessian_product(at.state[0], support, v)
        return near + _array(self._sum("hessian_product", at.support, at.x[at.support], support, v))

    def hessian(self, at: Point, support: IntArray) -> FloatArray:
        out = np.array(self._sum("hessian", at.support, at.x[at.support], support))
        ridge = np.repeat(self._form.ridge[support], self._form.outputs)
        out[np.diag_indices_from(out)] += ridge
        return out

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
        return self._form.constant + sum(
            term.loss.infimum(term.target, term.weights) for term in self._form.terms
        )

    def _sum(self, name: str, *arguments: Any) -> Any:
        return summed(
            lambda: [(_call, part, name, arguments) for part in self._parts.there()],
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
    return summed(lambda: [(_applied, part, function) for part in parts.there()], parts.forget)


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
                leaves = _leaves(term.design)
                for number, blocks in enumerate(leaves[0].groups):
                    bundles = [_bundle(self._form, term, rows) for rows in blocks]
                    groups = [leaf.blocks[number] for leaf in leaves]
                    size = sum(_NUMBERS * (rows.stop - rows.start) for rows in blocks)
                    tasks.append((_make, sent(bundles, size, number), *groups))
            self._made = tuple(placed(tasks))
        return self._made

    def forget(self) -> None:
        """Make them anew when they are next needed: some were lost with a worker."""
        self._made = None
        for term in self._form.terms:
            for leaf in _leaves(term.design):
                leaf.forget()


# ---- what lives with the blocks ------------------------------------------------------------------


@final
class _Slot(Design):
    """The place of a block's array in a design that is sent without it."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self._shape = shape
        self._design: Design | None = None

    def fill(self, array: Any) -> None:
        self._design = DenseDesign(array)

    @property
    def shape(self) -> tuple[int, int]:
        return self._shape

    @property
    def design(self) -> Design:
        if self._design is None:
            raise RuntimeError("The block has not arrived.")
        return self._design

    @property
    def access(self) -> Any:
        return self.design.access

    def row_blocks(self, size: int) -> Iterator[tuple[slice, FloatArray]]:
        return self.design.row_blocks(size)

    def matvec(self, x: FloatArray) -> FloatArray:
        return self.design.matvec(x)

    def rmatvec(self, r: FloatArray) -> FloatArray:
        return self.design.rmatvec(r)

    def restrict(self, support: IntArray) -> Design:
        return self.design.restrict(support)

    def restrict_again(self, support: IntArray, last: IntArray, restricted: Design) -> Design:
        return self.design.restrict_again(support, last, restricted)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Bundle:
    """A form without its arrays; one object, so that the slots stay those of the form."""

    form: SparseRegression
    slots: tuple[_Slot, ...]


@final
class _Part:
    """The objective of one block. Dask may run two tasks on it at once, hence the lock."""

    def __init__(self, form: SparseRegression) -> None:
        self._form = form
        self._objective = RegressionObjective(form)
        self._last: Point | None = None
        self._lock = threading.Lock()

    @property
    def form(self) -> SparseRegression:
        """Return the form of the block."""
        return self._form

    def __getstate__(self) -> SparseRegression:
        return self._form

    def __setstate__(self, form: SparseRegression) -> None:
        self.__init__(form)

    def answer(self, name: str, arguments: tuple[Any, ...]) -> Any:
        support, values, *more = arguments
        with self._lock:
            at = self._at(support, values)
            if name == "value_and_slope":
                slope = self._objective.restricted_gradient(at, support)
                return np.concatenate([[at.value], slope.ravel()])
            return getattr(self._objective, name)(at, *more)

    def _at(self, support: IntArray, values: FloatArray) -> Point:
        last = self._last
        if last is None or not (
            np.array_equal(last.support, support) and np.array_equal(last.x[support], values)
        ):
            last = self._last = self._objective.point(support, values)
        return last


def _make(bundles: list[_Bundle], *groups: list[Any]) -> list[_Part]:
    """Return the objectives of the blocks of a group, one design after another in ``groups``."""
    for bundle, *arrays in zip(bundles, *groups, strict=True):
        for slot, array in zip(bundle.slots, arrays, strict=True):
            slot.fill(array)
    return [_Part(bundle.form) for bundle in bundles]


def _applied(parts: list[_Part], function: Callable[[SparseRegression], Any]) -> Any:
    out = function(parts[0].form)
    for part in parts[1:]:
        out = out + function(part.form)
    return out


def _call(parts: list[_Part], name: str, arguments: tuple[Any, ...]) -> Any:
    out = parts[0].answer(name, arguments)
    for part in parts[1:]:
        out = out + part.answer(name, arguments)
    return out


# ---- cutting a form into blocks ------------------------------------------------------------------


def _bundle(form: SparseRegression, term: Term, rows: slice) -> _Bundle:
    slots: list[_Slot] = []
    index = np.arange(rows.start, rows.stop)
    cut = Term(
        _cut(term.design, index, slots),
        term.loss,
        term.target[rows],
        term.weights[rows],
        None if term.offset is None else np.ascontiguousarray(term.offset[rows]),
    )
    part = replace(
        form, terms=(cut,), ridge=np.zeros_like(form.ridge), constant=0.0, box=None, region=None
    )
    return _Bundle(part, tuple(slots))


def _cut(design: Design, rows: IntArray, slots: list[_Slot]) -> Design:
    if isinstance(design, DistributedDesign):
        slots.append(_Slot((int(rows.size), design.shape[1])))
        return slots[-1]
    if isinstance(design, TransformedDesign):
        return design.over(_cut(design.inner, rows, slots))
    if isinstance(design, StackedDesign):
        blocks = tuple((index, _cut(block, rows, slots)) for index, block in design.blocks)
        return StackedDesign(int(rows.size), design.shape[1], blocks)
    return design.restrict_rows(rows)


def _leaves(design: Design) -> list[DistributedDesign]:
    if isinstance(design, DistributedDesign):
        return [design]
    if isinstance(design, TransformedDesign):
        return _leaves(design.inner)
    if isinstance(design, StackedDesign):
        return [leaf for _, block in design.blocks for leaf in _leaves(block)]
    return []


def _only_known(design: Design) -> bool:
    """Return whether everything beside the blocks is a column of ones."""
    if isinstance(design, TransformedDesign):
        return _only_known(design.inner)
    if isinstance(design, StackedDesign):
        return all(_only_known(block) for _, block in design.blocks)
    return isinstance(design, (DistributedDesign, OnesDesign))
