"""Designs over Dask arrays: the laws of designs, the same answers, and little that travels."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.compiler.services import objective_of
from sparsemodel.interfaces import Access, DataError, DataTypeError
from sparsemodel.numerics import RegressionObjective
from sparsemodel.testing.designs import EXACT, run_design_suite

da = pytest.importorskip("dask.array")
Client = pytest.importorskip("distributed").Client

from sparsemodel.designs.elsewhere import columns, workers  # noqa: E402
from sparsemodel.designs.elsewhere.distributed import DistributedDesign  # noqa: E402
from sparsemodel.designs.elsewhere.workers import worker_count  # noqa: E402
from sparsemodel.numerics.objectives import distributed  # noqa: E402
from sparsemodel.numerics.objectives.distributed import DistributedObjective  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread():
    import dask

    with dask.config.set(scheduler="synchronous"):
        yield


def spread(array: np.ndarray, rows: int = 3, columns: int = 2) -> Any:
    rows = max(rows, array.shape[0] // 3)  # a few; thousands of tasks would show no more
    return DistributedDesign(da.from_array(array, chunks=(rows, columns)))


def test_laws():
    run_design_suite("dask", spread, tolerance=EXACT).raise_if_failed()


def test_chunks_of_unknown_size_are_refused():
    array = da.from_array(np.ones((6, 2)), chunks=3)
    unknown = array[array[:, 0] > 0.0]
    with pytest.raises(DataError, match="compute_chunk_sizes"):
        sm.as_design(unknown)


def problem(design: Any, target: np.ndarray, loss: Any, *, intercept: bool) -> Any:
    w = sm.Variable(design.shape[1])
    prediction = sm.as_design(design) @ w
    if intercept:
        prediction = prediction + sm.Variable()
    objective = sm.minimize(loss(prediction, target) + sm.ridge(w, 1e-3))
    return sm.Problem(objective, sm.card(w) <= 3), w


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((200, 20)) * rng.uniform(0.2, 5.0, 20) + 1.0
    return A, A[:, [2, 7, 11]] @ [1.0, -2.0, 1.5] + rng.standard_normal(200)


@pytest.mark.parametrize("loss", [sm.squared_loss, sm.logistic_loss])
@pytest.mark.parametrize(("intercept", "kept"), [(False, 0), (True, 0), (True, 2**27)])
def test_the_same_answer_as_in_memory(loss, intercept, kept, monkeypatch):
    monkeypatch.setattr(columns, "KEPT_BYTES", kept)
    A, b = data()
    target = b if loss is sm.squared_loss else np.where(b > np.median(b), 1.0, -1.0)
    near, x = problem(A, target, loss, intercept=intercept)
    far, y = problem(da.from_array(A, chunks=(64, 20)), target, loss, intercept=intercept)
    one, two = near.solve("nhtp"), far.solve("nhtp")
    assert one.support.tolist() == two.support.tolist()
    assert one.value == pytest.approx(two.value, rel=1e-12)
    np.testing.assert_allclose(x.value, y.value, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("beside", ["nothing", "an intercept", "another matrix"])
def test_what_dask_reads_is_not_known_here(beside, tmp_path):
    rng = np.random.default_rng(4)
    A = rng.standard_normal((40, 5))
    if beside == "another matrix":
        X = sm.Variable((5, 2))
        loss = sm.squared_loss(sm.as_design(spread(A)) @ X @ rng.standard_normal((2, 3)), A[:, :3])
        posed = sm.Problem(sm.minimize(loss + sm.ridge(X, 1e-3)), sm.card(X) <= 3)
    else:
        posed, _ = problem(spread(A), A[:, 0], sm.squared_loss, intercept=beside == "an intercept")
    solution, certificate = posed.solve(), posed.certify()
    for found in (solution, certificate):
        assert found.readings is None
        assert found.bytes_read is None
    certificate.save(tmp_path / "report.txt")
    for text in (str(solution), (tmp_path / "report.txt").read_text()):
        assert "read " not in text, "a report says nothing of what is not known"
    held, _ = problem(A, A[:, 0], sm.squared_loss, intercept=False)
    assert held.solve().readings == held.certify().readings == 0.0


@pytest.mark.parametrize("backend", ["diht", "sdiht", "ht_svrg"])
def test_methods_that_read_observations(backend):
    """The same iterates: these need predictions, not sums over observations alone."""
    A, b = data()
    near, _ = problem(A, b, sm.squared_loss, intercept=False)
    far, _ = problem(da.from_array(A, chunks=(64, 20)), b, sm.squared_loss, intercept=False)
    one, two = (p.solve(backend, max_iter=3, seed=1) for p in (near, far))
    assert one.support.tolist() == two.support.tolist()
    assert one.value == pytest.approx(two.value, rel=1e-12)


@pytest.mark.parametrize("trip", [0, 2**23])
def test_every_answer_of_the_objective_is_that_of_the_data(monkeypatch, trip):
    monkeypatch.setattr(distributed, "_TRIP", trip)
    A, b = data()
    target = np.where(b > 0.0, 1.0, -1.0)
    near, _ = problem(A, target, sm.logistic_loss, intercept=True)
    far, _ = problem(da.from_array(A, chunks=(64, 20)), target, sm.logistic_loss, intercept=True)
    one, two = RegressionObjective(near.form), DistributedObjective(far.form)
    rng = np.random.default_rng(1)
    x = rng.standard_normal(21)
    x[3:9] = 0.0
    support, v = np.array([0, 4, 9, 20]), rng.standard_normal(4)
    a, c = one.point_from(x), two.point_from(x)
    assert a.value == pytest.approx(c.value, rel=1e-12)
    for name, arguments in (
        ("restricted_gradient", (support,)),
        ("hessian", (a.support,)),
        ("hessian_product", (support, v)),
        ("hessian", (support,)),
        ("hessian", (support[1:3],)),  # a part of the last one
        ("hessian_diagonal", (support,)),
        ("full_hessian_product", (support, v)),
        ("gradient", ()),
    ):
        expected = getattr(one, name)(a, *arguments)
        np.testing.assert_allclose(getattr(two, name)(c, *arguments), expected, atol=1e-12)
    lengths = np.array([1.0, 0.25, -2.0])
    along = (a.support, x[a.support], rng.standard_normal(a.support.size), lengths)
    np.testing.assert_allclose(two.values_along(*along), one.values_along(*along), rtol=1e-12)
    rows, diagonal = two.hessian_rows(c, support)
    whole = one.hessian(a, np.arange(21))
    np.testing.assert_allclose(rows, whole[support], atol=1e-12)
    np.testing.assert_allclose(diagonal, np.diag(whole), atol=1e-12)
    assert one.infimum() == two.infimum()


def test_several_outputs(monkeypatch):
    monkeypatch.setattr(columns, "KEPT_BYTES", 0)
    A, b = data()
    values = []
    for design in (A[:60], da.from_array(A[:60], chunks=(32, 20))):
        W = sm.Variable((20, 2))
        targets = np.column_stack([b[:60], -2.0 * b[:60]])
        goal = sm.minimize(sm.squared_loss(sm.as_design(design) @ W, targets))
        values.append(sm.Problem(goal, sm.card(W, axis=1) <= 2).solve().value)
    assert values[1] == pytest.approx(values[0], rel=1e-9)


def test_a_minimum_at_infinity_is_none_on_blocks_either(monkeypatch):
    monkeypatch.setattr(columns, "KEPT_BYTES", 0)
    A, _ = data()
    w, target = sm.Variable(20), np.where(A[:, 2] > 0.0, 1.0, -1.0)
    blocks = sm.as_design(da.from_array(A, chunks=(64, 20)))
    with pytest.raises(sm.SeparableDataError):
        sm.Problem(sm.minimize(sm.logistic_loss(blocks @ w, target)), sm.card(w) <= 2).solve()


def test_a_summary_of_a_model_on_blocks_is_that_of_the_data(monkeypatch):
    monkeypatch.setattr(columns, "KEPT_BYTES", 0)
    A, b = data()
    target = np.where(b + 9.0 * np.sin(np.arange(200)) > np.median(b), 1.0, -1.0)
    texts = []
    for design in (A, da.from_array(A, chunks=(64, 20))):
        solution = problem(design, target, sm.logistic_loss, intercept=True)[0].solve()
        texts.append(str(solution.summary()).partition("Coefficients")[2])
    assert texts[0] == texts[1]


def test_no_number_per_observation_travels(monkeypatch):
    A, b = data()
    far, _ = problem(da.from_array(A, chunks=(50, 20)), b, sm.squared_loss, intercept=False)
    _, reduced = far._compiled().analysis()
    monkeypatch.setattr(columns, "KEPT_BYTES", 0)
    objective = objective_of(reduced.form, reduced.gradient)
    assert isinstance(objective, DistributedObjective)
    sizes = []
    inner = distributed.call

    def call(part: Any, name: str, arguments: tuple[Any, ...]) -> Any:
        out = inner(part, name, arguments)
        sizes.append((sum(np.size(a) for a in arguments), np.size(out)))
        return out

    monkeypatch.setattr(distributed, "call", call)
    from sparsemodel.interfaces import Context
    from sparsemodel.numerics import minimise_on_support
    from sparsemodel_backends.nhtp import NHTP

    NHTP().solve(objective, Context(minimise_on_support))
    assert sizes
    assert max(sent for sent, _ in sizes) <= 4 * 3  # a few supports and values
    # A value, slopes, a gradient of p numbers and a Hessian of k**2: never n = 200.
    assert max(back for _, back in sizes) <= 1 + 3 + 20 + 3**2


def test_tall_squared_losses_are_compressed_where_the_blocks_are(monkeypatch):
    rng = np.random.default_rng(5)
    A = rng.standard_normal((6000, 25)) * np.geomspace(1e-8, 1e8, 25) + 1.0
    scale = A.std(axis=0)
    b = A[:, [2, 7, 11]] @ ([1.0, -2.0, 1.5] / scale[[2, 7, 11]]) + rng.standard_normal(6000)
    c = rng.uniform(0.0, 2.0, 6000)
    weighed = partial(sm.squared_loss, weights=c)
    near, _ = problem(A, b, weighed, intercept=True)
    far, _ = problem(da.from_array(A, chunks=(700, 25)), b, weighed, intercept=True)
    monkeypatch.setattr(DistributedDesign, "row_blocks", None)
    one, two = near.solve(), far.solve()
    assert "compressed" in far.explain(full=True)
    assert one.support.tolist() == two.support.tolist()
    assert one.value == pytest.approx(two.value, rel=1e-9)
    expected = near.path(range(1, 4)).objective
    np.testing.assert_allclose(far.path(range(1, 4)).objective, expected, rtol=1e-9)


@pytest.mark.unrefereed("calls of workers are counted, and the referee calls as well")
def test_what_workers_told_is_not_asked_for_again(monkeypatch):
    calls = []
    original = workers._again
    monkeypatch.setattr(workers, "_again", lambda *a: (calls.append(1), original(*a))[1])
    monkeypatch.setattr(DistributedDesign, "stamp", property(lambda self: self.array.name))
    A = np.random.default_rng(3).standard_normal((60, 12))
    y = A[:, 1] - A[:, 4] + 0.1 * A[:, 7]
    w = sm.Variable(12)
    goal = sm.minimize(sm.huber_loss(da.from_array(A, chunks=(20, 12)) @ w, y) + sm.ridge(w, 0.1))
    posed = sm.Problem(goal, sm.card(w) <= 2)
    posed.solve()
    calls.clear()
    first = posed.certify()
    many = len(calls)
    again = posed.certify()
    assert len(calls) - many <= many // 2
    assert again.bound == first.bound


@pytest.mark.unrefereed("calls of workers are counted, and the referee calls as well")
@pytest.mark.parametrize(("call", "most"), [("solve", 30), ("certify", 60)])
def test_columns_of_supports_come_over_once(monkeypatch, call, most):
    calls = []
    original = workers._again
    monkeypatch.setattr(workers, "_again", lambda *a: (calls.append(1), original(*a))[1])
    monkeypatch.setattr(DistributedDesign, "stamp", property(lambda self: self.array.name))
    A, b = data()
    near, far = (
        problem(design, np.where(b > 0.0, 1.0, -1.0), sm.logistic_loss, intercept=True)[0]
        for design in (A, da.from_array(A, chunks=(64, 20)))
    )

    expected = getattr(near, call)().value
    assert getattr(far, call)().value == pytest.approx(expected, rel=1e-9)
    assert len(calls) <= most


@pytest.mark.unrefereed("calls of workers are counted, and the referee calls as well")
def test_what_is_small_comes_over_whole(monkeypatch):
    """On a cluster; blocks of this process are not copied."""
    calls = []
    original = workers._again
    monkeypatch.setattr(workers, "_again", lambda *a: (calls.append(1), original(*a))[1])
    A, b = data()
    A = A.astype(np.float32)
    target = np.where(b > 0.0, 1.0, -1.0)
    expected = problem(A, target, sm.logistic_loss, intercept=True)[0].certify()
    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0"):
        far = problem(da.from_array(A, chunks=(64, 20)), target, sm.logistic_loss, intercept=True)[
            0
        ]
        found = far.certify()
        design = sm.as_design(da.from_array(A, chunks=(64, 20)))
        narrow = design.restrict(np.array([2, 5])).to_array()
        x, r = np.linspace(0.0, 1.0, 20), np.linspace(0.0, 1.0, 200)
        many = len(calls)
        np.testing.assert_allclose(design.matvec(x), A.astype(float) @ x, rtol=0.0, atol=1e-12)
        np.testing.assert_allclose(design.rmatvec_in_double(r), A.T.astype(float) @ r)
        np.testing.assert_array_equal(design.restrict_rows(np.arange(3)).to_array(), A[:3])
        size = design.magnitudes(np.array([2, 5]), np.ones(2))
        followed = far.path(range(1, 5))
        assert len(calls) == many
    np.testing.assert_allclose(size, np.abs(A[:, [2, 5]].astype(float)).sum(axis=1))
    np.testing.assert_array_equal(narrow, A[:, [2, 5]])
    assert many <= 12
    assert design.access == Access.MEMORY
    assert found.value == pytest.approx(expected.value, rel=1e-9)
    assert found.bound == pytest.approx(expected.bound, rel=1e-4)
    near = problem(A, target, sm.logistic_loss, intercept=True)[0]
    np.testing.assert_allclose(followed.objective, near.path(range(1, 5)).objective, rtol=1e-9)


@pytest.mark.parametrize("cluster", [False, True])
def test_a_graph_that_raises_is_an_error_that_says_where(cluster):
    def share(block, block_info=None):
        if block_info[0]["chunk-location"] == (1, 0):
            raise ZeroDivisionError("division by zero")
        return block

    there = nullcontext()
    if cluster:
        there = Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0")
    with there:
        array = da.from_array(np.ones((9, 2)), chunks=(3, 2)).map_blocks(share, dtype=float)
        w = sm.Variable(2)
        posed = sm.Problem(sm.minimize(sm.squared_loss(array @ w, np.arange(9.0))), sm.card(w) <= 1)
        with pytest.raises(sm.DataError, match=r"rows \d to \d.*ZeroDivisionError: div") as raised:
            posed.solve()
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_masked_blocks_are_refused():
    masked = da.from_array(np.ma.masked_greater(np.eye(4), 0.5), chunks=2)
    with pytest.raises(DataTypeError, match="masked array"):
        sm.as_design(masked).matvec(np.ones(4))


def test_data_wait_for_a_worker_where_all_were_lost(monkeypatch):
    class Cluster:
        there: dict[str, int] = {}  # noqa: RUF012

        def nthreads(self):
            return self.there

        def wait_for_workers(self, n_workers, timeout):
            self.there = {"new": 1}

        def scatter(self, value, workers, **_):
            return workers, value

    monkeypatch.setattr(workers, "client", Cluster)
    assert workers.sent("rows", 2**21, 3) == (["new"], "rows")


def test_blocks_are_grouped_as_there_are_threads():
    array = da.from_array(np.arange(40.0).reshape(20, 2), chunks=((3, 3, 3, 3, 1, 7), 2))
    design = DistributedDesign(array)
    rows = [s for group in design.groups for s in group]
    assert [s.stop - s.start for s in rows] == [3, 3, 3, 3, 1, 7]
    assert [s.start for s in design.rows[1:]] == [s.stop for s in design.rows[:-1]]
    assert len(design.groups) <= worker_count()


@pytest.mark.parametrize("kind", ["float64", "Int64", "float32"])
def test_a_frame_of_dask_stays_distributed(kind, tmp_path):
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    A = np.random.default_rng(4).integers(-9, 9, (60, 4))
    frame = pd.DataFrame(A, columns=list("abcd")).astype(kind)
    frame.to_parquet(tmp_path / "rows.parquet")
    for far in (dd.from_pandas(frame, npartitions=4), dd.read_parquet(tmp_path)):
        design = sm.as_design(far)
        assert isinstance(design, DistributedDesign)
        assert design.names == ("a", "b", "c", "d")
        np.testing.assert_array_equal(design.to_array(), A)
        w = sm.Variable(4)
        goal = sm.minimize(sm.squared_loss(far, A[:, 1] - A[:, 3]))
        assert sm.Problem(goal, sm.card(w) <= 2) is not None
    text = dd.from_pandas(pd.DataFrame({"a": [1.0, 2.0], "town": ["x", "y"]}), npartitions=1)
    with pytest.raises(DataTypeError, match="not numeric: 'town'"):
        sm.as_design(text)
    with pytest.raises(DataTypeError, match=r"of Dask; make the dummies there"):
        sm.encode(text)


def test_losses_that_couple_observations_still_work():
    rng = np.random.default_rng(3)
    A, _ = data()
    time, event = rng.exponential(size=200), rng.random(200) < 0.7
    if not hasattr(sm, "cox_loss"):
        pytest.skip("no Cox loss in the language")
    w = sm.Variable(20)
    design = sm.as_design(da.from_array(A, chunks=(64, 20)))
    loss = sm.cox_loss(design @ w, np.column_stack([time, event]))
    solution = sm.Problem(sm.minimize(loss), sm.card(w) <= 2).solve("nhtp")
    assert len(solution.support) == 2
