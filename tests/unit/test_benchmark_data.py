"""The larger data sets of the source tree unpack to what their data sheet says."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from sparsemodel.datasets import load_lucas

ROOT = Path(__file__).parents[2]
SMALL = ("bladder22k", "glioma_meth", "letter", "lucas_house", "mnist5k")


@pytest.fixture(autouse=True)
def source_tree_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.delitem(sys.modules, "benchmarks", raising=False)


def check(name: str) -> None:
    from benchmarks.data import load
    from benchmarks.data.load import FOLDER
    from sparsemodel.datasets.archive import read_sheet

    data = load(name)
    assert list(data.X.shape) == read_sheet(FOLDER)[name]["shape"]
    assert len(data.feature_names) == data.X.shape[1]
    assert data.y.shape == data.X.shape[:1]
    stored = data.X.data if sp.issparse(data.X) else data.X
    assert np.isfinite(stored).all()
    assert np.isfinite(data.y).all()
    if data.target_names:
        assert sorted(set(data.y.tolist())) == list(range(len(data.target_names)))


@pytest.mark.parametrize("name", SMALL)
def test_agrees_with_its_data_sheet(name: str) -> None:
    check(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["adult", "flights", "spam_text"])
def test_large_set_agrees_with_its_data_sheet(name: str) -> None:
    check(name)


def test_the_shipped_house_sales_are_a_quarter_of_the_records() -> None:
    from benchmarks.data import load

    part, whole = load_lucas(), load("lucas_house")
    columns = [whole.feature_names.index(name) for name in part.feature_names]
    np.testing.assert_array_equal(part.X, whole.X[::4, columns])
    np.testing.assert_array_equal(part.y, whole.y[::4])


def test_tfidf_rows_have_unit_length_and_follow_the_formula(rng: np.random.Generator) -> None:
    from benchmarks.data import tfidf

    counts = rng.poisson(1.0, (7, 5)) + np.eye(7, 5)
    counts[:, 0] += 1
    documents = (counts > 0).sum(axis=0)
    expected = np.zeros_like(counts)
    seen = counts > 0
    expected[seen] = (1 + np.log(counts[seen])) * np.broadcast_to(
        1 + np.log(8 / (1 + documents)), counts.shape
    )[seen]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(tfidf(sp.csr_array(counts)).toarray(), expected, rtol=1e-12)


def test_probe_features_are_half_permuted_copies(rng: np.random.Generator) -> None:
    from benchmarks.data import probe_features

    images = rng.integers(0, 256, (30, 12))
    X, real = probe_features(images, 60, seed=3)
    assert X.shape == (30, 60)
    assert real.sum() == 30
    genuine = {tuple(np.sort(column)) for column in X[:, real].T}
    probes = {tuple(np.sort(column)) for column in X[:, ~real].T}
    assert genuine == probes
    with pytest.raises(ValueError, match="even"):
        probe_features(images, 7)
