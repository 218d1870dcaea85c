"""Labels of pandas: what is labelled in another order is never taken by position."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sparsemodel as sm

_RNG = np.random.default_rng(3)
NAMES = ["age", "bmi", "dose", "race"]
DF = pd.DataFrame(_RNG.standard_normal((30, 4)), columns=NAMES)
Y = pd.Series(DF.to_numpy() @ [2.0, 0.0, -1.0, 0.3] + 0.1 * _RNG.standard_normal(30))


def _solved(frame: Any, target: Any, *limits: Any, w: Any = None, **options: Any) -> Any:
    w = sm.Variable(4) if w is None else w
    loss = sm.squared_loss(sm.as_design(frame) @ w, target, **options)
    return sm.Problem(sm.minimize(loss), sm.card(w) <= 2, *limits).solve()


def _named() -> sm.Variable:
    return sm.Variable(4, name="w", names=NAMES)


def test_rows_with_equal_labels_go_together() -> None:
    days = pd.Index(pd.date_range("2020-01-01", periods=30))
    expected = _solved(DF.to_numpy(), Y.to_numpy()).value
    assert _solved(DF.set_index(days), Y.set_axis(days)).value == pytest.approx(expected)
    kept = Y.index[Y.median() < Y]
    assert _solved(DF.loc[kept], Y.loc[kept]).value >= 0.0


@pytest.mark.parametrize("frame", [DF, DF.set_axis(range(5, 35))])
def test_rows_numbered_from_zero_go_by_position(frame: Any) -> None:
    days = pd.date_range("2020-01-01", periods=30)
    expected = _solved(DF.to_numpy(), Y.to_numpy()).value
    other = Y.set_axis(days) if frame is DF else Y
    assert _solved(frame, other).value == pytest.approx(expected)


@pytest.mark.parametrize(
    ("declare", "what"),
    [
        (lambda: _solved(DF, Y.sort_values()), "the target: row 0 is labelled"),
        (lambda: _solved(DF, Y, weights=Y.abs()[::-1]), "the weights: row 0 is labelled '29'"),
        (lambda: _solved(DF.drop(index=3), Y.drop(index=7)), "row 3 is labelled '3', and '4'"),
        (lambda: sm.as_design(DF) @ sm.Variable(4) + Y[::-1], "another order"),
        (lambda: sm.as_design(DF) @ sm.Variable(4) - Y[::-1], "another order"),
        (lambda: Y[::-1] + sm.as_design(DF) @ sm.Variable(4), "another order"),
        (lambda: sm.as_design(DF) @ sm.Variable(4) + DF["age"][::-1] * sm.Variable(), "row 0"),
        (lambda: sm.squared_loss(DF, Y[::-1]), "y.loc\\[df.index\\]"),
        (lambda: sm.squared_loss(sm.encode(DF)[0] @ sm.Variable(4), Y[::-1]), "y.to_numpy()"),
    ],
)
def test_rows_in_another_order_are_refused(declare: Callable[[], Any], what: str) -> None:
    with pytest.raises(sm.DataError, match=what):
        declare()


@pytest.mark.parametrize(
    "use",
    [
        lambda w, s: w <= s,
        lambda w, s: s >= w,
        lambda w, s: sm.ridge(w, s),
        lambda w, s: sm.card(w, groups=s),
        lambda w, s: sm.semicontinuous(w, s),
        lambda w, s: sm.chosen(w) @ s,
        lambda w, s: w @ s,
        lambda w, s: s * w,
        lambda w, s: sm.card(w[1:], groups=s[:-1]),
        lambda w, s: setattr(w, "value", s),
    ],
)
def test_numbers_for_entries_keep_to_the_names(use: Callable[[Any, Any], Any]) -> None:
    numbers = pd.Series([1.0, 2.0, 3.0, 4.0], index=NAMES)
    with pytest.raises(sm.DataError, match=r"another order: .*list\(w\.names\)"):
        use(_named(), numbers[::-1])
    use(_named(), numbers[::-1].to_numpy())
    use(_named(), numbers[::-1].reset_index(drop=True))
    use(_named(), numbers)


def test_a_series_on_the_left_is_a_bound_and_a_column() -> None:
    w, top = _named(), pd.Series([0.5, 1.0, 1.0, 1.0], index=NAMES)
    found = _solved(DF, Y, top >= w, w=w)
    assert found.value == pytest.approx(_solved(DF, Y, w <= top, w=w).value)
    assert w.value[0] == pytest.approx(0.5)
    a, v = sm.Variable(), sm.Variable(3)
    rest = sm.as_design(DF[NAMES[1:]])
    goal = sm.minimize(sm.squared_loss(DF["age"] * a + rest @ v, Y))
    apart = sm.Problem(goal, sm.card(v) <= 1).solve()
    assert apart.value == pytest.approx(_solved(DF, Y).value)


def test_columns_in_another_order_are_refused() -> None:
    with pytest.raises(sm.DataError, match=r"'race' stands at place 0, .* has 'age'"):
        sm.as_design(DF[NAMES[::-1]]) @ _named()
    w = sm.Variable(4)
    goal = sm.minimize(sm.squared_loss(sm.as_design(DF) @ w, Y))
    with pytest.raises(sm.DataError, match="another order"):
        goal + sm.squared_loss(sm.as_design(DF[NAMES[::-1]]) @ w, Y)
    w = _named()
    with pytest.raises(sm.DataError, match="another order"):
        sm.Problem(sm.minimize(sm.squared_loss(DF[NAMES[::-1]], Y)), sm.card(w) <= 1)
    data = sm.Parameter((30, 4), value=DF)
    problem = sm.Problem(sm.minimize(sm.squared_loss(data @ w, Y)), sm.card(w) <= 1)
    problem.solve()
    data.value = DF[NAMES[::-1]]
    with pytest.raises(sm.DataError, match="another order"):
        problem.solve()
    some = ["age", "dose"]
    part = sm.minimize(sm.squared_loss(sm.as_design(DF[some]) @ w[some], Y))
    assert sm.Problem(part, sm.card(w[some]) <= 1).solve().support == ["age"]


def test_entries_named_in_another_order_meet_no_array_by_position() -> None:
    w, turned = _named(), ["dose", "age"]
    for use in (
        lambda: DF[turned].to_numpy() @ w[turned],
        lambda: np.array([1.0, 2.0]) @ w[turned],
        lambda: w[turned] <= np.array([1.0, 2.0]),
        lambda: np.array([1.0, 2.0]) * w[turned],
        lambda: sm.card(w[turned], groups=[0, 1]),
    ):
        with pytest.raises(sm.ModelError, match="Name them in the order of w"):
            use()
    with pytest.raises(sm.DataError, match="another order"):
        sm.as_design(DF[turned]) @ w[turned]
    limits = [sm.card(w[turned]) <= 1, w[turned] <= 1.0]
    assert len(limits) == 2


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (lambda w: w.age, "write w['age']"),
        (lambda w: w["age":"dose"], "list(df.loc[:, 'age':'dose'])"),
        (lambda w: sm.card(w, groups={"age": 0}), "[labels[name] for name in w.names]"),
        (lambda w: pd.Series(np.ones(4)) @ w, "s.to_numpy() @ w"),
        (lambda w: pd.Series(np.ones(4)) @ sm.chosen(w), "s.to_numpy() @ chosen(w)"),
        (lambda w: DF @ w, "sm.as_design(df) @ w"),
        (lambda w: sm.card(w[:2]) == 1, "sm.card(w[part]) >= k"),
    ],
)
def test_habits_of_pandas_are_answered(write: Callable[[Any], Any], words: str) -> None:
    w = _named()
    with pytest.raises((sm.SparseModelError, AttributeError)) as error:
        write(w)
    assert words in str(error.value)
