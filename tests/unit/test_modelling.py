"""Parameters, names, slices, custom losses, paths: the language beyond the first declaration."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import sparsemodel as sm

N, P = 40, 8
RNG = np.random.default_rng(12)
A = RNG.standard_normal((N, P))
TRUTH = np.array([1.5, 0.0, -1.0, 0.0, 0.0, 0.6, 0.0, 0.0])
B = A @ TRUTH + 0.3 * RNG.standard_normal(N)


def test_a_parameter_changes_what_depends_on_it_alone() -> None:
    w = sm.Variable(P, name="w")
    k, lam = sm.Parameter(integer=True, name="k"), sm.Parameter(nonneg=True, value=0.1, name="lam")
    problem = sm.Problem(sm.minimize(sm.squared_loss(A @ w, B) + sm.ridge(w, lam)), sm.card(w) <= k)
    with pytest.raises(sm.ModelError, match=r"set k\.value"):
        problem.solve()
    values = []
    for number in (1, 2, 3):
        k.value = number
        values.append(problem.solve().value)
        fresh = sm.squared_loss(A @ w, B) + sm.ridge(w, 0.1)
        alone = sm.Problem(sm.minimize(fresh), sm.card(w) <= number)
        assert values[-1] == pytest.approx(alone.solve().value, rel=1e-9)
    assert values == sorted(values, reverse=True)
    terms = problem.form.terms
    lam.value = 0.5
    assert problem.form.terms is terms  # the data are not looked at again
    assert problem.form.ridge.tolist() == [0.5] * P
    with pytest.raises(sm.ModelError, match="whole number"):
        k.value = 2.5
    with pytest.raises(sm.ModelError, match="must be at least 0"):
        lam.value = -1.0


def test_data_as_parameters() -> None:
    w = sm.Variable(P, name="w")
    data, target = sm.Parameter((N, P), name="A"), sm.Parameter(N, name="b")
    limit = sm.Parameter(value=1.0)
    problem = sm.Problem(
        sm.minimize(2.0 * sm.squared_loss(data @ w, target)), sm.card(w) <= 2, w <= limit
    )
    for scale in (1.0, 2.0):
        data.value, target.value = scale * A, B
        w2 = sm.Variable(P)
        same = sm.minimize(2.0 * sm.squared_loss(scale * A @ w2, B))
        reference = sm.Problem(same, sm.card(w2) <= 2, w2 <= 1.0).solve()
        assert problem.solve().value == pytest.approx(reference.value, rel=1e-9)
    limit.value = 0.1
    assert np.all(problem.solve().values["w"] <= 0.1 + 1e-12)
    with pytest.raises(sm.DataError, match=r"shape \(40, 8\)"):
        data.value = A[:5]


def test_names_travel_to_every_output() -> None:
    frame = pd.DataFrame(A, columns=[f"gene{j}" for j in range(P)])
    w = sm.Variable(P, name="w")
    problem = sm.Problem(sm.minimize(sm.squared_loss(frame, B)), sm.card(w) <= 2)
    solution = problem.solve()
    assert solution.support == ["gene0", "gene2"]
    assert set(solution.coefficients) == {"gene0", "gene2"}
    assert "gene0" in str(solution)
    assert problem.path(range(1, 3)).support[1] == ["gene0", "gene2"]


def test_a_custom_loss_is_the_loss_it_describes() -> None:
    gram, right = A.T @ A / N, A.T @ B / N
    w = sm.Variable(P, name="w")
    custom = sm.custom_loss(lambda u: 0.5 * u @ gram @ u - right @ u, lambda u: gram @ u - right)
    found = sm.Problem(sm.minimize(custom + sm.ridge(w, 0.1)), sm.card(w) <= 3).solve()
    goal = sm.minimize(sm.squared_loss(A @ w, B) + sm.ridge(w, 0.1))
    usual = sm.Problem(goal, sm.card(w) <= 3).solve()
    assert found.value + 0.5 * B @ B / N == pytest.approx(usual.value, rel=1e-8)
    of_predictions = sm.custom_loss(
        lambda u: 0.5 * float((u - B) @ (u - B)) / N, lambda u: (u - B) / N, of=A @ w
    )
    same = sm.Problem(sm.minimize(of_predictions + sm.ridge(w, 0.1)), sm.card(w) <= 3).solve()
    assert same.value == pytest.approx(usual.value, rel=1e-8)


def test_custom_losses_are_checked() -> None:
    w = sm.Variable(3, name="w")
    with pytest.raises(sm.ModelError, match="is not convex"):
        sm.custom_loss(lambda u: -u @ u, lambda u: -2.0 * u, of=w)
    with pytest.raises(sm.ModelError, match="does not match the value"):
        sm.custom_loss(lambda u: u @ u, lambda u: 3.0 * u, of=w)
    with pytest.raises(sm.DataError, match="shape"):
        sm.custom_loss(lambda u: u @ u, lambda u: np.zeros(2), of=w)
    with pytest.raises(sm.DataTypeError, match="must be a function"):
        sm.custom_loss(3.0, of=w)  # type: ignore[arg-type]


def test_a_path_is_monotone_and_as_good_as_single_solves() -> None:
    w, c = sm.Variable(P, name="w"), sm.Variable(name="c")
    k = sm.Parameter(integer=True)
    loss = sm.squared_loss(A @ w + c, B) + sm.ridge(w, 0.01)
    problem = sm.Problem(sm.minimize(loss), sm.card(w) <= k)
    path = problem.path(k, range(P + 1))
    assert np.all(np.diff(path.objective) <= 1e-12)
    for number, value in zip(path.k, path.objective, strict=True):
        alone = sm.Problem(sm.minimize(loss), sm.card(w) <= int(number)).solve().value
        assert value >= alone - 1e-9
        assert value <= alone * 1.02
    assert [len(s) for s in path.support] == list(range(P + 1))


def test_choosing_k() -> None:
    w = sm.Variable(P, name="w")
    goal = sm.minimize(sm.squared_loss(A @ w, B))
    path = sm.Problem(goal, sm.card(w) <= 3).path(range(1, P + 1))
    for criterion in ("bic", "ebic", "gic"):
        best = path.select(criterion)
        assert best.k == 3
        assert best.support.tolist() == [0, 2, 5]
        assert best.scores.argmin() == 2
    assert path.select("aic").k >= 3
    chosen = path.cross_validate(folds=5, one_standard_error=True)
    assert chosen.k == 3
    assert path.cross_validate(folds=5, one_standard_error=False).k >= 3
    frequencies = path.stability(resamples=10)
    assert frequencies.shape == (P, P)
    assert np.all(frequencies[2, [0, 2]] >= 0.9)
    with pytest.raises(sm.ModelError, match="no criterion 'cp'"):
        path.select("cp")
    hinge = sm.minimize(sm.squared_hinge_loss(A @ w, B > 0) + sm.ridge(w, 0.1))
    with pytest.raises(sm.ModelError, match="not a likelihood"):
        sm.Problem(hinge, sm.card(w) <= 3).path(range(1, 4)).select("bic")
    assert path.k.tolist() == list(range(path.k[0], 9))
    longer = sm.Problem(goal, sm.card(w) <= 30).path(range(7, 10**12))
    assert longer.k.tolist() == [7, 8]  # more than there are: all
    with pytest.raises(sm.ModelError, match="at least 0, and the smallest is -1"):
        sm.Problem(goal, sm.card(w) <= 3).path(range(-1, 3))


@pytest.mark.filterwarnings("ignore:bic chooses k = 4:UserWarning")
def test_bic_is_the_formula() -> None:
    w = sm.Variable(P, name="w")
    path = sm.Problem(sm.minimize(sm.squared_loss(A @ w, B)), sm.card(w) <= 3).path([2, 4])
    scores = path.select("bic").scores
    for k, score in zip((2, 4), scores, strict=True):
        support = path.support[0 if k == 2 else 1]
        x = np.linalg.lstsq(A[:, support], B, rcond=None)[0]
        mean = 0.5 * np.mean(np.square(A[:, support] @ x - B))
        assert score == pytest.approx(N * np.log(mean) + k * np.log(N), rel=1e-9)


def test_cross_validation_does_not_leak() -> None:
    """Changing the target of a fold changes nothing that is fitted without it."""
    w, c = sm.Variable(P, name="w"), sm.Variable(name="c")
    folds = np.arange(N) % 4

    def scores(target: np.ndarray, matrix: np.ndarray) -> np.ndarray:
        goal = sm.minimize(sm.squared_loss(matrix @ w + c, target) + sm.ridge(w, 0.01))
        path = sm.Problem(goal, sm.card(w) <= 2).path(range(1, 4))
        return path.cross_validation(folds=folds).losses

    before = scores(B, A)
    changed = B.copy()
    changed[folds == 0] += 100.0
    after = scores(changed, A)
    coefficients = np.sqrt(2.0 * after[0]) - 100.0  # the held-out residual alone has moved
    assert np.all(np.abs(coefficients) < 3.0)
    assert np.all(np.abs(after[1:] - before[1:]) > 1e-3)  # the others did see it


def test_a_path_is_as_good_as_separate_solves_in_fewer_passes() -> None:
    data = sm.datasets.load_khan()
    w, c = sm.Variable(data.X.shape[1], name="w"), sm.Variable(name="c")
    loss = sm.logistic_loss(data.X @ w + c, data.y == 0) + sm.ridge(w, 1e-2)
    ks = (5, 10, 15)
    single = [sm.Problem(sm.minimize(loss), sm.card(w) <= k).solve() for k in ks]
    limited = sm.Problem(sm.minimize(loss), sm.card(w) <= 15)
    path = limited.path(range(1, 16))
    assert np.all(np.diff(path.objective) <= 0.0)
    for k, alone in zip(ks, single, strict=True):
        assert path.objective[k - 1] <= 1.001 * alone.value
    assert path.passes < 15 * np.mean([alone.passes for alone in single])
    quick = limited.path(range(1, 16), effort="low")
    assert quick.passes < 5.0 * single[0].passes
    assert quick.objective[4] <= 1.02 * single[0].value


RESIDUALS = {
    "squared": sm.squared_loss,
    "huber": sm.huber_loss,
    "absolute": sm.absolute_loss,
    "epsilon": sm.epsilon_insensitive_loss,
}


@pytest.mark.parametrize("name", RESIDUALS)
def test_a_residual_is_the_prediction_less_the_target(name: str) -> None:
    w, c = sm.Variable(P, name="w"), sm.Variable(name="c")
    moved = sm.Parameter(N, name="b", value=B)
    values = []
    for loss in (
        RESIDUALS[name](A @ w + c, B),
        RESIDUALS[name](A @ w + c - B),
        RESIDUALS[name](A @ w - (B - 1.0) - 1.0 + c),
        RESIDUALS[name](A @ w + c - moved),
    ):
        problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 2)
        values.append(problem.solve().value)
        np.testing.assert_allclose(problem.form.terms[0].target, B, rtol=1e-12, atol=1e-12)
    assert values == pytest.approx([values[0]] * 4, rel=1e-9)


def test_the_sign_of_a_residual_is_not_guessed() -> None:
    w = sm.Variable(P, name="w")
    for residual in (A @ w - B, B - A @ w):
        with pytest.raises(sm.ModelError, match="prediction and target apart"):
            sm.quantile_loss(residual, tau=0.2)
    values = [
        sm.Problem(sm.minimize(sm.huber_loss(residual)), sm.card(w) <= 2).solve().value
        for residual in (A @ w - B, B - A @ w)
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-12)


def test_one_number_for_all_targets() -> None:
    w = sm.Variable(P, name="w")
    one, other = sm.squared_loss(A @ w - 2.0), sm.squared_loss(A @ w, np.full(N, 2.0))
    values = [
        sm.Problem(sm.minimize(loss + sm.ridge(w, 0.1)), sm.card(w) <= 2).solve().value
        for loss in (one, other)
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-12)


def test_a_loss_without_its_target_says_what_to_write() -> None:
    w = sm.Variable(P, name="w")
    for wrong in (A @ w, A, None):
        with pytest.raises(sm.SparseModelError, match=r"sm.squared_loss\(A @ w - b\)"):
            sm.squared_loss(wrong)


def test_expressions_have_values() -> None:
    rng = np.random.default_rng(3)
    A, q = rng.standard_normal((6, 4)), sm.Parameter(6, value=np.arange(6.0))
    M = sm.Parameter((6, 4), value=A)
    w, c, W = sm.Variable(4), sm.Variable(), sm.Variable((4, 2))
    expressions = [
        A @ w + c - 1.0,
        M @ w - q,
        w[1:] - w[:-1],
        2.0 * w,
        w.sum(),
        A @ W,
        W[:, 1],
        W @ [1, 2],
    ]
    assert all(expression.value is None for expression in expressions)
    w.value, c.value, W.value = x, _, X = rng.standard_normal(4), 0.5, rng.standard_normal((4, 2))
    found = [
        A @ x - 0.5,
        A @ x - np.arange(6.0),
        np.diff(x),
        2.0 * x,
        [x.sum()],
        A @ X,
        X[:, 1],
        X @ [1, 2],
    ]
    for expression, value in zip(expressions, found, strict=True):
        np.testing.assert_allclose(expression.value, value, rtol=1e-14, atol=1e-14)
        assert expression.value.shape == np.shape(value)
