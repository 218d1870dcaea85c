"""Selection of the largest entries, as in the projection onto sparse vectors."""

from __future__ import annotations

import math

import numpy as np

from sparsemodel.interfaces import Cardinality, FloatArray, IntArray, coordinate_scores
from sparsemodel.numerics.support.closures import best_closed

_BLOCKS, _FEW = 8, 8
"""Blocks for each entry selected, and the least size of a block that is worth it."""


def top_k(scores: FloatArray, k: int) -> IntArray:
    """Return the sorted indices of the ``k`` largest ``scores``; ties go to the lower index.

    O(p): a selection, never a full sort. All indices when ``k >= scores.size``. Where ``k`` is
    small against p, it costs little more than reading the scores twice.

    Examples
    --------
    >>> import numpy as np
    >>> top_k(np.array([1.0, 3.0, 3.0, 2.0, 3.0]), 2)
    array([1, 2])
    """
    size = scores.size
    if k >= size:
        return np.arange(size)
    if k <= 0:
        return np.empty(0, dtype=np.intp)
    candidates = None
    if size >= _FEW * _BLOCKS * k:
        # Each block's largest entry is one of the scores, so the k-th of these is no larger than
        # the k-th of all, and few others reach it: a tenth of the time of a partition.
        blocks = _BLOCKS * k
        largest = scores[: size // blocks * blocks].reshape(-1, blocks).max(axis=0)
        floor = np.partition(largest, blocks - k)[blocks - k]
        if not np.isnan(floor):
            candidates = np.flatnonzero(scores >= floor)
            scores = scores[candidates]
            size = scores.size
    threshold = np.partition(scores, size - k)[size - k]
    chosen = np.flatnonzero(scores > threshold)
    ties = np.flatnonzero(scores == threshold)[: k - chosen.size]
    positions = np.sort(np.concatenate([chosen, ties]))
    return positions if candidates is None else candidates[positions]


def highest(scores: FloatArray, k: int) -> FloatArray:
    """Return the ``k`` largest ``scores``, in any order; all of them when ``k >= scores.size``."""
    first = scores.size - k
    if 0 < first < scores.size < _FEW * _BLOCKS * k:
        return np.partition(scores, first)[first:]
    return scores[top_k(scores, k)]


def select(cardinality: Cardinality, x: FloatArray, *, k: int | None = None) -> IntArray:
    """Return the support of the nearest point to ``x`` with at most ``k`` units.

    The support has exactly ``min(k, units)`` units (a unit that is zero in ``x`` may be among
    them) and all free coordinates.
    """
    return select_scores(cardinality, coordinate_scores(x), k=k)


def select_scores(
    cardinality: Cardinality, scores: FloatArray, *, k: int | None = None
) -> IntArray:
    """Return the support of the ``k`` units with the largest sums of coordinate ``scores``."""
    return cardinality.coordinates(best_units(cardinality, cardinality.unit_scores(scores), k=k))


def best_units(cardinality: Cardinality, scores: FloatArray, *, k: int | None = None) -> IntArray:
    """Return the sorted units with the largest sum of nonnegative ``scores`` that are allowed.

    At most ``k`` of them (``cardinality.budget`` by default). With limits on parts of the units,
    the best of every inner set are what sets that contain it choose from: the greedy algorithm,
    exact for sets that are disjoint or nested. O(p), and a sort of the units that have a limit.
    With budgets, or limits that cross, the units with the largest scores for what they cost, as
    long as they fit: not always the best; nor are those of :func:`best_closed`, where units need
    others.
    """
    k = cardinality.budget if k is None else k
    if cardinality.order is not None:
        return best_closed(cardinality, scores, k)
    if not cardinality.greedy:
        return _fitting(cardinality, scores, k)
    left = np.arange(scores.size)
    for layer in cardinality.limits:
        left = left[_best_of_each(layer.sets[left], layer.most, scores[left])]
    if left.size == scores.size:
        return top_k(scores, k)
    return left[top_k(scores[left], k)]


def _fitting(sparsity: Cardinality, scores: FloatArray, k: int) -> IntArray:
    """Return the sorted units that are taken by score and cost as long as they fit."""
    chosen: list[int] = []
    rooms = [knapsack.most for knapsack in sparsity.knapsacks]
    most = [np.append(layer.most, scores.size) for layer in sparsity.layers]  # last: in no set
    shares = np.zeros(scores.size)
    for knapsack in sparsity.knapsacks:
        shares += knapsack.costs / (knapsack.most or 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        worth = np.where(shares > 0.0, scores / shares, np.inf) if rooms else scores
    for unit in np.argsort(-worth, kind="stable").tolist():
        costs = [float(knapsack.costs[unit]) for knapsack in sparsity.knapsacks]
        sets = [layer.sets[unit] for layer in sparsity.layers]
        if any(cost > room for cost, room in zip(costs, rooms, strict=True)):
            continue
        if len(chosen) < k and all(left[s] > 0 for left, s in zip(most, sets, strict=True)):
            chosen.append(unit)
            rooms = [room - cost for cost, room in zip(costs, rooms, strict=True)]
            for left, s in zip(most, sets, strict=True):
                left[s] -= 1
    return np.sort(np.array(chosen, dtype=np.intp))


def _best_of_each(sets: IntArray, most: IntArray, scores: FloatArray) -> IntArray:
    """Return the sorted positions of the ``most[s]`` largest scores of each set ``s``.

    Positions in no set (``-1``) stay.
    """
    order = np.lexsort((-scores, sets))  # stable: ties go to the lower index
    sets = sets[order]
    first = np.searchsorted(sets, sets)  # where the set of each begins
    rank = np.arange(sets.size) - first
    kept = (sets < 0) | (rank < most[sets])
    return np.sort(order[kept])


def expansion(size: int, k: int, sparsity: int) -> float:
    r"""Return :math:`\nu`: how much hard thresholding can stretch a squared distance.

    :math:`\nu = 1 + (\rho + \sqrt{(4 + \rho)\rho})/2` with
    :math:`\rho = \min(K, p-k) / (k - K + \min(K, p-k))`, for ``size`` = p, ``sparsity`` = K:
    :math:`\|H_k(b) - x^\ast\|^2 \le \nu\, \|b - x^\ast\|^2`, where :math:`H_k` keeps the ``k``
    entries that are largest in magnitude. Tight (Shen and Li, JMLR 2018,
    Theorem 1); a ``b`` with ``r`` nonzeros is a vector of ``size`` = r (Remark 5).

    Examples
    --------
    >>> round(expansion(100, 5, 5), 3), round(expansion(12, 10, 5), 3), expansion(5, 5, 5)
    (2.618, 1.696, 1.0)
    """
    smaller = min(sparsity, size - k)
    if smaller <= 0:
        return 1.0
    rho = smaller / (k - sparsity + smaller)
    return 1.0 + (rho + math.sqrt((4.0 + rho) * rho)) / 2.0
