"""Paths over the edges of a precision matrix, and the choice along them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.numerics.precision import Pattern, minimise_on_pattern

# Some follow a few numbers of edges only, and choose the last.
pytestmark = pytest.mark.filterwarnings("ignore:.* of the path:UserWarning")


def sample(p: int = 10, n: int = 300, seed: int = 0) -> np.ndarray:
    truth = 2.0 * np.eye(p) + np.diag(np.full(p - 1, 0.8), 1) + np.diag(np.full(p - 1, 0.8), -1)
    rng = np.random.default_rng(seed)
    return rng.multivariate_normal(np.ones(p), np.linalg.inv(truth), size=n, method="cholesky")


def over(X: np.ndarray, *more, **about):
    p = X.shape[1]
    omega = sm.Variable((p, p), symmetric=True, name="Omega")
    k = sm.Parameter(integer=True, name="k")
    goal = sm.minimize(sm.gaussian_nll(omega, **(about or {"data": X})))
    return omega, k, sm.Problem(goal, sm.card(sm.offdiag(omega)) <= 2 * k, *more)


@pytest.mark.parametrize("seed", range(4))
def test_the_objective_never_rises_and_is_that_of_the_matrix(seed: int) -> None:
    X = sample(seed=seed, n=40)
    S = np.cov(X, rowvar=False, bias=True)
    _, k, problem = over(X)
    path = problem.path(k, range(0, 46, 3))
    assert path.unit == "edges"
    assert np.all(np.diff(path.objective) <= 1e-9)
    for place, edges in enumerate(path.k):
        chosen = path.at(int(path.k[place]))
        omega = chosen.values["Omega"]
        assert np.count_nonzero(np.triu(omega, 1)) <= edges
        value = np.sum(S * omega) - np.linalg.slogdet(omega)[1]
        assert value == pytest.approx(path.objective[place], rel=1e-10)
        mask = omega != 0.0
        np.testing.assert_allclose(np.linalg.inv(omega)[mask], S[mask], atol=1e-6)
        assert len(chosen.support) == np.count_nonzero(np.triu(omega, 1))


def test_beside_enumeration() -> None:
    rng = np.random.default_rng(3)
    S = np.cov(rng.standard_normal((25, 5)) @ rng.standard_normal((5, 5)), rowvar=False)
    omega = sm.Variable((5, 5), symmetric=True)
    path = sm.Problem(sm.minimize(sm.gaussian_nll(omega, S))).path(range(0, 11, 2))
    pairs = list(combinations(range(5), 2))
    for place, k in enumerate(path.k):
        best = np.inf
        for chosen in combinations(pairs, int(k)):
            rows = np.array([*range(5), *(i for i, _ in chosen)])
            cols = np.array([*range(5), *(j for _, j in chosen)])
            factor = minimise_on_pattern(S, Pattern(5, rows, cols)).factor
            best = min(best, float(np.vdot(S, factor.omega)) - factor.logdet)
        assert path.objective[place] >= best - 1e-9
        assert path.objective[place] <= best + 0.02  # a heuristic, but a good one


def test_criteria_from_their_formulas() -> None:
    X = sample()
    n, p = X.shape
    S = np.cov(X, rowvar=False, bias=True)
    _, k, problem = over(X)
    path = problem.path(k, range(0, 21, 1))
    best = path.select("ebic")
    fit = n * path.objective
    edges = np.array([len(s) for s in path.support])
    np.testing.assert_allclose(
        best.scores, fit + (edges + p) * np.log(n) + 2.0 * edges * np.log(p), rtol=1e-12
    )
    np.testing.assert_allclose(path.select("aic").scores, fit + 2.0 * (edges + p), rtol=1e-12)
    assert best.k == path.k[np.argmin(best.scores)]
    assert {tuple(e) for e in best.support.tolist()} >= {(i, i + 1) for i in range(9)}
    assert best.k <= 10  # one chance edge among 36 possible ones
    # The same from the covariance and the number of observations alone.
    _, j, other = over(X, covariance=S, samples=n)
    again = other.path(j, range(21)).select("ebic")
    np.testing.assert_allclose(again.scores, best.scores, rtol=1e-12)


def test_a_declared_ridge_is_no_part_of_the_likelihood() -> None:
    X = sample(n=30)
    S = np.cov(X, rowvar=False, bias=True)
    omega = sm.Variable((10, 10), symmetric=True, name="Omega")
    goal = sm.gaussian_nll(omega, data=X) + sm.trace(0.1 * np.eye(10) @ omega)
    path = sm.Problem(sm.minimize(goal)).path([5, 9])
    best = path.select("aic")
    W = best.values["Omega"]
    place = int(np.flatnonzero(path.k == best.k)[0])
    assert path.objective[place] == pytest.approx(
        np.sum((S + 0.1 * np.eye(10)) * W) - np.linalg.slogdet(W)[1], rel=1e-10
    )
    plain = 30 * (np.sum(S * W) - np.linalg.slogdet(W)[1])
    edges = np.count_nonzero(np.triu(W, 1))
    assert best.scores[place] == pytest.approx(plain + 2.0 * (edges + 10), rel=1e-10)


def test_cross_validation_by_hand() -> None:
    X = sample(n=60)
    folds = np.arange(60) % 3
    _, k, problem = over(X)
    path = problem.path(k, [0, 9])
    found = path.cross_validation(folds=folds)
    for row in range(3):
        train, test = X[folds != row], X[folds == row]
        variances = train.var(axis=0)
        expected = np.sum(((test - train.mean(axis=0)) ** 2).mean(axis=0) / variances)
        expected += np.sum(np.log(variances))
        assert found.losses[row, 0] == pytest.approx(expected, rel=1e-10)
    assert path.cross_validate(folds=folds).k == 9
    frequencies = path.stability(resamples=4)
    assert frequencies.shape == (2, 55)
    assert frequencies[0].sum() == 10  # the diagonal alone


def test_declared_shrinkage() -> None:
    X = sample(n=30)
    S = np.cov(X, rowvar=False, bias=True)
    omega = sm.Variable((10, 10), symmetric=True, name="Omega")
    problem = sm.Problem(
        sm.minimize(sm.gaussian_nll(omega, data=X, shrinkage=0.3)), sm.card(sm.offdiag(omega)) <= 18
    )
    T = 0.7 * S + 0.3 * np.diag(np.diag(S))
    np.testing.assert_allclose(problem.form.covariance, T, rtol=1e-14)
    value = problem.solve().value
    W = omega.value
    assert value == pytest.approx(np.sum(T * W) - np.linalg.slogdet(W)[1], rel=1e-10)
    path = problem.path([0, 9])
    plain = 30 * (np.sum(S * W) - np.linalg.slogdet(W)[1])  # judged by S itself
    assert path.select("aic").scores[1] == pytest.approx(plain + 2.0 * 19, rel=1e-6)
    kept = np.arange(30) < 20
    C = np.cov(X[kept], rowvar=False, bias=True)
    inside = problem._compiled().on_observations(kept)
    np.testing.assert_allclose(inside.covariance, 0.7 * C + 0.3 * np.diag(np.diag(C)), rtol=1e-12)
    with pytest.raises(sm.ModelError, match="below 1"):
        sm.gaussian_nll(omega, data=X, shrinkage=1.0)
    # The default changes nothing.
    plain_form = sm.Problem(sm.minimize(sm.gaussian_nll(omega, data=X))).form
    np.testing.assert_allclose(plain_form.covariance, S, rtol=1e-12)


def test_required_edges_and_bounds_stay() -> None:
    X = sample()
    omega, k, problem = over(X)
    constraints = [
        sm.card(sm.offdiag(omega)) <= 2 * k,
        omega << 4.0,
        sm.required_edges(omega, [(0, 9)]),
        sm.forbidden_edges(omega, [(0, 1)]),
    ]
    problem = sm.Problem(sm.minimize(sm.gaussian_nll(omega, data=X)), constraints)
    path = problem.path(k, [0, 5, 12])
    assert np.all(np.diff(path.objective) <= 1e-9)
    for place in range(3):
        W = path.at(int(path.k[place])).values["Omega"]
        assert W[0, 9] != 0.0
        assert W[0, 1] == 0.0
        assert np.linalg.eigvalsh(W)[-1] <= 4.0 * (1.0 + 1e-9)
    assert path.cross_validate(folds=3).k in (0, 5, 12)


def test_what_is_missing_is_said() -> None:
    X = sample()
    S = np.cov(X, rowvar=False)
    _, k, problem = over(X, covariance=S)
    path = problem.path(k, [1, 9])
    with pytest.raises(sm.ModelError, match="samples=n"):
        path.select("ebic")
    with pytest.raises(sm.ModelError, match="data=X"):
        path.cross_validate()
    with pytest.raises(sm.ModelError, match="only 45 edges"):
        problem.path(k, [46])
    _, k, problem = over(X)
    with pytest.raises(sm.ModelError, match="no criterion"):
        problem.path(k, [1]).select("best")
    with pytest.raises(sm.DataError, match="folds"):
        problem.path(k, [1]).cross_validate(folds=200)
    omega = sm.Variable((10, 10), symmetric=True, name="Omega")
    entries = sm.Problem(sm.minimize(sm.gaussian_nll(omega, S)), sm.card(sm.offdiag(omega)) <= k)
    with pytest.raises(sm.ModelError, match="two entries for each edge"):
        entries.path(k, [1, 2])
    with pytest.raises(sm.ModelError, match="whole number of at least 2"):
        sm.gaussian_nll(omega, S, samples=1.5)
    with pytest.raises(sm.ModelError, match="samples="):
        sm.gaussian_nll(omega, data=X, samples=300)


def test_table_and_picture() -> None:
    pytest.importorskip("matplotlib")
    _, k, problem = over(sample())
    path = problem.path(k, [0, 5, 9])
    assert "k = 9" in path._repr_html_()
    assert path.plot(chosen=path.select()).get_xlabel() == "edges k"
    from sparsemodel.reporting import plots

    assert plots.support_recovery(path.support, ks=path.k).get_xlabel().endswith("k")
