"""CVXPY's expressions as declarations, and the restricted problem as one of its problems."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse

import sparsemodel as sm

N, P = 25, 6
RNG = np.random.default_rng(8)
A = RNG.standard_normal((N, P))
B = A @ np.array([1.0, 0.0, -1.0, 0.0, 0.3, 0.0]) + 0.2 * RNG.standard_normal(N)
Y = np.where(B > 0.0, 1.0, -1.0)


def agrees(goal: cp.Minimize, w: cp.Variable, constraints: list[object] | None = None) -> None:
    """Our minimum is CVXPY's on our support, and no support is better."""
    given = constraints or []
    problem = sm.Problem(goal, [sm.card(w) <= 2, *given])
    solution = problem.solve()
    assert np.count_nonzero(w.value) <= 2
    values = []
    for i in range(P):
        for j in range(i):
            off = [m for m in range(P) if m not in (i, j)]
            reference = cp.Problem(goal, [w[off] == 0, *given])
            reference.solve(solver=cp.CLARABEL)
            values.append(reference.value if reference.value is not None else np.inf)
    assert solution.value == pytest.approx(min(values), rel=1e-6, abs=1e-7)


def means_the_same(
    goal: cp.Minimize, w: cp.Variable, constraints: list[object] | None = None
) -> None:
    """Our value is CVXPY's own at our point, and its minimum on our support."""
    given = constraints or []
    solution = sm.Problem(goal, [sm.card(w) <= 2, *given]).solve()
    assert float(goal.args[0].value) == pytest.approx(solution.value, rel=1e-10, abs=1e-12)
    off = np.setdiff1d(np.arange(P), solution.support)
    reference = cp.Problem(goal, [w[off] == 0, *given])
    reference.solve(solver=cp.CLARABEL)
    assert solution.value == pytest.approx(reference.value, rel=1e-6, abs=1e-7)


def test_recognised_atoms() -> None:
    w, c = cp.Variable(P, name="w"), cp.Variable(name="c")
    ridge = 0.05 * cp.sum_squares(w)
    for loss in (
        cp.sum_squares(A @ w - B) / 2,
        cp.sum_squares(A @ w + c - B) / N + 1.0,
        cp.sum(cp.logistic(cp.multiply(-Y, A @ w + c))) / N,
        cp.sum(cp.huber(A @ w - B, 0.5)),
        cp.sum(cp.pos(1 - A @ w)) / N,
        cp.norm1(A @ w - B) / N,
        cp.sum(cp.abs(B - A @ w)) / N,
        cp.sum(cp.exp(0.3 * (A @ w))) / N - 0.1 * cp.sum(w),
    ):
        agrees(cp.Minimize(loss + ridge), w)


def test_an_absolute_term_beside_a_loss() -> None:
    w = cp.Variable(P, name="w")
    agrees(cp.Minimize(0.5 * cp.sum_squares(A @ w - B) + 0.3 * cp.norm1(w)), w)


def test_constraints() -> None:
    w = cp.Variable(P, name="w")
    goal = cp.Minimize(cp.sum_squares(A @ w - B) + 0.1 * cp.sum_squares(w))
    for constraints in (
        [w >= 0],
        [cp.sum(w) == 1],
        [cp.norm(w) <= 0.5],
        [w <= 0.3, A[:2] @ w <= 1],
    ):
        agrees(goal, w, constraints)


def test_data_are_held_by_reference() -> None:
    w, data = cp.Variable(P), cp.Constant(A)
    problem = sm.Problem(cp.Minimize(cp.sum_squares(data @ w - B)), sm.card(w) <= 2)
    design = problem.form.terms[0].design
    assert np.shares_memory(design.array, data.value)


def test_what_is_not_recognised_is_named() -> None:
    w = cp.Variable(P)
    loss = cp.sum_squares(A @ w - B)
    with pytest.raises(sm.ModelError, match="atom log_sum_exp"):
        sm.Problem(cp.Minimize(loss + cp.log_sum_exp(w)), sm.card(w) <= 2)
    with pytest.raises(sm.ModelError, match="not recognised"):
        sm.Problem(cp.Minimize(loss), sm.card(w) <= 2, cp.exp(w) <= 2)
    with pytest.raises(sm.ModelError, match=r"QuadForm.*not convex") as error:
        sm.Problem(cp.Maximize(cp.quad_form(w, A.T @ A)), sm.card(w) <= 2)
    assert "..." in str(error.value)  # no numbers of the matrix
    with pytest.raises(sm.ModelError, match=r"sm\.custom_loss"):
        sm.Problem(cp.Minimize(loss - cp.sum(cp.entr(w))), sm.card(w) <= 2)


def test_a_maximum_is_the_minimum_of_the_negative() -> None:
    w = cp.Variable(P)
    loss = cp.sum_squares(A @ w - B)
    best = sm.Problem(cp.Maximize(3.0 - loss), sm.card(w) <= 2).solve()
    same = sm.Problem(cp.Minimize(loss - 3.0), sm.card(w) <= 2).solve()
    assert best.value == same.value
    assert best.support.tolist() == same.support.tolist()


def test_the_restricted_problem() -> None:
    w, c = sm.Variable(P, name="w"), sm.Variable(name="c")
    goal = sm.minimize(sm.logistic_loss(A @ w + c, Y) + sm.ridge(w, 0.05))
    problem = sm.Problem(goal, sm.card(w) <= 2)
    solution = problem.solve()
    reference = problem.restricted(solution.support)
    reference.solve(solver=cp.CLARABEL)
    assert reference.value == pytest.approx(solution.value, rel=1e-7)
    sizes = {v.name(): v.size for v in reference.variables()}
    assert sizes == {"w": 2, "c": 1}
    with pytest.raises(sm.ModelError, match="out of range"):
        problem.restricted([P + 3])


def test_the_ways_of_writing_a_loss() -> None:
    w, c = cp.Variable(P, name="w"), cp.Variable(name="c")
    u, r = A @ w + c, A @ w - B
    weights, counts = RNG.uniform(0.5, 2.0, N), RNG.poisson(1.0, N).astype(float)
    ridge = 0.05 * cp.sum_squares(w)
    for loss in (
        cp.sum(cp.square(r)) / N,
        weights @ cp.square(r),
        cp.sum(cp.multiply(weights, cp.abs(r))) / N,
        cp.mean(cp.abs(2.0 * r)),
        cp.sum(cp.pos(1 - cp.multiply(Y, u))) / N,
        cp.sum(cp.maximum(0.3 * r, -0.7 * r)) / N,
        cp.sum(0.5 * cp.abs(r) + 0.2 * r) / N,
        cp.sum(cp.exp(0.3 * u) - cp.multiply(counts, 0.3 * u)) / N,
        cp.sum(cp.exp(-u)) / N + (counts @ u) / N,
        cp.quad_form(w, A.T @ A / N) - w @ (A.T @ B / N),
    ):
        means_the_same(cp.Minimize(loss + ridge), w)
    means_the_same(cp.Minimize(cp.sum_squares(r) + cp.tv(w)), w)


def test_squared_norms_are_squares() -> None:
    w = cp.Variable(P)
    one, other = (
        sm.Problem(cp.Minimize(fit + ridge), sm.card(w) <= 2).solve().value
        for fit, ridge in (
            (cp.norm(A @ w - B) ** 2, 0.05 * cp.norm(w) ** 2),
            (cp.sum_squares(A @ w - B), 0.05 * cp.sum_squares(w)),
        )
    )
    assert one == pytest.approx(other, rel=1e-12)


def test_a_poisson_loss_is_put_together_from_its_two_parts() -> None:
    w = cp.Variable(P)
    counts = RNG.poisson(1.0, N).astype(float)
    for goal in (
        cp.sum(cp.exp(A @ w) - cp.multiply(counts, A @ w)),
        2.0 * cp.sum(cp.exp(A @ w)) - 2.0 * counts @ (A @ w),
    ):
        (term,) = sm.Problem(cp.Minimize(goal), sm.card(w) <= 2).form.terms
        assert term.loss.name == "poisson_loss"
        np.testing.assert_allclose(term.target, counts)


def test_attributes_of_variables_are_constraints() -> None:
    goal = lambda w: cp.Minimize(cp.sum_squares(A @ w - B))  # noqa: E731
    for w in (
        cp.Variable(P, nonneg=True),
        cp.Variable(P, nonpos=True),
        cp.Variable(P, bounds=[-0.5, 0.4]),
    ):
        means_the_same(goal(w), w)
    w = cp.Variable(P, integer=True)
    with pytest.raises(sm.ModelError, match="declared integer"):
        sm.Problem(goal(w), sm.card(w) <= 2)


def test_more_constraints() -> None:
    w = cp.Variable(P, name="w")
    goal = cp.Minimize(cp.sum_squares(A @ w - B) + 0.1 * cp.sum_squares(w))
    for constraints in (
        [cp.norm(w, 1) <= 0.5],
        [cp.norm(w, "inf") <= 0.3],
        [cp.max(cp.abs(w)) <= 0.3],
        [cp.abs(w) <= 0.3],
        [cp.max(w) <= 0.3, cp.maximum(-w, 0.1, -2.0 * w - 0.3) <= 0.2],
        [cp.sum_squares(w) <= 0.25],
    ):
        means_the_same(goal, w, constraints)


@pytest.mark.parametrize("attributes", [{"symmetric": True}, {"PSD": True}])
def test_a_precision_matrix(attributes: dict[str, bool]) -> None:
    p, k = 5, 3
    S = np.cov(A[:, :p].T, bias=True)
    theirs = cp.Variable((p, p), name="Omega", **attributes)
    ours = sm.Variable((p, p), symmetric=True)
    limits = (0.2, 4.0)
    written = sm.Problem(
        cp.Minimize(-cp.log_det(theirs) + cp.trace(S @ theirs)),
        [
            sm.card(sm.offdiag(theirs)) <= 2 * k,
            theirs >> limits[0] * np.eye(p),
            theirs << limits[1] * np.eye(p),
            theirs[0, 1] == 0,
        ],
    )
    declared = sm.Problem(
        sm.minimize(sm.gaussian_nll(ours, S)),
        [sm.card(sm.offdiag(ours)) <= 2 * k, ours >> limits[0], ours << limits[1]],
        sm.forbidden_edges(ours, [(0, 1)]),
    )
    assert (written.form.alpha, written.form.beta) == limits
    a, b = written.solve(), declared.solve()
    assert a.value == pytest.approx(b.value, rel=1e-12)
    assert np.array_equal(a.support, b.support)
    # CVXPY itself agrees on the support that was found, through the very same expressions
    kept = {(0, 1)} | {(int(i), int(j)) for i, j in a.support}
    off = [(i, j) for i in range(p) for j in range(i + 1, p) if (i, j) not in kept - {(0, 1)}]
    value = theirs.value
    assert value is not None
    np.testing.assert_allclose(value, ours.value, atol=1e-9)
    reference = cp.Problem(
        cp.Minimize(-cp.log_det(theirs) + cp.trace(S @ theirs)),
        [
            theirs >> limits[0] * np.eye(p),
            theirs << limits[1] * np.eye(p),
            *(theirs[i, j] == 0 for i, j in off),
        ],
    )
    reference.solve(solver=cp.SCS, eps=1e-9, max_iters=100000)
    assert a.value == pytest.approx(reference.value, rel=1e-6)


def test_what_cvxpy_means_by_a_number_is_not_taken_for_the_identity() -> None:
    Omega = cp.Variable((3, 3), symmetric=True)
    goal = cp.Minimize(-cp.log_det(Omega) + cp.trace(np.eye(3) @ Omega))
    count = sm.card(sm.offdiag(Omega)) <= 2
    assert sm.Problem(goal, count, Omega >> 0).form.alpha >= 0.0
    with pytest.raises(sm.ModelError, match=r"alpha in every entry"):
        sm.Problem(goal, count, Omega >> 0.5)
    with pytest.raises(sm.ModelError, match="concave"):
        sm.Problem(cp.Minimize(cp.log_det(Omega)), count)
    loose = cp.Variable((3, 3))
    with pytest.raises(sm.ModelError, match=r"cp\.Variable\(\(p, p\), symmetric=True\)"):
        sm.Problem(cp.Minimize(-cp.log_det(loose) + cp.trace(loose)))


@pytest.mark.parametrize(
    ("write", "named"),
    [
        (lambda w: cp.sum(cp.kl_div(A @ w, 1.0)), "kl_div"),
        (lambda w: cp.sum(cp.entr(w)), "entr"),
        (lambda w: cp.norm(A @ w - B), "Pnorm"),
        (lambda w: cp.sum(cp.power(A @ w, 4)), "Power"),
        (lambda w: cp.log_sum_exp(A @ w), "log_sum_exp"),
        (lambda w: cp.sum_squares(cp.pos(A @ w)), "maximum"),
        (lambda w: cp.sum(cp.maximum(A @ w, 1.0)), "maximum.*a variable t in its place"),
        (lambda w: cp.max(A @ w), r"a variable t = cp\.Variable\(\) .* `u <= t`"),
        (lambda w: -cp.sum_squares(A @ w), "not convex"),
        (lambda w: cp.quad_form(w, -np.eye(P)), "not convex"),
    ],
)
def test_the_offending_atom_is_named(write: object, named: str) -> None:
    w = cp.Variable(P)
    with pytest.raises(sm.ModelError, match=named):
        sm.Problem(cp.Minimize(write(w)), sm.card(w) <= 2)


@pytest.mark.parametrize("kept", [np.asarray, scipy.sparse.csr_array])
def test_a_matrix_times_stacked_vectors(kept: object) -> None:
    w, u, v = cp.Variable(P), cp.Variable(2), cp.Variable(P - 2)
    whole = sm.Problem(cp.Minimize(cp.sum_squares(A @ w - B)), sm.card(w) <= 2)
    both = cp.hstack([u, v])
    parts = sm.Problem(cp.Minimize(cp.sum_squares(kept(A) @ both - B)), sm.card(both) <= 2)
    assert parts.solve().value == pytest.approx(whole.solve().value, rel=1e-12)
    assert np.allclose(both.value, w.value)
    moved = cp.hstack([u, 2.0 * v + 1.0])
    problem = sm.Problem(cp.Minimize(cp.sum_squares(kept(A) @ moved - B)), sm.card(v) <= 1)
    assert problem.solve().value == pytest.approx(np.sum((A @ moved.value - B) ** 2), rel=1e-12)
