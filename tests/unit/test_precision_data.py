"""What may be handed to precision-matrix problems, and what the errors say; the graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sparsemodel.interfaces import DataError, DataTypeError, InfeasibleError
from sparsemodel.modelling.precision_matrices.covariance import (
    check_covariance,
    covariance_of_data,
    default_bounds,
)
from sparsemodel.reporting.graphs import partial_correlations, precision_graph

GOOD = np.array([[2.0, 0.5], [0.5, 1.0]])


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ones((5, 2)), "data=X"),
        (np.ones(3), "square"),
        (np.empty((0, 0)), "empty"),
        (np.array([[1.0, 0.5], [0.4, 1.0]]), r"not symmetric: entry \(0, 1\)"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), r"\(0, 1\)"),
        (np.array([[1.0, 2.0], [2.0, 1.0]]), "not positive semidefinite"),
        (np.array([[1.0, 0.0], [0.0, 0.0]]), "variable 1 is constant"),
        (np.array([[1.0, 0.0], [0.0, -1.0]]), "impossible"),
    ],
)
def test_bad_covariances(matrix: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        check_covariance(matrix)


def test_bad_types() -> None:
    with pytest.raises(DataTypeError):
        check_covariance(GOOD + 1j)
    with pytest.raises(DataTypeError):
        check_covariance(np.array([["a", "b"], ["c", "d"]]))


def test_rounding_is_forgiven_and_nothing_is_changed() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((10, 30)).astype(np.float32)
    S = np.cov(X, rowvar=False).astype(np.float32)
    kept = S.copy()
    checked = check_covariance(S)
    assert np.array_equal(S, kept)
    assert np.array_equal(checked, checked.T)
    assert checked.dtype == np.float64
    exact = check_covariance(GOOD)
    assert np.shares_memory(exact, GOOD)
    # Small units are no reason to complain.
    units = np.array([1e-8, 1e8])
    check_covariance(GOOD * np.outer(units, units))


def test_data() -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((20, 3))
    S, n, names, _ = covariance_of_data(X)
    assert n == 20
    assert names is None
    assert np.allclose(S, np.cov(X, rowvar=False, bias=True))
    pandas = pytest.importorskip("pandas")
    assert covariance_of_data(pandas.DataFrame(X, columns=["a", "b", "c"])).names == ("a", "b", "c")


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones((1, 3)), "at least two"),
        (np.ones(3), "rows"),
        (np.empty((4, 0)), "no columns"),
        (np.column_stack([np.arange(4.0), np.ones(4)]), r"constant columns \(1\)"),
        (np.eye(4) + 0.1, "looks like a covariance"),
        (np.array([[1.0, 2.0], [np.inf, 0.0]]), r"\(1, 0\)"),
    ],
)
def test_bad_data(X: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        covariance_of_data(X)


def test_default_bounds_hold_the_optimum_in_any_units() -> None:
    rng = np.random.default_rng(2)
    for scale in (1e-4, 1.0, 1e4):
        X = scale * rng.standard_normal((50, 6)) @ (np.eye(6) + 0.5 * rng.standard_normal((6, 6)))
        S = covariance_of_data(X).matrix
        alpha, beta = default_bounds(S)
        spectrum = np.linalg.eigvalsh(np.linalg.inv(S))
        assert alpha <= spectrum[0]
        assert spectrum[-1] <= beta
    assert default_bounds(GOOD, alpha=0.3)[0] == 0.3
    assert default_bounds(GOOD, beta=0.01) == (0.01, 0.01)
    low, high = default_bounds(GOOD, alpha=1e9)
    assert low < high
    low, high = default_bounds(np.array([[4.0]]))
    assert low <= 0.25 <= high


def test_impossible_bounds() -> None:
    for options, message in (
        ({"alpha": 2.0, "beta": 1.0}, "must not exceed"),
        ({"beta": 0.0}, "must be positive"),
        ({"alpha": np.inf}, "infinite"),
    ):
        with pytest.raises(InfeasibleError, match=message):
            default_bounds(GOOD, **options)
    with pytest.raises(DataError, match="NaN"):
        default_bounds(GOOD, alpha=float("nan"))


def test_graph() -> None:
    omega = np.array([[2.0, -1.0, 0.0], [-1.0, 2.0, 0.5], [0.0, 0.5, 1.0]])
    graph = precision_graph(omega, ["a", "b", "c"])
    assert sorted(graph.edges) == [("a", "b"), ("b", "c")]
    assert graph["a"]["b"]["weight"] == pytest.approx(0.5)
    assert graph["b"]["c"]["precision"] == 0.5
    assert graph.nodes["c"]["conditional_variance"] == 1.0
    # A partial correlation is the correlation given all the others.
    Sigma = np.linalg.inv(omega)
    block = Sigma[:2, :2] - np.outer(Sigma[:2, 2], Sigma[2, :2]) / Sigma[2, 2]
    expected = block[0, 1] / np.sqrt(block[0, 0] * block[1, 1])
    assert partial_correlations(omega)[0, 1] == pytest.approx(expected)
    assert list(precision_graph(omega)) == [0, 1, 2]
    with pytest.raises(DataError, match="distinct"):
        precision_graph(omega, ["a", "a", "c"])
    with pytest.raises(DataError, match="2 names"):
        precision_graph(omega, ["a", "b"])


def test_a_declaration_needs_no_eigenvalues(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("an eigendecomposition")

    for name in ("eigvalsh", "eigh", "svd", "eigvals"):
        monkeypatch.setattr(np.linalg, name, refuse)
    S = check_covariance(GOOD)
    alpha, beta = default_bounds(S)
    assert 0.0 < alpha < 1.0 / np.trace(S) < beta


def test_what_is_not_semidefinite_is_refused_at_the_same_share() -> None:
    for p in (2, 5, 40):
        Q = np.linalg.qr(np.random.default_rng(p).standard_normal((p, p)))[0]
        for share, right in ((-3e-7, False), (-1e-9, True), (0.0, True), (1e-3, True)):
            spectrum = np.linspace(0.5, 1.0, p)
            spectrum[0] = share
            S = (Q * spectrum) @ Q.T
            S = S + S.T
            scale = 1.0 / np.sqrt(np.diagonal(S))
            values = np.linalg.eigvalsh(S * scale[:, None] * scale)
            assert (values[0] >= -1e-7 * values[-1]) == right
            if right:
                check_covariance(S)
            else:
                with pytest.raises(DataError, match="semidefinite"):
                    check_covariance(S)
