"""What weights mean: standard errors and criteria beside those of statsmodels and of R.

Numbers were written by statsmodels 0.15 (``WLS``; ``GLM`` with ``var_weights`` and
``freq_weights``; ``cov_type="HC0"`` times ``n / (n - 1)``) for the data below.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

import sparsemodel as sm
from sparsemodel.losses import GammaLoss, InverseGaussianLoss
from sparsemodel.selection.weights import Weighting, independent_terms
from sparsemodel.sklearn import SparseLinearRegressionCV

RNG = np.random.default_rng(57)
N = 40
A = RNG.standard_normal((N, 2))
C = RNG.uniform(0.2, 3.0, N)
M = RNG.integers(0, 4, N).astype(float)
_SCORE = A @ [1.0, -0.5] + 0.3
AMOUNT = _SCORE + RNG.standard_normal(N) / np.sqrt(C)
BINARY = (_SCORE + RNG.logistic(size=N) > 0) * 1.0
COUNT = RNG.poisson(np.exp(0.6 * _SCORE)) * 1.0
POSITIVE = RNG.gamma(2.0, np.exp(0.5 * _SCORE) / 2.0)

LOSSES: dict[str, tuple[Any, Any]] = {
    "squared": (sm.squared_loss, AMOUNT),
    "logistic": (sm.logistic_loss, BINARY),
    "poisson": (sm.poisson_loss, COUNT),
    "gamma": (sm.gamma_loss, POSITIVE),
}


def path_of(kind: str, weights: Any, meaning: str, rows: Any = slice(None)) -> sm.Path:
    loss, y = LOSSES[kind]
    w, c = sm.Variable(2, name="w"), sm.Variable(name="c")
    term = loss(A[rows] @ w + c, y[rows], weights=weights, weights_are=meaning)
    return sm.Problem(sm.minimize(term), sm.card(w) <= 2).path([1, 2])


def errors_of(summary: Any) -> list[float]:
    return [estimate.standard_error for estimate in summary.estimates]


def scores(path: sm.Path, criterion: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return path.select(criterion).scores


# (loss, meaning): standard errors, BIC and AIC of one less those of both features
STATSMODELS: dict[tuple[str, str], tuple[list[float], float, float]] = {
    ("squared", "precision"): (
        [0.13293826, 0.15426287, 0.12749867],
        114.52059750142205 - 109.41795081589426,
        111.14283859319417 - 104.35131245355245,
    ),
    ("logistic", "precision"): (
        [0.30659862, 0.34239362, 0.28058192],
        83.19057251688555 - 86.81259508398203,
        79.81281360865768 - 81.74595672164023,
    ),
    ("poisson", "precision"): (
        [0.12826015, 0.12906382, 0.12692385],
        187.69497270772155 - 186.81683320056734,
        184.3172137994937 - 181.75019483822553,
    ),
    ("logistic", "frequency"): (
        [0.32571866, 0.38835885, 0.25708296],
        96.65271012024074 - 100.74485462876846,
        92.18449711104623 - 94.04253511497669,
    ),
    ("poisson", "frequency"): (
        [0.13044215, 0.1657692, 0.12441041],
        198.51564855704328 - 195.37574104584672,
        194.04743554784875 - 188.67342153205493,
    ),
}


@pytest.mark.parametrize(("kind", "meaning"), STATSMODELS)
def test_errors_and_criteria_are_those_of_statsmodels(kind: str, meaning: str) -> None:
    path = path_of(kind, C if meaning == "precision" else M, meaning)
    errors, bic, aic = STATSMODELS[kind, meaning]
    assert errors_of(path.at(2).summary()) == pytest.approx(errors, rel=1e-5)
    for criterion, gap in (("bic", bic), ("aic", aic)):
        ours = scores(path, criterion)
        assert ours[0] - ours[1] == pytest.approx(gap, abs=1e-5)


@pytest.mark.parametrize(
    ("meaning", "scale"),
    [("precision", 1.0262344502552943), ("frequency", 0.40169245293412537)],
)
def test_the_dispersion_of_gamma_losses_is_that_of_statsmodels(meaning: str, scale: float) -> None:
    c = C if meaning == "precision" else M
    found = path_of("gamma", c, meaning).at(2)
    X = np.column_stack([A, np.ones(N)])
    rates = c * POSITIVE / found.predict(A)  # second derivatives as observed, not as expected
    errors = np.sqrt(scale * np.diag(np.linalg.inv(X.T @ (rates[:, None] * X))))
    assert errors_of(found.summary()) == pytest.approx(errors.tolist(), rel=1e-5)


@pytest.mark.parametrize(
    ("kind", "errors"),
    [
        ("squared", [0.12384565609403114, 0.14047301233785436, 0.11803259243741848]),
        ("logistic", [0.3641140948872186, 0.49420496667534985, 0.40075953656946167]),
    ],
)
def test_sampling_weights_have_the_errors_of_a_sandwich(kind: str, errors: list[float]) -> None:
    found = path_of(kind, C, "sampling").at(2).summary()
    assert errors_of(found) == pytest.approx(errors, rel=1e-5)
    assert found.n == pytest.approx(C.sum() ** 2 / np.sum(C**2))
    again = path_of(kind, 17.0 * C, "sampling").at(2).summary()
    assert again.bic == pytest.approx(found.bic)


def test_numbers_of_trials_have_the_errors_that_r_prints() -> None:
    """Ages of menarche (Venables and Ripley, Modern Applied Statistics with S, section 7.2)."""
    age = np.fromstring(
        "9.21 10.21 10.58 10.83 11.08 11.33 11.58 11.83 12.08 12.33 12.58 12.83 13.08 13.33 13.58 "
        "13.83 14.08 14.33 14.58 14.83 15.08 15.33 15.58 15.83 17.58",
        sep=" ",
    )
    total = np.fromstring(
        "376 200 93 120 90 88 105 111 100 93 100 108 99 106 105 117 98 97 120 102 122 111 94 114 "
        "1049",
        sep=" ",
    )
    yes = np.fromstring(
        "0 0 0 2 2 5 10 17 16 29 39 51 47 67 81 88 79 90 113 95 117 107 92 112 1049", sep=" "
    )
    w, c = sm.Variable(1, name="age"), sm.Variable(name="c")
    loss_of: Any = sm.logistic_loss
    loss = loss_of(
        np.tile(age, 2)[:, None] @ w + c,
        np.repeat([1.0, 0.0], age.size),
        weights=np.concatenate([yes, total - yes]),
        weights_are="frequency",
    )
    found = sm.Problem(sm.minimize(loss), sm.card(w) <= 1).solve().summary()
    assert found.n == 3918
    values = [(e.value, e.standard_error) for e in found.estimates]
    assert values[0] == pytest.approx((1.63197, 0.05895), abs=1e-5)
    assert values[1] == pytest.approx((-21.22639, 0.77068), abs=2e-5)


def test_precisions_scale_the_shape() -> None:
    """The likelihood of gamma and inverse Gaussian losses is that of the best shape, times w."""
    mu = np.exp(0.4 * _SCORE)
    copies = M

    def gamma(v: float) -> float:
        logs = stats.gamma.logpdf(POSITIVE, v * C, scale=mu / (v * C))
        return float(-2.0 * copies @ logs)

    def inverse(v: float) -> float:  # SciPy's has the mean mu / lambda
        logs = stats.invgauss.logpdf(POSITIVE, mu / (v * C), scale=v * C)
        return float(-2.0 * copies @ logs)

    total = C * copies
    cases: list[Any] = [
        (GammaLoss(), np.log(mu), gamma),
        (InverseGaussianLoss(), mu**-2.0, inverse),
    ]
    for loss, u, minus in cases:
        best = optimize.minimize_scalar(
            lambda t, minus=minus: minus(np.exp(t)), bounds=(-5, 8), method="bounded"
        ).fun
        mean = float(total @ loss.value(u, POSITIVE)) / total.sum()
        found = loss.minus_twice_log(mean, POSITIVE, C, copies)
        assert found == pytest.approx(best, rel=1e-6)


def test_frequencies_are_repeated_rows_to_everything() -> None:
    rows = np.repeat(np.arange(N), M.astype(int))
    for kind in LOSSES:
        weighted, copied = path_of(kind, M, "frequency"), path_of(kind, None, "precision", rows)
        for name in ("aic", "aicc", "bic", "ebic", "gic", "mbic"):
            one, two = (np.diff(scores(path, name)) for path in (weighted, copied))
            np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)
        first, second = (p.at(2).summary() for p in (weighted, copied))
        assert first.n == second.n == rows.size
        assert errors_of(first) == pytest.approx(errors_of(second), rel=1e-5)


def test_rows_of_weight_zero_are_not_there() -> None:
    some = C * (np.arange(N) % 3 > 0)
    for kind in LOSSES:
        for meaning in ("precision", "sampling"):
            all_rows = path_of(kind, some, meaning)
            fewer = path_of(kind, some[some > 0], meaning, some > 0)
            np.testing.assert_allclose(scores(all_rows, "bic"), scores(fewer, "bic"), rtol=1e-6)


def test_a_scale_of_the_precisions_is_a_scale_of_the_variance() -> None:
    one, two = (path_of("squared", s * C, "precision").at(2).summary() for s in (1.0, 50.0))
    for a, b in zip(one.estimates, two.estimates, strict=True):
        assert a.standard_error == pytest.approx(b.standard_error, rel=1e-8)
    assert one.n == two.n == N
    assert two.bic is not None
    assert two.bic - (one.bic or 0.0) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("ties", ["breslow", pytest.param("efron", id="efron without ties")])
@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_weighted_cox_is_cox_of_repeated_rows(ties: str, reduction: Any) -> None:
    """Value, AIC and BIC were off by the events times log(n / sum of weights)."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = np.column_stack([rng.exponential(np.exp(-X[:, 0])), rng.random(60) < 0.7]).astype(float)
    c = rng.integers(0, 4, 60) if ties == "breslow" else (rng.random(60) < 0.8).astype(int)
    w = sm.Variable(3)

    def solved(X: Any, y: Any, **options: Any) -> Any:
        loss = sm.cox_loss(X @ w, y, ties=ties, **options)
        solution = sm.Problem(sm.minimize(loss), sm.card(w) <= 2).solve()
        return (
            solution,
            solution.summary(),
            loss.value,
            sm.Problem(sm.minimize(loss), sm.card(w) <= 2).certify(),
        )

    rows = np.repeat(np.arange(60), c)
    one = solved(X, y, weights=c, weights_are="frequency", reduction=reduction)
    two = solved(X[rows], y[rows], reduction=reduction)
    share = rows.size / 60 if reduction == "mean" else 1.0
    assert one[0].value == pytest.approx(share * two[0].value, rel=1e-9)
    assert one[2] == pytest.approx(share * two[2], rel=1e-6)
    assert one[3].value == pytest.approx(share * two[3].value, rel=1e-6)
    assert (one[1].n, one[1].mean_loss) == pytest.approx((two[1].n, two[1].mean_loss))
    for name in ("aic", "bic", "ebic"):
        assert getattr(one[1], name) == pytest.approx(getattr(two[1], name), rel=1e-8)


def test_spikes_are_found_by_their_precisions() -> None:
    """Cross-validation chose no spike where the held-out loss fell from 139 to 2.3."""
    rng = np.random.default_rng(5)
    g = np.arange(100)
    X = np.exp(-0.5 * ((g[:, None] - g[None, :]) / 3.0) ** 2)
    truth = np.zeros(100)
    truth[np.sort(rng.choice(100, 8, replace=False))] = rng.uniform(20, 300, 8)
    y = rng.poisson(X @ truth).astype(float)
    w, k = sm.Variable(100, nonneg=True), sm.Parameter(integer=True)
    loss = sm.squared_loss(X @ w, y, weights=1 / (y + 1))
    path = sm.Problem(sm.minimize(loss), sm.card(w) <= k).path(k, range(10))
    own = 100 * np.log(path.objective) + path.k * np.log(100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert path.select("bic").k == path.k[np.argmin(own)] == 8
        assert path.cross_validate(seed=0).k > 0


def test_terms_of_a_test_are_observations() -> None:
    s, c = np.array([1.0, -2.0, 0.5]), np.array([2.0, 1.0, 0.0])
    for meaning in ("precision", "sampling"):
        values, weights = independent_terms(s, c, meaning)
        assert np.average(values, weights=weights) == pytest.approx(np.average(s, weights=c))
        assert weights.tolist() == [1.0, 1.0, 0.0]
    assert independent_terms(s, c, "frequency")[1].tolist() == c.tolist()


@pytest.mark.filterwarnings("ignore:k = 0 is chosen although")
@pytest.mark.parametrize("meaning", ["precision", "sampling"])
def test_noise_selects_nothing_whatever_it_weighs(meaning: str) -> None:
    """The share of draws in which k = 0 is left is that of a test at 5 %."""
    wrong = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, c = rng.standard_normal((60, 6)), np.exp(rng.standard_normal(60))
        y = rng.standard_normal(60) / np.sqrt(c)
        model = SparseLinearRegressionCV(range(3), ridges=0.01, random_state=0, weights_are=meaning)
        wrong += model.fit(X, y, sample_weight=c).k_ > 0
    assert wrong <= 4  # a binomial of 20 and 0.05 is larger once in 400


def test_one_place_says_what_n_is() -> None:
    c = np.array([3.0, 0.5, 0.0])
    assert Weighting.of(c, "precision").n == 2.0
    assert Weighting.of(c, "frequency").n == 3.5
    assert Weighting.of(c, "sampling").n == pytest.approx(3.5**2 / 9.25)


def test_what_weights_are_is_asked_for_by_name() -> None:
    w = sm.Variable(2, name="w")
    loss: Any = sm.squared_loss
    with pytest.raises(sm.ModelError, match='weights_are must be "precision"'):
        loss(A @ w, AMOUNT, weights=C, weights_are="inverse")
    with pytest.raises(sm.DataTypeError, match='weights_are="frequency"'):
        loss(A @ w, AMOUNT, freq_weights=C)
    with pytest.raises(ValueError, match="weights_are must be"):
        SparseLinearRegressionCV(weights_are="x").fit(A, AMOUNT)
