"""What comes back is right: numbers of nonzeros, predictions for new rows, names of terms."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sparsemodel as sm

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"zone": RNG.choice(list("ABC"), 100), "x": RNG.standard_normal(100)})
EXPOSURE = RNG.uniform(0.1, 1.0, 100)
COUNTS = RNG.poisson(EXPOSURE * np.exp(0.5 * FRAME.x)) * 1.0
NEW = pd.DataFrame({"zone": ["B", "A"], "x": [0.1, 0.2]})


@pytest.mark.parametrize("limited", [True, False])
def test_nonzeros_are_counted_where_nothing_is_limited_from_above(limited: bool) -> None:
    A, b = RNG.standard_normal((20, 8)), RNG.standard_normal(20)
    w = sm.Variable(8, name="w")
    limits = [sm.card(w) >= 3] if limited else []
    solution = sm.Problem(sm.minimize(sm.squared_loss(A @ w, b)), limits).solve()
    assert (solution.chosen, solution.units) == (8, 8)
    assert "8 of 8 nonzero" in str(solution).splitlines()[0]
    assert str(solution).count("w[") == 8


def poisson() -> Any:
    A, features = sm.encode(FRAME)
    w, c = sm.Variable(len(features)), sm.Variable(name="c")
    loss = sm.poisson_loss(A @ w + c + np.log(EXPOSURE), COUNTS)
    problem = sm.Problem(sm.minimize(loss), sm.card(w, groups=features) <= 2)
    problem.solve()
    return problem, A, w, c


def test_new_rows_have_their_own_exposure() -> None:
    problem, A, w, c = poisson()
    u = (sm.encode(NEW, like=A)[0] @ w + c).value
    rates = np.array([0.5, 2.0])
    np.testing.assert_allclose(problem.predict(NEW, exposure=rates), rates * np.exp(u))
    np.testing.assert_allclose(problem.predict(NEW, offset=np.log(rates)), rates * np.exp(u))
    np.testing.assert_allclose(problem.predict(NEW, exposure=1.0), np.exp(u))
    np.testing.assert_allclose(problem.predict(NEW, "linear", offset=1.5), u + 1.5)
    np.testing.assert_allclose(problem.solution.predict(NEW, exposure=rates), rates * np.exp(u))
    # the fitted rows again
    mean = problem.predict(FRAME, exposure=EXPOSURE)
    assert mean.sum() == pytest.approx(COUNTS.sum(), rel=1e-5)
    for wrong, error, words in (
        ({}, sm.ModelError, r"write predict\(new, offset=\.\.\.\)"),
        ({"offset": [1.0, 2.0, 3.0]}, sm.DataError, "there are 2 new rows"),
        ({"exposure": [1.0, 0.0]}, sm.DataError, "exposure must be positive"),
        ({"exposure": 1.0, "offset": 1.0}, sm.ModelError, "give one of them"),
    ):
        with pytest.raises(error, match=words):
            problem.predict(NEW, **wrong)


def test_an_exposure_needs_a_log_link() -> None:
    w = sm.Variable(1)
    A = FRAME[["x"]].to_numpy()
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w + EXPOSURE, COUNTS)), sm.card(w) <= 1)
    problem.solve()
    np.testing.assert_allclose(problem.predict([[2.0]], offset=3.0), 2.0 * w.value + 3.0)
    with pytest.raises(sm.ModelError, match="squared_loss has another; write offset="):
        problem.predict([[2.0]], exposure=3.0)


def test_new_rows_are_encoded_as_the_first_were() -> None:
    for how in ({}, {"formula": "zone * x"}):
        A, features = sm.encode(FRAME, **how)
        again, same = sm.encode(FRAME.iloc[[5, 3]], like=A)
        assert same == features
        assert again.names == A.names
        np.testing.assert_array_equal(again.array, A.array[[5, 3]])
    with pytest.raises(sm.DataError, match="which is none of the categories"):
        sm.encode(pd.DataFrame({"zone": ["D"], "x": [0.0]}), like=sm.encode(FRAME)[0])
    with pytest.raises(sm.DataError, match="lacks the column 'zone'"):
        sm.encode(NEW[["x"]], like=sm.encode(FRAME)[0])
    with pytest.raises(sm.DataTypeError, match=r"like= takes the design that sm\.encode"):
        sm.encode(NEW, like=FRAME)  # type: ignore[arg-type]


def test_terms_of_formulas_have_names() -> None:
    rng = np.random.default_rng(0)
    df = pd.DataFrame({"a": rng.choice(list("xyz"), 80), "b": rng.standard_normal(80)})
    df["d"] = rng.standard_normal(80)
    A, terms = sm.encode(df, formula="(a + b + d) ** 2")
    w, c = sm.Variable(len(terms), name="w"), sm.Variable(name="c")
    y = df.b + (df.a == "y") * df.b + 0.3 * rng.standard_normal(80)
    goal = sm.minimize(sm.squared_loss(A @ w + c, y))
    names = list(dict.fromkeys(terms))
    pairs = [
        sm.chosen(w[[q]]) <= sm.chosen(w[[m]]) for q in names if ":" in q for m in q.split(":")
    ]
    limit = sm.card(w, groups=terms) <= 3
    solution = sm.Problem(goal, pairs, limit).solve()
    assert {"b", "a[T.y]:b", "a[T.y]"} <= set(solution.support)
    g = sm.chosen(w, groups=terms)
    by_groups = [g[q] <= g[m] for q in names if ":" in q for m in q.split(":")]
    again = sm.Problem(goal, by_groups, limit).solve()
    assert again.value == pytest.approx(solution.value)
    values = []
    for one in combinations(names, 3):  # all models of three terms that are hierarchies
        if all(m in one for q in one if ":" in q for m in q.split(":")):
            chosen = [j for j, term in enumerate(terms) if term in one]
            X = np.column_stack([A.array[:, chosen], np.ones(80)])
            r = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
            values.append(0.5 * np.mean(r**2))
    assert solution.value == pytest.approx(min(values))
    with pytest.raises(sm.ModelError, match="no group named 'a:e'; is"):
        g["a:e"]
    assert w["a:b"].as_affine().pieces[0].rows.tolist() == [
        j for j, term in enumerate(terms) if term == "a:b"
    ]
    with pytest.raises(sm.ModelError, match=r"no entry named 'a:e'; is 'a:[bd]' meant\?"):
        w["a:e"]


@pytest.mark.parametrize("formula", ["when + size", "when:size"])
def test_dates_in_formulas_are_named(formula: str) -> None:
    dates = pd.date_range("2021-01-01", periods=50, freq="h")
    df = pd.DataFrame({"when": dates, "size": np.arange(50.0)})
    with pytest.raises(sm.DataTypeError, match=r"column 'when' holds datetime64.*days since"):
        sm.encode(df, formula=formula)
