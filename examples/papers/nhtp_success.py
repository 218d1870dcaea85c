"""Zhou, Xiu and Qi (2021), figures 1 and 2: exact recovery in compressed sensing.

256 unknowns, Gaussian and partial cosine matrices with unit columns, Gaussian coefficients, no
noise; a recovery counts when its relative error is below 1 %.
"""

from __future__ import annotations

import math

import numpy as np
from common import curve, headline, least_squares, nonzeros, options, panels, save, table

import sparsemodel as sm

METHODS = {
    "NHTP": "nhtp",
    "HTP": "htp",
    "NIHT": "niht",
    "SP": "sp",
    "CoSaMP": "cosamp",
    "OMP": "omp",
    "GP": "gp",
    "default": None,
}
P = 256


def matrix(kind: str, m: int, rng: np.random.Generator) -> np.ndarray:
    if kind == "Gaussian":
        A = rng.standard_normal((m, P))
    else:
        A = np.cos(2.0 * np.pi * np.outer(rng.random(m), np.arange(P)))
    return A / np.linalg.norm(A, axis=0)


def success(kind: str, m: int, s: int, trials: int, seed: int) -> dict[str, float]:
    hits = dict.fromkeys(METHODS, 0)
    for trial in range(trials):
        rng = np.random.default_rng((seed, m, s, trial))
        A = matrix(kind, m, rng)
        x = np.zeros(P)
        x[rng.choice(P, s, replace=False)] = rng.standard_normal(s)
        for label, backend in METHODS.items():
            if backend == "htp":  # Foucart's step: one, for the sum of squares and unit columns
                backend = sm.backends.GraHTP(step_size=float(m))
            found = least_squares(A, A @ x, s, backend).x
            hits[label] += bool(np.linalg.norm(found - x) < 0.01 * np.linalg.norm(x))
    return {label: 100.0 * count / trials for label, count in hits.items()}


def main() -> None:
    chosen = options(__doc__)
    trials = chosen.repeats(25, 500)
    levels = chosen.pick(range(8, 37, 4), range(6, 37, 2))
    ratios = chosen.pick((0.1, 0.14, 0.18, 0.22, 0.26, 0.3), np.arange(0.1, 0.31, 0.02))
    rows, (figure, axes) = [], panels(2, 2)
    for row, kind in enumerate(("Gaussian", "partial DCT")):
        by_level = {s: success(kind, P // 4, s, trials, chosen.seed) for s in levels}
        few = math.ceil(0.05 * P)
        by_ratio = {
            float(r): success(kind, math.ceil(r * P), few, trials, chosen.seed) for r in ratios
        }
        for label in METHODS:
            for place, found in enumerate((by_level, by_ratio)):
                curve(axes[2 * row + place], label, list(found), [v[label] for v in found.values()])
        rows += [(kind, 64, s, *found.values()) for s, found in by_level.items()]
        rows += [(kind, math.ceil(r * P), few, *v.values()) for r, v in by_ratio.items()]
        headline(axes[2 * row], f"{kind}, 64 measurements")
        headline(axes[2 * row + 1], f"{kind}, {few} nonzeros")
        axes[2 * row].set_ylabel("recovered, %", fontsize=9)
    nonzeros(axes[2])
    axes[3].set_xlabel("measurements / unknowns", fontsize=9)
    table(chosen, "nhtp_success", ("matrix", "m", "s", *METHODS), rows)
    save(chosen, figure, "nhtp_success")


if __name__ == "__main__":
    main()
