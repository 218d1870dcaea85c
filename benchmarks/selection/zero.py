"""Rules that leave the model without coefficients: ``python -m benchmarks.selection.zero``.

Every draw is fitted once, and all rules choose between the same two: that model, and the candidate
of the lowest mean loss on held-out folds. The table goes into the decision record.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.selection.draws import Case, Draw, draw
from benchmarks.selection.kept import Task, every
from benchmarks.selection.methods import lasso
from sparsemodel.interfaces import FloatArray, IntArray
from sparsemodel.sklearn import SparseLinearRegressionCV
from sparsemodel.sklearn._chosen import between, ridges_of, usual_ks

PAGE = Path(__file__).parents[2] / "docs" / "adr" / "0015-how-k-and-the-ridge-are-chosen.md"
BEGIN, END = "<!-- rules -->\n", "<!-- end of rules -->\n"
SNRS, SIZES = (0.5, 1.0, 2.0, 5.0), (30, 60, 100)
SEEDS, NOISE = 5, 10
"""Draws of each case, and of each with noise alone."""
_OF_LEVEL = {"5 %": 1.645, "10 %": 1.282, "16 %": 1.0}
"""Quantiles of the normal distribution."""
RULES: dict[str, tuple[str, float]] = {
    "the lowest mean": ("pair", 0.0),
    "paired t > 1": ("pair", 1.0),
    "paired t, 5 %": ("pair", 1.645),
    "paired t over folds, 5 %": ("folds", 2.132),
    **{
        f"fall of losses, {of}, {level}": (by, 2**0.5 * t)
        for of, by in (("all ridges", "every"), ("largest ridge", "fall"))
        for level, t in _OF_LEVEL.items()
    },
}
"""By which statistic, and from where on, the candidate is taken."""


def statistics(case: Case, seed: int) -> dict[str, float]:
    """Return each rule's statistic of a draw, and the risk of the candidate and of the lasso."""
    data = draw(case, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folds, reached, risks = _fitted(data)
        rival = lasso(data.X, data.y)
    return compared(data.y, folds, reached, risks) | {
        "lasso": data.risk(rival),
        "lasso chosen": float(rival.any()),
    }


def _fitted(data: Draw) -> tuple[list[IntArray], FloatArray, FloatArray]:
    """Return the folds, held-out predictions of all candidates, and risks of fits to all."""
    model = SparseLinearRegressionCV()
    model.ridges_ = ridges_of(None)
    whole = model._read(data.X, data.y, None)
    folds = list(model._splitter().split(data.X, data.y))

    def coefficients(ks: IntArray, rows: Any) -> Any:
        declared = model._declared(whole, rows)
        path = declared.path(ks, model.ridges_)
        return [
            [declared.coefficients_at(path, int(k), float(r)) for r in model.ridges_] for k in ks
        ]

    def held_out(ks: IntArray) -> FloatArray:
        out = np.empty((data.y.size, ks.size, model.ridges_.size))
        for train, test in folds:
            for row, found in enumerate(coefficients(ks, train)):
                for column, (w, c) in enumerate(found):
                    out[test, row, column] = data.X[test] @ w + c
        return out

    ks = usual_ks(*data.X.shape)
    reached = held_out(ks)
    losses = np.square(data.y[:, None, None] - reached).mean(axis=0)
    more = between(ks, int(np.unravel_index(losses.argmin(), losses.shape)[0]))
    if more.size:
        reached = np.concatenate([reached, held_out(more)], axis=1)
        ks = np.concatenate([ks, more])
        order = np.argsort(ks)
        ks, reached = ks[order], reached[:, order]
    risks = [[data.risk(w) for w, _ in found] for found in coefficients(ks, slice(None))]
    return [test for _, test in folds], reached, np.array(risks)


def compared(
    y: FloatArray, folds: Sequence[IntArray], reached: FloatArray, risks: FloatArray
) -> dict[str, float]:
    """Return the statistics from held-out predictions of shape ``(n, ks, ridges)``, 0 first."""
    none = reached[:, 0, 0]
    gains = 0.5 * np.square(y - none)[:, None, None] - 0.5 * np.square(y[:, None, None] - reached)
    mean = gains.mean(axis=0)
    best = np.unravel_index(int(mean.argmax()), mean.shape)
    gain = gains[:, best[0], best[1]]
    return {
        "pair": _t(gain),
        "folds": _t(np.array([gain[test].mean() for test in folds])),
        "every": _t((y - none) * (reached - none[:, None, None]).sum(axis=(1, 2))),
        "fall": _t((y - none) * (reached[:, :, -1] - none[:, None]).sum(axis=1)),
        "chosen": float(best[0] > 0),
        "risk": float(risks[best]),
    }


def _t(values: FloatArray) -> float:
    """Return the mean in standard errors."""
    error = float(values.std(ddof=1)) / np.sqrt(values.size)
    return float(values.mean()) / error if error > 0.0 else 0.0


def table(found: dict[Task, dict[str, float]]) -> str:
    """Return how often each rule chooses something of noise, and its mean risks."""
    signal = {task: one for task, one in found.items() if task[0].snr > 0.0}
    noise = [one for task, one in found.items() if task[0].snr == 0.0]
    heads = [f"SNR {snr:g}" for snr in SNRS] + [f"n = {n}" for n in SIZES] + ["all"]
    lines = ["| rule | noise | " + " | ".join(heads) + " |", "| --- " * (2 + len(heads)) + "|"]
    for name, (by, least) in RULES.items():
        kept = sum(one["chosen"] > 0.0 and one[by] > least for one in noise)
        risks = {
            task: one["risk"] if one["chosen"] > 0.0 and one[by] > least else 1.0
            for task, one in signal.items()
        }
        lines.append(_row(name, kept / len(noise), risks))
    chosen = float(np.mean([one["lasso chosen"] for one in noise]))
    lines.append(_row("the lasso", chosen, {task: one["lasso"] for task, one in signal.items()}))
    return (
        "\n".join(lines)
        + f"\n\n{len(noise)} draws of noise and {len(signal)} with five nonzeros: "
        + "n = 30, 60, 100; p = 30, 200; correlations of 0 and 0.5.\n"
    )


def _row(name: str, kept: float, risks: dict[Task, float]) -> str:
    groups = [[r for (case, _), r in risks.items() if case.snr == snr] for snr in SNRS]
    groups += [[r for (case, _), r in risks.items() if case.n == n] for n in SIZES]
    cells = [f"{np.mean(group):.3f}" for group in [*groups, list(risks.values())]]
    return f"| {name} | {100.0 * kept:.1f} % | " + " | ".join(cells) + " |"


def main() -> None:
    """Draw, fit and write."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.selection.zero", description=__doc__
    )
    parser.add_argument("--results", type=Path, default=Path("build/selection-zero.jsonl"))
    parser.add_argument("--jobs", type=int, default=2, help="draws at the same time")
    parser.add_argument("--out", type=Path, default=PAGE, help="the record")
    arguments = parser.parse_args()
    shapes = list(product(SIZES, (30, 200), (0.0, 0.5)))
    tasks = [(Case(*s, snr), seed) for seed in range(SEEDS) for s in shapes for snr in SNRS]
    tasks += [(Case(*shape, 0.0), seed) for seed in range(NOISE) for shape in shapes]
    tasks.sort(key=lambda task: task[1])
    found = every(tasks, statistics, arguments.results, arguments.jobs)
    text = arguments.out.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    arguments.out.write_text(f"{before}{BEGIN}{table(found)}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
