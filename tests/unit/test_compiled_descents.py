"""Compiled descents end where those in NumPy do, and searches that forget what is known help."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.interfaces import Context
from sparsemodel.numerics import (
    Exchanges,
    ExchangeSearch,
    RegressionObjective,
    SupportBeam,
    found_elsewhere,
    minimise_on_support,
    quadratic_of,
)
from sparsemodel.numerics.along_k import descents
from sparsemodel.numerics.along_k.descents import descend_from, worthwhile
from sparsemodel.numerics.exchange.quadratics.abreast import NEGLIGIBLE, NOISES, descend_abreast
from sparsemodel_backends.exchange import Exchange


def posed(seed: int, n: int, p: int, k: int) -> tuple[Any, Any, np.ndarray, np.ndarray]:
    """Return the quadratic of noise beside an intercept, with a column of zeros and a copy."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((n, p)), rng.standard_normal(n)
    X[:, 3], X[:, 5] = 0.0, X[:, 4]
    w = sm.Variable(p)
    problem = sm.Problem(sm.minimize(sm.squared_loss(X @ w + sm.Variable(), y)), sm.card(w) <= k)
    return *quadratic_of(RegressionObjective(problem.form)), X, y


def descended(rows: Any, linear: np.ndarray, supports: np.ndarray) -> np.ndarray:
    guard = Exchanges(rows, linear).guard
    return descend_from(rows, linear, guard, supports, np.array([NEGLIGIBLE, NOISES * rows.noise]))


def test_descents_end_where_those_side_by_side_do() -> None:
    rows, linear, _X, _y = posed(0, 40, 300, 6)
    rng = np.random.default_rng(1)
    starts = np.array([rng.choice(np.arange(6, 300), 6, replace=False) for _ in range(20)])
    batch = Exchanges(rows, linear)
    batch.reset_all(starts)
    values, ends = descend_abreast(batch, lambda: False)
    fresh, linear, _X, _y = posed(0, 40, 300, 6)  # rows that are missing are computed on the way
    found = starts.astype(np.intp)
    explained = descended(fresh, linear, found)
    assert {tuple(sorted(one)) for one in found} == {tuple(sorted(one)) for one in ends}
    assert sorted(explained) == pytest.approx(sorted(values), rel=1e-9)


def test_places_are_filled_by_what_gains_most_and_dependent_columns_are_left_out() -> None:
    rows, linear, X, y = posed(2, 30, 60, 3)
    supports = np.array([[3, 4, 5], [-1, -1, -1], [7, -1, -1]], dtype=np.intp)
    values = descended(rows, linear, supports)
    for members, value in zip(supports, values, strict=True):
        assert 3 not in members
        assert not {4, 5} <= set(members)
        used = X[:, members] - X[:, members].mean(axis=0)
        left = y - y.mean()
        residual = left - used @ np.linalg.lstsq(used, left, rcond=None)[0]
        assert value == pytest.approx((left @ left - residual @ residual) / 30, rel=1e-9)
    rows, linear, _X, _y = posed(2, 3, 60, 5)  # centred: two columns explain all
    supports = np.full((1, 5), -1, dtype=np.intp)
    assert list(descended(rows, linear, supports)) == [0.0]


def test_searches_that_forget_the_supports_kept_lower_a_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((20, 150)), rng.standard_normal(20)
    w = sm.Variable(150)
    problem = sm.Problem(sm.minimize(sm.squared_loss(X @ w, y)), sm.card(w) <= 8)
    monkeypatch.setattr(descents, "_WORK", 0)
    left = []
    for scattered in (0, 300):
        rows, linear = quadratic_of(RegressionObjective(problem.form))
        beam = SupportBeam(rows, linear, 8, lambda: False, width=4, scattered=scattered)
        beam.search(1, range(9))
        left.append(np.linalg.lstsq(X[:, beam.best(8)], y, rcond=None)[1][0])
    assert left[1] < 0.6 * left[0]


def test_little_work_is_done_without_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, linear, _X, _y = posed(0, 40, 300, 6)
    assert not worthwhile(6, linear, rows)
    assert worthwhile(12, linear, rows)
    monkeypatch.setattr(descents, "_compiled", lambda: None)  # no Numba
    assert not worthwhile(12, linear, rows)


@pytest.mark.parametrize("varied", [True, False])
def test_supports_far_from_where_a_search_ends_are_looked_for(
    monkeypatch: pytest.MonkeyPatch, varied: bool
) -> None:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((20 if varied else 400, 150))
    w = sm.Variable(150)
    y = X[:, :8].sum(axis=1) * (not varied) + rng.standard_normal(len(X))
    problem = sm.Problem(sm.minimize(sm.squared_loss(X @ w, y)), sm.card(w) <= 8)
    monkeypatch.setattr(descents, "_WORK", 0)
    asked: list[bool] = []

    def elsewhere(*given: Any, **options: Any) -> bool:
        asked.append(found_elsewhere(*given, **options))
        return asked[-1]

    monkeypatch.setattr("sparsemodel_backends.exchange.found_elsewhere", elsewhere)
    Exchange(effort=0.5).solve(RegressionObjective(problem.form), Context(minimise_on_support))
    assert bool(asked) is varied
    rows, linear = quadratic_of(RegressionObjective(problem.form))
    search = ExchangeSearch(rows, linear, most=8)
    search.descend(100, lambda: False)
    before = search.gain
    assert found_elsewhere(search, lambda: False, width=24) is varied
    assert (search.gain > 1.001 * before) is varied
    monkeypatch.setattr(descents, "_compiled", lambda: None)
    assert not found_elsewhere(search, lambda: False, width=24)
