"""Proofs against brute force: no bound above the truth, nothing called optimal that is not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from sparsemodel.certificates import Claim
from sparsemodel.certificates.arithmetic.rounding import CAUTION
from sparsemodel.certificates.proving.gram.quadratic import Quadratic, extraction, minorant
from sparsemodel.certificates.proving.gram.stage import make_stage
from sparsemodel.certificates.proving.node import IN, OUT, decide
from sparsemodel.certificates.proving.prove import prove
from sparsemodel.certificates.proving.records.replay import tree_bound
from sparsemodel.designs import DenseDesign, SparseDesign
from sparsemodel.interfaces import Cardinality, SparseRegression, Term
from sparsemodel.losses import SquaredLoss


def problem(seed):
    """Return a small random problem of one of the kinds: free, ridge, terms, storage, scale."""
    rng = np.random.default_rng(seed)
    p, n = int(rng.integers(1, 11)), int(rng.integers(3, 22))
    free = []
    mixing = np.linalg.cholesky(0.3 * np.eye(p) + 0.7) if seed % 2 else np.eye(p)
    a = rng.standard_normal((n, p)) @ mixing
    if seed % 3 == 1 and p > 1:
        a[:, 0] = 1.0
        free = [0]
    if seed % 11 == 3 and p > 2:
        a[:, 2] = a[:, 1]  # twins: many supports tie
    if seed % 13 == 5:
        a *= 10.0 ** rng.integers(-6, 7, p)
    ridge = rng.uniform(0.01, 1.0, p) * 10.0 ** rng.integers(-3, 2) * np.mean(a * a, axis=0)
    if free and seed % 2:
        ridge[0] = 0.0
    truth = np.where(rng.random(p) < 0.5, rng.standard_normal(p), 0.0) / np.sqrt(np.mean(a * a))
    terms = []
    for rows in [slice(0, n)] if seed % 5 else [slice(0, n // 2 + 1), slice(n // 2 + 1, n)]:
        part = a[rows]
        if not part.shape[0]:
            continue
        y = part @ truth + rng.standard_normal(part.shape[0])
        c = rng.uniform(0.1, 1.0, part.shape[0]) / n
        if seed % 7 == 2:
            c[0] = 0.0
        sparse = seed % 4 == 1
        design = SparseDesign(sp.csr_array(part)) if sparse else DenseDesign(part)
        offset = rng.standard_normal(part.shape[0]) if seed % 2 else None
        terms.append(Term(design, SquaredLoss(), y, c, offset))
    k = min(int(rng.integers(0, p + 1)), p - len(free))
    form = SparseRegression(
        tuple(terms),
        ridge,
        Cardinality(p, k, free=np.array(free, dtype=np.intp)),
        constant=float(rng.standard_normal()) if seed % 6 == 0 else 0.0,
    )
    return form, rng


def objective(form, x):
    total = form.constant + 0.5 * form.ridge @ np.square(x)
    for t in form.terms:
        r = t.design.matvec(x) - t.target + (0.0 if t.offset is None else t.offset)
        total += 0.5 * t.weights @ np.square(r)
    return float(total)


def best_on(form, support):
    rows, aims = [np.diag(np.sqrt(form.ridge))[:, support]], [np.zeros(form.sparsity.size)]
    for t in form.terms:
        root = np.sqrt(t.weights)
        aim = t.target - (0.0 if t.offset is None else t.offset)
        rows.append(root[:, None] * t.design.restrict(support).to_array())
        aims.append(root * aim)
    x = np.zeros(form.sparsity.size)
    stacked = np.concatenate(rows)
    scale = np.linalg.norm(stacked, axis=0)
    scale[scale == 0.0] = 1.0
    x[support] = np.linalg.lstsq(stacked / scale, np.concatenate(aims), rcond=None)[0] / scale
    return x


def brute_force(form, must=(), never=()):
    counted = np.flatnonzero(form.sparsity.counted)
    best = np.inf
    options = [j for j in counted if j not in must and j not in never]
    for chosen in itertools.combinations(options, min(form.sparsity.k - len(must), len(options))):
        support = np.sort(np.concatenate([form.sparsity.free, must, chosen]).astype(np.intp))
        best = min(best, objective(form, best_on(form, support)))
    return best


def check(seed):
    form, rng = problem(seed)
    truth = brute_force(form)
    noise = 1e-11 * max(abs(truth), objective(form, np.zeros(form.shape)) - truth)
    certificate = prove(form, np.zeros(form.shape), gap=1e-6, time_limit=None)
    x = certificate.x
    assert certificate.bound <= truth + noise
    assert certificate.claim is Claim.OPTIMAL
    assert objective(form, x) <= truth + 1.1e-6 * abs(truth) + noise
    assert tree_bound(form, form, certificate.proof["tree"]).value >= certificate.bound - noise
    counted = np.flatnonzero(form.sparsity.counted)
    for _ in range(5):
        chosen = rng.permutation(counted)[: form.sparsity.k]
        other = best_on(form, np.sort(np.concatenate([form.sparsity.free, chosen])))
        assert objective(form, other) >= certificate.bound - noise


@pytest.mark.parametrize("block", range(5))
def test_proofs_agree_with_brute_force(block):
    for seed in range(10 * block, 10 * block + 10):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_a_thousand_proofs_agree_with_brute_force(block):
    for seed in range(100 + 50 * block, 150 + 50 * block):
        check(seed)


@pytest.mark.parametrize("seed", range(24))
def test_any_point_bounds_any_node(seed):
    """The bound of a node, and of each of its children, from points that solve nothing."""
    form, rng = problem(seed)
    counted = np.flatnonzero(form.sparsity.counted)
    k = form.sparsity.k
    if counted.size < 3 or k < 1:
        return
    q = Quadratic.of(form)
    free = form.sparsity.free
    loose = form.ridge[free] == 0.0
    active = np.union1d(counted, free[~loose])
    status = np.zeros(active.size, dtype=np.int8)
    status[np.isin(active, free)] = IN
    position = np.searchsorted(active, counted)
    status[position[0]], status[position[1]] = IN, OUT
    for delta in (np.zeros(active.size), extraction(q, active, free[loose])):
        stage = None if delta is None else make_stage(q, active, free[loose], delta)
        if stage is None:
            continue
        w = rng.standard_normal(active.size) * np.abs(stage.linear) * (status >= 0)
        for scale in (0.0, 0.3, 3.0):
            at = stage.point(scale * w)
            low = minorant(q, stage.active, stage.balanced, at, stage.delta, caution=CAUTION)
            proved = decide(low, status, k - 1)
            truth = brute_force(form, must=[counted[0]], never=[counted[1]])
            slack = 1e-11 * (abs(truth) + abs(proved.bound))
            assert proved.bound <= truth + slack
            for j in counted[2:]:
                i = int(np.searchsorted(active, j))
                must, never = [counted[0], j], [counted[1], j]
                if k >= 2:
                    with_j = brute_force(form, must=must, never=[counted[1]])
                    assert proved.if_in[i] <= with_j + 1e-11 * (abs(with_j) + abs(proved.bound))
                    without = brute_force(form, must=[counted[0]], never=never)
                    assert proved.if_out[i] <= without + 1e-11 * (abs(without) + abs(proved.bound))
