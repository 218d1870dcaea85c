"""What NumPy's and CVXPY's users write, against all supports or CVXPY on them."""

from __future__ import annotations

import re
from itertools import combinations, product

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest

import sparsemodel as sm

RNG = np.random.default_rng(11)
N, P = 24, 5
A = RNG.standard_normal((N, P))
B = A @ [2.0, 0.0, -1.5, 0.7, 0.3] + 0.4 * RNG.standard_normal(N)
Y = A[:, :2] @ RNG.standard_normal((2, 2)) + 0.3 * RNG.standard_normal((N, 2))


def squares(mask, a=A, b=B) -> float:
    """Return half of the least mean square with the columns of a mask."""
    kept = a[:, np.asarray(mask, dtype=bool)]
    return float(np.square(b - kept @ np.linalg.lstsq(kept, b, rcond=None)[0]).mean() / 2.0)


def least(allowed) -> float:
    """Return the least of the supports that a set of choices allows, or that are within one."""
    masks = [np.array(m, dtype=bool) for m in product([0, 1], repeat=P)]
    return min(squares(m) for m in masks if allowed(m))


def best_of_cvxpy(build, k: int) -> float:
    """Return the least over all supports of ``k``; ``build(w)`` is a goal and constraints."""
    found = []
    for support in combinations(range(P), k):
        w = cp.Variable(P)
        goal, held = build(w)
        out = [j for j in range(P) if j not in support]
        found.append(cp.Problem(goal, [*held, w[out] == 0]).solve(solver=cp.CLARABEL))
    return float(np.min([value for value in found if value is not None]))


@pytest.mark.parametrize(
    ("limits", "allowed"),
    [
        ([(range(P), 2)], lambda z: z.sum() <= 2 and z[[1, 4]].sum() >= 1),
        ([(range(P), 3), ([0, 2], 1)], lambda z: z.sum() <= 3 >= 1 <= z[[1, 4]].sum()),
    ],
)
def test_at_least_one_of_a_set(limits, allowed) -> None:
    w = sm.Variable(P, name="w")
    kept = [sm.card(w[list(rows)]) <= k for rows, k in limits]
    goal = sm.minimize(sm.squared_loss(A @ w, B))
    problem = sm.Problem(goal, kept, sm.card(w[[1, 4]]) >= 1)
    for rows, k in limits[1:]:
        allowed = lambda z, base=allowed, rows=rows, k=k: base(z) and z[rows].sum() <= k  # noqa: E731
    # An entry that is chosen may happen to be zero, so that a support need not be a choice itself.
    assert problem.solve().value == pytest.approx(least(allowed), rel=1e-9)
    assert problem.prove().bound == pytest.approx(least(allowed), rel=1e-6)


def test_at_least_so_many_is_refused_where_it_would_not_be_kept() -> None:
    w = sm.Variable(P, name="w")
    loss = sm.squared_loss(A @ w, B)
    some = sm.card(w[[1, 4]]) >= 1
    for goal, beside in [
        (loss + 0.1 * sm.card(w), [sm.card(w) <= 2]),
        (loss, [sm.card(w) <= 3, sm.card(w[[3, 4]]) >= 1]),  # two sets that overlap
        (loss, [sm.card(w) <= 3, np.arange(5.0) @ sm.chosen(w) <= 4]),
        (loss, [sm.card(w) <= 3, sm.card(w[[0, 1]]) <= 1]),  # overlaps
        (loss, [sm.card(w) <= 3, sm.semicontinuous(w[[0, 1]], 0.1)]),  # sizes of a part
        (loss, [sm.card(w, groups=[0, 0, 1, 1, 2]) <= 2]),
    ]:
        with pytest.raises(sm.ModelError, match="is understood where every entry has a least size"):
            sm.Problem(sm.minimize(goal), some, *beside)
    with pytest.raises(sm.InfeasibleError, match="cannot both hold"):
        sm.Problem(sm.minimize(loss), sm.card(w) <= 1, sm.card(w[[1, 4]]) >= 2)
    with pytest.raises(sm.InfeasibleError, match="2 entries to choose from"):
        sm.Problem(sm.minimize(loss), sm.card(w) <= 3, sm.card(w[[1, 4]]) >= 3)


def test_a_parameter_may_be_the_limit_beside_at_least_one() -> None:
    w, k = sm.Variable(P), sm.Parameter(integer=True, value=2)
    problem = sm.Problem(
        sm.minimize(sm.squared_loss(A @ w, B)), sm.card(w) <= k, sm.card(w[[1, 4]]) >= 1
    )
    for number in (2, 3):
        k.value = number
        best = least(lambda z, n=number: z.sum() <= n and z[[1, 4]].sum() >= 1)
        assert problem.solve().value == pytest.approx(best, rel=1e-9)


def test_a_budget_of_equal_costs_is_a_limit_beside_another_budget() -> None:
    w, costs = sm.Variable(P), np.arange(5.0)
    kept = [0.3 * np.ones(P) @ sm.chosen(w) <= 0.9, costs @ sm.chosen(w) <= 4.0]
    found = sm.Problem(sm.minimize(sm.squared_loss(A @ w, B)), kept).solve()
    best = least(lambda z: z.sum() <= 3 and costs @ z <= 4.0)
    assert found.value == pytest.approx(best, rel=1e-9)


def test_products_entry_by_entry_and_rows_and_sums_of_matrices() -> None:
    w, factors = sm.Variable(P), np.array([1.0, -2.0, 3.0, 0.5, 4.0])
    scaled = sm.Problem(sm.minimize(sm.squared_loss(A @ (factors * w), B)), sm.card(w) <= 2)
    assert scaled.solve().value == pytest.approx(least(lambda z: z.sum() == 2), rel=1e-9)
    with pytest.raises(sm.ModelError, match="one data matrix"):
        scaled.predict(A)  # whose columns would have to be multiplied, too
    c = sm.Variable(name="c")
    shifted = sm.Problem(sm.minimize(sm.squared_loss(A @ (w + c) - w.sum(), B)), sm.card(w) <= 2)
    design = np.column_stack([A - 1.0, A.sum(axis=1)])
    best = min(squares(np.ones(3), design[:, [*s, P]]) for s in combinations(range(P), 2))
    assert shifted.solve().value == pytest.approx(best, rel=1e-9)
    W = sm.Variable((2, P), name="W")
    both = sm.squared_loss(A @ W[0], Y[:, 0]) + sm.squared_loss(A @ W[1], Y[:, 1])
    found = sm.Problem(sm.minimize(both), [sm.card(W[t]) <= 2 for t in range(2)]).solve()
    best = sum(min(squares(m, b=y) for m in product([0, 1], repeat=P) if sum(m) == 2) for y in Y.T)
    assert found.value == pytest.approx(best, rel=1e-9)
    for held, what in [
        (W.sum() == 1.0, lambda v: v.sum() - 1.0),
        (W.sum(axis=0) == np.arange(P), lambda v: v.sum(axis=0) - np.arange(P)),
        (W.sum(axis=1) == 0.5, lambda v: v.sum(axis=1) - 0.5),
        (np.mean(W) == 0.25, lambda v: v.mean() - 0.25),
    ]:
        sm.Problem(sm.minimize(both), held).solve()
        np.testing.assert_allclose(what(W.value), 0.0, atol=1e-7)


@pytest.mark.parametrize(
    "expression",
    [
        lambda w: cp.multiply(np.arange(1.0, P + 1), w),
        lambda w: cp.cumsum(w),
        lambda w: cp.convolve(np.array([1.0, 0.5]), w)[:P],
        lambda w: cp.diag(w) @ np.ones(P) + 0.5,
        lambda w: cp.vec(cp.reshape(w, (P, 1), order="F"), order="F") - cp.sum(w),
    ],
)
def test_affine_functions_of_cvxpy(expression) -> None:
    def build(w):
        return cp.Minimize(cp.sum_squares(A @ expression(w) - B)), [expression(w)[:2] <= 1.0]

    w = cp.Variable(P)
    goal, held = build(w)
    found = sm.Problem(goal, [sm.card(w) <= 2, *held]).solve()
    assert found.value == pytest.approx(best_of_cvxpy(build, 2), rel=1e-5)
    assert goal.args[0].value == pytest.approx(found.value)


def test_matrices_inside_affine_functions_of_cvxpy() -> None:
    W, G = cp.Variable((3, 2)), RNG.standard_normal((3, 2))
    goal = cp.Minimize(cp.sum_squares(A[:, :3] @ W - Y) + cp.trace(G.T @ W))
    sm.Problem(goal, [cp.vec(W, order="F")[1] <= 0.1, cp.vec(W, order="C")[1] >= 0.2]).solve()
    found = goal.args[0].value
    reference = cp.Problem(goal, [W[1, 0] <= 0.1, W[0, 1] >= 0.2])
    assert found == pytest.approx(reference.solve(solver=cp.CLARABEL), rel=1e-6)


@pytest.mark.parametrize(
    "goal",
    [
        lambda w: cp.sum(0.8 * cp.pos(B - A @ w) + 0.2 * cp.neg(B - A @ w)),
        lambda w: -cp.sum(cp.minimum(0.8 * (A @ w - B), -0.2 * (A @ w - B))),
        lambda w: cp.sum(cp.pos(cp.abs(A @ w - B) - 0.3)),
        lambda w: cp.sum(cp.multiply(np.arange(N), cp.maximum(0, cp.abs(A @ w - B) - 0.3))),
        lambda w: cp.sum_squares(A @ w - B) + cp.neg(w[0]) - 3.0 * cp.log(w[2] + 2.0),
        lambda w: -cp.sum(cp.log(3.0 + A @ w)) + cp.sum_squares(w),
        lambda w: cp.sum_squares(w - 1.0) - cp.sum(cp.sqrt(3.0 + A @ w)),
    ],
)
def test_minima_insensitive_residuals_and_logarithms(goal) -> None:
    w = cp.Variable(P)
    problem = sm.Problem(cp.Minimize(goal(w)), [sm.card(w) <= 2])
    value = best_of_cvxpy(lambda v: (cp.Minimize(goal(v)), []), 2)
    assert problem.solve().value == pytest.approx(value, rel=2e-5)
    assert problem.certify().bound <= value + 1e-6 * abs(value)


@pytest.mark.parametrize(
    "unit", [1e6, *(pytest.param(one, marks=pytest.mark.slow) for one in (1.0, 1e-6))]
)
def test_the_growth_of_a_portfolio_is_proved(unit) -> None:
    few = 4  # a support takes long
    gains = unit * np.exp(1.5 * RNG.standard_normal((N, few)))

    def build(w):
        return cp.Maximize(cp.sum(cp.log(gains @ w)) / N), [cp.sum(w) == 1, w >= 0]

    w = cp.Variable(few)
    goal, held = build(w)
    problem = sm.Problem(goal, [sm.card(w) <= 2, *held])
    best = max(
        cp.Problem(*build(v)).solve(solver=cp.CLARABEL)
        for pair in combinations(range(few), 2)
        for v in [np.eye(few)[:, pair] @ cp.Variable(2)]
    )
    assert -problem.solve().value == pytest.approx(best, rel=1e-6)
    proof = problem.prove(gap=1e-6)
    assert proof.bound <= -best + 1e-9
    assert proof.gap <= 1e-4


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (lambda w: sm.Varaible, "is 'Variable' meant"),
        (lambda w: sm.logistc_loss, "is 'logistic_loss' meant"),
        (lambda w: sm.mse_loss, "sm.squared_loss"),
        (lambda w: sm.tukey_loss, "not convex, which bounds rest on; sm.huber_loss"),
        (lambda w: sm.zero_inflated_poisson_loss, "sm.logistic_loss(A @ w, y > 0)"),
        (lambda w: sm.card(w, alwyas=[0]) <= 1, "do not count the entries"),
        (lambda w: sm.Problem(sm.minimize(sm.ridge(w, 1)), allways=[0]), "do not count"),
        (lambda w: sm.squared_loss(A @ w, ["yes", "no"] * (N // 2)), "the comparison `y == 'yes'`"),
        (lambda w: sm.cox_loss(A @ w, [["1", "x"]] * N), "needs numbers"),
        (lambda w: sm.ols, "sm.encode(df, formula="),
        (lambda w: w.ravel(), "sm.card(W) counts entries"),
        (lambda w: w.max() <= 1.0, "w <= 1"),
        (lambda w: sm.cox_loss(A @ w, np.ones(N), np.ones(N)), "np.column_stack"),
        (lambda w: sm.cox_loss(A @ w, np.ones((N, 2)), strata=1), "third column"),
        (lambda w: sm.Variable(3, 2), "sm.Variable((p, m))"),
        (lambda w: sm.card(w, groups=[[0, 1], [2]]) <= 1, "[0, 0, 1]"),
        (lambda w: sm.card([w, w]) <= 1, "sm.card(u) + sm.card(v) <= k"),
        (lambda w: np.ones(P) * sm.ridge(w, 1.0), "not ndarray of shape (5,)"),
        (lambda w: w * w, "sm.ridge(w, lam)"),
        (lambda w: sm.custom_loss(lambda v: np.inf, lambda v: -v), "go on, convex"),
    ],
)
def test_messages_say_what_to_write(write, words) -> None:
    w = sm.Variable(P, name="w")
    with pytest.raises((sm.SparseModelError, AttributeError)) as error:
        sm.Problem(sm.minimize(write(w)), sm.card(w) <= 2)
    assert words in str(error.value)
    assert "array([" not in str(error.value)


def test_options_and_parameters_that_there_are_not() -> None:
    sklearn = pytest.importorskip("sparsemodel.sklearn")
    w = sm.Variable(P)
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, B)), sm.card(w) <= 2)
    with pytest.raises(TypeError, match="is 'time_limit' meant"):
        problem.solve(time_limt=3)
    with pytest.raises(TypeError, match="shrinkage is `ridge=`"):
        sklearn.SparseLinearRegression(k=2, alpha=0.1)
    with pytest.raises(TypeError, match="is `delta=`"):
        sklearn.SparseHuberRegression(k=2, epsilon=1.35)
    with pytest.raises(TypeError, match="is 'ridge' meant"):
        sklearn.SparseLinearRegression(k=2, rigde=0.1)


def test_names_of_other_packages_are_answered(capsys: pytest.CaptureFixture[str]) -> None:
    from sparsemodel.cli import main

    w = sm.Variable(P)
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, B)), sm.card(w) <= 2)
    solution, path = problem.solve(), problem.path(range(3))
    for asked, name, words in [
        (solution, "coef_", ".coefficients"),
        (solution, "rsquared", ".summary()"),
        (solution, "predict_proba", "kind='probability'"),
        (solution, "objective", ".value"),
        (problem, "fit", ".solve()"),
        (path, "best_k", ".select('ebic')"),
        (problem.certify(), "best_bound", ".bound"),
    ]:
        with pytest.raises(AttributeError) as error:
            getattr(asked, name)
        assert words in str(error.value)
    with pytest.raises(AttributeError, match=r"verify\(certificate, problem\.form\)"):
        problem.certify().verify()
    assert main(["solve", "a.csv", "--target", "y", "--k", "2", "--rigde", "3"]) == 2
    assert "did you mean --ridge?" in capsys.readouterr().err


def test_a_table_of_arrow_is_encoded() -> None:
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"size": [1.0, 2.0, 4.0], "colour": ["red", "blue", "red"]})
    design, features = sm.encode(table)
    assert design.names == ("size", "colour[red]")
    assert features == ("size", "colour")


@pytest.mark.parametrize(
    "limit",
    [
        lambda w: sm.card(w) / P <= 0.4,
        lambda w: sm.card(w[pd.Index(list("abcde"))]) <= 2,
        lambda w: sm.card(w, groups=pd.Categorical(list("vwxyz"))) <= 2,
        lambda w: [sm.card(w) <= 2, sm.chosen(w)[0] + sm.chosen(w)["b"] <= 2],
    ],
)
def test_spellings_of_one_limit(limit) -> None:
    w = sm.Variable(P, names=list("abcde"))
    goal = sm.minimize(sm.squared_loss(A @ w, B))
    expected = sm.Problem(goal, sm.card(w) <= 2).solve().value
    assert sm.Problem(goal, limit(w)).solve().value == pytest.approx(expected)


def test_one_of_two_by_a_sum_of_choices() -> None:
    w = sm.Variable(P)
    z, goal = sm.chosen(w), sm.minimize(sm.squared_loss(A @ w, B))
    best = min(
        float(np.sum((A[:, kept] @ np.linalg.lstsq(A[:, kept], B, rcond=None)[0] - B) ** 2))
        for kept in map(list, combinations(range(P), 3))
        if not {0, 2} <= set(kept)
    )
    problem = sm.Problem(goal, sm.card(w) <= 3, z[0] + z[2] <= 1)
    assert problem.solve().value == pytest.approx(best / (2 * N))


def _problem(goal, *constraints):
    return cp.Problem(cp.Minimize(goal), list(constraints))


@pytest.mark.parametrize(
    "write",
    [
        lambda w: (cp.Minimize(cp.sum_squares(A @ w - B)), [cp.sum(cp.abs(w)) <= 1.0]),
        lambda w: (_problem(cp.sum_squares(A @ w - B), cp.norm1(w) <= 1.0), []),
        lambda w: (
            cp.Minimize(cp.sum_squares(A @ w - B)),
            [cp.max(w) <= 0.5, cp.min(w) >= -0.1, cp.minimum(w[0], w[1]) >= -0.05],
        ),
    ],
)
def test_constraints_and_problems_of_cvxpy(write) -> None:
    w = cp.Variable(P)
    goal, constraints = write(w)
    found = sm.Problem(goal, [*constraints, sm.card(w) <= 2]).solve()
    base = goal if isinstance(goal, cp.Problem) else cp.Problem(goal, constraints)
    out = [[j for j in range(P) if j not in pair] for pair in combinations(range(P), 2)]
    values = [
        cp.Problem(base.objective, [*base.constraints, w[rest] == 0]).solve(solver=cp.CLARABEL)
        for rest in out
    ]
    assert found.value == pytest.approx(min(values), rel=1e-5)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"always": ["aeg"]}, "is 'age' meant"),
        ({"always": np.full(99, 0.5)}, "not ndarray of shape (99,)"),
        ({"bounds": [(0, 1)] * P}, "`([0, -1], [1, 1])`"),
        ({"groups": {"age": 1}}, "a mapping"),
        ({"groups": [[0, 1], [2, 3, 4]]}, "`[0, 0, 1]`"),
        ({"groups": pd.Series(range(P), index=[*"dcb", "age", "e"])}, "list(X.columns)"),
        ({"bounds": (0, pd.Series(1.0, index=["e", *"dcb", "age"]))}, "list(X.columns)"),
    ],
)
def test_estimators_say_what_to_write(arguments, words) -> None:
    sklearn = pytest.importorskip("sparsemodel.sklearn")
    frame = pd.DataFrame(A, columns=["age", *"bcde"])
    model = sklearn.SparseLinearRegression(k=2, **arguments)
    with pytest.raises(ValueError, match=re.escape(words)):
        model.fit(frame, B)


def test_estimators_answer_names_of_others() -> None:
    sklearn = pytest.importorskip("sparsemodel.sklearn")
    frame, target = pd.DataFrame(A), pd.Series(B)
    model = sklearn.SparseLinearRegression(k=2).fit(frame, target)
    with pytest.raises(AttributeError, match=r"write get_support\(\)"):
        _ = model.support_
    assert not hasattr(model, "certificate_")
    with pytest.raises(ValueError, match="OneHotEncoder"):
        model.fit(frame.assign(city="Rome").rename(columns=str), target)
    for y, weights in ((target[::-1], None), (target, target.abs()[::-1])):
        with pytest.raises(sm.DataError, match="another order"):
            model.fit(frame, y, sample_weight=weights)
    with pytest.raises(TypeError, match="`backend=`"):
        sm.Problem(sm.minimize(sm.squared_loss(frame, B)), sm.card(sm.Variable(P)) <= 1).solve(
            solver="SCIP"
        )


def test_more_than_there_are_means_all() -> None:
    w = sm.Variable(P)
    k = sm.Parameter(integer=True, value=9)
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, B)), sm.card(w) <= k)
    everything = problem.solve().value
    assert everything == pytest.approx(
        np.sum((A @ np.linalg.lstsq(A, B, rcond=None)[0] - B) ** 2) / (2 * N)
    )
    k.value = 2
    assert problem.solve().value > everything
    assert problem.path(k, range(3, 20)).k.tolist() == [3, 4, 5]
