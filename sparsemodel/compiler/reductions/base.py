"""What a reduction is."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, final

from sparsemodel.interfaces import FloatArray, Form, SparseRegression, UnboundedError


class Reduction(ABC):
    """An invertible change of a problem.

    Certificates are made on the unreduced form, whatever changes.
    """

    keeps_predictions: ClassVar[bool] = True
    """Whether predictions, and so dual points, are those of the unreduced form. Where they are
    not, dual points are computed again from the coordinates they came with."""
    keeps_steps: ClassVar[bool] = True
    """Whether a step along the gradient is one of the unreduced form."""

    @property
    def shrinkage(self) -> float:
        """Return the size of the data that is left, as a share of what there was."""
        return 1.0

    @abstractmethod
    def apply(self, form: SparseRegression) -> SparseRegression:
        """Return the equivalent form."""

    @abstractmethod
    def restore(self, x: FloatArray) -> FloatArray:
        """Return the point of the original form for a point of the reduced one."""

    @abstractmethod
    def carry(self, x: FloatArray) -> FloatArray:
        """Return the point of the reduced form for a point (a start) of the original one."""

    @abstractmethod
    def carry_gradient(self, gradient: FloatArray) -> FloatArray | None:
        """Return the reduced form's gradient at zero from the original's; None if it cannot."""

    @abstractmethod
    def describe(self) -> str:
        """Return one line for ``explain()``."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Reduced:
    """A reduced form with the reductions that led to it."""

    form: Form
    reductions: tuple[Reduction, ...]
    gradient: FloatArray | None = None
    """The reduced form's gradient at zero, where the original's was known."""
    hurried: bool = False
    """Whether a reduction that pays was left out to save time."""

    @property
    def keeps_predictions(self) -> bool:
        """Return whether dual points of the reduced form are dual points of the original one."""
        return all(reduction.keeps_predictions for reduction in self.reductions)

    @property
    def keeps_steps(self) -> bool:
        """Return whether gradient steps of the reduced form are those of the original one."""
        return all(reduction.keeps_steps for reduction in self.reductions)

    @property
    def shrinkage(self) -> float:
        """Return what a pass over the reduced data costs, in passes over the original ones."""
        return math.prod(reduction.shrinkage for reduction in self.reductions)

    def restore(self, x: FloatArray) -> FloatArray:
        """Return the point of the original form."""
        for reduction in reversed(self.reductions):
            x = reduction.restore(x)
        return x

    def carry(self, x: FloatArray) -> FloatArray:
        """Return the point of the reduced form."""
        for reduction in self.reductions:
            x = reduction.carry(x)
        return x

    @contextmanager
    def restoring(self, form: Form) -> Iterator[None]:
        """Let errors about points of the reduced form be about those of the original ``form``."""
        try:
            yield
        except UnboundedError as error:
            # Limits may have been changed on the way; the data have not.
            if self.reductions and _data(error.form) is _data(self.form):
                error.form, error.x = form, self.restore(error.x)
            raise


def _data(form: object) -> object:
    return getattr(form, "terms", form)
