"""A thousand random problems of all kinds: proofs against brute force, and other feasible points.

The squared losses without bounds have a thousand of their own in ``test_proof.py``.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp

from sparsemodel.certificates import Claim
from sparsemodel.certificates.proving.prove import prove
from sparsemodel.certificates.statements.objective_interval import primal
from sparsemodel.cvx.restricted import minimise_with_cvxpy
from sparsemodel.designs import DenseDesign, OnesDesign, SparseDesign, StackedDesign
from sparsemodel.interfaces import Box, Cardinality, SparseRegression, Term, TwiceDifferentiable
from sparsemodel.losses import (
    EpsilonInsensitiveLoss,
    GammaLoss,
    HingeLoss,
    HuberLoss,
    LogisticLoss,
    PoissonLoss,
    QuantileLoss,
    SmoothedHingeLoss,
    SquaredHingeLoss,
    SquaredLoss,
)
from sparsemodel.numerics import RegressionObjective, minimise_on_support

SMOOTH = [
    SquaredLoss(),
    LogisticLoss(),
    HuberLoss(0.7),
    SmoothedHingeLoss(0.5),
    SquaredHingeLoss(),
    PoissonLoss(),
    GammaLoss(),
]
KINKED = [HingeLoss(), QuantileLoss(0.3), EpsilonInsensitiveLoss(0.2)]
LABELLED = (LogisticLoss, HingeLoss, SmoothedHingeLoss, SquaredHingeLoss)
KINDS = ["plain", "intercept", "always in", "groups", "price", "wide", "signs", "box", "two terms"]


def random_problem(seed):
    """Return a problem: loss, kind, storage and scales drawn from the seed."""
    rng = np.random.default_rng(seed)
    loss = KINKED[seed % 3] if seed % 10 == 9 else SMOOTH[seed % 7]
    kind = KINDS[int(rng.integers(len(KINDS)))]
    n, p = (5, 7) if kind == "wide" else (int(rng.integers(12, 26)), 6)
    a = rng.standard_normal((n, p)) + rng.uniform(0.0, 1.5) * rng.standard_normal((n, 1))
    u = a[:, 0] - a[:, 1] + rng.uniform(0.1, 1.5) * rng.standard_normal(n)
    y = u
    if isinstance(loss, LABELLED):
        y = np.where(u > 0.0, 1.0, -1.0)
        y[:2] = [1.0, -1.0]
    elif isinstance(loss, PoissonLoss):
        y = rng.poisson(np.exp(np.clip(0.5 * u, -2.0, 2.0))).astype(float)
        y[0] = 1.0
    elif isinstance(loss, GammaLoss):
        y = rng.exponential(np.exp(np.clip(0.5 * u, -2.0, 2.0))) + 0.05
    if seed % 4 == 1:
        a[np.abs(a) < 0.4] = 0.0
    if seed % 6 == 5 and kind not in ("box", "groups"):
        factors = 10.0 ** rng.integers(-3, 4, p)
        a = a * factors
    else:
        factors = np.ones(p)
    design = SparseDesign(sp.csr_array(a)) if seed % 4 == 1 else DenseDesign(a)
    k, price, box, groups = int(rng.integers(1, 4)), 0.0, None, None
    ridge = 10.0 ** rng.uniform(-2.5, 0.0) * np.square(factors)
    free = np.empty(0, dtype=np.intp)
    if kind == "intercept":
        design = StackedDesign(n, p + 1, ((np.arange(p), design), (np.array([p]), OnesDesign(n))))
        ridge, free = np.append(ridge, 0.0), np.array([p])
    elif kind == "always in":
        free = np.array([1])
    elif kind == "groups":
        groups, k = np.array([0, 0, 1, 1, 2, 2]), min(k, 2)
    elif kind == "price":
        price, k = 0.03, p
    elif kind == "signs":
        box = Box(np.zeros(p), np.full(p, np.inf))
    elif kind == "box":
        box = Box(np.full(p, -0.4), np.full(p, 0.5))
    c = rng.uniform(0.5, 1.5, n) / n
    terms = (Term(design, loss, y, c),)
    if kind == "two terms":
        terms = (*terms, Term(DenseDesign(a[::-1].copy()), HuberLoss(1.0), u, c / 2.0))
    sparsity = Cardinality(ridge.size, k, free, groups, price)
    return SparseRegression(terms, ridge, sparsity, box=box), rng


def on_support(form, objective, support):
    """Return a minimiser on a support, as exact as a general method gets it."""
    if not support.size:
        return np.zeros(form.shape)
    if not all(isinstance(t.loss, TwiceDifferentiable) for t in form.terms):
        return minimise_with_cvxpy(objective, support, objective.origin()).x
    if form.box is None:
        return minimise_on_support(objective, support, objective.origin()).x
    values = scipy.optimize.minimize(
        lambda v: objective.point(support, v).value,
        np.zeros(support.size),
        jac=lambda v: objective.restricted_gradient(objective.point(support, v), support),
        method="L-BFGS-B",
        bounds=list(zip(form.box.lower[support], form.box.upper[support], strict=True)),
        options={"ftol": 1e-15, "gtol": 1e-10},
    ).x
    x = np.zeros(form.shape)
    x[support] = values
    return x


def brute_force(form):
    objective, sparsity = RegressionObjective(form), form.sparsity
    best = math.inf
    for size in range(min(sparsity.k, sparsity.units) + 1):
        for units in itertools.combinations(range(sparsity.units), size):
            support = sparsity.coordinates(np.array(units, dtype=np.intp))
            best = min(best, primal(form, on_support(form, objective, support)).value)
    return best


def mismatch(seed):
    """Return what is wrong with the proof of a problem; empty when nothing is."""
    form, rng = random_problem(seed)
    truth = brute_force(form)
    c = prove(form, np.zeros(form.shape), gap=1e-5, time_limit=20.0)
    slack = 1e-9 * (1.0 + abs(truth))
    kinked = any(
        isinstance(t.loss, (HingeLoss, QuantileLoss, EpsilonInsensitiveLoss)) for t in form.terms
    )
    if c.bound > truth + slack:
        return f"{seed}: bound {c.bound!r} above {truth!r}"
    if not kinked and not (truth - slack <= c.value <= truth + 2e-5 * abs(truth) + slack):
        return f"{seed}: value {c.value!r}, and it is {truth!r}"
    if not kinked and c.relative_gap > 1.1e-5 and c.upper - c.bound > slack:
        return f"{seed}: open at {c.relative_gap!r}"
    if c.claim is Claim.OPTIMAL and c.value > truth + 2e-6 * abs(truth) + slack:
        return f"{seed}: called optimal at {c.value!r}, and {truth!r} is there"
    # Feasible points from elsewhere: shrunk and perturbed minimisers on random supports.
    objective, sparsity = RegressionObjective(form), form.sparsity
    for _ in range(5):
        units = rng.permutation(sparsity.units)[: sparsity.k]
        x = on_support(form, objective, sparsity.coordinates(np.sort(units)))
        other = primal(form, x * rng.uniform(0.9, 1.0))
        if not other.violations and other.upper < c.bound:
            return f"{seed}: a point of {other.upper!r} below the bound {c.bound!r}"
    return ""


SLOW = {0, 2, 8, 17, 19, 29, 32, 33}


@pytest.mark.parametrize("seed", sorted(set(range(28)) - SLOW))
def test_some_proofs(seed):
    assert mismatch(seed) == ""


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_a_thousand_proofs(block):
    found = [mismatch(seed) for seed in range(1000 + 50 * block, 1050 + 50 * block)]
    assert [text for text in found if text] == []
