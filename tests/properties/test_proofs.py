"""Branch and bound against brute force, for every kind of problem it accepts."""

from __future__ import annotations

import copy
import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from sparsemodel.certificates import Certificate, verify
from sparsemodel.certificates.proving.dual import subproblem
from sparsemodel.certificates.proving.prove import prove
from sparsemodel.certificates.statements.objective_interval import primal
from sparsemodel.designs import DenseDesign, OnesDesign, StackedDesign
from sparsemodel.designs.dense import DenseColumns
from sparsemodel.interfaces import (
    Box,
    Cardinality,
    CertificateError,
    DataError,
    SparseRegression,
    Term,
)
from sparsemodel.losses import (
    AbsoluteLoss,
    HuberLoss,
    LogisticLoss,
    PoissonLoss,
    SmoothedHingeLoss,
    SquaredLoss,
)
from sparsemodel.numerics import RegressionObjective, minimise_on_support

LOSSES = [SquaredLoss(), LogisticLoss(), HuberLoss(0.7), SmoothedHingeLoss(0.5)]
VARIANTS = ["plain", "intercept", "always in", "groups", "price", "wide"]


def make(loss, variant, rng):
    n, p, k = (12, 7, 2) if variant == "wide" else (25, 6, 2)
    n = 5 if variant == "wide" else n
    a = rng.standard_normal((n, p)) + 0.7 * rng.standard_normal((n, 1))
    u = a[:, 0] - a[:, 1] + 0.8 * rng.standard_normal(n)
    labelled = isinstance(loss, LogisticLoss | SmoothedHingeLoss)
    y = np.where(u > 0.0, 1.0, -1.0) if labelled else u
    if labelled:
        y[:2] = [1.0, -1.0]
    design, ridge = DenseDesign(a), np.full(p, 0.05)
    free, groups, price = np.empty(0, dtype=np.intp), None, 0.0
    if variant == "intercept":
        design = StackedDesign(n, p + 1, ((np.arange(p), design), (np.array([p]), OnesDesign(n))))
        ridge, free = np.append(ridge, 0.0), np.array([p])
    if variant == "always in":
        free = np.array([1])
    if variant == "groups":
        groups = np.array([0, 0, 1, 1, 2, 2])
    if variant == "price":
        price, k = 0.03, p
    term = Term(design, loss, y, np.full(n, 1.0 / n))
    return SparseRegression((term,), ridge, Cardinality(ridge.size, k, free, groups, price))


def every_support(form):
    objective, sparsity = RegressionObjective(form), form.sparsity
    for size in range(min(sparsity.k, sparsity.units) + 1):
        for units in itertools.combinations(range(sparsity.units), size):
            support = sparsity.coordinates(np.array(units, dtype=np.intp))
            point = minimise_on_support(objective, support, objective.origin())
            yield point.value + sparsity.price * sparsity.count(point.x)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_proofs_agree_with_brute_force(loss, variant, seed):
    form = make(loss, variant, np.random.default_rng(seed))
    best = min(every_support(form))
    c = prove(form, np.zeros(form.shape), gap=1e-5)
    slack = 1e-9 * (1.0 + abs(best))
    assert c.bound <= best + slack
    assert c.value >= best - slack
    assert c.value - best <= 2e-5 * max(abs(best), 1e-3) + slack
    assert c.relative_gap <= 1e-5 * (1.0 + 1e-6)
    assert verify(c, form).claim is c.claim


@pytest.mark.parametrize("single", [False, True])
def test_columns_of_the_data_are_not_copied_for_nodes(single, monkeypatch):
    monkeypatch.setattr(subproblem, "LIMIT", 2)
    form = make(LogisticLoss(), "intercept", np.random.default_rng(4))
    if single:
        (index, block), intercept = form.terms[0].design.blocks
        design = StackedDesign(
            25, 7, ((index, DenseDesign(block.array.astype(np.float32))), intercept)
        )
        form = replace(form, terms=(replace(form.terms[0], design=design),))
    used, product = [], DenseColumns.rmatvec
    monkeypatch.setattr(DenseColumns, "rmatvec", lambda *a: used.append(1) or product(*a))
    proof = prove(form, np.zeros(7), gap=1e-7)
    best = min(every_support(form))
    assert proof.relative_gap <= 1e-7
    assert proof.bound <= best <= proof.upper + 1e-9
    assert used
    verify(proof, form)


def test_a_search_that_is_cut_short_still_bounds():
    rng = np.random.default_rng(5)
    a, y = rng.standard_normal((20, 18)), rng.standard_normal(20)
    term = Term(DenseDesign(a), SquaredLoss(), y, np.full(20, 0.05))
    form = SparseRegression((term,), np.full(18, 0.05), Cardinality(18, 3))
    best = min(every_support(form))
    for nodes in (1, 3, 9):
        c = prove(form, np.zeros(18), gap=1e-6, max_nodes=nodes)
        assert c.bound <= best
        assert primal(form, c.x).upper >= best - 1e-12
    assert math.isfinite(c.bound)


def harder(loss, variant, seed):
    """A problem that takes dozens of regions."""
    rng = np.random.default_rng(seed)
    n, p = 24, 8
    a = (rng.standard_normal((n, p)) + rng.standard_normal((n, 1))) * (1.0 + (np.arange(p) == 3))
    u = a[:, 0] - a[:, 1] + a[:, 2] + 1.5 * rng.standard_normal(n)
    y = np.sign(u) if isinstance(loss, LogisticLoss | SmoothedHingeLoss) else u
    if isinstance(loss, PoissonLoss):
        y = rng.poisson(np.exp(np.clip(0.3 * u, -2.0, 2.0))).astype(float)
    if variant == "badly scaled":
        a[:, ::2] *= 300.0
    ridge = 1e-3 * np.square(a).mean(axis=0)
    design, free, k = DenseDesign(a), np.empty(0, dtype=np.intp), 3
    groups, price, box = None, 0.0, None
    if variant == "intercept":
        design = StackedDesign(n, p + 1, ((np.arange(p), design), (np.array([p]), OnesDesign(n))))
        ridge, free = np.append(ridge, 0.0), np.array([p])
    if variant == "groups":
        groups, k = np.repeat(np.arange(4), 2), 2
        ridge = np.full(p, ridge.mean())
    if variant == "price":
        price, k = 0.01, p
    if variant == "bounds":
        box = Box(np.zeros(p), np.full(p, 0.7))
    term = Term(design, loss, y, np.full(n, 1.0 / n))
    sparsity = Cardinality(ridge.size, k, free, groups, price)
    return SparseRegression((term,), ridge, sparsity, box=box)


RESUMED = [
    (LogisticLoss(), "plain"),
    (LogisticLoss(), "intercept"),
    (HuberLoss(0.7), "badly scaled"),
    (SmoothedHingeLoss(0.5), "intercept"),
    (PoissonLoss(), "plain"),
    (LogisticLoss(), "groups"),
    (SquaredLoss(), "price"),
    (SquaredLoss(), "groups"),
    (SquaredLoss(), "bounds"),
    (HuberLoss(0.7), "bounds"),
    (AbsoluteLoss(), "plain"),
]


@pytest.mark.parametrize(("loss", "variant"), RESUMED, ids=lambda c: getattr(c, "name", c))
def test_interrupted_and_resumed_is_as_good_as_never_interrupted(loss, variant, tmp_path):
    form = harder(loss, variant, 3)
    start = np.zeros(form.shape)
    whole = prove(form, start, gap=1e-4)
    assert whole.relative_gap <= 1e-4
    assert verify(whole, form).claim is whole.claim
    first = prove(form, start, gap=1e-4, max_nodes=4)
    assert verify(first, form)
    halfway = prove(form, first.x, gap=1e-4, resume=first, max_nodes=4)
    assert halfway.bound >= first.bound - 1e-12 * abs(first.bound)  # rounded otherwise
    halfway = Certificate.load(halfway.save(tmp_path / "proof.json"))
    second = prove(form, halfway.x, gap=1e-4, resume=halfway)
    assert second.value == pytest.approx(whole.value, rel=2e-4)
    assert second.relative_gap <= 1e-4
    assert second.proof["summary"]["open"] == 0
    assert verify(second, form).claim is second.claim
    best = min(every_support(form)) if form.box is None and loss != AbsoluteLoss() else whole.value
    assert second.bound <= best + 1e-9 * (1.0 + abs(best))
    # What was closed stays as it was recorded.
    before, after = halfway.proof["tree"]["nodes"], second.proof["tree"]["nodes"]
    for old, new in zip(before, after, strict=False):
        assert {key: new[key] for key in old if key != "branch"} == {
            key: value for key, value in old.items() if key != "branch"
        }


def test_a_tree_that_promises_too_much_is_not_believed():
    form = harder(LogisticLoss(), "plain", 3)
    c = prove(form, np.zeros(form.shape), gap=1e-4)
    records = c.proof["tree"]["nodes"]
    assert len(records) > 5

    def changed(change):
        tree = copy.deepcopy(c.proof["tree"])
        change(tree["nodes"])
        return replace(c, proof={**c.proof, "tree": tree})

    def decide_more(nodes):
        nodes[0] = {"duals": nodes[0]["duals"], "out": list(range(form.sparsity.units)), "in": []}

    def forget_a_part(nodes):
        branch = next(r for r in nodes if "branch" in r and min(r["branch"][1:]) >= 0)
        branch["branch"][1] = -1

    def point_elsewhere(nodes):
        leaves = [r for r in nodes if "branch" not in r and "next" not in r]
        for leaf in leaves:
            leaf["duals"] = [[0.0] * 24]

    def twice(nodes):
        branch = next(r for r in nodes if "branch" in r and min(r["branch"][1:]) >= 0)
        branch["branch"][2] = branch["branch"][1]

    def too_long(nodes):
        nodes[0]["duals"][0].append(0.0)

    for change in (decide_more, forget_a_part, point_elsewhere, twice, too_long):
        with pytest.raises(CertificateError, match=r"'(proof|bound|proof\.tree)'"):
            verify(changed(change), form)


def test_a_proof_whose_regions_are_not_in_the_file_is_not_called_verified():
    form = make(LogisticLoss(), "intercept", np.random.default_rng(1))
    c = prove(form, np.zeros(form.shape))
    with pytest.raises(CertificateError, match="line 'proof' cannot be checked"):
        verify(replace(c, proof={**c.proof, "tree": None}), form)


def test_a_bad_start_is_refused():
    form = make(SquaredLoss(), "plain", np.random.default_rng(0))
    with pytest.raises(DataError, match="infeasible"):
        prove(form, np.ones(form.shape))
    with pytest.raises(DataError, match="gap"):
        prove(form, np.zeros(form.shape), gap=0.0)
