"""Shen and Li (2018), figures 4 and 5: HT-SVRG with other sparsities, stage lengths and steps.

256 unknowns of which 4 are not zero, 100 Gaussian measurements without noise; k = 36, m = 300 and
eta = 0.3 (that is 2 / svds(A A^T)) but for one of the three at a time, and small steps with long
stages. The algorithm is the printed one, with single observations drawn uniformly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import (
    Options,
    Trials,
    for_the_page,
    headline,
    least_squares,
    logarithmic,
    panels,
    program,
    save,
    table,
)

import sparsemodel as sm
from sparsemodel.designs import DenseDesign
from sparsemodel.interfaces import Cardinality, Context, SparseRegression, Term
from sparsemodel.losses import SquaredLoss
from sparsemodel.numerics import RegressionObjective, minimise_restricted

D, N, K = 256, 100, 4
BLUES = ("#08306b", "#2171b5", "#6baed6", "#d55e00")
HEADLINES = {
    "k": "k entries kept",
    "m": "m steps in a stage",
    "eta": "step length η",
    "eta = 3e-4, m": "m steps, η = 3e-4",
}


def instance(seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng((seed, N, K))
    A = rng.standard_normal((N, D)) / np.sqrt(N)
    x = np.zeros(D)
    x[rng.choice(D, K, replace=False)] = rng.standard_normal(K)
    return A, A @ x


def trial(k: int, m: int, eta: float, stages: int, seed: int) -> dict[str, float]:
    """Return the objective ``||A x - y||^2 / 2`` after stages, at most 40 of them."""
    A, y = instance(seed)
    term = Term(DenseDesign(A), SquaredLoss(), y, np.full(N, 1.0 / N))
    form = SparseRegression((term,), np.zeros(D), Cardinality(D, K))
    backend = sm.backends.HTSVRG.as_published(step_size=eta, inner_steps=m, relaxation=k / K)
    objective = RegressionObjective(form)
    context = Context(minimise_restricted, rng=np.random.default_rng(seed))
    state, values = backend.init(objective, context), []
    with np.errstate(all="ignore"):
        while len(values) < stages and (not values or values[-1] < 1e100):
            state = backend.step(objective, state, context)
            values.append(float(N * state.reference.value))  # of the iterate itself, k entries
    at = np.unique(np.linspace(1, stages, min(40, stages)).astype(int))
    return {str(i): min(values[min(i, len(values)) - 1], 1e100) for i in at.tolist()}


def main(chosen: Options) -> None:
    trials = Trials(chosen, "tight_parameters", trial)
    short, count = chosen.pick(20, 50), chosen.repeats(2, 100)
    panes = {
        "k": [(k, 300, 0.3, short) for k in (36, 28, 20, 4)],
        "m": [(36, m, 0.3, chosen.pick(100, 800)) for m in (300, 100, 30)],
        "eta": [(36, 300, eta, short) for eta in (0.3, 0.03, 3.0)],
        "eta = 3e-4, m": [(36, m, 3e-4, chosen.pick(200, 5000)) for m in (300, 600, 2000)],
    }
    rows, (figure, axes) = [], panels(1, 4, width=10.0)
    for ax, (name, runs) in zip(axes, panes.items(), strict=True):
        for colour, (k, m, eta, stages) in zip(BLUES, runs, strict=False):
            means = trials.means((k, m, eta, stages, chosen.seed + i) for i in range(count))
            if not means:
                continue
            done = means.pop("trials")
            xs, ys = [int(i) for i in means], np.clip(list(means.values()), 1e-30, 1e30)
            label = {"k": k, "eta": eta}.get(name, m)
            ax.plot(xs, ys, color=colour, linewidth=1.6)
            ax.annotate(
                f"{'η' if name == 'eta' else name[-1]} = {label}",
                (xs[-1], ys[-1]), xytext=(3, -3), textcoords="offset points",
                fontsize=7.5, color=colour,
            )  # fmt: skip
            rows.append((k, m, eta, done, stages, ys[0], ys[len(ys) // 2], ys[-1]))
        logarithmic(ax)
        headline(ax, HEADLINES[name])
        ax.set_xlabel("stages", fontsize=9)
    axes[0].set_ylabel("objective", fontsize=9)
    header = ("k", "m", "eta", "trials", "stages", "after 1", "half way", "at the end")
    table(chosen, "tight_parameters", header, rows)
    seeds = range(chosen.seed, chosen.seed + count)
    most = max(N * least_squares(*instance(seed), K).value for seed in seeds)
    note = (
        "Mean of half the squared residual after stages (1e30: it diverges). The default plan, "
        f"which is told K alone, ends at {most:.0e} or less on each of these instances."
    )
    for_the_page(chosen, "tight_parameters", header, [
        (*row[:-3], *(float(v) for v in row[-3:])) for row in rows
    ], note)  # fmt: skip
    save(chosen, figure, "tight_parameters", legend=False)


if __name__ == "__main__":
    program(main, __doc__)
