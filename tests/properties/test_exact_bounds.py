"""Printed numbers against exact arithmetic: every loss, every way to restrict, all scales.

Piecewise rational losses are evaluated with fractions. The others have a logarithm or an
exponential in them, which is taken with 80 digits and widened by its last twenty.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from sparsemodel.certificates import dual_bound
from sparsemodel.certificates.statements.objective_interval import primal
from sparsemodel.designs import DenseDesign
from sparsemodel.interfaces import Box, Cardinality, SparseRegression, Term
from sparsemodel.losses import (
    AbsoluteLoss,
    EpsilonInsensitiveLoss,
    ExpectileLoss,
    GammaInverseLoss,
    GammaLoss,
    HingeLoss,
    HuberLoss,
    InverseGaussianLoss,
    LogisticLoss,
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

LABELLED = (LogisticLoss, HingeLoss, SmoothedHingeLoss, SquaredHingeLoss)
LOSSES = [
    SquaredLoss(),
    HuberLoss(0.7),
    AbsoluteLoss(),
    QuantileLoss(0.3),
    EpsilonInsensitiveLoss(0.2),
    SmoothedPinballLoss(below=0.4, above=0.6, epsilon=0.1, mu=0.3),
    HingeLoss(),
    SmoothedHingeLoss(0.5),
    SquaredHingeLoss(),
    LogisticLoss(),
    PoissonLoss(),
    GammaLoss(),
    ExpectileLoss(0.8),
    NegativeBinomialLoss(1.7),
    TweedieLoss(1.3),
    PoissonIdentityLoss(),
    PoissonSqrtLoss(),
    GammaInverseLoss(),
    InverseGaussianLoss(),
]
LINKED = (PoissonIdentityLoss, PoissonSqrtLoss, GammaInverseLoss, InverseGaussianLoss)
POSITIVE = (*LINKED, PoissonLoss, GammaLoss, NegativeBinomialLoss, TweedieLoss)
KINDS = ["plain", "offset", "box", "price", "always in", "groups"]
WIDE = Fraction(1, 10**60)


def log(x):
    """The logarithm of a fraction, right to 60 digits."""
    with localcontext() as c:
        c.prec = 90
        return Fraction((Decimal(x.numerator) / Decimal(x.denominator)).ln())


def exp(x):
    with localcontext() as c:
        c.prec = 90
        return Fraction((Decimal(x.numerator) / Decimal(x.denominator)).exp())


def entropy(s):
    return s * log(s) if s > 0 else Fraction(0)


def root(x):
    with localcontext() as c:
        c.prec = 90
        return Fraction((Decimal(x.numerator) / Decimal(x.denominator)).sqrt())


def linked(loss, y, v):
    """``q``, ``s``, the value, slope and curvature of a loss with another link, and its edge."""
    q, s, b = {
        PoissonIdentityLoss: (0, 1, y),
        PoissonSqrtLoss: (1, 0, 2 * y),
        GammaInverseLoss: (0, y, 1),
        InverseGaussianLoss: (0, y / 2, 1),
    }[type(loss)]
    best = Fraction(float(np.sqrt(float(b) / 2))) if q else Fraction(float(b) / float(s))
    if isinstance(loss, InverseGaussianLoss):
        best = Fraction(1.0 / float(y) ** 2)
    edge = Fraction(loss.edge * float(best))
    v = max(v, edge)
    if isinstance(loss, InverseGaussianLoss):
        r = root(v)
        return s * v - r, s - 1 / (2 * r), 1 / (4 * v * r), edge, (q, s, b)
    return (
        q * v * v + s * v - b * log(v),
        2 * q * v + s - b / v,
        2 * q + b / (v * v),
        edge,
        (q, s, b),
    )


def exact_loss(loss, u, y):
    r, m = u - y, y * u
    f = Fraction
    if isinstance(loss, LINKED):
        value, slope, curve, edge, _ = linked(loss, y, u)
        d = min(u - edge, f(0))
        return value + d * slope + d * d * curve / 2
    if isinstance(loss, SquaredLoss):
        return r * r / 2
    if isinstance(loss, HuberLoss):
        d = f(loss.delta)
        return r * r / 2 if abs(r) <= d else d * abs(r) - d * d / 2
    if isinstance(loss, AbsoluteLoss):
        return abs(r)
    if isinstance(loss, QuantileLoss):
        return max(-f(loss.tau) * r, f(1.0 - loss.tau) * r)
    if isinstance(loss, EpsilonInsensitiveLoss):
        return max(abs(r) - f(loss.epsilon), f(0))
    if isinstance(loss, SmoothedPinballLoss):
        slope = (abs(r) - f(loss.epsilon)) / f(loss.mu)
        a = min(max(slope, f(0)), f(loss.above if r > 0 else loss.below))
        return a * (abs(r) - f(loss.epsilon)) - f(loss.mu) * a * a / 2
    if isinstance(loss, HingeLoss):
        return max(f(0), 1 - m)
    if isinstance(loss, SmoothedHingeLoss):
        g = f(loss.gamma)
        s = min(max((1 - m) / g, f(0)), f(1))
        return s * (1 - m) - g * s * s / 2
    if isinstance(loss, SquaredHingeLoss):
        return max(f(0), 1 - m) ** 2 / 2
    if isinstance(loss, LogisticLoss):
        return log(1 + exp(-m))
    if isinstance(loss, PoissonLoss):
        return exp(u) - y * u
    if isinstance(loss, ExpectileLoss):
        return r * r * f(loss.tau if r < 0 else 1.0 - loss.tau)
    if isinstance(loss, NegativeBinomialLoss):
        return (y + f(loss.theta)) * log(1 + exp(u) / f(loss.theta)) - y * u
    if isinstance(loss, TweedieLoss):
        p = f(loss.power)
        return y * exp((1 - p) * u) / (p - 1) + exp((2 - p) * u) / (2 - p)
    return u + y * exp(-u)


def exact_conjugate(loss, a, y):
    f = Fraction
    if isinstance(loss, LINKED):
        q, s, b = linked(loss, y, f(1))[4]
        v = (a - s + root((a - s) ** 2 + 8 * b)) / 4 if q else b / (s - a)
        v = v * v / 4 if isinstance(loss, InverseGaussianLoss) else v
        value, slope, curve, edge, _ = linked(loss, y, v)
        below = min(a - slope, f(0)) if v < edge else f(0)
        return a * max(v, edge) - value + below * below / curve / 2
    if isinstance(loss, (SquaredLoss, HuberLoss, SquaredHingeLoss)):
        return a * a / 2 + a * y
    if isinstance(loss, (AbsoluteLoss, QuantileLoss, HingeLoss)):
        return a * y
    if isinstance(loss, EpsilonInsensitiveLoss):
        return a * y + f(loss.epsilon) * abs(a)
    if isinstance(loss, SmoothedPinballLoss):
        return a * y + f(loss.epsilon) * abs(a) + f(loss.mu) * a * a / 2
    if isinstance(loss, SmoothedHingeLoss):
        return a * y + f(loss.gamma) * a * a / 2
    if isinstance(loss, LogisticLoss):
        return entropy(-a * y) + entropy(1 + a * y)
    if isinstance(loss, PoissonLoss):
        return entropy(a + y) - (a + y)
    if isinstance(loss, ExpectileLoss):
        return a * y + a * a / (4 * f(loss.tau if a < 0 else 1.0 - loss.tau))
    if isinstance(loss, NegativeBinomialLoss):
        r, s = f(loss.theta), a + y
        return entropy(s) + entropy(r - a) + s * log(r) - (y + r) * log(y + r)
    if isinstance(loss, TweedieLoss):
        p, ends = loss.power, [-900.0, 300.0]
        for _ in range(80):
            v = sum(ends) / 2
            ends[math.exp((2 - p) * v) - float(y) * math.exp((1 - p) * v) > float(a)] = v
        p, v = f(p), f(v)
        for _ in range(2):  # Newton's method; what is left of the error enters squared
            up, down = exp((2 - p) * v), y * exp((1 - p) * v)
            v = Fraction(round((v + (a - up + down) / ((2 - p) * up + (p - 1) * down)), 60))
        return a * v - exact_loss(loss, v, y)
    return entropy(1 - a) - (1 - a) * (1 + log(y))


def exact_gain(v, ridge, low, high):
    """The most that ``-v x - ridge x^2/2`` reaches between two bounds (None: no bound)."""
    x = -v / ridge
    x = x if low is None else max(x, low)
    x = x if high is None else min(x, high)
    return -v * x - ridge * x * x / 2


def make(loss, kind, seed, power):
    rng = np.random.default_rng(seed)
    n, p, k = 7, 6, 2
    scale = 10.0**power
    a = rng.integers(-5, 6, (n, p)) * scale
    homogeneous = not isinstance(loss, (*LABELLED, *POSITIVE))
    if isinstance(loss, LABELLED):
        y = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    elif homogeneous:
        y = rng.integers(-9, 10, n) * (scale if seed % 2 else 1.0)
    else:
        y = rng.integers(1, 9, n) * 1.0
    offset = rng.integers(-3, 4, n) / 7.0 if kind == "offset" else None
    box = Box(np.full(p, -0.3) / scale, np.full(p, 0.7) / scale) if kind == "box" else None
    price = 0.013 if kind == "price" else 0.0
    free = np.array([2] if kind == "always in" else [], dtype=np.intp)
    groups = np.array([0, 0, 1, 1, 2, 2]) if kind == "groups" else None
    ridge = rng.integers(1, 9, p) / 3.0 * scale**2
    if groups is not None:
        ridge = ridge[groups]
    c = rng.integers(1, 5, n) / 11.0
    term = Term(DenseDesign(a.astype(float)), loss, y, c, offset)
    sparsity = Cardinality(p, k, free=free, groups=groups, price=price)
    form = SparseRegression((term,), ridge, sparsity, box=box, constant=0.1 * seed)
    return form, rng


def rationals(values):
    return [Fraction(v) for v in np.asarray(values, dtype=float).tolist()]


def exact_dual(form, dual):
    (t,) = form.terms
    p, s = form.sparsity.size, form.sparsity
    rows = [rationals(row) for row in t.design.to_array()]
    c, y, a = rationals(t.weights), rationals(t.target), rationals(dual)
    o = rationals(np.zeros(len(y)) if t.offset is None else t.offset)
    total = Fraction(form.constant)
    for ci, yi, ai, oi in zip(c, y, a, o, strict=True):
        total += ci * (ai * oi - exact_conjugate(t.loss, ai, yi))
    gains = []
    for j in range(p):
        v = sum(ci * ai * row[j] for ci, ai, row in zip(c, a, rows, strict=True))
        ends = (
            (None, None)
            if form.box is None
            else (Fraction(float(form.box.lower[j])), Fraction(float(form.box.upper[j])))
        )
        gains.append(exact_gain(v, Fraction(float(form.ridge[j])), *ends))
    total -= sum((gains[int(j)] for j in s.free), Fraction(0))
    if s.groups is not None:
        units = [sum(gains[j] for j in range(p) if s.groups[j] == g) for g in range(s.units)]
    else:
        units = [gains[j] for j in range(p) if j not in set(s.free.tolist())]
    profits = sorted((max(u - Fraction(s.price), Fraction(0)) for u in units), reverse=True)
    return total - sum(profits[: s.k], Fraction(0))


def exact_primal(form, x):
    (t,) = form.terms
    w = rationals(x)
    o = rationals(np.zeros(len(t.target)) if t.offset is None else t.offset)
    total = Fraction(form.constant) + Fraction(form.sparsity.price) * form.sparsity.count(x)
    for row, ci, yi, oi in zip(
        t.design.to_array(), rationals(t.weights), rationals(t.target), o, strict=True
    ):
        u = sum((r * v for r, v in zip(rationals(row), w, strict=True)), Fraction(0)) + oi
        total += ci * exact_loss(t.loss, u, yi)
    return total + sum(r * v * v for r, v in zip(rationals(form.ridge), w, strict=True)) / 2


@pytest.mark.parametrize("power", [-8, -3, 0, 3, 8])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize(
    "seeds", [range(1), pytest.param(range(1, 6), marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_printed_numbers_hold_exactly(loss, kind, power, seeds):
    for seed in seeds:
        form, rng = make(loss, kind, seed, power)
        (t,) = form.terms
        x = np.zeros(6)
        x[[1, 3]] = rng.integers(-3, 4, 2) / 5.0 / 10.0**power
        if kind == "box":
            x = np.clip(x, form.box.lower, form.box.upper)
        u = t.design.matvec(x) + (0.0 if t.offset is None else t.offset)
        for a in (t.loss.derivative(u, t.target), rng.standard_normal(7) * 0.4):
            dual = t.loss.project_dual(a, t.target)
            printed = dual_bound(form, (dual,))
            exact = exact_dual(form, dual)
            assert printed.finite, printed.reason
            assert Fraction(printed.value) <= exact + abs(exact) * WIDE
            size = abs(exact) + exact_size(form, dual)
            assert float((exact - Fraction(printed.value)) / size) <= 1e-12
        if not -700.0 < float(np.min(u)) <= float(np.max(u)) < 700.0 and not rational(loss):
            continue
        at = primal(form, x)
        exact = exact_primal(form, x)
        if outside_domain(t.loss, u, t.target):  # a parabola stands for what is infinite or more
            assert at.upper == math.inf
        else:
            assert Fraction(at.upper) >= exact - abs(exact) * WIDE
        assert math.isclose(at.value, float(exact), rel_tol=1e-11, abs_tol=1e-11)


def outside_domain(loss, u, target):
    """Whether a prediction is below the edge of a loss with another link."""
    at = zip(rationals(u), rationals(target), strict=True)
    return isinstance(loss, LINKED) and any(v < linked(loss, y, v)[3] for v, y in at)


def rational(loss):
    return not isinstance(loss, (LogisticLoss, *POSITIVE))


def exact_size(form, dual):
    """What the allowance may be relative to: the sizes of the terms that were added up."""
    (t,) = form.terms
    pieces = [
        abs(ci * exact_conjugate(t.loss, ai, yi))
        for ci, ai, yi in zip(
            rationals(t.weights), rationals(dual), rationals(t.target), strict=True
        )
    ]
    v = np.abs(t.design.to_array()).T @ (t.weights * np.abs(dual))
    return sum(pieces) + Fraction(float(np.sum(v * v / form.ridge))) + Fraction(1, 10)
