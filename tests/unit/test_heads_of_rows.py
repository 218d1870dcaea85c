"""The largest entries of the rows of a Gram matrix, and what is read off them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sparsemodel.certificates.dual_bounds.coefficient_bounds import sweep as sweeps
from sparsemodel.certificates.dual_bounds.coefficient_bounds.eliminated import Eliminated
from sparsemodel.certificates.dual_bounds.coefficient_bounds.neighbours import strongest

pytest.importorskip("numba")


def quadratic(seed: int, p: int, shared: float, unit: float) -> Eliminated:
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((2 * p, p)) + shared * np.cumsum(rng.standard_normal((2 * p, p)), 1)
    a /= np.linalg.norm(a, axis=0)
    gram, ridge = a.T @ a, rng.uniform(0.0, 0.3, p)
    return Eliminated(
        counted=np.arange(p),
        void=np.zeros(0, dtype=np.int64),
        gram=np.ascontiguousarray(gram, dtype=np.float32),
        linear=rng.standard_normal(p),
        ridge=ridge,
        sizes=np.sqrt(np.diag(gram) + ridge),
        reach=4.0,
        unit=unit,
        scale=np.ones(p),
    )


def heads(
    gram: np.ndarray, m: np.ndarray, width: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    from sparsemodel.certificates.dual_bounds.coefficient_bounds.largest_compiled import (
        heads_of_rows,
    )

    p = m.size
    out = (np.full((p, width), -1, np.int32), np.zeros((p, width)), np.zeros(p, int), np.zeros(p))
    heads_of_rows(np.asarray(gram, dtype=np.float32), m, *out)
    return out


@pytest.mark.parametrize("seed", range(4))
def test_the_tail_of_a_row_is_at_least_what_its_head_leaves_out(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, width = 300, 40
    rows = 10.0 ** rng.uniform(-12, 12, p)  # each row is in a unit of its own
    gram = rng.standard_normal((p, p)) * rows[:, None] * rng.choice([1.0, 1e-3], p)
    gram[0], gram[1] = 0.0, 1.0
    gram = gram.astype(np.float32)
    m = 10.0 ** rng.uniform(-2, 2, p)
    listed, entries, counts, tails = heads(gram, m, width)
    values = np.abs(gram) * m
    np.fill_diagonal(values, 0.0)
    for j in range(p):
        head = listed[j, : counts[j]]
        assert np.unique(head).size == head.size
        assert j not in head
        np.testing.assert_array_equal(entries[j, : counts[j]], gram[j, head])
        left = values[j].copy()
        left[head] = 0.0
        assert left.max() <= tails[j] <= left.max() * (1.0 + 1e-8)
    assert np.all(counts[2:] >= width // 2)
    assert counts[0] == 0


@pytest.mark.parametrize("k", [2, 4, 7])
@pytest.mark.parametrize("shared", [0.0, 0.2])
@pytest.mark.parametrize("unit", [1e-13, 1e-3])
def test_bounds_by_heads_are_those_by_all_entries(
    k: int, shared: float, unit: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = 0
    for seed in range(6):
        p = 160
        e = quadratic(seed, p, shared, unit)
        e = replace(e, sizes=np.full(p, 1.5 * e.sizes.max()))  # all entries take the largest size
        m = np.random.default_rng(seed + 50).uniform(0.1, 2.0, p)
        near = strongest(e.gram, np.full(p, 6, dtype=np.int64))
        plain = sweeps.Sweep(e, k, near, None)
        with monkeypatch.context() as patch:
            patch.setattr(sweeps, "_MANY", 1)
            patch.setattr(sweeps, "_WIDTH", 4)
            quick = sweeps.Sweep(e, k, near, None)
        for factor in (1.0, 1.05, 0.7, 1.5):  # the heads are those of the first bounds for a while
            expected = plain(factor * m, floor=1e-3, slack=0.01)
            found = quick(factor * m, floor=1e-3, slack=0.01)
            np.testing.assert_allclose(found, expected, rtol=1e-3)  # of single precision
            assert np.all(found <= expected * (1.0 + 1e-6))
        taken += int(np.isfinite(expected).sum())
    assert taken > 0


@pytest.mark.parametrize("alike", [0.0, 3.0])
@pytest.mark.parametrize("error", [0.0, 0.3, 5.0])
@pytest.mark.parametrize("width", [4, 12, 60])
def test_the_largest_outside_a_subset_are_found_also_where_no_head_lists_them(
    error: float, width: int, alike: float
) -> None:
    from sparsemodel.certificates.dual_bounds.coefficient_bounds.largest_compiled import (
        SPARE,
        fill,
        raised,
    )

    p, k, few = 120, 7, 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        gram = (rng.standard_normal((p, p)) + alike * rng.standard_normal(p)).astype(np.float32)
        m, sizes = rng.uniform(0.5, 1.5, p), rng.uniform(0.5, 1.5, p)
        index, gone = rng.permutation(p)[:3], rng.permutation(p)[:5]
        r = np.append(rng.uniform(0.5, 1.0, 3), 9.0)
        nobody = np.zeros(p)
        widest = float(sizes.max())
        unit = error / 1.01 - 44.0 * 2.0**-24  # with the roundings of three rows the same error
        data = (gram, nobody, nobody, sizes, unit, 0.0, 0.0, 0.0, widest)
        sums = (np.zeros(p), np.zeros(p), np.zeros(p, np.int64))
        best, where = np.zeros(k + SPARE), np.full(k + SPARE, -1)
        lists = (*heads(gram, m, width), float(np.max(sizes * m)))
        outside = (np.zeros(p, np.float32), np.zeros(p, np.bool_), sums)
        bounds, errors, seeds = (m, raised(m)), (error, 1.0), rng.permutation(p)[:9]
        fill(data, lists, bounds, index, 3, k, r, errors, gone, 5, seeds, outside, best, where)
        added, most = ((np.abs(r[:3] @ gram[index]) + error * s) * m for s in (sizes, widest))
        for values in (added, most):
            values[index], values[gone] = 0.0, 0.0
        known = int(np.sum(where >= 0))
        assert known >= k - 3
        assert np.unique(where[:known]).size == known
        assert np.all(best[:known] >= (1.0 - 1e-5) * np.sort(added)[::-1][:known])
        assert np.all(best[:known] <= (1.0 + 1e-5) * np.sort(most)[::-1][:known])
        assert np.all(best[:known] >= (1.0 - 1e-5) * added[where[:known]])
        assert not any(np.any(left) for left in (*sums[:2], outside[1]))
        few += known < k + SPARE
    assert few > 0 or width < 60 or error > 0.0  # long heads suffice
