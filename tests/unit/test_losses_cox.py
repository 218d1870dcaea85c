"""The Cox loss against its definition, in loops and in extended precision."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import sparsemodel as sm
from sparsemodel.certificates import verify
from sparsemodel.certificates.dual_bounds.bound import dual_bound
from sparsemodel.losses import CoxLoss
from sparsemodel.losses.counts import cox, risk_sets
from sparsemodel.testing import run_loss_suite

LONG = np.longdouble


def by_definition(u: np.ndarray, y: np.ndarray, c: np.ndarray, ties: str = "breslow") -> float:
    """The formula of the docstring, one event at a time."""
    scaled = c.astype(LONG) * c.size / c.astype(LONG).sum()
    stratum = y[:, 2] if y.shape[1] > 2 else np.zeros(len(y))
    total = LONG(0.0)
    for i in np.flatnonzero(y[:, 1]):
        risk = (y[:, 0] >= y[i, 0]) & (stratum == stratum[i])
        tied = risk & (y[:, 0] == y[i, 0]) & (y[:, 1] == 1.0)
        # Relative to the own prediction: exp of differences, in a type with a wide exponent.
        hazards = scaled * np.exp(u.astype(LONG) - LONG(u[i]))
        d = int(tied.sum()) if ties == "efron" else 1
        parts = [hazards[risk].sum() - LONG(h) / d * hazards[tied].sum() for h in range(d)]
        total += c[i] * np.mean(np.log(parts))
    return float(total)


def data(
    seed: int, n: int, times: int, strata: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, times, n), rng.integers(0, 2, n)]
    columns += [rng.integers(0, strata, n)] if strata else []
    y = np.column_stack(columns).astype(np.float64)
    y[0, 1] = 1.0
    return rng.normal(size=n), y, rng.uniform(0.1, 3.0, n)


@pytest.mark.parametrize("ties", ["breslow", "efron"])
@given(
    st.integers(0, 1000),
    st.integers(1, 12),
    st.integers(1, 8),
    st.integers(0, 3),
    st.floats(0.1, 100.0),
)
def test_total_is_the_definition(
    ties: str, seed: int, n: int, times: int, strata: int, scale: float
) -> None:
    u, y, c = data(seed, n, times, strata)
    expected = by_definition(scale * u, y, c, ties)
    assert CoxLoss(ties=ties).total(scale * u, y, c) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("strata", [0, 3])
def test_ties_after_efron_conform(strata: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All laws but one: two equal events are a tie, and an event of weight two is none."""
    loss = CoxLoss(ties="efron")
    run_loss_suite(
        loss,
        lambda rng, n: data(int(rng.integers(1000)), n, 6, strata)[1],
        rounds=1,
        expected_failures={"check_weights*": "ties after Efron are no weights"},
    ).raise_if_failed()
    u, y, c = data(4, 40, 9, strata)
    p = np.random.default_rng(0).permutation(40)
    g, v = loss.gradient(u, y, c), np.sin(np.arange(80.0)).reshape(40, 2)
    np.testing.assert_allclose(loss.gradient(u[p], y[p], 3.0 * c[p]), 3.0 * g[p], atol=1e-12)
    assert loss.total(u[p], y[p], 3.0 * c[p]) == pytest.approx(3.0 * loss.total(u, y, c))
    direct = loss.hessian_product(5.0 * u, y, c, v)
    monkeypatch.setattr(cox, "_SAFE_RANGE", -1.0)
    np.testing.assert_allclose(
        direct, loss.hessian_product(5.0 * u, y, c, v), rtol=1e-9, atol=1e-13
    )


def test_a_known_tie() -> None:
    """Two of three have events at one time, with equal hazards: log 3 + log 2 after Efron."""
    y, c = np.array([[1.0, 1.0], [1.0, 1.0], [2.0, 0.0]]), np.ones(3)
    assert CoxLoss().total(np.zeros(3), y, c) == pytest.approx(2.0 * np.log(3.0))
    assert CoxLoss(ties="efron").total(np.zeros(3), y, c) == pytest.approx(np.log(6.0))
    # Strata: nobody else is at risk with the third, and with one event a stratum no ties are left.
    apart = np.column_stack([y, [0.0, 1.0, 1.0]])
    assert CoxLoss().total(np.zeros(3), apart, c) == pytest.approx(np.log(2.0))
    assert CoxLoss(ties="efron").total(np.zeros(3), apart, c) == pytest.approx(np.log(2.0))


def test_without_ties_both_are_the_same() -> None:
    u, y, c = data(2, 30, 5)
    y[:, 0] = np.random.default_rng(1).permutation(30)
    v = np.cos(np.arange(30.0))
    for one, two in zip(
        *(
            (loss.total(u, y, c), loss.gradient(u, y, c), loss.hessian_product(u, y, c, v))
            for loss in (CoxLoss(), CoxLoss(ties="efron"))
        ),
        strict=True,
    ):
        np.testing.assert_allclose(one, two, rtol=1e-11, atol=1e-12)


def test_equal_weights_give_the_textbook_value() -> None:
    # Five patients, one tie: computed by hand from the risk sets {5}, {4}, {3, 2 tied}, {1}.
    y = np.array([[1, 1], [2, 1], [2, 1], [3, 0], [4, 1]], dtype=np.float64)
    expected = np.log(5) + 2 * np.log(4) + np.log(1)
    assert CoxLoss().total(np.zeros(5), y, np.ones(5)) == pytest.approx(expected)
    assert CoxLoss().total(np.zeros(5), y, np.full(5, 0.2)) == pytest.approx(expected / 5)


@pytest.mark.parametrize("seed", range(5))
def test_both_ways_of_the_hessian_agree(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    u, y, c = data(seed, 40, 15)
    v = np.random.default_rng(seed).normal(size=(40, 3))
    direct = CoxLoss().hessian_product(5.0 * u, y, c, v)
    monkeypatch.setattr(cox, "_SAFE_RANGE", -1.0)
    with_logarithms = CoxLoss().hessian_product(5.0 * u, y, c, v)
    np.testing.assert_allclose(direct, with_logarithms, rtol=1e-9, atol=1e-13)


def test_hessian_in_full_is_that_of_the_definition() -> None:
    u, y, c = data(3, 9, 4)
    full = CoxLoss().hessian_product(u, y, c, np.eye(9))
    expected = np.zeros((9, 9))
    scaled = c * 9 / c.sum()
    for i in np.flatnonzero(y[:, 1]):
        p = np.where(y[:, 0] >= y[i, 0], scaled * np.exp(u), 0.0)
        p /= p.sum()
        expected += c[i] * (np.diag(p) - np.outer(p, p))
    np.testing.assert_allclose(full, expected, atol=1e-13)
    assert np.linalg.eigvalsh(full).max() <= 0.5 * (c @ y[:, 1])


def test_gradient_and_hessian_vanish_on_constants() -> None:
    u, y, c = data(1, 200, 60)
    loss = CoxLoss()
    assert loss.gradient(u, y, c).sum() == pytest.approx(0.0, abs=1e-11)
    assert np.abs(loss.hessian_product(u, y, c, np.ones(200))).max() < 1e-12
    assert loss.total(u + 5.0, y, c) == pytest.approx(loss.total(u, y, c), rel=1e-13)


@pytest.mark.parametrize("ties", ["breslow", "efron"])
@given(st.integers(0, 300), st.integers(1, 10), st.integers(1, 5), st.integers(0, 3))
def test_the_infimum_is_approached(ties: str, seed: int, n: int, times: int, strata: int) -> None:
    """Earlier deaths take all the risk, in proportion to nothing but their weights."""
    _, y, c = data(seed, n, times, strata)
    far = np.where(y[:, 1] == 1.0, 100.0 * (times - y[:, 0]), -1000.0)
    loss = CoxLoss(ties=ties)
    assert loss.total(far, y, c) == pytest.approx(loss.infimum(y, c), rel=1e-9, abs=1e-9)


def test_penalties_count_the_events() -> None:
    target = np.array([[1.0, 1.0], [2.0, 0.0], [3.0, 1.0]])
    assert CoxLoss().sample_size(target, np.array([1.0, 5.0, 2.0])) == 3.0


def test_a_fold_without_events_is_zero() -> None:
    y, c, u = np.column_stack([np.arange(4.0), np.zeros(4)]), np.ones(4), np.arange(4.0)
    loss = CoxLoss()
    assert loss.total(u, y, c) == 0.0
    assert loss.infimum(y, c) == 0.0
    np.testing.assert_array_equal(loss.gradient(u, y, c), 0.0)
    np.testing.assert_array_equal(loss.hessian_product(u, y, c, u), 0.0)


def test_extreme_predictions_are_exact() -> None:
    """Differences of thousands in the log hazard: sums of hazards underflow, logarithms do not."""
    u = np.array([3000.0, -3000.0, 0.0, 10.0])
    y = np.array([[1, 1], [2, 1], [3, 1], [3, 1]], dtype=np.float64)
    loss, c = CoxLoss(), np.ones(4)
    assert loss.total(u, y, c) == pytest.approx(by_definition(u, y, c), rel=1e-14)
    p = 1.0 / (1.0 + np.exp(10.0))
    expected = np.array([0.0, -1.0, 3 * p - 1.0, 3 * (1 - p) - 1.0])
    np.testing.assert_allclose(loss.gradient(u, y, c), expected, atol=1e-11)
    product = loss.hessian_product(u, y, c, np.array([1.0, 2.0, 3.0, -4.0]))
    np.testing.assert_allclose(product, 3 * p * (1 - p) * np.array([0, 0, 7, -7]), atol=1e-11)


def test_observations_of_weight_zero_are_not_there() -> None:
    u, y, c = data(5, 30, 8)
    y[7] = [100.0, 1.0]  # the longest time of all: its risk set is empty without it
    c[[2, 7, 11]] = 0.0
    kept = c > 0.0
    loss, v = CoxLoss(), np.linspace(-1.0, 1.0, 30)
    gradient, product = loss.gradient(u, y, c), loss.hessian_product(u, y, c, v)
    np.testing.assert_array_equal(gradient[~kept], 0.0)
    np.testing.assert_array_equal(product[~kept], 0.0)
    part = u[kept], y[kept], c[kept]
    np.testing.assert_allclose(gradient[kept], loss.gradient(*part), atol=1e-13)
    np.testing.assert_allclose(product[kept], loss.hessian_product(*part, v[kept]), atol=1e-13)
    assert np.isfinite(loss.total(u, y, c))


def declared(seed: int, ridge: float) -> sm.Problem:
    """Ties, weights, an offset and groups, so that all of the bound is asked for."""
    rng, n, p = np.random.default_rng(seed), 24, 8
    _, y, c = data(seed, n, 9)
    X, w = rng.normal(size=(n, p)), sm.Variable(p)
    loss = sm.cox_loss(X @ w + rng.normal(size=n), y, weights=c)
    limit = sm.card(w, groups=np.arange(p) // 2) <= 2 if seed % 2 else sm.card(w) <= 2
    return sm.Problem(sm.minimize(loss + sm.ridge(w, ridge)), [limit])


@pytest.mark.parametrize("seed", range(4))
def test_any_predictions_bound_the_best_support(seed: int) -> None:
    problem = declared(seed, 0.1)
    best = problem.solve(backend="exhaustive").value
    rng = np.random.default_rng(seed)
    for scale in (1e-9, 1.0, 30.0, 1e5):
        bound = dual_bound(problem.form, (scale * rng.normal(size=24),))
        assert np.isfinite(bound.value)
        assert bound.value <= best


@pytest.mark.parametrize(
    ("ridge", "seed"),
    [
        (1e-4, 1),
        (0.1, 0),
        *(pytest.param(*one, marks=pytest.mark.slow) for one in ((1e-4, 0), (0.1, 1))),
    ],
)
def test_a_proof_finds_the_best_support(seed: int, ridge: float) -> None:
    problem = declared(seed, ridge)
    best = problem.solve(backend="exhaustive").value
    certificate = problem.prove(gap=1e-7)
    assert certificate.claim.value == "globally optimal"
    assert certificate.bound <= best * (1.0 + 1e-12)
    assert certificate.value == pytest.approx(best, rel=1e-9)
    assert verify(certificate, problem.form).claim is certificate.claim


@pytest.mark.parametrize(("seed", "ties"), [(0, "breslow"), (1, "efron"), (2, "efron")])
def test_no_enumerated_support_is_better_by_another_minimiser(seed: int, ties: str) -> None:
    rng, n, p = np.random.default_rng(seed), 10, 4
    _, y, c = data(seed, n, 5, strata=seed)
    c[-1] *= seed != 1  # an observation of weight zero is not there
    X, w = rng.normal(size=(n, p)), sm.Variable(p)
    loss = sm.cox_loss(X @ w, y, ties=ties, weights=c)
    problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.05)), sm.card(w) <= 2)

    # in risk sets a weight of two is two observations, not twice the mean weight
    of_weights = float((c / n) @ y[:, 1] * np.log(c.mean()))

    def value(v: np.ndarray, columns: np.ndarray) -> float:
        return by_definition(columns @ v, y, c / n, ties) + of_weights + 0.025 * float(v @ v)

    best = min(
        minimize(value, np.zeros(2), args=(X[:, pair],), options={"gtol": 1e-6}).fun
        for pair in itertools.combinations(range(p), 2)
    )
    solution, bound = problem.solve(), problem.certify(time_limit=1.0).bound
    proof = problem.prove(gap=1e-6)
    assert solution.value == pytest.approx(best, abs=1e-7)
    assert bound <= best + 1e-9
    assert proof.bound <= best + 1e-9
    assert proof.claim.value == "globally optimal"


@pytest.mark.parametrize(
    ("seed", "kind"),
    [
        (0, "norm"),
        (1, "sum"),
        *(pytest.param(*one, marks=pytest.mark.slow) for one in ((0, "sum"), (1, "norm"))),
    ],
)
def test_constraints_count_in_bounds(kind: str, seed: int) -> None:
    rng, n, p = np.random.default_rng(seed), 20, 4
    _, y, _ = data(seed, n, 7)
    X, w = rng.normal(size=(n, p)), sm.Variable(p)
    goal = sm.minimize(sm.cox_loss(X @ w, y) + sm.ridge(w, 0.1))
    limit = np.ones(p) @ w == 10.0 if kind == "sum" else sm.norm(w) <= 0.02
    loose, problem = sm.Problem(goal, sm.card(w) <= p), sm.Problem(goal, [sm.card(w) <= p, limit])
    assert problem.solve().value > loose.solve().value * 1.01  # the constraint matters
    certificate = problem.prove(gap=1e-5)
    assert certificate.relative_gap <= 1e-5
    assert verify(certificate, problem.form).claim is certificate.claim


def test_a_proof_without_a_ridge_says_what_it_needs() -> None:
    problem = declared(0, 0.0)
    problem.solve()
    with pytest.raises(sm.UnsupportedProblemError, match="needs a ridge or bounds"):
        problem.prove()
    (term,) = problem.form.terms
    infimum = term.loss.infimum(term.target, term.weights) + problem.form.constant
    assert problem.certify().bound == pytest.approx(infimum)


def test_the_relaxation_bounds_better_than_the_gradient_at_the_point() -> None:
    problem = declared(2, 0.1)
    problem.solve()
    certificate, form = problem.certify(), problem.form
    term = form.terms[0]
    at_point = dual_bound(form, (term.design.matvec(certificate.x) + term.offset,))
    assert certificate.bound > at_point.value


@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
def test_stated_sizes_cover_what_is_rounded(scale: float) -> None:
    u, y, c = data(7, 400, 150)
    u, loss = scale * u, CoxLoss()
    size, sizes = loss.magnitudes(u, y, c)
    assert abs(loss.total(u, y, c) - by_definition(u, y, c)) <= 2.0**-47 * size
    exact, wide = -(c * y[:, 1]).astype(LONG), u.astype(LONG)
    for i in np.flatnonzero(y[:, 1]):
        risk = y[:, 0] >= y[i, 0]
        r = np.where(risk, c.astype(LONG), 0) * np.exp(np.where(risk, wide - wide[risk].max(), 0))
        exact += c[i] * r / r.sum()
    assert np.all(np.abs(loss.gradient(u, y, c) - exact) <= 2.0**-47 * sizes + 1e-300)


def test_a_proof_with_a_term_without_a_hessian_says_which(rng) -> None:
    """Tangents alone bound a Cox loss, and a 1-norm has none that the search could follow."""
    times = np.column_stack([rng.integers(1, 12, 25), rng.integers(0, 2, 25)])
    w = sm.Variable(5)
    loss = sm.cox_loss(rng.standard_normal((25, 5)) @ w, times)
    goal = loss + 0.01 * sm.norm(w, 1) + sm.ridge(w, 0.05)
    problem = sm.Problem(sm.minimize(goal), sm.card(w) <= 2)
    problem.solve()
    assert np.isfinite(problem.certify().bound)
    with pytest.raises(sm.UnsupportedProblemError, match="absolute_loss has none"):
        problem.prove()


def test_risk_sets_are_sorted_once_for_arrays_that_do_not_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sorts, of, before = [], risk_sets.RiskSets.of, set(risk_sets._KEPT)
    counted = staticmethod(lambda *a, **k: sorts.append(1) or of(*a, **k))
    monkeypatch.setattr(risk_sets.RiskSets, "of", counted)
    u, target, weights = data(0, 20, 9)
    first = [CoxLoss().total(u, target, weights) for _ in range(3)]
    assert len(sorts) == 1
    assert len(set(first)) == 1
    for array in (target[:, 0], weights):
        array[:] = array[::-1].copy()  # in place
        expected = by_definition(u, target, weights)
        assert CoxLoss().total(u, target, weights) == pytest.approx(expected, rel=1e-12)
        assert expected != pytest.approx(first[0], rel=1e-6)
    del target, weights, array
    assert set(risk_sets._KEPT) <= before  # as long as the arrays


def late(
    seed: int, n: int, times: int, strata: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Start, stop, event and stratum, with ties among all of them."""
    rng = np.random.default_rng(seed)
    start = rng.integers(0, times, n)
    stop = start + rng.integers(1, times + 1, n)
    y = np.column_stack([start, stop, rng.integers(0, 2, n), rng.integers(0, strata, n)])
    y[0, 2] = 1
    return rng.normal(size=n), y.astype(np.float64), rng.uniform(0.1, 3.0, n)


def compared(
    u: np.ndarray, y: np.ndarray, c: np.ndarray, ties: str
) -> list[tuple[float, np.ndarray]]:
    """The weights and shares of hazards of all logarithms of a risk set, by definition."""
    start, stop, event, stratum = y.T
    out, hazards = [], c * (c.size / c.sum()) * np.exp(u)
    for i in np.flatnonzero((event == 1.0) & (c > 0.0)):
        risk = (start < stop[i]) & (stop[i] <= stop) & (stratum == stratum[i])
        tied = risk & (stop == stop[i]) & (event == 1.0) & (c > 0.0)
        d = int(tied.sum()) if ties == "efron" else 1
        out += [(c[i] / d, hazards * risk * (1.0 - tied * h / d)) for h in range(d)]
    return out


@pytest.mark.parametrize("ties", ["breslow", "efron"])
@given(st.integers(0, 1000), st.integers(1, 14), st.integers(1, 8), st.integers(1, 3))
def test_delayed_entry_is_the_definition(
    ties: str, seed: int, n: int, times: int, strata: int
) -> None:
    u, y, c = late(seed, n, times, strata)
    loss, event = CoxLoss(ties=ties), c * y[:, 2]
    value, gradient, hessian = -float(event @ u), -event, np.zeros((n, n))
    for weight, shares in compared(u, y, c, ties):
        p = shares / shares.sum()
        value += weight * np.log(shares.sum())
        gradient = gradient + weight * p
        hessian += weight * (np.diag(p) - np.outer(p, p))
    assert loss.total(u, y, c) == pytest.approx(value, rel=1e-10, abs=1e-10)
    np.testing.assert_allclose(loss.gradient(u, y, c), gradient, atol=1e-11)
    np.testing.assert_allclose(loss.hessian_product(u, y, c, np.eye(n)), hessian, atol=1e-11)
    far = np.where(y[:, 2] == 1.0, 100.0 * (2 * times - y[:, 1]), -1000.0)
    assert loss.total(far, y, c) == pytest.approx(loss.infimum(y, c), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_entry_before_everything_changes_nothing(ties: str) -> None:
    u, y, c = data(3, 60, 12, 3)
    y[:, 0] += 1.0
    entered = np.column_stack([np.zeros(60), y])
    loss, v = CoxLoss(ties=ties), np.sin(np.arange(120.0)).reshape(60, 2)
    assert loss.total(u, entered, c) == pytest.approx(loss.total(u, y, c), rel=1e-12)
    np.testing.assert_allclose(loss.gradient(u, entered, c), loss.gradient(u, y, c), atol=1e-12)
    np.testing.assert_allclose(
        loss.hessian_product(u, entered, c, v), loss.hessian_product(u, y, c, v), atol=1e-12
    )
    # An observation cut in two, censored and entering again, is the same observation.
    cut = np.vstack([entered, entered])
    half = 0.5 * entered[:, 1]
    cut[:60, 1], cut[:60, 2], cut[60:, 0] = half, 0.0, half
    for_all, twice = loss.gradient(u, entered, np.ones(60)), np.tile(u, 2)
    halves = loss.gradient(twice, cut, np.ones(120)).reshape(2, 60).sum(axis=0)
    np.testing.assert_allclose(halves, for_all, atol=1e-11)


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_delayed_entry_conforms(ties: str) -> None:
    run_loss_suite(
        CoxLoss(ties=ties),
        lambda rng, n: late(int(rng.integers(1000)), n, 6, 2)[1],
        rounds=1,
        expected_failures={"check_weights*": "ties after Efron are no weights"}
        if ties == "efron"
        else {},
    ).raise_if_failed()


def test_hazards_of_those_that_have_not_entered_do_not_cancel() -> None:
    """A hazard of e^600 that enters after the event has no share in it, nor in its rounding."""
    u = np.array([0.0, 1.0, 600.0, 2.0])
    y = np.array([[0, 1, 1, 0], [0, 2, 0, 0], [5, 9, 1, 0], [0, 7, 0, 0]], dtype=np.float64)
    loss, c = CoxLoss(), np.ones(4)
    near = np.exp([0.0, 1.0, 2.0])
    assert loss.total(u, y, c) == pytest.approx(np.log(near.sum()), rel=1e-13)
    expected = np.insert(near / near.sum() - [1, 0, 0], 2, 0.0)
    np.testing.assert_allclose(loss.gradient(u, y, c), expected, atol=1e-14)


TEST2 = np.array(
    [
        *([1, 2, 1, 1], [2, 3, 1, 0], [5, 6, 1, 0], [2, 7, 1, 1], [1, 8, 1, 0]),
        *([7, 9, 1, 1], [3, 9, 1, 1], [4, 9, 0, 1], [8, 14, 0, 0], [8, 17, 0, 0]),
    ],
    dtype=np.float64,
)
"""Start, stop, event and x of the second data set of Therneau and Grambsch, appendix E."""


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_the_published_example_with_delayed_entry(ties: str) -> None:
    """Log likelihoods in r = exp(beta) as the book derives them, and R's coefficient."""
    x, w = TEST2[:, 3:], sm.Variable(1)
    mean = sm.cox_loss(x @ w, TEST2[:, :3], ties=ties)
    problem = sm.Problem(sm.minimize(mean), sm.card(w) <= 1)
    problem.solve()
    beta = float(w.value[0])

    def minus_log(b: float) -> float:
        r = np.exp(b)
        tied = 2 * np.log(3 * r + 2) if ties == "breslow" else np.log((3 * r + 2) * (2 * r + 2))
        rest = np.log((r + 1) * (r + 2) * (3 * r + 2) * (3 * r + 1) ** 2)
        return float(rest + tied - 4 * b)

    y = CoxLoss().check_target(TEST2[:, :3], "y")
    loss = CoxLoss(ties=ties)
    for b in (0.0, 0.7, -2.0):
        assert loss.total(b * x[:, 0], y, np.ones(10)) == pytest.approx(minus_log(b), rel=1e-13)
    assert 10.0 * problem.value == pytest.approx(minus_log(beta), rel=1e-12)
    if ties == "breslow":
        assert beta == pytest.approx(-0.084526081, abs=1e-7)


@pytest.mark.parametrize(("seed", "ties"), [(0, "breslow"), (1, "efron")])
def test_a_proof_with_delayed_entry_holds(seed: int, ties: str) -> None:
    rng, n, p = np.random.default_rng(seed), 24, 6
    _, y, c = late(seed, n, 9, 2)
    X, w = rng.normal(size=(n, p)), sm.Variable(p)
    loss = sm.cox_loss(X @ w, y, ties=ties, weights=c)
    problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 2)
    best = problem.solve(backend="exhaustive").value
    problem.solve()
    certificate = problem.prove(gap=1e-7)
    assert certificate.claim.value == "globally optimal"
    assert certificate.value == pytest.approx(best, rel=1e-9)
    assert verify(certificate, problem.form).claim is certificate.claim


def test_columns_of_delayed_entry_are_understood_or_named() -> None:
    loss, y = CoxLoss(), TEST2[:, :3]
    once = loss.check_target(y, "y")
    np.testing.assert_array_equal(once, np.column_stack([y, np.zeros(10)]))
    np.testing.assert_array_equal(loss.check_target(once, "y"), once)
    strata = np.column_stack([y[:, 1:], np.arange(10.0) % 2])  # time, event, stratum, as before
    np.testing.assert_array_equal(loss.check_target(strata, "y"), strata)
    wrong = y.copy()
    wrong[3, 0] = 7.0
    with pytest.raises(sm.DataError, match="row 3 starts at 7 and stops at 7"):
        loss.check_target(wrong, "y")
    assert loss.sample_size(once, np.ones(10)) == 7.0
