"""Zhou, Xiu and Qi (2021), tables 4 and 5, figures 3 and 4: sparse logistic regression.

Tables: p features, p / 5 samples, 1 % and 5 % of the features in the model, loss and CPU seconds
(declaring included). Figures: 256 features, the loss along the sparsity s (52 samples) and along
the number of samples (s = 13). Independent features (table 4, figure 3) and autoregressive ones
with coefficient 1/2 (table 5, figure 4); a ridge of 1e-6 over the number of samples.

The ridge is the paper's mu ||x||^2 with mu = 1e-6 / m, which is a weight of 2 mu here.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from common import (
    ROUNDED,
    Options,
    Trials,
    curve,
    for_the_page,
    headline,
    logarithmic,
    logistic,
    panels,
    program,
    rounded,
    save,
    table,
    whole,
)
from scipy.signal import lfilter
from scipy.special import expit

METHODS = {"NTGP": "ntgp", "IIHT": "iiht", "GraSP": "grasp", "NHTP": "nhtp", "default": None}
UNSTABLE = ("NTGP", "IIHT", "GraSP", "NHTP")
"""Methods that change the whole support at a time: where two entries are nearly equal, the last
digit may decide between them."""
# The paper's loss and seconds for p = 10000: MATLAB on a desktop of 2018.
PAPER = {
    ("independent", 0.01): ((0.239, 8.403), (0.143, 1.723), (0.244, 0.488), (0.226, 0.313)),
    ("independent", 0.05): ((0.0458, 9.931), (4.76e-4, 3.094), (4.97e-3, 1.795), (6.5e-7, 0.987)),
    ("AR(1/2)", 0.01): ((0.187, 8.338), (0.0568, 4.394), (0.193, 0.471), (0.151, 0.245)),
    ("AR(1/2)", 0.05): ((0.0759, 9.101), (6.02e-4, 3.426), (0.0218, 1.875), (1.54e-6, 0.88)),
}
KINDS = ("independent", "AR(1/2)")
SMALL = 256


def instance(kind: str, p: int, m: int, k: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng((seed, p, k))
    if kind == "independent":
        y = np.where(rng.permutation(m) < m // 2, 1.0, 0.0)
        return y[:, None] * rng.standard_normal((m, 1)) + rng.standard_normal((m, p)), y
    noise = rng.standard_normal((m, p))
    noise[:, 1:] *= np.sqrt(0.75)
    A = lfilter([1.0], [1.0, -0.5], noise, axis=1)
    x = np.zeros(p)
    x[rng.choice(p, k, replace=False)] = rng.standard_normal(k)
    return A, np.where(rng.random(m) < expit(A @ x), 1.0, 0.0)


def trial(kind: str, p: int, m: int, k: int, seed: int, data: str = "") -> dict[str, float]:
    """Return the mean logistic loss without the ridge, as the paper reports it, and the times."""
    A, y = instance(kind, p, m, k, seed)
    A = rounded(A) if data == ROUNDED else A
    numbers = {}
    for label in UNSTABLE if data == ROUNDED else METHODS:
        answer = logistic(A, y, k, METHODS[label], ridge=2e-6 / m)
        u = A @ answer.x
        numbers[label] = float(np.mean(np.logaddexp(0.0, u) - y * u))
        numbers[f"{label}, s"] = answer.cpu
        numbers[f"{label}, objective"] = float(answer.value)
    return numbers


def tables(chosen: Options, trials: Trials) -> None:
    rows, shown = [], []
    count = chosen.repeats(1, 50)
    asked = chosen.pick((4000,), (4000, *range(10_000, 40_001, 5000)))
    for p in sorted({*asked, *(key[1] for key in trials.finished if key[1] > SMALL)}):
        for kind, share in PAPER:
            point = (kind, p, p // 5, round(share * p))
            keys = [key for key in trials.finished if key[:4] == point]
            if p in asked:
                keys = [(*point, chosen.seed + i) for i in range(count)]
            means = trials.means(keys)
            if not means:
                continue
            theirs = dict(zip(METHODS, PAPER[kind, share] if p == 10_000 else (), strict=False))
            nothing = float("nan"), float("nan")
            for label in METHODS:
                ours = means[label], means[f"{label}, s"]
                rows.append((kind, f"{share:.0%}", p, label, *ours, *theirs.get(label, nothing)))
            first = (kind, f"{p}, {share:.0%}", means["trials"])
            shown.append((*first, "here", *(means[label] for label in METHODS)))
            if theirs:
                paper = [theirs.get(label, nothing)[0] for label in METHODS]
                shown.append(("", "", "", "paper", *paper))
    header = ("features", "k", "p", "method", "loss", "CPU s", "paper's loss", "paper's s")
    table(chosen, "nhtp_logistic", header, rows)
    header = ("features", "p, share in the model", "trials", "loss", *METHODS)
    for_the_page(
        chosen, "nhtp_logistic", header, shown, f"Mean logistic losses. {trials.standing()}"
    )


def figures(chosen: Options, trials: Trials) -> None:
    few = math.ceil(SMALL / 5)
    sparsities = chosen.pick((10, 14, 20, 30), range(10, 31, 2))
    shares = chosen.pick((0.1, 0.2, 0.3, 0.5, 0.7), np.arange(1, 15) * 0.05)
    samples = [math.ceil(float(r) * SMALL) for r in shares]
    count = chosen.repeats(4, 500)
    rows, (figure, axes) = [], panels(2, 2, height=2.6)
    for line, kind in enumerate(KINDS):
        along = [(few, s) for s in sparsities], [(m, 13) for m in samples]
        for place, points in enumerate(along):
            drawn = []
            for m, s in points:
                keys = [(kind, SMALL, m, s, chosen.seed + i) for i in range(count)]
                if chosen.full:
                    for key in [key for key in keys if trials(*key)]:
                        trials(*key, ROUNDED)
                if means := trials.means(keys):
                    drawn.append(((s, m)[place], means))
                    rows.append((kind, m, s, means["trials"], *(means[x] for x in METHODS)))
            ax = axes[2 * line + place]
            for label in METHODS if drawn else ():
                losses = [max(means[label], 1e-8) for _, means in drawn]
                curve(ax, label, [at for at, _ in drawn], losses)
            logarithmic(ax)
            headline(ax, f"{kind}, {('52 samples', 's = 13')[place]}")
        axes[2 * line].set_ylabel("logistic loss", fontsize=9)
    for ax, what in zip(axes, ("nonzeros s", "samples") * 2, strict=True):
        whole(ax, what)
    header = ("features", "samples", "s", "trials", *METHODS)
    table(chosen, "nhtp_logistic_small", header, rows)
    note = f"Mean logistic losses, 256 features. {trials.stability('')}".rstrip()
    for_the_page(chosen, "nhtp_logistic_small", header, rows, note)
    save(chosen, figure, "nhtp_logistic_small")


def main(chosen: Options) -> None:
    trials = Trials(chosen, "nhtp_logistic", trial)
    logistic(np.eye(4), [0, 1, 0, 1], 1, ridge=1.0)  # imports are not part of the times
    figures(chosen, trials)
    tables(chosen, trials)


if __name__ == "__main__":
    program(main, __doc__)
