"""The checker's floats with error bounds hold what exact arithmetic gives."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sparsemodel.checker.arithmetic import Ball, high, low


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
