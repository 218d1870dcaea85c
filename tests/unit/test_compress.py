"""Many observations of squared losses become few with the same objective."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsemodel as sm
from sparsemodel.compiler.facts.analysis import Facts
from sparsemodel.compiler.reductions.chain import reduce_form
from sparsemodel.compiler.reductions.compress import Compress
from sparsemodel.designs import DenseDesign
from sparsemodel.interfaces import Cardinality, SparseRegression, Term
from sparsemodel.losses import SquaredLoss
from sparsemodel.numerics import RegressionObjective, observations


def form(rng: np.random.Generator, n: int, p: int, *, terms: int, outputs: int) -> SparseRegression:
    made = []
    for _ in range(terms):
        A = rng.standard_normal((n, p)) * rng.uniform(0.1, 10.0, p)
        if p > 3:
            A[:, 3] = A[:, 0] - A[:, 1]  # singular
        shape = (n, outputs) if outputs > 1 else (n,)
        made.append(
            Term(
                DenseDesign(A),
                SquaredLoss(),
                rng.standard_normal(shape),
                rng.uniform(0.0, 2.0, n),
                rng.standard_normal(shape),
            )
        )
    return SparseRegression(
        tuple(made),
        rng.uniform(0.0, 1.0, p),
        Cardinality(p, 1),
        outputs=outputs,
        matrix=outputs > 1,
        constant=0.3,
    )


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 60),
    p=st.integers(1, 12),
    terms=st.integers(1, 2),
    outputs=st.sampled_from([1, 3]),
)
def test_values_and_gradients_are_kept(seed, n, p, terms, outputs):
    rng = np.random.default_rng(seed)
    before = form(rng, n, p, terms=terms, outputs=outputs)
    reduction = Compress.from_form(before)
    after = reduction.apply(before)
    assert after.terms[0].design.shape[0] <= min(p, terms * n)
    one, two = RegressionObjective(before), RegressionObjective(after)
    for scale in (0.0, 1.0, 100.0):
        x = scale * rng.standard_normal(before.shape)
        a, b = one.point_from(x), two.point_from(x)
        size = abs(one.origin().value) + abs(a.value)
        assert abs(a.value - b.value) <= 1e-12 * size
        g = one.gradient(a)
        np.testing.assert_allclose(two.gradient(b), g, atol=1e-11 * (1.0 + np.abs(g).max()))


@pytest.mark.parametrize("intercept", [False, True])
def test_the_solution_and_its_bound_are_those_of_the_data(monkeypatch, intercept):
    rng = np.random.default_rng(1)
    A = rng.standard_normal((600, 30)) + 3.0
    b = A[:, [2, 7, 20]] @ [1.0, -2.0, 1.5] + rng.standard_normal(600) + 4.0 * intercept
    solutions = []
    for pays in (True, False):
        monkeypatch.setattr(Compress, "pays", staticmethod(lambda form, pays=pays: pays))
        w = sm.Variable(30)
        prediction = A @ w + sm.Variable() if intercept else A @ w
        problem = sm.Problem(
            sm.minimize(sm.squared_loss(prediction, b) + sm.ridge(w, 0.1)), sm.card(w) <= 3
        )
        solutions.append(problem.solve())
        assert ("compressed" in problem.explain(full=True)) is pays
    first, second = solutions
    assert first.support.tolist() == second.support.tolist()
    assert first.value == pytest.approx(second.value, rel=1e-12)
    assert first.bound <= first.value
    assert first.bound == pytest.approx(second.bound, rel=1e-6)
    assert first.passes <= second.passes + 0.5  # the reading that compresses


def test_it_is_not_done_where_it_does_not_pay():
    rng = np.random.default_rng(2)
    for n, p, k in ((100, 50, 3), (5000, 900, 3)):
        w = sm.Variable(p)
        problem = sm.Problem(
            sm.minimize(sm.squared_loss(rng.standard_normal((n, p)) @ w, np.ones(n))),
            sm.card(w) <= k,
        )
        reduced = reduce_form(problem.form, Facts(problem.form))
        assert not any(isinstance(r, Compress) for r in reduced.reductions)


def test_a_path_reads_the_data_a_few_times():
    rng = np.random.default_rng(3)
    A = rng.standard_normal((4000, 40))
    b = A[:, :20] @ rng.standard_normal(20) + rng.standard_normal(4000)
    w = sm.Variable(40)
    goal = sm.minimize(sm.squared_loss(A @ w, b))
    path = sm.Problem(goal, sm.card(w) <= 20).path
    # A search at every k reads the compressed data: a few of their passes are one of the data.
    assert path(range(1, 21), effort="low").passes < 6.0
    alone = sum(sm.Problem(goal, sm.card(w) <= k).solve().passes for k in range(1, 21))
    assert path(range(1, 21)).passes < 0.7 * alone


def test_no_weight_at_all():
    empty = form(np.random.default_rng(4), 9, 3, terms=1, outputs=1)
    term = empty.terms[0]
    nothing = SparseRegression(
        (Term(term.design, term.loss, term.target, np.zeros(9)),), np.ones(3), Cardinality(3, 1)
    )
    after = Compress.from_form(nothing).apply(nothing)
    assert RegressionObjective(after).point_from(np.ones(3)).value == pytest.approx(1.5)


def test_compressed_rows_count_as_the_observations_that_they_stand_for():
    """What ends a search where observations are many for each unit must not depend on it."""
    rng = np.random.default_rng(7)
    A = rng.standard_normal((4000, 40)) * np.append(np.ones(20), np.full(20, 30.0))
    w, b = sm.Variable(40), sm.Variable()
    loss = sm.squared_loss(sm.as_design(A) @ w + b, rng.standard_normal(4000))
    problem = sm.Problem(sm.minimize(loss), [sm.card(w) <= 15])
    _, reduced = problem._compiled().analysis()
    (term,) = reduced.form.terms
    assert term.design.shape[0] <= 42
    assert observations(RegressionObjective(reduced.form)) == 4000


def test_many_columns_are_not_compressed_for_few_units_unless_they_are_in_files(
    tmp_path: Path,
) -> None:
    A, y = np.ones((1600, 200)), np.ones(1600)
    A[::2] = 0.0
    np.save(tmp_path / "A.npy", A)
    mapped = sm.as_design(np.load(tmp_path / "A.npy", mmap_mode="r"))
    for k, design, pays in ((5, A, False), (8, A, True), (5, mapped, True)):
        w = sm.Variable(200)
        problem = sm.Problem(sm.minimize(sm.squared_loss(design @ w, y)), sm.card(w) <= k)
        assert Compress.pays(problem.form) is pays
