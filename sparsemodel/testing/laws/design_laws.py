"""The laws of a design, each a plain function of a design and the array it stands for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from sparsemodel.interfaces import Access, Design, FloatArray, IntArray
from sparsemodel.testing.report import check, check_close


@final
@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a computed number may be off: ``relative * (what was added up) + absolute``."""

    relative: float = 1e-12
    absolute: float = 0.0
    stored: float = 0.0
    """Size of what is stored beside the entries and cancels, a common shift for instance; sums are
    rounded relative to it, whatever the entries are."""

    def close(
        self,
        actual: FloatArray,
        expected: FloatArray,
        what: str,
        scale: FloatArray | float = 0.0,
        factors: float = 0.0,
    ) -> None:
        """Check an array.

        ``scale`` holds the sums of the absolute values of its terms, ``factors`` the largest sum
        of the absolute values of what the entries are multiplied with.
        """
        largest = max(float(np.max(scale, initial=0.0)), float(np.max(np.abs(expected), initial=0)))
        cancelled = 4.0 * float(np.finfo(np.float64).eps) * self.stored * factors
        atol = self.relative * largest + self.absolute + cancelled
        check_close(actual, expected, what, rtol=0.0, atol=atol)


def has_a_shape_and_a_name(design: Design, array: FloatArray, tolerance: Tolerance) -> None:
    """The shape is a pair of plain integers, the description is one line."""
    check(design.shape == array.shape, f"shape {design.shape}, expected {array.shape}")
    check(all(type(size) is int for size in design.shape), f"shape {design.shape!r} is not int")
    check(Access.PRODUCTS in design.access, "a design without products")
    words = design.describe()
    check(words and "\n" not in words, f"description {words!r}")
    names = design.names
    check(names is None or len(names) == array.shape[1], f"names {names} for {array.shape}")


def multiplies(design: Design, array: FloatArray, tolerance: Tolerance) -> None:
    """``A @ x`` for a vector, several columns, one column, none; strided, read-only; in double."""
    rng = np.random.default_rng(1)
    _products(design.matvec, array, rng, "A @ x", tolerance)
    _products(design.matvec_in_double, array, rng, "A @ x in double", tolerance)


def multiplies_transposed(design: Design, array: FloatArray, tolerance: Tolerance) -> None:
    """``A.T @ r`` for a vector, several columns, one column; strided and read-only; in double."""
    rng = np.random.default_rng(2)
    _products(design.rmatvec, array.T, rng, "A.T @ r", tolerance)
    _products(design.rmatvec_in_double, array.T, rng, "A.T @ r in double", tolerance)


def _products(
    product: Callable[[FloatArray], FloatArray],
    matrix: FloatArray,
    rng: np.random.Generator,
    what: str,
    tolerance: Tolerance,
) -> None:
    size = matrix.shape[1]
    wide = rng.standard_normal((2 * size, 3))
    vectors: tuple[FloatArray, ...] = (
        np.zeros(size),
        wide[:size, 0].copy(),
        wide[::2, 1],  # strided
        wide[:size].copy(),
        np.asfortranarray(wide[:size]),
        wide[::2, :1],
        1e8 * wide[:size, 2],
    )
    for v in vectors:
        v.flags.writeable = False
        before = v.copy()
        result = product(v)
        _is_float64(result, what)
        scale: FloatArray = np.abs(matrix) @ np.abs(v)  # what rounding is measured against
        factors = float(np.max(np.abs(v).sum(axis=0), initial=0.0))
        tolerance.close(result, matrix @ v, f"{what} of shape {v.shape}", scale, factors)
        check(np.array_equal(v, before), f"{what} writes to its argument")
        check(not np.shares_memory(result, v), f"{what} hands back its argument")


def is_its_own_adjoint_pair(design: Design, array: FloatArray, tolerance: Tolerance) -> None:
    """``<r, A x> == <A.T r, x>``."""
    rng = np.random.default_rng(3)
    n, p = array.shape
    for _ in range(3):
        x, r = rng.standard_normal((p,)), rng.standard_normal((n,))
        left, right = np.vdot(r, design.matvec(x)), np.vdot(design.rmatvec(r), x)
        scale: FloatArray = np.abs(r) @ np.abs(array) @ np.abs(x)
        tolerance.close(np.asarray(left), np.asarray(right), "<r, A x> against <A.T r, x>", scale)


def restricts(design: Design, array: FloatArray, tolerance: Tolerance) -> None:
    """Columns of a support: none, one, some, all; and a restriction of a restriction."""
    for support in _supports(array.shape[1]):
        kept = support.copy()
        part = design.restrict(support)
        _same_design(part, array[:, support], f"columns {support.tolist()}", tolerance)
        if support.size > 1:
            again = part.restrict(np.arange(1, support.size))
            _same_design(again, array[:, support[1:]], "a restriction restricted", tolerance)
        check(np.array_equal(support, kept), "restrict writes to the support")


def restricts_again(design: Design, array: FloatArray, tolerance: Tolerance) -> None:
    """What it may copy from the last restriction is what it would have read."""
    supports = _supports(array.shape[1])
    for last in supports:
        before = design.restrict(last)
        for support in supports:
            part = design.restrict_again(support, last, before)
            what = f"columns {support.tolist()} after {last.tolist()}"
            tolerance.close(part.to_array(), array[:, support], what)
        tolerance.close(before.to_array(), array[:, last], "the last restriction, afterwards")
    _same_design(part, array[:, support], what, tolerance)


def restricts_rows(design: Design, array: FloatArray, tolerance: Tolerance) -> None:
    """Some observations, in order; and columns of them."""
    for rows in _supports(array.shape[0])[1:]:
        part = design.restrict_rows(rows)
        _same_design(part, array[rows], f"rows {rows.tolist()}", tolerance)
        columns = np.arange(0, array.shape[1], 2)
        both = array[np.ix_(rows, columns)]
        tolerance.close(part.restrict(columns).to_array(), both, "columns of some rows")


def multiplies_by_itself(design: Design, array: FloatArray, tolerance: Tolerance) -> None:
    """``A.T @ diag(h) @ A`` without ``h``, with positive ones, with zeros, with signs."""
    for h in (None, *_weights(array.shape[0])):
        gram = design.gram(h)
        _is_float64(gram, "gram")
        weights = np.ones(array.shape[0]) if h is None else h
        scale = np.abs(array).T @ (np.abs(weights)[:, None] * np.abs(array))
        expected = array.T @ (weights[:, None] * array)
        tolerance.close(gram, expected, "gram", scale)
        check_close(gram, gram.T, "gram is not symmetric", rtol=1e-14)
        for rows in _supports(array.shape[1])[1:]:
            some = design.gram_rows(rows, h)
            _is_float64(some, "gram_rows")
            tolerance.close(some, expected[rows], f"rows {rows.tolist()} of gram", scale[rows])


def shows_its_entries(design: Design, array: FloatArray, tolerance: Tolerance) -> None:
    """``to_array`` gives the entries, in an array that may be written to."""
    entries = design.to_array()
    _is_float64(entries, "to_array")
    tolerance.close(entries, array, "to_array")
    if entries.flags.writeable:
        entries[...] = -7.0
        tolerance.close(design.to_array(), array, "entries, after writing to a copy")


def reads_in_blocks(design: Design, array: FloatArray, tolerance: Tolerance) -> None:
    """Blocks of rows come in order, cover every row once, and are no larger than asked."""
    n, p = array.shape
    for size in (1, 2, max(n - 1, 1), n, n + 5):
        at = 0
        for rows, block in design.row_blocks(size):
            check(rows.start == at, f"block starts at row {rows.start}, expected {at}")
            check(0 < rows.stop - rows.start <= size, f"block {rows} larger than {size}")
            _is_float64(block, "row block")
            check(block.shape == (rows.stop - rows.start, p), f"block of shape {block.shape}")
            tolerance.close(block, array[rows], f"rows {rows.start} to {rows.stop}")
            at = rows.stop
        check(at == n, f"blocks end at row {at} of {n}")


def measures_its_columns(design: Design, array: FloatArray, tolerance: Tolerance) -> None:
    """Weighted squares of the columns, and their estimate from all rows."""
    for h in (None, *_weights(array.shape[0])[:2]):
        norms = design.column_square_norms(h)
        _is_float64(norms, "column_square_norms")
        weights = np.ones(array.shape[0]) if h is None else h
        tolerance.close(norms, weights @ np.square(array), "column_square_norms")
    sampled = design.sampled_square_norms(array.shape[0])
    if sampled is not None:
        mean = np.mean(np.square(array), axis=0)
        tolerance.close(sampled, mean, "sampled_square_norms of all rows")


def bounds_its_norm(design: Design, array: FloatArray, tolerance: Tolerance) -> None:
    """The number given for ``||A||_2`` relates to the truth as its kind says."""
    bound = design.spectral_norm()
    truth = float(np.linalg.norm(array, 2)) if array.size else 0.0
    slack = 10.0 * tolerance.relative * truth + tolerance.absolute
    check(np.isfinite(bound.value), f"spectral norm {bound.value}")
    if bound.kind == "exact":
        check_close(bound.value, truth, "exact spectral norm", rtol=0.0, atol=slack)
    elif bound.kind == "upper":
        check(bound.value >= truth - slack, f"upper bound {bound.value} below {truth}")
    else:
        check(bound.kind == "estimate", f"kind {bound.kind!r}")
        check(0.0 <= bound.value <= truth + slack, f"estimate {bound.value} above {truth}")
        check(bound.value >= 0.5 * truth, f"estimate {bound.value}, far below {truth}")


def finds_no_nonfinite(design: Design, array: FloatArray, tolerance: Tolerance) -> None:
    """Finite entries are reported as finite."""
    found = design.first_nonfinite()
    check(found is None, f"first_nonfinite gives {found} for finite entries")


def _same_design(part: Design, array: FloatArray, what: str, tolerance: Tolerance) -> None:
    check(part.shape == array.shape, f"{what}: shape {part.shape}, expected {array.shape}")
    rng = np.random.default_rng(4)
    n, p = array.shape
    size = np.abs(array)
    x, r = rng.standard_normal((p, 2)), rng.standard_normal((n, 2))
    h: FloatArray = rng.uniform(0.5, 2.0, size=(n,))
    tolerance.close(part.to_array(), array, f"{what}: entries")
    tolerance.close(part.matvec(x), array @ x, f"{what}: product", size @ np.abs(x))
    tolerance.close(part.matvec(x[:, 0]), array @ x[:, 0], f"{what}: product", size @ np.abs(x))
    tolerance.close(part.rmatvec(r), array.T @ r, f"{what}: transposed", size.T @ np.abs(r))
    tolerance.close(part.gram(h), array.T @ (h[:, None] * array), f"{what}: gram")
    tolerance.close(part.column_square_norms(), np.square(array).sum(axis=0), f"{what}: norms")


def _supports(p: int) -> list[IntArray]:
    everything = np.arange(p)
    listed = [everything[:0], everything, everything[-1:]]
    listed += [everything[::2], everything[p // 3 : 2 * p // 3 + 1]]
    return [np.ascontiguousarray(support) for support in listed]


def _weights(n: int) -> list[FloatArray]:
    rng = np.random.default_rng(5)
    positive = rng.uniform(0.1, 10.0, size=n)
    return [positive, positive * (np.arange(n) % 2), positive * rng.choice([-1.0, 1.0], size=n)]


def _is_float64(result: FloatArray, what: str) -> None:
    check(isinstance(result, np.ndarray), f"{what} returns {type(result).__name__}")
    check(result.dtype == np.float64, f"{what} has dtype {result.dtype}")
