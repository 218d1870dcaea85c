"""What ``docs/explanation/errata.md`` says of the papers, where no other test shows it."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

from benchmarks.algorithms.instances import replacement_trap

ROOT = Path(__file__).parents[2]


def test_iterations_of_grahtp_corollary_3():
    """A distance of 1, a smallest coefficient of 0.1: half of it is to be reached."""
    for mu, enough in ((0.5, True), (0.56, True), (0.9, False), (0.99, False)):
        printed = math.ceil(math.log(2.0 / 0.1) / mu)
        right = math.ceil(math.log(2.0 / 0.1) / math.log(1.0 / mu))
        assert (mu**printed <= 0.05) == enough
        assert mu**right <= 0.05 < mu ** (right - 1)


def test_products_of_labels_and_features_have_a_mean():
    """E v u = E u tanh(u w) is not zero, and exp(zeta v u) then exceeds exp(sigma^2 zeta^2 / 2)."""
    u, weights = np.polynomial.hermite_e.hermegauss(60)
    weights /= weights.sum()
    mean = weights @ (u * np.tanh(u))
    assert mean > 0.5
    for sigma in (1.0, 2.0):
        zeta = mean / sigma**2  # where the slopes at zero differ most
        plus = expit(2.0 * u)  # P(v = 1 | u) for w = 1
        moment = weights @ (plus * np.exp(zeta * u) + (1.0 - plus) * np.exp(-zeta * u))
        assert moment > math.exp(0.5 * (sigma * zeta) ** 2)


def test_the_curvature_of_a_mean_of_logistic_losses():
    rng = np.random.default_rng(0)
    U, lam = rng.standard_normal((6, 200)), 0.1  # p x n, as printed
    hessian = U @ U.T / 200.0 + lam * np.eye(6)  # at zero, where Lambda is the identity
    low, *_, high = np.linalg.eigvalsh(hessian)
    least, *_, most = np.linalg.eigvalsh(U @ U.T)
    assert most + lam > 100.0 * high
    assert least + lam > 100.0 * low, "no lower bound"
    assert (least / 200.0 + lam, most / 200.0 + lam) == pytest.approx((low, high))


def test_bounds_on_eigenvalues_take_the_order_of_the_matrix():
    """The minimiser has tr(S X) = p, so that its largest eigenvalue is at most (p - alpha tr S)/xi
    for S + xi I; with one sample the printed bound cuts it off."""
    rng = np.random.default_rng(1)
    n, p, xi = 1, 40, 1e-2
    X = rng.standard_normal((n, p))
    S = X.T @ X / n
    best = np.linalg.inv(S + xi * np.eye(p))  # minimises -log det + <S + xi I, .>
    top = np.linalg.eigvalsh(best)[-1]
    norm, trace = np.linalg.norm(S, 2), np.trace(S)

    def beta(order):
        return (order - trace / (norm + order * xi)) / xi

    assert beta(n) < top < beta(p)


def test_the_target_of_the_instance_for_ompr():
    s, kappa, delta = 2, 4, 0.01
    A, b, _, _ = replacement_trap(s, kappa, delta)
    first = np.argsort(-b)[:s]
    values = {}
    for name, size in (("printed", 1.0 - 4.0 * delta), ("right", math.sqrt(1.0 - 4.0 * delta))):
        x = np.zeros(A.shape[1])
        x[first] = kappa * size
        values[name] = 0.5 * np.sum((A @ x - b) ** 2)
    assert values["right"] == pytest.approx(s * kappa**2 * (1.0 - delta))
    assert values["printed"] > values["right"] * (1.0 + 1e-4)


def test_the_tests_that_the_page_names_exist():
    page = (ROOT / "docs" / "explanation" / "errata.md").read_text(encoding="utf-8")
    named = re.findall(r"(test_\w+)\.py::(test_\w+)", page)
    assert len(named) >= 10
    sources = {path.stem: path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py")}
    for module, name in named:
        assert f"def {name}(" in sources[module], f"{module}.py has no {name}"
