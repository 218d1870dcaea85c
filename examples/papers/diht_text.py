"""Yuan, Liu, Wang, Liu and Metaxas (2020), figures 5 to 10: hinge losses on text.

Mail as 226549 term weights: how far the primal objective is above the best lower bound against CPU
time (lambda = 1 / sqrt(N)), the seconds to come within 1 % of the best objective along
lambda = lambda_0 / sqrt(N), and the duality gap against iterations; for the smoothed hinge loss
(gamma = 0.25) and the hinge loss.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import (
    Options,
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


def text(chosen: Options) -> tuple[Any, Any]:
    if chosen.data is not None:
        X, y = next(iter(own_data(chosen.data).values()))
        return sp.csr_array(X), y
    mail = shipped("spam_text")
    from benchmarks.data.transforms import tfidf

    return tfidf(mail.X), np.where(mail.y == 1, 1.0, -1.0)


def run(X: Any, y: Any, loss: str, label: str, k: int, lam: float, seconds: float) -> Any:
    """Return ``(CPU seconds, best objective, gap)`` after every iteration, and the answer."""
    w = sm.Variable(X.shape[1])
    prediction = sm.as_design(X) @ w
    fit = sm.hinge_loss(prediction, y) if loss == "hinge" else sm.smoothed_hinge_loss(
        prediction, y, gamma=0.25
    )  # fmt: skip
    track: list[tuple[float, float, float]] = []
    began = time.process_time()

    def note(event: Any) -> bool:
        spent = time.process_time() - began
        track.append((spent, event.best, event.residual))
        return spent > seconds

    backend: Any = SMOOTH[label]
    if label in DUAL:  # the published algorithms
        backend = {"DIHT": sm.backends.DIHT, "SDIHT": sm.backends.SDIHT}[label](patience=10_000)
    answer = solve(fit + sm.ridge(w, lam), w, k, backend, callback=note)
    if not track:  # solved before the first iteration
        track.append((answer.cpu, answer.value, answer.value - answer.solution.bound))
    return track, answer


def main(chosen: Options) -> None:
    X, y = text(chosen)
    n, k, seconds = X.shape[0], 1000, chosen.pick(2.0, 60.0)
    rows: list[Any] = []
    figure, axes = panels(2, 3, height=2.7)
    for line, loss in enumerate(("smoothed hinge", "hinge")):
        labels = tuple(SMOOTH) if loss == "smoothed hinge" else DUAL
        slow: dict[str, list[float]] = {label: [] for label in labels}
        scales = chosen.pick((0.4, 1.0, 2.0), (0.4, 0.8, 1.2, 1.6, 2.0))
        for scale in scales:
            lam = scale / np.sqrt(n)
            tracks, bounds = {}, []
            for label in labels:
                track, answer = run(X, y, loss, label, k, lam, seconds)
                tracks[label] = np.array(track)
                bounds.append(answer.solution.bound)
                gap = float(answer.value - answer.solution.bound)
                rows.append((loss, scale, label, answer.value, gap, float(track[-1][0])))
            best = min(track[-1, 1] for track in tracks.values())
            bound = max(bounds)
            for label, track in tracks.items():
                near = track[track[:, 1] <= 1.01 * best, 0]
                slow[label].append(float(near[0]) if near.size else float("nan"))
                if scale == 1.0:
                    every = max(1, len(track) // 8)
                    left, right = axes[3 * line], axes[3 * line + 2]
                    curve(left, label, track[:, 0], track[:, 1] - bound, markevery=every)
                    if label in DUAL:
                        gaps = np.minimum.accumulate(track[:, 2])
                        epochs = 1.0 + np.arange(len(gaps))
                        curve(right, label, epochs, gaps, markevery=every)
        for label, times in slow.items():
            curve(axes[3 * line + 1], label, scales, times)
        for place, what in enumerate(("above bound", "seconds", "gap")):
            headline(axes[3 * line + place], f"{loss}: {what}")
        for place in range(3):
            logarithmic(axes[3 * line + place])
        axes[3 * line].set_xlim(0.0, seconds)
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
