"""Shen and Li (2018), figures 1 to 3: phase transitions of IHT, PGD and HT-SVRG.

256 unknowns of which K are not zero, n Gaussian measurements without noise. IHT keeps K entries,
PGD and HT-SVRG keep 9 K on the way and are judged by the K largest, minimised. A recovery counts
below an error of 1e-3. The default plan is told K alone.
"""

from __future__ import annotations

import math
from typing import Any

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
)

import sparsemodel as sm
from sparsemodel.experiments import transition

D = 256
NAMES = ("IHT", "PGD", "HT-SVRG")
METHODS = (*NAMES, "default")
PAPER = {95.0: (1.7, 33), 99.0: (1.7, 40)}
"""The fits printed in figure 3, for HT-SVRG."""


def recover(label: str, A: Any, y: Any, K: int, stages: int) -> Any:
    if label == "default":
        return least_squares(A, y, K).x
    wide = min(9 * K, D) / K
    if label == "IHT":  # the paper's unit step, for columns of unit variance over n
        return least_squares(
            A, y, K, sm.backends.IHT(step_size=float(len(y)), max_iter=7 * stages)
        ).x
    if label == "PGD":
        backend = sm.backends.PGD(relaxation=wide, max_iter=7 * stages, tol=1e-9)
        return least_squares(A, y, K, backend).x
    # The paper's step is for single observations; one over a batch may be as much longer.
    batches = min(10, len(y))
    eta = 2.0 / float(np.linalg.eigvalsh(A @ A.T)[-1]) * len(y) / batches
    backend = sm.backends.HTSVRG(
        step_size=eta,
        batches=batches,
        relaxation=wide,
        patience=stages,
        max_iter=stages,
        tol=1e-9,
    )
    return least_squares(A, y, K, backend).x


def trial(n: int, K: int, stages: int, seed: int, number: int) -> dict[str, float]:
    """Return 1 for a recovery, of every method."""
    rng = np.random.default_rng((seed, n, K, number))
    A = rng.standard_normal((n, D)) / np.sqrt(n)
    x = np.zeros(D)
    x[rng.choice(D, K, replace=False)] = rng.standard_normal(K)
    y = A @ x
    errors = {label: np.linalg.norm(recover(label, A, y, K, stages) - x) for label in METHODS}
    return {label: float(error < 1e-3) for label, error in errors.items()}


def main(chosen: Options) -> None:
    ns = list(chosen.pick(range(16, 257, 40), range(8, 257, 8)))
    Ks = list(chosen.pick((2, 6, 10, 14, 18, 22), range(1, 27, 2)))
    count, stages = chosen.repeats(6, 1000), chosen.pick(400, 10_000)
    trials = Trials(chosen, "tight_phase", trial)
    keys = {(K, n): [(n, K, stages, chosen.seed, i) for i in range(count)] for K in Ks for n in ns}
    trials.in_rounds(keys.values())
    points = {point: trials.means(several) for point, several in keys.items()}
    nothing = float("nan")
    grids = {
        label: 100.0 * np.array([[points[K, n].get(label, nothing) for n in ns] for K in Ks])
        for label in METHODS
    }
    rows = [
        (label, K, n, float(grid[i, j]))
        for label, grid in grids.items()
        for i, K in enumerate(Ks)
        for j, n in enumerate(ns)
    ]
    table(chosen, "tight_phase", ("method", "K", "n", "recovered"), rows, show=False)
    figure, axes = panels(2, 3, height=2.6)
    for ax, label in zip(axes, NAMES, strict=False):
        grid = grids[label]
        image = ax.pcolormesh(ns, Ks, grid, cmap="cividis", vmin=0, vmax=100, shading="nearest")
        headline(ax, label)
        ax.set_xlabel("measurements n", fontsize=9)
    axes[0].set_ylabel("nonzeros K", fontsize=9)
    bar = figure.colorbar(image, ax=axes[2], aspect=12)
    bar.outline.set_visible(False)
    bar.set_label("recovered, %", fontsize=8.5)
    shades = iter(("#9ecae1", "#4292c6", "#08519c", "#08306b"))
    for i in range(0, len(Ks), max(2, len(Ks) // 4)):
        colour = next(shades, "#08306b")
        line = grids["HT-SVRG"][i]
        axes[3].plot(ns, line, color=colour, linewidth=1.6, label=f"_K = {Ks[i]}")
        half = transition(ns, line, 50.0)
        if np.isfinite(half):
            axes[3].annotate(f"K = {Ks[i]}", (half, 50.0), fontsize=8, color="#333333",
                             xytext=(4, -8), textcoords="offset points")  # fmt: skip
    headline(axes[3], "HT-SVRG")
    axes[3].set_xlabel("measurements n", fontsize=9)
    axes[3].set_ylabel("recovered, %", fontsize=9)
    fits: list[tuple[Any, ...]] = []
    counts = [int(found.get("trials", 0)) for found in points.values()]
    each = f"{min(counts)} to {max(counts)}" if min(counts) < max(counts) else str(min(counts))
    for ax, wanted in zip(axes[4:], PAPER, strict=True):
        for label, grid in grids.items():
            need = np.array([transition(ns, line, wanted) for line in grid])
            curve(ax, label, Ks, need, linestyle="none")
            known = np.isfinite(need)
            if known.sum() > 1:
                slope, offset = np.polyfit(np.array(Ks)[known], need[known], 1)
                line = slope * np.array(Ks) + offset
                curve(ax, label, Ks, line, marker="", name=f"_{label}")
                fits.append((wanted, label, each, float(slope / np.log(D)), round(offset)))
        fits.append((wanted, "HT-SVRG, paper", 1000, *PAPER[wanted]))
        headline(ax, f"for {wanted:.0f} % success")
        ax.set_xlabel("nonzeros K", fontsize=9)
        ax.set_ylim(0, 270)
        ax.set_ylabel("measurements n", fontsize=9)
    done = [found for key in trials.asked if (found := trials(*key))]
    missed = sum(max(found[label] for label in NAMES) > found["default"] for found in done)
    header = ("success", "method", "trials a point", "slope", "offset")
    # With so few trials that one failure is below both levels, both are the same event.
    if math.ceil(0.95 * min(counts)) == math.ceil(0.99 * min(counts)):
        fits = [fit for fit in fits if fit[0] == 95.0 or "paper" in fit[1]]
    fits = [(f"{wanted:.0f} %", *fit) for wanted, *fit in fits]
    note = (
        f"Fits of n = slope K log {D} + offset, after {len(done)} trials, in {missed} of which the "
        "default misses what one of the others recovers."
    )
    for_the_page(chosen, "tight_phase", header, fits, note)
    save(chosen, figure, "tight_phase", colours=256)


if __name__ == "__main__":
    program(main, __doc__)
