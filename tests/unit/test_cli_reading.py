"""Tables from files: the same numbers in every format, and errors that name the place."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsemodel.cli.exits import UsageError
from sparsemodel.cli.reading import Columns, read_table
from sparsemodel.cli.reading.delimited import read_delimited
from sparsemodel.cli.reading.svmlight import read_svmlight
from sparsemodel.interfaces import DataError

NUMBERS = st.floats(allow_nan=False, allow_infinity=False, width=64)


def text(tmp_path: Path, content: str, name: str = "t.csv") -> str:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    return str(path)


def table_of(content: str, **columns: object):
    return read_delimited(io.StringIO(content, newline=""), Columns(**columns), where="t.csv")


def test_numbers_are_those_that_tables_write() -> None:
    """Python reads 2020_1 as 20201: months as names would be a row, and codes would be numbers."""
    months = table_of("2019_1,2019_2,2020_1\n1,2,3\n4,5,7\n", needs_target=False)
    assert months.names == ("2019_1", "2019_2", "2020_1")
    assert months.X.shape == (2, 3)
    classes = table_of("x,y\n1,1_2\n2,2_1\n", target="y")
    assert classes.target.tolist() == ["1_2", "2_1"]
    with pytest.raises(DataError, match=r"line 3, column 'x': '1_000' is not a number"):
        table_of("x,y\n1,1\n1_000,2\n", target="y")


def test_blank_lines_are_no_rows() -> None:
    table = table_of("\n  \na,y\n1,2\n\n3,4\n \n", target="y")
    assert table.names == ("a",)
    assert table.X.tolist() == [[1.0], [3.0]]
    with pytest.raises(DataError, match="line 6, column 'a'"):
        table_of("\n\na,y\n1,2\n\nx,4\n", target="y")


def test_standard_input_may_begin_with_a_byte_order_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    given = io.TextIOWrapper(io.BytesIO('\ufeff"a",y\n1,2\n3,5\n'.encode()), encoding="latin-1")
    monkeypatch.setattr("sys.stdin", given)
    assert read_table("-", Columns(target="y")).names == ("a",)


def test_a_parquet_table_without_rows_is_named(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    file = tmp_path / "t.parquet"
    pd.DataFrame({"a": [1.0], "y": [2.0]})[:0].to_parquet(file)
    with pytest.raises(DataError, match=r"t\.parquet has columns but no rows"):
        read_table(str(file), Columns(target="y"))


# ---- delimited text ------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(
    rows=st.integers(1, 4).flatmap(
        lambda p: st.lists(st.lists(NUMBERS, min_size=p, max_size=p), min_size=1, max_size=5)
    ),
    delimiter=st.sampled_from([",", ";", "\t", "|"]),
    quoted=st.booleans(),
)
def test_what_was_written_is_read(rows: list[list[float]], delimiter: str, quoted: bool) -> None:
    mark = '"' if quoted else ""
    names = [f"f{delimiter}{j}" if quoted else f"f{j}" for j in range(len(rows[0]))]
    lines = [delimiter.join(f"{mark}{cell}{mark}" for cell in row) for row in [names, *rows]]
    table = table_of("\r\n".join(lines), delimiter=delimiter)
    assert table.names == tuple(names)
    np.testing.assert_array_equal(table.X, np.array(rows))


def test_columns_play_their_parts() -> None:
    content = "id,a,y,b,w\n1,2,0,3,1\n2,4,1,5,2\n"
    table = table_of(content, target="y", weights="w", drop=("id",))
    assert table.names == ("a", "b")
    np.testing.assert_array_equal(table.X, [[2, 3], [4, 5]])
    np.testing.assert_array_equal(table.target, [0, 1])
    np.testing.assert_array_equal(table.weights, [1, 2])
    chosen = table_of(content, target="3", keep=("b", "a"))
    assert chosen.names == ("b", "a")
    np.testing.assert_array_equal(chosen.X, [[3, 2], [5, 4]])


def test_without_a_header_columns_are_numbers() -> None:
    table = table_of("1,2,3\n4,5,6\n", target="-1")
    assert table.names is None
    np.testing.assert_array_equal(table.X, [[1, 2], [4, 5]])
    np.testing.assert_array_equal(table.target, [3, 6])


def test_a_header_of_numbers_is_read_as_data_and_that_is_said() -> None:
    (note,) = table_of("2019,2020\n0.5,1\n1.5,2\n").notes
    assert "read as data" in note
    assert table_of("y2019,2020\n0.5,1\n1.5,2\n").notes == ()
    notes = table_of("2019,2020\n0.5,\n1.5,2\n1,1\n", missing="drop").notes
    assert [words in note for words, note in zip(("as data", "1 row"), notes, strict=True)] == [
        True
    ] * 2


@pytest.mark.parametrize("order", ["text first", "number first"])
def test_a_target_may_be_text(order: str) -> None:
    labels = ["b", "1"] if order == "text first" else ["1", "b"]
    table = table_of(f"x,y\n0.5,{labels[0]}\n1.5, {labels[1]} \n", target="y")
    assert table.target.tolist() == labels
    np.testing.assert_array_equal(table.X, [[0.5], [1.5]])


def test_numbers_that_look_like_text_are_numbers() -> None:
    table = table_of("x,y\n1,0\n?,1\n3,1\n", target="y", missing="drop")
    assert table.target.dtype == np.float64
    np.testing.assert_array_equal(table.X, [[1], [3]])
    assert table.notes == ("1 row(s) with missing values were left out.",)


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbfx,y\n1,2\n")
    assert read_table(str(path), Columns(target="y")).names == ("x",)


def test_a_pipe_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pipe(io.StringIO):
        def seekable(self) -> bool:
            return False

    monkeypatch.setattr("sys.stdin", Pipe("x,y\n1,2\n3,4\n"))
    np.testing.assert_array_equal(read_table("-", Columns(target="y")).target, [2, 4])


@pytest.mark.parametrize(
    ("content", "columns", "said"),
    [
        ("", {}, "is empty"),
        ("x,y\n", {}, "no rows"),
        ("x,y\n?,1\n", {"missing": "drop"}, "no rows left"),
        ("x,x\n1,2\n", {}, "two columns named 'x'"),
        ("x,y\n1,2\n1,2,3\n", {}, "line 3: 3 fields, and the first line has 2"),
        ("x,y\n1,2\n\n1,red\n", {}, "line 4, column 'y': 'red' is not a number"),
        ("x,y\n1,2\n,2\n", {}, "line 3, column 'x': the value is missing"),
        ("x,y\n1,2\n1,nan\n", {}, "line 3, column 'y': the value is missing"),
        ("x,y\n1,2\n1,-inf\n", {}, "line 3, column 'y': the value is infinite"),
        ("x,y\n1,2\n", {"drop": ("x", "y")}, "no column left"),
    ],
)
def test_unusable_text_is_named(content: str, columns: dict[str, object], said: str) -> None:
    with pytest.raises(DataError, match=said):
        table_of(content, **columns)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"target": "prize"}, "no column 'prize'; did you mean 'price'?"),
        ({"target": "0"}, "no column '0'"),
        ({"target": "9"}, "no column '9'"),
        ({"target": "price", "keep": ("price",)}, "cannot be a feature and something else"),
    ],
)
def test_columns_that_are_not_there(columns: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        table_of("size,price\n1,2\n", **columns)
    assert said in str(caught.value)


@pytest.mark.parametrize("columns", [{"target": "price"}, {"target": "1"}])
def test_a_file_with_spaces_between_its_fields_is_told_of_delimiters(
    columns: dict[str, object],
) -> None:
    with pytest.raises((UsageError, DataError), match="write --delimiter ' '"):
        table_of("size price\n1 2\n", **columns)
    assert table_of("size price\n1 2\n", target="price", delimiter=" ").X.shape == (1, 1)
    with pytest.raises(UsageError, match="it has size"):
        table_of("size\n1\n", target="price")


def test_bytes_are_not_text(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"x,y\n1,\xff\xfe\n")
    with pytest.raises(DataError, match="not text in UTF-8"):
        read_table(str(path), Columns())


def test_the_format_must_be_known(tmp_path: Path) -> None:
    path = text(tmp_path, "x\n1\n", "t.dat")
    with pytest.raises(UsageError, match="--format"):
        read_table(path, Columns())
    assert read_table(path, Columns(), kind="csv").names == ("x",)
    with pytest.raises(DataError, match="more than the limit"):
        read_table(path, Columns(max_bytes=2), kind="csv")


# ---- svmlight ------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(NUMBERS, st.dictionaries(st.integers(1, 30), NUMBERS, max_size=5)),
        min_size=1,
        max_size=6,
    )
)
def test_svmlight_is_read_as_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[float, dict[int, float]]]
) -> None:
    lines = [
        " ".join([repr(label), *(f"{j}:{v!r}" for j, v in sorted(entries.items()))])
        for label, entries in rows
    ]
    path = tmp_path_factory.mktemp("svm") / "t.svm"
    path.write_text("# a comment\n" + " # more\n".join(lines) + "\n\n", encoding="utf-8")
    table = read_svmlight(path, Columns())
    dense = np.zeros((len(rows), max((max(e, default=1) for _, e in rows), default=1)))
    for i, (_, entries) in enumerate(rows):
        for j, value in entries.items():
            dense[i, j - 1] = value
    np.testing.assert_array_equal(table.target, [label for label, _ in rows])
    np.testing.assert_array_equal(table.X.toarray(), dense)


def test_svmlight_may_count_from_zero(tmp_path: Path) -> None:
    path = text(tmp_path, "1 0:2 2:3\n-1 1:4\n", "t.svm")
    np.testing.assert_array_equal(
        read_table(path, Columns()).X.toarray(), [[2.0, 0.0, 3.0], [0.0, 4.0, 0.0]]
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("# nothing\n", "is empty"),
        ("1 1:2\nspam 1:2\n", "line 2: the label 'spam'"),
        ("1 1:2\n1 2:x\n", "line 2: '2:x' is not of the form"),
        ("1 1:2\n1 3\n", "line 2: '3' is not of the form"),
        ("1 1:2\n1 -3:1\n", "line 2: '-3:1' is not of the form"),
        ("1 1.5:2\n", "line 1: '1.5:2' is not of the form"),
        ("1 qid:3 1:2\n", "qid"),
        ("1 1:nan\n", "NaN or infinite"),
    ],
)
def test_bad_svmlight_is_named(tmp_path: Path, content: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        read_table(text(tmp_path, content, "t.svm"), Columns())


def test_svmlight_has_no_columns_to_choose(tmp_path: Path) -> None:
    path = text(tmp_path, "1 1:2\n", "t.svm")
    for columns in (Columns(target="y"), Columns(drop=("a",))):
        with pytest.raises(UsageError):
            read_table(path, columns)


# ---- NumPy archives ------------------------------------------------------------------------------


def test_archives_with_names_and_weights(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    X = np.arange(6.0).reshape(2, 3)
    np.savez(path, X=X, y=[0, 1], c=[1.0, 2.0], names=["a", "b", "d"])
    table = read_table(str(path), Columns(weights="c", drop=("b",)))
    assert table.names == ("a", "d")
    np.testing.assert_array_equal(table.X, X[:, [0, 2]])
    np.testing.assert_array_equal(table.weights, [1, 2])
    with pytest.raises(UsageError, match="no array 'z'"):
        read_table(str(path), Columns(target="z"))


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_archives_of_sparse_matrices(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "t.npz"
    matrix = sp.random_array((5, 4), density=0.5, rng=np.random.default_rng(0), format=kind)
    sp.save_npz(path, matrix)
    with np.load(path) as parts:
        np.savez(path, y=np.arange(5), **dict(parts))
    table = read_table(str(path), Columns(drop=("2",)))
    np.testing.assert_array_equal(table.X.toarray(), matrix.toarray()[:, [0, 2, 3]])
    np.testing.assert_array_equal(table.target, np.arange(5))


def test_archives_are_not_unpickled(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    np.savez(path, X=np.array([["a"]], dtype=object), y=[1])
    with pytest.raises(DataError, match="not unpickled"):
        read_table(str(path), Columns())


def test_archives_that_lie_or_are_none(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    np.savez_compressed(path, X=np.zeros((1000, 1000)), y=np.zeros(1000))
    with pytest.raises(DataError, match="unpacks to"):
        read_table(str(path), Columns(max_bytes=1_000_000))
    path.write_bytes(b"PK but no archive")
    with pytest.raises(DataError, match="not a NumPy archive"):
        read_table(str(path), Columns())
    np.savez(path, Z=np.zeros(3))
    with pytest.raises(UsageError, match="--matrix"):
        read_table(str(path), Columns())
    with pytest.raises(DataError, match="must be a matrix"):
        read_table(str(path), Columns(matrix="Z"))


def test_an_array_larger_than_its_file_is_refused(tmp_path: Path) -> None:
    import zipfile

    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**3)}
    )
    path = tmp_path / "t.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", stream.getvalue() + b"\0" * 8)
    with pytest.raises(DataError, match="damaged"):
        read_table(str(path), Columns())


def test_an_inconsistent_sparse_matrix_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    np.savez(path, format="csr", shape=[2, 2], data=[1.0], indices=[7], indptr=[0, 1, 1], y=[0, 1])
    with pytest.raises(DataError, match="inconsistent"):
        read_table(str(path), Columns())


# ---- Parquet -------------------------------------------------------------------------------------


def test_parquet_like_csv(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = tmp_path / "t.parquet"
    frame = pd.DataFrame({"a": [1.0, 2.0, None], "kind": ["x", "y", "x"], "b": [1, 2, 3]})
    frame.to_parquet(path)
    table = read_table(str(path), Columns(target="kind", missing="drop"))
    assert table.names == ("a", "b")
    np.testing.assert_array_equal(table.X, [[1, 1], [2, 2]])
    assert table.target.tolist() == ["x", "y"]
    with pytest.raises(DataError, match="row 3, column 'a'"):
        read_table(str(path), Columns(target="kind"))
    table = read_table(str(path), Columns(target="b", missing="mean"))
    assert table.names == ("a", "kind[y]")
    np.testing.assert_array_equal(table.X, [[1, 0], [2, 1], [1.5, 0]])


def test_parquet_without_pyarrow_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sparsemodel.interfaces import MissingDependencyError

    path = tmp_path / "t.parquet"
    path.write_bytes(b"PAR1")
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(MissingDependencyError, match=r"pip install pandas pyarrow"):
        read_table(str(path), Columns())
