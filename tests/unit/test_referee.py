"""The referee: right answers stand, and every kind of lie is told with its numbers."""

from __future__ import annotations

import itertools
from dataclasses import asdict, replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsemodel as sm
from sparsemodel import certificates
from sparsemodel.certificates import Claim
from sparsemodel.driver import LowerBound
from sparsemodel.interfaces import Loss
from sparsemodel.losses import CoxLoss, builtin_losses
from sparsemodel.modelling.problem import Problem
from tests import referee
from tests.referee import objective
from tests.referee.search import rationals
from tests.referee.search.dense import make_dense
from tests.referee.textbook_losses import bend, is_known, long, moved, slope, total

PARAMETERS = {"tau": 0.8, "theta": 2.5, "power": 1.3, "delta": 0.7, "epsilon": 0.3}
LOSSES = {
    type(loss).__name__.removesuffix("Loss"): type(loss)(
        **{name: PARAMETERS.get(name, value) for name, value in asdict(loss).items()}
    )
    for loss in builtin_losses()
    if is_known(loss)
}
LABELLED = {"Logistic", "Hinge", "SmoothedHinge", "SquaredHinge"}
KINKED = {"Absolute", "Quantile", "EpsilonInsensitive", "Hinge"}


def posed(*, loss=sm.squared_loss, k=2, extra=(), seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((20, 6))
    y = A[:, 1] - A[:, 4] + 0.3 * rng.standard_normal(20)
    w = sm.Variable(6, name="w")
    constraints = [sm.card(w) <= k, *(make(w) for make in extra)]
    return sm.Problem(sm.minimize(loss(A @ w, y) + sm.ridge(w, 0.1)), constraints), w


def with_values(solution, x):
    return replace(solution, values={"w": np.asarray(x, dtype=float)})


def faults(problem, answer):
    with pytest.raises(referee.RefereeError) as told:
        referee.judge(problem, answer)
    assert isinstance(told.value, AssertionError)
    return " | ".join(told.value.faults)


# ---- answers that are right ------------------------------------------------------------------


@pytest.mark.parametrize("loss", [sm.squared_loss, sm.huber_loss, sm.absolute_loss])
def test_right_answers_stand(loss):
    problem, _ = posed(loss=loss)
    for answer in (problem.solve(), problem.certify(), problem.prove(), problem.path(range(4))):
        ruling = referee.judge(problem, answer)
        assert "value" in ruling.judged
        assert not ruling.unjudged


def test_small_problems_are_judged_by_every_support():
    problem, _ = posed()
    solution = problem.solve()
    ruling = referee.judge(problem, solution)
    assert "every support" in ruling.judged
    assert ruling.best == pytest.approx(solution.value, rel=1e-12)


def test_a_graph_stands_and_a_wrong_graph_does_not():
    rng = np.random.default_rng(3)
    omega = sm.Variable((4, 4), symmetric=True, name="Omega")
    goal = sm.minimize(sm.gaussian_nll(omega, data=rng.standard_normal((30, 4))))
    constraints = [sm.card(sm.offdiag(omega)) <= 4, sm.forbidden_edges(omega, [(0, 1)])]
    problem = sm.Problem(goal, constraints)
    solution = problem.solve()
    assert "some supports" in referee.judge(problem, problem.certify()).judged
    full = solution.values["Omega"].copy()
    full[full == 0.0] = 1e-3
    told = faults(problem, replace(solution, values={"Omega": full}))
    assert "12 are not zero, 4 may be" in told
    assert "forbidden_edges" in told


def test_what_cannot_be_judged_is_said(monkeypatch):
    problem, _ = posed()
    solution = problem.solve()
    more = (*problem.constraints, SimpleNamespace())
    monkeypatch.setattr(Problem, "constraints", property(lambda self: more))
    ruling = referee.judge(problem, solution)
    assert "no rule for the constraint SimpleNamespace" in ruling.unjudged


def test_a_loss_of_somebody_is_evaluated_by_its_own_functions():
    class Cubic(sm.Loss):
        name = "cubic_loss"

        def value(self, u, y):
            return np.abs(u - y) ** 3 / 3

        def derivative(self, u, y):
            return (u - y) * np.abs(u - y)

    A = np.random.default_rng(1).standard_normal((12, 3))
    w = sm.Variable(3, name="w")
    goal = sm.minimize(sm.loss_term(Cubic(), A @ w, np.ones(12)) + sm.ridge(w, 1.0))
    problem = sm.Problem(goal, sm.card(w) <= 2)
    value = float(np.mean(np.ones(12) / 3))
    solution = SimpleNamespace(value=value)  # the objective at zero
    known, _ = posed()
    zero = replace(
        known.solve(),
        value=solution.value,
        lower=LowerBound(-np.inf),
        values={"w": np.zeros(3)},
        indices=np.empty(0, dtype=np.intp),
        coefficients={},
    )
    assert "value" in referee.judge(problem, zero).judged
    assert "the value says" in faults(problem, replace(zero, value=value + 0.01))


# ---- lies ------------------------------------------------------------------------------------


def test_lies_of_a_solution():
    problem, _ = posed()
    solution = problem.solve()
    x, value = solution.values["w"], solution.value
    assert "the value says" in faults(problem, replace(solution, value=value * (1.0 + 1e-8)))
    above = replace(solution, lower=LowerBound(value * (1.0 + 1e-9)))
    assert "is above the objective" in faults(problem, above)
    assert "the bound is inf" in faults(problem, replace(solution, lower=LowerBound(np.inf)))
    assert "the support says [1]" in faults(problem, replace(solution, indices=np.array([1])))
    lower = LowerBound(-np.inf, True)
    assert "called proved with" in faults(problem, replace(solution, lower=lower))
    assert "card(w) <= 2: 6 are not zero" in faults(problem, with_values(solution, x + 1.0))
    assert "not finite" in faults(problem, with_values(solution, x * np.nan))


def test_a_bound_above_the_optimum_is_refuted_by_a_better_point():
    problem, _ = posed()
    best = problem.solve().value
    x = np.zeros(6)
    x[0] = 0.1
    poor = problem.goal.objective
    worth = objective.objective_at(poor, problem.variables, {id(problem.variables[0]): x})
    told = replace(
        with_values(problem.solution, x),
        value=float(worth.value),
        lower=LowerBound(0.5 * (best + float(worth.value))),
        indices=np.array([0]),
        coefficients={"w[0]": 0.1},
    )
    assert "the optimum, in rationals, is" in faults(problem, told)


def test_lies_of_a_certificate():
    problem, _ = posed(k=1, seed=5)
    problem.solve()
    c = problem.certify()
    assert "the relative gap is" in faults(problem, replace(c, bound=-np.inf, claim=Claim.OPTIMAL))
    assert "upper says" in faults(problem, replace(c, upper=c.value * 0.995, value=c.value * 0.99))
    assert "not feasible" in faults(
        problem, replace(c, claim=Claim.OPTIMAL, violations=("2 units are nonzero",))
    )
    far = np.zeros_like(c.x)
    far[np.flatnonzero(c.x == 0.0)[0]] = 5.0
    told = faults(problem, replace(c, x=far, claim=Claim.STATIONARY))
    assert "the value says" in told
    assert '"stationary"' in told


CONSTRAINTS = {
    "lower": (lambda w: w >= 0.0, "lies below"),
    "upper": (lambda w: w <= 0.5, "lies above"),
    "sum": (lambda w: w.sum() == 1.0, "broken by"),
    "inequality": (lambda w: np.ones((1, 6)) @ w <= 0.25, "broken by"),
    "ball": (lambda w: sm.norm(w) <= 0.5, "the norm is"),
    "diamond": (lambda w: sm.norm(w, 1) <= 0.5, "the norm is"),
}


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_every_constraint_is_kept_or_its_breach_told(name):
    make, words = CONSTRAINTS[name]
    free, _ = posed()
    solution = free.solve()
    bound_to, _ = posed(extra=(make,))
    one = np.zeros(6)
    one[4] = -1.0 if name in ("lower", "sum") else 1.0
    assert words in faults(bound_to, with_values(solution, one))
    referee.judge(bound_to, bound_to.solve())


def test_a_solution_for_other_values_of_cvxpy_s_parameters_is_not_judged():
    cp = pytest.importorskip("cvxpy")
    A = np.random.default_rng(0).standard_normal((15, 4))
    w, u = cp.Variable(4), cp.Parameter(value=1.0)
    problem = sm.Problem(cp.Minimize(cp.sum_squares(A @ w - A[:, 0])), [sm.card(w) <= 2, w <= u])
    solution = problem.solve()
    referee.judge(problem, solution)
    u.value = 0.2
    assert referee.judge(problem, solution).unjudged == [
        "a parameter has changed since the solution"
    ]
    assert "value" in referee.judge(problem, problem.solve()).judged


def test_a_watch_hears_and_then_lets_go():
    solve = Problem.solve
    with referee.watching() as watch:
        problem, _ = posed()
        problem.solve()
    assert watch.judged["solution"] == 1
    assert Problem.solve is solve


@pytest.mark.unrefereed("a watch of its own counts")
def test_a_certificate_is_judged_once():
    with referee.watching() as watch:
        problem, w = posed()
        problem.certify()
        assert watch.judged["certificate"] == 1
        certificates.certify(problem.form, w.value)
    assert watch.judged["certificate"] == 2


# ---- its own arithmetic ----------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(set(LOSSES) - {"Cox", "Linear", "Multinomial"}))
def test_no_rounding_of_predictions_moves_a_loss_further_than_is_said(name):
    rng = np.random.default_rng(5)
    u = rng.standard_normal(6)
    u -= u.mean()  # balanced: moved together, the changes of a squared loss cancel
    u = u if LOSSES[name].everywhere else np.abs(u) + 0.1
    y = np.where(rng.random(6) > 0.5, 1.0, -1.0) if name in LABELLED else np.zeros(6)
    c, reach = rng.uniform(0.5, 2.0, 6), long(np.full(6, 1e-3))
    parts = [long(part) for part in (u, y, c)]
    most = max(
        abs(float(total(LOSSES[name], parts[0] + long(signs) * reach, *parts[1:]) - at))
        for at in [total(LOSSES[name], *parts)]
        for signs in itertools.product((-1.0, 1.0), repeat=6)
    )
    assert most > 0.0
    assert float(moved(LOSSES[name], *parts, reach)) == pytest.approx(most, rel=1e-2)


@pytest.mark.parametrize("name", sorted(set(LOSSES) - {"Cox"}))
def test_formulas_agree_with_the_losses_and_with_differences(name):
    loss, rng = LOSSES[name], np.random.default_rng(11)
    u = rng.standard_normal((9, 3)) if name == "Multinomial" else 2.0 * rng.standard_normal(9)
    y = rng.integers(0, 3, 9).astype(float) if name == "Multinomial" else rng.uniform(0.5, 2, 9)
    y = np.where(y > 1.0, 1.0, -1.0) if name in LABELLED else y
    u = u if loss.everywhere else np.abs(u) + 0.1
    c = rng.uniform(0.1, 2.0, 9)
    assert isinstance(loss, Loss)
    assert float(total(loss, long(u), long(y), long(c))) == pytest.approx(
        loss.total(u, y, c), rel=1e-13
    )
    move, t = rng.standard_normal(u.shape), 1e-6
    ends = [total(loss, long(u + s * t * move), long(y), long(c)) for s in (-1, 1)]
    found = slope(loss, long(u), long(y), long(c))
    assert float((ends[1] - ends[0]) / (2 * t)) == pytest.approx(
        float(np.sum(found * move)), rel=1e-5
    )
    second = bend(loss, long(u), long(y), long(c))
    assert (second is None) == (name in KINKED or name == "Multinomial")
    if second is not None:
        sides = [slope(loss, long(u + s * t * move), long(y), long(c)) for s in (-1, 1)]
        assert np.allclose(
            ((sides[1] - sides[0]) / (2 * t)).astype(float),
            (second * move).astype(float),
            atol=1e-5,
        )


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_cox_agrees_with_the_loss(ties):
    rng, loss = np.random.default_rng(2), CoxLoss(ties=ties)
    u, c = rng.standard_normal(12), rng.uniform(0.5, 2.0, 12)
    y = np.column_stack([rng.integers(1, 4, 12), rng.integers(0, 2, 12), rng.integers(0, 2, 12)])
    for target in (y[:, :2].astype(float), y.astype(float)):
        assert float(total(loss, long(u), long(target), long(c))) == pytest.approx(
            loss.total(u, target, c), rel=1e-12
        )


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_rational_minima_are_those_of_least_squares(seed):
    rng = np.random.default_rng(seed)
    n, p = 6, 4
    A, y = rng.standard_normal((n, p)), rng.standard_normal(n)
    A[:, 3] = A[:, 0]  # singular without the ridge
    lam = float(rng.choice([0.0, 0.5]))
    w, c = sm.Variable(p, name="w"), sm.Variable(name="c")
    weights = rng.uniform(0.5, 2.0, n)
    loss = sm.squared_loss(A @ w + c, y, weights=weights)
    problem = sm.Problem(sm.minimize(loss + sm.ridge(w, lam) + 2.0), sm.card(w) <= 3)
    objective = problem.goal.objective
    dense = make_dense(objective, problem.constraints, problem.variables)
    exact = rationals.Rational(dense, objective)
    support = np.array([0, 2, 3, 4])
    root = np.sqrt(weights / n)
    rows = np.column_stack([A, np.ones(n)])[:, support] * root[:, None]
    ridge = np.diag(np.sqrt([lam, lam, lam, 0.0]))
    stacked, right = np.vstack([rows, ridge]), np.append(root * y, np.zeros(4))
    z = np.linalg.lstsq(stacked, right, rcond=None)[0]
    least = 0.5 * float(np.sum(np.square(stacked @ z - right))) + 2.0
    found = exact.minimum(support)
    assert isinstance(found, Fraction)
    assert float(found) == pytest.approx(least, rel=1e-12)
    full = np.zeros(5)
    full[support] = z
    assert exact.value(full) >= found


def test_a_system_without_solution_is_told():
    one = Fraction(1)
    assert rationals.solve([[one, one], [one, one]], [one, 2 * one]) is None
    assert rationals.solve([[one, one], [one, one]], [one, one]) == [one, 0]
