"""Designs over arrays of other libraries: the laws, the same answers, and a matrix that stays."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import verify
from sparsemodel.designs import (
    DenseDesign,
    ForeignDesign,
    OnesDesign,
    StackedDesign,
    TransformedDesign,
)
from sparsemodel.designs.elsewhere import foreign
from sparsemodel.interfaces import Access, CertificateError, DataError, DataTypeError, Design
from sparsemodel.numerics.objectives.hessians import weighted_gram
from sparsemodel.testing.designs import DESIGN_CHECKS, EXACT, run_design_suite
from sparsemodel.testing.laws.design_laws import Tolerance

strict = pytest.importorskip("array_api_strict")
pytest.importorskip("array_api_compat")


def on(device: str, dtype: Any = np.float64) -> Any:
    """Return what puts an array on a device of array-api-strict, which refuses np.asarray there."""
    return lambda a: strict.asarray(a.astype(dtype), device=strict.Device(device))


@pytest.mark.parametrize(
    ("device", "dtype", "tolerance"),
    [
        ("device1", np.float64, EXACT),
        ("no_float64", np.float32, Tolerance(relative=1e-5)),
    ],
)
def test_laws(device, dtype, tolerance):
    put = on(device, dtype)
    report = run_design_suite(device, lambda a: ForeignDesign(put(a)), tolerance=tolerance)
    report.raise_if_failed()


@pytest.mark.slow  # they take seconds to import
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("library", ["torch", "jax.numpy"])
def test_laws_and_answers_of_other_libraries(library, dtype):
    xp = pytest.importorskip(library)
    if library == "jax.numpy" and dtype == np.float64:
        pytest.skip("JAX has no float64 unless it is asked for")

    def put(a: np.ndarray) -> Any:
        return xp.asarray(a.astype(dtype))

    tolerance = EXACT if dtype == np.float64 else Tolerance(relative=1e-5)
    for law in DESIGN_CHECKS:  # on one array: JAX compiles anew for every shape
        law(ForeignDesign(put(data()[0])), data()[0], tolerance)
    the_same_answers(put, dtype, sm.logistic_loss, intercept=True)
    A, b = data()
    w = sm.Variable(A.shape[1])
    problem = sm.Problem(sm.minimize(sm.squared_loss(put(A) @ w, put(b))), sm.card(w) <= 3)
    assert problem.solve().support.tolist() == [2, 7, 11]


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 90)) * rng.uniform(0.2, 5.0, 90) + 1.0
    return A, A[:, [2, 7, 11]] @ [1.0, -2.0, 1.5] + 0.1 * rng.standard_normal(60)


def problem_of(A: Any, b: Any, loss: Any, *, intercept: bool, k: int = 3) -> sm.Problem:
    w = sm.Variable(A.shape[1])
    prediction = sm.as_design(A) @ w
    if intercept:
        prediction = prediction + sm.Variable()
    return sm.Problem(sm.minimize(loss(prediction, b) + sm.ridge(w, 0.1)), sm.card(w) <= k)


def the_same_answers(put: Any, dtype: Any, loss: Any, *, intercept: bool) -> None:
    A, b = data()
    stored = A.astype(dtype)
    target = b if loss is sm.squared_loss else np.where(b > 0.0, 1.0, -1.0)
    near = problem_of(stored, target, loss, intercept=intercept)
    far = problem_of(put(A), target, loss, intercept=intercept)
    one, two = near.solve(), far.solve()
    assert one.support.tolist() == two.support.tolist()
    assert two.value == pytest.approx(one.value, rel=1e-12)
    certificate = far.certify()
    assert certificate.bound == pytest.approx(near.certify().bound, rel=1e-3)
    exact = problem_of(stored.astype(np.float64), target, loss, intercept=intercept)
    assert certificate.bound <= exact.solve().value
    verify(certificate, exact.form)  # made there, it holds for an array of NumPy


@pytest.mark.parametrize(
    ("device", "dtype", "loss"),
    [
        ("device1", np.float64, sm.squared_loss),
        ("device1", np.float32, sm.logistic_loss),
        ("no_float64", np.float32, sm.squared_loss),
    ],
)
def test_the_same_answers_as_numpy(device, dtype, loss):
    the_same_answers(on(device, dtype), dtype, loss, intercept=True)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("device", ["device1", "no_float64"])
def test_products_behind_bounds_are_those_of_float64(device, scale):
    A, b = data()
    single = (scale * A).astype(np.float32)
    r = b / 3.0  # not representable in single precision
    exact = single.astype(np.float64).T @ r
    size = np.abs(single.astype(np.float64)).T @ np.abs(r)
    design = ForeignDesign(on(device, np.float32)(single))
    assert np.all(np.abs(design.rmatvec_in_double(r) - exact) <= 1e-13 * size)
    assert np.any(np.abs(design.rmatvec(r) - exact) > 1e-9 * size), "else the test shows nothing"
    squares = np.square(single.astype(np.float64)).sum(axis=0)
    np.testing.assert_allclose(design.column_square_norms(), squares, rtol=1e-13)


LOSSES = [sm.squared_loss, sm.logistic_loss, sm.huber_loss]


@pytest.fixture
def sizes(monkeypatch) -> list[int]:
    """Return the numbers of each array that is brought over."""
    found: list[int] = []
    inner = foreign._as_numpy

    def watched(values: Any) -> Any:
        found.append(int(np.prod(values.shape)))
        return inner(values)

    monkeypatch.setattr(foreign, "_as_numpy", watched)
    return found


@pytest.mark.unrefereed("the referee reads the matrix")
def test_a_pass_takes_two_vectors(sizes):
    rng = np.random.default_rng(1)
    A = rng.standard_normal((300, 400))
    b = A[:, :3] @ [1.0, -2.0, 1.5] + rng.standard_normal(300)
    target = np.where(b > 0.0, 1.0, -1.0)
    solution = problem_of(on("device1")(A), target, sm.logistic_loss, intercept=False).solve()
    vectors = [size for size in sizes if size in (300, 400)]
    # Sizes of columns (twice at other curvatures) and the bound are beside what passes count.
    assert 0 < len(vectors) <= 2 * solution.passes + 4


@pytest.mark.unrefereed("the referee reads the matrix")
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.__name__)
def test_the_matrix_stays_where_it_is(loss, intercept, sizes):
    rng, (n, p, k) = np.random.default_rng(1), (1500, 100, 10)
    A = rng.standard_normal((n, p)) + 1.0
    b = A[:, :k] @ np.linspace(1.0, 2.0, k) + rng.standard_normal(n)
    target = np.where(b > b.mean(), 1.0, -1.0) if loss is sm.logistic_loss else b
    problem = problem_of(on("device1")(A), target, loss, intercept=intercept, k=k)
    problem.solve()
    problem.path(range(k - 1, k + 1))
    certificate = problem.certify()
    problem.prove(time_limit=0.3)
    verify(certificate, problem.form)
    # A step of GraSP minimises on the support and the 2 k coordinates with the largest slopes.
    assert max(sizes) <= 3 * (n + p) * k < A.size / 3, "vectors, columns of a few supports"


def test_certificates_hold_for_the_same_numbers_wherever_they_are():
    A, b = data()
    near, far = (
        problem_of(array, b, sm.squared_loss, intercept=True) for array in (A, on("device1")(A))
    )
    far.solve()
    there = far.certify()
    assert there.problem.terms[0].design.startswith("probe:")
    verify(there, near.form)
    near.solve()
    here = near.certify()
    assert here.problem.terms[0].design.startswith("sha256:")
    verify(here, far.form)
    A[3, 40] += 1e-3
    other, its = (
        problem_of(array, b, sm.squared_loss, intercept=True) for array in (A, on("device1")(A))
    )
    for certificate, problem in ((there, other), (there, its), (here, its)):
        with pytest.raises(CertificateError, match="for another matrix"):
            verify(certificate, problem.form)


def test_the_checker_finds_entries_by_their_products(tmp_path):
    A, b = data()
    far = problem_of(on("device1")(A), b, sm.squared_loss, intercept=True)
    far.solve()
    far.certify().save(tmp_path / "certificate.json")
    np.savez(tmp_path / "data.npz", A=A, b=b)
    np.savez(tmp_path / "other.npz", A=A + 1e-3, b=b)
    program = [sys.executable, "-m", "sparsemodel.checker", str(tmp_path / "certificate.json")]
    for name, code in (("data", 0), ("other", 2)):
        done = subprocess.run([*program, str(tmp_path / f"{name}.npz")], capture_output=True)
        assert done.returncode == code, done.stdout.decode() + done.stderr.decode()


@pytest.mark.parametrize("device", ["device1", "no_float64"])
def test_rows_of_gram_matrices_and_shifted_columns(device):
    rng = np.random.default_rng(5)
    a = (rng.standard_normal((300, 12)) + 1e3).astype(np.float32)
    h, r, wide = rng.uniform(0.0, 2.0, 300), rng.standard_normal(300), a.astype(float)
    means, scale, select = wide.mean(axis=0), np.arange(1.0, 13.0), np.array([1, 4, 5, 9])
    there, rows = ForeignDesign(on(device, np.float32)(a)), np.array([0, 2, 7])
    shifted = (wide - means) * scale
    centred = TransformedDesign(there, means=means, scale=scale)
    gram, size = shifted.T @ (h[:, None] * shifted), np.abs(shifted).T @ np.abs(shifted)
    assert np.all(np.abs(centred.gram(h) - gram) <= 1e-12 * size)
    assert np.all(np.abs(centred.gram_rows(rows, h) - gram[rows]) <= 1e-12 * size[rows])
    product = centred.rmatvec_in_double(r)
    assert np.all(np.abs(product - shifted.T @ r) <= 1e-8 * np.abs(shifted).T @ np.abs(r))
    chosen = TransformedDesign(there, select=select, scale=scale[:4])
    exact = (wide[:, select] * scale[:4]).T @ (h[:, None] * (wide[:, select] * scale[:4]))
    np.testing.assert_allclose(chosen.gram_rows(np.array([0, 3]), h), exact[[0, 3]], rtol=1e-12)
    beside = StackedDesign(300, 13, ((np.arange(1, 13), centred), (np.array([0]), OnesDesign(300))))
    whole = np.column_stack([np.ones(300), shifted])
    gram, size = whole.T @ (h[:, None] * whole), np.abs(whole).T @ np.abs(whole)
    for some in (np.array([0]), np.array([0, 5]), np.array([5, 6])):
        assert np.all(np.abs(beside.gram_rows(some, h) - gram[some]) <= 1e-7 * size[some])
        assert np.all(np.abs(beside.gram_rows(some) - (whole.T @ whole)[some]) <= 1e-7 * size[some])


def test_rows_and_columns_stay_or_come_as_they_should():
    A, _ = data()
    design = sm.as_design(on("device1")(A))
    assert isinstance(design, ForeignDesign)
    assert Access.COLUMNS in design.access
    assert "device1" in design.describe()
    assert isinstance(design.restrict_rows(np.arange(5)), ForeignDesign)
    columns: Design = design.restrict(np.array([1, 4]))
    assert isinstance(columns, DenseDesign)
    before = design.transfers
    again = design.restrict_again(np.array([1, 4]), np.array([1, 4]), columns)
    assert again is columns
    assert design.transfers == before


def test_what_is_not_multiplied_exactly_is_refused():
    whole = strict.asarray(np.arange(6).reshape(3, 2))
    with pytest.raises(DataTypeError, match=r"int64.*float32 or float64.*convert it there first"):
        sm.as_design(whole)
    with pytest.raises(DataError, match="two dimensions"):
        sm.as_design(strict.asarray(np.ones(3)))


def test_arrays_without_numbers_of_their_own_are_refused():
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    with pytest.raises(DataTypeError, match=r"sparse tensor of PyTorch.*coo_array"):
        sm.as_design(torch.eye(3).to_sparse())
    with pytest.raises(DataTypeError, match="bfloat16, and arrays of jax are"):
        sm.as_design(jax.numpy.ones((3, 2), dtype="bfloat16"))
    with pytest.raises(DataTypeError, match="while JAX traces a function"):
        jax.jit(lambda a: sm.as_design(a).shape)(np.eye(3))


def test_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "array_api_compat", None)
    with pytest.raises(sm.MissingDependencyError, match="pip install array-api-compat"):
        sm.as_design(strict.asarray(np.ones((3, 2))))


def test_many_columns_are_copied_where_they_are(monkeypatch):
    monkeypatch.setattr(foreign, "_COLUMN_BYTES", 1000)
    A, _ = data()
    design = ForeignDesign(on("device1", np.float32)(A))
    columns = design.restrict(np.arange(9))
    assert isinstance(columns, ForeignDesign)
    assert "float64" in columns.describe()
    x = np.arange(9) / 7.0
    np.testing.assert_allclose(columns.matvec(x), A.astype(np.float32)[:, :9] @ x, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scaled", [False, True])
def test_gram_matrices_beside_an_intercept_are_made_there(dtype, scaled, monkeypatch):
    rng = np.random.default_rng(0)
    a, h = rng.standard_normal((300, 12)).astype(dtype), rng.uniform(0.0, 2.0, 300)
    there: Design = ForeignDesign(on("device1", dtype)(a))
    sizes = np.arange(1.0, 13.0) if scaled else np.ones(12)
    there = TransformedDesign(there, scale=sizes) if scaled else there
    ones = OnesDesign(300)
    stacked = StackedDesign(300, 13, ((np.arange(12), there), (np.array([12]), ones)))
    monkeypatch.setattr(ForeignDesign, "row_blocks", None)
    wide = np.column_stack([a.astype(float) * sizes, np.ones(300)])
    exact = wide.T @ (h[:, None] * wide)
    np.testing.assert_allclose(weighted_gram(stacked, h), exact, rtol=0.0, atol=1e-10)
