"""Modified GraHTP for precision matrices, Algorithm 2 of Yuan, Li and Zhang (2018)."""

from __future__ import annotations

import numpy as np
import pytest

from sparsemodel.interfaces import Context
from sparsemodel.interfaces.precision import SparsePrecision
from sparsemodel.numerics.precision import minimise_precision_on_support, precision_objective
from sparsemodel_backends.precision import (
    PrecisionFBS,
    PrecisionFoBa,
    PrecisionGraHTP,
    PrecisionGraSP,
)


def covariance(seed, p=7, n=30, mixing=0.5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) @ (np.eye(p) + mixing * rng.standard_normal((p, p)))
    X *= rng.uniform(0.7, 1.4, p)
    return X.T @ X / n


def loss(S, omega):
    sign, logdet = np.linalg.slogdet(omega)
    return np.trace(S @ omega) - logdet if sign > 0 else np.inf


def minimise(S, mask, omega=None):
    """Damped Newton steps in the entries of ``mask``; the bounds do not bind here."""
    p = len(S)
    i, j = np.nonzero(np.triu(mask))
    basis = np.zeros((i.size, p, p))
    basis[np.arange(i.size), i, j] = basis[np.arange(i.size), j, i] = 1.0
    omega = np.diag(1.0 / np.diag(S)) if omega is None else omega
    for _ in range(200):
        W = np.linalg.inv(omega)
        g = np.einsum("kij,ij->k", basis, S - W)
        moved = np.einsum("ij,kjl,lm->kim", W, basis, W)
        d = -np.linalg.solve(np.einsum("kij,mij->km", basis, moved), g)
        t = 1.0
        direction = np.einsum("k,kij->ij", d, basis)
        # Below this slope the decrease is rounding, and full steps are safe.
        while g @ d < -1e-12 and loss(S, omega + t * direction) > loss(S, omega) + 0.1 * t * g @ d:
            t /= 2.0
        omega = omega + t * direction
        if np.abs(d).max() < 1e-13:
            break
    return omega


def test_the_minimiser_on_a_support_is_one():
    S = covariance(0)
    mask = np.eye(7, dtype=bool)
    mask[0, 1] = mask[1, 0] = mask[2, 5] = mask[5, 2] = True
    omega = minimise(S, mask)
    assert np.abs((S - np.linalg.inv(omega))[mask]).max() < 1e-10


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("eta", [0.05, 0.2, None])
def test_ten_iterates(seed, eta, same):
    S, k, p = covariance(seed), 6, 7
    alpha, beta = 0.05, 1e3
    form = SparsePrecision.build(S, k, alpha=alpha, beta=beta)
    options = {} if eta is None else {"step_size": eta}
    backend, objective = PrecisionGraHTP.as_published(**options), precision_objective(form)
    context = Context(minimise_precision_on_support)
    state = backend.init(objective, context)
    start = form.matrix(state.point.x)
    if eta is None:
        eta = alpha**2 / 2.0  # 1 / (2 M), as the loss is alpha^-2-smooth above alpha
    omega, theirs, ours = start, [], []
    for _ in range(10):
        z = omega - eta * (S - np.linalg.inv(omega))  # (S1)
        off = np.abs(np.triu(z, 1))
        i, j = np.triu_indices(p, 1)
        keep = np.argsort(-off[i, j], kind="stable")[:k]  # (S2): 2k entries are k pairs
        mask = np.eye(p, dtype=bool)
        mask[i[keep], j[keep]] = mask[j[keep], i[keep]] = True
        omega = minimise(S, mask)  # (S3)
        assert alpha < np.linalg.eigvalsh(omega)[0]
        theirs.append(omega)
        state = backend.step(objective, state, context)
        ours.append(form.matrix(state.point.x))
    same(ours, theirs, least=1, rtol=1e-5)


def test_the_step_of_the_theory():
    """``alpha^2 / 2``, from supports on which four times as much would choose other edges."""
    S, k, p, alpha = covariance(4, n=400, mixing=0.1), 6, 7, 0.4
    form = SparsePrecision.build(S, k, alpha=alpha, beta=1e3)
    backend, objective = PrecisionGraHTP.as_published(), precision_objective(form)
    i, j = np.triu_indices(p, 1)

    def chosen(z):
        off = np.abs(z[i, j])
        return set(np.argsort(-off, kind="stable")[:k])

    decided = 0
    for seed in range(20):
        mask = np.eye(p, dtype=bool)
        start = np.random.default_rng(seed).choice(i.size, k, replace=False)
        mask[i[start], j[start]] = mask[j[start], i[start]] = True
        omega = minimise(S, mask)
        assert alpha < np.linalg.eigvalsh(omega)[0], "the bound does not bind"
        g = S - np.linalg.inv(omega)
        right = chosen(omega - alpha**2 / 2.0 * g)
        decided += right not in (chosen(omega - 2.0 * alpha**2 * g), set(start))
        x = np.array([omega[r, c] for r, c in zip(form.rows, form.cols, strict=True)])
        context = Context(minimise_precision_on_support, start=x)
        state = backend.step(objective, backend.init(objective, context), context)
        found = form.matrix(state.point.x)
        assert set(np.flatnonzero(found[i, j])) == right
    assert decided


def states(backend, S, k, steps):
    """Return the matrices after every step, each once."""
    form = SparsePrecision.build(S, k, alpha=1e-3, beta=1e3)
    objective, context = precision_objective(form), Context(minimise_precision_on_support)
    state, out = backend.init(objective, context), []
    for _ in range(steps):
        state = backend.step(objective, state, context)
        omega = form.matrix(state.point.x)
        if not out or not np.array_equal(omega, out[-1]):
            out.append(omega)
    return out


def with_pairs(p, pairs):
    mask = np.eye(p, dtype=bool)
    for i, j in pairs:
        mask[i, j] = mask[j, i] = True
    return mask


def largest(scores, pairs, number):
    return sorted(pairs, key=lambda e: -abs(scores[e]))[:number]


PAIRS = list(zip(*np.triu_indices(7, 1), strict=True))


@pytest.mark.parametrize("seed", range(2))
def test_forward_selection(seed, same):
    """Yuan and Yan (2013): the largest gradient enters, in units of the standard deviations."""
    S, chosen, theirs = covariance(seed), [], []
    d = np.sqrt(np.diag(S))
    omega = np.diag(1.0 / d**2)
    for _ in range(10):
        g = (S - np.linalg.inv(omega)) / np.outer(d, d)
        chosen += largest(g, [e for e in PAIRS if e not in chosen], 1)
        omega = minimise(S, with_pairs(7, chosen))
        theirs.append(omega)
    same(states(PrecisionFBS.as_published(), S, 10, 10), theirs, least=10, rtol=1e-5)


@pytest.mark.parametrize("seed", range(2))
def test_gradient_support_pursuit(seed, same):
    """Bahmani, Raj and Boufounos (2013), Algorithm 1, with the second stage of Yuan et al."""
    S, k, theirs = covariance(seed), 6, []
    omega = np.diag(1.0 / np.diag(S))
    for _ in range(10):
        inside = [e for e in PAIRS if omega[e]]
        g = S - np.linalg.inv(omega)
        union = set(largest(g, [e for e in PAIRS if e not in inside], 2 * k)) | set(inside)
        kept = largest(minimise(S, with_pairs(7, union)), union, k)
        omega = minimise(S, with_pairs(7, kept))
        if theirs and np.allclose(omega, theirs[-1], rtol=1e-9):
            break
        theirs.append(omega)
    same(states(PrecisionGraSP.as_published(), S, k, 10)[: len(theirs)], theirs, least=1)


def test_forward_and_backward(same):
    """Zhang (2008) on edges: the best block of an edge enters, and what costs less leaves."""
    S, chosen, gains, theirs, dropped = covariance(1), [], [], [], 0
    omega = np.diag(1.0 / np.diag(S))
    while len(theirs) < 10:
        blocks = {}
        for i, j in (e for e in PAIRS if e not in chosen):
            block = np.zeros((7, 7), dtype=bool)
            block[np.ix_([i, j], [i, j])] = True
            blocks[i, j] = loss(S, omega) - loss(S, minimise(S, block, omega))
        chosen += largest(blocks, blocks, 1)
        following = minimise(S, with_pairs(7, chosen))
        gains.append(loss(S, omega) - loss(S, following))
        omega = following
        theirs.append(omega)
        while len(gains) > 1:
            without = {e: minimise(S, with_pairs(7, set(chosen) - {e})) for e in chosen}
            least = min(without, key=lambda e: loss(S, without[e]))
            if loss(S, without[least]) - loss(S, omega) >= 0.5 * gains[-1]:
                break
            chosen, omega, dropped = [e for e in chosen if e != least], without[least], dropped + 1
            gains.pop()
            theirs.append(omega)
    ours = states(PrecisionFoBa.as_published(), S, 21, 60)
    same(ours[: len(theirs)], theirs, least=10, rtol=1e-5)
    assert dropped


def test_edges_that_enter_together_share_their_gain():
    S = covariance(1)
    form = SparsePrecision.build(S, 6, alpha=1e-3, beta=1e3)
    objective, context = precision_objective(form), Context(minimise_precision_on_support)
    backend = PrecisionFoBa(batch=3)
    first = backend.init(objective, context)
    state = backend.step(objective, first, context)
    gained = loss(S, form.matrix(first.point.x)) - loss(S, form.matrix(state.point.x))
    assert state.gains == pytest.approx((gained / 3,) * 3, rel=1e-8)


@pytest.mark.parametrize("backend", [PrecisionFBS(batch=6, tol=0.9), PrecisionFoBa(tol=0.9)])
def test_the_last_graph_is_fitted_exactly(backend):
    S = covariance(1)
    omega = states(backend, S, 6, 30)[-1]
    inside = omega != 0.0
    assert np.count_nonzero(inside) == 7 + 12
    assert np.linalg.inv(omega)[inside] == pytest.approx(S[inside], abs=1e-8 * S.max())
