"""Yuan, Li and Zhang (2018), figures 2 and 3: support recovery against the number of samples.

500 unknowns, 50 of them not zero; linear and logistic models, fitted with k = 50, 70 and 110. A
relaxed success finds all 50 among the k, an exact one finds them as the 50 largest entries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import (
    ROUNDED,
    Options,
    Trials,
    curve,
    for_the_page,
    headline,
    layered,
    least_squares,
    logistic,
    panels,
    program,
    rounded,
    save,
    table,
)
from scipy.special import expit

import sparsemodel as sm
from sparsemodel.numerics import top_k

P, TRUE = 500, 50
KS = (TRUE, 70, 110)
RIDGE = 1e-4
METHODS = ("GraHTP", "FGraHTP", "GraSP", "FBS", "FoBa", "default")
KINDS = ("exact", "relaxed")
UNSTABLE = ("GraHTP", "FGraHTP", "GraSP")
"""Methods that change the whole support at a time: where two entries are nearly equal, the last
digit may decide between them."""
SECOND = {"linear": 3, "logistic": 1}
"""So many trials of each point are run a second time, on rounded data."""


def methods(model: str) -> dict[str, Any]:
    # The Hessian of the linear model has a diagonal of about one, which is Foucart's unit step.
    pursuit = sm.backends.GraHTP(step_size=1.0) if model == "linear" else "grahtp"
    return dict(zip(METHODS, (pursuit, "fgrahtp", "grasp", "omp", "foba", None), strict=True))


def draw(model: str, n: int, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Return ``(U, v, w)``; the coefficients are N(5, 1) with random signs."""
    U = rng.standard_normal((n, P))
    w = np.zeros(P)
    signs = rng.choice([-1.0, 1.0], TRUE)
    w[rng.choice(P, TRUE, replace=False)] = signs * rng.normal(5.0, 1.0, TRUE)
    if model == "linear":
        return U, U @ w + rng.standard_normal(n), w
    return U, np.where(rng.random(n) < expit(2.0 * (U @ w)), 1.0, -1.0), w


def trial(model: str, n: int, k: int, seed: int, number: int, data: str = "") -> dict[str, float]:
    """Return 1 for a success, relaxed and exact, and the objective, of every method."""
    U, v, w = draw(model, n, np.random.default_rng((seed, n, number)))
    U = rounded(U) if data == ROUNDED else U
    numbers: dict[str, float] = {}
    for label, backend in methods(model).items():
        if data == ROUNDED and label not in UNSTABLE:
            continue
        answer = (
            least_squares(U, v, k, backend)
            if model == "linear"
            else logistic(U, v, k, backend, ridge=RIDGE)
        )
        largest = top_k(np.abs(answer.x), TRUE)
        largest = largest[answer.x[largest] != 0.0]
        numbers[f"{label}, relaxed"] = float(np.all(answer.x[w != 0.0] != 0.0))
        numbers[f"{label}, exact"] = float(np.array_equal(largest, np.flatnonzero(w)))
        numbers[f"{label}, objective"] = float(answer.value)
    return numbers


def draw_curves(axes: Any, rows: list[Any], model: str) -> None:
    for line, kind in enumerate(KINDS):
        for place, k in enumerate(KS):
            ax = axes[3 * line + place]
            points = [row for row in rows if row[:3] == (model, kind, k)]
            for i, label in enumerate(METHODS):
                xs, ys = [row[3] for row in points], [row[5 + i] for row in points]
                curve(ax, label, xs, ys, **layered(i))
            headline(ax, f"{model}, {kind}, k = {k}")
            ax.set_ylim(-4, 104)
        axes[3 * line].set_ylabel("support found, %", fontsize=9)


def main(chosen: Options) -> None:
    trials = Trials(chosen, "grahtp_recovery", trial)
    sizes = {
        "linear": chosen.pick((150, 200, 250, 300, 400), range(50, 501, 25)),
        "logistic": chosen.pick((600, 800, 1000), range(200, 2401, 200)),
    }
    repeats = {"linear": chosen.repeats(6, 100), "logistic": chosen.repeats(3, 100)}
    trials.in_rounds(
        [(model, n, k, chosen.seed, i) for i in range(repeats[model])]
        for model in sizes
        for n in sizes[model]
        for k in KS
    )
    for key in trials.finished:
        if key[-1] != ROUNDED and key[-1] < SECOND[key[0]]:
            trials(*key, ROUNDED)
    rows: list[Any] = []
    for model in sizes:
        for n in sizes[model]:
            for k in KS:
                keys = [(model, n, k, chosen.seed, i) for i in range(repeats[model])]
                if means := trials.means(keys):
                    for kind in KINDS:
                        shares = [round(100.0 * means[f"{m}, {kind}"]) for m in METHODS]
                        rows.append((model, kind, k, n, means["trials"], *shares))
    drawn = [model for model in sizes if any(row[0] == model for row in rows)]
    figure, axes = panels(2 * max(1, len(drawn)), 3, height=2.4)
    for half, model in enumerate(drawn):
        draw_curves(axes[6 * half : 6 * half + 6], rows, model)
    for ax in [ax for half in range(len(drawn)) for ax in axes[6 * half + 3 : 6 * half + 6]]:
        ax.set_xlabel("samples", fontsize=9)
    header = ("model", "success", "k", "n", "trials", *METHODS)
    table(chosen, "grahtp_recovery", header, rows)
    shown = [row for row in rows if row[0] == "logistic" or row[3] in (150, 200, 250)]
    note = f"Supports found, percent. {trials.standing()} {trials.stability('exact')}".rstrip()
    for_the_page(chosen, "grahtp_recovery", header, shown, note)
    save(chosen, figure, "grahtp_recovery")


if __name__ == "__main__":
    program(main, __doc__)
