"""Prices and budgets with a cost for each feature, against all supports."""

from __future__ import annotations

import json
from itertools import chain, combinations

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import Claim, certify, verify
from sparsemodel.certificates.dual_bounds.gains import best_selection
from sparsemodel.certificates.files.json_document import digest
from sparsemodel.certificates.proving.node import IN, OUT, Minorant, decide
from sparsemodel.certificates.relaxation import relax
from sparsemodel.checker.__main__ import main
from sparsemodel.checker.proof.arithmetic import Ball
from sparsemodel.checker.proof.supports import Supports
from sparsemodel.interfaces import (
    Cardinality,
    CertificateError,
    InfeasibleError,
    Knapsack,
    Layer,
    ModelError,
)
from sparsemodel.numerics import best_units
from sparsemodel.numerics.ksupport import ksupport_prox, ksupport_value
from tests.referee import RefereeError, judge

RNG = np.random.default_rng(7)
N, P = 30, 8
A = RNG.standard_normal((N, P)) + 0.7 * RNG.standard_normal((N, 1))
B = A @ RNG.standard_normal(P) + 0.5 * RNG.standard_normal(N)
COSTS = np.array([0.1, 0.2, 0.7, 0.0, 1.0, 0.3, 0.4, 0.6])


def subsets(number=P):
    units = range(number)
    return chain.from_iterable(combinations(units, size) for size in range(number + 1))


def least_squares(columns) -> float:
    a = A[:, list(columns)]
    g = a.T @ a / N + 0.05 * np.eye(a.shape[1])
    return 0.5 * (B @ B / N - (a.T @ B / N) @ np.linalg.solve(g, a.T @ B / N))


def fit(w):
    return sm.squared_loss(A @ w, B) + sm.ridge(w, 0.05)


def proved(problem, best, folder, data):
    """Prove a problem, and check the file by both readers; return the certificate."""
    certificate = problem.prove(gap=1e-6)
    assert certificate.claim is Claim.OPTIMAL
    assert best - 1e-5 * abs(best) <= certificate.bound <= best + 1e-12
    judge(problem, certificate)
    verify(certificate, problem.form)
    certificate.save(folder / "c.json")
    np.savez(folder / "d.npz", **data)
    for more in ([], ["--exact"]):
        assert main([str(folder / "c.json"), str(folder / "d.npz"), *more]) == 0
    return certificate


@pytest.mark.parametrize("backend", [None, "exchange"])
@pytest.mark.parametrize("share", [0.1, 0.6])
def test_a_price_for_each_is_paid_by_the_best_support(share, backend):
    w = sm.Variable(P)
    problem = sm.Problem(sm.minimize(fit(w) + share * (COSTS @ sm.chosen(w))))
    solution = problem.solve(backend)
    best = min(least_squares(s) + share * COSTS[list(s)].sum() for s in subsets())
    assert np.isclose(solution.value, best, rtol=1e-10)
    assert np.isclose(problem.goal.objective.value, best, rtol=1e-10)
    judge(problem, solution)


@pytest.mark.parametrize("backend", [None, "exchange"])
@pytest.mark.parametrize(("budget", "k"), [(0.6, P), (1.3, P), (1.3, 3), (2.9, P)])
def test_a_budget_is_spent_on_the_best_support(budget, k, backend):
    """Sums of decimal numbers count as what they are meant to be: 0.1 + 0.2 + 0.3 is 0.6."""
    w = sm.Variable(P)
    problem = sm.Problem(sm.minimize(fit(w)), COSTS @ sm.chosen(w) <= budget, sm.card(w) <= k)
    solution = problem.solve(backend)
    within = [s for s in subsets() if COSTS[list(s)].sum() <= budget + 1e-9 and len(s) <= k]
    assert np.isclose(solution.value, min(map(least_squares, within)), rtol=1e-10)
    judge(problem, solution)


@pytest.mark.parametrize("kind", ["priced", "budget", "budget and k", "groups"])
def test_a_proof_is_that_of_all_supports(kind, tmp_path):
    w = sm.Variable(P, name="w")
    goal, limits = fit(w), []
    if kind == "priced":
        goal = goal + 0.1 * (COSTS @ sm.chosen(w))
    elif kind == "groups":
        limits = [COSTS[:4] @ sm.chosen(w, groups=np.arange(P) // 2) <= 0.8]
    else:
        limits = [COSTS @ sm.chosen(w) <= 1.3, sm.card(w) <= (3 if kind == "budget and k" else P)]
    problem = sm.Problem(sm.minimize(goal), limits)
    proved(problem, problem.solve("exhaustive").value, tmp_path, {"A": A, "b": B})


def test_a_smaller_budget_refutes_the_certificate_of_a_larger_one(tmp_path):
    w = sm.Variable(P, name="w")
    problem = sm.Problem(sm.minimize(fit(w)), COSTS @ sm.chosen(w) <= 1.3)
    proved(problem, problem.solve("exhaustive").value, tmp_path, {"A": A, "b": B})
    other = sm.Problem(sm.minimize(fit(w)), COSTS @ sm.chosen(w) <= 1.2)
    with pytest.raises(CertificateError, match="structure"):
        verify(tmp_path / "c.json", other.form)
    with pytest.raises(RefereeError, match="entries cost"):
        judge(other, problem.solve())


@pytest.mark.parametrize("seed", range(6))
def test_a_minorant_decides_no_more_than_all_supports_would(seed):
    """With a budget, bounds are below the least over the supports of a part; often they are it."""
    rng = np.random.default_rng(seed)
    gains, costs = rng.integers(0, 16, P) / 8.0, rng.integers(0, 8, P) / 8.0
    prices = rng.integers(0, 4, P) / 8.0
    sparsity = Cardinality(
        P, 5, prices=prices, knapsacks=(Knapsack(costs, float(costs.sum()) / 2),)
    )
    status = rng.choice([OUT, 0, 0, 0, IN], P).astype(np.int8)
    inside = set(np.flatnonzero(status == IN).tolist())
    found = decide(Minorant(5.0, gains), status, 5 - len(inside), sparsity)
    parts = [
        (set(s), 5.0 - sum(gains[j] - prices[j] for j in s))
        for s in subsets()
        if len(s) <= 5
        and costs[list(s)].sum() <= costs.sum() / 2
        and inside <= set(s)
        and not any(status[j] == OUT for j in s)
    ]
    least = min((v for _, v in parts), default=np.inf)
    assert found.bound <= least
    # The separate checker finds the same, by a search of its own.
    most, nobody = sparsity.knapsacks[0].most, np.zeros(P, dtype=bool)
    posed = Supports(5, Ball(prices), nobody, [], [(costs, most)])
    checked = posed.bound(5.0, gains, status == IN, status == OUT)
    assert found.bound - 1e-9 <= checked <= least
    for unit in np.flatnonzero(status == 0).tolist():
        assert found.if_in[unit] <= min((v for s, v in parts if unit in s), default=np.inf)
        assert found.if_out[unit] <= min((v for s, v in parts if unit not in s), default=np.inf)


def test_the_bound_is_that_of_the_continuous_knapsack():
    """The last unit counts in part; with a budget that is spent to the end it is exact."""
    costs, gains = np.array([1.0, 2.0, 4.0, 8.0]), np.array([4.0, 6.0, 8.0, 8.0])
    for most, worth in ((1.0, 4.0), (3.0, 10.0), (5.0, 14.0), (7.0, 18.0), (11.0, 22.0)):
        sparsity = Cardinality(4, 4, knapsacks=(Knapsack(costs, most),))
        assert np.isclose(best_selection(gains, np.zeros(4), sparsity), worth)
    assert best_selection(gains, np.ones(4), sparsity) == -np.inf  # all together cost 15
    assert best_units(sparsity, gains).tolist() == [0, 1, 2]


def test_a_bound_knows_that_a_budget_beside_limits_is_not_spent_greedily():
    limits, rng = (Layer(np.array([0, 0, 1, 1, -1]), np.array([1, 1])),), np.random.default_rng(0)
    for _ in range(100):
        costs, gains = rng.integers(1, 6, 5).astype(float), rng.integers(0, 10, 5).astype(float)
        knapsack = Knapsack(costs, float(rng.integers(4, 10)))
        sparsity = Cardinality(5, 3, limits=limits, knapsacks=(knapsack,))
        best = max(gains[list(s)].sum() for s in subsets(5) if sparsity.within(np.array(s, int)))
        assert best_selection(gains, np.zeros(5), sparsity) >= best


def test_the_relaxation_knows_each_price():
    """With equal prices it is that of one price; else no point is better than the proximal one."""
    rng = np.random.default_rng(0)
    q, ridge, prices = rng.uniform(0.0, 2.0, 12), rng.uniform(0.1, 1.0, 12), rng.uniform(0, 1, 12)
    for k in (3, 12):
        for limit in (None, np.full(12, 1.5)):
            alike = ksupport_prox(q, 0.7, ridge, k, price=np.full(12, 0.2), limit=limit)
            assert np.allclose(alike, ksupport_prox(q, 0.7, ridge, k, price=0.2, limit=limit))

            def worth(x, k=k, limit=limit):
                value = ksupport_value(np.maximum(x, 0.0), ridge, k, price=prices, limit=limit)
                return value + np.sum((np.maximum(x, 0.0) - q) ** 2) / 1.4

            x, z = ksupport_prox(q, 0.7, ridge, k, price=prices, limit=limit)
            assert z.sum() <= k * (1.0 + 1e-9)
            away = [x + size * rng.standard_normal(12) for size in (1e-3, 1e-1) for _ in range(20)]
            assert worth(x) <= min(map(worth, away)) + 1e-9


def test_a_certificate_rests_on_each_price():
    """The bound is far above that of the least price alone, which is zero here."""
    w = sm.Variable(P)
    problem = sm.Problem(sm.minimize(fit(w) + 0.3 * (COSTS @ sm.chosen(w))))
    value = problem.solve().value
    cheap = sm.Problem(sm.minimize(fit(w) + 0.3 * COSTS.min() * sm.card(w))).solve().value
    found = certify(problem.form, np.asarray(w.value))
    assert cheap + 0.5 * (value - cheap) < found.bound <= value


def test_a_price_that_is_not_the_least_one_is_refused(tmp_path, capsys):
    w = sm.Variable(P)
    problem = sm.Problem(sm.minimize(fit(w) + 0.1 * (COSTS @ sm.chosen(w))))
    path = certify(problem.form, np.zeros(P)).save(tmp_path / "c.json")
    body = json.loads(path.read_text())
    del body["digest"]
    body["problem"]["price"] = (1e-3).hex() if isinstance(body["problem"]["price"], str) else 1e-3
    path.write_text(json.dumps(body | {"digest": digest(body)}))
    np.savez(tmp_path / "d.npz", A=A, b=B)
    assert main([str(path), str(tmp_path / "d.npz")]) == 1
    assert "makes no sense" in capsys.readouterr().out
    with pytest.raises(CertificateError):
        verify(path, problem.form)


def test_entries_that_are_kept_nonzero_use_up_the_budget():
    w = sm.Variable(P)
    in_ = [COSTS @ sm.chosen(w) <= 1.3, w[4] >= 0.1]
    found = sm.Problem(sm.minimize(fit(w)), in_).solve()
    assert COSTS[found.indices].sum() <= 1.3 + 1e-9
    assert 4 in found.indices
    with pytest.raises(InfeasibleError, match="exceed the budget"):
        sm.Problem(sm.minimize(fit(w)), COSTS @ sm.chosen(w) <= 0.9, w[4] >= 0.1).solve()
    priced = sm.Problem(sm.minimize(fit(w) + COSTS @ sm.chosen(w)), w[4] >= 0.1)
    judge(priced, priced.solve())


def test_a_budget_of_equal_costs_is_a_cardinality():
    w = sm.Variable(P)
    for given in (np.full(P, 0.1) @ sm.chosen(w) <= 0.3, sm.chosen(w).sum() <= 3):
        form = sm.Problem(sm.minimize(fit(w)), given).form
        assert (form.sparsity.k, form.sparsity.plain) == (3, True)


def test_two_variables_share_a_budget_that_is_a_parameter():
    u, v, budget = sm.Variable(3), sm.Variable(P - 3), sm.Parameter(nonneg=True, value=0.6)
    goal = sm.squared_loss(A[:, :3] @ u + A[:, 3:] @ v, B) + sm.ridge(u, 0.05) + sm.ridge(v, 0.05)
    spent = COSTS[:3] @ sm.chosen(u) + COSTS[3:] @ sm.chosen(v)
    problem = sm.Problem(sm.minimize(goal), spent <= budget)
    for budget.value in (0.6, 1.3):
        within = [s for s in subsets() if COSTS[list(s)].sum() <= budget.value + 1e-9]
        assert np.isclose(problem.solve().value, min(map(least_squares, within)), rtol=1e-10)


@pytest.mark.parametrize("limit", ["a parameter", "values"])
def test_a_path_keeps_budgets_and_pays_prices(limit):
    w, k, prices = sm.Variable(P), sm.Parameter(integer=True), 0.02 * COSTS
    goal = sm.minimize(sm.squared_loss(A @ w, B) + sm.ridge(w, 0.05) + prices @ sm.chosen(w))
    budget = COSTS @ sm.chosen(w) <= 1.3
    here = sm.Problem(goal, budget, *([sm.card(w) <= k] if limit == "a parameter" else []))
    path = here.path(k, range(4)) if limit == "a parameter" else here.path(range(4))
    within = [s for s in subsets() if COSTS[list(s)].sum() <= 1.3 + 1e-9]
    for at, value in zip(path.k, path.objective, strict=True):
        worth = [least_squares(s) + prices[list(s)].sum() for s in within if len(s) <= at]
        assert np.isclose(value, min(worth), rtol=1e-10)
    assert COSTS[path.at(3).values["w"] != 0.0].sum() <= 1.3 + 1e-9


def test_chosen_is_a_vector_of_zeros_and_ones():
    w = sm.Variable(4, name="w")
    assert sm.chosen(w).value is None
    w.value = np.array([0.0, 2.0, 0.0, -1.0])
    assert sm.chosen(w).value.tolist() == [0, 1, 0, 1]
    assert sm.chosen(w)[1:3].value.tolist() == [1, 0]
    assert sm.chosen(w, groups=["b", "a", "a", "a"]).value.tolist() == [1, 0]
    assert (np.arange(4.0) @ sm.chosen(w)).value == 4.0
    assert repr(sm.chosen(w)) == "chosen(w)"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda w: sm.chosen(w) <= 1.0, "comes only with"),
        (lambda w: np.ones(3) @ sm.chosen(w), "cost for each of the 4"),
        (lambda w: np.array([1.0, -1.0, 2.0, 3.0]) @ sm.chosen(w), "must not be negative"),
        (lambda w: np.ones(4) * sm.chosen(w), "costs @ sm.chosen"),
        (lambda w: np.ones(4) @ sm.chosen(w) <= -1.0, "B >= 0"),
        (lambda w: np.ones(4) @ sm.card(w), "costs @ sm.chosen"),
        (lambda w: sm.chosen(sm.Variable((3, 2))), "axis=1"),
    ],
)
def test_what_cannot_be_declared_is_refused_with_what_to_write(wrong, words):
    with pytest.raises(ModelError, match=words):
        wrong(sm.Variable(4, name="w"))


@pytest.mark.parametrize("loss", [sm.squared_loss, sm.logistic_loss])
def test_a_relaxation_within_a_budget_is_that_of_the_best_price(loss):
    rng = np.random.default_rng(2)
    a = rng.standard_normal((12, 20))
    b = np.sign(a[:, 0] - a[:, 1] + 0.3 * rng.standard_normal(12))
    w, costs, most = sm.Variable(20), rng.uniform(0.2, 2.0, 20), 2.0
    objective = loss(a @ w, b) + sm.ridge(w, 0.05)

    def bound(objective, limits) -> float:
        found = relax(sm.Problem(sm.minimize(objective), limits).form, np.zeros(20))
        assert not isinstance(found, str)
        return found.bound

    chosen = costs @ sm.chosen(w)
    prices = np.geomspace(1e-3, 0.3, 9)
    best = max(bound(objective + price * chosen, []) - price * most for price in prices)
    found = bound(objective, [chosen <= most])
    assert found >= best - 1e-5
    assert found > bound(objective, [sm.card(w) <= 6]) + 0.01


@pytest.mark.parametrize("limit", ["budget", "parts"])
def test_what_no_allowed_support_satisfies_is_infeasible_and_what_one_does_is_found(limit):
    w = sm.Variable(P)
    if limit == "budget":
        limits = [np.arange(1.0, P + 1) @ sm.chosen(w) <= 4.0]
    else:
        limits = [sm.card(w) <= 3, sm.card(w[:3]) <= 1, sm.card(w[3:]) <= 1]
    goal, high = sm.minimize(sm.squared_loss(A @ w, B)), np.repeat([0.3, 0.6], [3, P - 3])
    with pytest.raises(InfeasibleError, match="nonzero entries satisfies"):
        sm.Problem(goal, limits, w.sum() == 1.0, w <= high).solve()
    high[3] = 2.0  # in the budget alone, or with one of the first three
    sm.Problem(goal, limits, w.sum() == 1.0, w <= high, w >= 0.0).solve()
    assert w.value[3] >= 0.7
