"""Descents end at supports that no exchange improves, whatever computes them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparsemodel.interfaces import FloatArray, IntArray
from sparsemodel.numerics.search.descents import Descents, WholeMatrix, forward_backward


def quadratic(n: int, units: int, q: int, m: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return a matrix whose blocks of units are the identity, and a linear term."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, units * q)) + rng.standard_normal((n, 1))
    X = np.concatenate([np.linalg.qr(A[:, i : i + q])[0] for i in range(0, units * q, q)], axis=1)
    G = X.T @ X
    for i in range(0, units * q, q):
        G[i : i + q, i : i + q] = np.eye(q)
    return G, np.ascontiguousarray((X.T @ rng.standard_normal((n, m))).T)


def explained(G: FloatArray, c: FloatArray, support: IntArray, q: int = 1) -> float:
    columns = (support[:, None] * q + np.arange(q)).ravel()
    own = c[:, columns]
    return float(np.sum(own.T * np.linalg.solve(G[np.ix_(columns, columns)], own.T)))


def starts_of(units: int, k: int, seed: int) -> IntArray:
    rng = np.random.default_rng(seed)
    out = np.full((8, k + 2), -1)
    for row in out:
        size = rng.integers(0, k + 3)
        row[:size] = rng.choice(units, size, replace=False)
    return out


class Missing(WholeMatrix):
    """Rows that are there once they have been fetched."""

    def __init__(self, G: FloatArray, q: int) -> None:
        super().__init__(G, q)
        self._G, self.fetched = G, 0
        self.store, self.slots = np.empty((0, len(G))), np.full(len(G), -1)

    def fetch(self, units: IntArray) -> None:
        for unit in units:
            if self.slots[unit * self.q] < 0:
                columns = unit * self.q + np.arange(self.q)
                self.slots[columns] = len(self.store) + np.arange(self.q)
                self.store = np.concatenate([self.store, self._G[columns]])
                self.fetched += 1


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("q", "m"), [(1, 1), (1, 3), (3, 1), (2, 2)])
def test_no_exchange_improves_an_end(
    q: int, m: int, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if q > 1 and not compiled:
        pytest.skip("NumPy's descents are those of single columns")
    monkeypatch.setattr(Descents, "_is_compiled", lambda self: compiled)
    G, c = quadratic(60, 16, q, m, seed=q + m)
    ends, values = Descents(WholeMatrix(G, q), c)(starts_of(16, 3, seed=m), 3)
    for end, value in zip(ends, values, strict=True):
        assert end.min() >= 0
        assert value == pytest.approx(explained(G, c, end, q), rel=1e-9)
        for slot in range(3):
            for unit in np.setdiff1d(np.arange(16), end):
                other = np.append(np.delete(end, slot), unit)
                assert explained(G, c, other, q) <= value * (1.0 + 1e-8)


def test_rows_are_fetched_when_they_are_asked_for() -> None:
    G, c = quadratic(60, 40, 2, 1, seed=5)
    starts = starts_of(40, 3, seed=6)
    rows = Missing(G, 2)
    ends, values = Descents(rows, c)(starts, 3)
    whole_ends, whole_values = Descents(WholeMatrix(G, 2), c)(starts, 3)
    np.testing.assert_array_equal(ends, whole_ends)
    np.testing.assert_allclose(values, whole_values, rtol=1e-12)
    assert 0 < rows.fetched < 40


@pytest.mark.parametrize("seed", range(4))
def test_descents_within_bounds_reach_the_optimum_of_few_supports(seed: int) -> None:
    from scipy.optimize import lsq_linear

    G, c = quadratic(40, 10, 1, 1, seed)
    low = np.zeros(10) if seed % 2 else np.full(10, -0.3)
    high = np.full(10, np.inf) if seed % 2 else np.full(10, 0.3)

    def value(support: IntArray) -> float:
        L = np.linalg.cholesky(G[np.ix_(support, support)])
        aim = np.linalg.solve(L, c[0, support])
        x = lsq_linear(L.T, aim, (low[support], high[support]), method="bvls", tol=1e-14).x
        return float(2.0 * c[0, support] @ x - x @ G[np.ix_(support, support)] @ x)

    starts = np.array([np.random.default_rng(i).choice(10, 3, replace=False) for i in range(12)])
    ends, values = Descents(WholeMatrix(G), c, (low, high))(starts, 3)
    best = max(value(np.array(s)) for s in combinations(range(10), 3))
    assert values.max() == pytest.approx(best, rel=1e-9)
    end = ends[np.argmax(values)]
    assert value(end[end >= 0]) == pytest.approx(best, rel=1e-9)


def test_dependent_units_of_a_start_are_left_out() -> None:
    G, c = quadratic(30, 6, 1, 1, seed=1)
    G = np.block([[G, G], [G, G]])  # each column twice
    c = np.concatenate([c, c], axis=1)
    ends, values = Descents(WholeMatrix(G), c)(np.array([[0, 6, 1]]), 3)
    assert np.unique(ends % 6).size == 3
    assert values[0] <= explained(G[:6, :6], c[:, :6], np.arange(6)) * (1.0 + 1e-12)


def test_forward_backward_never_falls_and_meets_the_ends_of_sizes() -> None:
    G, c = quadratic(50, 20, 1, 1, seed=3)
    supports, values = forward_backward(Descents(WholeMatrix(G), c), np.arange(1, 9))
    assert np.all(np.diff(values) >= 0.0)
    for size, row, value in zip(range(1, 9), supports, values, strict=True):
        support = row[row >= 0]
        assert support.size == size
        assert value == pytest.approx(explained(G, c, support), rel=1e-9)
    best = max(explained(G, c, np.array(pair)) for pair in combinations(range(20), 2))
    assert values[1] == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("seed", [179, 584])
def test_degenerate_bounds_write_nothing_behind_a_support(seed: int) -> None:
    """As many members as rows, half of them at a bound: the pivots end by their number."""
    from sparsemodel.numerics.search.descents_compiled import new_factor

    rng = np.random.default_rng(seed)
    k, p = int(rng.integers(2, 9)), 16
    A = rng.standard_normal((k, p))
    A /= np.linalg.norm(A, axis=0)
    c = (A.T @ rng.standard_normal(k))[None] * 10.0
    starts = np.array([rng.permutation(p)[:k] for _ in range(6)])
    descents = Descents(WholeMatrix(A.T @ A), c, (np.full(p, -np.inf), np.full(p, 0.5)))
    memory, behind = np.full(k + 2, -7), np.full(k + 2, -7.0)
    factor = new_factor(k, 1, p, 1)._replace(
        kept=memory[:k], columns=memory.copy()[:k], ends=behind[:k]
    )
    descents._factor = k, factor
    ends, values = descents(starts, k)
    assert memory[k:].tolist() == [-7, -7]
    assert behind[k:].tolist() == [-7.0, -7.0]
    assert ends.shape == (6, k)
    assert np.isfinite(values).all()
