"""Sparse precision matrices as covariance estimators."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.covariance import EmpiricalCovariance

import sparsemodel as sm
from sparsemodel.sklearn import SparsePrecision, SparsePrecisionCV

N, P = 400, 6
CHAIN = [[j, j + 1] for j in range(P - 1)]


@pytest.fixture(scope="module")
def X() -> Any:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P))
    for j in range(1, P):
        X[:, j] += 0.8 * X[:, j - 1]
    return X + 3.0


def test_with_all_edges_it_is_the_empirical_covariance(X: Any) -> None:
    ours = SparsePrecision(edges=999).fit(X)
    theirs = EmpiricalCovariance().fit(X)
    np.testing.assert_allclose(ours.covariance_, theirs.covariance_, rtol=1e-6)
    np.testing.assert_allclose(ours.location_, theirs.location_)
    assert ours.score(X) == pytest.approx(theirs.score(X))


@pytest.mark.parametrize("assume_centered", [False, True])
def test_it_finds_the_chain(X: Any, assume_centered: bool) -> None:
    data = X - X.mean(axis=0) if assume_centered else X
    model = SparsePrecision(edges=P - 1, assume_centered=assume_centered, certify=True).fit(data)
    assert model.edges_.tolist() == CHAIN
    np.testing.assert_allclose(model.covariance_ @ model.precision_, np.eye(P), atol=1e-9)
    # On the support the covariance is that of the samples: the likelihood equations.
    S = EmpiricalCovariance(assume_centered=assume_centered).fit(data).covariance_
    i, j = np.array(CHAIN).T
    np.testing.assert_allclose(model.covariance_[i, j], S[i, j], atol=1e-6)
    assert model.certificate_.bound <= model.objective_ + 1e-12
    assert model.certificate_.bound <= model.objective_
    assert not hasattr(model.set_params(certify=False).fit(data), "certificate_")


def test_shrinkage_is_that_of_the_language(X: Any) -> None:
    model = SparsePrecision(edges=P - 1, shrinkage=0.4).fit(X[:12])
    omega = sm.Variable((P, P), symmetric=True)
    likelihood = sm.gaussian_nll(omega, data=X[:12], shrinkage=0.4)
    sm.Problem(sm.minimize(likelihood), sm.card(sm.offdiag(omega)) <= 2 * (P - 1)).solve()
    np.testing.assert_allclose(model.precision_, omega.value, rtol=1e-6, atol=1e-9)
    with pytest.warns(UserWarning, match="the largest"):
        cv = SparsePrecisionCV([0, 5], shrinkage=0.4).fit(X[:40])
    assert cv.n_edges_ == 5


def test_names_reach_the_graph(X: Any) -> None:
    pd = pytest.importorskip("pandas")
    model = SparsePrecision(edges=2).fit(pd.DataFrame(X, columns=list("abcdef")))
    graph = pickle.loads(pickle.dumps(model)).graph()
    assert set(graph) == set("abcdef")
    assert graph.number_of_edges() == 2
    assert all(-1.0 < r < 1.0 for _, _, r in graph.edges(data="weight"))


def test_eigenvalues_stay_within_their_bounds(X: Any) -> None:
    model = SparsePrecision(edges=5, min_eigenvalue=0.3, max_eigenvalue=1.5).fit(X)
    eigenvalues = np.linalg.eigvalsh(model.precision_)
    assert 0.3 - 1e-6 <= eigenvalues[0] <= eigenvalues[-1] <= 1.5 + 1e-6


def test_cross_validation_finds_the_number_of_edges(X: Any) -> None:
    model = SparsePrecisionCV([0, 2, 5, 15], one_standard_error=True).fit(X)
    assert model.n_edges_ == P - 1
    assert model.edges_.tolist() == CHAIN
    assert model.scores_.shape == (5, 4)
    one = SparsePrecisionCV([2], cv=3).fit(X)
    folds = [SparsePrecision(2).fit(X[t]).score(X[v]) for t, v in _folds(3)]
    np.testing.assert_allclose(one.scores_[:, 0], folds, rtol=1e-9)


def test_few_samples_carry_few_edges() -> None:
    rng = np.random.default_rng(0)
    model = SparsePrecisionCV().fit(rng.standard_normal((8, 12)))
    assert model.candidates_[-1] == 24  # at each variable edges of half the samples
    assert model.n_edges_ == 0


def test_the_number_of_edges_is_refined_and_an_end_is_said(X: Any) -> None:
    model = SparsePrecisionCV(one_standard_error=True).fit(X)
    assert model.edges_.tolist() == CHAIN
    assert set(model.candidates_) > {0, 1, 2, 3, 5, 8, 13}
    assert model.scores_.shape == (5, model.candidates_.size)
    path = SparsePrecisionCV(model.candidates_, one_standard_error=True).fit(X)
    np.testing.assert_allclose(path.scores_, model.scores_, rtol=1e-6)
    with pytest.warns(UserWarning, match="chooses k = 2, the largest"):
        SparsePrecisionCV([0, 1, 2]).fit(X)


def _folds(count: int) -> Any:
    from sklearn.model_selection import KFold

    return KFold(count, shuffle=True, random_state=0).split(np.zeros(N))


@pytest.mark.parametrize(
    "options",
    [
        {"edges": -1},
        {"edges": 2.5},
        {"max_eigenvalue": -1.0},
        {"min_eigenvalue": 2.0, "max_eigenvalue": 1.0},
    ],
)
def test_bad_options_are_errors_of_the_library(X: Any, options: dict[str, Any]) -> None:
    with pytest.raises(sm.SparseModelError):
        SparsePrecision(**options).fit(X)


@pytest.mark.parametrize("candidates", [[], [0.5], [-1]])
def test_bad_candidates(X: Any, candidates: Any) -> None:
    with pytest.raises(ValueError, match="candidates must"):
        SparsePrecisionCV(candidates).fit(X)
