"""The best approximation of a sequence by steps, by dynamic programming."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sparsemodel.designs import StepsDesign, TransformedDesign
from sparsemodel.interfaces import FloatArray, Form, IntArray, SparseRegression

_PRUNED_EVERY = 16
"""Entries after which beginnings that can lead nowhere are left out."""
_ROUNDING = 1e-9
"""Share of the costs by which a beginning must be worse to be left out."""


_WORK = 1e9
"""Costs of segments that are looked at, at most: about ten seconds."""


def as_sequence(form: Form) -> tuple[FloatArray, FloatArray] | None:
    """Return a sequence and its weights where ``form`` is their best approximation by steps.

    One squared loss of the entries of a variable whose jumps are counted, and nothing else: no
    ridge, no bounds, no constraints. None for any other form, and where there is too much to do.
    """
    if not isinstance(form, SparseRegression) or len(form.terms) != 1 or form.constrained:
        return None
    (term,), sparsity = form.terms, form.sparsity
    design = term.design
    while isinstance(design, TransformedDesign) and design.only_scaled:
        design = design.inner
    if not isinstance(design, StepsDesign) or not term.traits.square or form.matrix:
        return None
    n = design.shape[0]
    plain = sparsity.groups is None and sparsity.plain and not sparsity.forced_units
    if not plain or sparsity.free.tolist() != [n - 1] or np.any(form.ridge):
        return None
    if min(sparsity.budget, n) * n * n > _WORK:
        return None
    centre, weights = term.squares()
    return centre if term.offset is None else centre - term.offset, weights


def best_segments(
    y: FloatArray,
    weights: FloatArray,
    jumps: int,
    *,
    price: float = 0.0,
    over: Callable[[], bool] | None = None,
) -> IntArray | None:
    r"""Return where the best step function with at most ``jumps`` jumps has them.

    It minimises :math:`\tfrac12 \sum_i c_i (y_i - v_i)^2` and ``price`` for each jump: a jump ``j``
    lies between the entries ``j`` and ``j + 1``. With :math:`C_m(j)` the least cost of the first
    ``j`` entries in ``m`` segments and :math:`c(i, j)` that of one segment,

    .. math:: C_{m+1}(j) = \min_{i < j} C_m(i) + c(i, j).

    A beginning ``i`` is left out for ``m`` once :math:`C_m(i) + c(i, j) \ge C_m(j)`, as a segment
    from ``j`` on then serves all later ends as well: one long segment costs no less than its parts.

    Parameters
    ----------
    y, weights
        The sequence and the weight of each entry, not negative, shape ``(n,)``.
    jumps
        How many there may be.
    price
        What each adds to the objective.
    over
        Asked now and then whether to give up.

    Returns
    -------
    places
        Sorted; None when ``over`` said so.

    Notes
    -----
    At most :math:`O(k n^2)`, vectorised over segments and beginnings; far less where jumps stand
    out.

    Examples
    --------
    >>> import numpy as np
    >>> best_segments(np.array([1.0, 1.1, 0.9, 5.0, 5.1]), np.ones(5), 1)
    array([2])
    """
    n = y.size
    segments = min(jumps, n - 1) + 1
    total = float(weights.sum())
    y = y - (float(weights @ y) / total if total > 0.0 else 0.0)
    w, s, q = (
        np.concatenate([[0.0], np.cumsum(part)])
        for part in (weights, weights * y, 0.5 * weights * y * y)
    )
    least = np.full((segments, n + 1), np.inf)
    """``C_m(j)``, by ``m - 1`` and ``j``."""
    origin = np.zeros((segments, n + 1), dtype=np.int32)
    begins: IntArray = np.arange(1, 1)
    for j in range(1, n + 1):
        if over is not None and j % _PRUNED_EVERY == 0 and over():
            return None
        least[0, j] = _cost(w, s, q, np.zeros(1, dtype=np.intp), j)[0]
        if begins.size and segments > 1:
            through = least[:-1, begins] + _cost(w, s, q, begins, j)
            best = np.argmin(through, axis=1)
            least[1:, j] = through[np.arange(segments - 1), best]
            origin[1:, j] = begins[best]
            if j % _PRUNED_EVERY == 0:
                allowance = _ROUNDING * (q[-1] + np.abs(least[:-1, j, None]))
                alive = (through < least[:-1, j, None] + allowance).any(axis=0)
                begins = begins[alive]
        begins = np.append(begins, j)
    costs = least[:, n] + price * np.arange(segments)
    m, j, found = int(np.argmin(costs)), n, []
    while m > 0:
        j = int(origin[m, j])
        found.append(j - 1)
        m -= 1
    return np.array(found[::-1], dtype=np.intp)


def _cost(w: FloatArray, s: FloatArray, q: FloatArray, begins: IntArray, j: int) -> FloatArray:
    """Return the least cost of one segment from each beginning to ``j``."""
    weight, total = w[j] - w[begins], s[j] - s[begins]
    explained = np.zeros(begins.size)
    np.divide(0.5 * total * total, weight, out=explained, where=weight > 0.0)
    return np.asarray(np.maximum(q[j] - q[begins] - explained, 0.0))
