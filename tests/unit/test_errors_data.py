"""Unusable data: the error says what was found and where, and the arrays stay as they were."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import sparsemodel as sm

N, P = 12, 5


@pytest.fixture
def data(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return rng.standard_normal((N, P)), rng.standard_normal(N)


def solve(A: Any, b: Any, k: Any = 2, loss: Callable[..., Any] = sm.squared_loss) -> sm.Solution:
    w = sm.Variable(P, name="w")
    return sm.Problem(sm.minimize(loss(A, b) + sm.ridge(w, 0.1)), sm.card(w) <= k).solve()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    "store", [np.ascontiguousarray, np.asfortranarray, np.float32, sp.csr_array, pd.DataFrame]
)
def test_bad_entries_of_the_matrix_are_located(data: Any, bad: float, store: Any) -> None:
    A, b = data
    A[7, 3] = bad
    before = A.copy()
    with pytest.raises(sm.DataError, match="row 7, column 3"):
        solve(store(A), b)
    np.testing.assert_array_equal(A, before)


def test_a_column_of_weights_is_answered_by_what_to_write(data: Any) -> None:
    A, b = data
    w = sm.Variable(P)
    with pytest.raises(sm.DataError) as error:
        sm.squared_loss(A @ w, b, weights=np.ones((N, 1)))
    assert "Write `.ravel()` behind it" in str(error.value)
    assert str(error.value).count("weights of") == 1


def test_a_negative_weight_is_located(data: Any) -> None:
    A, b = data
    weights = np.ones(N)
    weights[[2, 5]] = -1.0, -3.0
    with pytest.raises(sm.DataError, match="entry 5 is -3"):
        sm.squared_loss(A, b, weights=weights)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_entries_of_target_and_weights_are_located(data: Any, bad: float) -> None:
    A, b = data
    wrong = b.copy()
    wrong[4] = bad
    with pytest.raises(sm.DataError, match=r"target of squared_loss.*index 4"):
        solve(A, wrong)
    with pytest.raises(sm.DataError, match=r"weights of squared_loss.*index 4"):
        sm.squared_loss(A, b, weights=np.abs(wrong))


def test_shapes_that_do_not_fit(data: Any) -> None:
    A, b = data
    w = sm.Variable(P, name="w")
    with pytest.raises(sm.DataError, match=r"12 rows and the target has 11"):
        sm.squared_loss(A @ w, b[:-1])
    with pytest.raises(sm.DataError, match=r"4 columns and w has 5 entries"):
        A[:, :4] @ w
    with pytest.raises(sm.DataError, match=r"did you mean A\.T"):
        A.T[:, :] @ sm.Variable(P, name="w")[:]
    with pytest.raises(sm.DataError, match="4 columns"):
        solve(A[:, :4], b)
    with pytest.raises(sm.DataError, match=r"two dimensions.*reshape"):
        sm.squared_loss(A[:, 0], b)
    with pytest.raises(sm.DataError, match="must be 1-dimensional or 2-dimensional"):
        sm.squared_loss(A, b[:, None, None])
    with pytest.raises(sm.DataError, match=r"shape \(12, 2\)"):
        sm.logistic_loss(A, np.column_stack([b, b]))
    with pytest.raises(sm.DataError, match="5 entries for 12 observations"):
        sm.squared_loss(A, b, weights=np.ones(5))
    with pytest.raises(sm.DataError, match="different lengths"):
        sm.squared_loss([[1.0, 2.0], [3.0]], [1.0, 2.0])
    with pytest.raises(sm.DataError, match="do not add up"):
        A @ w + A[:5] @ w
    with pytest.raises(sm.DataError, match="do not add up"):
        A @ w + np.ones(7)


@pytest.mark.parametrize("shape", [(0, P), (N, 0), (0, 0)])
def test_empty_data(shape: tuple[int, int]) -> None:
    with pytest.raises(sm.DataError, match="empty"):
        sm.squared_loss(np.empty(shape), np.empty(shape[0]))
    with pytest.raises(sm.DataError, match="empty"):
        sm.squared_loss(sp.csr_array(shape), np.empty(shape[0]))


def test_dtypes(data: Any) -> None:
    A, b = data
    with pytest.raises(sm.DataTypeError, match="complex"):
        sm.squared_loss(A + 1j, b)
    with pytest.raises(sm.DataTypeError, match="complex"):
        sm.squared_loss(A, b + 1j)
    with pytest.raises(sm.DataTypeError, match="dtype object"):
        sm.squared_loss(A.astype(object), b)
    with pytest.raises(sm.DataTypeError, match="dtype"):
        sm.squared_loss(A.astype(str), b)
    with pytest.raises(sm.DataTypeError, match="dtype object"):
        sm.squared_loss(A, np.array([None, *b[1:]], dtype=object))
    with pytest.raises(sm.DataTypeError, match="dtype datetime64"):
        sm.squared_loss(A, np.zeros(N, dtype="datetime64[s]"))
    with pytest.raises(sm.DataTypeError, match="masked"):
        sm.squared_loss(np.ma.masked_invalid(A), b)
    with pytest.raises(sm.DataTypeError, match="masked"):
        sm.squared_loss(A, np.ma.masked_invalid(b))
    frame = pd.DataFrame(A, columns=list("abcde"))
    frame["d"] = "text"
    with pytest.raises(sm.DataTypeError, match="'d'"):
        sm.squared_loss(frame, b)


def test_numbers_of_every_kind_are_understood(data: Any) -> None:
    A, b = data
    reference = solve(A, b).value
    for matrix in (A.astype(object).astype(float), A.tolist(), pd.DataFrame(A), sp.csc_array(A)):
        assert solve(matrix, b).value == pytest.approx(reference, rel=1e-12)
    for target in (list(b), pd.Series(b), tuple(b), b.astype(object)):
        assert solve(A, target).value == pytest.approx(reference, rel=1e-12)
    whole = np.round(3.0 * A)
    expected = solve(whole, b).value
    assert solve(whole.astype(np.int8), b).value == pytest.approx(expected, rel=1e-12)
    assert solve(A > 0, b).value == pytest.approx(solve((A > 0).astype(float), b).value, rel=1e-12)


def test_labels(data: Any) -> None:
    A, b = data
    y = np.where(b > 0.0, 1.0, -1.0)
    reference = solve(A, y, loss=sm.logistic_loss).value
    same = (
        (b > 0.0),
        (b > 0.0).astype(int),
        np.where(b > 0.0, "yes", "no"),
        np.where(b > 0.0, "yes", "no").astype(object),
        pd.Series(np.where(b > 0.0, "yes", "no")),
        pd.Series(np.where(b > 0.0, "yes", "no")).astype("category"),
    )
    for labels in same:
        assert solve(A, labels, loss=sm.logistic_loss).value == pytest.approx(reference, rel=1e-12)
    with pytest.raises(sm.DataError, match="found 3 different values"):
        solve(A, np.arange(N) % 3, loss=sm.logistic_loss)
    with pytest.raises(sm.DataError, match="two classes"):
        solve(A, np.full(N, 2.0), loss=sm.hinge_loss)
    with pytest.raises(sm.DataError, match="two classes"):
        solve(A, np.array(["a", "b", "c"] * 4), loss=sm.logistic_loss)
    with pytest.raises(sm.DataError, match=r"counts.*index 3"):
        solve(A, np.where(np.arange(N) == 3, -1.0, 2.0), loss=sm.poisson_loss)


def test_weights(data: Any) -> None:
    A, b = data
    with pytest.raises(sm.DataError, match="negative; entry 2"):
        sm.squared_loss(A, b, weights=np.where(np.arange(N) == 2, -1.0, 1.0))
    with pytest.raises(sm.DataError, match="all zero"):
        sm.squared_loss(A, b, weights=np.zeros(N))


def test_overflow_is_named() -> None:
    A = np.full((4, 2), 1e200)
    A[0, 0] = 2e200
    w = sm.Variable(2, name="w")
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, np.full(4, 1e200))), sm.card(w) <= 1)
    with pytest.raises(sm.DataError, match="too large"):
        problem.solve()


@pytest.mark.parametrize(
    ("size", "message"), [(1e160, "squares overflow"), (1e-170, "squares vanish")]
)
@pytest.mark.parametrize("name", ["squared_loss", "logistic_loss", "poisson_loss"])
def test_entries_whose_squares_are_no_doubles_are_named(
    rng: np.random.Generator, size: float, message: str, name: str
) -> None:
    A = rng.standard_normal((30, 4))
    w = sm.Variable(4, name="w")
    loss = getattr(sm, name)((size * A) @ w, 1.0 * (A[:, 0] + rng.standard_normal(30) > 0.0))
    with pytest.raises(sm.DataError, match=message):
        sm.Problem(sm.minimize(loss), sm.card(w) <= 2).solve()


def test_a_target_whose_square_overflows_is_named(rng: np.random.Generator) -> None:
    A = rng.standard_normal((30, 4))
    w = sm.Variable(4, name="w")
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, 1e160 * A[:, 1])), sm.card(w) <= 1)
    with pytest.raises(sm.DataError, match="Divide the target"):
        problem.solve()


def test_separable_data_without_ridge(rng: np.random.Generator) -> None:
    A = rng.standard_normal((30, 4))
    y = A[:, 1] > 0.0
    w = sm.Variable(4, name="w")
    problem = sm.Problem(sm.minimize(sm.logistic_loss(A @ w, y)), sm.card(w) <= 1)
    with pytest.raises(sm.SeparableDataError, match=r"sm\.ridge"):
        problem.solve()
    ridged = sm.Problem(
        sm.minimize(sm.logistic_loss(A @ w, y) + sm.ridge(w, 0.01)), sm.card(w) <= 1
    )
    assert ridged.solve().support.tolist() == [1]


def test_what_becomes_nan_after_the_declaration_is_named() -> None:
    for what in ("target", "offset"):
        a, given = np.eye(4)[:, :2], {"target": np.arange(4.0), "offset": np.ones(4)}
        w = sm.Variable(2, name="w")
        loss = sm.squared_loss(a @ w + given["offset"], given["target"])
        problem = sm.Problem(sm.minimize(loss), sm.card(w) <= 1)
        given[what][0] = np.nan
        with pytest.raises(sm.DataError, match=f"The {what} of squared_loss holds NaN"):
            problem.solve()


def test_a_missing_value_of_a_data_frame_is_named_by_its_column() -> None:
    rows = [[1.0, 2.0], [0.5, np.nan], [3.0, 1.0]]
    frame = pd.DataFrame(rows, columns=["age", "size"])
    w, c, v = sm.Variable(2), sm.Variable(), sm.Variable(2)
    fits = {
        r"1\.": sm.as_design(rows) @ w,
        r"1 \('size'\)": sm.as_design(frame) @ w + c,
        r"3 \('size'\)": np.ones((3, 2)) @ v + sm.as_design(frame) @ w,
    }
    for column, fit in fits.items():
        problem = sm.Problem(sm.minimize(sm.squared_loss(fit, np.ones(3))), sm.card(w) <= 1)
        with pytest.raises(sm.DataError, match=f"the first at row 1, column {column}"):
            problem.solve()


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_callers_arrays_are_left_alone(data: Any, order: Any) -> None:
    A, b = (np.array(part, order=order) for part in data)
    weights, copies = np.full(N, 2.0), [A.copy(), b.copy()]
    for part in (A, b, weights):
        part.flags.writeable = False
    w, c = sm.Variable(P, name="w"), sm.Variable(name="c")
    loss = sm.squared_loss(A @ w + c + b, b, weights=weights)
    problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 2)
    problem.solve()
    problem.certify()
    np.testing.assert_array_equal(A, copies[0])
    np.testing.assert_array_equal(b, copies[1])


@pytest.mark.parametrize("name", ["squared_loss", "huber_loss", "absolute_loss", "poisson_loss"])
def test_truth_values_are_the_numbers_0_and_1(rng: np.random.Generator, name: str) -> None:
    A = rng.standard_normal((30, 4))
    y = A[:, 0] + rng.standard_normal(30) > 0.0
    values = []
    for target in (y, y.tolist(), y.astype(float)):
        w = sm.Variable(4, name="w")
        loss = getattr(sm, name)(A @ w, target)
        values.append(sm.Problem(sm.minimize(loss), sm.card(w) <= 2).solve().value)
    assert values[0] == values[1] == values[2]
    with pytest.raises(sm.DataError, match="== 'yes'"):
        getattr(sm, name)(A @ w, np.where(y, "yes", "no"))
