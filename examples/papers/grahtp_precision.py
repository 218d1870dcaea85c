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
from common import curve, headline, logarithmic, options, panels, save, table

import sparsemodel as sm

METHODS = {
    "GraHTP": "precision_grahtp",
    "GraSP": "precision_grasp",
    "FBS": "precision_fbs",
    "FoBa": "precision_foba",
    "default": None,
}
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


def main() -> None:
    chosen = options(__doc__)
    sizes, trials = chosen.pick((30, 60, 120), (30, 60, 120, 200)), chosen.repeats(3, 100)
    names = (*METHODS, "GLasso")
    estimate(np.eye(3), 1, None)  # imports are not part of the times
    rows, found = [], {label: [] for label in names}
    for p in sizes:
        scores: dict[str, list[Any]] = {label: [] for label in names}
        for trial in range(trials):
            truth, S = instance(p, np.random.default_rng((chosen.seed, p, trial)))
            true, k = np.triu(truth, 1) != 0.0, edges(truth)
            for label in names:
                began = time.process_time()
                Omega = glasso(S, k) if label == "GLasso" else estimate(S, k, METHODS[label])
                cpu = time.process_time() - began
                chosen_edges = np.abs(np.triu(Omega, 1)) > 1e-10
                both = float((chosen_edges & true).sum())
                f = 2.0 * both / max(1.0, float(chosen_edges.sum() + true.sum()))
                scores[label].append((float(np.linalg.norm(Omega - truth)), f, cpu))
        for label in names:
            mean = np.mean(scores[label], axis=0).tolist()
            found[label].append(mean)
            rows.append((p, label, *mean))
    figure, axes = panels(1, 3, height=3.0)
    for label in names:
        for place, values in enumerate(zip(*found[label], strict=True)):
            curve(axes[place], label, sizes, values)
    for ax, text in zip(axes, ("Frobenius error", "F-score of edges", "CPU seconds"), strict=True):
        headline(ax, text)
        ax.set_xlabel("variables", fontsize=9)
        ax.set_xticks(sizes)
    logarithmic(axes[2])
    table(chosen, "grahtp_precision", ("p", "method", "error", "F", "CPU s"), rows)
    save(chosen, figure, "grahtp_precision")


if __name__ == "__main__":
    main()
