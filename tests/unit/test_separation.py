"""Errors about separable data name the columns, and one k without a solution leaves the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import sparsemodel as sm


def wards() -> tuple[Any, Any]:
    """Return patients of twelve wards, and outcomes that are all the same in the last."""
    rng = np.random.default_rng(3)
    n, names = 300, [f"w{i:02}" for i in range(12)]
    shares = [0.2, 0.15, 0.15, 0.1, 0.1, 0.1, 0.05, 0.05, 0.04, 0.03, 0.02, 0.01]
    ward = rng.choice(names, n, p=shares)
    df = pd.DataFrame({"age": rng.normal(50, 10, n), "ward": ward})
    y = (rng.random(n) < 1 / (1 + np.exp(-(df.age - 50) / 10))).to_numpy() * 1
    y[df.ward == "w11"] = 1
    return df, y


def test_a_rare_category_is_named() -> None:
    df, y = wards()
    A, features = sm.encode(df)
    alone = [w for w in sorted(set(df.ward)) if np.ptp(y[df.ward == w]) == 0]
    w, c, k = sm.Variable(len(features)), sm.Variable(name="c"), sm.Parameter(integer=True, value=2)
    loss = sm.logistic_loss(A @ w + c, y)
    problem = sm.Problem(sm.minimize(loss), sm.card(w) <= k)
    with pytest.raises(sm.SeparableDataError) as caught:
        problem.solve()
    for name in alone:
        assert f"ward[{name}]" in str(caught.value)
    assert "age" not in str(caught.value)
    assert "or leave" in str(caught.value)
    with pytest.warns(UserWarning, match=r"no solution.*ward\[w11\]"):
        path = problem.path(k, range(6))
    assert path.k[:2].tolist() == [0, 1]
    assert list(path.at(1).support) == ["age"]
    assert sorted([*path.k.tolist(), *path.refused]) == list(range(6))
    assert all(isinstance(error, sm.SeparableDataError) for error in path.refused.values())
    ridged = sm.Problem(sm.minimize(loss + sm.ridge(w, 1e-3)), sm.card(w) <= k).path(k, range(4))
    assert ridged.k.size == 4
    assert not ridged.refused


def test_columns_that_separate_together_are_named() -> None:
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.standard_normal((80, 6)), columns=list("abcdef"))
    y = (df.b - 2.0 * df.e > 0.3) * 1
    w, c = sm.Variable(6), sm.Variable(name="c")
    loss = sm.logistic_loss(sm.as_design(df) @ w + c, y)
    problem = sm.Problem(sm.minimize(loss), sm.card(w) <= 3)
    with pytest.raises(sm.SeparableDataError, match=r"The columns b, e do it together\."):
        problem.solve()


def test_a_column_that_only_zero_counts_have_is_named() -> None:
    rng = np.random.default_rng(1)
    df = pd.DataFrame(rng.standard_normal((60, 4)), columns=list("abcd"))
    df["rare"] = (np.arange(60) < 5) * 1.0
    y = rng.poisson(np.exp(0.5 * df.a + 1.0)).astype(float)
    y[:5] = 0.0
    w, c = sm.Variable(5), sm.Variable(name="c")
    problem = sm.Problem(sm.minimize(sm.poisson_loss(sm.as_design(df) @ w + c, y)), sm.card(w) <= 2)
    with pytest.raises(sm.UnboundedError, match=r"The column rare does it alone\..*leave it out"):
        problem.solve()


def test_where_every_k_is_refused_the_path_is() -> None:
    df, y = wards()
    w = sm.Variable(1)
    column = (df.ward == "w11").to_numpy()[:, None] * 1.0
    problem = sm.Problem(sm.minimize(sm.logistic_loss(column @ w, y)), sm.card(w) <= 1)
    with pytest.raises(sm.SeparableDataError, match="does it alone"):
        problem.path([1])
