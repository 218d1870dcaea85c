"""The parts of a regression that live with the blocks of its rows, on workers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from sparsemodel.designs import OnesDesign, StackedDesign, TransformedDesign
from sparsemodel.designs.dense import DenseDesign
from sparsemodel.designs.remote.distributed import DistributedDesign
from sparsemodel.interfaces import Design, FloatArray, IntArray, Point, SparseRegression, Term
from sparsemodel.numerics.objectives.hessians import hessian_rows
from sparsemodel.numerics.objectives.regression import RegressionObjective, curvatures_of, margins


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
            if name == "values":
                return self._values(at, *more)
            if name == "values_along":
                return self._values_along(at, *more)
            if name == "hessian_rows":
                weights = [
                    curvatures_of(t, z) for t, z in zip(self._form.terms, at.state, strict=True)
                ]
                return np.vstack(hessian_rows(self._form, tuple(weights), *more))
            return getattr(self._objective, name)(at, *more)

    def _values(self, at: Point, gradient: bool, hessian: bool) -> FloatArray:
        f = self._objective
        parts = [np.array([at.value]), f.restricted_gradient(at, at.support)]
        parts += [f.gradient(at)] if gradient else []
        parts += [f.hessian(at, at.support)] if hessian else []
        return np.concatenate([part.ravel() for part in parts])

    def _values_along(self, at: Point, step: FloatArray, lengths: FloatArray) -> FloatArray:
        out = np.zeros(lengths.size)
        columns = self._objective.columns(at.support)
        for term, z, design in zip(self._form.terms, at.state, columns, strict=True):
            moved = design.matvec(step)
            for place, t in enumerate(lengths):
                u = margins(term, z + t * moved)
                out[place] += term.loss.total(u, term.target, term.weights)
        return out

    def _at(self, support: IntArray, values: FloatArray) -> Point:
        last = self._last
        if last is None or not (
            np.array_equal(last.support, support) and np.array_equal(last.x[support], values)
        ):
            last = self._last = self._objective.point(support, values)
        return last


def make(bundles: list[_Bundle], *groups: list[Any]) -> list[_Part]:
    """Return the objectives of the blocks of a group, one design after another in ``groups``."""
    for bundle, *arrays in zip(bundles, *groups, strict=True):
        for slot, array in zip(bundle.slots, arrays, strict=True):
            slot.fill(array)
    return [_Part(bundle.form) for bundle in bundles]


def applied(parts: list[_Part], function: Callable[[SparseRegression], Any]) -> Any:
    """Return the sum of what a function makes of the forms of a group of blocks."""
    out = function(parts[0].form)
    for part in parts[1:]:
        out = out + function(part.form)
    return out


def call(parts: list[_Part], name: str, arguments: tuple[Any, ...]) -> Any:
    """Return the sum of what the objectives of a group of blocks answer."""
    out = parts[0].answer(name, arguments)
    for part in parts[1:]:
        out = out + part.answer(name, arguments)
    return out


# ---- cutting a form into blocks ------------------------------------------------------------------


def bundle(form: SparseRegression, term: Term, rows: slice) -> _Bundle:
    """Return the form of some rows of a term, without their entries."""
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


def leaves(design: Design) -> list[DistributedDesign]:
    """Return the distributed designs that a design is put together from."""
    if isinstance(design, DistributedDesign):
        return [design]
    if isinstance(design, TransformedDesign):
        return leaves(design.inner)
    if isinstance(design, StackedDesign):
        return [leaf for _, block in design.blocks for leaf in leaves(block)]
    return []


def only_known(design: Design) -> bool:
    """Return whether everything beside the blocks is a column of ones."""
    if isinstance(design, TransformedDesign):
        return only_known(design.inner)
    if isinstance(design, StackedDesign):
        return all(only_known(block) for _, block in design.blocks)
    return isinstance(design, (DistributedDesign, OnesDesign))
