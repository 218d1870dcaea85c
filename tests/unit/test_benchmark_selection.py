"""The comparison of ways to choose a model: its data, its rival, its page."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from benchmarks.selection.draws import NONZEROS, Case, draw
from benchmarks.selection.methods import METHODS, _mixtures, lasso, pursuit, relaxed_lasso
from benchmarks.selection.page import Results, Run, difference, page
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


def _results(apart: float) -> Results:
    """Return draws of two shapes in which the second method's risk is higher by ``apart``."""
    noises, out = np.random.default_rng(0).standard_normal((2, 4)), {}
    for n, noise in zip((60, 90), noises, strict=True):
        for correlation, snr in itertools.product((0.0, 0.9), (0.5, 2.0)):
            out[Case(n, 30, correlation, snr)] = [
                {
                    name: Run(0.5 + (apart + 0.1 * e) * i, i, i == 1, 1.0)
                    for i, name in enumerate(METHODS)
                }
                for e in noise
            ]
    return out


def test_differences_are_paired_and_shared_random_numbers_count_once() -> None:
    first, second = list(METHODS)[:2]
    mean, error = difference(_results(0.2), second, first)
    noises = 0.1 * np.random.default_rng(0).standard_normal((2, 4))
    assert mean == pytest.approx(0.2 + noises.mean())
    assert error == pytest.approx(np.sqrt(np.var(noises, axis=1, ddof=1).sum() / 4.0) / 2.0)
    single = {case: draws for case, draws in _results(0.2).items() if case.snr == 0.5}
    assert difference(single, second, first) == pytest.approx((mean, error))


def test_the_page_shows_every_method_and_says_who_was_best() -> None:
    noise = {case._replace(snr=0.0): draws for case, draws in _results(0.0).items()}
    machine = {"date": "2026-01-02", "versions": {"numpy": "9.9"}}
    text = page({**_results(0.2), **noise}, machine, METHODS)
    first, second, third = list(METHODS)[:3]
    assert f"- SNR 0.5: {first} has the smallest risk (0.500); {second} found" in text
    assert f"{second} found the most supports (16 of 16)" in text
    assert "on 2026-01-02, with numpy 9.9" in text
    assert "seeds 0 to 3" in text
    assert f"minus that of {first} on the same draws" in text
    assert "**+0." in text
    assert text.count("| 60 x 30 |") == 2 * 4 + 2
    assert f"not significantly worse are {second}, {third}" in page(
        {**_results(0.0), **noise}, machine, METHODS
    )
