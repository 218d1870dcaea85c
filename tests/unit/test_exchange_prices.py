"""Every price of an insertion, a removal or an exchange is the change of the minimum, exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.designs import DenseDesign, OperatorDesign, SparseDesign
from sparsemodel.interfaces import Objective, Point
from sparsemodel.numerics import Exchanges, RegressionObjective, minimise_on_support
from sparsemodel.numerics.exchange.hessian_rows import HessianRows
from sparsemodel.numerics.exchange.models import ExchangeModels
from sparsemodel.numerics.exchange.quadratics.forward import forward_selection
from sparsemodel.numerics.exchange.quadratics.perturbations import completed, perturbed, promising

P = 9


def data(seed: int = 0, n: int = 30, outputs: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, P))
    A[:, 1] = A[:, 0] + 0.3 * A[:, 1]
    return A, rng.standard_normal((n, outputs) if outputs else n)


def posed(structure: str, seed: int = 0) -> Objective:
    """Return a squared loss with one thing that the prices have to get right."""
    outputs = 3 if structure.startswith("rows") else 0
    A, y = data(seed, outputs=outputs)
    design: Any = A
    scale = np.geomspace(1e-6, 1e6, P) if structure == "scales" else np.ones(P)
    if structure == "sparse":
        import scipy.sparse

        design = scipy.sparse.csr_array(np.where(np.abs(A) > 0.7, A, 0.0))
    elif structure == "operator":
        from scipy.sparse.linalg import aslinearoperator

        design = sm.as_design(aslinearoperator(A))
    elif structure == "scales":
        design = A * scale
    w = sm.Variable((P, 3) if outputs else P, name="w")
    prediction = design @ w
    if structure == "offset":
        prediction = prediction + np.linspace(-5.0, 5.0, len(y))
    if structure in ("intercept", "far intercept"):
        prediction = prediction + sm.Variable(name="b")
    if structure == "far intercept":
        w = sm.Variable(P, name="w")
        prediction = (A + 1e3) @ w + sm.Variable(name="b")
    weights = np.linspace(0.1, 2.0, len(y)) if structure == "weights" else None
    loss = sm.squared_loss(prediction, y, weights=weights)
    ridge = 0.0 if structure in ("plain", "scales", "rank") else 1e-2
    goal = loss + sm.ridge(w, ridge) if ridge else loss
    if structure == "linear":
        goal = goal + np.linspace(-1.0, 1.0, P) @ w
    constraints = [sm.card(w, axis=1 if len(w.shape) > 1 else None) <= 4]
    if structure == "forced":
        constraints = [sm.card(w[2:]) <= 4]
    return RegressionObjective(sm.Problem(sm.minimize(goal), *constraints).form)


def begun(
    objective: Objective, support: np.ndarray, columns: np.ndarray | None = None
) -> Exchanges:
    origin = objective.origin()
    rows = HessianRows(objective, origin, places=4)
    exchanges = Exchanges(rows, rows.reduced_gradient(-objective.gradient(origin)), columns)
    exchanges.reset(support if columns is None else np.searchsorted(columns, support))
    return exchanges


def test_what_promises_most_holds_the_best_changes_of_all() -> None:
    rng = np.random.default_rng(5)
    A = rng.standard_normal((60, 700))
    w = sm.Variable(700)
    loss = sm.squared_loss(A @ w, A[:, :6].sum(axis=1) + rng.standard_normal(60))
    objective = RegressionObjective(sm.Problem(sm.minimize(loss), sm.card(w) <= 4).form)
    here = begun(objective, np.array([0, 3, 200, 600]))
    found = promising(here)
    assert found is not None
    few, columns = found
    assert columns.size < 150
    assert np.count_nonzero(here.rows.known(columns)) == 4  # no row was read for it
    prices = here.prices()[0]
    np.testing.assert_allclose(few.prices()[0], prices[:, columns], rtol=1e-9)
    assert set(prices.argmax(axis=1)) <= set(columns)
    assert here.insertions()[0].argmax() in columns
    drawn = perturbed(few, rng, 5)
    batch = completed(here, np.sort(columns[drawn.members], axis=1))
    assert len(batch.members) == len(np.unique(np.sort(drawn.members, axis=1), axis=0))
    for copy in range(len(batch.members)):
        alone = begun(objective, batch.members[copy])
        np.testing.assert_allclose(batch.explained[copy], alone.explained[0], rtol=1e-9)


def minimum(objective: Objective, members: np.ndarray) -> float:
    support = np.union1d(members, objective.cardinality.free).astype(np.intp)
    return minimise_on_support(objective, support, objective.origin()).value


@pytest.mark.parametrize("structure", ["plain", "scales", "far intercept", "weights", "rows"])
def test_forward_selection_adds_what_lowers_the_minimum_most(structure: str) -> None:
    objective = posed(structure)
    here = begun(objective, np.empty(0, dtype=np.intp))
    how: Any = {"guard": here.guard, "price": 0.0, "share": 1e-11}
    chosen = forward_selection(here.rows, here.linear, 4, **how)
    expected: list[int] = []
    for _ in range(4):
        rest = [j for j in np.flatnonzero(objective.cardinality.counted) if j not in expected]
        expected.append(min(rest, key=lambda j: minimum(objective, np.array([*expected, j]))))
    assert chosen.tolist() == expected
    here.reset(chosen[:3])
    dearest = here.insertions()[0][chosen[3]]
    how["price"] = 1.001 * dearest
    assert forward_selection(here.rows, here.linear, 4, **how).tolist() == expected[:3]


def test_forward_selection_takes_no_column_twice_that_others_stand_for() -> None:
    A = np.eye(6)[:, [0, 1, 2, 0, 1]]
    w = sm.Variable(5)
    loss = sm.squared_loss(A @ w, np.arange(6.0, 0.0, -1.0))
    objective = RegressionObjective(sm.Problem(sm.minimize(loss), sm.card(w) <= 5).form)
    here = begun(objective, np.empty(0, dtype=np.intp))
    chosen = forward_selection(here.rows, here.linear, 5, guard=here.guard, price=0.0, share=1e-11)
    assert chosen.tolist() == [0, 1, 2]


def check(objective: Objective, exchanges: Exchanges, copy: int = 0, rtol: float = 1e-9) -> None:
    """Compare every price with two minimisations."""
    members = exchanges.coordinates(exchanges.members[copy])
    columns = np.arange(objective.shape[0]) if exchanges.columns is None else exchanges.columns
    here, empty = minimum(objective, members), minimum(objective, members[:0])
    atol = rtol * abs(empty - here)
    assert 0.5 * exchanges.explained[copy] == pytest.approx(empty - here, abs=atol)
    outside = np.setdiff1d(np.arange(objective.shape[0]), members)
    outside = np.setdiff1d(outside, objective.cardinality.free)
    prices = 0.5 * exchanges.prices()[copy]
    insertions = 0.5 * exchanges.insertions()[copy]
    removals = 0.5 * exchanges.removals()[copy]
    for slot, member in enumerate(members):
        rest = members[members != member]
        assert removals[slot] == pytest.approx(minimum(objective, rest) - here, abs=atol)
        without = 0.5 * exchanges.insertions_without(np.full(len(exchanges.members), slot))[copy]
        for place, coordinate in enumerate(columns):
            if coordinate in outside:
                after = minimum(objective, np.append(rest, coordinate))
                assert prices[slot, place] == pytest.approx(here - after, abs=atol)
                gain = minimum(objective, rest) - after
                assert without[place] == pytest.approx(gain, abs=atol)
    for place, coordinate in enumerate(columns):
        if coordinate in outside:
            after = minimum(objective, np.append(members, coordinate))
            assert insertions[place] == pytest.approx(here - after, abs=atol)


STRUCTURES = (
    "plain",
    "ridge",
    "intercept",
    "far intercept",
    "weights",
    "offset",
    "linear",
    "forced",
    "rows",
    "scales",
    "sparse",
    "operator",
)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_prices_are_the_changes_of_the_minimum(structure: str) -> None:
    objective = posed(structure)
    support = np.array([3, 4, 6]) if structure == "forced" else np.array([0, 3, 6])
    # Columns with a mean of a thousand times their spread lose six digits with the mean.
    rtol = 1e-5 if structure == "far intercept" else 1e-8
    check(objective, begun(objective, support), rtol=rtol)


@pytest.mark.parametrize("structure", ["ridge", "intercept", "rows", "scales"])
def test_prices_stay_exact_after_changes(structure: str) -> None:
    objective = posed(structure, seed=1)
    exchanges = begun(objective, np.array([0, 3, 6]))
    exchanges.exchange(np.array([1]), np.array([7]))
    check(objective, exchanges)
    exchanges.insert(5)
    check(objective, exchanges)
    exchanges.remove(0)
    check(objective, exchanges)
    exchanges.exchange(np.array([0]), exchanges.members[:, 0])  # for itself
    check(objective, exchanges)


def test_supports_side_by_side_do_not_mix() -> None:
    objective = posed("intercept", seed=2)
    exchanges = begun(objective, np.array([0, 3, 6])).tiled(4)
    exchanges.first(3).exchange(np.array([0, 1, 2]), np.array([8, 2, 5]))
    exchanges.exchange(np.array([2, 2, 0, 1]), np.array([1, 4, 7, 5]))
    exchanges.keep(np.array([0, 2, 3]))
    for copy in range(3):
        check(objective, exchanges, copy)


def test_prices_of_some_columns_are_those_of_all() -> None:
    objective = posed("ridge", seed=3)
    columns = np.array([0, 2, 3, 5, 6, 8])
    check(objective, begun(objective, np.array([0, 3, 6]), columns))


def test_dependent_columns_are_never_offered() -> None:
    A, y = data(4)
    A[:, 7] = 2.0 * A[:, 0] - A[:, 3]
    A[:, 8] = A[:, 6]
    A[:, 2] = 0.0
    w = sm.Variable(P)
    form = sm.Problem(sm.minimize(sm.squared_loss(A @ w, y)), sm.card(w) <= 4).form
    exchanges = begun(RegressionObjective(form), np.array([0, 3, 6]))
    insertions, prices = exchanges.insertions()[0], exchanges.prices()[0]
    assert insertions[7] == insertions[8] == insertions[2] == 0.0
    assert np.all(prices[:2, 8] < 0.0)
    assert prices[2, 8] == pytest.approx(0.0, abs=1e-12)
    assert prices[2, 7] < 0.0
    assert not np.any(np.isnan(prices))
    exchanges.reset(np.array([0, 3, 7, 6, 8]))
    assert exchanges.size == 3


def test_noise_of_single_precision_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparsemodel.numerics.exchange.hessian_rows._WHOLE", 0)
    A, y = data(5, n=200)
    noises = []
    for array in (A, A.astype(np.float32)):
        w = sm.Variable(P)
        form = sm.Problem(sm.minimize(sm.squared_loss(array @ w, y)), sm.card(w) <= 4).form
        objective = RegressionObjective(form)
        rows = HessianRows(objective, objective.origin(), places=0)
        rows.rows(np.array([0, 4]))
        noises.append(rows.noise)
    assert noises[0] < 1e-13
    assert 1e-9 < noises[1] < 1e-5


# ---- models ----------------------------------------------------------------------------------


def modelled(
    objective: Objective, support: np.ndarray
) -> tuple[Point, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    point = minimise_on_support(objective, support, objective.origin())
    models = ExchangeModels(objective)
    units, costs, gains = models.exchanges(point)
    return point, units, costs, gains, models.insertions(point)


@pytest.mark.parametrize("outputs", [0, 2])
@pytest.mark.parametrize("whole", [True, False])
def test_prices_of_groups_are_the_changes_of_the_minimum(
    outputs: int, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not whole:
        monkeypatch.setattr("sparsemodel.numerics.exchange.hessian_rows._WHOLE", 0)
    A, y = data(6, outputs=outputs)
    groups = np.array([0, 1, 2, 0, 1, 3, 2, 1, 4])
    w = sm.Variable((P, outputs) if outputs else P)
    loss = sm.squared_loss(A @ w if outputs else A @ w + sm.Variable(), y)
    form = sm.Problem(sm.minimize(loss + sm.ridge(w, 1e-2)), sm.card(w, groups=groups) <= 3).form
    objective = RegressionObjective(form)
    sparsity = objective.cardinality
    chosen = np.array([0, 1])
    point, units, costs, gains, insertions = modelled(objective, sparsity.coordinates(chosen))

    def value(units: list[int]) -> float:
        support = sparsity.coordinates(np.array(units, dtype=np.intp))
        return minimise_on_support(objective, support, objective.origin()).value

    assert units.tolist() == chosen.tolist()
    for place, unit in enumerate(units):
        (other,) = [int(u) for u in chosen if u != unit]
        assert costs[place] == pytest.approx(value([other]) - point.value, abs=1e-8)
        for into in (2, 3, 4):
            gain = point.value - value([other, into])
            assert gains[place, into] == pytest.approx(gain, abs=1e-8)
    for into in (2, 3, 4):
        gain = point.value - value([0, 1, into])
        assert insertions[into] == pytest.approx(gain, abs=1e-8)
    assert np.all(np.isneginf(gains[:, units]))


@pytest.mark.parametrize("loss", ["logistic", "poisson", "huber"])
def test_models_of_other_losses_have_the_signs_and_sizes_of_the_truth(loss: str) -> None:
    """Near the minimum, with little to gain, second-order prices are right to a fifth."""
    A, z = data(8, n=400)
    y = {"logistic": np.sign(z), "poisson": np.round(np.exp(0.3 * z)), "huber": z}[loss]
    w = sm.Variable(P)
    goal = getattr(sm, f"{loss}_loss")(A @ w + sm.Variable(), y) + sm.ridge(w, 1e-3)
    objective = RegressionObjective(sm.Problem(sm.minimize(goal), sm.card(w) <= 3).form)
    point, units, _, gains, _ = modelled(objective, np.array([0, 3, 6, 9]))
    for place, unit in enumerate(units):
        for into in np.setdiff1d(np.arange(P), units):
            support = np.sort(np.append(point.support[point.support != unit], into))
            gain = point.value - minimise_on_support(objective, support, point).value
            assert gains[place, into] == pytest.approx(gain, rel=0.2, abs=2e-5)


def test_rows_are_symmetric_whatever_the_storage() -> None:
    A, y = data(9)
    import scipy.sparse
    from scipy.sparse.linalg import aslinearoperator

    designs = (
        DenseDesign(A),
        SparseDesign(scipy.sparse.csr_array(A)),
        OperatorDesign(aslinearoperator(A)),
    )
    expected = None
    for design in designs:
        w = sm.Variable(P)
        goal = sm.squared_loss(design @ w + sm.Variable(), y) + sm.ridge(w, 0.1)
        objective = RegressionObjective(sm.Problem(sm.minimize(goal), sm.card(w) <= 2).form)
        for places in (0, 4):  # row by row, and all at once
            rows = HessianRows(objective, objective.origin(), places=places)
            matrix = rows.rows(np.arange(P))
            np.testing.assert_allclose(matrix[:, :P], matrix[:, :P].T, atol=1e-12)
            expected = matrix if expected is None else expected
            np.testing.assert_allclose(matrix, expected, atol=1e-12)


@pytest.mark.parametrize(("likeness", "outputs"), [(0.0, 0), (0.7, 0), (0.98, 0), (0.7, 3)])
def test_what_is_left_unpriced_is_never_the_best_exchange(likeness: float, outputs: int) -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 400))
    for j in range(1, 400):
        A[:, j] = likeness * A[:, j - 1] + np.sqrt(1.0 - likeness**2) * A[:, j]
    A[:, 399] = A[:, 0]
    y = rng.standard_normal((60, outputs) if outputs else 60) + A[:, :7].sum(axis=1).T.reshape(
        (60, 1) if outputs else 60
    )
    w = sm.Variable((400, outputs) if outputs else 400, name="w")
    counted = sm.card(w, axis=1 if outputs else None)
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, y) + sm.ridge(w, 0.1)), counted <= 9)
    objective = RegressionObjective(problem.form)
    search = begun(objective, rng.choice(399, 9, replace=False))
    for _ in range(30):
        gains = search.prices()[0].copy()
        gains[:, search.members[0]] = -np.inf
        slots, into, gain = search.best()
        if not gains.max() > 1e-9:
            break
        assert gain[0] >= gains.max() * (1.0 - 1e-9)
        search.exchange(slots, into)
    else:
        pytest.fail("the descent has no end")
    again = begun(objective, search.members[0])
    np.testing.assert_allclose(search.explained, again.explained, rtol=1e-9)
    np.testing.assert_allclose(search.w, again.w, rtol=1e-6, atol=1e-9)
