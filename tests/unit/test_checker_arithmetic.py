"""The checker's floats with error bounds hold what exact arithmetic gives; what it reads."""

from __future__ import annotations

import ast
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np

from sparsemodel.checker.arithmetic import Ball, high, low
from sparsemodel.checker.files import load

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


def test_tables_with_a_header_are_read(tmp_path) -> None:
    rows = ["size,price,age", "1.5,2,3", "4,5,6"]
    (tmp_path / "houses.csv").write_text("\n".join(rows), encoding="utf-8")
    data = load([str(tmp_path / "houses.csv")])
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
