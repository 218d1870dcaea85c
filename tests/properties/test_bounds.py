"""Laws of lower bounds: no dual point proves more than the truth, whatever the problem is like."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsemodel.certificates import dual_bound, infimum_bound
from sparsemodel.certificates.dual_bounds.unpenalised import balanced
from sparsemodel.certificates.statements.objective_interval import primal
from sparsemodel.designs import DenseDesign, OnesDesign, SparseDesign, StackedDesign
from sparsemodel.interfaces import Box, Cardinality, SparseRegression, Term
from sparsemodel.losses import (
    AbsoluteLoss,
    EpsilonInsensitiveLoss,
    GammaLoss,
    HingeLoss,
    HuberLoss,
    LogisticLoss,
    MultinomialLoss,
    PoissonLoss,
    QuantileLoss,
    SmoothedHingeLoss,
    SquaredHingeLoss,
    SquaredLoss,
)
from sparsemodel.numerics import RegressionObjective, minimise_on_support

LABELLED = [LogisticLoss(), HingeLoss(), SmoothedHingeLoss(0.5), SquaredHingeLoss()]
NUMERIC = [
    SquaredLoss(),
    HuberLoss(0.7),
    AbsoluteLoss(),
    QuantileLoss(0.3),
    EpsilonInsensitiveLoss(0.2),
]
POSITIVE = [PoissonLoss(), GammaLoss()]
MATRIX = [MultinomialLoss(3), SquaredLoss()]
LOSSES = [*LABELLED, *NUMERIC, *POSITIVE]
VARIANTS = [
    "plain",
    "intercept",
    "always in",
    "two free",
    "groups",
    "nonnegative",
    "box",
    "price",
    "boxed intercept",
    "ridgeless box",
]
SETTINGS = settings(max_examples=40, deadline=None)


def target_of(loss, n, rng):
    if loss in LABELLED:
        y = np.where(rng.random(n) < 0.5, -1.0, 1.0)
        y[:2] = [-1.0, 1.0]
        return y
    return rng.exponential(2.0, n) + 0.1 if loss in POSITIVE else rng.standard_normal(n)


def make_form(loss, variant, rng, *, n=14, p=6, k=2, storage="dense", scale=1.0):
    a = rng.standard_normal((n, p)) * scale
    inner = p
    if storage == "sparse":
        a[rng.random((n, p)) < 0.5] = 0.0
        design = SparseDesign(sp.csr_array(a))
    elif storage == "float32":
        design = DenseDesign(a.astype(np.float32))
    else:
        design = DenseDesign(a)
    ridge = rng.uniform(0.05, 1.0, p)
    free = np.empty(0, dtype=np.intp)
    groups, box, price = None, None, 0.0
    if variant in ("intercept", "boxed intercept", "two free"):
        design = StackedDesign(n, p + 1, ((np.arange(p), design), (np.array([p]), OnesDesign(n))))
        ridge, free, inner = np.append(ridge, 0.0), np.array([p]), p + 1
    if variant == "boxed intercept":
        box = Box(np.append(np.full(p, -np.inf), -2.0), np.append(np.full(p, np.inf), 2.0))
    if variant == "two free":
        ridge[0], free = 0.0, np.array([0, p])
    if variant == "always in":
        free = np.array([1])
    if variant == "groups":
        groups = np.array([0, 0, 1, 1, 2, 2])[:p]
    if variant == "nonnegative":
        box = Box(np.zeros(p), np.full(p, np.inf))
    if variant == "box":
        box = Box(np.full(p, -0.3), np.full(p, 0.4))
    if variant == "ridgeless box":
        ridge, box = np.zeros(p), Box(np.full(p, -0.3), np.full(p, 0.4))
    if variant == "price":
        price, k = 0.02, p
    c = rng.uniform(0.01, 0.2, n)
    offset = rng.standard_normal(n) * 0.3
    term = Term(design, loss, target_of(loss, n, rng), c, offset)
    sparsity = Cardinality(inner, k, free, groups, price)
    return SparseRegression((term,), ridge, sparsity, box=box, constant=float(rng.normal()))


def some_duals(form, rng):
    (term,) = form.terms
    n = term.design.shape[0]
    kind = rng.integers(3)
    if kind == 0:
        a = rng.standard_normal((n, *form.shape[1:]))
    elif kind == 1:
        a = np.zeros((n, *form.shape[1:]))
    else:
        u = term.design.matvec(rng.standard_normal(form.shape) * 0.5)
        a = term.loss.derivative(u if term.offset is None else u + term.offset, term.target)
    return balanced(form, (term.loss.project_dual(a, term.target),))


def feasible_points(form, rng, count=8):
    sparsity = form.sparsity
    for _ in range(count):
        units = rng.permutation(sparsity.units)[: sparsity.k]
        support = sparsity.coordinates(np.sort(units))
        x = np.zeros(form.shape)
        x[support] = rng.standard_normal(x[support].shape) * rng.choice([0.1, 0.5, 2.0])
        if form.box is not None:
            inside = np.clip(x, form.box.lower, form.box.upper)
            x = np.where(x != 0.0, inside, x)
        yield x


def best_by_brute_force(form):
    """Smooth problems without bounds: Newton's method on every support."""
    objective = RegressionObjective(form)
    sparsity = form.sparsity
    best = math.inf
    for units in itertools.combinations(range(sparsity.units), min(sparsity.k, sparsity.units)):
        support = sparsity.coordinates(np.array(units, dtype=np.intp))
        found = minimise_on_support(objective, support, objective.origin())
        best = min(best, found.value + sparsity.price * sparsity.count(found.x))
    return best


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("seed", [1, 2])
def test_no_feasible_point_lies_below_a_bound(loss, variant, seed):
    rng = np.random.default_rng(seed)
    storage = ["dense", "sparse", "float32"][int(rng.integers(3))]
    form = make_form(loss, variant, rng, storage=storage)
    bounds = [dual_bound(form, some_duals(form, rng)) for _ in range(3)]
    bounds.append(infimum_bound(form))
    best = max(b.value for b in bounds)
    for x in feasible_points(form, rng):
        assert best <= primal(form, x).value
    for b in bounds:
        assert b.finite or b.reason


@pytest.mark.parametrize(
    "variant", ["plain", "intercept", "always in", "two free", "groups", "price"]
)
@pytest.mark.parametrize(
    "loss",
    [SquaredLoss(), LogisticLoss(), HuberLoss(0.7), PoissonLoss()],
    ids=lambda loss: loss.name,
)
@pytest.mark.parametrize("seed", [3, 4])
def test_no_bound_exceeds_the_optimum_found_by_brute_force(loss, variant, seed):
    rng = np.random.default_rng(seed)
    form = make_form(loss, variant, rng, p=5 if variant != "groups" else 6)
    optimum = best_by_brute_force(form)
    for _ in range(5):
        assert dual_bound(form, some_duals(form, rng)).value <= optimum * (1 + 1e-12) + 1e-12


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("loss", MATRIX, ids=lambda loss: loss.name)
@given(seed=st.integers(0, 2**32 - 1))
@SETTINGS
def test_matrix_variables(loss, free, seed):
    rng = np.random.default_rng(seed)
    n, p, m = 12, 5, 3
    design = DenseDesign(rng.standard_normal((n, p)))
    ridge, index = np.full(p, 0.3), np.empty(0, dtype=np.intp)
    if free:
        design = StackedDesign(n, p + 1, ((np.arange(p), design), (np.array([p]), OnesDesign(n))))
        ridge, index = np.append(ridge, 0.0), np.array([p])
    y = np.arange(n) % 3.0 if isinstance(loss, MultinomialLoss) else rng.standard_normal((n, m))
    term = Term(design, loss, y, np.full(n, 1.0 / n))
    form = SparseRegression((term,), ridge, Cardinality(ridge.size, 2, index), m, True)
    bound = dual_bound(form, some_duals(form, rng))
    assert bound.finite
    for x in feasible_points(form, rng):
        assert bound.value <= primal(form, x).value


@given(
    entries=st.lists(st.integers(-9, 9), min_size=12, max_size=12),
    target=st.lists(st.integers(-9, 9), min_size=4, max_size=4),
    dual=st.lists(st.integers(-40, 40), min_size=4, max_size=4),
    exponent=st.integers(-26, 26),
    k=st.integers(0, 3),
)
@settings(max_examples=200, deadline=None)
def test_a_bound_is_below_the_exact_one_in_rational_arithmetic(entries, target, dual, exponent, k):
    scale = 2.0**exponent
    a = np.array(entries, dtype=float).reshape(4, 3) * scale
    y = np.array(target, dtype=float) * scale
    alpha = np.array(dual, dtype=float) / 7.0 * scale
    c, ridge = 1.0 / 3.0, 0.1 * scale**2
    form = SparseRegression(
        (Term(DenseDesign(a), SquaredLoss(), y, np.full(4, c)),),
        np.full(3, ridge),
        Cardinality(3, k),
    )
    bound = dual_bound(form, (alpha,))
    f = [Fraction(v) for v in alpha]
    gains = []
    for j in range(3):
        v = sum(Fraction(c) * f[i] * Fraction(a[i, j]) for i in range(4))
        gains.append(v * v / (2 * Fraction(ridge)))
    losses = sum(Fraction(c) * (f[i] ** 2 / 2 + f[i] * Fraction(y[i])) for i in range(4))
    exact = -losses - sum(sorted(gains, reverse=True)[:k])
    assert Fraction(bound.value) <= exact
    assert exact - Fraction(bound.value) <= 2 * Fraction(bound.allowance) + Fraction(1, 2**900)


@given(
    labels=st.lists(st.sampled_from([-1.0, 1.0]), min_size=6, max_size=6),
    seed=st.integers(0, 2**32 - 1),
    exponent=st.integers(-26, 26),
)
@settings(max_examples=60, deadline=None)
def test_an_intercept_is_balanced_exactly_or_not_at_all(labels, seed, exponent):
    """The bound holds for huge intercepts, where an unbalanced dual point would fail."""
    rng = np.random.default_rng(seed)
    n = 6
    y = np.array(labels)
    a = rng.standard_normal((n, 2)) * 2.0**exponent
    design = StackedDesign(n, 3, ((np.arange(2), DenseDesign(a)), (np.array([2]), OnesDesign(n))))
    form = SparseRegression(
        (Term(design, HingeLoss(), y, rng.uniform(0.1, 1.0, n)),),
        np.array([0.1, 0.1, 0.0]) * 4.0**exponent + np.array([0.0, 0.0, 0.0]),
        Cardinality(3, 1, np.array([2])),
    )
    bound = dual_bound(form, balanced(form, (-y * rng.random(n),)))
    for size in (0.0, 1.0, 1e8, 1e15, -1.0, -1e8, -1e15):
        x = np.array([0.0, 0.0, size])
        assert bound.value <= primal(form, x).upper
    if len(set(labels)) == 1:  # the intercept alone drives the loss to zero
        assert bound.value <= 0.0


@pytest.mark.parametrize("scale", [1e-8, 1e-3, 1e3, 1e8])
@pytest.mark.parametrize("loss", [SquaredLoss(), LogisticLoss()], ids=lambda loss: loss.name)
def test_scales(loss, scale):
    rng = np.random.default_rng(3)
    form = make_form(loss, "intercept", rng, n=40, p=8, scale=scale)
    for _ in range(5):
        bound = dual_bound(form, some_duals(form, rng))
        assert bound.finite
        for x in feasible_points(form, rng):
            assert bound.value <= primal(form, x / scale).upper


def test_allowance_is_small_next_to_the_bound():
    rng = np.random.default_rng(0)
    form = make_form(SquaredLoss(), "plain", rng, n=300, p=40)
    bound = dual_bound(form, some_duals(form, rng))
    assert 0.0 < bound.allowance < 1e-10 * abs(bound.value)
