"""Precision-matrix problems as a user writes them."""

from __future__ import annotations

import numpy as np
import pytest

import sparsemodel as sm


def chain(p: int = 8, n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    truth = 2.0 * np.eye(p) + np.diag(np.full(p - 1, 0.8), 1) + np.diag(np.full(p - 1, 0.8), -1)
    rng = np.random.default_rng(seed)
    return rng.multivariate_normal(
        np.zeros(p), np.linalg.inv(truth), size=n, method="cholesky"
    ), truth


def declared(S: np.ndarray, k: int, *more):
    omega = sm.Variable(S.shape, symmetric=True, name="Omega")
    goal = sm.minimize(sm.trace(S @ omega) - sm.log_det(omega))
    return omega, sm.Problem(goal, [sm.card(sm.offdiag(omega)) <= 2 * k, *more])


def test_declare_solve_certify() -> None:
    X, _ = chain()
    S = np.cov(X, rowvar=False)
    omega, problem = declared(S, 7)
    assert "at most 7 of 28 edges" in " ".join(problem.explain().split())
    solution = problem.solve()
    value = omega.value
    assert value.shape == (8, 8)
    np.testing.assert_array_equal(value, value.T)
    assert np.linalg.eigvalsh(value)[0] > 0.0
    assert np.count_nonzero(np.triu(value, 1)) == 7
    np.testing.assert_array_equal(solution.support, [[i, i + 1] for i in range(7)])
    expected = -np.linalg.slogdet(value)[1] + np.sum(S * value)
    assert solution.value == pytest.approx(expected, rel=1e-10)
    # The likelihood's gradient vanishes on the support: the covariances there are matched.
    mask = value != 0.0
    np.testing.assert_allclose(np.linalg.inv(value)[mask], S[mask], atol=1e-7)
    certificate = problem.certify()
    assert certificate.bound <= certificate.value
    assert certificate.restricted_gap < 1e-6


@pytest.mark.parametrize("name", ["precision_grahtp", "precision_grasp", "precision_fbs"])
def test_backends_by_name(name: str) -> None:
    S = np.cov(chain()[0], rowvar=False)
    _, problem = declared(S, 7)
    assert problem.solve(name).backend == name
    assert problem.solve(name).value >= problem.solve().value - 1e-9


def test_graph_has_names_and_partial_correlations() -> None:
    pandas = pytest.importorskip("pandas")
    X, _ = chain(p=4)
    frame = pandas.DataFrame(X, columns=list("abcd"))
    omega = sm.Variable((4, 4), symmetric=True)
    problem = sm.Problem(
        sm.minimize(sm.gaussian_nll(omega, data=frame)), sm.card(sm.offdiag(omega)) <= 6
    )
    graph = problem.solve().graph()
    assert set(graph.nodes) == set("abcd")
    assert {frozenset(e) for e in graph.edges} == {frozenset(e) for e in ("ab", "bc", "cd")}
    weight = graph.edges["a", "b"]["weight"]
    w = omega.value
    assert weight == pytest.approx(-w[0, 1] / np.sqrt(w[0, 0] * w[1, 1]))


def test_eigenvalue_bounds_hold() -> None:
    S = np.cov(chain()[0], rowvar=False)
    omega, problem = declared(S, 7)
    problem.solve()
    free = np.linalg.eigvalsh(omega.value)
    low, high = free[0] * 1.5, free[-1] * 0.9
    omega, problem = declared(S, 7)
    problem = sm.Problem(
        sm.minimize(sm.gaussian_nll(omega, S)),
        sm.card(sm.offdiag(omega)) <= 2 * 7,
        omega >> low,
        omega << high,
    )
    problem.solve()
    inside = np.linalg.eigvalsh(omega.value)
    assert inside[0] >= low * (1 - 1e-9)
    assert inside[-1] <= high * (1 + 1e-9)


def test_active_bounds_are_told() -> None:
    S = np.cov(chain()[0], rowvar=False)
    omega, problem = declared(S, 7)
    assert problem.solve().notes == ()
    smallest, largest = np.linalg.eigvalsh(omega.value)[[0, -1]]
    _, problem = declared(S, 7)
    problem = sm.Problem(
        sm.minimize(sm.gaussian_nll(omega, S)),
        sm.card(sm.offdiag(omega)) <= 14,
        omega >> 1.2 * smallest,
        omega << 0.9 * largest,
    )
    notes = problem.solve().notes
    assert len(notes) == 2
    assert not any("default" in note for note in notes)
    # Three samples of six variables: with all edges the likelihood has no maximum.
    few = np.cov(chain(p=6, n=3)[0], rowvar=False)
    _, problem = declared(few, 15)
    notes = problem.solve(time_limit=5).notes
    assert any("upper" in note and "default" in note for note in notes)
    assert "a default, not declared" in " ".join(str(problem.solution).split())
    # Columns that determine each other are named.
    X, _ = chain()
    dependent = np.column_stack([X[:, :3], X[:, 0] - X[:, 1]])
    omega = sm.Variable((4, 4), symmetric=True)
    joined = sm.Problem(
        sm.minimize(sm.gaussian_nll(omega, data=dependent)), sm.card(sm.offdiag(omega)) <= 12
    )
    assert any("0, 1 and 3 are linearly dependent" in note for note in joined.solve().notes)
    # Scales far apart make no default active.
    d = np.array([1e-3, 1.0, 1e3, 1.0, 1.0, 1.0, 1e-2, 1.0])
    _, problem = declared(S * d[:, None] * d[None, :], 7)
    assert problem.solve().notes == ()


def test_a_lower_bound_above_the_default_upper_bound() -> None:
    S = np.cov(chain()[0], rowvar=False)
    omega, problem = declared(S, 7)
    low = 100.0 * problem.form.beta
    omega, problem = declared(S, 7)
    problem = sm.Problem(
        sm.minimize(sm.gaussian_nll(omega, S)), sm.card(sm.offdiag(omega)) <= 14, omega >> low
    )
    solution = problem.solve()
    assert np.linalg.eigvalsh(omega.value)[0] >= low * (1.0 - 1e-9)
    assert np.linalg.eigvalsh(omega.value)[-1] <= problem.form.beta
    # The optimum of the convex problem over the box, S being well conditioned: all at the bound.
    assert solution.value == pytest.approx(low * np.trace(S) - 8 * np.log(low), rel=1e-9)
    assert problem.certify().gap <= 1e-9 * abs(solution.value)


def test_required_and_forbidden_edges() -> None:
    S = np.cov(chain()[0], rowvar=False)
    omega = sm.Variable(S.shape, symmetric=True)
    problem = sm.Problem(
        sm.minimize(sm.gaussian_nll(omega, S)),
        sm.card(sm.offdiag(omega)) <= 6,
        sm.required_edges(omega, [(0, 7)]),
        sm.forbidden_edges(omega, [(0, 1)]),
    )
    problem.solve()
    assert omega.value[0, 7] != 0.0
    assert omega.value[0, 1] == 0.0
    assert np.count_nonzero(np.triu(omega.value, 1)) == 4


def test_extreme_and_masked_numbers_are_refused() -> None:
    X, _ = chain(p=4)
    S = np.cov(X, rowvar=False)
    omega = sm.Variable((4, 4), symmetric=True, name="Omega")
    for matrix in (1e200 * S, 1e-200 * S):
        with pytest.raises(sm.DataError, match="other units"):
            sm.gaussian_nll(omega, matrix)
    with pytest.raises(sm.DataError, match="larger units"):
        sm.gaussian_nll(omega, data=1e200 * X)
    masked = np.ma.masked_array(S, mask=np.eye(4) > 0.0)
    with pytest.raises(sm.DataError, match="masked"):
        sm.gaussian_nll(omega, masked)
    with pytest.raises(sm.DataError, match="masked"):
        sm.gaussian_nll(omega, data=np.ma.masked_array(X, mask=X > 2.0))
    for wild in (1e60, 1e-60):
        problem = sm.Problem(sm.minimize(sm.gaussian_nll(omega, wild * S)))
        assert np.isfinite(problem.solve().value)
        assert problem.certify().claim.value == "globally optimal"
    sparse = pytest.importorskip("scipy.sparse").csr_array(S)
    plain = sm.Problem(sm.minimize(sm.gaussian_nll(omega, S))).solve().value
    assert sm.Problem(sm.minimize(sm.gaussian_nll(omega, sparse))).solve().value == plain


@pytest.mark.parametrize("pairs", [3, [(0.5, 1)], ["ab"], [(0, 1, 2)], [(0, 9)], [(1, 1)]])
def test_pairs_that_are_none(pairs) -> None:
    omega = sm.Variable((4, 4), symmetric=True, name="Omega")
    with pytest.raises(sm.ModelError, match=r"pair"):
        sm.required_edges(omega, pairs)
    with pytest.raises(sm.ModelError, match=r"pair"):
        sm.forbidden_edges(omega, pairs)


def test_what_makes_no_sense_is_said() -> None:
    S = np.eye(3)
    plain = sm.Variable((3, 3))
    omega = sm.Variable((3, 3), symmetric=True, name="Omega")
    with pytest.raises(sm.ModelError, match="symmetric=True"):
        sm.log_det(plain)
    with pytest.raises(sm.ModelError, match="shape"):
        sm.Variable((3, 2), symmetric=True)
    with pytest.raises(sm.ModelError, match="concave"):
        sm.log_det(omega) + sm.trace(S @ omega)
    with pytest.raises(sm.ModelError, match="both"):
        sm.Problem(sm.minimize(-sm.log_det(omega)))
    with pytest.raises(sm.ModelError, match="edges"):
        declared(S, 7)
    with pytest.raises(sm.InfeasibleError):
        sm.Problem(sm.minimize(sm.gaussian_nll(omega, S)), omega >> 3.0, omega << 2.0)
    with pytest.raises(sm.DataError, match="not symmetric"):
        declared(np.triu(np.ones((3, 3))), 1)
    with pytest.raises(sm.DataError, match="semidefinite"):
        declared(np.array([[1.0, 2.0], [2.0, 1.0]]), 1)
    with pytest.raises(sm.DataError, match=r"index \(0, 1\)"):
        declared(np.array([[1.0, np.nan], [np.nan, 1.0]]), 1)
    with pytest.raises(sm.ModelError, match="one of them"):
        sm.gaussian_nll(omega)
