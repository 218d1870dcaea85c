"""Designs in memory-mapped files: the laws of designs, and memory that stays small."""

from __future__ import annotations

import itertools
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.compiler.choice import openings
from sparsemodel.designs import ChunkedDesign, DenseDesign, TransformedDesign, as_design
from sparsemodel.interfaces import Access, DataTypeError
from sparsemodel.interfaces.design import RestrictedDesign
from sparsemodel.numerics import RegressionObjective
from sparsemodel.numerics.search.hessian_rows import HessianRows
from sparsemodel.testing.designs import EXACT, run_design_suite
from sparsemodel.testing.laws.design_laws import Tolerance


def mapped(folder: Path, array: np.ndarray, order: Any = "C", mode: Any = "r") -> np.memmap:
    """Write ``array`` to a file of its own and map it."""
    path = folder / f"{len(list(folder.iterdir()))}.bin"
    out = np.memmap(path, dtype=array.dtype, mode="w+", shape=array.shape, order=order)
    out[...] = array
    out.flush()
    return np.memmap(path, dtype=array.dtype, mode=mode, shape=array.shape, order=order)


def maker(folder: Path, order: str, dtype: Any, **sizes: int) -> Callable[[np.ndarray], Any]:
    return lambda array: ChunkedDesign(mapped(folder, array.astype(dtype), order), **sizes)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("block", [64, pytest.param(2**20, marks=pytest.mark.slow)])
def test_laws(tmp_path, order, block):
    make = maker(tmp_path, order, np.float64, block_bytes=block)
    run_design_suite(f"mapped {order} {block}", make, tolerance=EXACT).raise_if_failed()


@pytest.mark.parametrize("order", ["F", pytest.param("C", marks=pytest.mark.slow)])
def test_laws_without_room_for_columns(tmp_path, order):
    make = maker(tmp_path, order, np.float64, block_bytes=64, column_bytes=0)
    run_design_suite(f"mapped {order}, products", make, tolerance=EXACT).raise_if_failed()


def test_laws_in_single_precision(tmp_path):
    make = maker(tmp_path, "C", np.float32, block_bytes=64)
    report = run_design_suite("mapped float32", make, tolerance=Tolerance(relative=1e-5))
    report.raise_if_failed()


@pytest.mark.parametrize("dtype", ["u1", "i2", ">f8", ">f4", "f2", "?"])
def test_other_types_are_converted_by_the_block(tmp_path, dtype):
    rng = np.random.default_rng(0)
    array = rng.integers(0, 2, (20, 7)).astype(dtype)
    design = as_design(mapped(tmp_path, array))
    x, r = rng.standard_normal(7), rng.standard_normal(20)
    exact = array.astype(np.float64)
    np.testing.assert_allclose(design.matvec(x), exact @ x, rtol=1e-13)
    np.testing.assert_allclose(design.rmatvec(r), exact.T @ r, rtol=1e-13)
    np.testing.assert_array_equal(design.restrict(np.array([1, 4])).to_array(), exact[:, [1, 4]])


@pytest.mark.parametrize("view", [np.s_[3:, 2:], np.s_[::2], np.s_[::-1, ::-1], np.s_[:, ::3]])
def test_views_of_a_mapping(tmp_path, view):
    array = np.random.default_rng(1).standard_normal((40, 12))
    part = mapped(tmp_path, array)[view]
    design = as_design(part)
    assert isinstance(design, ChunkedDesign)
    x = np.random.default_rng(2).standard_normal(part.shape[1])
    np.testing.assert_allclose(design.matvec(x), array[view] @ x, rtol=1e-12)
    np.testing.assert_allclose(design.rmatvec(design.matvec(x)), array[view].T @ (array[view] @ x))


def test_a_private_mapping_keeps_its_changes(tmp_path):
    private = mapped(tmp_path, np.ones((4096, 4)), mode="c")
    private[7] = 5.0
    design = as_design(private)
    for _ in range(2):
        assert design.matvec(np.ones(4))[7] == 20.0


def test_columns_are_read_once_per_change_of_support(tmp_path):
    array = np.random.default_rng(3).standard_normal((64, 16))
    design = ChunkedDesign(mapped(tmp_path, array), block_bytes=1024)
    first = np.array([1, 5, 9])
    restricted = design.restrict(first)
    assert isinstance(restricted, DenseDesign)
    assert design.bytes_read == array.nbytes
    assert design.restrict_again(first, first, restricted) is restricted
    assert design.bytes_read == array.nbytes
    second = np.array([0, 5, 9])
    again = design.restrict_again(second, first, restricted)
    assert design.bytes_read == 2 * array.nbytes
    np.testing.assert_array_equal(again.to_array(), array[:, second])


def test_columns_in_use_are_not_read_again(tmp_path):
    rng = np.random.default_rng(2)
    array = rng.standard_normal((40, 9))
    design = ChunkedDesign(mapped(tmp_path, array))
    some, many = np.array([2, 6]), np.array([0, 2, 5, 6])
    held = design.restrict(many)
    assert design.bytes_read == array.nbytes
    part = design.restrict(some)
    assert design.bytes_read == array.nbytes
    np.testing.assert_array_equal(part.to_array(), array[:, some])
    design.restrict(np.array([1, 2]))
    assert design.bytes_read == 2 * array.nbytes
    file = np.memmap(design.array.filename, dtype=float, mode="r+", shape=array.shape)
    file[3, 6] = 7.0
    file.flush()
    assert design.restrict(some).to_array()[3, 1] == 7.0  # the file has changed
    design.forget()
    read = design.bytes_read
    design.restrict(many)
    assert design.bytes_read == read + array.nbytes
    del held, part
    writable = ChunkedDesign(mapped(tmp_path, array, mode="r+"))
    held = writable.restrict(many)
    writable.restrict(some)
    assert writable.bytes_read == 2 * array.nbytes  # it may be written to at any time
    assert held.shape == (40, 4)


def test_columns_that_do_not_fit_are_not_gathered(tmp_path):
    array = np.random.default_rng(4).standard_normal((64, 16))
    design = ChunkedDesign(mapped(tmp_path, array), column_bytes=64 * 8 * 2)
    assert isinstance(design.restrict(np.array([1, 2])), DenseDesign)
    assert isinstance(design.restrict(np.array([1, 2, 3])), RestrictedDesign)


def test_a_column_major_file_reads_the_columns_of_a_sparse_vector(tmp_path):
    array = np.random.default_rng(5).standard_normal((64, 16))
    design = ChunkedDesign(mapped(tmp_path, array, order="F"))
    assert Access.COLUMNS in design.access
    x = np.zeros(16)
    x[3] = 2.0
    np.testing.assert_allclose(design.matvec(x), 2.0 * array[:, 3])
    assert design.bytes_read == 64 * 8


def test_complex_files_are_refused(tmp_path):
    with pytest.raises(DataTypeError, match="complex"):
        as_design(mapped(tmp_path, np.ones((3, 2), dtype=complex)))


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("column_bytes", [0, 2**29])
def test_the_same_solution_as_in_memory(tmp_path, intercept, column_bytes):
    rng = np.random.default_rng(6)
    array = rng.standard_normal((200, 40))
    b = array[:, [3, 8, 30]] @ [2.0, -1.0, 3.0] + 0.1 * rng.standard_normal(200)
    solutions = []
    for design in (array, ChunkedDesign(mapped(tmp_path, array), column_bytes=column_bytes)):
        w = sm.Variable(40)
        prediction = sm.as_design(design) @ w
        if intercept:
            prediction = prediction + sm.Variable()
        problem = sm.Problem(sm.minimize(sm.squared_loss(prediction, b)), sm.card(w) <= 3)
        solutions.append((problem.solve("nhtp"), w.value))
    (first, x), (second, y) = solutions
    assert first.support.tolist() == second.support.tolist() == [3, 8, 30]
    np.testing.assert_allclose(x, y, atol=1e-9)
    np.testing.assert_allclose(first.value, second.value, rtol=1e-9)


@pytest.mark.unrefereed("readings are counted, and the referee reads as well")
def test_readings_between_a_file_and_another_matrix_are_counted(tmp_path):
    rng = np.random.default_rng(5)
    np.save(tmp_path / "a.npy", rng.standard_normal((200, 6)))
    A = np.load(tmp_path / "a.npy", mmap_mode="r")
    X = sm.Variable((6, 2))
    loss = sm.squared_loss(sm.as_design(A) @ X @ rng.standard_normal((2, 3)), A[:, :3])
    problem = sm.Problem(sm.minimize(loss + sm.ridge(X, 1e-3)), sm.card(X) <= 3)
    solution = problem.solve()
    assert solution.readings >= 1.0
    assert solution.bytes_read == pytest.approx(solution.readings * A.nbytes)
    assert problem.certify().readings >= 1.0


@pytest.mark.unrefereed("readings are counted, and the referee reads as well")
def test_passes_are_the_readings_of_the_file(tmp_path):
    rng = np.random.default_rng(7)
    array = rng.standard_normal((300, 50))
    b = array[:, [3, 8, 30]] @ [2.0, -1.0, 3.0] + 0.1 * rng.standard_normal(300)
    design = ChunkedDesign(mapped(tmp_path, array))
    w = sm.Variable(50)
    solution = sm.Problem(sm.minimize(sm.squared_loss(design @ w, b)), sm.card(w) <= 3).solve(
        "nhtp"
    )
    readings = design.bytes_read / array.nbytes
    assert abs(readings - 2.0 * solution.passes) <= 2.0


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_resident_memory_stays_far_below_the_file(tmp_path):
    # 1 GiB in the file; the process may grow by a few blocks, not by the file.
    n, p = 2**16, 2**11
    path = tmp_path / "large.bin"
    rng = np.random.default_rng(8)
    with path.open("wb") as file:
        for _ in range(64):
            file.write(rng.standard_normal((n // 64, p)).tobytes())
    code = f"""
        import numpy as np, sparsemodel as sm
        def resident(key):
            lines = open("/proc/self/status").read().splitlines()
            return next(int(line.split()[1]) for line in lines if line.startswith(key)) / 1024
        A = np.memmap({str(path)!r}, dtype=np.float64, mode="r", shape=({n}, {p}))
        x = np.zeros({p}); x[::200] = 1.0
        design = sm.as_design(A)
        b = design.matvec(x)
        before = resident("VmRSS")
        w = sm.Variable({p})
        problem = sm.Problem(sm.minimize(sm.squared_loss(design @ w, b)), sm.card(w) <= 11)
        problem.solve("nhtp")
        assert np.allclose(w.value, x, atol=1e-8)
        print(resident("VmHWM") - before)
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert float(run.stdout) < 400.0  # megabytes


def test_blocks_cover_the_file_once(tmp_path):
    array = np.arange(60.0).reshape(12, 5)
    for order, block in itertools.product("CF", [1, 100, 10**6]):
        design = ChunkedDesign(mapped(tmp_path, array, order=order), block_bytes=block)
        design.rmatvec(np.ones(12))
        assert design.bytes_read == array.nbytes


@pytest.mark.unrefereed("readings are counted, and the referee reads as well")
@pytest.mark.parametrize("intercept", [False, True])
def test_newton_steps_read_a_file_once_where_columns_do_not_fit(tmp_path, rng, intercept):
    A = rng.standard_normal((3000, 12))
    np.save(tmp_path / "A.npy", A)
    b = np.where(0.1 * A[:, 2] + rng.standard_normal(3000) > 0.0, 1.0, -1.0)

    def posed(design):
        w, c = sm.Variable(12), sm.Variable()
        at = sm.as_design(design) @ w
        loss = sm.logistic_loss(at + c if intercept else at, b)
        return sm.Problem(sm.minimize(loss + sm.ridge(w, 1e-3)), sm.card(w) <= 3)

    file = np.load(tmp_path / "A.npy", mmap_mode="r")
    design = ChunkedDesign(file, block_bytes=2**16, column_bytes=2**14)  # not one column
    solution, expected = posed(design).solve(), posed(A).solve()
    assert solution.value == pytest.approx(expected.value, rel=1e-12)
    assert solution.readings <= 20
    narrow, h = design.restrict(np.array([1, 4, 7])), rng.random(3000)
    some, read = A[:, [1, 4, 7]], design.bytes_read
    moved = TransformedDesign(narrow, means=np.ones(3), scale=np.full(3, 2.0))
    for held, right in ((narrow, some), (moved, 2.0 * (some - 1.0))):
        np.testing.assert_allclose(held.gram(h), (right.T * h) @ right, rtol=1e-10, atol=1e-9)
    assert design.bytes_read == read + 2 * A.nbytes


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_one_reading_brings_a_point_with_its_derivatives(tmp_path, rng, ridge):
    A, x = rng.standard_normal((700, 9)) + 0.5, np.zeros(9)
    np.save(tmp_path / "A.npy", A)
    support = np.array([1, 4, 8])
    x[support] = rng.standard_normal(3)
    design = ChunkedDesign(np.load(tmp_path / "A.npy", mmap_mode="r"), column_bytes=64)

    def posed(data):
        w, offset = sm.Variable(9), np.linspace(-1.0, 1.0, 700)
        loss = sm.poisson_loss(
            data @ w + offset, np.arange(700) % 4, weights=offset + 2.0, reduction="sum"
        )
        problem = sm.Problem(sm.minimize(loss + sm.ridge(w, ridge)), sm.card(w) <= 3)
        return RegressionObjective(problem.form)

    there, here = posed(design), posed(A)
    read = design.bytes_read
    at, expected = there.point_from(x), here.point_from(x)
    gradient, hessian = there.gradient(at), there.hessian(at, support)
    assert there.point(support, x[support]) is at
    assert design.bytes_read == read + A.nbytes
    assert there.work.passes == 0.5
    assert at.value == pytest.approx(expected.value, rel=1e-13)
    np.testing.assert_allclose(gradient, here.gradient(expected), rtol=1e-10)
    np.testing.assert_allclose(hessian, here.hessian(expected, support), rtol=1e-10)
    other = np.array([0, 4])  # of another support it is another reading
    np.testing.assert_allclose(there.hessian(at, other), here.hessian(expected, other), rtol=1e-10)
    if ridge:
        assert there.bounds.value == pytest.approx(here.bounds.value, rel=1e-9)

    some = HessianRows(there, at, places=-5)  # not the whole matrix
    whole = HessianRows(here, expected)
    np.testing.assert_allclose(some.scale, whole.scale, rtol=1e-10)
    np.testing.assert_allclose(some.rows(np.arange(9)), whole.rows(np.arange(9)), atol=1e-10)


def test_files_are_searched_from_a_sample_without_perturbations(tmp_path, rng, monkeypatch):
    A = rng.standard_normal((6400, 32))
    np.save(tmp_path / "A.npy", A)
    file = np.load(tmp_path / "A.npy", mmap_mode="r")
    b = np.where(A[:, 2] - A[:, 5] + rng.standard_normal(6400) > 0.0, 1.0, -1.0)
    w = sm.Variable(32)
    goal = sm.minimize(sm.logistic_loss(sm.as_design(file) @ w, b) + sm.ridge(w, 0.01))
    monkeypatch.setattr(openings, "TOO_LONG", 1e-6)
    problem = sm.Problem(goal, sm.card(w) <= 2)
    assert problem.plan().outline == "exchange:effort=0.0"
    assert problem.solve().support.tolist() == [2, 5]
    assert problem.solution.readings <= 9


def test_columns_that_do_not_fit_give_the_value_of_the_data_in_single_precision(tmp_path, rng):
    A = rng.standard_normal((400, 12)).astype(np.float32)
    np.save(tmp_path / "A.npy", A)
    design = ChunkedDesign(np.load(tmp_path / "A.npy", mmap_mode="r"), column_bytes=64)
    some, x = np.array([2, 5, 9]), rng.standard_normal(3)
    exact = A[:, some].astype(np.float64) @ x
    np.testing.assert_allclose(design.restrict(some).matvec(x), exact, rtol=0.0, atol=1e-14)
    assert np.abs(A[:, some] @ x.astype(np.float32) - exact).max() > 1e-8, "else it shows nothing"


@pytest.mark.parametrize("order", ["C", "F"])
def test_what_holds_a_mapping_can_be_pickled(tmp_path: Path, order: Any):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "a.npy", np.asarray(rng.standard_normal((30, 5)), order=order))
    a = np.load(tmp_path / "a.npy", mmap_mode="r")
    w = sm.Variable(5)
    problem = sm.Problem(sm.minimize(sm.squared_loss(a @ w, a[:, 0])), sm.card(w) <= 2)
    solution = problem.solve()
    again = pickle.loads(pickle.dumps((problem, solution)))
    assert again[1].value == solution.value
    assert again[0].solve().indices.tolist() == solution.indices.tolist()
