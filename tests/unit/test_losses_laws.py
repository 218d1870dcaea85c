"""Laws of the conjugate pairs under hypothesis: any prediction, any target, any dual point."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsemodel.interfaces import Conjugable, Curved, IntervalConjugable, Loss, Smoothable
from sparsemodel.losses import (
    AbsoluteLoss,
    EpsilonInsensitiveLoss,
    ExpectileLoss,
    GammaInverseLoss,
    GammaLoss,
    HingeLoss,
    HuberLoss,
    InverseGaussianLoss,
    LinearLoss,
    LogisticLoss,
    MultinomialLoss,
    NegativeBinomialLoss,
    PoissonIdentityLoss,
    PoissonLoss,
    PoissonSqrtLoss,
    QuantileLoss,
    SmoothedHingeLoss,
    SmoothedPinballLoss,
    SquaredHingeLoss,
    SquaredLoss,
    TweedieLoss,
)

numbers = st.floats(-1e3, 1e3, allow_nan=False)
levels = st.floats(0.01, 0.99)
sizes = st.floats(0.01, 100.0)
signs = st.sampled_from([-1.0, 1.0])

SCALAR = {
    "squared": (st.just(SquaredLoss()), numbers),
    "logistic": (st.just(LogisticLoss()), signs),
    "hinge": (st.just(HingeLoss()), signs),
    "smoothed hinge": (st.builds(SmoothedHingeLoss, gamma=sizes), signs),
    "squared hinge": (st.just(SquaredHingeLoss()), signs),
    "linear": (st.just(LinearLoss()), numbers),
    "Huber": (st.builds(HuberLoss, delta=sizes), numbers),
    "absolute": (st.just(AbsoluteLoss()), numbers),
    "quantile": (st.builds(QuantileLoss, tau=levels), numbers),
    "insensitive": (st.builds(EpsilonInsensitiveLoss, epsilon=sizes), numbers),
    "pinball": (
        st.builds(SmoothedPinballLoss, below=sizes, above=sizes, epsilon=sizes, mu=sizes),
        numbers,
    ),
    "Poisson": (st.just(PoissonLoss()), st.floats(0.0, 1e3)),
    "gamma": (st.just(GammaLoss()), st.floats(1e-3, 1e3)),
    "Poisson, identity": (st.just(PoissonIdentityLoss()), st.floats(1e-3, 1e3)),
    "Poisson, root": (st.just(PoissonSqrtLoss()), st.floats(1e-3, 1e3) | st.just(0.0)),
    "gamma, inverse": (st.just(GammaInverseLoss()), st.floats(1e-3, 1e3)),
    "inverse Gaussian": (st.just(InverseGaussianLoss()), st.floats(1e-3, 1e3)),
    "expectile": (st.builds(ExpectileLoss, tau=levels), numbers),
    "negative binomial": (
        st.builds(NegativeBinomialLoss, theta=st.floats(1e-3, 1e6)),
        st.floats(0.0, 1e3),
    ),
    "Tweedie": (
        st.builds(TweedieLoss, power=st.floats(1.01, 1.99)),
        st.floats(1e-3, 1e3) | st.just(0.0),
    ),
}


def one(value: float) -> np.ndarray:
    return np.array([value])


@pytest.mark.parametrize("family", SCALAR)
def test_conjugate_pairs(family: str) -> None:
    losses, targets = SCALAR[family]

    @given(losses, targets, numbers, numbers, numbers)
    def law(loss: Loss, target: float, at: float, other: float, dual: float) -> None:
        assert isinstance(loss, IntervalConjugable)
        y, u, v = one(target), one(at), one(other)
        value, slope = loss.value(u, y), loss.derivative(u, y)
        ahead = loss.value(v, y)
        size = 1.0 + abs(value) + abs(ahead) + abs(slope * u) + abs(slope * v)
        assert np.all(ahead >= value + slope * (v - u) - 1e-11 * size)  # convex, slope right

        conjugate = loss.conjugate(slope, y)
        size = 1.0 + abs(value) + abs(conjugate) + abs(slope * u) + abs(slope * y)
        assert np.all(abs(value + conjugate - slope * u) <= 1e-11 * size)

        a = loss.project_dual(one(dual), y)
        lower, upper = loss.dual_interval(y)
        assert np.all((lower <= a) & (a <= upper))
        conjugate = loss.conjugate(a, y)
        assert np.all(np.isfinite(conjugate))
        size = 1.0 + abs(value) + abs(conjugate) + abs(a * u) + abs(a * y)
        assert np.all(value + conjugate >= a * u - 1e-11 * size)
        for inside, beyond in ((lower, lower - 1e-3), (upper, upper + 1e-3)):
            if np.all(np.isfinite(inside)):
                assert np.all(np.isfinite(loss.conjugate(inside, y)))
                assert np.all(np.isposinf(loss.conjugate(beyond, y)))

        assert loss.infimum(y, np.ones(1)) <= float(value[0]) + 1e-11 * float(size[0])
        assert loss.infimum(y, np.ones(1)) == pytest.approx(
            -float(loss.conjugate(np.zeros(1), y)[0]), rel=1e-12, abs=1e-12
        )
        if isinstance(loss, Curved):
            low, high = loss.curvature(y)
            h = loss.second_derivative(u, y)
            assert np.all((low <= h) & (h <= high))
            change = (loss.derivative(v, y) - slope) * (v - u)
            assert np.all(change >= low * (v - u) ** 2 * (1 - 1e-9) - 1e-9)
            if high < np.inf:
                assert np.all(change <= high * (v - u) ** 2 * (1 + 1e-9) + 1e-9)

    law()


@given(
    st.one_of(
        st.just(AbsoluteLoss()),
        st.builds(QuantileLoss, tau=levels),
        st.builds(EpsilonInsensitiveLoss, epsilon=sizes),
        st.just(HingeLoss()),
    ),
    signs,
    numbers,
    sizes,
    sizes,
)
def test_smoothing_is_monotone_and_bounded(
    loss: Loss, target: float, at: float, mu: float, nu: float
) -> None:
    assert isinstance(loss, Smoothable)
    u, y = one(at), one(target)
    mu, nu = min(mu, nu), max(mu, nu)
    exact = loss.value(u, y)
    finer, coarser = loss.smoothed(mu).value(u, y), loss.smoothed(nu).value(u, y)
    rounding = 1e-12 * (1.0 + exact)
    assert np.all(coarser <= finer + rounding)
    assert np.all(finer <= exact + rounding)
    assert np.all(exact - finer <= loss.smoothing_error(mu) + rounding)


@given(st.lists(st.lists(numbers, min_size=3, max_size=3), min_size=1, max_size=5), st.data())
def test_multinomial_pair(rows: list[list[float]], data: st.DataObject) -> None:
    loss: Loss = MultinomialLoss()
    assert isinstance(loss, Conjugable)
    u = np.array(rows)
    y = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows))))
    target = y.astype(np.float64)
    value, slope = loss.value(u, target), loss.derivative(u, target)
    np.testing.assert_allclose(slope.sum(axis=1), 0.0, atol=1e-15)
    pairing = np.einsum("ij,ij->i", slope, u)
    np.testing.assert_allclose(value + loss.conjugate(slope, target), pairing, atol=1e-9)

    a = loss.project_dual(u, target)
    s = a.copy()
    s[np.arange(len(rows)), y] += 1.0
    assert np.all(s >= 0.0)
    np.testing.assert_allclose(s.sum(axis=1), 1.0, atol=1e-14)
    # The simplex has its vertices: optimality of a projection need be asked of them alone.
    wanted = u.copy()
    wanted[np.arange(len(rows)), y] += 1.0
    out = wanted - s
    for vertex in np.eye(3):
        assert np.all(np.einsum("ij,ij->i", out, vertex - s) <= 1e-9)
