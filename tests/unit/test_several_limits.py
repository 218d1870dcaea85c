"""Several limits at once: disjoint and nested sets of units, against all supports."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsemodel as sm
from sparsemodel.certificates import Claim, certify, verify
from sparsemodel.certificates.dual_bounds.witness import evaluate, from_point
from sparsemodel.certificates.proving.node import IN, OUT, Minorant, decide
from sparsemodel.checker.__main__ import main
from sparsemodel.interfaces import Cardinality, Layer, ModelError, UnsupportedProblemError
from sparsemodel.numerics import best_units, project
from tests.referee import judge

RNG = np.random.default_rng(3)
N, P = 30, 9
A = RNG.standard_normal((N, P))
B = A @ RNG.standard_normal(P) + 0.3 * RNG.standard_normal(N)
SETS = [([0, 1], 1), ([0, 1, 2, 3], 2), ([5, 6, 7, 8], 2), ([6, 7], 1)]


def allowed(units: tuple[int, ...], k: int, sets=SETS) -> bool:
    return len(units) <= k and all(len(set(units) & set(s)) <= most for s, most in sets)


def supports(k: int, sets=SETS):
    for size in range(k + 1):
        yield from (u for u in combinations(range(P), size) if allowed(u, k, sets))


def least_squares(columns, a=A, b=B, ridge=0.1) -> float:
    """Return the least mean squared loss with a ridge on these columns."""
    a = a[:, list(columns)]
    g = a.T @ a / len(b) + ridge * np.eye(a.shape[1])
    return 0.5 * (b @ b / len(b) - (a.T @ b / len(b)) @ np.linalg.solve(g, a.T @ b / len(b)))


def declared(k: int = 4) -> sm.Problem:
    w = sm.Variable(P, name="w")
    limits = [sm.card(w[s]) <= most for s, most in SETS]
    return sm.Problem(
        sm.minimize(sm.squared_loss(A @ w, B) + sm.ridge(w, 0.1)), sm.card(w) <= k, limits
    )


@st.composite
def families(draw) -> tuple[Cardinality, list[tuple[list[int], int]]]:
    """Draw a laminar family by splitting an interval again and again."""
    sets: list[tuple[list[int], int]] = []

    def split(low: int, high: int, depth: int) -> None:
        if high - low < 2 or depth > 3:
            return
        if depth and draw(st.booleans()):
            sets.append((list(range(low, high)), draw(st.integers(0, high - low))))
        middle = draw(st.integers(low + 1, high - 1))
        split(low, middle, depth + 1)
        split(middle, high, depth + 1)

    split(0, P, 0)
    k = draw(st.integers(0, P))
    w = sm.Variable(P)
    cards = [sm.card(w) <= k, *(sm.card(w[s]) <= most for s, most in sets)]
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, B)), cards)
    return problem.form.sparsity, [*sets, (list(range(P)), k)]


@settings(max_examples=60, deadline=None)
@given(families(), st.lists(st.integers(0, 9), min_size=P, max_size=P))
def test_the_selection_is_the_best_of_all_supports(family, numbers):
    sparsity, sets = family
    scores = np.array(numbers, dtype=np.float64)
    best = max(sum(scores[list(u)]) for u in supports(P, sets))
    chosen = best_units(sparsity, scores)
    assert allowed(tuple(chosen), P, sets)
    assert sparsity.within(chosen)
    assert scores[chosen].sum() == best
    assert chosen.size == sparsity.k == max(len(u) for u in supports(P, sets))


@settings(max_examples=40, deadline=None)
@given(families(), st.sets(st.integers(0, P - 1)))
def test_room_and_exchanges_are_those_of_the_definition(family, wanted):
    sparsity, sets = family
    units = best_units(sparsity, np.isin(np.arange(P), list(wanted)).astype(float))
    room, swaps = sparsity.room(units), sparsity.exchangeable(units)
    for j in set(range(P)) - set(units.tolist()):
        assert room[j] == allowed((*units, j), P, sets)
        for place in range(units.size):
            assert swaps[place, j] == allowed((*np.delete(units, place), j), P, sets)


def test_the_projection_is_the_nearest_point():
    problem = declared()
    objective = sm.numerics.RegressionObjective(problem.form)
    for seed in range(20):
        z = np.random.default_rng(seed).standard_normal(P)
        support, values = project(objective, z)
        nearest = min(np.sum(np.delete(z, list(u)) ** 2) for u in supports(4))
        assert np.array_equal(values, z[support])
        assert np.isclose(np.sum(np.delete(z, support) ** 2), nearest)


@pytest.mark.parametrize("backend", [None, "exhaustive", "exchange"])
def test_the_best_support_is_found(backend):
    problem = declared()
    solution = problem.solve(backend)
    best = min(supports(4), key=least_squares)
    assert tuple(solution.support) == best
    assert np.isclose(solution.value, least_squares(best))
    assert not judge(problem, solution).faults


@pytest.mark.parametrize("backend", ["iht", "niht", "iiht"])
def test_methods_that_project_keep_every_limit(backend):
    problem = declared()
    solution = problem.solve(backend)
    assert allowed(tuple(solution.support), 4)
    assert not judge(problem, solution).faults


def test_a_backend_that_cannot_says_so():
    with pytest.raises(UnsupportedProblemError, match="limits on parts"):
        declared().solve("nhtp")


def test_two_variables_have_a_limit_each_and_one_together():
    u, v, c = sm.Variable(5, name="u"), sm.Variable(P - 5, name="v"), sm.Variable(name="c")
    fit = sm.squared_loss(A[:, :5] @ u + A[:, 5:] @ v + c, B) + sm.ridge(u, 0.1) + sm.ridge(v, 0.1)
    each = sm.Problem(sm.minimize(fit), sm.card(u) <= 1, sm.card(v) <= 2)
    centred = A - A.mean(0), B - B.mean()

    def value(s):
        return least_squares(s, *centred)

    best = min((s for s in combinations(range(P), 3) if sum(j < 5 for j in s) == 1), key=value)
    solution = each.solve()
    assert np.isclose(solution.value, value(best))
    names = [f"u[{j}]" if j < 5 else f"v[{j - 5}]" for j in best]
    assert solution.support == names
    assert solution.indices.tolist() == list(best)

    together = sm.Problem(sm.minimize(fit), sm.card(u) + sm.card(v) <= 3)
    best = min(combinations(range(P), 3), key=value)
    assert np.isclose(together.solve().value, value(best))

    costs, prices = np.arange(1.0, 6.0), np.arange(6.0, P + 1.0)
    paid = costs @ sm.chosen(u) + prices @ sm.chosen(v)
    priced = sm.Problem(sm.minimize(fit + paid)).form.sparsity.prices
    assert priced.tolist() == np.arange(1.0, P + 1.0).tolist()
    knapsack = sm.Problem(sm.minimize(fit), paid <= 12.0).form.sparsity.knapsacks[0]
    assert knapsack.costs.tolist() == np.arange(1.0, P + 1.0).tolist()


def test_a_proof_without_a_ridge_can_be_verified():
    """Units that are in for good have slopes of zero: whoever reads a part has to know that."""
    w, c = sm.Variable(P), sm.Variable()
    limits = [sm.card(w[s]) <= most for s, most in SETS]
    goal = sm.minimize(sm.squared_loss(A @ w + c, B))
    problem = sm.Problem(goal, sm.card(w) <= 4, limits)
    certificate = problem.prove(gap=1e-6)
    assert len(certificate.proof["tree"]["nodes"]) > 1
    verify(certificate, problem.form)


def test_at_most_one_of_each_group_and_k_in_all():
    w, g = sm.Variable(P), np.arange(P) // 3
    limits = [sm.card(w[g == i]) <= 1 for i in range(3)]
    fit = sm.squared_loss(A @ w, B) + sm.ridge(w, 0.1)
    solution = sm.Problem(sm.minimize(fit), sm.card(w) <= 2, limits).solve()
    best = min((s for s in combinations(range(P), 2) if g[s[0]] != g[s[1]]), key=least_squares)
    assert tuple(solution.support) == best


def test_groups_are_counted_within_sets_of_groups():
    w, g = sm.Variable(P), np.arange(P) // 2
    fit = sm.squared_loss(A @ w, B) + sm.ridge(w, 0.1)
    one = sm.card(w[:4], groups=g[:4]) <= 1
    solution = sm.Problem(sm.minimize(fit), sm.card(w, groups=g) <= 3, one).solve()

    def columns(s):
        return np.flatnonzero(np.isin(g, s))

    best = min(
        (s for s in combinations(range(5), 3) if sum(i < 2 for i in s) <= 1),
        key=lambda s: least_squares(columns(s)),
    )
    assert np.isclose(solution.value, least_squares(columns(best)))


def test_bounds_that_force_entries_in_use_up_the_limits_of_their_sets():
    w = sm.Variable(P)
    fit = sm.squared_loss(A @ w, B) + sm.ridge(w, 0.1)
    kept = sm.card(w) <= 3, sm.card(w[:4]) <= 1
    solution = sm.Problem(sm.minimize(fit), *kept, w[2] >= 0.5).solve()
    assert np.flatnonzero(w.value[:4]).tolist() == [2]
    assert np.count_nonzero(w.value) == 3 == solution.indices.size
    with pytest.raises(sm.InfeasibleError, match="of a set away from zero"):
        sm.Problem(sm.minimize(fit), *kept, w[1:3] >= 0.5).solve()


def test_a_price_stands_beside_limits():
    w = sm.Variable(P)
    fit = sm.squared_loss(A @ w, B) + sm.ridge(w, 0.1) + 0.05 * sm.card(w)
    limits = [sm.card(w[s]) <= most for s, most in SETS]
    best = min(least_squares(s) + 0.05 * len(s) for s in supports(P))
    for backend in (None, "exchange"):
        solution = sm.Problem(sm.minimize(fit), limits).solve(backend)
        assert np.isclose(solution.value, best)


def test_certificates_hold_and_are_refused_where_a_limit_is_broken():
    problem = declared()
    problem.solve()
    certificate = problem.certify(time_limit=5.0)
    best = min(map(least_squares, supports(4)))
    assert certificate.bound <= best
    verify(certificate, problem.form)
    free = sm.Variable(P)
    fit = sm.squared_loss(A @ free, B) + sm.ridge(free, 0.1)
    wide = sm.Problem(sm.minimize(fit), sm.card(free) <= 4)
    wide.solve()
    broken = certify(problem.form, free.value)
    assert any("of which at most" in words for words in broken.violations)
    assert broken.claim.value == "none"


def test_another_limit_is_another_problem():
    problem = declared()
    problem.solve()
    certificate = problem.certify(time_limit=5.0)
    other = replace(problem.form.sparsity, limits=problem.form.sparsity.limits[:1])
    with pytest.raises(sm.CertificateError, match="structure"):
        verify(certificate, replace(problem.form, sparsity=other))


def test_entries_and_groups_of_them_are_not_counted_together():
    w = sm.Variable(P)
    limits = [sm.card(w) <= 2, sm.card(w, groups=np.arange(P) // 2) <= 1]
    with pytest.raises(ModelError, match="different ways"):
        sm.Problem(sm.minimize(sm.squared_loss(A @ w, B)), limits).solve()


def fit(w) -> sm.Minimize:
    return sm.minimize(sm.squared_loss(A @ w, B) + sm.ridge(w, 0.1))


def test_a_path_over_a_long_range_ends_with_all_units():
    w, k = sm.Variable(P), sm.Parameter(integer=True, value=2)
    problem = sm.Problem(fit(w), sm.card(w[:4]) <= k, sm.card(w[4:]) <= 1)
    assert problem.path(k, range(10**12), sweeps=0).k.tolist() == list(range(P + 1))


@pytest.mark.parametrize("both", [False, True])
def test_a_path_follows_the_limit_that_its_parameter_is_in(both):
    w, k = sm.Variable(P), sm.Parameter(integer=True, value=2)
    problem = sm.Problem(fit(w), sm.card(w[:4]) <= k, sm.card(w[4:]) <= (k if both else 2))
    path = problem.path(k, range(5), sweeps=0)
    for number, value in zip(path.k, path.objective, strict=True):
        sets = [(range(4), number), (range(4, P), number if both else 2)]
        assert np.isclose(value, min(map(least_squares, supports(P, sets))))
    assert k.value == 2


def test_a_path_of_values_follows_the_number_in_all():
    problem = declared()
    path = problem.path(range(P + 1), sweeps=0)
    for k, value in zip(path.k, path.objective, strict=True):
        assert np.isclose(value, min(map(least_squares, supports(k))))
    chosen = path.cross_validate(folds=2)
    assert allowed(tuple(chosen.support), chosen.k)


def test_a_path_of_edges_follows_one_limit():
    omega, k = sm.Variable((4, 4), symmetric=True), sm.Parameter(integer=True, value=2)
    off = sm.card(sm.offdiag(omega))
    goal = sm.minimize(sm.gaussian_nll(omega, np.eye(4)))
    problem = sm.Problem(goal, off <= 2 * k, off <= 10)
    with pytest.raises(ModelError, match="leave the other limits"):
        problem.path(k, range(3))


@settings(max_examples=40, deadline=None)
@given(families(), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.375]))
def test_a_minorant_decides_what_all_supports_would(family, seed, price):
    """The bound of a part, and with one unit more in or out, are the least over its supports."""
    sparsity, sets = family
    rng = np.random.default_rng(seed)
    gains = rng.integers(0, 16, P) / 8.0  # sums are exact
    status = rng.choice([OUT, 0, 0, 0, IN], P).astype(np.int8)
    inside = set(np.flatnonzero(status == IN).tolist())
    k = sparsity.budget - len(inside)
    found = decide(Minorant(5.0, gains), status, k, replace(sparsity, price=price))

    parts = [
        (set(u), 5.0 - sum(gains[j] - price for j in u))
        for u in supports(P, sets)
        if inside <= set(u) and not any(status[j] == OUT for j in u)
    ]

    def least(unit=None, present=True):
        kept = [v for u, v in parts if unit is None or (unit in u) == present]
        return min(kept, default=np.inf)

    if found is None or not np.isfinite(least()):
        assert found is not None
        assert found.bound == np.inf
        return
    assert found.bound <= least()
    assert np.isclose(found.bound, least())
    for unit in np.flatnonzero(status == 0).tolist():
        assert np.isclose(found.if_in[unit], least(unit))
        assert np.isclose(found.if_out[unit], least(unit, False))


@pytest.mark.parametrize("loss", ["squared", "logistic", "grouped", "boxed", "priced", "forced"])
def test_a_proof_of_several_limits_is_that_of_all_supports(loss, tmp_path):
    """The bound is no higher than the best of all supports, and close; both readers accept it."""
    w = sm.Variable(P, name="w")
    signs = np.where(np.median(B) < B, 1.0, -1.0)
    goal = sm.squared_loss(A @ w, B) if loss != "logistic" else sm.logistic_loss(A @ w, signs)
    goal = goal + sm.ridge(w, 0.1) + (0.05 * sm.card(w) if loss == "priced" else 0.0)
    limits = [sm.card(w) <= 4, *(sm.card(w[s]) <= most for s, most in SETS)]
    if loss == "grouped":
        pairs = np.array([0, 0, 1, 1, 2, 2])
        limits = [sm.card(w[:6], groups=pairs) <= 1, sm.card(w[6:]) <= 2]
    more = {"boxed": [w >= -0.1, w <= 0.5], "forced": [w[5] >= 0.2]}.get(loss, [])
    problem = sm.Problem(sm.minimize(goal), limits, more)
    best = problem.solve("exhaustive").value
    certificate = problem.prove(gap=1e-6)
    assert certificate.claim is Claim.OPTIMAL
    assert best - 1e-5 * abs(best) <= certificate.bound <= best + 1e-12
    verify(certificate, problem.form)
    certificate.save(tmp_path / "c.json")
    np.savez(tmp_path / "d.npz", A=A, b=B if loss != "logistic" else signs)
    assert main([str(tmp_path / "c.json"), str(tmp_path / "d.npz")]) == 0


def test_limits_of_parts_sharpen_the_bound():
    """Without branching, a bound that knows of the parts is above one that knows ``k`` alone."""
    w = sm.Variable(P)
    first, others = np.split(np.argsort(-np.abs(A.T @ B)), [2])
    first, others = np.sort(first), np.sort(others)
    form = sm.Problem(fit(w), sm.card(w[first]) <= 1, sm.card(w[others]) <= 1).form
    at = from_point(form, np.zeros(P))
    alone = replace(form, sparsity=replace(form.sparsity, limits=()))
    best = min(map(least_squares, supports(P, [(first, 1), (others, 1)])))
    assert evaluate(alone, at).value < evaluate(form, at).value - 0.1 < best


def test_layers_count_by_set():
    layer = Layer(np.array([0, 0, -1, 1]), np.array([1, 2]))
    assert layer.counts(np.array([0, 1, 2])).tolist() == [2, 0]
    assert layer.full(np.array([0])).tolist() == [True, True, False, False]


def test_a_path_along_the_limit_of_a_part_begins_where_others_are_held_in() -> None:
    rng = np.random.default_rng(0)
    a, b, w = rng.standard_normal((12, 5)), rng.standard_normal(12), sm.Variable(5)
    k = sm.Parameter(integer=True, nonneg=True, value=1)
    goal = sm.minimize(sm.squared_loss(a @ w, b) + sm.ridge(w, 0.1))
    limits = [sm.card(w) <= 4, sm.card(w[:3]) <= k]
    path = sm.Problem(goal, *limits, w[4] >= 0.3).path(k, range(3))
    assert path.k.tolist() == [0, 1, 2]
    assert np.intersect1d(path.support[0], range(3)).size == 0
    with pytest.raises(sm.InfeasibleError, match="of a set"):
        sm.Problem(goal, *limits, w[1] >= 0.3).path(k, range(3))
