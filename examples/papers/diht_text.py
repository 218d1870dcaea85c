"""Yuan, Liu, Wang, Liu and Metaxas (2020), figures 5 to 10: hinge losses on text.

Mail as 226549 term weights: how far the primal objective is above the best lower bound against CPU
time (lambda = 1 / sqrt(N)), the seconds to come within 1 % of the best objective along
lambda = lambda_0 / sqrt(N), and the duality gap against iterations; for the smoothed hinge loss
(gamma = 0.25) and the hinge loss.
"""

from __future__ import annotations

import os
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import (
    Options,
    Trials,
    curve,
    for_the_page,
    headline,
    logarithmic,
    own_data,
    panels,
    program,
    save,
    shipped,
    solve,
    table,
)

import sparsemodel as sm

SMOOTH = {
    "IHT": "iht",
    "HTP": "grahtp",
    "SVR-GHT": "ht_svrg",
    "DIHT": "diht",
    "SDIHT": "sdiht",
}
DUAL = ("DIHT", "SDIHT")


SIZE = 1000


@cache
def text(folder: str) -> tuple[Any, Any]:
    if folder:
        X, y = next(iter(own_data(Path(folder)).values()))
        return sp.csr_array(X), y
    mail = shipped("spam_text")
    from benchmarks.data.transforms import tfidf

    return tfidf(mail.X), np.where(mail.y == 1, 1.0, -1.0)


def trial(folder: str, loss: str, scale: float, label: str, seconds: float) -> dict[str, Any]:
    """Return objective and bound, and CPU seconds, iterations, objective and gap on the way."""
    X, y = text(folder)
    w = sm.Variable(X.shape[1])
    prediction = sm.as_design(X) @ w
    fit = sm.hinge_loss(prediction, y) if loss == "hinge" else sm.smoothed_hinge_loss(
        prediction, y, gamma=0.25
    )  # fmt: skip
    track: list[tuple[float, int, float, float]] = []
    gap = np.inf
    began = time.process_time()

    def note(event: Any) -> bool:
        nonlocal gap
        spent, gap = time.process_time() - began, min(gap, event.residual)
        if not track or spent > 1.02 * track[-1][0] or spent > seconds:
            track.append((spent, event.index, event.best, gap))
        return spent > seconds

    backend: Any = SMOOTH[label]
    if label in DUAL:  # the defaults, but a gap that stays open ends nothing
        backend = {"DIHT": sm.backends.DIHT, "SDIHT": sm.backends.SDIHT}[label](
            patience=10**6, max_iter=10**6
        )
    answer = solve(fit + sm.ridge(w, scale / np.sqrt(len(y))), w, SIZE, backend, callback=note)
    bound = float(answer.solution.bound)
    gap = max(0.0, min(gap, answer.value - bound))
    track.append((answer.cpu, answer.solution.iterations, answer.value, gap))
    return {"objective": answer.value, "bound": bound, "course, s": track}


def main(chosen: Options) -> None:
    trials, folder = Trials(chosen, "diht_text", trial), os.fspath(chosen.data or "")
    seconds = chosen.pick(2.0, 60.0)
    solve(sm.logistic_loss(w := sm.Variable(4), np.ones(4)) + sm.ridge(w, 1.0), w, 1)
    rows: list[Any] = []
    figure, axes = panels(2, 3, height=2.7)
    for line, loss in enumerate(("smoothed hinge", "hinge")):
        labels = tuple(SMOOTH) if loss == "smoothed hinge" else DUAL
        slow: dict[str, list[float]] = {label: [] for label in labels}
        scales = chosen.pick((0.4, 1.0, 2.0), (0.4, 0.8, 1.0, 1.2, 1.6, 2.0))
        drawn = []
        for scale in scales:
            found = {label: trials(folder, loss, scale, label, seconds) for label in labels}
            if not all(found.values()):
                continue
            drawn.append(scale)
            tracks = {label: np.array(numbers["course, s"]) for label, numbers in found.items()}
            bound = max(numbers["bound"] for numbers in found.values())
            for label, numbers in found.items():
                spent, gap = float(tracks[label][-1, 0]), numbers["objective"] - numbers["bound"]
                rows.append((loss, scale, label, numbers["objective"], max(0.0, gap), spent))
            best = min(track[-1, 2] for track in tracks.values())
            for label, track in tracks.items():
                near = track[track[:, 2] <= 1.01 * best, 0]
                slow[label].append(float(near[0]) if near.size else float("nan"))
                if scale == 1.0:
                    every = max(1, len(track) // 8)
                    left, right = axes[3 * line], axes[3 * line + 2]
                    curve(left, label, track[:, 0], track[:, 2] - bound, markevery=every)
                    if label in DUAL:
                        curve(right, label, track[:, 1], track[:, 3], markevery=every)
        for label, times in slow.items():
            curve(axes[3 * line + 1], label, drawn, times)
        headline(axes[3 * line], loss)
        for place, what in enumerate(("objective - bound", "CPU seconds to 1 %", "duality gap")):
            axes[3 * line + place].set_ylabel(what, fontsize=9)
            logarithmic(axes[3 * line + place])
        axes[3 * line + 1].set_xticks(scales)
    for ax, what in zip(axes[3:], ("CPU seconds", "$\\lambda_0$", "iterations"), strict=True):
        ax.set_xlabel(what, fontsize=9)
    header = ("loss", "lambda_0", "method", "objective", "gap", "CPU s")
    table(chosen, "diht_text", header, rows)
    shown = []
    for point in dict.fromkeys(row[:2] for row in rows):
        here = {row[2]: row[3:5] for row in rows if row[:2] == point}
        values = [here[label][0] if label in here else float("nan") for label in SMOOTH]
        shown.append((*point, *values, *(here[label][1] for label in DUAL)))
    header = ("loss", "lambda_0", *SMOOTH, *(f"gap of {label}" for label in DUAL))
    note = f"Objectives, and duality gaps at the end, {seconds:g} CPU seconds a run."
    for_the_page(chosen, "diht_text", header, shown, note)
    save(chosen, figure, "diht_text")


if __name__ == "__main__":
    program(main, __doc__)
