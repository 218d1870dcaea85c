"""Shen and Li (2018), figures 7 and 8: pairs of digits, sparse logistic models as pictures.

HT-SVRG on 400 images of each of two digits: the models for a growing number of pixels, the
objective against stages, and the accuracy on the other 100 images of each. Blue speaks for the
smaller digit. A second table has the objectives of other methods on the same models.
"""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from common import (
    ROUNDED,
    Options,
    Trials,
    for_the_page,
    headline,
    logarithmic,
    logistic,
    panels,
    program,
    rounded,
    save,
    shipped,
    table,
    whole,
)

PAIRS = ((0, 9), (1, 7), (2, 3), (4, 5), (6, 8))
RIDGE = 1e-4
SHOWN = (20, 40, 70)
COMPARED = (10, 40, 100)
METHODS = {
    "HT-SVRG": "ht_svrg",
    "IHT": "iht",
    "GraHTP": "grahtp",
    "NHTP": "nhtp",
    "DIHT": "diht",
    "default": None,
}
UNSTABLE = ("IHT", "GraHTP", "NHTP")
"""Methods that change the whole support at a time: where two entries are nearly equal, the last
digit may decide between them."""
NUMBERS = {2: "objective", 3: "test accuracy, %"}
SHADES = ("#9ecae1", "#4292c6", "#08519c")
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#e69f00", "#cc79a7")


def digits(pair: tuple[int, int], images: Any) -> tuple[Any, Any, Any, Any]:
    rows = np.isin(images.y, pair)
    X, y = images.X[rows] / 255.0, (images.y[rows] == pair[0]).astype(float)
    test = np.zeros(len(y), dtype=bool)
    for label in (0.0, 1.0):
        test[np.flatnonzero(y == label)[::5]] = True
    return X[~test], y[~test], X[test], y[test]


def trial(
    smaller: int, larger: int, k: int, stages: int, seed: int, data: str = ""
) -> dict[str, float]:
    """Return the objective of every method, and the CPU seconds."""
    X, y, _, _ = digits((smaller, larger), shipped("mnist5k"))
    X = rounded(X) if data == ROUNDED else X
    numbers = {}
    for label in UNSTABLE if data == ROUNDED else METHODS:
        limits = {"max_iter": stages, "seed": seed} if label == "HT-SVRG" else {}
        answer = logistic(X, y, k, METHODS[label], ridge=RIDGE, **limits)
        numbers[f"{label}, objective"] = float(answer.value)
        numbers[f"{label}, s"] = answer.cpu
    return numbers


def compare(chosen: Options, stages: int) -> None:
    """Write the table of the methods, as means over the pairs."""
    trials, rows = Trials(chosen, "tight_digits", trial), []
    for key in [(*pair, k, stages, chosen.seed) for k in COMPARED for pair in PAIRS]:
        if chosen.full and trials(*key):
            trials(*key, ROUNDED)
    for k in COMPARED:
        if means := trials.means((*pair, k, stages, chosen.seed) for pair in PAIRS):
            objectives = (means[f"{label}, objective"] for label in METHODS)
            rows.append((k, means["trials"], *objectives))
    header = ("k", "pairs", *METHODS)
    table(chosen, "tight_digits_methods", header, rows)
    note = f"Objectives, means over the pairs. {trials.standing()} {trials.stability('objective')}"
    for_the_page(chosen, "tight_digits_methods", header, rows, note.rstrip())


def main(chosen: Options) -> None:
    images = shipped("mnist5k")
    ks = chosen.pick((10, 20, 40, 70, 100, 150), (10, 20, 30, 40, 50, 60, 70, 80, 100, 120, 150))
    stages = chosen.pick(40, 200)
    pictures, grid = plt.subplots(5, len(ks), figsize=(1.15 * len(ks) + 0.7, 6.1),
                                  layout="constrained")  # fmt: skip
    curves, axes = panels(2, 3, height=2.5)
    rows, last = [], []
    for line, pair in enumerate(PAIRS):
        X, y, Z, z = digits(pair, images)
        accuracy = []
        for place, k in enumerate(ks):
            answer = logistic(X, y, k, "ht_svrg", ridge=RIDGE, max_iter=stages, seed=chosen.seed)
            accuracy.append(100.0 * float(np.mean((Z @ answer.x > 0.0) == (z > 0.5))))
            rows.append((f"{pair[0]} vs {pair[1]}", k, answer.value, accuracy[-1]))
            largest = np.quantile(np.abs(answer.x[answer.x != 0.0]), 0.95)
            shown = np.ma.masked_equal(answer.x, 0.0).reshape(28, 28)
            ax = grid[line, place]
            colours = plt.get_cmap("RdBu").with_extremes(bad="#eceef1")
            ax.imshow(shown, cmap=colours, vmin=-largest, vmax=largest, interpolation="nearest")
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
            if line == 0:
                ax.set_title(f"k = {k}", fontsize=9.5)
            if place == 0:
                ax.set_ylabel(f"{pair[0]} vs {pair[1]}", fontsize=10)
            if k in SHOWN:
                history = answer.solution.history
                shade = SHADES[SHOWN.index(k)]
                best = [np.log(2.0), *(event.best for event in history)]
                axes[line].plot(range(len(best)), best, color=shade, label=f"k = {k}")
        axes[5].plot(ks, accuracy, color=COLOURS[line], marker="o", markersize=3.5)
        last.append(accuracy[-1])
        headline(axes[line], f"{pair[0]} vs {pair[1]}")
        logarithmic(axes[line])
        axes[line].set_xlim(left=0)
        axes[line].set_xlabel("stage", fontsize=9)
    for ax in (axes[0], axes[3]):
        ax.set_ylabel("objective", fontsize=9)
    height = -np.inf
    for line in np.argsort(last).tolist():
        height = max(height + 0.55, last[line])  # labels of nearly equal accuracies apart
        axes[5].annotate(
            f"{PAIRS[line][0]} vs {PAIRS[line][1]}", (ks[-1], height), xytext=(5, -3), fontsize=8,
            textcoords="offset points", color=COLOURS[line],
        )  # fmt: skip
    headline(axes[5], "test accuracy, %")
    whole(axes[5])
    axes[5].set_xlim(right=1.3 * ks[-1])
    table(chosen, "tight_digits", ("pair", "k", "objective", "accuracy %"), rows)
    shown = []
    for pair in dict.fromkeys(row[0] for row in rows):
        here = [row for row in rows if row[0] == pair]
        shown += [(pair, what, *(row[place] for row in here)) for place, what in NUMBERS.items()]
    header = ("pair", "k =", *map(str, ks))
    for_the_page(chosen, "tight_digits", header, shown, f"After at most {stages} stages.")
    compare(chosen, stages)
    save(chosen, pictures, "tight_digits_models", legend=False)
    save(chosen, curves, "tight_digits")


if __name__ == "__main__":
    program(main, __doc__)
