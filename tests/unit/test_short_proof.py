"""A solve that ends with a short proof says so, and is right."""

from __future__ import annotations

import dataclasses
import sys
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import sparsemodel as sm
from sparsemodel.certificates.proving.gram.quadratic import Quadratic
from sparsemodel.certificates.short_proofs import short_proof as short
from sparsemodel.certificates.short_proofs.one_factorisation import bound_by_one_factorisation
from sparsemodel.certificates.short_proofs.part import Part, Tangent
from sparsemodel.certificates.short_proofs.root_node import RootNode
from sparsemodel.certificates.short_proofs.short_proof import WHEN_READ, Patience, short_proof
from sparsemodel.modelling.regression import compiled
from sparsemodel_backends.exchange import Exchange

P, K = 14, 3


def posed(kind: str = "plain", seed: int = 0) -> sm.Problem:
    """Return a problem whose support does not stand out, with too many supports to try all."""
    rng = np.random.default_rng(seed)
    n = 60
    common = rng.standard_normal((n, 1))
    A = (common + 0.5 * rng.standard_normal((n, P))).astype(np.float64)
    b = A[:, :K] @ [1.0, -1.0, 0.7] + rng.standard_normal(n)
    w, c = sm.Variable(P, name="w"), sm.Variable(name="c")
    weights = np.linspace(0.1, 2.0, n) if kind == "weights" else None
    if kind == "single":
        A = A.astype(np.float32)
    if kind == "large":
        A, b = A * 1e50, b * 1e70
    if kind == "far":
        b = b + 100.0
    prediction = A @ w + c if kind in ("intercept", "far") else A @ w
    constraints: list[Any] = [sm.card(w) <= K]
    if kind == "box":
        constraints += [w >= 0.0, w <= 0.4]
    if kind in ("simplex", "rows"):
        constraints += [w >= 0.0, w.sum() == 1.0]
    if kind == "rows":
        constraints += [np.linspace(0.0, 1.0, P) @ w >= 0.6, (np.arange(P) % 3) @ w <= 0.9]
    ridge = 1e98 if kind == "large" else 1e-2
    return sm.Problem(
        sm.minimize(sm.squared_loss(prediction, b, weights=weights) + sm.ridge(w, ridge)),
        *constraints,
    )


def least(problem: sm.Problem) -> float:
    return float(problem.solve("exhaustive").value)


KINDS = ("plain", "intercept", "far", "weights", "single", "large", "box", "simplex", "rows")


@pytest.mark.parametrize("kind", KINDS)
def test_a_proved_optimum_is_one(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparsemodel.compiler.choice.all_supports.SMALL", 1)
    for seed in range(1 if kind == "rows" else 2):
        problem = posed(kind, seed)
        found = problem.solve(effort="high")
        best = least(problem)
        assert found.status == "optimal (proved)"
        assert found.value == pytest.approx(best, rel=1e-6)
        assert found.bound <= best
        assert found.gap <= 1e-6 * abs(found.value)


def test_a_proof_takes_the_place_of_perturbations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparsemodel.compiler.choice.all_supports.SMALL", 1)
    problem = posed()
    searched = problem.solve("exchange", effort="high")
    proved = problem.solve(effort="high")
    assert proved.status == "optimal (proved)"
    assert proved.iterations < searched.iterations
    assert not searched.lower.optimal


def random_problem(rng: Any) -> tuple[sm.Problem, float]:
    """Return a small problem of any kind that is searched, and the least of all its supports."""
    n, p, k = int(rng.choice([8, 15, 60])), int(rng.integers(3, 9)), int(rng.integers(1, 6))
    scale = 10.0 ** rng.integers(-5, 6)
    A = rng.standard_normal((n, 1)) * rng.choice([0.0, 1.0, 30.0]) + rng.standard_normal((n, p))
    A[:, 1] = A[:, 0] + rng.choice([0.0, 1e-5, 1.0]) * A[:, 1]
    A[:, 2] *= rng.random() < 0.8
    b = scale * (A[:, :3].sum(axis=1) + 10.0 ** rng.integers(-4, 2) * rng.standard_normal(n))
    ridge, beside = float(rng.choice([0.0, 1e-4, 0.1])), bool(rng.random() < 0.4)
    c = rng.uniform(0.01, 2.0, n) if rng.random() < 0.4 else np.ones(n)
    w, free = sm.Variable(p, name="w"), sm.Variable(name="free")
    prediction = A @ w + free if beside else A @ w
    goal = sm.minimize(sm.squared_loss(prediction, b, weights=c) + sm.ridge(w, ridge))
    X, y = (A - c @ A / c.sum(), b - c @ b / c.sum()) if beside else (A, b)
    X, y = X * np.sqrt(c / n)[:, None], y * np.sqrt(c / n)
    best = np.inf
    for chosen in combinations(range(p), min(k, p)):
        some = np.vstack([X[:, chosen], np.sqrt(ridge) * np.eye(len(chosen))])
        aim = np.append(y, np.zeros(len(chosen)))
        left = some @ np.linalg.lstsq(some, aim, rcond=None)[0] - aim
        best = min(best, 0.5 * float(left @ left))
    return sm.Problem(goal, sm.card(w) <= k), best


def test_bounds_hold_over_all_supports() -> None:
    rng, closed = np.random.default_rng(0), 0
    for _ in range(150):
        problem, best = random_problem(rng)
        form, rounding = problem.form, 1e-13 * float(problem.form.terms[0].target.var())
        x = np.zeros(form.shape)
        x[
            rng.choice(form.sparsity.units, min(form.sparsity.budget, form.sparsity.units), False)
        ] = 1.0
        nodes, rounds = int(rng.choice([1, 3, 300])), int(rng.integers(0, 6))
        found = short_proof(form, x, Patience(nodes, rounds, operations=1e9))
        if found is None:
            continue
        closed += found.closed
        assert found.bound <= best * (1.0 + 1e-11) + rounding
        assert found.upper >= best * (1.0 - 1e-9) - rounding
        assert not found.closed or found.upper <= best * (1.0 + 2e-6) + rounding
    assert closed > 30


def test_bounds_by_curvature_for_one_support_hold() -> None:
    """Also below the cutoff of a search, and for supports that are not the best."""
    rng, finite = np.random.default_rng(4), 0
    for _ in range(120):
        root = rng.standard_normal((30, 6)) / np.sqrt(30.0)
        matrix, slopes, k = root.T @ root + 0.2 * np.eye(6), rng.standard_normal(6), 2
        part = Part(matrix, slopes, 1.0, k, np.arange(6), np.zeros(6), 6)
        values = {}
        for some in combinations(range(6), k):
            on = np.array(some)
            _, values[some] = part.minimised(on)
        for some, value in values.items():
            x, _ = part.minimised(np.array(some))
            bound = part.bound_from(np.array(some), x, value, min(values.values()) - 0.01)
            assert bound <= min(values.values())
            finite += np.isfinite(bound)
    assert finite > 20


def test_bounds_of_relaxations_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no curvature is chosen for a support, parts are fixed, divided and looked at."""
    monkeypatch.setattr(short, "bound_by_one_factorisation", lambda *given: None)
    monkeypatch.setattr(Part, "bound_from", lambda *given: -np.inf)
    for seed in range(8):
        for rounds in (1, 6):
            problem = posed("plain" if seed % 2 else "weights", seed)
            found = short_proof(problem.form, start((5, 6, 7)), Patience(300, rounds, 1e9))
            assert found is not None
            assert found.closed
            assert found.bound <= least(problem) <= found.upper * (1.0 + 1e-12)


def test_units_are_decided_by_what_they_would_gain() -> None:
    form = posed().form
    root = RootNode.of(form, Quadratic.of(form))
    assert root is not None
    search = short._Search(root, start((0, 1, 2)), 0.0, WHEN_READ)
    search.value = 2.5
    gains = np.zeros(P)
    gains[:5] = 5.0, 4.0, 3.0, 1.0, 0.4
    left = search._fixed(root.part, Tangent(0.0, gains, np.arange(P), gains, 0.0))
    assert left is not None
    # Unit 3 would raise the bound to 2 in place of unit 2, and unit 2 left out would, too.
    assert (left.inside, left.units.tolist(), left.k) == ((0, 1), [2, 3], 1)


def test_matrices_of_products_are_symmetric() -> None:
    rng = np.random.default_rng(0)
    A, w = sparse.csr_matrix(rng.standard_normal((200, P))), sm.Variable(P)
    loss = sm.squared_loss(A @ w, np.ones(200), weights=rng.uniform(0.1, 3.0, 200))
    hessian = Quadratic.of(sm.Problem(sm.minimize(loss), sm.card(w) <= K).form).hessian
    assert np.array_equal(hessian, hessian.T)


def test_bounds_by_one_factorisation_hold() -> None:
    rng, known = np.random.default_rng(1), 0
    for _ in range(60):
        problem, best = random_problem(rng)
        problem.solve("exchange", effort="low")
        x = np.concatenate([np.atleast_1d(v.value) for v in problem.variables])
        q = Quadratic.of(problem.form)
        near = x if q.shifts is None else q.shifts.carry(x)
        bound = bound_by_one_factorisation(problem.form, q, near, 5e-7)
        if bound is not None:
            known += 1
            assert bound <= best * (1.0 + 1e-11)
            assert bound >= best * (1.0 - 1e-5) - 1e-11 * q.aim**2
    assert known > 5


@pytest.mark.parametrize("size", [1e-60, 1e85, 1e150])
def test_units_of_the_target_leave_the_proof_as_it_is(size: float) -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 8))
    b = A[:, :3] @ [1.0, -2.0, 0.5] + 0.3 * rng.standard_normal(40)
    w = sm.Variable(8, name="w")

    def gap(target: Any, effort: Any) -> float:
        problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, target)), sm.card(w) <= 3)
        solution = problem.solve("exchange", effort=effort)
        assert solution.status == "optimal (proved)"
        return float(1.0 - solution.bound / solution.value)

    for effort in ("low", "high"):
        assert gap(size * b, effort) == pytest.approx(gap(b, effort), rel=1e-3)


def test_what_was_called_before_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparsemodel.compiler.choice.all_supports.SMALL", 1)
    posed("box").solve(effort="high")  # the code of proofs is in memory now
    for given in ({}, {"effort": "low"}, {"effort": "high", "time_limit": 60.0}):
        assert not posed("box").solve(**given).lower.optimal


def test_what_was_enumerated_is_proved_when_asked_for() -> None:
    found = posed().solve(effort="high")
    assert found.backend == "exhaustive"
    assert found.status == "optimal (proved)"


@pytest.mark.parametrize(("kind", "closed"), [("plain", True), ("box", False)])
def test_numba_is_for_bounds_alone(
    kind: str, closed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if ".proving.gram" in name]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setattr("sparsemodel.compiler.choice.all_supports.SMALL", 1)
    assert posed(kind).solve(effort="high").lower.optimal is closed


def test_a_better_point_is_found_on_the_way() -> None:
    problem = posed()
    form = problem.form
    values = {
        chosen: problem.solve(start=start(chosen), backend="iht", max_iter=1).value
        for chosen in list(combinations(range(P), K))[::60]
    }
    poor = start(max(values, key=lambda chosen: values[chosen]))
    found = short_proof(form, poor, WHEN_READ)
    assert found is not None
    assert found.closed
    assert found.upper == pytest.approx(least(problem), rel=1e-6)
    assert found.bound <= found.upper


def start(chosen: tuple[int, ...]) -> np.ndarray:
    x = np.zeros(P)
    x[list(chosen)] = 0.1
    return x


def test_proofs_that_would_be_long_are_not_begun() -> None:
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((20, 40)), rng.standard_normal(20)
    w = sm.Variable(40, name="w")
    wide = sm.Problem(sm.minimize(sm.squared_loss(A @ w, b)), sm.card(w) <= K)
    assert short_proof(wide.form, np.zeros(40), WHEN_READ) is None
    large = Patience(nodes=9, rounds=2, operations=1e3)
    assert short_proof(posed().form, np.zeros(P), large) is None
    logistic = sm.Problem(sm.minimize(sm.logistic_loss(A @ w, np.sign(b))), sm.card(w) <= K)
    assert short_proof(logistic.form, np.zeros(40), WHEN_READ) is None
    problem = posed()
    weak = sm.Problem(problem.goal, sm.card(problem.variables[0]) <= K)
    found = short_proof(weak.form, weak.solve().values["w"], WHEN_READ)
    assert found is not None
    assert found.bound <= found.upper


def test_a_proof_that_is_left_open_is_not_called_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short, "WITH_HIGH_EFFORT", Patience(nodes=1, rounds=2, operations=1e9))
    rng = np.random.default_rng(2)
    A = (
        rng.standard_normal((200, 50))
        @ np.linalg.cholesky(0.95 ** np.abs(np.subtract.outer(np.arange(50), np.arange(50)))).T
    )
    w = sm.Variable(50, name="w")
    b = A[:, ::10] @ [1.0, -1.0, 1.0, -1.0, 1.0] + 3.0 * rng.standard_normal(200)
    goal = sm.squared_loss(A @ w, b) + sm.ridge(w, 1e-3)
    found = sm.Problem(sm.minimize(goal), sm.card(w) <= 5).solve(effort="high")
    assert not found.lower.optimal
    assert 0.0 < found.lower.value < found.value


def claimed(monkeypatch: pytest.MonkeyPatch, prove: Any) -> sm.Problem:
    """Return a problem whose short proofs are what somebody claims."""
    monkeypatch.setattr("sparsemodel.compiler.choice.all_supports.SMALL", 1)
    monkeypatch.setattr(compiled.Compiled, "short_proof", lambda problem, effort: prove)
    return posed()


def test_a_proof_of_another_point_proves_nothing_of_this_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def prove(x: np.ndarray) -> short.ShortProofResult:
        asked.append(x)
        return short.ShortProofResult(x, -1.0, -1.0, -1.0, True)

    found = claimed(monkeypatch, prove).solve()
    assert not found.lower.optimal
    assert len(asked) == 1


def test_an_open_proof_is_tried_once_and_its_bound_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def prove(x: np.ndarray) -> short.ShortProofResult:
        asked.append(x)
        return short.ShortProofResult(
            x, 1e3, 1e3, 1e3, False
        )  # above what is found: rounding, at worst

    found = claimed(monkeypatch, prove).solve(effort="high")
    assert len(asked) == 1
    assert not found.lower.optimal
    assert found.value * (1.0 - 1e-12) <= found.lower.value < found.value


def test_a_better_point_of_a_proof_is_the_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    best = posed().solve("exhaustive")

    def prove(x: np.ndarray) -> short.ShortProofResult:
        return short.ShortProofResult(
            best.values["w"], best.value, best.value, best.value * (1.0 - 1e-9), True
        )

    monkeypatch.setattr(Exchange, "init", started_badly(Exchange.init))
    found = claimed(monkeypatch, prove).solve()
    assert found.status == "optimal (proved)"
    assert found.support.tolist() == best.support.tolist()


def started_badly(init: Any) -> Any:
    """Return a start whose descent is over before it has begun."""

    def at_once(backend: Any, objective: Any, context: Any) -> Any:
        state = init(backend, objective, context)
        support = np.array([P - 3, P - 2, P - 1])
        point = context.restricted(objective, support, objective.origin())
        return dataclasses.replace(state, point=point, is_local_optimum=True, starts=())

    return at_once
