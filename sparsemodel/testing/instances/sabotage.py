"""A design that misbehaves at a chosen product: Ctrl-C, NaN, or a forbidden read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import final

import numpy as np

from sparsemodel.interfaces import Access, Design, FloatArray, IntArray


@final
@dataclass(slots=True)
class Fuse:
    """Counts the products of every design that shares it, and acts when its time has come.

    Parameters
    ----------
    action
        Maps the result of a product to what the caller gets instead; it may raise.
    after
        How many products pass before it acts; None only counts.
    """

    action: Callable[[FloatArray], FloatArray] = field(default=lambda result: result)
    after: int | None = None
    products: int = 0

    def apply(self, result: FloatArray) -> FloatArray:
        """Count one product and return what its caller gets."""
        self.products += 1
        burnt = self.after is not None and self.products > self.after
        return self.action(result) if burnt else result


@final
class SabotagedDesign(Design):
    """A design whose products, restricted ones included, pass through a :class:`Fuse`.

    The entries themselves (``to_array``, ``gram`` and the like) are computed by products too, so
    that no read goes around the fuse.
    """

    def __init__(self, design: Design, fuse: Fuse) -> None:
        self._design, self._fuse = design, fuse

    @property
    def shape(self) -> tuple[int, int]:
        return self._design.shape

    @property
    def access(self) -> Access:
        return self._design.access

    def matvec(self, x: FloatArray) -> FloatArray:
        return self._fuse.apply(self._design.matvec(x))

    def rmatvec(self, r: FloatArray) -> FloatArray:
        return self._fuse.apply(self._design.rmatvec(r))

    def restrict(self, support: IntArray) -> Design:
        return SabotagedDesign(self._design.restrict(support), self._fuse)


def interrupt(result: FloatArray) -> FloatArray:
    """Do what Ctrl-C does."""
    raise KeyboardInterrupt


def poison(result: FloatArray) -> FloatArray:
    """Return NaN in place of every number."""
    return np.full_like(result, np.nan)
