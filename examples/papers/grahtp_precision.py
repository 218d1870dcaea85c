"""Yuan, Li and Zhang (2018), figure 6: sparse precision matrices from 100 samples.

The true matrix is Theta + sigma I, entries of Theta are 1 with probability 0.1, the condition
number is p. All methods get the true number of edges; GLasso finds its penalty by bisection. Error
in the Frobenius norm, F-score of the edges and CPU time.
"""

from __future__ import annotations

import time
import warnings
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

import sparsemodel as sm

METHODS = {
    "GraHTP": "precision_grahtp",
    "GraSP": "precision_grasp",
    "FBS": "precision_fbs",
    "FoBa": "precision_foba",
    "default": None,
}
NAMES = (*METHODS, "GLasso")
WHAT = {"error": "Frobenius error", "F": "F-score of edges", "s": "CPU seconds"}
SAMPLES = 100


def instance(p: int, rng: np.random.Generator) -> tuple[Any, Any]:
    theta = np.triu((rng.random((p, p)) < 0.1).astype(float), 1)
    theta += theta.T
    spectrum = np.linalg.eigvalsh(theta)
    truth = theta + (spectrum[-1] - p * spectrum[0]) / (p - 1) * np.eye(p)
    root = np.linalg.cholesky(truth)
    X = np.linalg.solve(root.T, rng.standard_normal((p, SAMPLES))).T
    return truth, np.cov(X, rowvar=False, bias=True)


def estimate(S: Any, k: int, backend: Any) -> Any:
    Omega = sm.Variable(S.shape, symmetric=True)
    likelihood = sm.minimize(sm.gaussian_nll(Omega, S))
    sm.Problem(likelihood, sm.card(sm.offdiag(Omega)) <= 2 * k).solve(backend)
    return Omega.value


def edges(Omega: Any) -> int:
    return int(np.count_nonzero(np.abs(np.triu(Omega, 1)) > 1e-10))


def glasso(S: Any, k: int) -> Any:
    from sklearn.covariance import graphical_lasso

    high = float(np.abs(np.triu(S, 1)).max())
    low, best = 1e-3 * high, np.diag(1.0 / np.diag(S))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(12):
            penalty = float(np.sqrt(low * high))
            try:
                Omega = graphical_lasso(S, penalty, tol=1e-3, max_iter=200)[1]
            except FloatingPointError:
                low = penalty
                continue
            if abs(edges(Omega) - k) < abs(edges(best) - k):
                best = Omega
            low, high = (penalty, high) if edges(Omega) > k else (low, penalty)
    return best


def trial(p: int, seed: int, number: int) -> dict[str, float]:
    """Return error, F-score, and CPU seconds of every method."""
    truth, S = instance(p, np.random.default_rng((seed, p, number)))
    true, k = np.triu(truth, 1) != 0.0, edges(truth)
    numbers: dict[str, float] = {}
    for label in NAMES:
        began = time.process_time()
        Omega = glasso(S, k) if label == "GLasso" else estimate(S, k, METHODS[label])
        numbers[f"{label}, s"] = time.process_time() - began
        found = np.abs(np.triu(Omega, 1)) > 1e-10
        numbers[f"{label}, error"] = float(np.linalg.norm(Omega - truth))
        both = float((found & true).sum())
        numbers[f"{label}, F"] = 2.0 * both / max(1.0, float(found.sum() + true.sum()))
    return numbers


def main(chosen: Options) -> None:
    sizes, count = chosen.pick((30, 60, 120), (30, 60, 120, 200)), chosen.repeats(3, 100)
    trials = Trials(chosen, "grahtp_precision", trial)
    estimate(np.eye(3), 1, None)  # imports are not part of the times
    rows, drawn = [], []
    for p in sizes:
        if means := trials.means((p, chosen.seed, number) for number in range(count)):
            drawn.append(p)
            rows += [
                (p, means["trials"], what, *(means[f"{label}, {short}"] for label in NAMES))
                for short, what in WHAT.items()
            ]
    figure, axes = panels(1, 3, height=3.0)
    for ax, what in zip(axes, WHAT.values(), strict=True):
        for i, label in enumerate(NAMES):
            curve(ax, label, drawn, [row[3 + i] for row in rows if row[2] == what])
        headline(ax, what)
        ax.set_xlabel("variables", fontsize=9)
        ax.set_xticks(sizes)
    logarithmic(axes[2])
    header = ("p", "trials", "", *NAMES)
    table(chosen, "grahtp_precision", header, rows)
    for_the_page(chosen, "grahtp_precision", header, rows, "Means over the trials.")
    save(chosen, figure, "grahtp_precision")


if __name__ == "__main__":
    program(main, __doc__)
