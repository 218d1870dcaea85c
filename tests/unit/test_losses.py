"""Losses as values: what they accept, what they refuse, and numbers computed another way."""

from __future__ import annotations

import re

import numpy as np
import pytest

from sparsemodel.interfaces import Conjugable, DataError, DataFit, DataTypeError, Loss, Smoothable
from sparsemodel.losses import (
    AbsoluteLoss,
    CoxLoss,
    EpsilonInsensitiveLoss,
    ExpectileLoss,
    GammaLoss,
    HingeLoss,
    HuberLoss,
    LogisticLoss,
    MultinomialLoss,
    NegativeBinomialLoss,
    PoissonLoss,
    QuantileLoss,
    SmoothedHingeLoss,
    SmoothedPinballLoss,
    SquaredHingeLoss,
    SquaredLoss,
    TweedieLoss,
    builtin_losses,
)

CLASSIFIERS = [LogisticLoss(), HingeLoss(), SmoothedHingeLoss(), SquaredHingeLoss()]


def array(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)


# ---- targets


@pytest.mark.parametrize("loss", CLASSIFIERS, ids=repr)
def test_labels_are_recoded(loss: DataFit) -> None:
    np.testing.assert_array_equal(loss.check_target(array(0, 1, 1), "b"), [-1, 1, 1])
    np.testing.assert_array_equal(loss.check_target(array(-1, 1, 1), "b"), [-1, 1, 1])
    np.testing.assert_array_equal(loss.check_target(array(0, 0), "b"), [-1, -1])
    np.testing.assert_array_equal(loss.check_target(array(1, 1), "b"), [1, 1])


def test_labels_already_coded_are_not_copied() -> None:
    y = array(-1, 1)
    assert LogisticLoss().check_target(y, "b") is y


@pytest.mark.parametrize(
    ("loss", "target", "words"),
    [
        (LogisticLoss(), array(1, 2), "0/1 or -1/1.*found 2.*1, 2.*recode"),
        (LogisticLoss(), array(-1, 0, 1), "found 3.*-1, 0, 1.*multinomial_loss"),
        (HingeLoss(), np.arange(9.0), "found 9.*0, 1, 2, 3, 4, 5, [.]{3}"),
        (HingeLoss(), np.ones((3, 1)), r"one-dimensional.*\(3, 1\).*ravel"),
        (HuberLoss(), np.ones((3, 2)), r"one-dimensional.*\(3, 2\)"),
        (SquaredLoss(), np.ones((3, 2, 1)), r"\(3, 2, 1\)"),
        (PoissonLoss(), array(1, 0, -2, -1), "counts.*2 entries.*index 2.*-2"),
        (NegativeBinomialLoss(), array(1, -1), "counts.*1 entry at index 1"),
        (TweedieLoss(), array(1, -1), "tweedie_loss needs .*1 entry at index 1"),
        (GammaLoss(), array(1, 0), "positive.*1 entry at index 1 .*poisson_loss"),
        (MultinomialLoss(), array(0, 1.5), "0, 1, .*, m-1.*index 1.*1.5.*np.unique"),
        (MultinomialLoss(), array(0, -1), "index 1"),
        (MultinomialLoss(), array(0, 1, 3), "up to 3, but class 2 never occurs"),
        (MultinomialLoss(), array(1, 2), "class 0 never occurs"),
        (MultinomialLoss(), array(0, 0), "at least two classes"),
        (MultinomialLoss(classes=3), array(0, 3), "made for 3 classes.*index 1"),
        (CoxLoss(), array(1, 2), r"two columns, time and event.*\(2,\)"),
        (CoxLoss(), np.array([[1.0, 2.0]]), "1 .event. or 0 .censored..*index 0 .value 2"),
        (CoxLoss(), np.array([[1.0, 5.0], [0.0, 3.0]]), "swapped"),
        (CoxLoss(), np.array([[-1.0, 1.0]]), "times >= 0"),
        (CoxLoss(), np.array([[1.0, 0.0]]), "at least one event"),
    ],
)
def test_unusable_targets_are_refused_in_words(
    loss: DataFit, target: np.ndarray, words: str
) -> None:
    with pytest.raises(DataError, match=words) as caught:
        loss.check_target(target, "argument b of loss 2")
    assert re.match("argument b of loss 2: ", str(caught.value))
    assert loss.name in str(caught.value)


def test_outputs_are_the_columns_of_a_prediction() -> None:
    assert SquaredLoss().outputs(np.ones(4)) == 1
    assert SquaredLoss().outputs(np.ones((4, 3))) == 3
    assert MultinomialLoss().outputs(array(0, 2, 1)) == 3
    assert MultinomialLoss(classes=5).outputs(array(0, 2, 1)) == 5
    assert CoxLoss().outputs(np.ones((4, 2))) == 1


def test_a_column_is_a_vector_target_of_the_squared_loss() -> None:
    column = np.ones((4, 1))
    target = SquaredLoss().check_target(column, "b")
    assert target.shape == (4,)
    assert SquaredLoss().outputs(target) == 1


# ---- hyper-parameters


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: HuberLoss(delta=0), "huber_loss: delta must be positive, got 0.*absolute_loss"),
        (lambda: HuberLoss(delta=np.nan), "finite"),
        (lambda: SmoothedHingeLoss(gamma=-1.0), "gamma must be positive.*hinge_loss"),
        (lambda: QuantileLoss(tau=1.0), "strictly between 0 and 1"),
        (lambda: QuantileLoss(tau=90), "strictly between 0 and 1, got 90.*pass 0.9"),
        (lambda: EpsilonInsensitiveLoss(epsilon=-0.1), "must not be negative"),
        (lambda: SmoothedPinballLoss(below=0.0), "below must be positive"),
        (lambda: SmoothedPinballLoss(mu=np.inf), "mu must be finite"),
        (lambda: MultinomialLoss(classes=1), "at least 2"),
        (lambda: HingeLoss().smoothed(0.0), "hinge_loss.smoothed: mu must be positive"),
        (lambda: AbsoluteLoss().smoothed(-1.0), "mu must be positive"),
    ],
)
def test_impossible_parameters_are_refused_in_words(make: object, words: str) -> None:
    with pytest.raises(DataError, match=words):
        make()  # type: ignore[operator]


@pytest.mark.parametrize("value", ["1", None, True, [1.0], 1j], ids=repr)
def test_parameters_of_a_wrong_type_are_refused(value: object) -> None:
    with pytest.raises(DataTypeError, match="delta must be a real number, not"):
        HuberLoss(delta=value)  # type: ignore[arg-type]
    if value is not None:
        with pytest.raises(DataTypeError, match="classes must be a whole number or None"):
            MultinomialLoss(classes=value)  # type: ignore[arg-type]


def test_parameters_may_be_numpy_scalars() -> None:
    assert HuberLoss(delta=np.float32(2.0)) == HuberLoss(delta=np.int64(2)) == HuberLoss(delta=2.0)
    assert type(HuberLoss(delta=np.int64(2)).delta) is float
    assert MultinomialLoss(classes=np.int32(3)) == MultinomialLoss(classes=3)


# ---- numbers


@pytest.mark.parametrize(
    ("loss", "y", "u", "value"),
    [
        (SquaredLoss(), 1.0, 4.0, 4.5),
        (LogisticLoss(), -1.0, 2.0, np.log1p(np.exp(2.0))),
        (HingeLoss(), -1.0, 2.0, 3.0),
        (SmoothedHingeLoss(gamma=0.5), 1.0, 0.75, 0.0625),
        (SmoothedHingeLoss(gamma=0.5), 1.0, -1.0, 1.75),
        (SquaredHingeLoss(), -1.0, 2.0, 4.5),
        (HuberLoss(delta=2.0), 0.0, 5.0, 8.0),
        (AbsoluteLoss(), 1.0, -2.0, 3.0),
        (QuantileLoss(tau=0.25), 1.0, -1.0, 0.5),
        (QuantileLoss(tau=0.25), 1.0, 3.0, 1.5),
        (EpsilonInsensitiveLoss(epsilon=0.5), 1.0, -2.0, 2.5),
        (PoissonLoss(), 3.0, 1.0, np.e - 3.0),
        (GammaLoss(), 3.0, 1.0, 3.0 / np.e + 1.0),
        (ExpectileLoss(tau=0.25), 1.0, -1.0, 1.0),
        (ExpectileLoss(tau=0.25), 1.0, 3.0, 3.0),
        (NegativeBinomialLoss(theta=2.0), 3.0, 1.0, 5.0 * np.log(1.0 + np.e / 2.0) - 3.0),
        (TweedieLoss(power=1.25), 3.0, 1.0, 12.0 * np.exp(-0.25) + np.exp(0.75) / 0.75),
        (SmoothedPinballLoss(below=2.0, above=1.0, epsilon=0.5, mu=0.5), 0.0, 1.0, 0.25),
        (SmoothedPinballLoss(below=2.0, above=1.0, epsilon=0.5, mu=0.5), 0.0, -3.0, 4.0),
    ],
    ids=lambda v: repr(v),
)
def test_values_of_single_observations(loss: Loss, y: float, u: float, value: float) -> None:
    np.testing.assert_allclose(loss.value(array(u), array(y)), value, rtol=1e-14)


@pytest.mark.parametrize(
    "loss",
    [
        loss
        for loss in (*builtin_losses(), QuantileLoss(tau=0.8), ExpectileLoss(tau=0.8))
        if isinstance(loss, Loss) and not isinstance(loss, MultinomialLoss)
    ],
    ids=repr,
)
def test_conjugates_are_the_supremum_over_a_grid(loss: Loss) -> None:
    """Brute force, from values alone: it knows no derivative and no formula."""
    assert isinstance(loss, Conjugable)
    y = loss.check_target(array(0, 1, 1, 0), "y") if loss in CLASSIFIERS else array(0.5, 1, 2, 3)
    u = np.union1d(np.linspace(-40.0, 40.0, 64001), np.geomspace(1e-3, 40.0, 4001))
    for target in y:
        column = np.full(u.size, target)
        values = loss.value(u, column)
        for a in (-0.9, -0.45, -0.1, 0.1, 0.3, 0.9, 1.7, -2.5):
            best = float(np.max(a * u - values))
            given = float(loss.conjugate(array(a), array(target))[0])
            if given < np.inf:
                assert best == pytest.approx(given, abs=2e-5)
            else:
                # Outside the domain the supremum grows without end as the grid does.
                inner = np.abs(u) <= 20.0
                assert best > float(np.max(a * u[inner] - values[inner])) + 0.4


@pytest.mark.parametrize(
    ("loss", "mu"),
    [(loss, mu) for loss in builtin_losses() if isinstance(loss, Smoothable) for mu in (0.01, 0.5)],
    ids=repr,
)
def test_the_bound_on_the_smoothing_error_is_attained(loss: Loss, mu: float) -> None:
    assert isinstance(loss, Smoothable)
    y = np.ones(4001)
    u = np.linspace(-10.0, 10.0, 4001)
    drop = loss.value(u, y) - loss.smoothed(mu).value(u, y)
    assert drop.min() >= -1e-14
    assert drop.max() == pytest.approx(loss.smoothing_error(mu), rel=1e-9)
    assert loss.smoothed(mu).curvature(np.zeros(1)) == (0.0, pytest.approx(1.0 / mu))


def test_smoothing_keeps_the_dual_domain() -> None:
    y = array(-1, 1, 1)
    for loss in builtin_losses():
        if isinstance(loss, Smoothable):
            smooth = loss.smoothed(0.3)
            for left, right in zip(loss.dual_interval(y), smooth.dual_interval(y), strict=True):
                np.testing.assert_array_equal(left, right)


def test_weighted_sums_have_the_stated_infimum() -> None:
    y, c = array(0, 1, 4.5), array(1, 2, 3)
    with np.errstate(divide="ignore"):
        u = np.maximum(np.log(y), -60.0)
    poisson = PoissonLoss()
    assert poisson.total(u, y, c) == pytest.approx(poisson.infimum(y, c), rel=1e-14)
    gamma, y = GammaLoss(), array(0.1, 1, 4.5)
    assert gamma.total(np.log(y), y, c) == pytest.approx(gamma.infimum(y, c), rel=1e-14)
    for loss in (TweedieLoss(power=1.2), NegativeBinomialLoss(theta=3.0)):
        assert loss.total(np.log(y), y, c) == pytest.approx(loss.infimum(y, c), rel=1e-14)


def test_stated_sizes_cover_what_cancels_and_what_is_linearised() -> None:
    loss, a = ExpectileLoss(tau=0.8), array(3.0, -3.0)
    y = -0.25 * a / np.array([0.2, 0.8])
    size = loss.conjugate_magnitude(a, y, loss.conjugate(a, y))
    np.testing.assert_allclose(loss.conjugate(a, y), 0.0, atol=1e-14)
    assert np.all(size >= np.abs(a * y))
    tweedie, far, one = TweedieLoss(power=1.5), array(-1000.0, 1000.0), array(1, 1)
    assert np.all(np.isinf(tweedie.value_magnitude(far, one, tweedie.value(far, one))))


# ---- multinomial


def test_two_classes_are_the_logistic_loss(rng: np.random.Generator) -> None:
    y, u = rng.integers(0, 2, 30).astype(float), 3.0 * rng.normal(size=30)
    rows = np.stack([np.zeros(30), u], axis=1)
    signs = 2.0 * y - 1.0
    np.testing.assert_allclose(
        MultinomialLoss().value(rows, y), LogisticLoss().value(u, signs), rtol=1e-13
    )
    np.testing.assert_allclose(
        MultinomialLoss().derivative(rows, y)[:, 1], LogisticLoss().derivative(u, signs), atol=1e-15
    )


def test_hessian_of_a_row_is_that_of_the_softmax(rng: np.random.Generator) -> None:
    u, v, c = rng.normal(size=(5, 3)), rng.normal(size=(5, 3)), rng.uniform(1, 2, 5)
    product = MultinomialLoss().hessian_product(u, np.zeros(5), c, v)
    for i in range(5):
        p = np.exp(u[i]) / np.exp(u[i]).sum()
        np.testing.assert_allclose(product[i], c[i] * (np.diag(p) - np.outer(p, p)) @ v[i])


def test_multinomial_conjugate_knows_its_domain() -> None:
    loss, y = MultinomialLoss(), array(0, 0, 0, 0)
    a = np.array([[-0.5, 0.5], [0.0, 0.0], [-0.5, 0.6], [0.1, -0.1]])
    np.testing.assert_allclose(loss.conjugate(a, y), [-np.log(2.0), 0.0, np.inf, np.inf])


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e8, 1e15])
def test_the_projection_on_the_simplex_survives_scale(
    size: float, rng: np.random.Generator
) -> None:
    loss, y = MultinomialLoss(), rng.integers(0, 7, 50).astype(float)
    a = loss.project_dual(size * rng.normal(size=(50, 7)), y)
    assert np.all(np.isfinite(loss.conjugate(a, y)))


# ---- what continues where floating point ends


def test_poisson_and_gamma_are_exact_where_it_matters_and_finite_beyond() -> None:
    u = array(-745, -300, 0, 300, 299.9)
    np.testing.assert_allclose(PoissonLoss().value(u, np.zeros(5)), np.exp(u), rtol=1e-15)
    huge = array(301, 1e3, 1e5)
    gradient = PoissonLoss().derivative(huge, np.ones(3))
    assert np.all(np.isfinite(gradient**2))
    assert np.all(np.isfinite(PoissonLoss().value(huge, np.ones(3))))
    np.testing.assert_array_equal(
        GammaLoss().value(-huge, np.ones(3)), PoissonLoss().value(huge, np.ones(3))
    )


def test_families_of_losses_meet_at_their_ends(rng: np.random.Generator) -> None:
    """Asymmetric squares, negative binomial and Tweedie, at squared, Poisson and gamma."""
    u, y = rng.normal(size=40), rng.poisson(2.0, 40) + 1.0
    for near, limit, tol in (
        (ExpectileLoss(tau=0.5), SquaredLoss(), 1e-15),
        (NegativeBinomialLoss(theta=1e9), PoissonLoss(), 1e-7),
        (TweedieLoss(power=1.0 + 1e-9), PoissonLoss(), 1e-7),
        (TweedieLoss(power=2.0 - 1e-9), GammaLoss(), 1e-7),
    ):
        for method in ("derivative", "second_derivative"):
            found, expected = (getattr(loss, method)(u, y) for loss in (near, limit))
            np.testing.assert_allclose(found, expected, rtol=tol, atol=tol)


def test_logistic_loss_keeps_its_digits_far_out() -> None:
    u = array(40.0, 700.0)
    np.testing.assert_allclose(LogisticLoss().value(u, np.ones(2)), np.exp(-u), rtol=1e-13)
    np.testing.assert_allclose(LogisticLoss().derivative(u, np.ones(2)), -np.exp(-u), rtol=1e-13)
    np.testing.assert_allclose(LogisticLoss().second_derivative(u, np.ones(2)), np.exp(-u))
    np.testing.assert_allclose(LogisticLoss().second_derivative(-u, np.ones(2)), np.exp(-u))
