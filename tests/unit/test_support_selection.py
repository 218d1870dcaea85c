"""Selection by example: ties, edges, and the paper's numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sparsemodel.interfaces import Cardinality
from sparsemodel.numerics import expansion, select, select_scores, top_k


def test_ties_go_to_the_lower_index():
    assert top_k(np.array([2.0, 5.0, 5.0, 5.0, 1.0]), 2).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("k", "expected"), [(-1, []), (0, []), (1, [1]), (3, [0, 1, 2]), (9, [0, 1, 2])]
)
def test_every_k(k, expected):
    indices = top_k(np.array([1.0, 3.0, 2.0]), k)
    assert indices.tolist() == expected
    assert indices.dtype == np.intp


def test_all_equal_scores_keep_the_first():
    assert top_k(np.zeros(6), 4).tolist() == [0, 1, 2, 3]
    assert top_k(np.full(6, np.inf), 2).tolist() == [0, 1]


def test_empty_scores():
    assert top_k(np.empty(0), 0).size == 0
    assert top_k(np.empty(0), 3).size == 0


def test_the_argument_is_left_alone():
    x = np.array([3.0, -4.0, 1.0])
    x.flags.writeable = False
    assert select(Cardinality(3, 1), x).tolist() == [1]


def test_free_coordinates_are_in_every_support():
    sparsity = Cardinality(5, 1, free=np.array([0, 3]))
    assert select(sparsity, np.array([0.0, 1.0, -2.0, 0.0, 1.5])).tolist() == [0, 2, 3]
    assert select(sparsity, np.zeros(5), k=0).tolist() == [0, 3]


def test_groups_enter_whole_by_their_sum_of_squares():
    groups = np.array([0, 1, 0, -1, 1])
    sparsity = Cardinality(5, 1, free=np.array([3]), groups=groups)
    assert select(sparsity, np.array([3.0, 2.2, 0.0, 9.0, 2.2])).tolist() == [1, 3, 4]
    assert select_scores(sparsity, np.array([1.0, 0.0, 1.0, 0.0, 0.5])).tolist() == [0, 2, 3]


def test_rows_of_a_matrix_enter_by_their_norm():
    x = np.array([[1.0, 1.0], [0.0, 1.5], [0.5, 0.5]])
    assert select(Cardinality(3, 1), x).tolist() == [1]


@pytest.mark.parametrize(
    ("size", "k", "sparsity", "expected"),
    [
        (100, 5, 5, (1 + np.sqrt(5)) / 2),  # rho = 1: the golden ratio
        (10, 10, 3, 1.0),  # everything is kept
        (100, 50, 1, np.sqrt(1 + (0.02 + np.sqrt(4.02 * 0.02)) / 2)),  # rho = 1 / 50
        (10, 8, 6, np.sqrt(1 + (0.5 + np.sqrt(4.5 * 0.5)) / 2)),  # rho = 2 / 4: p - k < K
    ],
)
def test_expansion_factor_of_the_paper(size, k, sparsity, expected):
    assert math.sqrt(expansion(size, k, sparsity)) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(("size", "k", "sparsity"), [(12, 4, 2), (6, 3, 3), (9, 7, 4), (20, 5, 5)])
def test_the_expansion_factor_is_attained(size, k, sparsity):
    """Equality needs ``m = min(K, p - k)`` entries of x to be thresholded away.

    With ``b`` equal to ``t`` on ``k + m`` entries, the last ``m`` of which carry ``x = s``, the
    ratio of the squared errors is ``(k - K + m + m s**2) / (k - K + m + m (s - 1)**2)`` for
    t = 1 where the other entries of x agree with b; its supremum over s is the factor squared.
    """
    m = min(sparsity, size - k)
    others = k - sparsity + m
    s = np.linspace(1.0, 3.0, 200_001)
    ratios = (others + m * s**2) / (others + m * (s - 1.0) ** 2)
    best = float(s[np.argmax(ratios)])
    x = np.zeros(size)
    x[: sparsity - m] = 1.0  # agrees with b
    x[k : k + m] = best
    b = np.zeros(size)
    b[: k + m] = 1.0  # ties go to the lower index, so the entries of x beyond k are lost
    thresholded = np.where(np.isin(np.arange(size), top_k(b, k)), b, 0.0)
    ratio = np.linalg.norm(thresholded - x) / np.linalg.norm(b - x)
    assert ratio == pytest.approx(math.sqrt(expansion(size, k, sparsity)), rel=1e-8)


@pytest.mark.parametrize("tiny", [1e-170, 5e-324])
def test_entries_whose_squares_underflow_are_counted(tiny):
    x = np.array([0.0, tiny, 1.0])
    assert Cardinality(3, 2).count(x) == 2
    assert Cardinality(3, 1, free=np.array([2])).count(x) == 1
    assert Cardinality(3, 1, groups=np.array([0, 1, 1])).count(x) == 1
    assert Cardinality(3, 2).count(np.outer(x, [0.0, 1.0])) == 2
