"""Facts about a canonical problem, computed when a decision needs them, with their sources."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, TypeVar, final

import numpy as np

from sparsemodel.compiler.deferred import Deferred
from sparsemodel.compiler.facts.fact_sheet import Fact, FactSheet, bytes_words, in_order
from sparsemodel.compiler.facts.probes import Guess, Screened
from sparsemodel.designs import SparseDesign, StackedDesign, TransformedDesign
from sparsemodel.interfaces import (
    Access,
    DataError,
    Design,
    FloatArray,
    Form,
    SparseRegression,
    Term,
)
from sparsemodel.numerics.objectives.regression import margins
from sparsemodel.numerics.search.descents import PRICES_TOGETHER
from sparsemodel.numerics.search.local_model import is_wide, pool_width

T = TypeVar("T")

_DEPENDENT = 1e-12
"""Least eigenvalue, as a share of the largest, from which columns count as independent."""

_SEEN = 0.5
"""Share of the observations that a guess must leave unfitted to tell anything about the noise."""

_APART, _ENDS = 3.0, 1 / 256
"""Columns whose sampled squares differ from the usual ones by this factor are read, if there are
no more than this share."""

_LARGEST = 1e150
"""Size of entries up to which sums of their squares are doubles, with room for 1e8 rows."""
_SMALL = 1e-160
"""Size of entries below which their squares vanish."""


@final
class Facts(FactSheet):
    """What is known about one regression. Each method computes once and records a fact.

    What depends on the data alone (the terms of the form) is kept in ``known``, which forms with
    other limits, ridges, bounds, ... on the same terms may share. All else belongs to one form.
    """

    passes: float

    def __init__(self, form: SparseRegression, known: dict[Hashable, Any] | None = None) -> None:
        super().__init__()
        self.form = form
        self.known: dict[Hashable, Any] = {} if known is None else known
        self.sums: FloatArray | None = None
        """Weighted sums of the columns of the form, where they came with its gradient at zero."""
        self._screened: Screened | None = None
        self._guess: Guess | None = None

    def recall(self, key: Hashable, passes: float, make: Callable[[], T]) -> T:
        """Return what ``make`` computes from the data alone, at the price of some passes, once.

        ``key`` names the computation and all that it depends on beside the terms.
        """
        if key not in self.known:
            self.known[key] = make()
            self.passes += passes
        found: T = self.known[key]
        return found

    @staticmethod
    def _structure(sheet: FactSheet, form: SparseRegression) -> None:
        """Record what the losses and sizes say without touching the data."""
        for number, term in enumerate(form.terms, start=1):
            of = f" {number}" if len(form.terms) > 1 else ""
            sheet.record(f"loss{of}", _traits(term), "declared", "by the loss")
            sheet.record(f"design{of}", term.design.describe(), "declared", "its format")
        counted = form.ridge[form.sparsity.counted]
        if counted.size and counted.min() > 0.0:
            text = f"{counted.min():g}" + ("" if np.ptp(counted) == 0 else f" to {counted.max():g}")
            sheet.record("strong convexity", text, "declared", "the ridge")
        else:
            text = "no ridge on every counted coordinate"
            sheet.record("strong convexity", "none known", "derived", text)

    def read_later(self, form: Form, gradient: FloatArray | None) -> Deferred[Fact]:
        """Return the facts for a plan of the reduced ``form``; unread ones cost nothing."""
        user = self.form

        def everything() -> tuple[Fact, ...]:
            sheet = FactSheet()
            self._structure(sheet, user)
            if isinstance(form, SparseRegression):
                self._for_readers(sheet, user, form, gradient)
            new = [fact for fact in self.recorded if fact.name == "correlation"]
            known = {fact.name for fact in found}
            rest = (fact for fact in (*new, *sheet.recorded) if fact.name not in known)
            return in_order((*found, *rest))

        found = self.recorded
        return Deferred(everything)

    def _for_readers(
        self,
        sheet: FactSheet,
        user: SparseRegression,
        form: SparseRegression,
        gradient: FloatArray | None,
    ) -> None:
        """Record what no decision depends on; ``user`` is the form before reductions."""
        for number, term in enumerate(user.terms, start=1):
            of = f" {number}" if len(user.terms) > 1 else ""
            sheet.record(f"finite sum{of}", _finite_sum(term), "derived", "loss and design")
        sizes = [term.design.nbytes for term in user.terms]
        if None not in sizes:
            held = sum(size for size in sizes if size is not None)
            sheet.record("memory of the data", bytes_words(held), "measured", "the arrays' sizes")
        added = f"about {bytes_words(_working_memory(form))}"
        source = "vectors, the columns of a support, gains of exchanges"
        sheet.record("memory of a solve", added, "estimated", source)
        if gradient is not None and form.sparsity.budget > 0:
            self._look_at_columns(sheet, form, gradient)
            self._look_at_noise(sheet, user, form, gradient)

    def _look_at_columns(
        self, sheet: FactSheet, form: SparseRegression, gradient: FloatArray
    ) -> None:
        if not all(Access.COLUMNS in term.design.access for term in form.terms):
            why = "its columns cannot be read one by one"
            sheet.record("conditioning", "unknown", "derived", why)
            return
        screened = self.screened(form, gradient)
        ends, width = screened.eigenvalues, screened.gram.shape[0]
        if ends is None or ends[1] == 0.0:
            return
        low, high = ends
        if low <= _DEPENDENT * high:
            text = f"singular: {width} promising columns are linearly dependent"
        else:
            text = (
                f"condition number {high / low:.3g} among {width} promising columns, the "
                f"eigenvalues of their Gram matrix between {low:.3g} and {high:.3g}"
            )
        sheet.record("conditioning", text, "measured", "the same columns")

    def _look_at_noise(
        self,
        sheet: FactSheet,
        user: SparseRegression,
        form: SparseRegression,
        gradient: FloatArray,
    ) -> None:
        stored = all(Access.COLUMNS in term.design.access for term in form.terms)
        squared = form.traits.quadratic
        if not (stored and squared) or form.region is not None or form.box is not None:
            return
        guess = self.guess(form, gradient)
        n = sum(int(np.count_nonzero(term.weights)) for term in user.terms)
        weight = sum(float(term.weights.sum()) for term in user.terms) * user.outputs
        free = 1.0 - guess.size / max(n, 1)
        spread = 2.0 * (guess.value - user.constant)
        if free < _SEEN or not weight > 0.0 or not np.isfinite(spread):
            return
        sigma = np.sqrt(max(spread, 0.0) / (weight * free))
        text = (
            f"standard deviation {sigma:.3g} at most, roughly: a first guess of the support "
            f"leaves {guess.left:.1%} of the loss"
        )
        source = f"the minimiser on the {guess.size} largest gradients"
        sheet.record("noise", text, "estimated", source, guess.passes)

    def gradient_at_zero(self, form: SparseRegression, passes: float = 0.5) -> FloatArray:
        """Return the gradient of ``form`` at zero, which also shows whether the data are finite.

        It is the first gradient of most backends, which are handed it: nothing is done twice.
        ``form`` is the problem, or compressed; ``passes`` is the price.
        """
        key = ("gradient", form.terms is self.form.terms)
        products = self.recall(key, passes, partial(_first_products, form))
        gradient, self.sums, pull = products
        if not np.isfinite(gradient).all():
            self._refuse_nonfinite()
        _refuse_scale(float(np.abs(gradient).max(initial=0.0)), pull)
        source = "the gradient at zero, which the solver needs"
        self.record("data", "finite", "measured", source, passes)
        return gradient

    def _refuse_nonfinite(self) -> None:
        for number, term in enumerate(self.form.terms):
            found = term.design.first_nonfinite()
            if found is not None:
                which = f" of term {number + 1}" if len(self.form.terms) > 1 else ""
                names = term.design.names
                named = f" ({names[found[1]]!r})" if names and names[found[1]] else ""
                raise DataError(
                    f"The data matrix{which} holds NaN or an infinite value, the first at row "
                    f"{found[0]}, column {found[1]}{named}. Drop or impute such entries."
                )
            offset = np.zeros(1) if term.offset is None else term.offset
            for what, values in (("target", term.target), ("offset", offset)):
                if not np.all(np.isfinite(np.asarray(values, dtype=np.float64))):
                    raise DataError(
                        f"The {what} of {term.loss.name} holds NaN or an infinite value, and "
                        "had none when it was declared. Replace it and declare the problem again."
                    )
        raise DataError(
            "The gradient overflows although the data are finite: their scale is too large for "
            "float64. Divide the data matrix or the target by a constant."
        )

    def column_squares(
        self,
        form: SparseRegression,
        *,
        centred: bool,
        changes: Hashable,
        passes: float,
    ) -> FloatArray | None:
        """Return each column's weighted sum of squares where a decision needs it, else None.

        A sample of the rows decides whether the columns differ at all: if they are of one size,
        nothing more is computed. Among many columns a sample makes some look small or large by
        chance: these few are read. ``changes`` are those between the terms and the columns of
        ``form``, and ``passes`` is the price.
        """
        if not all(Access.ROWS in term.design.access for term in form.terms):
            why = "a matrix-free design does not show them"
            self.record("column sizes", "unknown", "derived", why)
            return None
        if not centred:
            sample = partial(self._sampled_squares, form)
            sampled = self.recall(("sampled squares", changes), 0.0, sample)
            if sampled is None:
                return None
            if sampled.min() > 0.0 and sampled.max() <= 9.0 * sampled.min():
                self.record(
                    "column sizes",
                    f"within a factor of {np.sqrt(sampled.max() / sampled.min()):.2g}",
                    "estimated",
                    "a sample of 32 rows; the columns that it shows to be small or large in full",
                    0.01,
                )
                return None
        total = self.recall(("squares", changes), passes, partial(_squares, form))
        positive = total[total > 0.0]
        spread = np.sqrt(positive.max() / positive.min()) if positive.size else 1.0
        zero = int((total == 0.0).sum())
        text = f"within a factor of {spread:.3g}" + (f", {zero} constant" if zero else "")
        self.record("column sizes", text, "measured", "all entries", passes)
        return total

    @np.errstate(all="ignore")  # what overflows shows in the result
    def screened(self, form: SparseRegression, gradient: FloatArray) -> Screened:
        """Return the columns with the largest gradients; read once."""
        if self._screened is None:
            self._screened = Screened.of(form, gradient)
            self.passes += self._screened.passes
            self.record(
                "correlation",
                f"{self._screened.coherence:.2g} among promising columns",
                "measured",
                "the columns with the largest gradients",
                self._screened.passes,
            )
        return self._screened

    @np.errstate(all="ignore")
    def guess(self, form: SparseRegression, gradient: FloatArray) -> Guess:
        """Return what a first guess of the support leaves; made once for the reduced form."""
        if self._guess is None:
            self._guess = Guess.of(form, gradient)
            self.passes += self._guess.passes
        return self._guess

    @staticmethod
    def _sampled_squares(form: SparseRegression) -> FloatArray | None:
        total = np.zeros(form.sparsity.size)
        for term in form.terms:
            sample = term.design.sampled_square_norms(32)
            if sample is None:
                return None
            total += float(term.weights.mean()) * term.design.shape[0] * sample
        usual = float(np.partition(total, total.size // 2)[total.size // 2])  # a median
        ends = np.flatnonzero((total < usual / _APART) | (total > _APART * usual))
        readable = all(Access.COLUMNS in term.design.access for term in form.terms)
        if readable and 0 < ends.size <= _ENDS * total.size:
            total[ends] = sum(
                term.design.restrict(ends).column_square_norms(term.weights) for term in form.terms
            )
        return total


@np.errstate(all="ignore")  # what overflows shows in the result
def _first_products(form: SparseRegression) -> tuple[FloatArray, FloatArray | None, float]:
    """Return the gradient at zero, of one file the weighted sums of its columns, and a sum.

    That of the sizes of the derivatives by the predictions.
    """
    term, pulls = form.terms[0], []
    for each in form.terms:
        u = margins(each, np.zeros((each.design.shape[0], *form.shape[1:])))
        pulls.append(each.loss.gradient(u, each.target, each.weights))
    pull = float(sum(np.abs(r).sum() for r in pulls))
    if len(form.terms) > 1 or not term.design.streamed:
        total = np.zeros(form.shape)
        for each, r in zip(form.terms, pulls, strict=True):
            total += each.design.rmatvec(r)
        return total, None, pull
    both = term.design.rmatvec(np.column_stack([pulls[0], term.weights]))
    return both[:, :-1].reshape(form.shape), both[:, -1], pull


def _refuse_scale(largest: float, pull: float) -> None:
    """Refuse data whose squares are no doubles: entries as large as the ratio, or as small."""
    ratio = largest / pull if 0.0 < pull < np.inf else 0.0
    if ratio > _LARGEST:
        raise DataError(
            f"The data matrix has entries of about {ratio:.0e}, whose squares overflow. Divide "
            "its columns by their sizes."
        )
    if largest > 0.0 and ratio < _SMALL:
        raise DataError(
            f"The entries of the data matrix are of about {ratio:.0e}, whose squares vanish in "
            "float64. Divide its columns by their sizes."
        )


def _squares(form: SparseRegression) -> FloatArray:
    total = np.zeros(form.sparsity.size)
    for term in form.terms:
        total += term.design.column_square_norms(term.weights)
    return total


def _traits(term: Term) -> str:
    """Return what is known of a loss as a function of its predictions."""
    traits = term.traits
    words = ["quadratic"] if traits.quadratic else []
    words.append(f"{traits.upper:g}-smooth" if traits.lipschitz else "not globally smooth")
    words.append("twice differentiable" if traits.has_hessian else "no second derivative")
    words.append("conjugate known" if traits.conjugable else "no conjugate known")
    return f"{term.loss.name}: {', '.join(words)}"


def _finite_sum(term: Term) -> str:
    """Return whether a loss is a sum over observations, and what that is good for."""
    n, c = term.design.shape[0], term.weights
    if not term.traits.by_observation:
        return f"no: {term.loss.name} couples observations, so stochastic steps do not apply"
    equal = c.size > 0 and float(np.ptp(c)) <= 1e-12 * float(c.max())
    kind = "weighted sum"
    if equal:
        kind = "mean" if abs(float(c.sum()) - 1.0) <= 1e-9 else "sum"
    batches = Access.ROWS in term.design.access
    apply = "stochastic steps apply" if batches else "but rows cannot be read in batches"
    return f"{kind} of {n} terms, {apply}"


def _working_memory(form: SparseRegression) -> float:
    """Return about how many bytes a solve adds to the data: right within a factor of 2 or 3.

    Predictions and curvatures of a few points, the columns of supports and of a pool with their
    Gram matrices, prices of exchanges from several supports together.
    """
    sparsity, outputs = form.sparsity, form.outputs
    p, free = sparsity.size, int(sparsity.free.size)
    k = free + (p - free) * min(sparsity.budget / max(sparsity.units, 1), 1.0)
    pool = float(pool_width(int(k))) if is_wide(p, int(k)) else 0.0
    total = 64.0 * p * outputs + 8.0 * pool**2
    for term in form.terms:
        design = term.design
        total += 400.0 * design.shape[0] * outputs + _copied(design)
        if Access.COLUMNS in design.access:
            total += 24.0 * design.entries * (k + pool) / max(p, 1)
    prices = min(32.0 * k * (pool or p), PRICES_TOGETHER)
    return float(total + 24.0 * (k * outputs) ** 2 + 24.0 * prices)


def _copied(design: Design) -> int:
    """Return the bytes of the copy by columns that is made of a sparse array stored by rows."""
    while isinstance(design, TransformedDesign):
        design = design.inner
    if isinstance(design, StackedDesign):
        return sum(_copied(block) for _, block in design.blocks)
    by_rows = isinstance(design, SparseDesign) and design.array.format == "csr"
    return (design.nbytes or 0) if by_rows else 0
