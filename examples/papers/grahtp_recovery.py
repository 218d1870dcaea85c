"""Yuan, Li and Zhang (2018), figures 2 and 3: support recovery against the number of samples.

500 unknowns, 50 of them not zero; linear and logistic models, fitted with k = 50, 70 and 110. With
k = 50 the support has to be exact, with a larger k it has to contain the true one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import curve, headline, least_squares, logistic, options, panels, save, table
from scipy.special import expit

import sparsemodel as sm

P, TRUE = 500, 50
RIDGE = 1e-4


def methods(model: str) -> dict[str, Any]:
    # The Hessian of the linear model has a diagonal of about one, which is Foucart's unit step.
    pursuit = sm.backends.GraHTP(step_size=1.0) if model == "linear" else "grahtp"
    return {"GraHTP": pursuit, "FGraHTP": "fgrahtp", "GraSP": "grasp", "FBS": "omp", "FoBa": "foba"}


def draw(model: str, n: int, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Return ``(U, v, w)``; the coefficients are N(5, 1) with random signs."""
    U = rng.standard_normal((n, P))
    w = np.zeros(P)
    signs = rng.choice([-1.0, 1.0], TRUE)
    w[rng.choice(P, TRUE, replace=False)] = signs * rng.normal(5.0, 1.0, TRUE)
    if model == "linear":
        return U, U @ w + rng.standard_normal(n), w
    return U, np.where(rng.random(n) < expit(2.0 * (U @ w)), 1.0, -1.0), w


def main() -> None:
    chosen = options(__doc__)
    sizes = {
        "linear": chosen.pick((150, 200, 250, 300, 400), range(50, 501, 25)),
        "logistic": chosen.pick((400, 700, 1000), range(200, 2401, 200)),
    }
    trials = {"linear": chosen.repeats(6, 100), "logistic": chosen.repeats(3, 100)}
    ks = (TRUE, 70, 110)
    rows, (figure, axes) = [], panels(2, 3, height=2.6)
    for line, model in enumerate(sizes):
        for place, k in enumerate(ks):
            found: dict[str, list[float]] = {label: [] for label in methods(model)}
            for n in sizes[model]:
                hits = dict.fromkeys(found, 0)
                for trial in range(trials[model]):
                    rng = np.random.default_rng((chosen.seed, n, trial))
                    U, v, w = draw(model, n, rng)
                    for label, backend in methods(model).items():
                        answer = (
                            least_squares(U, v, k, backend)
                            if model == "linear"
                            else logistic(U, v, k, backend, ridge=RIDGE)
                        )
                        hits[label] += bool(np.all(answer.x[w != 0.0] != 0.0))
                for label, count in hits.items():
                    found[label].append(100.0 * count / trials[model])
                rows.append((model, k, n, *(found[label][-1] for label in found)))
            ax = axes[3 * line + place]
            for label, shares in found.items():
                size = 7.0 - 0.9 * len(ax.lines)  # so that lines under others can be seen
                curve(ax, label, sizes[model], shares, markersize=size, linewidth=0.5 * size)
            headline(ax, f"{model}, k = {k}")
            ax.set_ylim(-4, 104)
        axes[3 * line].set_ylabel("support found, %", fontsize=9)
    for ax in axes[3:]:
        ax.set_xlabel("samples", fontsize=9)
    table(chosen, "grahtp_recovery", ("model", "k", "n", *methods("linear")), rows)
    save(chosen, figure, "grahtp_recovery")


if __name__ == "__main__":
    main()
