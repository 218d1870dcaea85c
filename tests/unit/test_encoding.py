"""Data frames as they are: categories, missing values, names, and new rows in the same way."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sparsemodel as sm
from sparsemodel.cli import main

RNG = np.random.default_rng(3)
N = 60
FRAME = pd.DataFrame(
    {
        "age": RNG.integers(1, 90, N),
        "colour": RNG.choice(["red", "green", "blue"], N),
        "smoker": RNG.random(N) < 0.5,
        "size": pd.Categorical(RNG.choice(["S", "M", "L"], N), ["S", "M", "L"], ordered=True),
        "height": RNG.standard_normal(N),
    }
)
PRICE = 0.1 * FRAME["age"] + 3.0 * (FRAME["colour"] == "red") + 0.2 * RNG.standard_normal(N)


def test_categories_are_dummies_that_count_once() -> None:
    A, features = sm.encode(FRAME)
    expected = ("age", "colour[green]", "colour[red]", "smoker", "size[M]", "size[L]", "height")
    assert A.names == expected
    assert features == ("age", "colour", "colour", "smoker", "size", "size", "height")
    np.testing.assert_array_equal(A.array[:, 2], FRAME["colour"] == "red")
    np.testing.assert_array_equal(A.array[:, 5], FRAME["size"] == "L")
    np.testing.assert_array_equal(A.array[:, 3], FRAME["smoker"])
    w, c = sm.Variable(7, name="w"), sm.Variable(name="c")
    goal = sm.minimize(sm.squared_loss(A @ w + c, PRICE) + sm.ridge(w, 1e-3))
    problem = sm.Problem(goal, sm.card(w, groups=features) <= 2)
    solution = problem.solve()
    assert set(solution.support) == {"age", "colour[green]", "colour[red]"}
    assert "2 of 5 nonzero" in str(solution)
    mixed = FRAME.iloc[::-1][["height", "size", "smoker", "colour", "age"]].assign(more=1.0)
    np.testing.assert_allclose(problem.predict(mixed), (A.array @ w.value + c.value)[::-1])
    np.testing.assert_allclose(problem.predict(A.array[:2]), problem.predict(FRAME[:2]))
    with pytest.raises(sm.DataError, match=r"'violet', which is none of the categories"):
        problem.predict(FRAME.assign(colour="violet"))
    with pytest.raises(sm.DataError, match=r"'colour' held categories before"):
        problem.predict(FRAME.assign(colour=1.0))


def test_entries_are_addressed_by_name() -> None:
    A, _ = sm.encode(FRAME)
    w = sm.Variable(7, name="w")
    with pytest.raises(sm.ModelError, match=r"have no names: write names=df.columns"):
        w["age"]
    goal = sm.minimize(sm.squared_loss(A @ w, PRICE) + sm.ridge(w, 1e-3))
    assert w["age"].rows.tolist() == [0]
    assert w["colour"].rows.tolist() == [1, 2]
    assert w[["height", "colour[red]"]].rows.tolist() == [2, 6]
    with pytest.raises(sm.ModelError, match=r"no entry named 'hight'; is 'height' meant\?"):
        w[["hight"]]
    sm.Problem(goal, sm.card(w[["height", "smoker"]]) <= 0, w["age"] >= 0.0).solve()
    assert w.value[3] == w.value[6] == 0.0
    assert np.count_nonzero(w.value) == 5


@pytest.mark.parametrize("dtype", ["nullable", "plain"])
def test_missing_values_are_refused_or_filled(dtype: str) -> None:
    frame = pd.DataFrame({"a": [1.0, None, 4.0, 4.0], "b": ["x", "y", None, "y"]})
    if dtype == "nullable":
        frame["a"] = frame["a"].astype("Int64")
        frame["b"] = frame["b"].astype("category")
    with pytest.raises(sm.DataError, match=r"'a': 1 value\(s\) are missing, the first in row 1"):
        sm.encode(frame)
    A, _ = sm.encode(frame, missing="mean")
    np.testing.assert_array_equal(A.array, [[1, 0], [3, 1], [4, 1], [4, 1]])
    with pytest.raises(sm.DataError, match=r"missing must be 'refuse' or 'mean'"):
        sm.encode(frame, missing="drop")  # type: ignore[arg-type]
    w = sm.Variable(2, name="w")
    goal = sm.minimize(sm.squared_loss(A @ w, [1.0, 2.0, 3.0, 3.0]) + sm.ridge(w, 0.1))
    solution = sm.Problem(goal, sm.card(w) <= 2).solve()
    new = pd.DataFrame({"a": [None], "b": [None]}, dtype=object)
    np.testing.assert_allclose(solution.predict(new), [3.0 * w.value[0] + w.value[1]])


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (pd.to_datetime(["2020-01-01"] * N), "neither numbers nor text"),
        (np.array(["2020-01-01"] * N, dtype="datetime64[ns]"), "neither numbers nor text"),
        (np.ones(N, dtype="timedelta64[ns]"), "neither numbers nor text"),
        (pd.period_range("2019", periods=N, freq="Y"), "neither numbers nor text"),
        (pd.interval_range(0, N), "neither numbers nor text"),
        ([f"name {i}" for i in range(N)], "hardly categories"),
        ([(1, 2)] * N, "holds tuple"),
    ],
)
def test_columns_that_mean_nothing_are_named(column: Any, said: str) -> None:
    with pytest.raises((sm.DataError, sm.DataTypeError), match=f"'odd'.*{said}"):
        sm.encode(FRAME.assign(odd=column))
    with pytest.raises(sm.DataTypeError, match=r"takes a DataFrame, not ndarray"):
        sm.encode(np.eye(3))


@pytest.mark.parametrize("make", [pd.date_range, pd.period_range])
def test_dates_are_not_sent_to_what_refuses_them_as_well(make: Any) -> None:
    frame = pd.DataFrame({"a": np.ones(3), "odd": make("2019", periods=3)})
    with pytest.raises(sm.DataTypeError, match=r"'odd' of .*make numbers of it") as raised:
        sm.as_design(frame)
    assert "encode" not in str(raised.value)


def test_a_constant_category_adds_nothing() -> None:
    A, features = sm.encode(pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "x"]}))
    assert (A.names, features) == (("a",), ("a",))


# ---- the command line ----------------------------------------------------------------------------


def test_the_command_line_predicts_as_the_model_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, model, new = tmp_path / "d.csv", str(tmp_path / "m.json"), tmp_path / "new.csv"
    FRAME.assign(price=PRICE).to_csv(data, index=False)
    line = ["solve", str(data), "--target", "price", "--k", "2", "--no-certificate"]
    assert main([*line, "--model", model, "--missing", "mean"]) == 0
    assert "2 of 5 nonzero" in capsys.readouterr().out
    holes = FRAME[["colour", "age"]].astype(object)
    holes.loc[0, "age"] = holes.loc[1, "colour"] = None
    holes.to_csv(new, index=False)
    assert main(["predict", model, str(new)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "prediction"
    body = json.loads(Path(model).read_text(encoding="utf-8"))
    by_name = dict(zip(["age", "colour[green]", "colour[red]"], body["coefficients"], strict=True))
    filled = FRAME.copy().astype({"age": float})
    filled.loc[0, "age"] = FRAME["age"].mean()
    filled.loc[1, "colour"] = FRAME["colour"].mode()[0]
    expected = body["constant"] + by_name["age"] * filled["age"]
    for level in ("green", "red"):
        expected += by_name[f"colour[{level}]"] * (filled["colour"] == level)
    np.testing.assert_allclose([float(v) for v in shown[1:]], expected, rtol=1e-12)


def test_text_targets_are_classes_without_a_loss(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, model, out = tmp_path / "d.csv", str(tmp_path / "m.json"), tmp_path / "p.csv"
    for bounds, loss, names in (
        ([5.0], "logistic", ["cheap", "dear"]),
        ([3.0, 7.0], "multinomial", ["cheap", "dear", "fair"]),
    ):
        kinds = np.array(["cheap", "dear", "fair"])[np.digitize(PRICE, bounds)]
        FRAME.assign(kind=kinds).to_csv(data, index=False)
        line = ["solve", str(data), "--target", "kind", "--k", "2", "--no-certificate"]
        assert main([*line, "--model", model, "--overwrite"]) == 0
        assert f"loss                    {loss}" in capsys.readouterr().out
        assert main(["predict", model, str(data), "--output", str(out), "--overwrite"]) == 0
        found = pd.read_csv(out)
        chances = found[[f"P({name})" for name in names]].to_numpy()
        np.testing.assert_allclose(chances.sum(axis=1), 1.0)
        assert found["prediction"].tolist() == np.array(names)[chances.argmax(axis=1)].tolist()
        assert np.mean(found["prediction"] == kinds) > 0.8


def test_columns_of_truth_values_and_files_without_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, model = tmp_path / "d.csv", str(tmp_path / "m.json")
    rows = "\n".join(f"{i},{i * i % 7},{2 * i + 1}" for i in range(12))
    data.write_text(rows + "\n", encoding="utf-8")
    line = ["solve", str(data), "--target", "-1", "--ridge", "0", "--no-certificate"]
    assert main([*line, "--k", "1", "--model", model]) == 0
    assert main(["predict", model, str(data), "--drop", "3"]) == 0
    shown = capsys.readouterr().out.splitlines()[-12:]
    np.testing.assert_allclose([float(v) for v in shown], 2.0 * np.arange(12) + 1.0, atol=1e-8)
    assert main(["predict", model, str(data)]) == 3
    assert "has 3 columns of features, and the model was made from 2" in capsys.readouterr().err
    assert main([*line, "--k", "0", "--model", model, "--overwrite"]) == 0
    assert main(["predict", model, str(data), "--drop", "3"]) == 0
    assert len(set(capsys.readouterr().out.splitlines()[-12:])) == 1
    data.write_text("a,b,y\n" + "\n".join(f"{i % 2 == 0},{i},{i}" for i in range(9)), "utf-8")
    assert main(["solve", str(data), "--target", "y", "--k", "2", "--no-certificate"]) == 0
    assert "of 2 nonzero" in capsys.readouterr().out


@pytest.mark.parametrize("body", ["", "[]", '{"format": "other"}', '{"format": {}}', "\x00"])
def test_other_files_are_no_models(
    body: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "m.json"
    model.write_text(body, encoding="utf-8")
    assert main(["predict", str(model), str(model)]) == 3
    assert "is not a model of" in capsys.readouterr().err


def test_frames_of_polars_and_tables_of_arrow() -> None:
    arrow = pytest.importorskip("pyarrow")
    table = arrow.Table.from_pandas(FRAME)
    A, features = sm.encode(FRAME)
    same, alike = sm.encode(table)
    np.testing.assert_array_equal(same.array, A.array)
    assert (same.names, alike) == (A.names, features)
    numbers = sm.as_design(table.select(["age", "smoker"]))
    assert numbers.names == ("age", "smoker")
    with pytest.raises(sm.DataTypeError, match=r"not numeric: 'colour', 'size'"):
        sm.as_design(table)


def test_polars() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.from_pandas(FRAME.assign(size=FRAME["size"].astype(str)))
    sizes = frame["size"].cast(polars.Enum(["S", "M", "L"]))
    A, features = sm.encode(frame.with_columns(sizes))
    expected, known = sm.encode(FRAME)
    np.testing.assert_array_equal(A.array, expected.array)
    assert (A.names, features) == (expected.names, known)
    with pytest.raises(sm.DataTypeError, match=r"not numeric: 'colour', 'size'"):
        sm.as_design(frame)
    gap = frame.select(polars.when(polars.col("age") > 80).then(None).otherwise(1.0).alias("one"))
    with pytest.raises(sm.DataError, match=r"column 'one': \d+ value\(s\) are missing"):
        sm.as_design(gap)
    with pytest.raises(sm.DataTypeError, match=r"df.collect\(\)"):
        sm.as_design(frame.lazy())


def test_classes_of_truth_values_are_truth_values() -> None:
    w = sm.Variable(2)
    design = sm.as_design(FRAME[["age", "height"]])
    goal = sm.minimize(sm.logistic_loss(design @ w, FRAME["smoker"]) + sm.ridge(w, 1e-2))
    found = sm.Problem(goal, sm.card(w) <= 1).solve()
    assert found.predict(FRAME).dtype == bool
    assert found.summary().positive == "True"


def test_a_path_writes_its_model_and_slips_are_answered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = np.where(PRICE.median() < PRICE, "dear", "cheap")
    FRAME.assign(kind=text).to_csv("t.csv", index=False)
    assert main(["path", "t.csv", "--target", "kind", "--ks", "1:9:2", "--model", "m.json"]) == 0
    capsys.readouterr()
    assert main(["predict", "m.json", "t.csv"]) == 0
    rows = capsys.readouterr().out.splitlines()[1:]
    assert np.mean([row.split(",")[0] == kind for row, kind in zip(rows, text, strict=True)]) > 0.9
    FRAME.assign(height=[f"{h:.3f}".replace(".", ",") for h in FRAME["height"]]).to_csv(
        "c.csv", index=False, sep=";"
    )
    FRAME.assign(age=[f"2020-01-{1 + j % 30:02}" for j in range(N)]).to_csv("d.csv", index=False)
    for line, words in (
        (["solve", "t.csv", "--target", "kind", "--k", "1", "--always", "agee"], "mean 'age'?"),
        (["sovle", "t.csv"], "did you mean solve?"),
        (["explain", "t.csv", "--model", "m.json"], "an option of solve and path"),
        (["solve", "c.csv", "--target", "age", "--k", "1"], "decimal comma"),
        (["solve", "d.csv", "--target", "height", "--k", "1"], "look like dates"),
        (["solve", "t.csv.gz", "--target", "age", "--k", "1"], "gzip -dc t.csv.gz"),
        (["solve", "t.csv.xz", "--target", "age", "--k", "1"], "`xz -dc t.csv.xz"),
    ):
        assert main(line) != 0
        assert words in capsys.readouterr().err


def test_formulas() -> None:
    pytest.importorskip("formulaic")
    A, features = sm.encode(FRAME, formula="price ~ age * colour + height")
    names = ("age", "colour[T.green]", "colour[T.red]", "height")
    assert A.names == (*names, "age:colour[T.green]", "age:colour[T.red]")
    assert features == ("age", "colour", "colour", "height", "age:colour", "age:colour")
    green, red = (FRAME["colour"] == kind for kind in ("green", "red"))
    columns = [FRAME["age"], green, red, FRAME["height"], FRAME["age"] * green, FRAME["age"] * red]
    expected = np.column_stack(columns)
    np.testing.assert_array_equal(A.array, expected)
    w, c = sm.Variable(6, name="w"), sm.Variable(name="c")
    goal = sm.minimize(sm.squared_loss(A @ w + c, PRICE) + sm.ridge(w, 1e-3))
    problem = sm.Problem(goal, sm.card(w, groups=features) <= 2)
    solution = pickle.loads(pickle.dumps(problem.solve()))
    assert set(solution.support) == {"age", "colour[T.green]", "colour[T.red]"}
    again = FRAME[["colour", "height", "age"]].iloc[::-1]
    np.testing.assert_allclose(solution.predict(again), (expected @ w.value + c.value)[::-1])
    with pytest.raises(sm.DataError, match="categories that are not known"):
        solution.predict(FRAME.assign(colour="violet"))
    with pytest.raises(sm.DataError, match="lack the column 'colour'"):
        solution.predict(FRAME[["age", "height"]])
    gap = FRAME.assign(height=FRAME["height"].where(FRAME["height"] > 0))
    for wrong, formula, words in (
        (gap, "height", "Drop such rows"),
        (FRAME, "age + weight", "weight"),
        (FRAME, "1", "no term but the constant"),
        (FRAME, "age | height", "several parts"),
        (FRAME, "age +", "misplaced"),
    ):
        with pytest.raises(sm.DataError, match=words):
            sm.encode(wrong, formula=formula)
    with pytest.raises(sm.DataError, match="fills no missing values"):
        sm.encode(FRAME, formula="age", missing="mean")
    with pytest.raises(sm.DataTypeError, match="formula="):
        sm.squared_loss("price ~ age", PRICE)


def test_a_formula_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "formulaic", None)
    with pytest.raises(sm.MissingDependencyError, match="pip install formulaic"):
        sm.encode(FRAME, formula="age")
