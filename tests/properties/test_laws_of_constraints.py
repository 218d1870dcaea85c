"""Laws of problems whose constraints link units; hundreds of them are run as a stress test."""

from __future__ import annotations

import numpy as np
import pytest

from tests.stress.courts.court import Court
from tests.stress.posing.linked import drawn, linked


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(8))
def test_no_answer_is_above_that_of_the_same_problem_declared_otherwise(seed: int) -> None:
    court = Court(np.random.default_rng(seed))
    linked(court)
    assert court.faults == []
    assert court.compared >= 1


@pytest.mark.parametrize("seed", range(20))
def test_random_problems_are_feasible_where_they_say_so(seed: int) -> None:
    posed = drawn(Court(np.random.default_rng(seed)))
    assert posed.keeps(posed.truth)
    order = np.random.default_rng(seed).permutation(posed.truth.size)
    other = posed.permuted(order)
    assert other.keeps(other.truth)
    assert other.objective(other.truth) == pytest.approx(posed.objective(posed.truth), rel=1e-12)
