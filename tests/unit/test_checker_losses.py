"""The checker's losses against textbook formulas in extended precision, and against suprema."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.checker.__main__ import main
from sparsemodel.checker.proof.arithmetic import Ball
from sparsemodel.checker.proof.losses import cox_of, loss_of
from sparsemodel.losses import CoxLoss, builtin_losses
from tests.referee.textbook_losses import LABELLED, SLOPES, VALUES, long, slope, total

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
"""The checker looks for slopes among all floats, up to where exponentials overflow."""

PARAMETERS = {"tau": 0.8, "theta": 2.5, "power": 1.3, "delta": 0.7, "epsilon": 0.3}
LOSSES = {
    loss.name: type(loss)(
        **{name: PARAMETERS.get(name, value) for name, value in asdict(loss).items()}
    )
    for loss in builtin_losses()
    if type(loss) in VALUES and loss.name != "multinomial_loss"
}
AMOUNTS = ("poisson_loss", "negative_binomial_loss", "tweedie_loss")
LINKED = (
    "poisson_identity_loss",
    "poisson_sqrt_loss",
    "gamma_inverse_loss",
    "inverse_gaussian_loss",
)


@pytest.mark.parametrize("name", LOSSES)
def test_values_slopes_and_conjugates_are_those_of_the_formulas(name):
    loss, rng = LOSSES[name], np.random.default_rng(7)
    y, u = rng.uniform(0.3, 2.0, 20), 3.0 * rng.standard_normal(20)
    if isinstance(loss, LABELLED):
        y = np.sign(y - 1.0)
    if name in (*AMOUNTS, *LINKED[:2]):
        y[:4] = 0.0
    if name in LINKED:
        u = np.where(y > 0.0, np.abs(u) + 1e-3, u)
    family = loss_of(loss.name, asdict(loss), y, y.shape)
    found = family.value(Ball(u))
    exact = VALUES[type(loss)](loss, long(u), long(y))
    assert np.all(np.abs(found.mid - exact) <= found.rad + 1e-30)
    assert np.all(found.rad <= 2e-14 * (1.0 + np.abs(found.mid)))
    if name == "tweedie_loss":  # a sum of positive parts, as exact as their exponents are
        assert np.all(found.rad <= (40.0 + 12.0 * np.abs(u)) * 2.0**-53 * found.mid)
    a = np.asarray(family.slope(u), dtype=np.float64)
    expected = SLOPES[type(loss)](loss, long(u), long(y))
    np.testing.assert_allclose(a, expected.astype(float), rtol=1e-12, atol=1e-13)
    # At a slope the supremum is attained; elsewhere it is above every line.
    least = a * long(u) - exact
    conjugate = family.conjugate(Ball(a))
    assert np.all(conjugate >= least)
    np.testing.assert_allclose(conjugate, least.astype(float), rtol=1e-9, atol=1e-9)
    lower, upper = loss.dual_interval(y)
    np.testing.assert_array_equal(family.lower, lower)
    np.testing.assert_array_equal(family.upper, upper)
    for beyond in (lower - 0.1, upper + 0.1):
        on = np.isfinite(beyond)
        assert np.all(family.conjugate(Ball(np.where(on, beyond, a)))[on] == np.inf)


def test_a_linear_loss_has_the_same_slope_everywhere():
    """Also at zero, where a kink of a loss would have any slope."""
    y = np.array([-2.0, 0.0, 3.0])
    family = loss_of("linear_term", {}, y, y.shape)
    for u in (-1.5, 0.0, 0.5):
        np.testing.assert_array_equal(family.slope(np.full(3, u)), y)
        np.testing.assert_array_equal(family.value(Ball(np.full(3, u))).mid, y * u)


@pytest.mark.parametrize("name", LINKED)
def test_conjugates_are_those_of_the_parabola_too(name):
    """Where a logarithm goes on as a parabola, a dual point far out meets that and not the log."""
    y = np.array([1.0, 2.0, 5.0])
    family = loss_of(name, {}, y, y.shape)
    v = np.concatenate([-np.geomspace(1e2, 1e-14, 350), np.geomspace(1e-14, 1e2, 350)])
    values = family.value(Ball(np.repeat(v[:, None], 3, axis=1))).mid
    for a in (-1e4, -1e7, -1e11):
        most = family.conjugate(Ball(np.full(3, a)))
        best = np.max(a * v[:, None] - values, axis=0)
        assert np.all(most >= best - 1e-12 * np.abs(best))
        assert np.all(most <= best + 0.05 * np.abs(best))


@pytest.mark.parametrize("ties", ["breslow", "efron"])
@pytest.mark.parametrize("strata", [1, 3])
def test_the_cox_loss_is_that_of_the_formula(ties, strata):
    rng, n = np.random.default_rng(8), 24
    loss, c = CoxLoss(ties=ties), rng.uniform(0.2, 2.0, n) * (rng.random(n) < 0.8)
    y = np.column_stack([rng.integers(1, 5, n), rng.integers(0, 2, n), rng.integers(0, strata, n)])
    y = y[:, : 2 + (strata > 1)].astype(float)
    u = rng.standard_normal(n)
    family = cox_of(asdict(loss), y, c)
    parts = [long(part) for part in (u, y, c)]
    assert float(c @ family.value(Ball(u)).mid) == pytest.approx(
        float(total(loss, *parts)), rel=1e-12
    )
    expected = slope(loss, *parts).astype(float)
    np.testing.assert_allclose(c * family.slope(u), expected, atol=1e-13)
    _, most = family.point(u, False)
    assert float(c @ most) == pytest.approx(
        float(expected @ u) - float(total(loss, *parts)), rel=1e-9
    )
    # At zero it is minus the infimum, which hazards that fall quickly in time come near.
    _, most = family.point(None, False)
    early = 60.0 * y[:, 0].max() - 60.0 * y[:, 0] - 30.0 * (y[:, 1] == 0.0)
    assert -float(c @ most) == pytest.approx(loss.total(early, y, c), abs=1e-9)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("m", [2, 3, 40])
def test_multinomial_values_are_within_their_errors(scale: float, m: int) -> None:
    rng = np.random.default_rng(5)
    u, labels = scale * rng.standard_normal((200, m)), rng.integers(0, m, 200)
    exact = long(u)
    largest = exact.max(axis=1, keepdims=True)
    exact = np.log(np.exp(exact - largest).sum(axis=1)) + largest[:, 0] - exact[range(200), labels]
    found = loss_of("multinomial_loss", {}, labels.astype(float), u.shape).value(Ball(u))
    error, unit = np.abs(found.mid - exact), 2.0**-53
    assert np.all(error <= found.rad)
    assert np.all(found.rad <= ((4 * m + 80) * (1.0 + np.log(m)) + 10.0 * np.abs(u).max()) * unit)


@pytest.mark.parametrize("seed", [1, 4])
def test_certificates_with_large_intercepts_of_classes_hold(seed: int, tmp_path, capsys) -> None:
    """The checker allowed for more rounding than the library does, and refused the file."""
    A, y = np.random.default_rng(seed).normal(size=(2, 3)), np.array([0.0, 2.0])
    W, c = sm.Variable((3, 3), name="W"), sm.Variable(3, name="c")
    goal = sm.multinomial_loss(A @ W + c, y, classes=3) + sm.ridge(W, 1e-6)
    problem = sm.Problem(sm.minimize(goal), [sm.card(W, axis=1) <= 1, W <= 0.5, W >= -0.5])
    problem.solve()
    path = problem.certify().save(tmp_path / "c.json")
    np.savez(tmp_path / "d.npz", A=A, b=y)
    assert main([str(path), str(tmp_path / "d.npz")]) == 0, capsys.readouterr().out


@pytest.mark.parametrize("seed", [1, 4, 6])
def test_columns_far_from_zero_are_shifted_beside_several_targets(
    seed: int, tmp_path, capsys
) -> None:
    rng = np.random.default_rng(seed)
    A, Y = 1e5 + rng.normal(size=(20, 2)), rng.normal(size=(20, 2))
    W, c = sm.Variable((2, 2), name="W"), sm.Variable(2, name="c")
    goal = sm.minimize(sm.squared_loss(A @ W + c, Y))
    problem = sm.Problem(goal, sm.card(W, axis=1) <= (1 if seed < 4 else 2))
    problem.solve()
    path = problem.certify().save(tmp_path / "c.json")
    np.savez(tmp_path / "d.npz", A=A, b=Y)
    assert main([str(path), str(tmp_path / "d.npz")]) == 0, capsys.readouterr().out
