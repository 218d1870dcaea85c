"""The estimators beyond scikit-learn's own checks: what they minimise, select and promise."""

from __future__ import annotations

import builtins
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.model_selection import GridSearchCV, LeaveOneOut
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sparsemodel as sm
from sparsemodel.sklearn import (
    SparseLinearRegression,
    SparseLinearRegressionCV,
    SparseLogisticRegression,
    SparseLogisticRegressionCV,
    SparsePoissonRegression,
    SparseSVC,
)

# Few candidates are quick, and the truth is often the last of them.
pytestmark = pytest.mark.filterwarnings("ignore:cross-validation chooses:UserWarning")

N, P = 80, 12


@pytest.fixture(scope="module")
def X() -> Any:
    return np.random.default_rng(0).standard_normal((N, P))


@pytest.fixture(scope="module")
def u(X: Any) -> Any:
    noise = np.random.default_rng(1).standard_normal(N)
    return 2.0 * X[:, 3] - 1.5 * X[:, 7] + 0.5 + 0.3 * noise


# ---- without a bound on k, the classical estimators ----------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_with_all_features_it_is_ridge_regression(X: Any, u: Any, fit_intercept: bool) -> None:
    ours = SparseLinearRegression(
        k=99, ridge=0.1, plain_ridge=True, fit_intercept=fit_intercept
    ).fit(X, u)
    theirs = Ridge(alpha=0.1 * N, fit_intercept=fit_intercept).fit(X, u)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-9)
    assert ours.intercept_ == pytest.approx(theirs.intercept_)


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 1.0, 1: 3.0}])
def test_with_all_features_it_is_logistic_regression(X: Any, u: Any, class_weight: Any) -> None:
    y = (u > 1.0).astype(int)
    ours = SparseLogisticRegression(
        k=P, ridge=0.1, plain_ridge=True, class_weight=class_weight
    ).fit(X, y)
    weights = np.ones(N)
    if class_weight == "balanced":
        weights = N / (2.0 * np.bincount(y)[y])
    elif class_weight is not None:
        weights = np.where(y == 1, 3.0, 1.0)
    theirs = LogisticRegression(C=1.0 / (0.1 * weights.sum()), tol=1e-10, max_iter=1000)
    theirs.fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-3)


def test_with_all_features_it_is_multinomial_regression(X: Any, u: Any) -> None:
    y = np.digitize(u, [-1.0, 1.5])
    ours = SparseLogisticRegression(k=P, ridge=0.1, plain_ridge=True).fit(X, y)
    theirs = LogisticRegression(C=1.0 / (0.1 * N), tol=1e-10, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    assert ours.intercept_.sum() == pytest.approx(0.0, abs=1e-12), "only differences mean anything"


def test_with_all_features_it_is_poisson_regression(X: Any, u: Any) -> None:
    y = np.random.default_rng(2).poisson(np.exp(u / 3))
    ours = SparsePoissonRegression(k=P, ridge=0.1, plain_ridge=True).fit(X, y)
    theirs = PoissonRegressor(alpha=0.1, tol=1e-10, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-6)


# ---- selection -----------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_matrix])
def test_it_selects_in_every_storage(X: Any, u: Any, storage: Any) -> None:
    before = X.copy()
    model = SparseLinearRegression(k=2).fit(storage(X), u)
    np.testing.assert_array_equal(X, before)
    assert model.get_support(indices=True).tolist() == [3, 7]
    reduced = model.transform(storage(X))
    assert reduced.shape == (N, 2)
    dense = SparseLinearRegression(k=2).fit(X, u)
    np.testing.assert_allclose(model.predict(storage(X)), dense.predict(X), rtol=1e-9)


def test_the_problem_is_the_one_of_the_language(X: Any, u: Any) -> None:
    weights = np.random.default_rng(3).uniform(size=N)
    model = SparseLinearRegression(k=3, ridge=0.05, plain_ridge=True, certify=True)
    model.fit(X, u, sample_weight=weights)
    w, c = sm.Variable(P), sm.Variable()
    loss = sm.squared_loss(X @ w + c, u, weights=weights / weights.sum(), reduction="sum")
    problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.05)), sm.card(w) <= 3)
    assert model.objective_ == pytest.approx(problem.solve().value, rel=1e-9)
    certificate = model.certificate_
    assert certificate.bound <= model.objective_ <= certificate.upper
    assert "w[" not in str(certificate), "features are named by the estimator"


def test_a_second_fit_forgets_the_first(X: Any, u: Any) -> None:
    model = SparseLinearRegression(k=2, certify=True).fit(X, u)
    assert model.certificate_.bound > -np.inf
    assert not hasattr(model.set_params(certify=False).fit(X, u), "certificate_")


def test_a_fitted_model_survives_pickling_with_its_certificate(X: Any, u: Any) -> None:
    model = SparseLinearRegression(k=2, certify=True).fit(X, u)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.certificate_.bound == model.certificate_.bound


def test_names_of_a_frame_reach_support_and_certificate(X: Any, u: Any) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(P)])
    model = make_pipeline(
        StandardScaler().set_output(transform="pandas"), SparseLinearRegression(k=2, certify=True)
    ).fit(frame, u)
    last = model[-1]
    assert last.feature_names_in_.tolist() == frame.columns.tolist()
    assert last.get_feature_names_out().tolist() == ["x3", "x7"]
    assert "x3" in str(last.certificate_)
    assert set(model[:1].fit(frame).get_feature_names_out()) == set(frame.columns)


def test_groups_are_selected_together(X: Any, u: Any) -> None:
    groups = np.arange(P) // 3
    model = SparseLinearRegression(k=2, groups=groups).fit(X, u)
    assert set(groups[model.get_support()]) == {1, 2}
    everything = SparseLinearRegression(k=99, groups=groups).fit(X, u)
    assert everything.get_support().all()


def test_positive_coefficients(X: Any, u: Any) -> None:
    model = SparseLinearRegression(k=3, positive=True).fit(X, u)
    assert model.coef_.min() >= 0.0
    assert model.coef_[3] > 0.0


# ---- classes -------------------------------------------------------------------------------------


def test_labels_of_any_kind(X: Any, u: Any) -> None:
    words = np.where(u > 0, "yes", "no")
    model = SparseLogisticRegression(k=2).fit(X, words)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.score(X, words) > 0.9
    assert model.coef_[0, 3] > 0.0, "a positive score means the second class"
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    np.testing.assert_array_equal(np.exp(model.predict_log_proba(X)), model.predict_proba(X))


@pytest.mark.parametrize("loss", ["squared_hinge", "smoothed_hinge"])
def test_support_vectors(X: Any, u: Any, loss: str) -> None:
    y = u > 0
    model = SparseSVC(k=2, loss=loss, ridge=1e-2).fit(X, y)
    assert model.get_support(indices=True).tolist() == [3, 7]
    assert model.score(X, y) > 0.9
    several = OneVsRestClassifier(model).fit(X, np.digitize(u, [-1.0, 1.5]))
    assert several.score(X, np.digitize(u, [-1.0, 1.5])) > 0.7
    with pytest.raises(ValueError, match="OneVsRestClassifier"):
        model.fit(X, np.digitize(u, [-1.0, 1.5]))


def test_extreme_scores_have_finite_log_probabilities(X: Any, u: Any) -> None:
    model = SparseLogisticRegression(k=1).fit(X, u > 0)
    assert np.isfinite(model.predict_log_proba(1e6 * X)).all()


# ---- bad input: scikit-learn's checks cover the data; these are ours -----------------------------


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"k": -1}, ValueError),
        ({"k": 2.5}, ValueError),
        ({"k": "two"}, (TypeError, ValueError)),
        ({"k": None}, (TypeError, ValueError)),
        ({"k": True}, (TypeError, ValueError)),
        ({"ridge": -1.0}, ValueError),
        ({"ridge": np.nan}, ValueError),
        ({"ridge": "much"}, TypeError),
        ({"groups": [0, 1]}, ValueError),
        ({"backend": "nope"}, LookupError),
        ({"time_limit": -1.0}, ValueError),
    ],
)
def test_bad_options_are_errors_of_the_library(
    X: Any, u: Any, options: dict[str, Any], error: Any
) -> None:
    with pytest.raises(error) as caught:
        SparseLinearRegression(**options).fit(X, u)
    assert isinstance(caught.value, sm.SparseModelError)
    assert "k" not in options or str(caught.value).startswith("k must be ")


def test_bad_weights_and_losses(X: Any, u: Any) -> None:
    with pytest.raises(ValueError, match=r"[Ss]ample.weight"):
        SparseLinearRegression().fit(X, u, sample_weight=np.zeros(N))
    with pytest.raises(ValueError, match="one class"):
        SparseLogisticRegression().fit(X, u > 0, sample_weight=(u > 0).astype(float))
    with pytest.raises(ValueError, match="loss must be one of"):
        SparseSVC(loss="huge").fit(X, u > 0)
    with pytest.raises(ValueError, match="counts"):
        SparsePoissonRegression().fit(X, -np.ones(N))
    with pytest.raises(ValueError, match="All values of y are zero"):
        SparsePoissonRegression().fit(X, np.zeros(N))


def test_a_fit_that_is_cut_short_warns(X: Any, u: Any) -> None:
    with pytest.warns(ConvergenceWarning, match="time limit"):
        SparseLinearRegression(k=3, backend="grahtp", time_limit=1e-9).fit(X, u)


# ---- choosing k ----------------------------------------------------------------------------------


def test_cross_validation_finds_k(X: Any, u: Any) -> None:
    model = SparseLinearRegressionCV(range(6), ridges=1e-3).fit(X, u)
    assert model.k_ >= 2
    assert model.scores_.shape == (5, 6)
    assert model.best_score_ == model.scores_.mean(axis=0)[model.ks_ == model.k_]
    careful = SparseLinearRegressionCV(range(6), ridges=1e-3, one_standard_error=True).fit(X, u)
    assert careful.k_ == 2
    plain = SparseLinearRegression(k=2, ridge=careful.ridge_).fit(X, u)
    np.testing.assert_allclose(careful.coef_, plain.coef_, rtol=1e-9)


def test_scores_are_those_of_models_fitted_on_the_folds(X: Any, u: Any) -> None:
    from sklearn.model_selection import KFold, cross_val_score

    folds = KFold(4)
    model = SparseLinearRegressionCV([2], ridges=1e-3, cv=folds, scoring="r2").fit(X, u)
    expected = cross_val_score(SparseLinearRegression(k=2), X, u, cv=folds, scoring="r2")
    np.testing.assert_allclose(model.scores_[:, 0], expected, rtol=1e-6)


def test_the_default_score_is_the_loss_on_held_out_samples(X: Any, u: Any) -> None:
    y = np.where(u > 0, "b", "a")
    model = SparseLogisticRegressionCV([1, 2], ridges=1e-2, cv=3).fit(X, y)
    again = SparseLogisticRegressionCV([1, 2], ridges=1e-2, cv=3, scoring="neg_log_loss").fit(X, y)
    np.testing.assert_allclose(model.scores_, again.scores_, rtol=1e-9)


def test_several_classes_are_cross_validated(X: Any, u: Any) -> None:
    y = np.digitize(u, [-1.0, 1.5])
    model = SparseLogisticRegressionCV([1, 4], ridges=1e-2, cv=3, scoring="accuracy").fit(X, y)
    assert model.coef_.shape == (3, P)
    assert 0.0 <= model.scores_.min() <= model.scores_.max() <= 1.0


def test_folds_in_parallel_and_one_by_one_agree(X: Any, u: Any) -> None:
    one = SparseLinearRegressionCV([1, 2], cv=3, ridges=1e-3).fit(X, u)
    two = SparseLinearRegressionCV([1, 2], cv=3, ridges=1e-3).set_params(n_jobs=1).fit(X, u)
    np.testing.assert_array_equal(one.scores_, two.scores_)


@pytest.mark.parametrize("ks", [[], [1.5], ["a"], [-1, 2]])
def test_bad_candidates(X: Any, u: Any, ks: Any) -> None:
    with pytest.raises(ValueError, match="ks must"):
        SparseLinearRegressionCV(ks).fit(X, u)


def test_leave_one_out_and_weights(X: Any, u: Any) -> None:
    model = SparseLinearRegressionCV([1, 2], ridges=1e-3, cv=LeaveOneOut()).fit(X[:20], u[:20])
    assert model.scores_.shape == (20, 2)


def test_in_a_grid_search(X: Any, u: Any) -> None:
    search = GridSearchCV(
        make_pipeline(StandardScaler(), SparseLinearRegression()),
        {"sparselinearregression__k": [1, 2], "sparselinearregression__ridge": [1e-3, 10.0]},
        cv=3,
    ).fit(X, u)
    assert search.best_params_ == {
        "sparselinearregression__k": 2,
        "sparselinearregression__ridge": 1e-3,
    }


# ---- lazily --------------------------------------------------------------------------------------


def test_without_scikit_learn_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = builtins.__import__

    def refusing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] == "sklearn":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refusing)
    for name in [n for n in sys.modules if n.startswith("sparsemodel.sklearn")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(sm.MissingDependencyError, match="pip install"):
        __import__("sparsemodel.sklearn")


def test_nobody_else_loads_scikit_learn() -> None:
    code = "import sys, sparsemodel, sparsemodel.cli; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
