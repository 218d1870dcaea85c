"""Laws of problems with several losses: what is the same problem has the same bound."""

from __future__ import annotations

import itertools
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsemodel as sm
from sparsemodel.certificates import Claim, certify, verify
from sparsemodel.certificates.dual_bounds import bound_search
from sparsemodel.certificates.dual_bounds.bound_search import Found
from sparsemodel.certificates.dual_bounds.coefficient_bounds import certifying
from sparsemodel.certificates.proving.gram.quadratic import Quadratic, minorant
from sparsemodel.certificates.proving.prove import prove
from sparsemodel.certificates.statements.objective_interval import primal
from sparsemodel.designs import DenseDesign, OnesDesign, StackedDesign
from sparsemodel.interfaces import Cardinality, SparseRegression, Term
from sparsemodel.losses import (
    AbsoluteLoss,
    HingeLoss,
    HuberLoss,
    LinearLoss,
    LogisticLoss,
    PoissonLoss,
    SquaredHingeLoss,
    SquaredLoss,
)
from sparsemodel.numerics import RegressionObjective, minimise_on_support

SMOOTH = [SquaredLoss(), HuberLoss(0.7), LogisticLoss(), SquaredHingeLoss(), PoissonLoss()]
KINKED = [AbsoluteLoss(), HingeLoss()]
SEEDS = st.integers(0, 2**32 - 1)


def make(loss, rng, *, intercept=False, wide=False):
    n, p, k = (9, 12, 3) if wide else (24, 8, 2)
    a = rng.standard_normal((n, p)) * rng.choice([1.0, 1.0, 3.0], p)
    u = a[:, 0] - 0.5 * a[:, 1] + rng.standard_normal(n)
    y = u
    if isinstance(loss, LogisticLoss | HingeLoss | SquaredHingeLoss):
        y = np.where(u > 0.0, 1.0, -1.0)
        y[:2] = [-1.0, 1.0]
    if isinstance(loss, PoissonLoss):
        y = rng.poisson(2.0, n).astype(float)
    design, ridge, free = DenseDesign(a), rng.uniform(0.02, 0.3, p), np.empty(0, dtype=np.intp)
    if intercept:
        design = StackedDesign(n, p + 1, ((np.arange(p), design), (np.array([p]), OnesDesign(n))))
        ridge, free = np.append(ridge, 0.0), np.array([p])
    offset = None if rng.random() < 0.5 else 0.3 * rng.standard_normal(n)
    term = Term(design, loss, y, rng.uniform(0.5, 2.0, n) / n, offset)
    return SparseRegression((term,), ridge, Cardinality(ridge.size, k, free))


def rows_of(term, rows, share=1.0):
    """The term on some of its observations, with a share of their weights."""
    design = DenseDesign(term.design.restrict(np.arange(term.design.shape[1])).to_array()[rows])
    offset = None if term.offset is None else term.offset[rows]
    return replace(
        term,
        design=design,
        target=term.target[rows],
        weights=share * term.weights[rows],
        offset=offset,
    )


def split(form, rng):
    """The same problem with its observations, or shares of them, spread over terms."""
    (term,) = form.terms
    n = term.design.shape[0]
    parts = int(rng.integers(2, 4))
    if rng.random() < 0.3:  # every observation in every term, with a share of its weight
        shares = rng.dirichlet(np.ones(parts))
        terms = [rows_of(term, np.arange(n), float(share)) for share in shares]
    else:
        owner = rng.integers(parts, size=n)
        terms = [rows_of(term, np.flatnonzero(owner == i)) for i in range(parts)]
    return replace(form, terms=tuple(t for t in terms if t.design.shape[0]))


def point(form, rng):
    """A feasible point: the best on some support."""
    units = np.sort(rng.permutation(form.sparsity.units)[: form.sparsity.k])
    objective = RegressionObjective(form)
    if not objective.twice_differentiable:
        return np.zeros(form.shape)
    support = form.sparsity.coordinates(units)
    return minimise_on_support(objective, support, objective.origin()).x


def bound_of(form, x):
    # Without bounds on the coefficients: those of a ridge ask for an infimum of the losses, which
    # linear terms do not have.
    without = mock.patch.object(certifying, "search_within", return_value=Found((), ()))
    # To the end: where kinks are rounded off, rounds that close little are left out otherwise.
    with without, mock.patch.object(bound_search, "_WORTH", 0.0):
        certificate = certify(form, x)
    verify(certificate, form)
    assert np.isfinite(certificate.bound)
    assert certificate.bound <= certificate.upper
    return certificate.bound


def the_same(one, two, form, tolerance):
    scale = max(abs(one), abs(two), primal(form, np.zeros(form.shape)).value)
    assert one == pytest.approx(two, abs=tolerance * scale)


@pytest.mark.parametrize(  # each loss with an intercept or without, and the slow suite the others
    ("loss", "intercept"),
    [
        pytest.param(loss, intercept, marks=[pytest.mark.slow] * ((i + intercept) % 2))
        for i, loss in enumerate((*SMOOTH, *KINKED))
        for intercept in (False, True)
    ],
    ids=lambda one: getattr(one, "name", str(one)),
)
@given(seed=SEEDS)
@settings(max_examples=2, deadline=None)
def test_a_loss_split_into_terms_has_the_same_bound(loss, intercept, seed):
    rng = np.random.default_rng(seed)
    form = make(loss, rng, intercept=intercept, wide=rng.random() < 0.5)
    x = point(form, rng)
    the_same(bound_of(form, x), bound_of(split(form, rng), x), form, 2e-6)


def with_linear(form, rng):
    """A linear term beside a squared loss, and the same problem with it inside the target."""
    (term,) = form.terms
    n = term.design.shape[0]
    z = 0.5 * rng.standard_normal(n)  # c z @ (A x + o): a shift of the target
    x_slopes = term.design.rmatvec(term.weights * z)
    constant = 0.0 if term.offset is None else float((term.weights * z) @ term.offset)
    row = Term(DenseDesign(x_slopes[None, :]), LinearLoss(), np.ones(1), np.ones(1))
    several = replace(form, terms=(term, row), constant=constant)
    squares = float(term.weights @ (term.target**2 - (term.target - z) ** 2)) / 2.0
    one = replace(form, terms=(replace(term, target=term.target - z),), constant=squares)
    return several, one


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@given(seed=SEEDS)
@settings(max_examples=2, deadline=None)
def test_a_linear_term_is_a_shift_of_the_target(intercept, wide, seed):
    rng = np.random.default_rng(seed)
    several, one = with_linear(make(SquaredLoss(), rng, intercept=intercept, wide=wide), rng)
    x = point(one, rng)
    assert primal(several, x).value == pytest.approx(primal(one, x).value, abs=1e-10)
    the_same(bound_of(several, x), bound_of(one, x), one, 2e-6)


def test_ridges_add_up():
    rng = np.random.default_rng(0)
    a, b, q = rng.standard_normal((20, 12)), rng.standard_normal(20), rng.standard_normal(12)

    def bound(goal):
        w = sm.Variable(12)
        return sm.Problem(sm.minimize(goal(w)), sm.card(w) <= 2).certify().bound

    one = bound(lambda w: sm.squared_loss(a @ w, b) + 0.1 * (q @ w) + sm.ridge(w, 0.3))
    several = bound(
        lambda w: sm.ridge(w, 0.1) + 0.04 * (q @ w) + sm.squared_loss(a @ w, b) + 0.06 * (q @ w)
        + 2.0 * sm.ridge(w, 0.1)
    )  # fmt: skip
    assert np.isfinite(one)
    assert several == pytest.approx(one, rel=2e-6)


@pytest.mark.parametrize("intercept", [False, True])
def test_a_conic_solver_agrees_on_linear_terms(intercept):
    rng = np.random.default_rng(3)
    several, one = with_linear(make(SquaredLoss(), rng, intercept=intercept), rng)
    certificate = certify(several, point(one, rng))
    assert certificate.witness.extraction is not None
    verify(certificate, several, cross_check=True)


def best_by_brute_force(form):
    objective = RegressionObjective(form)
    supports = itertools.combinations(range(form.sparsity.units), form.sparsity.k)
    return min(
        minimise_on_support(
            objective, form.sparsity.coordinates(np.array(s)), objective.origin()
        ).value
        for s in supports
    )


def random_linear(form, rng, size=1.0):
    """The problem with a linear term of several rows, offset and weights."""
    m, p = 3, form.sparsity.size
    design = DenseDesign(size * rng.standard_normal((m, p)) * (np.arange(p) < 8))
    offset = rng.standard_normal(m)
    row = Term(design, LinearLoss(), rng.standard_normal(m), rng.uniform(0.1, 1.0, m), offset)
    return replace(form, terms=(*form.terms, row))


@pytest.mark.parametrize("loss", SMOOTH, ids=lambda loss: loss.name)
@given(seed=SEEDS)
@settings(max_examples=2, deadline=None)
def test_bounds_with_linear_terms_hold(loss, seed):
    rng = np.random.default_rng(seed)
    size = 0.02 if isinstance(loss, LogisticLoss) else 0.5
    form = random_linear(split(make(loss, rng), rng), rng, size)
    truth = best_by_brute_force(form)
    assert bound_of(form, point(form, rng)) <= truth + 1e-9 * (1.0 + abs(truth))


@pytest.mark.parametrize("wide", [False, True])
@given(seed=SEEDS)
@settings(max_examples=2, deadline=None)
def test_proofs_with_linear_terms_agree_with_brute_force(wide, seed):
    rng = np.random.default_rng(seed)
    form = make(SquaredLoss(), rng, intercept=not wide and rng.random() < 0.5, wide=wide)
    form = random_linear(split(form, rng), rng)
    truth = best_by_brute_force(form)
    certificate = prove(form, np.zeros(form.shape), gap=1e-6, time_limit=None)
    x = certificate.x
    noise = 1e-9 * (1.0 + abs(truth))
    assert certificate.bound <= truth + noise
    assert primal(form, x).value <= truth + 1.1e-6 * abs(truth) + noise
    assert certificate.claim is Claim.OPTIMAL
    assert verify(certificate, form).claim is Claim.OPTIMAL


@given(seed=SEEDS, exponent=st.integers(-12, 12), seen=st.integers(0, 8))
@settings(max_examples=40, deadline=None)
def test_errors_of_linear_terms_are_counted(seed, exponent, seen):
    """Slopes of any size, also on columns that no squared loss sees."""
    rng = np.random.default_rng(seed)
    form = make(SquaredLoss(), rng)
    (term,) = form.terms
    a = term.design.to_array() * (np.arange(8) < seen)
    form = replace(form, terms=(replace(term, design=DenseDesign(a)),))
    form = random_linear(form, rng, 10.0**exponent)
    x = rng.standard_normal(8) * 10.0**exponent
    found = minorant(Quadratic.of(form), np.arange(8), np.empty(0, dtype=np.intp), x, np.zeros(8))
    best = found.base - np.sort(found.gains)[-2:].sum()
    for chosen in itertools.combinations(range(8), 2):
        there = np.zeros(8)
        there[list(chosen)] = x[list(chosen)]
        assert best <= primal(form, there).upper
