"""Losses written with JAX: derived gradients and Hessian products, right to double precision."""

from __future__ import annotations

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.losses.functions.custom import CustomLoss
from sparsemodel.losses.functions.differentiated import differentiated

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")

N, P = 40, 8
RNG = np.random.default_rng(5)
A = RNG.standard_normal((N, P))
B = A[:, :3] @ np.array([1.0, -2.0, 1.5]) + 0.1 * RNG.standard_normal(N)
Y = np.where(B > 0.0, 1.0, -1.0)


def test_the_derivatives_are_right_to_double_precision() -> None:
    value, slope, product = differentiated(lambda u: jnp.mean(jnp.logaddexp(0.0, -Y * u)), "f")
    loss = sm.losses.LogisticLoss()
    u, v, c = RNG.standard_normal(N), RNG.standard_normal(N), np.full(N, 1.0 / N)
    assert float(value(u)) == pytest.approx(loss.total(u, Y, c), rel=1e-14)
    np.testing.assert_allclose(slope(u), loss.gradient(u, Y, c), rtol=1e-12)
    expected = loss.hessian_product(u, Y, c, v)
    np.testing.assert_allclose(product(u, v), expected, rtol=1e-11, atol=1e-16)


def test_it_is_solved_like_the_loss_that_it_is() -> None:
    solutions = []
    for written in (True, False):
        w, c = sm.Variable(P, name="w"), sm.Variable(name="c")
        u = A @ w + c
        loss = (
            sm.custom_loss(lambda u: jnp.mean(jnp.logaddexp(0.0, -Y * u)), of=u)
            if written
            else sm.logistic_loss(u, Y)
        )
        problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 0.02)), sm.card(w) <= 3)
        solutions.append((problem.solve(), w.value))
    (ours, x), (builtin, z) = solutions
    assert np.array_equal(ours.support, builtin.support)
    assert ours.value == pytest.approx(builtin.value, rel=1e-10)
    np.testing.assert_allclose(x, z, atol=1e-7)


def test_jax_keeps_its_own_setting() -> None:
    w = sm.Variable(P, name="w")
    f = sm.custom_loss(lambda u: jnp.sum((u - 1.0) ** 2), of=w)
    sm.Problem(sm.minimize(f), sm.card(w) <= 2).solve()
    assert jnp.ones(2).dtype == np.float32
    assert np.sort(np.abs(w.value))[-2:] == pytest.approx([1.0, 1.0], rel=1e-12)


def test_a_hessian_product_of_ones_own_is_used() -> None:
    calls = []

    def product(u: np.ndarray, v: np.ndarray) -> np.ndarray:
        calls.append(1)
        return 2.0 * v

    w = sm.Variable(P, name="w")
    f = sm.custom_loss(lambda u: jnp.sum((u - 1.0) ** 2), None, product, of=w)
    sm.Problem(sm.minimize(f), sm.card(w) <= 2).solve("nhtp")
    assert calls


def test_matrix_variables() -> None:
    target = RNG.standard_normal((P, 2))
    W = sm.Variable((P, 2), name="W")
    f = sm.custom_loss(lambda u: 0.5 * jnp.sum((u - target) ** 2), of=W)
    solution = sm.Problem(sm.minimize(f), sm.card(W, axis=1) <= 3).solve()
    best = np.sort(np.sum(target**2, axis=1))[: P - 3].sum() / 2.0
    assert solution.value == pytest.approx(best, rel=1e-9)


def test_single_precision_is_refused() -> None:
    w = sm.Variable(P, name="w")
    rounded = jnp.asarray(A)  # made outside, where JAX rounds to 32 bits
    inner = jax.jit(lambda u: jnp.sum(rounded @ u) ** 2)
    for function in (
        lambda u: jnp.sum((rounded @ u) ** 2),
        lambda u: jnp.sum(u.astype("float32") ** 2),
        inner,
        lambda u: jax.lax.fori_loop(0, 2, lambda i, s: s + jnp.sum(rounded @ u), 0.0),
    ):
        with pytest.raises(sm.ModelError, match="single precision"):
            sm.custom_loss(function, of=w)
    exact = A.astype(np.float32)  # the user's own data, taken as they are
    f = sm.custom_loss(lambda u: jnp.sum((exact @ u - B) ** 2), of=w)
    solution = sm.Problem(sm.minimize(f), sm.card(w) <= P).solve()
    double = exact.astype(np.float64)
    assert solution.value == pytest.approx(np.linalg.lstsq(double, B, rcond=None)[1][0], rel=1e-9)


def test_what_jax_cannot_differentiate_is_said() -> None:
    w = sm.Variable(P, name="w")
    with pytest.raises(TypeError, match=r"jax\.numpy in place of numpy"):
        sm.custom_loss(lambda u: np.sum(np.exp(np.asarray(u))), of=w)
    with pytest.raises(TypeError, match="one number, not of shape"):
        sm.custom_loss(lambda u: u**2, of=w)
    with pytest.raises(sm.ModelError, match="not convex"):
        sm.custom_loss(lambda u: -jnp.sum(u**2), of=w)
    short = sm.custom_loss(lambda u: jnp.sum(u**2) if u[0] > 0 else 0.0)
    with pytest.raises(TypeError, match="JAX cannot differentiate"):
        sm.Problem(sm.minimize(short), sm.card(w) <= 2)


def test_values_that_are_arrays_of_one_entry() -> None:
    value, slope, _ = differentiated(lambda u: jnp.reshape(jnp.sum(u**2), (1,)), "f")
    loss = CustomLoss(value, slope)
    one = np.ones(1)
    assert loss.total(np.ones(3), one, one) == 3.0
    np.testing.assert_allclose(loss.gradient(np.ones(3), one, one), 2.0)
