"""Try every support: the oracle for small problems."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, groupby, islice
from math import comb, lgamma, log
from typing import ClassVar, cast, final

import numpy as np

from sparsemodel.interfaces import (
    Access,
    Backend,
    BoolArray,
    Capabilities,
    Context,
    Curved,
    FloatArray,
    Form,
    IntArray,
    Iteration,
    Loss,
    Objective,
    Result,
    Role,
    SparseRegression,
    Stop,
    Term,
    check_options,
    priced,
)
from sparsemodel.interfaces.precision import JointPrecision, SparsePrecision
from sparsemodel.numerics import margins
from sparsemodel_backends.precision._graphs import Graphs

_SMALL = 500
"""Coordinates up to which the whole Hessian is formed."""
_ENTRIES = 2**17
"""Numbers in a stack of blocks, about."""
_JITTER = 1e-12
"""Added to the unit diagonal of blocks, so that dependent columns do not end the factorisation."""
_JUDGED, _ACCURACY = 1e-3, 1e-8
"""Pivots down to which a block gives the objective on its support to that share of what it gains;
other supports are minimised on."""
_STEPS, _HALVINGS = 30, 12
"""Newton steps at most where many supports are fitted at a time, and halvings of each."""
_FALL = 0.25
"""What the next step promises beside the one before, where Newton's method converges."""


@final
@dataclass(frozen=True, slots=True)
class Exhaustive(Backend):
    r"""Minimise on every support of size ``min(k, units)`` and keep the best.

    The objective never rises when a support grows, so supports of exactly ``k`` units suffice
    (with a price on the cardinality, all sizes up to ``k`` are tried).

    Parameters
    ----------
    max_supports
        Refuses problems with more supports than this.

    Notes
    -----
    :math:`\binom{p}{k}` restricted minimisations. For quadratics of single coordinates the values
    on all supports come from blocks of the Hessian first, thousands at a time, and only supports
    that are as good as the best up to rounding are minimised. For other curved sums over
    observations without constraints Newton's method runs on hundreds of supports at a time, and
    gives up those where ten times what the last step promised would not make them the best. The
    result is optimal up to the accuracy of both; the claim is still only made by a certificate.

    No literal mode: enumeration is literal.
    """

    max_supports: int = 200_000

    name: ClassVar[str] = "exhaustive"
    reference: ClassVar[str] = "enumeration"
    guarantee: ClassVar[str] = (
        "the best of all supports, each minimised as far as it may be the best, where losses are "
        "curved by what Newton's method promises; certify() proves it where the "
        "problem has a dual bound"
    )
    always: ClassVar[str] = "the best of all supports, each minimised as far as it may be the best"
    roles: ClassVar[frozenset[Role]] = frozenset({Role.ENUMERATION})
    capabilities: ClassVar[Capabilities] = Capabilities(
        forms=(SparseRegression, SparsePrecision, JointPrecision),
        smooth=False,
        price=True,
        box=True,
        region=True,
        limits=True,
        costs=True,
        order=True,
    )

    def __post_init__(self) -> None:
        check_options(self, max_supports="at least 1")

    def extra_objections(self, form: Form) -> tuple[str, ...]:
        decades = _decades(form)
        if decades > 10.0:  # the number itself would have thousands of digits
            return (f"would try about 1e{decades:.0f} supports, more than {self.max_supports}",)
        number = _count(form)
        if number > self.max_supports:
            digits = len(str(number))
            shown = str(number) if digits < 10 else f"about 1e{digits - 1}"
            return (f"would try {shown} supports, more than its limit {self.max_supports}",)
        return ()

    def solve(self, objective: Objective, context: Context) -> Result:
        began = time.perf_counter()
        start = context.first_point(objective)
        best, best_value, tried = start, priced(objective, start), 0
        history: list[Iteration] = []
        stop = Stop.CONVERGED
        try:
            for number, support in _looked_at(objective, context):
                if context.limits.expired():
                    stop = Stop.TIME_LIMIT
                    break
                if tried == context.limits.max_iter:
                    stop = Stop.MAX_ITERATIONS
                    break
                point = context.restricted(objective, support, start)
                value = priced(objective, point)
                if np.isnan(value):
                    stop = Stop.NON_FINITE
                    break
                tried = number
                improved = value < best_value
                if improved:
                    best, best_value = point, value
                if not improved and context.on_iterate is None:
                    continue
                event = Iteration(
                    backend=self.name,
                    index=tried,
                    value=value,
                    best=best_value,
                    support=point.support,
                    residual=float("nan"),
                    elapsed=time.perf_counter() - began,
                    values=point.x[point.support],
                )
                if improved:  # the history of all supports would be long and say little
                    history.append(event)
                if context.on_iterate is not None and context.on_iterate(event):
                    stop = Stop.CALLBACK
                    break
            else:
                tried = _count(objective.form)
        except KeyboardInterrupt:
            stop = Stop.INTERRUPTED
        return Result(best, stop, tried, tuple(history))


def _looked_at(objective: Objective, context: Context) -> Iterator[tuple[int, IntArray]]:
    """Yield the supports to minimise on, each with how many are done with by then."""
    supports = _supports(objective.form)
    one_by_one = context.limits.max_iter is not None
    screen: _Blocks | _Fits | Graphs | None = None
    if isinstance(objective.form, (SparsePrecision, JointPrecision)):
        screen = None if one_by_one else Graphs(objective)
    elif not one_by_one and not objective.form.constrained:
        screen = _Blocks(objective) if _by_blocks(objective) else _Fits.of(objective)
    if screen is None:
        yield from enumerate(supports, start=1)
        return
    done = 0
    for size, some in groupby(supports, key=len):
        while chunk := list(islice(some, max(1, _ENTRIES // max(size * screen.rows(size), 1)))):
            if context.limits.expired():
                yield done, chunk[0]  # ends the run
            for place in np.flatnonzero(screen.promising(np.array(chunk))):
                yield done + int(place) + 1, chunk[place]
            done += len(chunk)


def _by_blocks(objective: Objective) -> bool:
    """Return whether the objective on a support is a function of a block of one small Hessian."""
    sparsity = objective.cardinality
    return (
        objective.quadratic
        and sparsity.groups is None
        and len(objective.shape) == 1
        and sparsity.size <= _SMALL
        and objective.explicit_hessian(np.arange(sparsity.size))
    )


@final
class _Blocks:
    """Values of a quadratic on many supports at a time; remembers the best."""

    def __init__(self, objective: Objective) -> None:
        origin = objective.origin()
        hessian = objective.hessian(origin, np.arange(objective.cardinality.size))
        size = np.sqrt(np.maximum(np.diag(hessian), 0.0))
        size[size == 0.0] = 1.0
        self._hessian = hessian / size[:, None] / size
        self._hessian[np.diag_indices_from(hessian)] += _JITTER
        self._linear = -objective.gradient(origin) / size
        self._prices = np.zeros(objective.cardinality.size)
        self._prices[objective.cardinality.counted] = 2.0 * objective.cardinality.unit_price
        self._best = 0.0
        """The most that a support lowers twice the objective by, less what it costs."""

    def rows(self, size: int) -> int:
        """Return how many rows of ``size`` numbers each support takes."""
        return size

    def promising(self, supports: IntArray) -> BoolArray:
        """Return which of the supports, ``(b, k)``, may be the best as far as blocks can tell."""
        blocks = self._hessian[supports[:, :, None], supports[:, None, :]]
        try:
            factors = np.linalg.cholesky(blocks)
        except np.linalg.LinAlgError:
            return np.ones(len(supports), dtype=bool)
        half = np.linalg.solve(factors, self._linear[supports][:, :, None])[:, :, 0]
        gains = np.square(half).sum(axis=1)
        pivots = np.einsum("bii->bi", factors).min(axis=1, initial=1.0)
        known = np.isfinite(gains) & (pivots > _JUDGED)
        worth = gains - self._prices[supports].sum(axis=1)
        self._best = max(self._best, float(worth[known].max(initial=0.0)))
        slack = _ACCURACY * float(gains[known].max(initial=0.0))
        return np.asarray(~known | (worth >= self._best - slack))


@final
class _Fits:
    """Newton's method on many supports at a time, for sums over observations; remembers the best.

    A support is given up where ten times what its last step promised would not make it the best.
    Promises count once they fall from step to step: far from a minimum, of a logarithm for
    instance, they stay what they are for many steps.
    """

    def __init__(
        self, objective: Objective, form: SparseRegression, arrays: list[FloatArray]
    ) -> None:
        self._form, self._arrays = form, arrays
        self._best, self._zero = objective.origin().value, objective.origin().value

    @classmethod
    def of(cls, objective: Objective) -> _Fits | None:
        """Return the fits of an objective; None where there are no columns of curved losses."""
        form, everything = objective.form, np.arange(objective.cardinality.size)
        if not isinstance(form, SparseRegression) or form.sparsity.priced or form.matrix:
            return None
        if not form.traits.curved or not objective.explicit_hessian(everything):
            return None
        if everything.size > _SMALL or any(term.target.ndim > 1 for term in form.terms):
            return None
        if any(Access.DEVICE in term.design.access for term in form.terms):
            return None  # the matrix stays where it is
        return cls(objective, form, [t.design.to_array().T for t in form.terms])

    def rows(self, size: int) -> int:
        """Return how many rows of ``size`` numbers each support takes."""
        return sum(array.shape[1] for array in self._arrays)

    def promising(self, supports: IntArray) -> BoolArray:
        """Return which of the supports, ``(b, k)``, may be the best as far as this can tell."""
        going, x = np.arange(len(supports)), np.zeros(supports.shape)
        values, promises = np.full(len(supports), self._zero), np.full(len(supports), np.inf)
        foreseen = np.zeros(len(supports), dtype=bool)
        for _ in range(_STEPS):
            columns = [array[supports[going]] for array in self._arrays]
            slope, hessian = self._model(supports[going], columns, x[going])
            try:
                step = -np.linalg.solve(hessian, slope[:, :, None])[:, :, 0]
            except np.linalg.LinAlgError:
                break
            promised, promises[going] = promises[going], -np.einsum("bi,bi->b", slope, step)
            t, left = np.ones(len(going)), np.arange(len(going))
            for _ in range(_HALVINGS):
                at = x[going[left]] + t[left, None] * step[left]
                after = self._values(supports[going[left]], [c[left] for c in columns], at)
                lower = after <= values[going[left]] - 1e-4 * t[left] * promises[going[left]]
                x[going[left[lower]]], values[going[left[lower]]] = at[lower], after[lower]
                left = left[~lower]
                t[left] *= 0.5
                if not left.size:
                    break
            self._best = min(self._best, float(np.fmin.reduce(values[going])))
            open_ = promises[going] > _ACCURACY * (self._zero - values[going])
            falls = np.isfinite(promised) & (promises[going] <= _FALL * promised)
            foreseen[going] = ~open_ | falls
            may_win = self._may_win(values, promises, foreseen)
            going = np.setdiff1d(going[open_ & may_win[going]], going[left])
            if not going.size:
                break
        return self._may_win(values, promises, foreseen)

    def _may_win(self, values: FloatArray, promises: FloatArray, foreseen: BoolArray) -> BoolArray:
        slack = _ACCURACY * (self._zero - self._best)
        return np.asarray(~(foreseen & (values - 10.0 * promises > self._best + slack)))

    def _values(self, supports: IntArray, columns: list[FloatArray], x: FloatArray) -> FloatArray:
        out = self._form.constant + 0.5 * np.einsum("bi,bi->b", self._form.ridge[supports], x * x)
        for term, c in zip(self._form.terms, columns, strict=True):
            u, y = _flat(term, c, x)
            out += cast("Loss", term.loss).value(u, y).reshape(len(x), -1) @ term.weights
        return np.asarray(out)

    def _model(
        self, supports: IntArray, columns: list[FloatArray], x: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the gradients ``(b, k)`` and Hessians ``(b, k, k)``, these a little enlarged."""
        ridge = self._form.ridge[supports]
        slope, hessian = ridge * x, ridge[:, :, None] * np.eye(supports.shape[1])
        for term, c in zip(self._form.terms, columns, strict=True):
            u, y = _flat(term, c, x)
            pull = term.weights * cast("Loss", term.loss).derivative(u, y).reshape(len(x), -1)
            bend = term.weights * cast("Curved", term.loss).second_derivative(u, y).reshape(
                len(x), -1
            )
            slope += (c @ pull[:, :, None])[:, :, 0]
            hessian += (c * bend[:, None, :]) @ c.transpose(0, 2, 1)
        own = np.einsum("bii->bi", hessian)
        own += _JITTER * own + np.finfo(float).tiny
        return slope, hessian


def _flat(term: Term, columns: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return margins and targets of many fits of a term, one after the other."""
    u = margins(term, (x[:, None, :] @ columns)[:, 0])
    return u.ravel(), np.broadcast_to(term.target, u.shape).ravel()


def _supports(form: Form) -> Iterator[IntArray]:
    sparsity = form.cardinality
    for size in _sizes(form):
        for units in combinations(range(sparsity.units), size):
            chosen = np.array(units, dtype=np.intp)
            if sparsity.plain or sparsity.within(chosen):
                yield sparsity.coordinates(chosen)


def _sizes(form: Form) -> range:
    sparsity = form.cardinality
    largest = min(sparsity.budget, sparsity.units)
    return range(0 if form.fewer else largest, largest + 1)


def _decades(form: Form) -> float:
    """Return the decimal logarithm of the number of supports of the most numerous size."""
    units, sizes = form.cardinality.units, _sizes(form)
    k = min(sizes[-1], max(sizes[0], units // 2))
    return (lgamma(units + 1) - lgamma(k + 1) - lgamma(units - k + 1)) / log(10.0)


def _count(form: Form) -> int:
    return sum(comb(form.cardinality.units, size) for size in _sizes(form))
