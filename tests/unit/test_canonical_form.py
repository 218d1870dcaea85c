"""What a declaration becomes: every number of the canonical form, and what is kept of the last."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.compiler.canonical.canonicalize import canonicalize
from sparsemodel.compiler.canonical.declaration import (
    Block,
    BoundSpec,
    CardSpec,
    CountedSpec,
    Declaration,
    LossSpec,
    RidgeSpec,
    VariableSpec,
)
from sparsemodel.designs import DenseDesign
from sparsemodel.losses import SquaredLoss

N, P = 8, 4
A = np.random.default_rng(0).standard_normal((N, P))
Y = A[:, 0] + 1.0
EVERY = (CountedSpec(0),)
LOSS = LossSpec(SquaredLoss(), (Block(0, None, DenseDesign(A)),), None, Y, None, "mean")


def declared(**changes) -> Declaration:
    plain = Declaration((VariableSpec("w", (P,)),), (LOSS,), cards=(CardSpec(EVERY, 2),))
    return replace(plain, **changes)


def form_of(**changes):
    return canonicalize(declared(**changes))[0]


def test_a_mean_is_divided_by_the_observations_and_a_sum_is_not():
    for reduction, weight in (("mean", 3.0 / N), ("sum", 3.0)):
        loss = replace(LOSS, reduction=reduction, scale=3.0)
        np.testing.assert_array_equal(form_of(losses=(loss,)).terms[0].weights, np.full(N, weight))
    own = np.arange(1.0, N + 1.0)
    loss = replace(LOSS, observation_weights=own)
    np.testing.assert_allclose(form_of(losses=(loss,)).terms[0].weights, own / N, rtol=1e-15)


def test_what_is_declared_twice_holds_twice():
    """Bounds intersect whatever their order, ridges and prices add up, the least limit counts."""
    for order in (1, -1):
        limits = [(-3.0, None), (None, 5.0), (-2.0, None), (None, 4.0), (-9.0, 6.0)][::order]
        box = form_of(bounds=tuple(BoundSpec(0, None, *pair) for pair in limits)).box
        np.testing.assert_array_equal(box.lower, np.full(P, -2.0))
        np.testing.assert_array_equal(box.upper, np.full(P, 4.0))
        cards = tuple(CardSpec(EVERY, k, prices=(c,)) for k, c in ((3, 0.0), (2, 0.0), (None, 1.5)))
        sparsity = form_of(cards=(*cards[::order], CardSpec(EVERY, None, prices=(2.0,)))).sparsity
        assert (sparsity.k, sparsity.price) == (2, 3.5)
    ridge = form_of(ridges=(RidgeSpec(0, None, 1.0), RidgeSpec(0, np.array([1]), 2.0))).ridge
    np.testing.assert_array_equal(ridge, [1.0, 3.0, 1.0, 1.0])


def test_a_constant_stays_and_forced_units_are_paid_for():
    priced = CardSpec(EVERY, 3, prices=(0.5,))
    low = np.array([1.0, -np.inf, -np.inf, -np.inf])
    high = np.array([np.inf, np.inf, -2.0, np.inf])
    form = form_of(constant=7.0, cards=(priced,), bounds=(BoundSpec(0, None, low, high),))
    assert form.constant == 7.0 + 2 * 0.5
    assert (form.sparsity.k, form.sparsity.budget, form.sparsity.units) == (3, 1, 2)
    np.testing.assert_array_equal(form.sparsity.free, [0, 2])


def test_a_bound_at_zero_forces_nothing_and_as_many_as_k_may_be_forced():
    assert form_of(bounds=(BoundSpec(0, None, 0.0, None),)).sparsity.units == P
    two = np.array([1.0, 1.0, 0.0, 0.0])
    form = form_of(bounds=(BoundSpec(0, None, two, None),))
    assert (form.sparsity.k, form.sparsity.budget) == (2, 0)
    with pytest.raises(sm.InfeasibleError, match="3 entries away from zero"):
        form_of(bounds=(BoundSpec(0, None, np.array([1.0, 1.0, 1.0, 0.0]), None),))


def test_equal_bounds_fix_a_coordinate():
    box = form_of(bounds=(BoundSpec(0, np.array([1]), 0.5, 0.5),)).box
    assert box.lower[1] == box.upper[1] == 0.5
    with pytest.raises(sm.InfeasibleError, match="No value satisfies the bounds"):
        form_of(bounds=(BoundSpec(0, np.array([1]), 0.5, 0.4),))


def test_what_is_not_counted_is_free():
    form = form_of(cards=(CardSpec((CountedSpec(0, np.array([0, 2, 3])),), 2),))
    np.testing.assert_array_equal(form.sparsity.free, [1])


@pytest.mark.parametrize(
    "loss",
    [
        replace(LOSS, target=Y + 1.0),
        replace(LOSS, scale=2.0),
        replace(LOSS, reduction="sum"),
        replace(LOSS, offset=np.ones(N)),
        replace(LOSS, observation_weights=np.arange(1.0, N + 1.0)),
        replace(LOSS, blocks=(replace(LOSS.blocks[0], factor=2.0),)),
        replace(LOSS, blocks=(Block(0, None, DenseDesign(2.0 * A)),)),
    ],
)
def test_terms_are_kept_where_nothing_in_a_loss_changed_and_only_there(loss):
    before = declared()
    last = canonicalize(before)[0]
    again = canonicalize(declared(constant=1.0), (before, last))[0]
    assert again.terms is last.terms
    changed = declared(losses=(loss,))
    fresh, kept = canonicalize(changed)[0], canonicalize(changed, (before, last))[0]
    x = np.arange(1.0, P + 1.0)
    for one, other in zip(fresh.terms, kept.terms, strict=True):
        np.testing.assert_array_equal(one.design.matvec(x), other.design.matvec(x))
        np.testing.assert_array_equal(one.target, other.target)
        np.testing.assert_array_equal(one.weights, other.weights)
        assert (one.offset is None) == (other.offset is None)
