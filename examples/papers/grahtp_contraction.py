"""Yuan, Li and Zhang (2018), figure 1: the contraction factors of Theorems 2 and 5.

Along the restricted condition number, at the best step m / M^2 for Theorems 2 and 5(b) and at
1 / (2 M) for 5(a), for the largest targets that 5(a) admits. Nothing is random.
"""

from __future__ import annotations

import math

import numpy as np
from common import Options, curve, for_the_page, headline, panels, program, save, table

from sparsemodel.numerics import expansion


def factors(condition: float, share: float) -> dict[str, float]:
    """Return the four factors for ``M / m`` and ``kbar / k``; one and more contract nothing."""
    rho = math.sqrt(1.0 - 1.0 / condition**2)
    return {
        "mu_1": rho / (1.0 - rho),
        "mu_2": 1.62 * rho,
        "mu_1, relaxed": 1.0 - 1.0 / (8.0 * condition),
        "mu_2, relaxed": rho * math.sqrt(expansion(10**9, 10**6, max(1, round(share * 10**6)))),
    }


def crossing(first: str, second: str, conditions: np.ndarray, shares: np.ndarray) -> float:
    """Return from which condition number on ``first`` is above ``second``."""
    pairs = zip(conditions, shares, strict=True)
    above = [f[first] > f[second] for f in (factors(float(c), float(s)) for c, s in pairs)]
    return float(conditions[int(np.argmax(above))]) if any(above) else float("nan")


def main(chosen: Options) -> None:
    near, far = np.linspace(1.0, 1.26, 521), np.linspace(1.0, 3.0, 2001)
    relaxed = 1.0 / (2.0 + 16.0 * far**2)  # kbar / k, the most of 5(a)
    figure, axes = panels(1, 2)
    for ax, xs, names in (
        (axes[0], near, ("mu_1", "mu_2")),
        (axes[1], far, ("mu_1, relaxed", "mu_2, relaxed")),
    ):
        for label, name in zip(("GraHTP", "FGraHTP"), names, strict=True):
            ys = [factors(float(c), float(1.0 / (2.0 + 16.0 * c**2)))[name] for c in xs]
            curve(ax, label, xs, ys, marker="")
        ax.set_xlabel("M / m", fontsize=9)
        ax.set_ylim(0.0, 1.02)
    axes[0].set_ylabel("contraction factor", fontsize=9)
    headline(axes[0], "Theorem 2")
    headline(axes[1], "Theorem 5, k = (2 + 16 (M/m)^2) kbar")
    rows = [
        ("mu_1 exceeds mu_2 from M / m =", crossing("mu_1", "mu_2", near, np.ones(near.size))),
        ("relaxed mu_2 exceeds relaxed mu_1 from M / m =",
         crossing("mu_2, relaxed", "mu_1, relaxed", far, relaxed)),
        ("least relaxed mu_1", factors(1.0, 0.05)["mu_1, relaxed"]),
    ]  # fmt: skip
    table(chosen, "grahtp_contraction", ("figure 1", "value"), rows)
    for_the_page(chosen, "grahtp_contraction", ("figure 1", "value"), rows, "Computed, not run.")
    save(chosen, figure, "grahtp_contraction")


if __name__ == "__main__":
    program(main, __doc__)
