"""Zhou, Xiu and Qi (2021), figures 1 and 2: exact recovery in compressed sensing.

256 unknowns, Gaussian and partial cosine matrices with unit columns, Gaussian coefficients, no
noise; a recovery counts when its relative error is below 1 %.
"""

from __future__ import annotations

import math

import numpy as np
from common import (
    Options,
    Trials,
    curve,
    for_the_page,
    headline,
    least_squares,
    panels,
    program,
    save,
    table,
    whole,
)

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
MISSED = "recovered, and not by the default"
# The paper's text on its figure 1, for Gaussian matrices and 22 nonzeros.
PAPER = dict.fromkeys(METHODS, "< 40") | {"NHTP": "90", "default": ""}
P = 256


def matrix(kind: str, m: int, rng: np.random.Generator) -> np.ndarray:
    if kind == "Gaussian":
        A = rng.standard_normal((m, P))
    else:
        A = np.cos(2.0 * np.pi * np.outer(rng.random(m), np.arange(P)))
    return A / np.linalg.norm(A, axis=0)


def trial(kind: str, m: int, s: int, seed: int, first: int) -> dict[str, float]:
    """Return how many of ten instances every method recovers, and the default does not alone."""
    hits = dict.fromkeys((*METHODS, MISSED), 0.0)
    for number in range(first, first + 10):
        rng = np.random.default_rng((seed, m, s, number))
        A = matrix(kind, m, rng)
        x = np.zeros(P)
        x[rng.choice(P, s, replace=False)] = rng.standard_normal(s)
        recovered = {}
        for label, backend in METHODS.items():
            if backend == "htp":  # Foucart's step: one, for the sum of squares and unit columns
                backend = sm.backends.GraHTP(step_size=float(m))
            found = least_squares(A, A @ x, s, backend).x
            recovered[label] = bool(np.linalg.norm(found - x) < 0.01 * np.linalg.norm(x))
            hits[label] += recovered[label]
        hits[MISSED] += any(recovered.values()) and not recovered["default"]
    return hits


def main(chosen: Options) -> None:
    trials = Trials(chosen, "nhtp_success", trial)
    firsts = range(0, chosen.repeats(20, 500), 10)
    levels = chosen.pick(range(8, 37, 4), range(6, 37, 2))
    ratios = chosen.pick((0.1, 0.14, 0.18, 0.22, 0.26, 0.3), np.arange(0.1, 0.31, 0.02))
    few = math.ceil(0.05 * P)
    along = {s: (P // 4, s) for s in levels}, {float(r): (math.ceil(r * P), few) for r in ratios}
    trials.in_rounds(
        [(kind, m, s, chosen.seed, first) for first in firsts]
        for kind in ("Gaussian", "partial DCT")
        for points in along
        for m, s in points.values()
    )
    rows, (figure, axes) = [], panels(2, 2)
    for row, kind in enumerate(("Gaussian", "partial DCT")):
        for place, points in enumerate(along):
            drawn = {}
            for at, (m, s) in points.items():
                if means := trials.means((kind, m, s, chosen.seed, first) for first in firsts):
                    drawn[at] = [10.0 * means[label] for label in METHODS]
                    rows.append((kind, m, s, 10 * means["trials"], *drawn[at]))
            for i, label in enumerate(METHODS):
                shares = [found[i] for found in drawn.values()]
                curve(axes[2 * row + place], label, list(drawn), shares)
        headline(axes[2 * row], f"{kind}, 64 measurements")
        headline(axes[2 * row + 1], f"{kind}, {few} nonzeros")
        axes[2 * row].set_ylabel("recovered, %", fontsize=9)
    whole(axes[2])
    axes[3].set_xlabel("measurements / unknowns", fontsize=9)
    header = ("matrix", "measurements", "nonzeros", "trials", *METHODS)
    table(chosen, "nhtp_success", header, rows)
    tens = [trials(*key) for key in trials.finished]
    note = (
        f"Recovered, percent. Of all {10 * len(tens)} instances the default misses "
        f"{sum(ten[MISSED] for ten in tens):.0f} that one of the others recovers."
    )
    shown = [row for row in rows if row[1] == P // 4 and row[2] in (16, 20, 22, 24, 28)]
    place = max((i for i, row in enumerate(shown, 1) if row[0] == "Gaussian"), default=0)
    shown.insert(place, ("paper", 64, 22, 500, *PAPER.values()))
    for_the_page(chosen, "nhtp_success", header, shown, note)
    save(chosen, figure, "nhtp_success")


if __name__ == "__main__":
    program(main, __doc__)
