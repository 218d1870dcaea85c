"""Every estimator in the places where users of scikit-learn put one."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, StandardScaler

import sparsemodel as sm
from sparsemodel.sklearn import (
    SparseLinearRegression,
    SparseLinearRegressionCV,
    SparseLogisticRegression,
    SparseLogisticRegressionCV,
    SparsePoissonRegression,
    SparsePoissonRegressionCV,
    SparsePrecision,
    SparsePrecisionCV,
    SparseSVC,
    SparseSVCCV,
)

# Few candidates are quick, and the truth is often the last of them.
pytestmark = pytest.mark.filterwarnings("ignore:cross-validation chooses:UserWarning")

N, P = 90, 8
RNG = np.random.default_rng(5)
X = RNG.standard_normal((N, P))
SCORE = 1.5 * X[:, 1] - 1.2 * X[:, 6] + 0.3 * RNG.standard_normal(N)
TARGETS = {
    "real": SCORE + 0.4,
    "two": np.where(SCORE > 0.2, "yes", "no"),
    "three": np.digitize(SCORE, [-1.0, 1.0]),
    "counts": np.random.default_rng(6).poisson(np.exp(0.5 * SCORE)).astype(float),
}
GIVEN_K = {
    "linear": (SparseLinearRegression(k=2, ridge=0.05), "real"),
    "logistic": (SparseLogisticRegression(k=2, ridge=0.05), "two"),
    "multinomial": (SparseLogisticRegression(k=2, ridge=0.05), "three"),
    "svc": (SparseSVC(k=2, ridge=0.05), "two"),
    "poisson": (SparsePoissonRegression(k=2, ridge=0.05), "counts"),
}
CHOSEN_K = {
    "linear": (SparseLinearRegressionCV([1, 2, 4], cv=3, ridges=0.05), "real"),
    "logistic": (SparseLogisticRegressionCV([1, 2, 4], cv=3, ridges=0.05), "two"),
    "multinomial": (SparseLogisticRegressionCV([1, 2], cv=3, ridges=0.05), "three"),
    "svc": (SparseSVCCV([1, 2, 4], cv=3, ridges=0.05), "two"),
    "poisson": (SparsePoissonRegressionCV([1, 2, 4], cv=3, ridges=0.05), "counts"),
}
EVERY = [pytest.param(*pair, id=f"{name}-k") for name, pair in GIVEN_K.items()] + [
    pytest.param(*pair, id=f"{name}-cv") for name, pair in CHOSEN_K.items()
]
WITH_K = [pytest.param(*pair, id=name) for name, pair in GIVEN_K.items()]


@pytest.mark.parametrize(("estimator", "kind"), EVERY)
def test_it_ends_a_pipeline_on_a_frame(estimator: Any, kind: str) -> None:
    frame = pd.DataFrame(X, columns=[f"gene {j}" for j in range(P)])
    model = make_pipeline(StandardScaler().set_output(transform="pandas"), clone(estimator))
    model.fit(frame, TARGETS[kind])
    assert {"gene 1", "gene 6"} <= set(model[-1].get_feature_names_out())
    selected = model[-1].set_output(transform="pandas").transform(model[0].transform(frame))
    assert list(selected.columns) == list(model[-1].get_feature_names_out())
    assert np.isfinite(model.score(frame, TARGETS[kind]))
    assert model.predict(frame).shape == (N,)


@pytest.mark.parametrize(("estimator", "kind"), EVERY)
def test_sparse_and_dense_data_give_one_model(estimator: Any, kind: str) -> None:
    thin = np.where(np.abs(X) > 0.5, X, 0.0)
    dense = clone(estimator).fit(thin, TARGETS[kind])
    sparse = clone(estimator).fit(sp.csr_array(thin), TARGETS[kind])
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-6)
    predicted, expected = sparse.predict(sp.csc_matrix(thin)), dense.predict(thin)
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(predicted, expected, atol=1e-6)
    else:
        np.testing.assert_array_equal(predicted, expected)


@pytest.mark.parametrize(("estimator", "kind"), WITH_K)
def test_sparse_data_stay_sparse_in_a_pipeline(estimator: Any, kind: str) -> None:
    thin = sp.csc_array(np.where(np.abs(X) > 0.5, X, 0.0))
    model = make_pipeline(MaxAbsScaler(), clone(estimator)).fit(thin, TARGETS[kind])
    assert sp.issparse(model.transform(thin))
    assert model.transform(thin).shape == (N, 2)


@pytest.mark.parametrize(("estimator", "kind"), WITH_K)
def test_a_whole_weight_is_a_repetition(estimator: Any, kind: str) -> None:
    times = np.random.default_rng(7).integers(0, 4, N)
    weighted = clone(estimator).fit(X, TARGETS[kind], sample_weight=times)
    repeated = clone(estimator).fit(np.repeat(X, times, axis=0), np.repeat(TARGETS[kind], times))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-6)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-8)


@pytest.mark.parametrize(("estimator", "kind"), EVERY)
def test_the_certificate_is_about_the_model(estimator: Any, kind: str) -> None:
    model = clone(estimator).set_params(certify=True).fit(X, TARGETS[kind])
    certificate = model.certificate_
    assert certificate.bound <= model.objective_ * (1.0 + 1e-12)
    assert certificate.value == pytest.approx(model.objective_, rel=1e-9)


@pytest.mark.parametrize(("estimator", "kind"), WITH_K)
def test_in_grid_search_and_cross_validation(estimator: Any, kind: str) -> None:
    pipeline = make_pipeline(StandardScaler(), clone(estimator))
    name = pipeline.steps[-1][0]
    search = GridSearchCV(pipeline, {f"{name}__k": [1, 2], f"{name}__ridge": [0.01, 0.1]}, cv=2)
    search.fit(X, TARGETS[kind])
    assert search.best_params_[f"{name}__k"] == 2
    assert np.all(np.isfinite(cross_val_score(pipeline, X, TARGETS[kind], cv=2)))


@pytest.mark.parametrize(("estimator", "kind"), WITH_K)
def test_it_selects_for_somebody_else(estimator: Any, kind: str) -> None:
    selector = SelectFromModel(clone(estimator), threshold=1e-10).fit(X, TARGETS[kind])
    assert selector.get_support(indices=True).tolist() == [1, 6]


def test_a_class_that_a_training_part_lacks_is_named() -> None:
    X = np.random.default_rng(3).standard_normal((40, 3))
    y = np.repeat(["a", "b", "c"], [20, 19, 1])
    with pytest.raises(ValueError, match=r"of class 'c', in the training part of a fold"):
        SparseLogisticRegressionCV([1], cv=KFold(4)).fit(X, y)
    with pytest.raises(ValueError, match=r"one class, 'b', in the training part of a fold"):
        SparseLogisticRegressionCV([1], cv=KFold(2)).fit(X, np.repeat(["a", "b"], 20))
    with pytest.raises(ValueError, match=r"of class 'c'; SparseLogisticRegression needs"):
        SparseLogisticRegression(1).fit(X, y, sample_weight=(y != "c").astype(float))
    without = SparseLogisticRegressionCV([1], cv=KFold(4), fit_intercept=False).fit(X, y)
    assert np.isfinite(without.scores_).all()


def test_scores_that_are_no_numbers_choose_nothing() -> None:
    def second(model: Any, X: Any, y: Any) -> float:
        return np.nan if np.count_nonzero(model.coef_) == 2 else float(model.score(X, y))

    X = np.random.default_rng(4).standard_normal((30, 4))
    with pytest.raises(ValueError, match="is nan with k = 2 on a fold of 6 held-out samples"):
        SparseLinearRegressionCV([0, 1, 2], scoring=second).fit(X, X[:, 0] + X[:, 1])


@pytest.mark.parametrize("model", [SparseLogisticRegression(2), SparseLogisticRegressionCV([2])])
def test_a_class_without_weight_is_named(model: Any) -> None:
    letters = np.array(["a", "b", "c"])[TARGETS["three"]]
    wrong = clone(model).set_params(class_weight={"c": 0})
    with pytest.raises(ValueError, match=r"of class 'c' is 0; .* `X\[y != 'c'\], y\[y != 'c'\]`"):
        wrong.fit(X, letters)
    wrong.set_params(class_weight={0: -1.0})
    with pytest.raises(ValueError, match=r"of class 0 is -1; weights of classes must be positive"):
        wrong.fit(X, TARGETS["three"])


# ---- data frames ---------------------------------------------------------------------------------


def test_dates_are_no_numbers() -> None:
    for make in (pd.date_range, pd.period_range):
        days = make("2020-01-01", periods=N, freq="D")
        frame = pd.DataFrame(X).rename(columns=str).assign(day=days)
        for model in (SparseLinearRegression(2), SparsePrecision(2)):
            with pytest.raises(sm.DataTypeError, match="columns of dates or times: 'day'"):
                model.fit(frame, TARGETS["real"])


def test_frames_of_polars() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(X, schema=[f"f{j}" for j in range(P)])
    for estimator, kind in (*GIVEN_K.values(), *CHOSEN_K.values()):
        y = TARGETS[kind]
        ours = clone(estimator).fit(frame, polars.Series(y))
        same = clone(estimator).fit(pd.DataFrame(X, columns=frame.columns), y)
        np.testing.assert_array_equal(ours.coef_, same.coef_)
        np.testing.assert_array_equal(ours.predict(frame), same.predict(frame.to_pandas()))
        chosen = ours.set_output(transform="polars").transform(frame).columns
        assert chosen == same.get_feature_names_out().tolist()
    model = SparseLinearRegression(2)
    for given in ((frame.lazy(), y), (frame, polars.DataFrame({"y": y}).lazy())):
        with pytest.raises(sm.DataTypeError, match=r"df.collect\(\)"):
            model.fit(*given)
    dated = frame.with_columns(day=polars.Series(np.arange(N)).cast(polars.Date))
    with pytest.raises(sm.DataTypeError, match="columns of dates or times: 'day'"):
        model.fit(dated, y)


def test_tables_of_arrow() -> None:
    arrow = pytest.importorskip("pyarrow")
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(P)])
    table = arrow.Table.from_pandas(frame)
    model = SparseLinearRegression(2).fit(table, TARGETS["real"])
    assert model.get_feature_names_out().tolist() == ["f1", "f6"]
    np.testing.assert_array_equal(model.predict(table), model.predict(frame))


# ---- weights and groups, passed on ---------------------------------------------------------------

GROUPS = np.arange(N) % 9  # no fold of neighbours keeps them together
WEIGHTS = np.random.default_rng(7).integers(1, 4, N).astype(float)


class _Seeing(BaseEstimator):
    """Folds by groups that keep which groups they were given."""

    __metadata_request__split: ClassVar[dict[str, bool]] = {"groups": True}

    def __init__(self, seen: Any) -> None:
        self.seen = seen

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        self.seen.append(groups)
        return GroupKFold(3).split(X, y, groups)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        return 3


@pytest.mark.parametrize(("kind", "piped"), [("real", False), ("two", True)])
def test_weights_and_groups_reach_folds_within_folds(kind: str, piped: bool) -> None:
    cls = SparseLinearRegressionCV if kind == "real" else SparseLogisticRegressionCV
    inner = cls([1, 2, 4], cv=GroupKFold(3), ridges=0.05)
    y, parts = TARGETS[kind], list(GroupKFold(3).split(X, groups=GROUPS))
    by_hand = [
        clone(inner)
        .fit(X[train], y[train], sample_weight=WEIGHTS[train], groups=GROUPS[train])
        .score(X[test], y[test], sample_weight=WEIGHTS[test])
        for train, test in parts
    ]
    with sklearn.config_context(enable_metadata_routing=True):
        asked = inner.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        model = make_pipeline(FunctionTransformer(), asked) if piped else asked
        scores = cross_val_score(
            model, X, y, cv=GroupKFold(3), params={"sample_weight": WEIGHTS, "groups": GROUPS}
        )
        few = {f"{cls.__name__.lower()}__ridges" if piped else "ridges": [0.05]}
        search = GridSearchCV(model, few, cv=GroupKFold(3))
        search.fit(X, y, sample_weight=WEIGHTS, groups=GROUPS)
    np.testing.assert_allclose(scores, by_hand, rtol=1e-12)
    assert search.best_score_ == pytest.approx(np.mean(by_hand), rel=1e-12)


def test_groups_of_graphs_stay_together() -> None:
    one = SparsePrecisionCV([0, 1, 3], cv=GroupKFold(3)).fit(X, groups=GROUPS)
    given = list(GroupKFold(3).split(X, groups=GROUPS))
    np.testing.assert_array_equal(
        one.scores_, SparsePrecisionCV([0, 1, 3], cv=given).fit(X).scores_
    )
    with pytest.raises((TypeError, ValueError), match="shade"):
        SparsePrecisionCV([0, 1]).fit(X, shade=GROUPS)
    seen: list[Any] = []
    with sklearn.config_context(enable_metadata_routing=True):
        piped = make_pipeline(FunctionTransformer(), SparsePrecisionCV([0, 1, 3], cv=_Seeing(seen)))
        piped.fit(X, groups=GROUPS)
    np.testing.assert_array_equal(seen, [GROUPS])
    np.testing.assert_array_equal(one.scores_, piped[-1].scores_)
