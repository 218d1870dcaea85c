r"""Squared losses with many rows in storage: one reading, and all else from sums of products.

With the moments :math:`M` of the data (:class:`~sparsemodel.numerics.moments.Moments`) as computed,
and :math:`D` its diagonal, the exact ones are at least :math:`M - \omega D` as matrices: an entry
is off by at most :math:`\gamma \sqrt{D_i D_j}` (Higham, section 3.5), and a matrix with such
entries is at most :math:`m \gamma D` for :math:`m` columns. So a few rows whose own moments
:math:`N` satisfy :math:`N \preceq M - \omega D` have a loss that is *nowhere above* that of the
data, and whatever bounds the one bounds the other. :math:`N` is made a little smaller than
:math:`M`, and that it is smaller is checked by its computed entries (diagonal dominance).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from sparsemodel.certificates.arithmetic.products import predicted
from sparsemodel.certificates.arithmetic.readings import remembered
from sparsemodel.certificates.arithmetic.rounding import U, gamma
from sparsemodel.certificates.dual_bounds.unpenalised import unbounded_coordinates
from sparsemodel.certificates.statements.certificate import Multipliers, Witness
from sparsemodel.certificates.statements.fingerprint import Digest, array_hash
from sparsemodel.certificates.statements.objective_interval import Primal, TermValue, primal
from sparsemodel.compiler.reductions.compress import LARGEST, TALL, small_design
from sparsemodel.designs import OnesDesign, StackedDesign
from sparsemodel.interfaces import Design, FloatArray, IntArray, SparseRegression, Term
from sparsemodel.interfaces.numeric import least_squares
from sparsemodel.losses import SquaredLoss
from sparsemodel.numerics.budget import budget, cholesky_cost, gram_cost
from sparsemodel.numerics.moments import Moments

_SMALLER = 2.0
"""Multiple of what rounding may have done by which squares are made smaller."""

_MARGIN = 1.5
"""Multiple of the rows for which rounding is allowed for, above what a check of them takes."""

_ROUNDINGS = 2.0**12
"""Units of rounding in the size of a problem that a check of its rows may give away."""

_LOST = 1e-7
"""Share of the objective that may be lost by that: more, and the rows themselves are read."""

_FAINT = 1e-140
"""Size of a column from which on its squares do not underflow noticeably."""

_ROWS = 2**12
"""Rows that are read at a time where nothing but predictions is asked for."""

Fingerprints = list[list[tuple[IntArray, str]]]


@final
@dataclass(frozen=True, slots=True, eq=False)
class CertifiedProblem:
    """The problem and the point of a certificate, and the forms that bounds are proved on."""

    form: SparseRegression
    at_point: Primal
    minorant: SparseRegression
    """Its objective is nowhere above that of ``form``: bounds are sought and proved on it."""
    equivalent: SparseRegression
    """Its objective is that of ``form`` up to rounding: first-order facts are about it."""
    fingerprints: Fingerprints | None = None
    """Of the blocks of every term, where they came with the reading."""
    margin: float = 0.0
    """Subtracted from bounds on ``minorant``, so that a check on the rows proves them too."""
    multipliers: Multipliers | None = None
    """Of the linear constraints that ``minorant`` has in its objective."""

    @property
    def condensed(self) -> bool:
        """Return whether bounds rest on sums of products in the place of rows."""
        return self.equivalent is not self.form

    @property
    def points(self) -> SparseRegression:
        """Return the problem with all constraints: what points are sought for."""
        return self.minorant if self.multipliers is None else self.form

    @property
    def undualised(self) -> SparseRegression | None:
        """Return the problem whose constraints ``minorant`` has in its objective, or None."""
        return None if self.multipliers is None else self.form

    @property
    def terms(self) -> SparseRegression:
        """Return the problem whose terms the dual points of a witness belong to."""
        return self.form if self.multipliers is None else self.minorant

    @property
    def highest(self) -> float:
        """Return the highest bound that is stated: one above the point's objective says no more.

        A point that breaks linear constraints by rounding may lie below the bound by as much.
        """
        at = self.at_point
        return at.upper if self.multipliers is None else at.value - 2.0 * at.allowance

    def ceiling(self, x: FloatArray) -> float:
        """Return what no bound can exceed: the larger objective of both forms at ``x``.

        They differ by the amount by which ``x`` breaks linear constraints.
        """
        upper = self.at_point.upper
        return upper if self.multipliers is None else max(upper, primal(self.minorant, x).upper)

    def at(self, x: FloatArray) -> CertifiedProblem:
        """Return the same at another point."""
        return replace(self, at_point=primal(self.form, x))

    def portable(self, witness: Witness) -> Witness:
        """Return a witness found on ``minorant`` as one for the data: the gradient at its point."""
        if not self.condensed or not witness.duals:
            return witness
        at = witness.at
        if at is None:
            term, dual = self.minorant.terms[0], witness.duals[0]
            if dual is None:
                return witness
            entries = term.design.to_array()
            sizes = np.sqrt(np.square(entries).sum(axis=0))
            sizes[sizes == 0.0] = 1.0
            right = dual + term.target
            at = np.asarray(least_squares(entries / sizes, right) / sizes)
        at = self._balanced(at)
        return replace(witness, duals=(None,) * len(self.form.terms), at=at)

    def _balanced(self, at: FloatArray) -> FloatArray:
        """Return a point nearby where slopes that have to vanish do so on the data.

        On ``minorant``, whose squares are smaller, what is left of them lowers the bound that is
        stated. At a point where they vanish there, rows would prove less than that bound.
        """
        index = unbounded_coordinates(self.form)
        if not index.size:
            return at
        term, out = self.equivalent.terms[0], at.copy()
        entries, roots = term.design.to_array(), np.sqrt(term.weights)
        columns = roots[:, None] * entries[:, index]
        off = roots * (entries @ at - term.target)
        sizes = np.sqrt(np.square(columns).sum(axis=0))
        sizes[sizes == 0.0] = 1.0
        out[index] -= least_squares(columns / sizes, off) / sizes
        return out


def uncondensed(form: SparseRegression, x: FloatArray) -> CertifiedProblem:
    """Return the problem without sums of products: bounds are proved on ``form`` itself."""
    return CertifiedProblem(form, primal(form, x), form, form)


def condensed(form: SparseRegression, x: FloatArray) -> CertifiedProblem:
    """Return the problem of a certificate about ``x``, from at most one reading of the data.

    If sums of products do not help or cannot be trusted, its forms are all ``form`` itself.
    """
    if not _applies(form):
        return uncondensed(form, x)
    known = _known(form)
    if x.tobytes() not in known:
        known |= _read(form, x, known)
    at_point = primal(form, x, known[x.tobytes()])
    if "forms" not in known:
        known["forms"] = _forms(known["moments"], _sums(form.terms))
    rows = known["forms"]
    whole = CertifiedProblem(form, at_point, form, form, known["fingerprints"])
    if rows is None:
        return whole
    minorant, equivalent = (replace(form, terms=(term,)) for term in rows)
    margin = _ROUNDINGS * U * _size(known["moments"], x)
    lost = at_point.value - primal(minorant, x).value + margin
    if not lost <= _LOST * abs(at_point.value - form.constant):
        return whole
    return CertifiedProblem(form, at_point, minorant, equivalent, known["fingerprints"], margin)


def _applies(form: SparseRegression) -> bool:
    """Return whether sums of products stand for the data, and reading them again is slow."""
    p, rows = form.sparsity.size, sum(term.design.shape[0] for term in form.terms)
    plain = form.traits.square and not form.matrix
    tall = rows >= TALL * p and p <= LARGEST
    stored = all(term.design.streamed for term in form.terms)
    cost = gram_cost(rows, p) + cholesky_cost(p)
    return plain and tall and stored and budget().allows(cost)


def _known(form: SparseRegression) -> dict[Any, Any]:
    """Return what readings of the same data have found: nothing where that cannot be told."""
    stamps = [term.design.stamp for term in form.terms]
    if None in stamps:
        return {}
    arrays = [a for term in form.terms for a in (*term.squares(), term.offset)]
    key = (*stamps, *map(array_hash, arrays))
    found: dict[Any, Any] = remembered(form.terms[0].design, key, dict)
    return found


def _read(form: SparseRegression, x: FloatArray, known: dict[Any, Any]) -> dict[Any, Any]:
    """Return what is not known yet from one reading: the value at ``x``, and all else at first."""
    support = np.flatnonzero(x)
    values = [TermValue(term) for term in form.terms]
    digests = [_blocks(term.design) for term in form.terms]
    first = "moments" not in known

    def watch(number: int, rows: slice, entries: FloatArray) -> None:
        values[number].add(rows, *predicted(entries, x, support))
        for index, digest in digests[number] if first else ():
            digest.add(entries if index.size == entries.shape[1] else entries[:, index])

    found: dict[Any, Any] = {}
    if first:
        found["moments"] = Moments.of(form.terms, watch)
        found["fingerprints"] = [
            [(index, digest.text()) for index, digest in some] for some in digests
        ]
    else:
        for number, term in enumerate(form.terms):
            for rows, entries in term.design.row_blocks(_ROWS):
                watch(number, rows, entries)
    found[x.tobytes()] = [value.ends() for value in values]
    return found


class _Ones:
    """The fingerprint of a column of ones, for which there is nothing to read."""

    def __init__(self, rows: int) -> None:
        self._rows = rows

    def add(self, entries: FloatArray) -> None:
        """Take in some rows."""

    def text(self) -> str:
        return f"ones:{self._rows}"


def _blocks(design: Design) -> list[tuple[IntArray, Digest | _Ones]]:
    if not isinstance(design, StackedDesign):
        return [(np.arange(design.shape[1]), Digest(design.shape))]
    return [
        (index, _Ones(block.shape[0]) if isinstance(block, OnesDesign) else Digest(block.shape))
        for index, block in design.blocks
    ]


def _size(moments: Moments, x: FloatArray) -> float:
    """Return the squares of the targets and of the columns times ``x``, means included."""
    squares = np.diag(moments.products).copy()
    if (j := moments.intercept) is not None:
        s = moments.shift
        squares += 2.0 * s * moments.products[j] + s * s * moments.products[j, j]
    squares = np.maximum(squares, 0.0)
    return 0.5 * float(squares[: x.size] @ np.square(x) + squares[x.size :].sum())


def _sums(terms: tuple[Term, ...]) -> int:
    """Return of how many rows rounding has to be allowed for, so that rows prove as much.

    Allowances grow with the observations and, where weights differ, with the largest of them.
    """
    rows = sum(term.design.shape[0] for term in terms)
    weights = [term.squares()[1] for term in terms]
    mean = sum(float(c.sum()) for c in weights) / rows
    largest = max(float(c.max(initial=0.0)) for c in weights)
    return int(_MARGIN * rows * np.sqrt(largest / mean)) if mean > 0.0 else rows


def _forms(moments: Moments, sums: int) -> tuple[Term, Term] | None:
    """Return a term that is nowhere above the data's, and one with the same moments."""
    if not moments.finite:
        return None
    columns = moments.products.shape[0]
    entry = gamma(moments.depth) + 2.0 * moments.aim
    omega = columns * entry * (1.0 + 1e-3) + columns * gamma(columns + 32)
    lower = moments.rows(less=_SMALLER * omega, residual=True)
    if not _dominated(moments, lower[0], lower[1], lower[2], omega):
        return None
    same = moments.rows(residual=True)
    return _term(moments, sums, *lower[:3]), _term(moments, sums, *same[:3])


def _term(moments: Moments, sums: int, a: FloatArray, y: FloatArray, c: FloatArray) -> Term:
    return Term(small_design(a, moments.intercept, sums), SquaredLoss(), y[:, 0], c)


def _dominated(moments: Moments, a: FloatArray, y: FloatArray, c: FloatArray, omega: float) -> bool:
    """Return whether rows are proved to have moments below the exact ones of the data.

    ``omega`` covers what rounding did to the data's moments and, with as many more, to these.
    """
    z = np.hstack([a, y]) - moments.shift
    z *= np.sqrt(c)[:, None]
    difference = moments.products - z.T @ z
    sizes = np.sqrt(np.diag(moments.products))
    zero = moments.constant
    if np.any(sizes[~zero] < _FAINT) or np.any(difference[zero] != 0.0):
        return False  # squares underflow, or there is something where nothing is
    scale = np.where(zero, 1.0, sizes)
    difference /= np.outer(scale, scale)
    diagonal = np.diag(difference)
    rest = np.abs(difference).sum(axis=1) - np.abs(diagonal)
    needed = omega + z.shape[1] * (gamma(z.shape[0] + 32) + 64.0 * U)
    return bool(np.all((diagonal - rest >= needed) | zero))
