"""Laws of selection: nearest points, expansion, ties, groups."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sparsemodel.interfaces import coordinate_scores
from sparsemodel.numerics import expansion, select, top_k
from tests.properties.strategies import cardinalities, vectors


def largest(x, k):
    """Return the ``k`` entries of ``x`` largest in magnitude, zeros elsewhere."""
    return np.where(np.isin(np.arange(x.size), top_k(np.abs(x), k)), x, 0.0)


sized = st.integers(1, 7).flatmap(lambda p: st.tuples(vectors(p), st.integers(0, p)))


@given(sized)
def test_top_k_is_a_stable_sort_cut_off(drawn):
    scores, k = drawn
    assert np.array_equal(top_k(scores, k), np.sort(np.argsort(-scores, kind="stable")[:k]))


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 2000), st.booleans())
def test_top_k_of_many_scores_with_ties(seed, k, p, rising):
    scores = np.random.default_rng(seed).geometric(0.01, size=p).astype(np.float64)
    scores = np.sort(scores) if rising else scores
    assert np.array_equal(top_k(scores, k), np.sort(np.argsort(-scores, kind="stable")[:k]))


@given(sized)
def test_the_largest_entries_are_the_nearest_sparse_point(drawn):
    x, k = drawn
    near = largest(x, k)
    assert np.count_nonzero(near) <= k
    best = min(
        (np.sum(np.delete(x, list(keep)) ** 2) for keep in combinations(range(x.size), k)),
    )
    assert np.sum((x - near) ** 2) == best  # multiples of 1/8: exact
    assert np.array_equal(largest(near, k), near)


@given(sized, st.sampled_from([-2.0, 0.5, 4.0]))
def test_the_largest_entries_do_not_depend_on_scale(drawn, factor):
    x, k = drawn
    assert np.array_equal(largest(factor * x, k), factor * largest(x, k))


@st.composite
def thresholded(draw):
    p = draw(st.integers(2, 8))
    sparsity = draw(st.integers(1, p))
    k = draw(st.integers(sparsity, p))
    sparse = np.zeros(p)
    sparse[:sparsity] = draw(vectors(sparsity))
    b, size = draw(vectors(p)), draw(st.integers(k, p))
    b[: p - size] = 0.0  # only what b has counts as its size (Remark 5)
    return b, size, sparse, k, sparsity


@given(thresholded())
def test_expansion_factor_bounds_the_error(drawn):
    b, size, x, k, sparsity = drawn
    bound = math.sqrt(expansion(size, k, sparsity)) * np.linalg.norm(b - x)
    assert np.linalg.norm(largest(b, k) - x) <= bound * (1 + 1e-12)


@given(st.integers(1, 6).flatmap(lambda p: st.tuples(vectors(p), cardinalities(p))))
def test_select_is_the_best_support(drawn):
    x, sparsity = drawn
    support = select(sparsity, x)
    assert np.all(np.diff(support) > 0)
    assert np.isin(sparsity.free, support).all()
    kept = coordinate_scores(x)[support].sum()
    units = [sparsity.coordinates(np.array(u, dtype=np.intp)) for u in _choices(sparsity)]
    assert kept == max(coordinate_scores(x)[s].sum() for s in units)
    projected = np.zeros_like(x)
    projected[support] = x[support]
    assert sparsity.count(projected) <= sparsity.k


def _choices(sparsity):
    return combinations(range(sparsity.units), sparsity.k)
