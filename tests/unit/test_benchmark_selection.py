"""The comparison of ways to choose a model: its data, its rival, its page."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.selection.__main__ import page
from benchmarks.selection.draws import NONZEROS, Case, draw
from benchmarks.selection.methods import METHODS, _mixtures, lasso, pursuit, relaxed_lasso
from sparsemodel.sklearn import SparseLinearRegressionCV


def test_draws_have_the_ratio_and_the_risk_that_they_say() -> None:
    data = draw(Case(20000, 10, 0.5, 2.0), 0)
    signal = data.X @ data.coefficients
    assert np.count_nonzero(data.coefficients) == NONZEROS
    assert signal.var() / (data.y - signal).var() == pytest.approx(2.0, rel=0.05)
    assert np.corrcoef(data.X.T)[0, 1] == pytest.approx(0.5, abs=0.03)
    assert data.risk(np.zeros(10)) == pytest.approx(1.0)
    assert data.risk(data.coefficients) == 0.0
    assert data.exact(3.0 * data.coefficients)
    assert not draw(Case(30, 10, 0.0, 0.0), 0).coefficients.any()


def test_the_relaxed_lasso_lies_between_least_squares_and_the_lasso() -> None:
    data = draw(Case(50, 8, 0.3, 4.0), 1)
    grid, _, centre = _mixtures(data.X, data.y, np.array([0.1]))
    support = np.flatnonzero(grid[0, 10])
    Z = data.X - centre
    least = np.linalg.lstsq(Z[:, support], data.y - data.y.mean(), rcond=None)[0]
    np.testing.assert_allclose(grid[0, 0, support], least)
    np.testing.assert_allclose(grid[0, 5], (grid[0, 0] + grid[0, 10]) / 2.0)
    for method in (lasso, pursuit, relaxed_lasso):
        assert data.risk(method(data.X, data.y)) < 0.6


def test_what_is_shared_changes_no_choice() -> None:
    data = draw(Case(20, 5, 0.0, 1.0), 0)
    for name, options in (
        ("subset + ridge", {}),
        ("subset", {"ridges": 1e-3}),
        ("one standard error", {"one_standard_error": True}),
    ):
        alone = SparseLinearRegressionCV(**options).fit(data.X, data.y).coef_
        np.testing.assert_array_equal(METHODS[name](data.X, data.y), alone)


def test_the_page_shows_every_method_and_says_who_was_best() -> None:
    case, noise = Case(60, 120, 0.7, 1.0), Case(60, 120, 0.0, 0.0)
    cases = [case._replace(snr=snr) for snr in (0.25, 1.0, 6.0)]
    rows = {name: [(0.5 + 0.01 * i, i, i == 1)] for i, name in enumerate(METHODS)}
    text = page({**dict.fromkeys(cases, rows), noise: rows}, 1)
    first, second = list(METHODS)[:2]
    assert f"the smallest risk has {first} (0.500), then {second} (0.510)" in text
    assert f"most supports are found by {second} (1)" in text
    assert text.count("| 60 x 120 |") == 2 * 3 + 1
