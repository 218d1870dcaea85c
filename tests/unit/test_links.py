"""Losses of positive predictions: best supports, domains, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import sparsemodel as sm
from sparsemodel.certificates import Claim
from sparsemodel.checker.__main__ import main
from tests.referee import judge

MEANS = {
    "identity": lambda u: u,
    "sqrt": np.square,
    "inverse": lambda u: 1.0 / u,
    "canonical": lambda u: u**-0.5,  # of the inverse Gaussian loss
}
DEVIANCES = {
    "inverse": lambda mu, y: y / mu + np.log(mu),
    "canonical": lambda mu, y: y / (2.0 * mu * mu) - 1.0 / mu,
}


def data(link: str, seed: int = 0, n: int = 50, p: int = 6) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, p))
    mu = MEANS[link](np.maximum(4.0 + 0.8 * A[:, 1] - 0.6 * A[:, 4], 0.5))
    spread = {"inverse": lambda: rng.gamma(2.0, mu / 2.0), "canonical": lambda: rng.wald(mu, 20.0)}
    y = spread.get(link, lambda: 1.0 + rng.poisson(mu))()
    return A, y, rng.uniform(0.5, 2.0, n)


def term(link: str, prediction: Any, y: Any, **more: Any) -> Any:
    if link == "canonical":
        return sm.inverse_gaussian_loss(prediction, y, **more)
    loss = sm.gamma_loss if link == "inverse" else sm.poisson_loss
    return loss(prediction, y, link=link, **more)


def declared(link: str, A: Any, y: Any, lam: float, **more: Any) -> sm.Problem:
    w, c = sm.Variable(A.shape[1], name="w"), sm.Variable(name="c")
    goal = sm.minimize(term(link, A @ w + c, y, **more) + sm.ridge(w, lam))
    return sm.Problem(goal, sm.card(w) <= 2)


def by_scipy(link: str, X: Any, y: Any, weights: Any, lam: float) -> float:
    """The least deviance, written in means, on columns of which the first is the constant."""
    deviance = DEVIANCES.get(link, lambda mu, y: mu - y * np.log(mu))
    c = weights / len(y)

    def value(t: Any) -> float:
        u = X @ t
        if u.min() <= 0.0:
            return np.inf
        return float(c @ deviance(MEANS[link](u), y)) + 0.5 * lam * float(t[1:] @ t[1:])

    m = y.mean()
    u = {"identity": m, "sqrt": m**0.5, "inverse": 1.0 / m, "canonical": m**-2.0}[link]
    options = {"xatol": 1e-9, "fatol": 1e-14, "maxiter": 4000}
    first = minimize(value, np.r_[u, 0.0, 0.0], method="Nelder-Mead", options=options)
    return float(minimize(value, first.x, method="Nelder-Mead", options=options).fun)


@pytest.mark.parametrize("link", MEANS)
def test_the_best_support_is_found_proved_and_checked(link: str, tmp_path: Path) -> None:
    lam = {"identity": 0.0, "sqrt": 0.1, "inverse": 0.01, "canonical": 0.01}[link]
    A, y, weights = data(link)
    problem = declared(link, A, y, lam, weights=weights)
    solution, proof = problem.solve(), problem.prove(gap=1e-6)
    found = {
        S: by_scipy(link, np.column_stack([np.ones(len(y)), A[:, S]]), y, weights, lam)
        for S in ((1, 4), (0, 1), (2, 4))  # the proof is about all of them
    }
    assert tuple(solution.support.tolist()) == min(found, key=found.__getitem__)
    assert solution.value == pytest.approx(min(found.values()), abs=1e-9)
    assert proof.claim is Claim.OPTIMAL
    assert solution.value - 1e-6 * abs(solution.value) <= proof.bound <= solution.value
    judge(problem, proof)
    np.savez(tmp_path / "data.npz", A=A, b=y, c=weights)
    path = proof.save(tmp_path / "proof.json")
    assert main([str(path), str(tmp_path / "data.npz")]) == 0


@pytest.mark.parametrize("link", MEANS)
@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_units_of_the_data_do_not_matter(link: str, scale: float) -> None:
    A, y, _ = data(link, 1)
    factor = scale if link in ("inverse", "canonical") else 1.0
    plain, scaled = declared(link, A, y, 0.0), declared(link, A * scale, y * factor, 0.0)
    one, other = plain.solve(), scaled.solve()
    assert one.support.tolist() == other.support.tolist()
    if link == "canonical":  # in the units of one over a mean
        assert other.value * factor == pytest.approx(one.value, rel=1e-9)
    else:
        assert other.value == pytest.approx(one.value + np.log(factor), abs=1e-9)


def test_predictions_and_summaries_are_of_means() -> None:
    for link, mean in MEANS.items():
        A, y, _ = data(link, 2)
        problem = declared(link, A, y, 0.0)
        problem.solve()
        u = problem.predict(A, "linear")
        assert u.min() > 0.0
        np.testing.assert_allclose(problem.predict(A), mean(u), rtol=1e-14)
        summary = problem.solution.summary()
        assert summary.aic is not None
        assert 0.0 < summary.deviance_explained < 1.0
        assert (summary.r2 is None) == (link != "identity")
        assert all(one.standard_error > 0.0 for one in summary.estimates)


def test_sources_that_add_up_need_no_constant() -> None:
    rng = np.random.default_rng(3)
    A = rng.uniform(0.0, 1.0, (60, 12)) * (rng.random((60, 12)) < 0.5)
    truth = np.zeros(12)
    truth[[2, 7, 9]] = [6.0, 9.0, 4.0]
    y = rng.poisson(A @ truth).astype(float)
    assert np.any(y == 0.0)
    w = sm.Variable(12, name="w")
    problem = sm.Problem(
        sm.minimize(sm.poisson_loss(A @ w, y, link="identity")), [sm.card(w) <= 5, w >= 0]
    )
    solution = problem.solve()
    assert (A @ w.value)[y > 0.0].min() > 0.0
    assert problem.prove().gap <= 1e-4 * abs(solution.value)
    judge(problem, solution)


def test_what_has_no_positive_means_is_refused_with_what_to_do() -> None:
    A, y, _ = data("identity", 4)
    w, c = sm.Variable(6, name="w"), sm.Variable(name="c")
    problem = sm.Problem(sm.minimize(term("sqrt", A @ w, y)), sm.card(w) <= 2)
    with pytest.raises(sm.InfeasibleError, match=r"positive predictions.*A @ w \+ c"):
        problem.solve()
    y = np.where(A[:, 0] < -0.5, 0.0, np.ceil(3.0 + 3.0 * A[:, 0]))
    goal = sm.minimize(term("identity", A @ w + c, np.maximum(y, 0.0)))
    with pytest.raises(sm.SparseModelError, match=r"A\[y == 0\] @ w >= 0"):
        sm.Problem(goal, sm.card(w) <= 2).solve()
    kept = sm.Problem(goal, [sm.card(w) <= 2, A[y <= 0.0] @ w + c >= 0.0])
    judge(kept, kept.solve())
    assert (A @ w.value + c.value).min() >= -1e-8
    goal = sm.minimize(term("inverse", A @ w + c, np.r_[1e-12, np.ones(49)]))
    with pytest.raises(sm.InfeasibleError, match=r"for a target of 1e-12\. Leave out"):
        sm.Problem(goal, sm.card(w) <= 0).solve()


@pytest.mark.parametrize("link", ["inverse", "canonical"])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_constraints_beside_an_offset_beyond_the_domain(link: str, order: int, seed: int) -> None:
    """Without coefficients predictions are negative, where losses are continued very steeply."""
    rng = np.random.default_rng(seed)
    a, offset = rng.standard_normal(6), rng.standard_normal(6) - 0.5
    y, w, c = rng.gamma(2.0, 0.5, 6) + 0.1, sm.Variable(1, name="w"), sm.Variable(name="c")
    goal = term(link, np.outer(a, 1.0) @ w + c + offset, y, reduction="sum")
    goal = sm.minimize(goal + sm.ridge(w, 0.1))
    problem = sm.Problem(goal, sm.card(w) <= 1, sm.norm(w, order) <= 0.3)

    def value(x: Any) -> float:
        u = a * x[0] + x[1] + offset
        if u.min() <= 0.0:
            return 1e9
        losses = y * u - np.log(u) if link == "inverse" else 0.5 * y * u - np.sqrt(u)
        return float(losses.sum()) + 0.05 * float(x[0]) ** 2

    start, ends = [0.0, 1.0 - offset.min()], [(-0.3, 0.3), (None, None)]
    found = minimize(value, start, bounds=ends, method="Nelder-Mead", options={"fatol": 1e-12})
    assert problem.solve().value <= found.fun + 1e-9 * abs(found.fun)
    assert problem.certify().claim is Claim.OPTIMAL


@pytest.mark.parametrize(
    ("loss", "link", "words"),
    [
        (sm.poisson_loss, "inverse", r'"log" or "identity" or "sqrt", not \'inverse\'; .*1/u'),
        (sm.gamma_loss, "identity", r'"log" or "inverse", not .* mean of u it is not convex'),
        (sm.gamma_loss, "logit", r'"log" or "inverse", not \'logit\'\.$'),
    ],
)
def test_links_that_are_not_convex_are_refused(loss: Any, link: str, words: str) -> None:
    with pytest.raises(sm.ModelError, match=words):
        loss(np.eye(3) @ sm.Variable(3, name="w"), [1.0, 2.0, 3.0], link=link)
    with pytest.raises(sm.DataTypeError, match="poisson_loss has log, identity and sqrt"):
        sm.tweedie_loss(np.eye(3) @ sm.Variable(3, name="w"), [1.0, 2.0, 3.0], link="log")


def test_a_mean_that_is_negative_beside_an_equation_is_named() -> None:
    """Counts of zero draw predictions below zero; the equation itself has many solutions."""
    x = np.linspace(-1.0, 2.0, 12)
    y = np.where(x > 0.9, 4.0, 0.0)
    w, c = sm.Variable(2, name="w"), sm.Variable(name="c")
    fit = sm.poisson_loss(np.column_stack([x, x**2]) @ w + c, y, link="identity")
    problem = sm.Problem(sm.minimize(fit), sm.card(w) <= 1, w.sum() == 4.0)
    with pytest.raises(sm.InfeasibleError, match=r"counts of zero .* Add the constraint"):
        problem.solve()
    at_zero = np.column_stack([x, x**2])[y == 0.0] @ w + c >= 0.0
    problem = sm.Problem(sm.minimize(fit), sm.card(w) <= 1, w.sum() == 4.0, at_zero)
    assert abs(problem.solve().values["w"].sum() - 4.0) <= 1e-12
