"""The shipped data sets: what is there is what the data sheet says, and it is small and usable."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from sparsemodel import datasets
from sparsemodel.datasets import Dataset, archive
from sparsemodel.interfaces.errors import DataError

LOADERS = {
    "ecg": datasets.load_ecg,
    "golub": datasets.load_golub,
    "khan": datasets.load_khan,
    "lucas": datasets.load_lucas,
}
SHIPPED = files("sparsemodel.datasets") / "data"


@pytest.fixture(params=sorted(LOADERS))
def data(request: pytest.FixtureRequest) -> Dataset:
    return LOADERS[request.param]()


def test_every_set_in_the_sheet_has_a_loader_and_a_file() -> None:
    sheet = archive.read_sheet(SHIPPED)
    assert sorted(sheet) == sorted(LOADERS)
    stored = {entry.name for entry in SHIPPED.iterdir() if entry.name.endswith(".npz")}
    assert stored == {f"{name}.npz" for name in sheet}


def test_agrees_with_its_data_sheet(data: Dataset) -> None:
    entry = archive.read_sheet(SHIPPED)[data.name]
    assert list(data.X.shape) == entry["shape"]
    assert data.target_names == tuple(entry["target_names"])
    assert data.sha256 == entry["sha256"]
    for text in (entry["title"], entry["target"], entry["preprocessing"]):
        assert text in data.description
    assert (data.source, data.licence) == (entry["source"], entry["licence"])


def test_is_ready_for_use(data: Dataset) -> None:
    n, p = data.X.shape
    assert data.X.dtype == np.float64
    assert data.y.shape == (n,)
    assert len(set(data.feature_names)) == len(data.feature_names) == p
    assert np.isfinite(data.X).all()
    assert np.isfinite(data.y).all()
    assert np.ptp(data.X, axis=0).all() or data.name == "ecg", "a column is constant"
    if data.target_names:
        assert sorted(set(data.y.tolist())) == list(range(len(data.target_names)))


def test_arrays_belong_to_the_caller(data: Dataset) -> None:
    data.y[:] = 0
    data.X[0] = np.nan
    again = LOADERS[data.name]()
    assert np.isfinite(again.X).all()
    assert np.ptp(again.y) > 0


@pytest.mark.parametrize(
    ("name", "counts"), [("golub", [27, 11]), ("khan", [11, 29, 18, 25])], ids=["golub", "khan"]
)
def test_class_sizes_are_the_published_ones(name: str, counts: list[int]) -> None:
    assert np.bincount(LOADERS[name]().y).tolist() == counts


def test_khan_marks_the_published_test_samples() -> None:
    data = datasets.load_khan()
    is_test = data.extra["is_test"]
    assert np.bincount(data.y[is_test]).tolist() == [3, 6, 6, 5]
    assert np.bincount(data.y[~is_test]).tolist() == [8, 23, 12, 20]


def test_ecg_basis_is_orthonormal_and_compresses_the_signal() -> None:
    data = datasets.load_ecg()
    np.testing.assert_allclose(data.X.T @ data.X, np.eye(1024), atol=1e-12)
    energy = np.sort((data.X.T @ data.y) ** 2)[::-1]
    assert energy[:128].sum() / energy.sum() == pytest.approx(0.992, abs=5e-4)


def test_everything_shipped_is_small_and_its_licences_are_with_it() -> None:
    sizes = [len(entry.read_bytes()) for entry in SHIPPED.iterdir()]
    assert sum(sizes) < 1.5e6
    licences = files("sparsemodel.datasets") / "licenses"
    for entry in archive.read_sheet(SHIPPED).values():
        if entry["licence"] != "CC0-1.0":
            assert (licences / entry["licence_file"]).read_text(encoding="utf-8").strip()


def test_repr_is_one_short_line(data: Dataset) -> None:
    assert len(repr(data)) < 80
    assert data.name in repr(data)


def test_a_damaged_file_is_an_error_that_says_so(tmp_path: Path) -> None:
    (tmp_path / archive.SHEET).write_text('[golub]\nsha256 = "0"\n', encoding="utf-8")
    (tmp_path / "golub.npz").write_bytes(b"not an archive")
    with pytest.raises(DataError, match=r"golub\.npz is damaged or was replaced"):
        archive.read_entry(tmp_path, "golub")


def test_an_unknown_name_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(DataError, match="ecg, golub, khan, lucas"):
        archive.read_entry(SHIPPED, "iris")


def test_a_data_set_that_is_not_shipped_is_answered_by_those_that_are() -> None:
    with pytest.raises(AttributeError, match=r"load_iris.*data sets are load_ecg, load_golub"):
        datasets.load_iris()
