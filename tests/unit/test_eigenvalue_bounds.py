"""Bounds on eigenvalues beside any loss: all supports with Clarabel, and forged slopes."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import Claim
from sparsemodel.certificates.arithmetic.limits import SpectrumLimit
from sparsemodel.certificates.files.packing import pack
from sparsemodel.checker.__main__ import main
from sparsemodel.checker.files import array
from sparsemodel.interfaces import Spectrum

P = 3
UPPER = list(zip(*np.triu_indices(P), strict=True))
S = np.array([[1.0, 0.9, -0.7], [0.9, 0.2, 0.8], [-0.7, 0.8, -0.6]])
INF = np.inf


def matrix() -> sm.Variable:
    return sm.Variable((P, P), symmetric=True, name="W")


def least(k: int, low: float, high: float, free: bool) -> float:
    """Return the least squared distance with k entries of the triangle (beside the diagonal)."""
    counted = [e for e in UPPER if not free or e[0] != e[1]]
    found = []
    for on in combinations(counted, min(k, len(counted))):
        V = cp.Variable((P, P), symmetric=True)
        limits = [V[e] == 0 for e in counted if e not in on]
        limits += [V >> low * np.eye(P)] if low > -INF else []
        limits += [V << high * np.eye(P)] if high < INF else []
        problem = cp.Problem(cp.Minimize(cp.sum_squares(V - S)), limits)
        found.append(problem.solve(solver=cp.CLARABEL))
    return float(min(found))


@pytest.mark.parametrize("scale", [1.0, pytest.param(1e-4, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("k", "low", "high", "free"),
    [
        (1, 0.0, INF, True),
        (2, 0.3, INF, True),
        (1, -INF, 0.7, True),
        (4, 0.0, 1.2, False),
        (5, 0.2, INF, False),
        (3, 0.5, 0.5, True),
    ],
)
def test_the_nearest_matrix_is_that_of_all_supports(k, low, high, free, scale, tmp_path: Path):
    W, limits = matrix(), []
    if free:
        limits += [sm.card(sm.offdiag(W)) <= 2 * k]
    else:  # entries of the triangle: groups of two where there are two
        limits += [sm.card(W[0, :]) + sm.card(W[1, 1:]) + sm.card(W[2, 2:]) <= k]
    limits += [W >> low * scale] if low > -INF else []
    limits += [W << high * scale] if high < INF else []
    problem = sm.Problem(sm.minimize(sm.norm(W - scale * S) ** 2), *limits)
    solution = problem.solve()
    assert solution.value / scale**2 == pytest.approx(least(k, low, high, free), rel=1e-6)
    values = np.linalg.eigvalsh(W.value) / scale
    assert low - 1e-14 <= values[0] <= values[-1] <= high + 1e-14
    proof = problem.prove()
    assert proof.claim is Claim.OPTIMAL
    E = np.zeros((P * P, len(UPPER)))
    for place, (i, j) in enumerate(UPPER):
        E[[i * P + j, j * P + i], place] = 1.0
    np.savez(tmp_path / "data.npz", A=E, b=(scale * S).ravel())
    path = proof.save(tmp_path / "proof.json")
    assert main([str(path), str(tmp_path / "data.npz")]) == 0


def test_slopes_of_the_wrong_sign_prove_nothing(tmp_path: Path) -> None:
    W = matrix()
    problem = sm.Problem(sm.minimize(sm.norm(W - S) ** 2), sm.card(sm.offdiag(W)) <= 4, W >> 0.1)
    problem.solve()
    path = problem.certify().save(tmp_path / "proof.json")
    E = np.zeros((P * P, len(UPPER)))
    for place, (i, j) in enumerate(UPPER):
        E[[i * P + j, j * P + i], place] = 1.0
    np.savez(tmp_path / "data.npz", A=E, b=S.ravel())
    assert main([str(path), str(tmp_path / "data.npz")]) == 0
    body = json.loads(path.read_text())
    held = body["witness"]["multipliers"]
    forged = json.dumps(pack(-array(held["slopes"])))
    path.write_text(json.dumps(body).replace(json.dumps(held["slopes"]), forged))
    assert forged != json.dumps(held["slopes"])
    assert main([str(path), str(tmp_path / "data.npz")]) != 0


@pytest.mark.parametrize(("low", "high"), [(0.0, INF), (-INF, 0.5), (-0.4, 1.3), (0.7, 0.7)])
def test_ends_of_slopes_bound_every_matrix_within(low: float, high: float) -> None:
    rng, i, j = np.random.default_rng(1), *np.triu_indices(4)
    limit = SpectrumLimit(Spectrum(np.arange(10), low, high), 10)
    for _ in range(200):
        q = np.linalg.qr(rng.standard_normal((4, 4)))[0]
        Y = q * rng.standard_normal(4) * (rng.random(4) < 0.7) @ q.T
        y = np.where(i == j, 1.0, 2.0) * Y[i, j]
        b = limit.end(y)
        values = np.linalg.eigvalsh(Y)
        one_sided = (np.isinf(high), values[-1]), (np.isinf(low), -values[0])
        if any(open_end and beyond > 1e-12 for open_end, beyond in one_sided):
            assert np.all(np.isinf(b))
            continue
        ends = [
            end if np.isfinite(end) else other + 9.0 * sign
            for end, other, sign in ((low, high, -1.0), (high, low, 1.0))
        ]
        u = np.linalg.eigh(Y)[1]
        worst = np.where(np.linalg.eigvalsh(Y) > 0.0, ends[1], ends[0])
        for at in (worst, rng.uniform(*ends, 4)):
            X = u * at @ u.T
            if np.all(np.isfinite(b)):
                assert y @ b >= y @ X[i, j] - 1e-13 * np.abs(y) @ np.abs(X[i, j])


@pytest.mark.parametrize(
    "declared",
    [
        lambda V: [cp.lambda_min(V) >= 0.2],
        lambda V: [cp.lambda_max(-V) <= -0.2],
        lambda V: [V >> 0.2 * np.eye(P), cp.lambda_max(V) <= 50.0],
    ],
)
def test_bounds_in_the_words_of_cvxpy(declared) -> None:
    V, W = cp.Variable((P, P), symmetric=True), matrix()
    found = sm.Problem(
        cp.Minimize(cp.sum_squares(V - S)), [sm.card(sm.offdiag(V)) <= 2, *declared(V)]
    ).solve()
    own = sm.Problem(sm.minimize(sm.norm(W - S) ** 2), sm.card(sm.offdiag(W)) <= 2, W >> 0.2)
    assert found.value == pytest.approx(own.solve().value, rel=1e-9)


def test_a_matrix_declared_definite_is_definite() -> None:
    V, k = cp.Variable((P, P), PSD=True), sm.Parameter(name="k")
    problem = sm.Problem(cp.Minimize(cp.sum_squares(V - S)), [sm.card(sm.offdiag(V)) <= 2 * k])
    for point in problem.path(k, [0, 1, 2]):
        best = least(point.k, 0.0, INF, True)
        assert best * (1.0 - 1e-6) <= point.value <= 1.05 * best  # a path is searched less
    k.value = 1
    assert "eigenvalues" in str(problem.explain())


def test_what_no_matrix_satisfies_is_said() -> None:
    W = matrix()
    goal = sm.minimize(sm.norm(W - S) ** 2)
    with pytest.raises(sm.InfeasibleError, match="eigenvalues at least 2 and at most 1"):
        sm.Problem(goal, W >> 2.0, W << 1.0)
    with pytest.raises(sm.InfeasibleError, match="keep 3 entries away from zero"):
        sm.Problem(goal, W >> 0.1, sm.card(W) <= 2)
