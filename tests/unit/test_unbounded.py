"""Problems without a minimiser and problems without a feasible point are said to be such."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import certify, verify
from sparsemodel.checker.__main__ import main
from sparsemodel.compiler.services import objective_of
from sparsemodel.numerics.budget import ending_by
from sparsemodel.numerics.minimisers.unboundedness import check_attained, check_bounded

N, P = 30, 8
RNG = np.random.default_rng(0)
A = RNG.standard_normal((N, P))
TRUE = np.array([2.0, -1.0, 0, 0, 0, 0, 0, 0])
B = A @ TRUE + 0.1 * RNG.standard_normal(N)
LABELS = np.sign(A @ TRUE)
COUNTS = RNG.poisson(1.0, N).astype(float)
IDLE = A.copy()
IDLE[:, 3] = 0.0
TWINS = A.copy()
TWINS[:, 3] = TWINS[:, 4]
PULL = np.where(np.arange(P) == 3, 0.1, 0.0)
SILENT = np.abs(A)
SILENT[COUNTS > 0.0, 5] = 0.0

Case = Callable[[sm.Variable], tuple[Any, list[Any]]]

UNBOUNDED: dict[str, Case] = {
    "a linear term alone": lambda w: (-np.ones(P) @ w, [sm.card(w) <= 2]),
    "with bounds on one side": lambda w: (-np.ones(P) @ w, [sm.card(w) <= 2, w >= 0]),
    "a linear constraint that leaves a way out": lambda w: (
        np.arange(P) @ w,
        [sm.card(w) <= 2, w.sum() == 1],
    ),
    "a column of zeros": lambda w: (
        sm.squared_loss(IDLE @ w, B) - PULL @ w,
        [sm.card(w) <= 3],
    ),
    "two equal columns": lambda w: (sm.squared_loss(TWINS @ w, B) - PULL @ w, [sm.card(w) <= 4]),
    "a column of zeros beside a logistic loss": lambda w: (
        sm.logistic_loss(IDLE @ w, np.sign(B - 1.0)) - PULL @ w,
        [sm.card(w) <= 3],
    ),
    "a custom loss that is linear": lambda w: (
        sm.custom_loss(lambda u: -float(u.sum()), lambda u: -np.ones_like(u), of=w),
        [sm.card(w) <= 2],
    ),
    "a custom loss that decays": lambda w: (
        sm.custom_loss(lambda u: float(np.sum(np.exp(-u))), lambda u: -np.exp(-u), of=w),
        [sm.card(w) <= 2],
    ),
    "absolute residuals and a steeper pull": lambda w: (
        sm.absolute_loss(A @ w, B) - 50.0 * PULL @ w,
        [sm.card(w) <= 3],
    ),
    "Huber residuals and a steeper pull": lambda w: (
        sm.huber_loss(A @ w, B) - 50.0 * PULL @ w,
        [sm.card(w) <= 3],
    ),
    "Poisson, no counts at all": lambda w: (
        sm.poisson_loss(np.abs(A) @ w, np.zeros(N)),
        [sm.card(w) <= 2],
    ),
    "Poisson, a column without counts": lambda w: (
        sm.poisson_loss(SILENT @ w, COUNTS),
        [sm.card(w) <= 2],
    ),
    "Poisson, a ridge on the other columns": lambda w: (
        sm.poisson_loss(SILENT @ w, COUNTS) + sm.ridge(w, np.where(np.arange(P) == 5, 0.0, 0.1)),
        [sm.card(w) <= 2],
    ),
    "Cox, the order of the times is the order of the risks": lambda w: (
        sm.cox_loss(A @ w, np.column_stack([1.0 + np.argsort(np.argsort(-A @ TRUE)), np.ones(N)])),
        [sm.card(w) <= 2],
    ),
}

SEPARABLE: dict[str, Case] = {
    "alone": lambda w: (sm.logistic_loss(A @ w, LABELS), [sm.card(w) <= 2]),
    "with signs": lambda w: (
        sm.logistic_loss(A @ w, np.sign(A @ np.abs(TRUE))),
        [sm.card(w) <= 2, w >= 0],
    ),
    "with a linear constraint": lambda w: (
        sm.logistic_loss(A @ w, LABELS),
        [sm.card(w) <= 2, w.sum() >= 0],
    ),
    "with groups": lambda w: (
        sm.logistic_loss(A @ w, LABELS),
        [sm.card(w, groups=np.arange(P) // 2) <= 1],
    ),
    "with a price": lambda w: (sm.logistic_loss(A @ w, LABELS) + 0.01 * sm.card(w), []),
}

PAIR = np.eye(P)[:2]
INFEASIBLE: dict[str, tuple[Case, str]] = {
    "rows that need two": (lambda w: [sm.card(w) <= 1, PAIR @ w == 1], "at most 1 nonzero"),
    "rows that contradict": (lambda w: [w.sum() == 1, w.sum() == 2, sm.card(w) <= 3], "No point"),
    "rows that contradict, nothing counted": (lambda w: [w.sum() == 1, w.sum() == 2], "No point"),
    "a sum of nothing": (lambda w: [sm.card(w) <= 0, w.sum() == 1], "at most 0 nonzero entries"),
    "a sum out of reach of the bounds": (
        lambda w: [sm.card(w) <= 2, w.sum() == 1, w >= 0, w <= 0.4],
        "2 nonzero entries",
    ),
    "bounds away from zero": (lambda w: [sm.card(w) <= 1, w[:2] >= 1], "at most 1 may be nonzero"),
    "bounds that contradict": (lambda w: [w >= 1, w <= 0], r"at least 1 and at most 0"),
    "a ball far from sparse points": (
        lambda w: [sm.card(w) <= 1, sm.norm(w - np.ones(P)) <= 1],
        "norm ball",
    ),
    "a ball and a sum": (
        lambda w: [sm.card(w) <= 2, sm.norm(w) <= 1, w.sum() == 10],
        "norm ball",
    ),
    "a 1-norm and a sum": (
        lambda w: [sm.card(w) <= 2, sm.norm(w, 1) <= 1, w.sum() == 10],
        "1-norm",
    ),
}


def problem(case: Case) -> sm.Problem:
    w = sm.Variable(P, name="w")
    goal, constraints = case(w)
    return sm.Problem(sm.minimize(goal), *constraints)


@pytest.mark.parametrize("name", UNBOUNDED)
def test_unbounded(name: str) -> None:
    with pytest.raises(sm.UnboundedError, match=r"sm\.ridge"):
        problem(UNBOUNDED[name]).solve()


@pytest.mark.parametrize("name", SEPARABLE)
def test_separable(name: str) -> None:
    with pytest.raises(sm.SeparableDataError, match=r"sm\.ridge"):
        problem(SEPARABLE[name]).solve()


def test_separable_classes() -> None:
    W = sm.Variable((3, 3), name="W")
    X = np.column_stack([A[:, 0], np.ones(N), A[:, 0] ** 2])
    goal = sm.minimize(sm.multinomial_loss(X @ W, np.digitize(A[:, 0], [-0.5, 0.5])))
    with pytest.raises(sm.SeparableDataError):
        sm.Problem(goal, sm.card(W, axis=1) <= 3).solve()


@pytest.mark.parametrize(  # each with one loss, and in the slow suite with the others
    ("name", "loss"),
    [
        pytest.param(name, loss, marks=[pytest.mark.slow] * ((i + j) % 3 > 0))
        for i, name in enumerate(INFEASIBLE)
        for j, loss in enumerate((sm.squared_loss, sm.logistic_loss, sm.hinge_loss))
    ],
)
def test_infeasible(name: str, loss: Callable[..., Any]) -> None:
    constraints, words = INFEASIBLE[name]
    w = sm.Variable(P, name="w")
    target = B if loss is sm.squared_loss else LABELS
    with pytest.raises(sm.InfeasibleError, match=words):
        sm.Problem(sm.minimize(loss(A @ w, target) + sm.ridge(w, 0.1)), constraints(w)).solve()


@pytest.mark.parametrize(
    ("goal", "constraints", "value"),
    [
        (lambda w: -np.ones(P) @ w, lambda w: [w <= 1, w >= -1], -2.0),
        (lambda w: -np.arange(P) @ w, lambda w: [w.sum() == 1, w >= 0], -7.0),
        (lambda w: -np.arange(P) @ w, lambda w: [sm.norm(w) <= 1], -np.sqrt(36.0 + 49.0)),
        (lambda w: -np.arange(P) @ w, lambda w: [sm.norm(w, 1) <= 1], -7.0),
        (lambda w: sm.hinge_loss(A @ w, LABELS), lambda w: [], 0.0),
        (lambda w: sm.squared_hinge_loss(A @ w, LABELS), lambda w: [], 0.0),
    ],
)
def test_minima_that_are_attained_are_found(
    goal: Callable[..., Any], constraints: Callable[..., Any], value: float
) -> None:
    found = problem(lambda w: (goal(w), [sm.card(w) <= 2, *constraints(w)])).solve()
    assert found.value == pytest.approx(value, abs=1e-7)


def test_a_column_that_is_linear_alone_goes_to_its_bound() -> None:
    w = sm.Variable(P, name="w")
    goal = sm.minimize(sm.squared_loss(IDLE @ w, B) - PULL @ w)
    solution = sm.Problem(goal, sm.card(w) <= 3, w <= 5).solve()
    rest = np.linalg.lstsq(A[:, :2], B, rcond=None)[1][0] / (2 * N)
    assert w.value[3] == 5.0
    assert solution.value == pytest.approx(rest - 0.5, rel=1e-9)


@pytest.mark.parametrize("backend", [None, "grahtp", "nhtp", "omp", "iht"])
def test_a_linear_term_completes_the_square(backend: str | None) -> None:
    n, p, k = 60, 90, 4
    X, shift = RNG.standard_normal((n, p)), RNG.standard_normal(n)
    y = X[:, :k] @ np.array([3.0, -2.0, 2.0, 4.0]) + 0.1 * shift
    values, supports = [], []
    for written in (True, False):
        w = sm.Variable(p, name="w")
        fit = (
            sm.squared_loss(X @ w, y) - (X.T @ shift / n) @ w + (2 * y + shift) @ shift / (2 * n)
            if written
            else sm.squared_loss(X @ w, y + shift)
        )
        solution = sm.Problem(sm.minimize(fit + sm.ridge(w, 0.01)), sm.card(w) <= k).solve(backend)
        values.append(solution.value)
        supports.append(solution.support)
    assert values[0] == pytest.approx(values[1], rel=1e-9)
    assert np.array_equal(*supports)


def test_linear_terms_are_numbers() -> None:
    w = sm.Variable(P, name="w")
    loss = sm.squared_loss(A @ w, B)
    for goal in (loss - PULL @ w, -PULL @ w + loss, loss + (-PULL) @ w, loss - 0.1 * w[3:4]):
        assert sm.Problem(sm.minimize(goal), sm.card(w) <= 2).form.terms[1].loss.name
    with pytest.raises(sm.ModelError, match="an objective is one number"):
        loss + A @ w


@pytest.mark.parametrize("scale", [1e-100, 1e-20, 1e100])
def test_least_squares_has_a_minimiser_at_any_scale(scale: float) -> None:
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((20, 6)), rng.standard_normal(20)
    values = []
    for size in (1.0, scale):
        w = sm.Variable(6)
        problem = sm.Problem(sm.minimize(sm.squared_loss(size * X @ w, y)), sm.card(w) <= 2)
        values.append(problem.solve().value)
    assert values[1] == pytest.approx(values[0], rel=1e-12)


@pytest.mark.parametrize("offset", [-1000.0, -700.0, -300.0, 300.0, 700.0, 1000.0])
@pytest.mark.parametrize("loss", ["poisson_loss", "gamma_loss", "logistic_loss"])
def test_an_intercept_takes_back_any_offset(loss: str, offset: float) -> None:
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((40, 5)), rng.integers(0, 2, 40).astype(float)
    if loss == "gamma_loss":
        y += 0.5

    def value(shift: float) -> float:
        w, c = sm.Variable(5), sm.Variable()
        term = getattr(sm, loss)(X @ w + c + shift, y)
        return sm.Problem(sm.minimize(term + sm.ridge(w, 1e-3)), sm.card(w) <= 2).solve().value

    assert value(offset) == pytest.approx(value(0.0), rel=1e-6)


@pytest.mark.parametrize("offset", [300.0, 700.0])
def test_offsets_that_nothing_takes_back_overflow_and_are_not_unbounded(offset: float) -> None:
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((40, 5)), rng.integers(0, 3, 40).astype(float)
    w = sm.Variable(5)
    problem = sm.Problem(sm.minimize(sm.poisson_loss(X @ w + offset, y)), sm.card(w) <= 2)
    with pytest.raises(sm.DataError, match="overflows"):
        problem.solve()


@pytest.mark.parametrize("offset", [100.0, 1000.0, 2000.0, 4e11])
def test_targets_far_from_zero_are_reached_by_an_intercept(offset: float) -> None:
    """A Huber loss is linear at zero then: it has a minimiser, the same as without the offset."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((25, 7))
    b = 2.0 * a[:, 0] - a[:, 3] + 0.5 * rng.standard_normal(25)

    def value(target: Any) -> float:
        w, c = sm.Variable(7), sm.Variable()
        goal = sm.huber_loss(a @ w + c, target) + sm.ridge(w, 0.1)
        return sm.Problem(sm.minimize(goal), sm.card(w) <= 3).solve().value

    assert value(b + offset) == pytest.approx(value(b), rel=1e-9 + 1e-15 * offset)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("size", [1e-12, 1e-150])
def test_coefficients_may_be_as_large_as_small_columns_ask_for(
    size: float, intercept: bool
) -> None:
    """A loss with kinks has its minimum whatever the units of the columns are."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((25, 3))
    b = 2.0 * a[:, 0] - a[:, 2] + 0.5 * rng.standard_normal(25)

    def value(matrix: Any) -> float:
        w, c = sm.Variable(3), sm.Variable()
        u = matrix @ w + c if intercept else matrix @ w
        return sm.Problem(sm.minimize(sm.absolute_loss(u, b)), sm.card(w) <= 3).solve().value

    assert value(size * a) == pytest.approx(value(a), rel=1e-9)


def test_linear_constraints_leave_coefficients_as_large() -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((25, 4))
    b = 2.0 * a[:, 0] - a[:, 2] + 0.5 * rng.standard_normal(25)

    def value(matrix: Any) -> float:
        w = sm.Variable(4)
        goal = sm.minimize(sm.huber_loss(matrix @ w, b))
        return sm.Problem(goal, sm.card(w) <= 3, w[0] == 2.0 * w[1]).solve().value

    assert value(1e-13 * a) == pytest.approx(value(a), rel=1e-9)


@pytest.mark.parametrize("end", ["one", "none"])
@pytest.mark.parametrize("counted", [True, False])
def test_coefficients_that_nothing_reads_leave_a_bound(end, counted, tmp_path, capsys) -> None:
    """Their slope is zero whatever is rounded: infinite ends lead nowhere."""
    c = np.array([0.0, 3.0, -0.0, 2.0, 4.0])
    w = sm.Variable(5)
    limits = [w >= -1] if end == "one" else [w[[1, 3, 4]] >= -1]
    limits.append(sm.card(w if counted else w[1:]) <= 2)
    problem = sm.Problem(sm.minimize(c @ w), limits)
    assert problem.solve().value == -7.0
    path, data = tmp_path / "certificate.json", tmp_path / "data.npz"
    np.savez(data, c=c[None, :], ones=np.ones(1))
    for certificate in (problem.certify(), problem.prove()):
        assert certificate.bound == pytest.approx(-7.0, rel=1e-12)
        certificate.save(path)
        assert verify(path, problem.form).claim is certificate.claim
        assert main([str(path), str(data)]) == 0, capsys.readouterr().out
        path.unlink()


def test_an_entry_that_is_nearly_zero_is_not_zero() -> None:
    w = sm.Variable(3)
    below = [w[:2] >= -1, sm.card(w) <= 1]
    form = sm.Problem(sm.minimize(np.array([2.0, 1.0, 1e-300]) @ w), below).form
    assert certify(form, np.array([-1.0, 0.0, 0.0])).bound == -np.inf


def test_what_the_time_broke_off_is_not_called_unbounded() -> None:
    A = np.array([[1.0, 0.2], [2.0, -0.1], [-1.0, 0.4], [-3.0, 0.3]])
    w = sm.Variable(2)
    goal = sm.minimize(sm.logistic_loss(A @ w, [1, 1, -1, -1]))
    objective = objective_of(sm.Problem(goal, sm.card(w) <= 1).form)
    point = objective.point_from(np.array([50.0, 0.0]))
    with pytest.raises(sm.SeparableDataError):
        check_attained(objective, point)
    with ending_by(time.perf_counter() - 1.0):
        check_attained(objective, point)


def test_the_time_is_named_where_no_feasible_point_was_found() -> None:
    rng = np.random.default_rng(0)
    A, w = rng.standard_normal((5, 5)), sm.Variable(5)
    y = np.column_stack([rng.exponential(size=5), np.ones(5)])
    goal = sm.minimize(sm.cox_loss(A @ w, y) + sm.ridge(w, 1.0))
    problem = sm.Problem(goal, sm.card(w) <= 1, rng.standard_normal((1, 5)) @ w == [0.7])
    with pytest.raises(sm.NotSolvedError, match="it is not known whether the problem is feasible"):
        problem.solve(time_limit=1e-9)
    assert problem.solve().indices.size == 1


def test_the_time_is_named_where_the_way_to_infinity_leaves_the_domain_of_a_loss() -> None:
    w = sm.Variable(1)
    loss = sm.gamma_loss(np.array([[1.0], [-1.0]]) @ w + 1.0, [1.0, 2.0], link="inverse")
    form = sm.Problem(sm.minimize(loss + np.ones(1) @ w), sm.card(w) <= 1).form

    def far(objective: Any, support: Any, start: Any) -> Any:
        return objective.point(support, np.full(support.size, 1e12))

    with pytest.raises(sm.InfeasibleError, match=r"or take the log link\.$"):
        check_bounded(objective_of(form), far)
    with (
        ending_by(time.perf_counter() - 1.0),
        pytest.raises(sm.InfeasibleError, match="it is not known whether the problem is feasible"),
    ):
        check_bounded(objective_of(form), far)


def test_rounding_at_zero_is_no_minimiser_at_infinity() -> None:
    """Classes of equal weight have a constant of zero, and one of 1e-17 was sent to infinity."""
    rows = np.arange(45) % N
    for share in range(3, 15):
        y = np.arange(45) < share
        weights = 0.5 / np.where(y, share, 45 - share)
        w, c = sm.Variable(P), sm.Variable()
        loss = sm.logistic_loss(A[rows] @ w + c, y, weights=weights, reduction="sum")
        goal = sm.minimize(loss + sm.ridge(w, 0.1))
        objective = objective_of(sm.Problem(goal, sm.card(w) <= 1).form)
        for constant in 2.0 ** -np.arange(50.0, 60.0):
            x = np.zeros(P + 1)
            x[objective.form.sparsity.free] = constant
            check_attained(objective, objective.point_from(x))
