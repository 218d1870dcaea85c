"""Planning takes no longer than looking at the problem, and never chooses hours of work."""

from __future__ import annotations

import time

import numpy as np
import pytest

import sparsemodel as sm


def test_a_price_on_many_coefficients_is_planned_at_once(rng: np.random.Generator):
    p = 50_000
    A = np.ones((2, p))
    w = sm.Variable(p, name="w")
    loss = sm.squared_loss(A @ w, rng.standard_normal(2))
    problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.01) + 0.1 * sm.card(w)))
    began = time.process_time()
    words = problem.explain(full=True)
    assert time.process_time() - began < 3.0
    assert "exhaustive" in words  # among those that object, with the reason


@pytest.mark.parametrize("loss", [sm.squared_loss, sm.absolute_loss])
def test_enumeration_counts_every_size_where_units_have_a_price(loss, rng: np.random.Generator):
    w = sm.Variable(14, name="w")
    A, b = rng.standard_normal((30, 14)), rng.standard_normal(30)
    problem = sm.Problem(sm.minimize(loss(A @ w, b) + sm.ridge(w, 0.1) + 0.1 * sm.card(w)))
    assert all(stage.label != "exhaustive" for stage in problem.plan().stages)
