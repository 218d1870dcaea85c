"""The checker's floats with error bounds hold what exact arithmetic gives; what it reads."""

from __future__ import annotations

import ast
import itertools
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import sparsemodel as sm
from sparsemodel.certificates import certify
from sparsemodel.certificates.dual_bounds.diagonal_shift import certainly_psd
from sparsemodel.checker.__main__ import main
from sparsemodel.checker.files import Data, Refuted
from sparsemodel.checker.proof.arithmetic import Ball, high, low, number
from sparsemodel.checker.proof.losses import Term, loss_of
from sparsemodel.checker.proof.problem import Problem
from sparsemodel.checker.proof.quadratic import check_curvature, has_curvature
from sparsemodel.checker.proof.supports import Supports, Tree

ROOT = Path(__file__).parents[2]


def test_balls_hold_the_exact_results() -> None:
    rng = np.random.default_rng(1)
    for scale in (1.0, 1e-200, 1e150):
        x, y = rng.standard_normal((2, 6)) * scale, rng.standard_normal((2, 6))
        one, two = Ball(x[0], 1e-14 * np.abs(x[0])), Ball(y[0])
        fx, fy = [Fraction(v) for v in x[0]], [Fraction(v) for v in y[0]]
        for found, exact in (
            (one + two, [p + q for p, q in zip(fx, fy, strict=True)]),
            (one - two, [p - q for p, q in zip(fx, fy, strict=True)]),
            (one * two, [p * q for p, q in zip(fx, fy, strict=True)]),
            (one / two, [p / q for p, q in zip(fx, fy, strict=True)]),
            (Ball(x) @ Ball(y).T, None),
        ):
            if exact is None:
                exact = [
                    sum(Fraction(p) * Fraction(q) for p, q in zip(r, c, strict=True))
                    for r in x
                    for c in y
                ]
            ends = zip(low(found).ravel(), exact, high(found).ravel(), strict=True)
            assert all(Fraction(a) <= e <= Fraction(b) for a, e, b in ends)
            assert np.all(found.rad <= 1e-13 * np.abs(found.mid).max() + 1e-290)


def test_products_lose_no_digits_where_sums_cancel() -> None:
    rng = np.random.default_rng(2)
    for scale in (1.0, 1e-90, 1e90):
        x = 1e8 * scale + scale * rng.standard_normal((2, 30))
        y = rng.standard_normal((30, 2)) * 10.0 ** rng.integers(-6, 7, (30, 1))
        y -= y.mean(axis=0)
        for right in (y, y[:, 0]):
            found = Ball(x) @ Ball(right)
            columns = right.T if right.ndim == 2 else [right]
            exact = [
                sum(Fraction(p) * Fraction(q) for p, q in zip(r, c, strict=True))
                for r in x
                for c in columns
            ]
            ends = zip(low(found).ravel(), exact, high(found).ravel(), strict=True)
            assert all(Fraction(a) <= e <= Fraction(b) for a, e, b in ends)
            assert np.all(found.rad <= 1e-14 * np.abs(found.mid))


def test_curvature_that_certificates_take_is_found_in_any_units() -> None:
    rng = np.random.default_rng(0)
    for n, p in ((50, 50), (90, 60), (200, 20)):
        a = 1.0 + 1e-3 * rng.standard_normal((n, p))  # every column close to every other
        a *= 10.0 ** rng.uniform(-8.0, 8.0, p)
        h = a.T @ a
        unit = 1.0 / np.sqrt(np.diag(h))
        least = float(np.linalg.eigvalsh(h * np.outer(unit, unit))[0])
        low_end, high_end = 0.0, 1.0
        for _ in range(40):
            share = 0.5 * (low_end + high_end)
            fits = certainly_psd(h.copy(), share * least * np.diag(h), n)
            low_end, high_end = (share, high_end) if fits else (low_end, share)
        exact = Ball(a.T) @ Ball(a)
        assert low_end > 0.0
        assert has_curvature(exact, low_end * least * np.diag(h))
        assert not has_curvature(exact, 1.001 * least * np.diag(h))


@pytest.mark.parametrize("p", [1, 2, 3, 8])
def test_curvature_with_room_is_found_for_few_columns_as_for_many(p: int) -> None:
    rng = np.random.default_rng(p)
    for _ in range(50):
        a = (1.0 + 0.3 * rng.standard_normal((p + 3, p))) * 10.0 ** rng.uniform(-4.0, 4.0, p)
        h = Ball(a.T) @ Ball(a)
        size = np.sqrt(np.diag(h.mid))
        least = float(np.linalg.eigvalsh(h.mid / np.outer(size, size))[0])
        assert has_curvature(h, (least - 1e-12) * size**2)
        assert not has_curvature(h, (least + 1e-12) * size**2)


@pytest.mark.parametrize("exact", [False, True])
def test_curvature_may_be_taken_beside_equal_columns_but_not_from_them(exact) -> None:
    rng = np.random.default_rng(0)
    a, none, y = rng.standard_normal((12, 5)), np.full(5, -np.inf), np.zeros(12)
    a[:, 3] = -2.0 * a[:, 1]
    least = np.linalg.svd(np.delete(a, 3, axis=1))[1].min() ** 2
    parts = (number(v, exact) for v in (a, np.ones(12), y))
    term = Term(a, *parts, loss_of("squared_loss", {}, y, y.shape), y)
    zero, free = number(np.zeros(5), exact), np.zeros(0, dtype=int)
    posed = [term], (5,), zero, number(0.0, exact), free, np.arange(5), Supports(2, zero)
    problem = Problem(*posed, none, -none, np.zeros(5), exact, {}, None, ())
    every = np.ones(5, dtype=bool)
    check_curvature(problem, 0.9 * least * np.array([1.0, 0.0, 1.0, 0.0, 1.0]), every)
    for j, share in ((1, 1e-3), (3, 1e-3), (0, 100.0)):
        with pytest.raises(Refuted, match="curvature"):
            check_curvature(problem, share * least * (np.arange(5) == j), every)


@pytest.mark.parametrize("far", [1e3, 1e8])
def test_slopes_that_are_all_fitted_leave_nothing_to_measure_by(far, tmp_path) -> None:
    """A Huber loss far from its targets has slopes that an intercept takes away altogether."""
    rng = np.random.default_rng(0)
    a, w = rng.standard_normal((30, 4)), sm.Variable(4)
    b, c = far + rng.standard_normal(30), rng.random(30)
    goal = sm.huber_loss(a @ w + sm.Variable(), b, delta=0.1, weights=c) + sm.ridge(w, 1e-3)
    problem = sm.Problem(sm.minimize(goal), sm.card(w) <= 2)
    problem.solve()
    np.savez(tmp_path / "data.npz", a=a, b=b, c=c)
    for x in (problem.certify(time_limit=0.0).x, np.zeros(5)):
        certificate = certify(problem.form, x, time_limit=0.0)
        assert not 1e9 < certificate.stationarity.residual < np.inf
        certificate.save(tmp_path / "one.json")
        assert main([str(tmp_path / "one.json"), str(tmp_path / "data.npz")]) == 0


def test_what_a_tree_cuts_off_where_limits_hold_for_sets() -> None:
    rng = np.random.default_rng(4)
    for _ in range(40):
        gains = rng.exponential(1.0, 6)
        limits = [(np.arange(3), 1), (np.arange(3, 6), int(rng.integers(1, 3)))]
        budget, nobody = int(rng.integers(1, 4)), np.zeros(6, dtype=bool)
        tree = Tree([], Supports(budget, Ball(np.zeros(6)), nobody, limits))
        supports = [
            s
            for size in range(budget + 1)
            for s in itertools.combinations(range(6), size)
            if all(np.isin(s, among).sum() <= most for among, most in limits)
        ]

        def least(allowed, gains=gains, supports=supports):
            return min(10.0 - sum(gains[list(s)]) for s in supports if allowed(s))

        without, within = rng.permutation(6)[:3], rng.permutation(6)[:2]
        none = np.array([], dtype=int)
        cut = min(tree._cut((10.0, gains), nobody, nobody, -np.inf, without, none))
        assert cut == pytest.approx(least(lambda s, w=without: set(w) & set(s)), abs=1e-12)
        cut = min(tree._cut((10.0, gains), nobody, nobody, -np.inf, none, within))
        assert cut == pytest.approx(least(lambda s, w=within: set(w) - set(s)), abs=1e-12)


def test_tables_with_a_header_are_read(tmp_path) -> None:
    rows = ["size,price,age", "1.5,2,3", "4,5,6"]
    (tmp_path / "houses.csv").write_text("\n".join(rows), encoding="utf-8")
    data = Data([str(tmp_path / "houses.csv")])
    assert data.arrays["price"].tolist() == [2.0, 5.0]
    assert data.arrays["houses without price"].tolist() == [[1.5, 3.0], [4.0, 6.0]]
    assert data.headers["houses without price"] == ["size", "age"]


def test_the_checker_imports_nothing_of_the_package() -> None:
    allowed = {"numpy", "scipy", *sys.stdlib_module_names}
    sources = sorted((ROOT / "sparsemodel" / "checker").rglob("*.py"))
    assert len(sources) > 5
    for path in sources:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                assert node.level == 0
            for name in names:
                inside = name.startswith("sparsemodel.checker.")
                assert inside or name.partition(".")[0] in allowed, (path.name, name)
