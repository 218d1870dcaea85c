"""Facts about a canonical problem, computed when a decision asks for them, and where from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from sparsemodel.compiler.features import Features, coherence, share_left
from sparsemodel.interfaces import (
    Access,
    Conjugable,
    DataError,
    FloatArray,
    SparseRegression,
    TwiceDifferentiable,
)
from sparsemodel.numerics import RegressionObjective


@final
@dataclass(frozen=True, slots=True)
class Fact:
    """Something the compiler knows, with how it came to know it."""

    name: str
    value: str
    provenance: str
    passes: float = 0.0
    """What it cost, in passes over the data."""


class FactSheet:
    """Facts that were found about a problem, in order."""

    def __init__(self) -> None:
        self.passes: float = 0.0
        """What finding them cost, in passes over the data."""
        self._recorded: dict[str, Fact] = {}

    @property
    def recorded(self) -> tuple[Fact, ...]:
        """Return the facts in the order they were found."""
        return tuple(self._recorded.values())

    def record(self, name: str, value: str, provenance: str, passes: float = 0.0) -> None:
        """Keep a fact for ``explain()``."""
        self._recorded[name] = Fact(name, value, provenance, passes)


@final
class Facts(FactSheet):
    """What is known about one regression. Each method computes once and records a fact."""

    passes: float

    def __init__(self, form: SparseRegression) -> None:
        super().__init__()
        self.form = form
        self._gradient: FloatArray | None = None
        self._coherence: float | None = None
        self._left: dict[int, float] = {}

    def structure(self) -> None:
        """Record what the losses and sizes say without touching the data."""
        form = self.form
        for term in form.terms:
            loss = term.loss
            lower, upper = loss.curvature()
            traits = []
            if np.isfinite(upper) and lower == upper:
                traits.append("quadratic")
            traits.append(f"{upper:g}-smooth" if np.isfinite(upper) else "not globally smooth")
            if not isinstance(loss, TwiceDifferentiable):
                traits.append("no second derivative")
            traits.append(
                "conjugate known" if isinstance(loss, Conjugable) else "no conjugate known"
            )
            self.record(loss.name, ", ".join(traits), "declared by the loss")
            self.record(f"design of {loss.name}", term.design.describe(), "its format")
        counted = form.ridge[form.sparsity.counted]
        if counted.size and counted.min() > 0.0:
            text = f"{counted.min():g}" + ("" if np.ptp(counted) == 0 else f" to {counted.max():g}")
            self.record("strong convexity", text, "the ridge")
        else:
            self.record("strong convexity", "none known", "no ridge on every counted coordinate")

    def gradient_at_zero(self) -> FloatArray:
        """Return the gradient at zero, which also tells whether the data are finite.

        It is the first gradient of most backends, which are handed it: nothing is done twice.
        """
        if self._gradient is None:
            objective = RegressionObjective(self.form)
            with np.errstate(all="ignore"):  # what overflows is told from the result
                origin = objective.point_from(np.zeros(self.form.shape))
                self._gradient = objective.gradient(origin)
            self.passes += 0.5
            if not np.all(np.isfinite(self._gradient)):
                self._refuse_nonfinite()
            self.record("data", "finite", "the gradient at zero, which the solver needs", 0.5)
        return self._gradient

    def _refuse_nonfinite(self) -> None:
        for number, term in enumerate(self.form.terms):
            found = term.design.first_nonfinite()
            if found is not None:
                which = f" of term {number + 1}" if len(self.form.terms) > 1 else ""
                raise DataError(
                    f"The data matrix{which} holds NaN or an infinite value, the first at row "
                    f"{found[0]}, column {found[1]}. Drop or impute such entries."
                )
        raise DataError(
            "The gradient overflows although the data are finite: their scale is too large for "
            "float64. Divide the data matrix or the target by a constant."
        )

    def column_squares(self, form: SparseRegression, *, centred: bool) -> FloatArray | None:
        """Return each column's weighted sum of squares where a decision needs it, else None.

        A sample of the rows decides whether the columns differ at all: if they are of one size,
        nothing more is computed.
        """
        if not all(Access.ROWS in term.design.access for term in form.terms):
            self.record("column sizes", "unknown", "a matrix-free design does not show them")
            return None
        if not centred:
            sampled = self._sampled_squares(form)
            if sampled is None:
                return None
            if sampled.min() > 0.0 and sampled.max() <= 9.0 * sampled.min():
                self.record(
                    "column sizes",
                    f"within a factor of {np.sqrt(sampled.max() / sampled.min()):.2g}",
                    "a sample of 32 rows",
                    0.01,
                )
                return None
        total = np.zeros(form.sparsity.size)
        for term in form.terms:
            total += term.design.column_square_norms(term.weights)
        self.passes += 0.5
        positive = total[total > 0.0]
        spread = np.sqrt(positive.max() / positive.min()) if positive.size else 1.0
        zero = int((total == 0.0).sum())
        text = f"within a factor of {spread:.3g}" + (f", {zero} constant" if zero else "")
        self.record("column sizes", text, "computed", 0.5)
        return total

    def features(self, form: SparseRegression, gradient: FloatArray | None) -> Features:
        """Return what the ranking of plans looks at; ``form`` is the reduced one.

        Correlations are probed where columns can be read, and for squared losses also what a
        first guess of the support leaves. Both read a few columns, once.
        """
        plain = Features.of(form)
        if gradient is None or not plain.stored or plain.k == 0:
            return plain
        if self._coherence is None:
            with np.errstate(all="ignore"):  # what overflows is told from the result
                self._coherence, passes = coherence(form, gradient)
            self.passes += passes
            self.record(
                "correlation",
                f"{self._coherence:.2g} among promising columns",
                "the columns with the largest gradients",
                round(passes, 3),
            )
        left = None
        if plain.loss == "quadratic" and plain.structure == "plain":
            if plain.k not in self._left:
                with np.errstate(all="ignore"):
                    self._left[plain.k], passes = share_left(form, gradient)
                self.passes += passes
                self.record(
                    "noise",
                    f"a first guess of the support leaves {self._left[plain.k]:.1%} of the loss",
                    f"the minimiser on the {plain.k} largest gradients",
                    round(passes, 3),
                )
            left = self._left[plain.k]
        return Features.of(form, coherence=self._coherence, left=left)

    @staticmethod
    def _sampled_squares(form: SparseRegression) -> FloatArray | None:
        total = np.zeros(form.sparsity.size)
        for term in form.terms:
            sample = term.design.sampled_square_norms(32)
            if sample is None:
                return None
            total += float(term.weights.mean()) * term.design.shape[0] * sample
        return total


__all__ = ["Fact", "FactSheet", "Facts"]
