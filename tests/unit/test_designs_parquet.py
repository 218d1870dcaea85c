"""Parquet files by path: rows read in order, names kept, what is not numeric refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import verify
from sparsemodel.designs import ChunkedDesign
from sparsemodel.designs.tables import parquet
from sparsemodel.interfaces import DataError, DataTypeError
from sparsemodel.numerics import budget as limits_of_time
from sparsemodel.testing.designs import EXACT, run_design_suite

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

N, P = 300, 6


@pytest.fixture(params=["kept", "too large to be kept"])
def held(request, monkeypatch) -> str:
    if request.param != "kept":
        monkeypatch.setattr(parquet, "KEPT_BYTES", 0)
    return request.param


def frame(kind: str = "float64") -> Any:
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.standard_normal((N, P)), columns=list("abcdef")).astype(kind)


def written(folder, table: Any, name: str = "t.parquet", groups: int = 70) -> Any:
    table.to_parquet(folder / name, row_group_size=groups)
    return folder / name


def test_laws(tmp_path, held):
    def make(array: np.ndarray) -> Any:
        names = [f"x{j}" for j in range(array.shape[1])]
        name = f"{len(list(tmp_path.iterdir()))}.parquet"
        return sm.as_design(written(tmp_path, pd.DataFrame(array, columns=names), name, 7))

    run_design_suite("parquet", make, tolerance=EXACT).raise_if_failed()


@pytest.mark.parametrize("groups", [9, 70, 1000])
def test_rows_come_in_any_order(tmp_path, groups, held):
    table = frame()
    rows = sm.as_design(str(written(tmp_path, table, groups=groups))).array
    exact = table.to_numpy()
    for part in (slice(0, 9), slice(9, 200), slice(250, 260), slice(3, 5), slice(300, 300)):
        np.testing.assert_array_equal(rows[part], exact[part])
    for some in (np.array([0, 69, 70, 299]), np.arange(5, 290, 7), np.array([], dtype=np.intp)):
        np.testing.assert_array_equal(rows[some], exact[some])
    np.testing.assert_array_equal(rows[::11], exact[::11])


def test_threads_read_the_same_rows(tmp_path, held):
    table = frame()
    exact = table.to_numpy()
    rows = sm.as_design(written(tmp_path, table, groups=9)).array

    def wrong(seed: int) -> int:
        starts = np.random.default_rng(seed).integers(0, N - 40, 20).tolist()
        return sum(not np.array_equal(rows[s : s + 40], exact[s : s + 40]) for s in starts)

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(wrong, range(4))) == 0


@pytest.mark.unrefereed("readings are counted, and the referee reads as well")
def test_the_same_answer_as_in_memory(tmp_path, held):
    table = frame()
    b = table["b"] - 2.0 * table["e"] + 0.1 * np.random.default_rng(1).standard_normal(N)
    path = written(tmp_path, table.assign(y=b))
    found = []
    for data in (table, sm.as_design(path, columns=list("abcdef"))):
        w = sm.Variable(P)
        loss = sm.huber_loss(sm.as_design(data) @ w + sm.Variable(), b)
        posed = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 2)
        found.append((posed.solve(), posed.certify()))
    (near, one), (far, two) = found
    assert list(near.support) == list(far.support) == ["b", "e"]
    assert near.value == pytest.approx(far.value, rel=1e-12)
    assert one.problem == two.problem  # a fingerprint of the same numbers
    assert far.readings > 0.0
    verify(one, posed.form)
    assert "b" in str(far)


@pytest.mark.parametrize("calls", [0, 1, 3])
def test_rows_are_the_same_after_an_interruption(tmp_path, held, calls, monkeypatch):
    table, write = frame(), parquet.ParquetRows._write
    rows = sm.as_design(written(tmp_path, table)).array

    def interrupted(self, batch, out):
        nonlocal calls
        calls -= 1
        if calls == -1:
            raise KeyboardInterrupt
        write(self, batch, out)

    monkeypatch.setattr(parquet.ParquetRows, "_write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        rows[0:N]
    np.testing.assert_array_equal(rows[0:N], table.to_numpy())


@pytest.mark.unrefereed("readings are counted, and the referee reads as well")
def test_what_fits_is_decoded_once_and_again_for_a_verification(tmp_path):
    rng = np.random.default_rng(4)
    table = pd.DataFrame(rng.standard_normal((900, 40))).rename(columns="x{}".format)
    path = written(tmp_path, table)
    design = sm.as_design(path)
    y = np.where(table["x1"] - table["x7"] + rng.logistic(size=900) > 0.0, 1.0, -1.0)
    w = sm.Variable(40)
    goal = sm.logistic_loss(design @ w + sm.Variable(), y) + sm.ridge(w, 0.1)
    posed = sm.Problem(sm.minimize(goal), sm.card(w) <= 2)
    assert posed.solve().readings == 1.0
    certificate = posed.certify()
    posed.prove(time_limit=5.0)
    assert design.bytes_read == design.nbytes
    verify(certificate, posed.form)
    assert design.bytes_read == 2 * design.nbytes
    written(tmp_path, table + 1.0)
    with pytest.raises(DataError, match="has changed; open it again"):
        posed.solve()


def test_a_folder_is_one_table_in_the_order_of_its_numbers(tmp_path):
    table = frame()
    for part in range(12):
        written(tmp_path, table.iloc[25 * part : 25 * part + 25], f"part.{part}.parquet")
    design = sm.as_design(tmp_path)
    np.testing.assert_array_equal(design.to_array(), table.to_numpy())
    assert design.names == tuple("abcdef")


def test_types_of_columns(tmp_path, held):
    table = frame().assign(n=np.arange(N), yes=np.arange(N) % 2 == 0)
    table.index = np.arange(N)[::-1]  # written as a column of its own
    design = sm.as_design(written(tmp_path, table))
    np.testing.assert_array_equal(design.to_array(), table.to_numpy(dtype=float))
    assert isinstance(design, ChunkedDesign)
    single = sm.as_design(written(tmp_path, frame("float32")))
    assert "Parquet float32 300 x 6" in single.describe()
    written(tmp_path, frame("float32").assign(a=1.0))
    with pytest.raises(DataError, match="has changed; open it again"):
        single.matvec(np.ones(P))


def test_what_cannot_be_read_is_said_kindly(tmp_path):
    table = frame().assign(town=pd.Categorical(["x", "y"] * (N // 2)))
    table["gone"] = table["a"].where(np.arange(N) != 75).astype("Float64")
    path = written(tmp_path, table)
    with pytest.raises(DataTypeError, match=r"not numeric: 'town'.*columns=.*sm\.encode"):
        sm.as_design(path)
    with pytest.raises(DataError, match="no column 'z'; it has a, b"):
        sm.as_design(path, columns=["a", "z"])
    w = sm.Variable(2)
    missing = sm.squared_loss(sm.as_design(path, columns=["a", "gone"]) @ w, np.ones(N))
    with pytest.raises(DataError, match="NaN or an infinite value, the first at row 75"):
        sm.Problem(sm.minimize(missing), sm.card(w) <= 1).solve()
    with pytest.raises(DataError, match="there is no Parquet file"):
        sm.as_design(tmp_path / "absent.parquet")
    (tmp_path / "bad.parquet").write_text("hello")
    with pytest.raises(DataError, match="is no readable Parquet file"):
        sm.as_design(tmp_path / "bad.parquet")
    with pytest.raises(DataTypeError, match=r"columns= is for.*df\[columns\]"):
        sm.as_design(table, columns=["a"])
    np.savez(tmp_path / "d.npz", A=np.ones((2, 2)))
    with np.load(tmp_path / "d.npz") as archive, pytest.raises(DataTypeError, match=r"A\['A'\]"):
        sm.as_design(archive)


@pytest.mark.unrefereed("readings are counted, and the referee reads as well")
def test_nothing_is_read_for_a_bound_when_time_is_up(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((3000, 8))
    np.save(tmp_path / "A.npy", A)
    found = []
    for quick in (2**26, 0):  # bytes that are read in a moment
        monkeypatch.setattr(limits_of_time, "_QUICK", quick)
        w = sm.Variable(8)
        loss = sm.logistic_loss(np.load(tmp_path / "A.npy", mmap_mode="r") @ w, np.sign(A[:, 0]))
        posed = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 2)
        solution = posed.solve(time_limit=0.0)
        assert solution.value >= solution.bound >= 0.0
        found.append(solution.readings)
    assert found[1] < found[0] - 0.9


def test_a_sample_of_a_large_file_does_not_decode_all_of_it(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "KEPT_BYTES", 0)
    monkeypatch.setattr(parquet, "_BATCH_BYTES", 2**14)
    A = np.random.default_rng(0).standard_normal((20_000, 5)) * np.arange(1.0, 6.0)
    frame = pd.DataFrame(A, columns=list("abcde"))
    frame.to_parquet(tmp_path / "a.parquet", index=False, row_group_size=2000)
    design = sm.as_design(tmp_path / "a.parquet")
    found = design.sampled_square_norms(800)
    np.testing.assert_allclose(found, np.square(A).mean(axis=0), rtol=0.3)
    assert design.bytes_read <= 0.3 * A.nbytes
