"""The sparse dual: weak duality, the primal point of a dual point, and what the methods cost."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparsemodel as sm
from sparsemodel.interfaces import Box, Context, ModelError, priced
from sparsemodel.numerics import (
    RegressionObjective,
    correlations,
    dual_value,
    minimise_restricted,
    primal_of,
    project_dual,
    shrink_dual,
)
from sparsemodel.testing.instances import catalogue
from sparsemodel.testing.instances.reference import brute_force
from sparsemodel_backends.diht import DIHT
from sparsemodel_backends.sdiht import SDIHT

MAKERS = (
    catalogue.squared_ridge,
    catalogue.logistic_weights,
    catalogue.squared_groups,
    catalogue.ridge_vector,
    catalogue.logistic_offset,
    catalogue.mixed_terms,
    catalogue.priced_support,
    catalogue.bounded,
    catalogue.huber,
    catalogue.poisson,
    catalogue.squared_hinge,
    catalogue.smoothed_hinge,
    catalogue.hinge,
)


def drawn_dual(form, seed, size):
    rng = np.random.default_rng(seed)
    a = tuple(size * rng.standard_normal(term.target.shape) for term in form.terms)
    return project_dual(form, a)


def bound_at(objective, a):
    least = primal_of(objective.form, correlations(objective, a))[2]
    return dual_value(objective.form, a, least)


@pytest.mark.parametrize("maker", MAKERS)
@given(seed=st.integers(0, 2**32 - 1), size=st.sampled_from([0.01, 0.3, 3.0]))
def test_every_dual_point_bounds_the_minimum(maker, seed, size):
    instance = catalogue.instance(maker)
    objective = instance.objective()
    a = drawn_dual(objective.form, seed, size)
    reference = brute_force(instance)
    assert bound_at(objective, a) <= reference.value + 1e-9 * reference.scale
    # The Lagrangian at its minimiser w(a) is no larger than at any other sparse point.
    q = correlations(objective, a)
    support, values, least = primal_of(objective.form, q)
    sparsity, ridge = objective.cardinality, objective.form.ridge

    def lagrangian(x):
        return q @ x + 0.5 * ridge @ x**2 + sparsity.price * sparsity.count(x)

    box = objective.form.box or Box(np.full(q.size, -np.inf), np.full(q.size, np.inf))
    w = np.zeros(sparsity.size)
    w[support] = values
    assert np.all((w >= box.lower) & (w <= box.upper))
    assert sparsity.count(w) <= sparsity.k
    assert lagrangian(w) == pytest.approx(least, rel=1e-12, abs=1e-12)
    other = np.random.default_rng(seed).standard_normal(sparsity.size)
    other = np.clip(other, box.lower, box.upper)
    units = np.arange(min(sparsity.k, sparsity.units))
    other[np.setdiff1d(np.arange(sparsity.size), sparsity.coordinates(units))] = 0.0
    assert least <= lagrangian(other) + 1e-12


@pytest.mark.parametrize("maker", MAKERS)
@given(seed=st.integers(0, 2**32 - 1))
def test_shrinking_finds_the_best_multiple(maker, seed):
    objective = catalogue.instance(maker).objective()
    a = drawn_dual(objective.form, seed, 3.0)
    s = shrink_dual(objective.form, a, correlations(objective, a))
    assert 0.0 < s <= 1.0
    best = bound_at(objective, tuple(s * part for part in a))
    for t in (1e-6, 1e-3, 0.03, 0.3, 0.9, 1.0):
        other = bound_at(objective, tuple(t * part for part in a))
        assert best >= other - 1e-6 * (1.0 + abs(other))


@pytest.mark.parametrize("backend", [DIHT(), SDIHT()])
@pytest.mark.parametrize("maker", MAKERS)
def test_the_bound_is_that_of_the_dual_point_returned(backend, maker):
    objective = catalogue.instance(maker).objective()
    context = Context(minimise_restricted)
    state = backend.init(objective, context)
    for _ in range(10):
        state = backend.step(objective, state, context)
    # The dual is returned with the weights inside; take them out again.
    a = tuple(
        np.divide(theta, term.weights, out=np.zeros_like(theta), where=term.weights > 0.0)
        for term, theta in zip(objective.form.terms, backend.dual(state), strict=True)
    )
    assert bound_at(objective, a) == pytest.approx(state.bound, rel=1e-8, abs=1e-10)
    value = priced(objective, backend.iterate(state))
    assert backend.residual(state) == pytest.approx(value - state.bound, rel=1e-8, abs=1e-10)
    assert value >= state.bound - 1e-10


def test_an_iteration_costs_half_a_pass():
    objective = catalogue.instance(catalogue.wide_logistic_ridge).objective()
    backend = DIHT(max_iter=50, patience=1000)
    backend.solve(objective, Context(minimise_restricted))
    # Half a pass at the start, and one for each new best primal point (few).
    assert 50 * 0.5 <= objective.work.passes <= 50 * 0.5 + 4.0


def test_an_epoch_costs_one_pass_and_the_refreshed_sums():
    objective = catalogue.instance(catalogue.wide_logistic_ridge).objective()
    SDIHT(max_iter=20, patience=1000).solve(objective, Context(minimise_restricted))
    assert 20.0 <= objective.work.passes <= 20.0 + 2 * 0.5 + 4.0


def test_the_paper_s_own_steps_are_an_option():
    """Algorithm 1 with 1 / (t + 2): the first dual point for squared loss is -y / 2."""
    instance = catalogue.instance(catalogue.squared_ridge)
    objective = instance.objective()
    backend = DIHT(shifted=False, restarts=False)
    context = Context(minimise_restricted)
    state = backend.step(objective, backend.init(objective, context), context)
    np.testing.assert_allclose(state.a[0], -instance.data[0].target / 2.0, rtol=1e-9)


def ten_steps(method, design, target, loss):
    """Return the states of a run of ten steps on this design, and the design's kind."""
    w = sm.Variable(18)
    goal = sm.minimize(loss(sm.as_design(design) @ w, target) + sm.ridge(w, 0.1))
    objective = RegressionObjective(sm.Problem(goal, sm.card(w) <= 3).form)
    context = Context(minimise_restricted, rng=np.random.default_rng(1))
    states = [method.init(objective, context)]
    for _ in range(10):
        states.append(method.step(objective, states[-1], context))
    return states, type(objective.form.terms[0].design).__name__


@pytest.mark.parametrize("cluster", [False, True])
def test_the_iterates_over_blocks_are_those_in_memory(cluster, monkeypatch):
    """On threads of Dask, and on the workers of a cluster."""
    da = pytest.importorskip("dask.array")
    distributed = pytest.importorskip("distributed")
    from sparsemodel.designs.remote import columns

    monkeypatch.setattr(columns, "KEPT_BYTES", 0)  # nothing comes over whole
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 18))
    y = A[:, 2] - 2.0 * A[:, 7] + rng.standard_normal(60)
    there = nullcontext()
    if cluster:
        there = distributed.Client(
            processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0"
        )
    methods = [DIHT.as_published(), SDIHT.as_published(batches=2)]
    losses = [sm.squared_loss]
    if not cluster:  # where an iteration takes much longer
        methods += [DIHT(), SDIHT(), DIHT.as_published(schedule="constant")]
        losses += [sm.smoothed_hinge_loss, sm.hinge_loss]
    with there:
        for method in methods:
            for loss in losses:
                if method.schedule == "constant" and loss is not sm.squared_loss:
                    continue
                target = y if loss is sm.squared_loss else np.where(y > 0.0, 1.0, -1.0)
                near, kind = ten_steps(method, A, target, loss)
                assert kind == "DenseDesign"
                blocks = da.from_array(A, chunks=(35, 18))
                far, kind = ten_steps(method, blocks, target, loss)
                assert kind == "DistributedDesign"
                for mine, other in zip(far, near, strict=True):
                    a, expected = mine.a[0], other.a[0]
                    np.testing.assert_allclose(a, expected, atol=1e-9 * np.abs(expected).max())
                    np.testing.assert_allclose(mine.current.x, other.current.x, rtol=1e-9)
                    assert mine.bound == pytest.approx(other.bound, rel=1e-9)
                    assert mine.best.value == pytest.approx(other.best.value, rel=1e-9)
                assert len({state.a[0].tobytes() for state in near}) >= 5


def test_hinge_losses_need_no_smoothing():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 20))
    y = np.sign(A[:, 0] + 0.1 * rng.standard_normal(60))
    w = sm.Variable(20)
    problem = sm.Problem(sm.minimize(sm.hinge_loss(A @ w, y) + sm.ridge(w, 0.1)), sm.card(w) <= 1)
    for name in ("diht", "sdiht"):
        solution = problem.solve(name, max_iter=50)
        assert solution.value >= solution.bound
        assert solution.value == pytest.approx(problem.solve("exhaustive").value, rel=1e-6)


def test_a_certificate_takes_the_dual_point_of_the_run():
    """Squared loss with a strong ridge: the gap that is certified is zero."""
    rng = np.random.default_rng(1)
    A = rng.standard_normal((50, 30))
    w = sm.Variable(30)
    loss = sm.squared_loss(A @ w, A[:, :3] @ [2.0, -2.0, 1.5])
    problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 5.0)), sm.card(w) <= 3)
    problem.solve("diht")
    assert problem.certify().gap <= 1e-6


def test_what_is_refused():
    form = catalogue.instance(catalogue.squared_intercept).form()
    assert "ridge on every coordinate" in DIHT().objections(form)[0]
    assert SDIHT().objections(form) == DIHT().objections(form)
    assert "positive ridge" in DIHT().objections(catalogue.instance(catalogue.squared).form())[0]
    everywhere = replace(form, ridge=np.ones(form.sparsity.size))
    assert DIHT().objections(everywhere) == ()
    assert RegressionObjective(everywhere).cardinality.free.size == 1
    with pytest.raises(ModelError, match="tol"):
        DIHT(tol=-1.0)
    with pytest.raises(ModelError, match="patience"):
        SDIHT(patience=0)
    with pytest.raises(ModelError, match="batches"):
        SDIHT(batches=0)
    with pytest.raises(ModelError, match="scale"):
        SDIHT(scale=0.0)
