"""Entries that are nonzero only beside others, against all supports that keep the order."""

from __future__ import annotations

from itertools import chain, combinations

import cvxpy as cp
import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import Claim, certify, verify
from sparsemodel.certificates.proving.node import IN, OUT, UNDECIDED, Minorant, decide
from sparsemodel.checker.__main__ import main
from sparsemodel.interfaces import Cardinality, ModelError, Order, UnsupportedProblemError
from sparsemodel.numerics import best_units
from tests.referee import judge

M = 4
PAIRS = np.array(list(combinations(range(M), 2)))
P = M + len(PAIRS)
KIDS, (FIRST, SECOND) = np.arange(M, P), PAIRS.T
COSTS = np.linspace(0.2, 1.1, P)


def data(seed: int, n: int = 40):
    """Return main effects and their products, and a response in which a product is large."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, M))
    a = np.column_stack([x, x[:, FIRST] * x[:, SECOND]])
    beta = rng.standard_normal(P) * (rng.random(P) < 0.5)
    beta[M + seed % len(PAIRS)] += 2.0
    return a, a @ beta + 0.5 * rng.standard_normal(n) + 3.0


def hierarchy(kind: str, w: sm.Variable):
    z = sm.chosen(w)
    if kind == "strong":
        return [z[KIDS] <= z[FIRST], z[KIDS] <= z[SECOND]]
    if kind == "weak":
        return [z[KIDS] <= z[FIRST] + z[SECOND]]
    return [z[np.arange(1, P)] <= z[(np.arange(1, P) - 1) // 2]]  # a tree


def keeps(kind: str, units) -> bool:
    if kind == "tree":
        return all(j == 0 or (j - 1) // 2 in units for j in units)
    how = all if kind == "strong" else any
    return all(how(int(i) in units for i in PAIRS[j - M]) for j in units if j >= M)


def supports(kind: str, k: int, number: int = P):
    every = chain.from_iterable(combinations(range(number), size) for size in range(k + 1))
    return [units for units in every if keeps(kind, units)]


def least(loss: str, a, b, units, ridge: float, *, intercept: bool) -> float:
    """Return the minimum on a support by Newton's method."""
    a = np.column_stack([a[:, list(units)], np.ones((len(b), int(intercept)))])
    r = np.append(np.full(len(units), ridge), np.zeros(int(intercept)))
    x = np.zeros(a.shape[1])
    for _ in range(1 if loss == "squared" else 30):
        if loss == "squared":
            g, h = a.T @ (a @ x - b), np.ones(len(b))
        else:
            s = 1.0 / (1.0 + np.exp(b * (a @ x)))
            g, h = -a.T @ (b * s), s * (1.0 - s)
        x = x - np.linalg.solve((a.T * h) @ a / len(b) + np.diag(r), g / len(b) + r * x)
    u = a @ x
    fit = 0.5 * np.square(u - b) if loss == "squared" else np.logaddexp(0.0, -b * u)
    return float(fit.mean() + 0.5 * x @ (r * x))


CASES = [
    ("strong", "squared", 0.0, True, 4),
    ("strong", "logistic", 0.02, True, 4),
    ("weak", "squared", 0.05, False, 4),
    ("weak", "logistic", 0.1, False, 3),
    ("tree", "squared", 0.0, False, 5),
]


@pytest.mark.parametrize(("kind", "loss", "ridge", "intercept", "k"), CASES)
def test_the_best_of_all_supports_is_found_and_proved(kind, loss, ridge, intercept, k, tmp_path):
    a, b = data(len(kind) + k)
    b = np.where(b > 3.0, 1.0, -1.0) if loss == "logistic" else b
    w, c = sm.Variable(P, name="w"), sm.Variable(name="c")
    fit = (sm.squared_loss if loss == "squared" else sm.logistic_loss)(
        a @ w + c if intercept else a @ w, b
    )
    goal = sm.minimize(fit + sm.ridge(w, ridge) if ridge else fit)
    problem = sm.Problem(goal, sm.card(w) <= k, hierarchy(kind, w))
    best = min(least(loss, a, b, s, ridge, intercept=intercept) for s in supports(kind, k))
    for backend in ("exchange", "exhaustive"):
        solution = problem.solve(backend)
        assert np.isclose(solution.value, best, rtol=1e-9)
        assert keeps(kind, set(np.flatnonzero(w.value).tolist()))
        assert not judge(problem, solution).faults
    certificate = problem.prove(gap=1e-6)
    assert certificate.claim is Claim.OPTIMAL
    assert best * (1.0 - 2e-6) <= certificate.bound <= best * (1.0 + 1e-10)
    verify(certificate, problem.form)
    certificate.save(tmp_path / "c.json")
    np.savez(tmp_path / "d.npz", a=a, b=b)
    assert main([str(tmp_path / "c.json"), str(tmp_path / "d.npz")]) == 0


@pytest.mark.parametrize(
    ("kind", "beside"),
    [
        ("weak", "a limit on a part"),
        ("strong", "costs"),
        ("weak", "a price"),
        ("strong", "a bound"),
        ("weak", "forced"),
    ],
)
def test_other_limits_stand_beside_a_hierarchy(kind, beside, tmp_path):
    a, b = data(3)
    w, ridge, k = sm.Variable(P, name="w"), 0.05, 4
    allowed, price, limits = supports(kind, k), 0.0, []
    goal = sm.squared_loss(a @ w, b) + sm.ridge(w, ridge)
    if beside == "a limit on a part":
        limits = [sm.card(w[KIDS]) <= 1]
        allowed = [s for s in allowed if sum(j >= M for j in s) <= 1]
    elif beside == "costs":
        limits = [COSTS @ sm.chosen(w) <= 1.6]
        allowed = [s for s in allowed if COSTS[list(s)].sum() <= 1.6]
    elif beside == "a price":
        goal, price = goal + 0.1 * sm.card(w), 0.1
    elif beside == "a bound":
        limits = [w[2] == 0.0]
        allowed = [s for s in allowed if 2 not in s]  # nor what needs it
    else:
        limits = [w[P - 1] >= 1e-9]
        allowed = [s for s in allowed if P - 1 in s]
    problem = sm.Problem(sm.minimize(goal), sm.card(w) <= k, hierarchy(kind, w), limits)
    worth = [least("squared", a, b, s, ridge, intercept=False) + price * len(s) for s in allowed]
    assert np.isclose(problem.solve("exchange").value, min(worth), rtol=1e-6)
    if beside == "forced":  # which proofs do not know
        certificate = problem.certify()
    else:
        certificate = problem.prove(gap=1e-6)
        assert certificate.bound >= min(worth) * (1.0 - 2e-6)
    assert certificate.bound <= min(worth) * (1.0 + 1e-9)
    verify(certificate, problem.form)
    certificate.save(tmp_path / "c.json")
    np.savez(tmp_path / "d.npz", a=a, b=b)
    assert main([str(tmp_path / "c.json"), str(tmp_path / "d.npz")]) == 0


@pytest.mark.parametrize("kind", ["strong", "weak", "tree"])
def test_what_a_minorant_proves_of_a_part_holds_for_all_of_its_supports(kind):
    rng = np.random.default_rng(5)
    w = sm.Variable(P)
    form = sm.Problem(
        sm.minimize(sm.squared_loss(np.eye(P) @ w, np.ones(P))), sm.card(w) <= 5, hierarchy(kind, w)
    ).form
    every = supports(kind, 5)
    for draw in range(60):
        low = Minorant(1.0, rng.exponential(size=P))
        low.gains[: draw % 4] = np.inf if draw % 3 == 0 else 0.0
        status = rng.choice([IN, OUT, UNDECIDED, UNDECIDED, UNDECIDED, UNDECIDED], P)
        k = 5 - int(np.sum(status == IN))
        proved = decide(low, status, k, form.sparsity)
        if proved is None:
            continue

        def worst(decided, low=low):
            inside, out = (set(np.flatnonzero(decided == end).tolist()) for end in (IN, OUT))
            values = [
                low.base - low.gains[list(s)].sum()
                for s in every
                if inside <= set(s) and not out & set(s)
            ]
            return min(values, default=np.inf)

        assert proved.bound <= worst(status) + 1e-12
        for j in np.flatnonzero(status == UNDECIDED):
            for side, bounds in ((IN, proved.if_in), (OUT, proved.if_out)):
                assert bounds[j] <= worst(np.where(np.arange(P) == j, side, status)) + 1e-12


def test_units_come_with_what_they_need():
    order = Order(np.array([2, 3, 3, 4]), np.array([[0, -2], [0, 1], [2, -2], [3, 1]]))
    assert order.closure(np.array([3])).tolist() == [0, 2, 3]
    assert order.closure(np.array([4]), np.array([0, 9, 0, 1, 0.0])).tolist() == [1, 4]
    assert order.largest_closed(np.array([1, 2, 3, 4])).tolist() == [1, 4]
    assert order.addable(np.array([0]), 5).tolist() == [True, True, True, False, False]
    inside, out = order.implied(np.arange(5) == 4, np.arange(5) == 1)
    assert inside.tolist() == [True, False, True, True, True]
    assert out.tolist() == [False, True, False, False, False]
    assert order.implied(np.arange(5) == 3, np.arange(5) == 0) is None
    left = order.left(np.array([3]), np.array([0, 1, 4]), 5)  # 2 is out, and 3 needs it
    assert left.implied(np.zeros(3, bool), np.zeros(3, bool)) is None
    sparsity = Cardinality(5, 3, order=order)
    for scores in np.random.default_rng(0).exponential(size=(20, 5)):
        chosen = best_units(sparsity, scores)
        assert sparsity.within(chosen)
        assert chosen.size == 3


def test_what_others_need_does_not_leave_alone():
    rng = np.random.default_rng(0)
    for _ in range(300):
        order = Order(rng.integers(-1, 8, 6), rng.integers(-2, 8, (6, int(rng.integers(1, 4)))))
        units = order.closure(rng.permutation(8)[: rng.integers(1, 9)])
        alone = [
            order.is_closed(units) and order.is_closed(np.delete(units, i))
            for i in range(units.size)
        ]
        assert order.removable(units).tolist() == alone


def test_products_with_their_factors_are_found_in_few_rows():
    rng, n, m, k = np.random.default_rng(28), 30, 8, 5
    x = rng.standard_normal((n, m))
    first, second = np.triu_indices(m, 1)
    a = np.column_stack([x, x[:, first] * x[:, second]])
    there = m + rng.choice(first.size, 2, replace=False)
    y = a[:, there] @ rng.choice([-1.0, 1.0], 2)
    y += 0.5 * a[:, :m] @ rng.standard_normal(m) + rng.standard_normal(n)
    w = sm.Variable(a.shape[1], name="w")
    beside = sm.chosen(w[m:]) <= sm.chosen(w[:m])[first]
    found = sm.Problem(sm.minimize(sm.squared_loss(a @ w, y)), sm.card(w) <= k, beside).solve()
    known = a[:, [0, 4, 5, 14, 30]]
    left = y - known @ np.linalg.lstsq(known, y)[0]
    assert found.value <= 0.5 * np.mean(np.square(left)) * (1.0 + 1e-9)


def test_spellings_say_the_same():
    w = sm.Variable(5, name="w", names=["a", "b", "c", "a:b", "b:c"])
    z, goal = sm.chosen(w), sm.minimize(sm.squared_loss(np.eye(5) @ w, np.ones(5)))

    def requirements(*constraints):
        order = sm.Problem(goal, sm.card(w) <= 3, constraints).form.sparsity.order
        return sorted(zip(order.child.tolist(), order.parents.tolist(), strict=True))

    strong = requirements(z[[3, 4]] <= z[[0, 1]], z[[3, 4]] <= z[[1, 2]])
    assert strong == [(3, [0]), (3, [1]), (4, [1]), (4, [2])]
    assert requirements(z[3] <= z[:2], z[["b", "c"]] >= z[4]) == strong
    assert requirements(z[["a:b", "b:c"]] <= z[["a", "b"]], *(z[3] <= z[1], z[4] <= z[2])) == strong
    either = requirements(z[3] <= z[0] + z[1], z[4] <= z[1] + z[2])
    assert either == [(3, [0, 1]), (4, [1, 2])]
    assert requirements(sm.chosen(w[3]) <= sm.card(w[:2]), z[1] + z[2] >= z[4]) == either
    assert repr(z[3] <= z[0] + z[1]).count("chosen(w[...])") == 3
    z2, v = cp.Variable(5, boolean=True), cp.Variable(5)
    for written in (
        [z2[[3, 4]] <= z2[[0, 1]], z2[[3, 4]] <= z2[[1, 2]]],
        [2 * z2[3] <= z2[0] + z2[1], z2[4] <= z2[1], z2[4] - z2[2] <= 0],
    ):
        problem = sm.Problem(
            cp.Minimize(cp.sum_squares(v - 1)), [cp.abs(v) <= 3 * z2, cp.sum(z2) <= 3, *written]
        )
        order = problem.form.sparsity.order
        assert sorted(zip(order.child.tolist(), order.parents.tolist(), strict=True)) == strong


def test_groups_rows_and_what_is_always_in():
    rng = np.random.default_rng(0)
    a, b, g = rng.standard_normal((30, 8)), rng.standard_normal((30, 2)), np.arange(8) // 2
    w, W, c = sm.Variable(8), sm.Variable((8, 2)), sm.Variable(8)
    z = sm.chosen(w, groups=g)
    fit = sm.squared_loss(a @ w, b[:, 0]) + sm.ridge(w, 0.1)
    grouped = sm.Problem(sm.minimize(fit), sm.card(w, groups=g) <= 2, z[3] <= z[0])
    best = min(
        least("squared", a, b[:, 0], np.flatnonzero(np.isin(g, s)), 0.1, intercept=False)
        for s in combinations(range(4), 2)
        if 3 not in s or 0 in s
    )
    assert np.isclose(grouped.solve().value, best)
    rows = sm.chosen(W, axis=1)
    fit = sm.squared_loss(a @ W, b) + sm.ridge(W, 0.1)
    problem = sm.Problem(sm.minimize(fit), sm.card(W, axis=1) <= 3, rows[[6, 7]] <= rows[0])
    problem.solve()
    assert W.value[0].any() or not W.value[6:].any()
    # What no limit counts is always in, and asks for nothing.
    fit = sm.squared_loss(a @ c, b[:, 0])
    free = sm.Problem(sm.minimize(fit), sm.card(c[2:]) <= 2, sm.chosen(c[2:]) <= sm.chosen(c[0]))
    assert free.form.sparsity.order is None


def test_a_parent_that_is_held_at_zero_counts():
    """A parent may be zero at its bound: it takes a place, and the point is feasible."""
    a, b = np.eye(4), np.array([-1.0, 2.0, 1.5, -0.5])
    w = sm.Variable(4, name="w")
    goal = sm.minimize(sm.squared_loss(a @ w, b))
    limits = [w >= 0.0, sm.card(w) <= 2, sm.chosen(w[1]) <= sm.chosen(w[0])]
    problem = sm.Problem(goal, limits)
    solution = problem.solve()
    assert w.value.tolist() == [0.0, 2.0, 0.0, 0.0]  # w[1] with w[0] is better than w[2] and w[3]
    assert not judge(problem, solution).faults
    certificate = problem.prove()
    assert certificate.claim is Claim.OPTIMAL
    assert np.isclose(certificate.bound, (1.0 + 1.5**2 + 0.5**2) / 8.0)
    both = certify(problem.form, np.array([0.0, 2.0, 1.5, 0.0]))
    assert "3 units" in both.violations[0]


def test_a_path_keeps_the_order():
    a, b = data(1)
    w = sm.Variable(P)
    problem = sm.Problem(
        sm.minimize(sm.squared_loss(a @ w, b) + sm.ridge(w, 0.05)), hierarchy("strong", w)
    )
    path = problem.path(range(1, 5))
    for k, value in zip(path.k, path.objective, strict=True):
        best = min(least("squared", a, b, s, 0.05, intercept=False) for s in supports("strong", k))
        assert np.isclose(value, best)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda z, w: [z[0] <= z[1], z[1] <= z[2], z[2] <= z[0]], "in a circle"),
        (lambda z, w: [z[:2] <= z[2:5]], "2 and 3 entries"),
        (lambda z, w: [z[0] == z[1]], "groups=labels"),
        (lambda z, w: [z[:2] + z[2:4] <= 1], "stands on the right"),
        (lambda z, w: [z[0] <= 1], "sm.chosen.w.i.. <="),
        (lambda z, w: [np.ones(2) @ z[[1, 0]] <= 1], "in a hierarchy alone"),
        (lambda z, w: [w[[1, 0]] >= 0], "sm.chosen.w..kids."),
        (lambda z, w: [sm.chosen(w[["d", "b"]]) <= z[["a", "c"]]], "order of the variable"),
    ],
)
def test_what_cannot_be_declared_is_refused_with_what_to_write(wrong, words):
    w = sm.Variable(5, name="w", names=list("abcde"))
    goal = sm.minimize(sm.squared_loss(np.eye(5) @ w, np.ones(5)))
    with pytest.raises(ModelError, match=words):
        sm.Problem(goal, sm.card(w) <= 3, wrong(sm.chosen(w), w))


def test_backends_that_cannot_say_so_and_texts_say_it():
    a, b = data(2)
    w = sm.Variable(P)
    problem = sm.Problem(
        sm.minimize(sm.squared_loss(a @ w, b)), sm.card(w) <= 3, hierarchy("weak", w)
    )
    with pytest.raises(UnsupportedProblemError, match="only together with something else"):
        problem.solve("nhtp")
    assert "6 of them only together with others" in " ".join(problem.explain().split())
    problem.solve()
    certificate = certify(problem.form, w.value)
    text = " ".join(str(certificate).split())
    assert "6 of them only together with others" in text
    assert "ignored by it that entries are nonzero only together with others" in text
    assert certificate.bound <= problem.prove().bound


def test_what_is_held_in_needs_room_for_one_of_its_parents():
    """Of which there may be several, for each of what asks for them."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((12, 6)), rng.standard_normal(12)

    def declared(k: int, *limits: object) -> sm.Problem:
        w = sm.Variable(6, name="w")
        z, goal = sm.chosen(w), sm.minimize(sm.squared_loss(a @ w, b) + sm.ridge(w, 0.1))
        needs = [z[2] <= z[0] + z[1], z[3] <= z[1] + z[4]]
        others = [limit(w) for limit in limits]
        return sm.Problem(goal, sm.card(w) <= k, w[2:4] >= 0.3, *needs, *others)

    assert declared(3).solve().support.tolist() == [1, 2, 3]
    with pytest.raises(sm.InfeasibleError, match=r"more than the 2 .* or than limits"):
        declared(2).solve()
    apart = lambda w: sm.card(w[1:3]) <= 1  # noqa: E731 - w[1] has no room, and the others do
    assert declared(4, apart).solve().support.tolist() == [0, 2, 3, 4]
    with pytest.raises(sm.InfeasibleError, match="beside them"):
        declared(3, apart).solve()
    assert declared(4).path([3, 4]).k.tolist() == [3, 4]
    with pytest.raises(sm.InfeasibleError, match="needs others beside it"):
        declared(4).path([2, 3])
