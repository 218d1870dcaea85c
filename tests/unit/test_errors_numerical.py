"""What floating point cannot do is an error of the library's; what users raise is theirs."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.interfaces.numeric import least_squares
from sparsemodel.modelling.results.failures import computation

RNG = np.random.default_rng(0)


def _problem(X: Any, y: Any, *, lam: float = 0.1, k: int = 2) -> sm.Problem:
    w = sm.Variable(X.shape[1])
    return sm.Problem(
        sm.minimize(sm.squared_loss(sm.as_design(X) @ w, y) + sm.ridge(w, lam)), sm.card(w) <= k
    )


@pytest.mark.parametrize("seed", range(12))
def test_no_scale_of_the_data_leaks_an_error_or_a_warning(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((5, 3)) * 10.0 ** rng.uniform(-150, 150)
    y = rng.standard_normal(5) * 10.0 ** rng.uniform(-150, 150)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            problem = _problem(X, y, lam=10.0 ** rng.uniform(-100, 10))
        except sm.SparseModelError:
            return
        calls: list[Any] = [
            problem.solve,
            lambda: problem.certify(time_limit=0.2),
            lambda: problem.prove(time_limit=0.2),
            lambda: problem.path(range(3)),
        ]
        for call in calls:
            try:
                call()
            except sm.SparseModelError as error:
                assert str(error)  # noqa: PT017  (anything else is the failure)


@pytest.mark.parametrize("what", ["X", "y"])
def test_data_that_turn_to_nan_after_solving_are_not_certified(what: str) -> None:
    X, y = RNG.standard_normal((12, 4)), RNG.standard_normal(12)
    problem = _problem(X, y)
    problem.solve()
    (X if what == "X" else y)[3] = np.nan
    for call in (problem.certify, lambda: problem.prove(time_limit=1.0)):
        with pytest.raises(sm.DataError):
            call()


class _OwnError(ZeroDivisionError):
    pass


@pytest.mark.parametrize(
    "error", [_OwnError("mine"), ValueError("contains infs or NaNs"), np.linalg.LinAlgError("mine")]
)
def test_errors_of_the_users_functions_pass_as_they_are(error: Exception) -> None:
    X, y = RNG.standard_normal((12, 4)), RNG.standard_normal(12)

    def fail(*_: Any) -> Any:
        raise error

    with pytest.raises(type(error)) as caught:
        _problem(X, y).solve("iht", callback=fail)
    assert caught.value is error


def test_numerical_failures_become_errors_about_the_data() -> None:
    said = r"Solving failed in floating point .LinAlgError"
    with pytest.raises(sm.DataError, match=said), computation("Solving"):
        np.linalg.cholesky(-np.eye(2))
    with pytest.raises(ValueError, match="other") as caught, computation("Solving"):
        raise ValueError("other")
    assert not isinstance(caught.value, sm.SparseModelError)


def test_blocks_that_are_not_what_a_dask_array_says_are_refused() -> None:
    da = pytest.importorskip("dask.array")
    X, y = RNG.standard_normal((20, 4)), RNG.standard_normal(20)
    blocks = da.from_array(X, chunks=(5, 4))
    meta = np.zeros((0, 0))
    for lie in (lambda b: b[:1], lambda b: b[:, :1], lambda b: b.ravel(), lambda b: b + 1j):
        array = blocks.map_blocks(lie, dtype=float, meta=meta, chunks=blocks.chunks)
        with warnings.catch_warnings():
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            with pytest.raises(sm.SparseModelError):
                _problem(array, y).solve()


def test_nullable_columns_are_taken_and_missing_values_named() -> None:
    pd = pytest.importorskip("pandas")
    X, y = RNG.integers(0, 5, (20, 3)).astype(float), RNG.standard_normal(20)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    expected = _problem(X, y).solve()
    kinds: list[Any] = ["Int64", "Float64", "Int8"]
    if pytest.importorskip("pyarrow"):
        kinds += ["float64[pyarrow]", "int64[pyarrow]"]
    for kind in kinds:
        for columns in (["a", "b", "c"], ["b"]):
            nullable = frame.astype(dict.fromkeys(columns, kind))
            found = _problem(nullable, pd.Series(y, dtype="Float64")).solve()
            assert found.value == pytest.approx(expected.value, rel=1e-12)
            holed = nullable.copy()
            holed.index = [f"r{i}" for i in range(20)]
            holed.loc["r7", "b"] = pd.NA
            with pytest.raises(sm.DataError, match=r"column 'b'.*row 7 \(index 'r7'\)"):
                _problem(holed, y)
    flags = frame.assign(d=pd.array([True, False] * 10, dtype="boolean"), e=[True, False] * 10)
    plain = np.column_stack([X, [1.0, 0.0] * 10, [1.0, 0.0] * 10])
    assert _problem(flags, y).solve().value == pytest.approx(_problem(plain, y).solve().value)
    with pytest.raises(sm.DataError, match="row 2"):
        _problem(X, pd.Series([1, 2, None, 4] * 5, dtype="Int64"))
    with pytest.raises(sm.DataTypeError, match="not numeric: 'd'"):
        _problem(frame.assign(d="text"), y)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_least_squares_of_infinities_end_without_a_word_of_lapack(capfd, value):
    matrix = np.random.default_rng(0).standard_normal((30, 12))
    expected = np.linalg.lstsq(matrix, matrix[:, 0] - matrix[:, 3], rcond=None)[0]
    np.testing.assert_array_equal(least_squares(matrix, matrix[:, 0] - matrix[:, 3]), expected)
    matrix[3, 4] = value
    with pytest.raises(np.linalg.LinAlgError, match="infs or NaNs"):
        least_squares(matrix, matrix[:, 0])
    assert capfd.readouterr().err == ""
