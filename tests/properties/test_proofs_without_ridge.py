"""Proofs with little or no ridge against brute force: intercepts, weights, boxes, signs."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize
import scipy.special

import sparsemodel as sm
from sparsemodel.certificates import verify
from sparsemodel.certificates.arithmetic.independent import independent
from sparsemodel.certificates.dual_bounds.coefficient_bounds.bounds import from_data
from sparsemodel.certificates.proving.gram.part import GramPart
from sparsemodel.certificates.proving.prove import prove
from sparsemodel.certificates.statements.objective_interval import primal
from sparsemodel.checker.__main__ import main
from sparsemodel.checker.proof.columns import independent as columns_of_checker
from sparsemodel.designs import DenseDesign, OnesDesign, StackedDesign
from sparsemodel.interfaces import Box, Cardinality, CertificateError, SparseRegression, Term
from sparsemodel.losses import SquaredLoss

OTHERS = ("logistic", "poisson", "huber", "groups", "signs", "price", "parts", "scales")
WEIGHTS = np.random.default_rng(0).uniform(0.5, 1.5, 24)
KINDS = ["plain", "intercept", "box", "signs"]


def make(kind, seed):
    rng = np.random.default_rng(seed)
    p, n, k = int(rng.integers(5, 9)), int(rng.integers(6, 30)), int(rng.integers(1, 4))
    a = rng.standard_normal((n, p)) + rng.choice([0.0, 0.3, 1.0]) * rng.standard_normal((n, 1))
    y = a[:, 0] - a[:, 1] + rng.uniform(0.1, 1.5) * rng.standard_normal(n)
    design, free, box = DenseDesign(a), np.empty(0, dtype=np.intp), None
    ridge = np.full(p, rng.choice([0.0, 0.0, 1e-4, 1e-2]))
    if kind == "intercept":
        design = StackedDesign(n, p + 1, ((np.arange(p), design), (np.array([p]), OnesDesign(n))))
        ridge, free = np.append(ridge, 0.0), np.array([p])
    elif kind == "box":
        box = Box(-rng.uniform(0.0, 0.8, p), rng.uniform(0.01, 0.8, p))
    elif kind == "signs":
        box = Box(np.zeros(p), np.full(p, np.inf))
    term = Term(design, SquaredLoss(), y, rng.uniform(0.3, 1.5, n) / n)
    return SparseRegression((term,), ridge, Cardinality(ridge.size, k, free), box=box)


def brute_force(form):
    (term,), sparsity = form.terms, form.sparsity
    root = np.sqrt(term.weights)
    a = root[:, None] * term.design.restrict(np.arange(sparsity.size)).to_array()
    best = np.inf
    for chosen in itertools.combinations(np.flatnonzero(sparsity.counted), sparsity.k):
        s = np.sort(np.concatenate([sparsity.free, chosen]).astype(np.intp))
        m = np.vstack([a[:, s], np.diag(np.sqrt(form.ridge[s]))])
        b = np.concatenate([root * term.target, np.zeros(s.size)])
        if form.box is None:
            v = np.linalg.lstsq(m, b, rcond=None)[0]
        else:
            box = (form.box.lower[s], form.box.upper[s])
            v = scipy.optimize.lsq_linear(m, b, box, tol=1e-13).x
        best = min(best, 0.5 * float(np.sum(np.square(m @ v - b))))
    return best


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", KINDS)
def test_proofs_within_coefficient_bounds_agree_with_brute_force(kind, seed):
    form = make(kind, seed)
    truth, zero = brute_force(form), np.zeros(form.shape)
    bounds = from_data(form, primal(form, zero), work=1e8, deadline=None)
    assert not isinstance(bounds, str)
    certificate = prove(form, zero, gap=1e-6, time_limit=20.0, bounds=bounds)
    slack = 1e-9 * (1.0 + abs(truth))
    assert certificate.proof["tree"]["gram"] is True
    assert certificate.bound <= truth + slack
    assert truth - slack <= certificate.value <= truth * (1.0 + 2e-6) + slack
    assert certificate.relative_gap <= 1.1e-6
    verify(certificate, form)


@pytest.mark.parametrize("ridge", [0.0, 1e-3, 10.0])
def test_many_columns_take_a_matrix_where_the_ridge_is_weak(monkeypatch, ridge):
    monkeypatch.setattr("sparsemodel.certificates.proving.attempts.LIMIT", 6)
    monkeypatch.setattr(
        "sparsemodel.certificates.dual_bounds.coefficient_bounds.iterate._SHARE", 0.0
    )
    rng = np.random.default_rng(8)
    a = rng.standard_normal((12, 16))
    y = a[:, 0] - a[:, 1] + rng.standard_normal(12)
    form = SparseRegression(
        (Term(DenseDesign(a), SquaredLoss(), y, np.full(12, 1 / 12)),),
        np.full(16, ridge),
        Cardinality(16, 3, np.empty(0, dtype=np.intp)),
    )
    truth = brute_force(form)
    certificate = prove(form, np.zeros(16), gap=1e-6, time_limit=20.0, boxable=True)
    assert certificate.proof["tree"]["gram"] is (ridge < 1.0)
    assert certificate.bound <= truth * (1.0 + 1e-9)
    assert truth * (1.0 - 1e-9) <= certificate.value <= truth * (1.0 + 2e-6)
    verify(certificate, form)


def test_many_rows_of_dependent_columns_are_proved_within_bounds_from_the_data():
    rng = np.random.default_rng(5)
    a = rng.standard_normal((90, 16))
    a[:, 15] = a[:, 6:15].sum(axis=1)  # more columns than a support has
    y = a[:, :3].sum(axis=1) + a[:, 15] + rng.standard_normal(90)
    form = SparseRegression(
        (Term(DenseDesign(a), SquaredLoss(), y, np.full(90, 1 / 90)),),
        np.zeros(16),
        Cardinality(16, 4, np.empty(0, dtype=np.intp)),
    )
    truth = brute_force(form)
    certificate = prove(form, np.zeros(16), gap=1e-6, time_limit=20.0, boxable=True)
    assert certificate.relative_gap <= 1.1e-6
    assert abs(certificate.value - truth) <= 2e-6 * truth
    verify(certificate, form)


@pytest.mark.parametrize(
    ("kind", "loss"),
    [
        ("equal", sm.squared_loss),
        ("negative", sm.squared_loss),
        ("shifted", sm.squared_loss),
        ("equal", sm.huber_loss),
        ("shifted", sm.huber_loss),
    ],
)
def test_equal_columns_are_proved_and_checked(tmp_path, kind, loss):
    rng = np.random.default_rng(9)
    a = np.round(rng.standard_normal((30, 7)), 1)
    a[:, 5] = rng.integers(0, 2, 30)
    a[:, 6] = {"equal": a[:, 0], "negative": -a[:, 5], "shifted": 1.0 - a[:, 5]}[kind]
    y = np.round(a[:, 0] + a[:, 5] + a[:, 1] + 0.5 * rng.standard_normal(30), 1)
    w, c = sm.Variable(7), sm.Variable()
    problem = sm.Problem(sm.minimize(loss(a @ w + c, y)), sm.card(w) <= 3)
    proof = problem.prove(gap=1e-6)
    assert proof.relative_gap <= 1.1e-6
    supports = itertools.combinations(range(7), 3)
    truth = min(problem.restricted(np.array(s)).solve() for s in supports)
    assert abs(proof.value - truth) <= 2e-6 * truth
    verify(proof, problem.form)
    proof.save(tmp_path / "proof.json")
    np.savez(tmp_path / "data.npz", A=a, y=y)
    files = [str(tmp_path / "proof.json"), str(tmp_path / "data.npz")]
    assert main(files) == 0
    assert kind != "shifted" or main([*files, "--exact"]) == 0


@pytest.mark.parametrize("kind", ["nearly", "ridge", "no intercept", "several terms"])
def test_columns_that_differ_get_no_bounds(kind):
    rng = np.random.default_rng(10)
    a = rng.standard_normal((20, 4))
    a[:, 3] = a[:, 0]
    form = SparseRegression(
        (Term(DenseDesign(a), SquaredLoss(), a[:, 0] + a[:, 1], np.full(20, 0.05)),),
        np.zeros(4),
        Cardinality(4, 2, np.empty(0, dtype=np.intp)),
    )
    zero = primal(form, np.zeros(4))
    assert not isinstance(from_data(form, zero, work=1e8, deadline=None), str)
    if kind == "nearly":
        a[3, 3] = np.nextafter(a[3, 3], 9.0)
    elif kind == "ridge":  # with a ridge both together are worth more, and bounded by it alone
        form = replace(form, ridge=np.array([1e-300, 0.0, 0.0, 0.0]))
    elif kind == "no intercept":
        a[:, 0] = 2.0**40 * rng.integers(1, 3, 20)
        a[:, 3] = a[:, 0] + 1.0
    else:
        term = form.terms[0]
        other = replace(term, design=DenseDesign(a + 1e-9 * rng.standard_normal(a.shape)))
        form = replace(form, terms=(term, other))
    form = replace(form, terms=tuple(replace(t) for t in form.terms))
    assert isinstance(from_data(form, zero, work=1e8, deadline=None), str)


@pytest.mark.usefixtures("at_the_root")
def test_a_certificate_without_a_bound_says_what_would_give_one():
    rng = np.random.default_rng(6)
    a = rng.standard_normal((100, 30))
    w = sm.Variable(30)
    loss = sm.absolute_loss(a @ w, a[:, 0] + rng.standard_normal(100))
    for constraints, missing in (([], True), ([w <= 10, w >= -10], False)):
        problem = sm.Problem(sm.minimize(loss), [sm.card(w) <= 4, *constraints])
        problem.solve()
        certificate = problem.certify()
        assert ("raised by" in str(certificate)) is missing
        assert (certificate.bound == 0.0) is missing


def other(kind):
    """Return a problem without ridge, its columns, and its objective at predictions."""
    rng = np.random.default_rng(len(kind))
    n, p, c = 24, 5, WEIGHTS
    a = rng.standard_normal((n, p)) * (10.0 ** rng.uniform(-4, 4, p) if kind == "scales" else 1.0)
    e = a[:, 0] / np.abs(a[:, 0]).mean() - a[:, 1] / np.abs(a[:, 1]).mean()
    y = e + rng.standard_normal(n)
    w, b, sign = sm.Variable(p), sm.Variable(), np.where(y > 0.0, 1.0, -1.0)
    counts = np.floor(np.exp(0.5 * y))
    losses = {
        "poisson": (sm.poisson_loss, counts, lambda u: np.exp(u) - counts * u),
        "huber": (sm.huber_loss, y, lambda u: scipy.special.huber(1.0, y - u)),
        "groups": (sm.squared_loss, y, lambda u: 0.5 * (y - u) ** 2),
    }
    plain = (sm.logistic_loss, sign, lambda u: np.logaddexp(0.0, -sign * u))
    loss, target, value = losses.get(kind, plain)
    allowed = [sm.card(w, groups=[0, 0, 1, 2, 2]) <= 2 if kind == "groups" else sm.card(w) <= 2]
    allowed += {"parts": [sm.card(w[:3]) <= 1], "signs": [w >= 0.0]}.get(kind, [])
    goal = loss(a @ w + b, target, weights=c)
    goal = goal + 0.03 * sm.card(w) if kind == "price" else goal
    return sm.Problem(sm.minimize(goal), allowed), a, lambda u: float(c @ value(u)) / n


def least(kind, a, value):
    """Return the best objective of all supports, each by a general minimiser."""
    n, p = a.shape
    a = np.column_stack([a / np.abs(a).max(axis=0), np.ones(n)])
    best = np.inf
    for chosen in itertools.combinations(range(3 if kind == "groups" else p), 2):
        if kind == "parts" and max(chosen) < 3:
            continue
        held = np.isin([0, 0, 1, 2, 2], chosen) if kind == "groups" else np.isin(range(p), chosen)
        s, price = [*np.flatnonzero(held), p], 0.06 if kind == "price" else 0.0
        low = [(0.0 if kind == "signs" else None, None)] * (len(s) - 1) + [(None, None)]
        found = scipy.optimize.minimize(
            lambda v, s=s: value(a[:, s] @ v), np.zeros(len(s)), bounds=low, options={"ftol": 1e-15}
        )
        best = min(best, found.fun + price)
    if kind == "price":
        for j in range(p):
            found = scipy.optimize.minimize(lambda v, j=j: value(a[:, [j, p]] @ v), np.zeros(2))
            best = min(best, found.fun + 0.03)
    return best


@pytest.mark.parametrize("kind", OTHERS)
def test_proofs_of_any_loss_without_ridge_agree_with_brute_force(kind):
    problem, a, value = other(kind)
    certificate = problem.prove(gap=1e-6)
    truth = least(kind, a, value)
    assert certificate.bound <= truth + 1e-9 * abs(truth)
    assert certificate.value == pytest.approx(truth, rel=1e-5)
    assert certificate.relative_gap <= 1e-5
    verify(certificate, problem.form)


def test_slopes_vanish_only_where_a_dual_point_makes_them(tmp_path):
    problem, a, _ = other("huber")
    proof = problem.prove(gap=1e-6)
    np.savez(tmp_path / "data.npz", A=a, y=problem.form.terms[0].target, c=WEIGHTS)
    for forged in (
        lambda node: node,
        lambda node: node | {"balanced": []},
        # Far from balanced, and claimed to be: what balancing leaves counts.
        lambda node: node | {"duals": [(0.8 * np.sign(a)).tolist() for a in node["duals"]]},
    ):
        tree = dict(proof.proof["tree"])
        tree["nodes"] = [forged(n) if "duals" in n else n for n in tree["nodes"]]
        forgery = replace(proof, proof=proof.proof | {"tree": tree})
        forgery.save(tmp_path / "forged.json")
        holds = main([str(tmp_path / "forged.json"), str(tmp_path / "data.npz")]) == 0
        assert holds == (tree["nodes"] == proof.proof["tree"]["nodes"])
        if not holds:
            with pytest.raises(CertificateError):
                verify(forgery, problem.form)


@pytest.mark.parametrize(("n", "curved"), [(300, False), (600, True)])
def test_curvature_is_taken_out_where_there_is_some(n, curved):
    """As many rows as columns have hardly any, and parts with bounds end sooner without it."""
    a = np.random.default_rng(0).standard_normal((n, 300))
    w = sm.Variable(300)
    form = sm.Problem(sm.minimize(sm.squared_loss(a @ w, a[:, 0])), sm.card(w) <= 3).form
    assert GramPart.root(form, form).curved(None) is curved


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("unit", [1e-300, 1e155, 1e300])
def test_no_column_is_taken_for_zero_in_any_unit(unit, intercept):
    rng = np.random.default_rng(5)
    columns = np.column_stack([rng.standard_normal((9, 3)), np.zeros(9), np.ones(9)])
    columns[4, 0] = 1e-200  # lost beside 1e300 if the column were divided
    used = columns[:, : 5 if intercept else 4] * unit
    for one in (used, np.where(np.arange(used.shape[1]) == 0, used, columns[:, : used.shape[1]])):
        kept = 4 if intercept else 3
        assert np.concatenate(independent([one])).shape == (9, kept)
        assert columns_of_checker([one], False)[0].shape == (9, kept)


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_equal_columns_are_proved_where_a_bound_holds_one_of_them(seed: int) -> None:
    """The slope of the other one at its bound is zero but for rounding, and led on without end."""
    r = np.random.default_rng([5, seed])
    a = r.normal(size=(14, 5))
    a[:, 3], a[:, 4] = a[:, 1], -a[:, 0]
    b = np.sign(r.normal(size=14))
    w, c = sm.Variable(5, name="w"), sm.Variable(name="c")
    goal = sm.minimize(sm.squared_hinge_loss(a @ w + c, b))
    problem = sm.Problem(goal, [sm.card(w) <= 2, w >= 0])
    problem.solve()
    proof = problem.prove(time_limit=20)
    assert proof.relative_gap <= 1e-4
    verify(proof, problem.form)


@pytest.mark.parametrize("seed", [1, pytest.param(0, marks=pytest.mark.slow)])
def test_equal_columns_are_proved_beside_an_inactive_constraint(seed: int, tmp_path: Path) -> None:
    """Negative columns differ in the row of the constraint alone, whose multiplier is zero."""
    r = np.random.default_rng([6, seed])
    a = r.normal(size=(14, 6))
    a[:, 3], a[:, 4] = -a[:, 1], -a[:, 0]
    b = np.sign(a[:, 0] + r.normal(size=14))
    w = sm.Variable(6, name="w")
    goal = sm.minimize(sm.logistic_loss(a @ w, b))
    problem = sm.Problem(goal, [sm.card(w) <= 2, w.sum() <= 0.5])
    problem.solve()
    proof = problem.prove(time_limit=20)
    assert proof.relative_gap <= 1e-4
    verify(proof, problem.form)
    proof.save(tmp_path / "c.json")
    np.savez(tmp_path / "d.npz", A=a, b=b)
    assert main([str(tmp_path / "c.json"), str(tmp_path / "d.npz")]) == 0
