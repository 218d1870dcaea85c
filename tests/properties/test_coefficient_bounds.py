"""Bounds on coefficients from the data alone, against all supports of small problems."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from sparsemodel.certificates import certify, verify
from sparsemodel.certificates.dual_bounds.coefficient_bounds.base import CoefficientBounds
from sparsemodel.certificates.dual_bounds.coefficient_bounds.bounds import fault, from_data
from sparsemodel.certificates.proving.prove import prove
from sparsemodel.certificates.statements.objective_interval import primal
from sparsemodel.designs import DenseDesign
from sparsemodel.interfaces import (
    Box,
    Cardinality,
    CertificateError,
    FloatArray,
    SparseRegression,
    Term,
)
from sparsemodel.losses import SquaredLoss

pytest.importorskip("numba")


@dataclass
class Case:
    """A small problem, with the data as its restricted minimisers see them."""

    form: SparseRegression
    rows: FloatArray
    target: FloatArray
    free: list[int]
    boxed: bool
    """Whether bounds hold coefficients other than by their sign."""

    def minimisers(self) -> list[tuple[list[int], FloatArray, float]]:
        """Return support, minimiser and value for every support."""
        out = []
        size = self.form.sparsity.size
        box = self.form.box
        counted = np.flatnonzero(self.form.sparsity.counted)
        for q in range(1, self.form.sparsity.k + 1):
            for chosen in itertools.combinations(counted.tolist(), q):
                index = [*chosen, *self.free]
                a = self.rows[:, index]
                scale, unit = np.linalg.norm(a, axis=0), float(np.abs(self.target).max())
                if self.boxed and box is not None:
                    limits = (box.lower[index] * scale / unit, box.upper[index] * scale / unit)
                    x = lsq_linear(a / scale, self.target / unit, limits, method="bvls").x
                    x = x / scale * unit
                else:
                    x = np.linalg.lstsq(a / scale, self.target, rcond=None)[0] / scale
                    if box is not None and np.any(x[:q] < 0.0):
                        continue  # the minimiser has a smaller support
                full = np.zeros(size)
                full[index] = x
                out.append((list(chosen), full, 0.5 * np.sum((a @ x - self.target) ** 2)))
        return out


def case(seed: int, *, scale: float = 1.0, offset: float = 0.0) -> Case:
    """Return a random problem: correlated columns, weights, ridges, intercepts, bounds."""
    r = np.random.default_rng(seed)
    p, k, n = int(r.integers(6, 11)), int(r.integers(2, 5)), int(r.integers(8, 60))
    rho = r.uniform(0.0, 0.8)
    x = r.standard_normal((n, p))
    for j in range(1, p):
        x[:, j] = rho * x[:, j - 1] + np.sqrt(1.0 - rho**2) * x[:, j]
    y = (x @ (r.standard_normal(p) * (r.random(p) < 0.5)) + r.standard_normal(n)) * scale
    x *= scale * 10.0 ** (r.uniform(-2.0, 2.0, p) if r.random() < 0.3 else np.zeros(p))
    c = r.uniform(0.2, 2.0, n) / n if r.random() < 0.5 else np.full(n, 1.0 / n)
    free = [0] if r.random() < 0.3 else []
    ridge = np.zeros(p)
    if r.random() < 0.5:
        ridge[:] = 10.0 ** r.uniform(-5.0, -1.0) * np.mean(c @ np.square(x))
    own, target = x, y
    size = p
    if r.random() < 0.5:
        mean = c @ x / c.sum()
        own, target = x - mean, y - c @ y / c.sum()
        x = np.column_stack([x + offset * scale, np.ones(n)])
        own, ridge, size = np.column_stack([own, np.zeros(n)]), np.append(ridge, 0.0), p + 1
    always = [*free, p] if size > p else free
    rows = np.vstack([np.sqrt(c)[:, None] * own, np.diag(np.sqrt(ridge))])
    aim = np.concatenate([np.sqrt(c) * target, np.zeros(size)])
    kind, box = int(r.integers(3)), None
    if kind:
        reach = np.abs(rows.T @ aim) / np.maximum(np.square(rows).sum(axis=0), 1e-300)
        lower = np.zeros(size) if kind == 1 else -reach * r.uniform(0.1, 1.5, size)
        upper = np.full(size, np.inf) if kind == 1 else reach * r.uniform(0.1, 1.5, size)
        lower[always], upper[always] = -np.inf, np.inf
        box = Box(lower, upper)
    form = SparseRegression(
        terms=(Term(DenseDesign(x), SquaredLoss(), y, c),),
        ridge=ridge,
        sparsity=Cardinality(size, k, free=np.array(always, dtype=np.intp)),
        box=box,
    )
    return Case(form, rows, aim, free, kind == 2)


def bounds_of(form: SparseRegression) -> CoefficientBounds | str:
    return from_data(form, primal(form, np.zeros(form.shape)), work=1e9, deadline=None)


@pytest.mark.parametrize(
    ("scale", "offset"),
    [
        (1.0, 0.0),
        (1e-8, 1e5),
        (1e8, 0.0),
        *(pytest.param(*one, marks=pytest.mark.slow) for one in ((1.0, 1e5), (1e8, 1e5))),
        pytest.param(1e-8, 0.0, marks=pytest.mark.slow),
    ],
)
def test_every_restricted_minimiser_lies_within_the_bounds(scale: float, offset: float) -> None:
    applied = 0
    for seed in range(25):
        one = case(seed, scale=scale, offset=offset)
        bounds = bounds_of(one.form)
        if isinstance(bounds, str):
            continue
        applied += 1
        counted = one.form.sparsity.counted
        for _, x, value in one.minimisers():
            if value <= bounds.level:
                assert np.all(np.abs(x[counted]) <= bounds.radius[counted] * (1.0 + 1e-7))
    assert applied >= 20


def test_the_check_accepts_the_bounds_and_refuses_smaller_ones() -> None:
    for seed in range(40):
        form = case(seed).form
        bounds = bounds_of(form)
        if isinstance(bounds, str):
            continue
        at_zero = primal(form, np.zeros(form.shape))
        assert fault(form, bounds, at_zero) == ""
        # The largest coefficient over all supports fills most of its bound: half of it is wrong.
        assert fault(form, replace(bounds, radius=0.5 * bounds.radius), at_zero)


@pytest.mark.parametrize(
    "seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 16))]
)
def test_no_bound_is_above_the_best_support(seed: int) -> None:
    one = case(seed + 100)
    if one.form.box is not None:
        one = replace(one, form=replace(one.form, box=None), boxed=False)
    best_x, best = min(((x, v) for _, x, v in one.minimisers()), key=lambda pair: pair[1])
    form = one.form
    start = np.zeros(form.shape)
    certificate = certify(form, start)
    assert certificate.bound <= best * (1.0 + 1e-9)
    verify(certificate, form)
    bounds = bounds_of(form)
    if isinstance(bounds, str):
        return
    proof = prove(form, start, gap=1e-6, time_limit=20.0, bounds=bounds)
    assert best * (1.0 - 1e-5) <= proof.bound <= best * (1.0 + 1e-9)
    assert proof.upper >= best * (1.0 - 1e-9)
    counted = form.sparsity.counted
    assert set(proof.support) <= set(np.flatnonzero(counted))
    assert np.count_nonzero(best_x[counted]) <= form.sparsity.k
    verify(proof, form)


@pytest.mark.parametrize("seed", range(6))
def test_a_certificate_with_smaller_bounds_is_refused(seed: int) -> None:
    form = case(seed + 100).form
    form = replace(form, box=None, ridge=np.zeros_like(form.ridge))
    bounds = bounds_of(form)
    if isinstance(bounds, str):
        pytest.skip("the columns are too correlated")
    proof = prove(form, np.zeros(form.shape), gap=1e-3, time_limit=20.0, bounds=bounds)
    for j in np.flatnonzero(form.sparsity.counted)[:3]:
        radius = bounds.radius.copy()
        radius[j] *= 0.2
        witness = replace(proof.witness, bounds=replace(bounds, radius=radius))
        with pytest.raises(CertificateError, match=r"witness\.bounds"):
            verify(replace(proof, witness=witness), form)


def test_an_intercept_beside_declared_bounds_leaves_a_bound() -> None:
    r = np.random.default_rng(7)
    x = np.column_stack([r.standard_normal((12, 30)), np.ones(12)])
    y = 2.0 * x[:, 3] + 5.0 + 0.1 * r.standard_normal(12)
    limit = np.append(np.full(30, 3.0), np.inf)
    form = SparseRegression(
        terms=(Term(DenseDesign(x), SquaredLoss(), y, np.full(12, 1.0 / 12.0)),),
        ridge=np.zeros(31),
        sparsity=Cardinality(31, 1, free=np.array([30], dtype=np.intp)),
        box=Box(-limit, limit),
    )
    best = min(
        0.5 * np.mean((np.delete(x, np.setdiff1d(range(30), [j]), 1) @ b - y) ** 2)
        for j in range(30)
        for b in [np.linalg.lstsq(x[:, [j, 30]], y, rcond=None)[0]]
    )
    certificate = certify(form, np.append(np.zeros(30), 5.0))
    assert 0.0 < certificate.bound <= best
