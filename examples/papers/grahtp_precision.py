"""Yuan, Li and Zhang (2018), figure 6: sparse precision matrices from 100 samples.

The true matrix is Theta + sigma I, entries of Theta are 1 with probability 0.1, the condition
number is p. As in the paper the number of edges, and the penalty of GLasso, are those of the least
loss on 100 further samples; the CPU time is that of all that were tried. Error in the Frobenius
norm, F-score of the edges.
"""

from __future__ import annotations

import time
from itertools import product
from typing import Any

import numpy as np
from common import (
    Options,
    Trials,
    curve,
    for_the_page,
    headline,
    logarithmic,
    panels,
    program,
    save,
    table,
)
from grahtp_lda import Fit, glasso, l0, one_by_one

SIZES = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.5, 7.0)
PENALTIES = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.45, 0.7)
METHODS: dict[str, tuple[Fit, tuple[float, ...]]] = {
    "GraHTP": (l0("precision_grahtp"), SIZES),
    "GraSP": (l0("precision_grasp"), SIZES),
    "FBS": (l0("precision_fbs"), SIZES),
    "FoBa": (l0("precision_foba"), SIZES),
    "default": (l0(None), SIZES),
    "GLasso": (one_by_one(glasso), PENALTIES),
}
"""A method, and what is chosen from: edges per variable, or shares of the largest covariance."""
WHAT = {
    "error": "Frobenius error",
    "F": "F-score of edges",
    "edges": "edges",
    "s": "CPU seconds",
}
SAMPLES = 100


def instance(p: int, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Return the true matrix, and the covariances of the samples and of those to choose by."""
    theta = np.triu((rng.random((p, p)) < 0.1).astype(float), 1)
    theta += theta.T
    spectrum = np.linalg.eigvalsh(theta)
    truth = theta + (spectrum[-1] - p * spectrum[0]) / (p - 1) * np.eye(p)
    root = np.linalg.cholesky(truth)
    samples = (rng.standard_normal((p, SAMPLES)) for _ in range(2))
    S, held = (np.cov(np.linalg.solve(root.T, drawn), bias=True) for drawn in samples)
    return truth, S, held


def trial(p: int, seed: int, number: int, label: str) -> dict[str, float]:
    """Return error, F-score, edges and CPU seconds of a method."""
    truth, S, held = instance(p, np.random.default_rng((seed, p, number)))
    fit, grid = METHODS[label]
    largest = float(np.abs(np.triu(S, 1)).max())
    choices = [round(c * p) if grid is SIZES else c * largest for c in grid]
    began = time.process_time()
    fits = [Omega for Omega in fit(S, SAMPLES, choices) if Omega is not None]
    losses = [np.sum(held * Omega) - np.linalg.slogdet(Omega)[1] for Omega in fits]
    Omega = fits[int(np.argmin(losses))]
    cpu = time.process_time() - began
    found, true = np.abs(np.triu(Omega, 1)) > 1e-10, np.triu(truth, 1) != 0.0
    return {
        "error": float(np.linalg.norm(Omega - truth)),
        "F": 2.0 * float((found & true).sum()) / max(1.0, float(found.sum() + true.sum())),
        "edges": float(found.sum()),
        "s": cpu,
    }


def main(chosen: Options) -> None:
    sizes, count = chosen.pick((30, 60, 120), (30, 60, 120, 200)), chosen.repeats(3, 100)
    trials = Trials(chosen, "grahtp_precision", trial)
    l0(None)(np.eye(3), 10, [1])  # imports are not part of the times
    found: dict[int, list[dict[str, dict[str, float]]]] = {p: [] for p in sizes}
    for number, p in product(range(count), sizes):
        numbers = {label: trials(p, chosen.seed, number, label) for label in METHODS}
        if all(numbers.values()):
            found[p].append(numbers)
    rows: list[Any] = []
    for p, done in found.items():
        for short, what in WHAT.items() if done else ():
            values = [[numbers[label][short] for label in METHODS] for numbers in done]
            rows.append((p, len(done), what, *np.mean(values, axis=0).tolist()))
    drawn = [p for p, done in found.items() if done]
    figure, axes = panels(1, 3, height=3.0)
    for ax, what in zip(axes, (WHAT["error"], WHAT["F"], WHAT["s"]), strict=True):
        for i, label in enumerate(METHODS):
            curve(ax, label, drawn, [row[3 + i] for row in rows if row[2] == what])
        headline(ax, what)
        ax.set_xlabel("variables", fontsize=9)
        ax.set_xticks(sizes)
    logarithmic(axes[2])
    header = ("p", "trials", "", *METHODS)
    table(chosen, "grahtp_precision", header, rows)
    for_the_page(chosen, "grahtp_precision", header, rows, "Means over the trials.")
    save(chosen, figure, "grahtp_precision")


if __name__ == "__main__":
    program(main, __doc__)
