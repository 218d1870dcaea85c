"""Yuan, Li and Zhang (2018), table 4: discriminant analysis with an estimated precision matrix.

The protocol of the paper on the data of this repository: the most significant features of a
two-sample t-test on the training set, scaled by their standard deviation within the classes; six
folds choose the number of edges (or the penalty) by the likelihood of what is left out, those of
the default along a path; linear discriminant analysis with that matrix classifies the test set.
Bladder tissue: cancer or not, a sixth of each class is tested. Gliomas: subtype LGm4 or LGm5, 112
are learnt from, the others tested. "GLasso, refitted" is the
likelihood without penalty on the edges of GLasso.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from common import Options, Trials, for_the_page, program, shipped, table

import sparsemodel as sm

Fit = Callable[[Any, int, Any], list[Any]]
"""The matrices for several numbers of edges or penalties, by a covariance of so many samples."""


class Split(NamedTuple):
    train: Any
    labels: Any
    test: Any
    truth: Any


def pooled(X: Any, y: Any, means: Any) -> Any:
    deviations = X - means[y]
    return deviations.T @ deviations / len(X)


def class_means(X: Any, y: Any) -> Any:
    return np.stack([X[y == c].mean(axis=0) for c in (0, 1)])


def split(X: Any, y: Any, features: int, train: float, rng: np.random.Generator) -> Split:
    kept = np.zeros(len(y), dtype=bool)
    for c in (0, 1):
        members = rng.permutation(np.flatnonzero(y == c))
        kept[members[: round(train * members.size)]] = True
    A, b, T = X[kept], y[kept], X[~kept]
    means = class_means(A, b)
    spread = np.sqrt(((A - means[b]) ** 2).sum(axis=0) / (len(b) - 2))
    t = np.abs(means[1] - means[0]) / np.maximum(spread, 1e-12)
    best = np.sort(np.argsort(-t, kind="stable")[:features])
    return Split(A[:, best] / spread[best], b, T[:, best] / spread[best], y[~kept])


def likelihood(S: Any, n: int) -> tuple[Any, Any]:
    Omega = sm.Variable(S.shape, symmetric=True)
    return Omega, sm.minimize(sm.gaussian_nll(Omega, S, samples=n))


def l0(backend: str | None) -> Fit:
    def fit(S: Any, n: int, values: Any) -> list[Any]:
        Omega, goal = likelihood(S, n)
        sizes, found = [int(k) for k in values], []
        if backend is None and len(sizes) > 1:
            path = sm.Problem(goal, sm.card(sm.offdiag(Omega)) <= 2 * sizes[0]).path(k=sizes)
            return [next(iter(solution.values.values())) for solution in path]
        for k in sizes:
            sm.Problem(goal, sm.card(sm.offdiag(Omega)) <= 2 * k).solve(backend)
            found.append(Omega.value)
        return found

    return fit


def one_by_one(single: Callable[[Any, int, float], Any]) -> Fit:
    return lambda S, n, values: [single(S, n, value) for value in values]


def glasso(S: Any, n: int, penalty: float) -> Any:
    from sklearn.covariance import graphical_lasso

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return graphical_lasso(S, penalty, tol=1e-3, max_iter=200)[1]
        except FloatingPointError:  # too ill-conditioned for it: the penalty is not chosen
            return None


def refitted(S: Any, n: int, penalty: float) -> Any:
    penalised = glasso(S, n, penalty)
    if penalised is None:
        return None
    edges = np.argwhere(np.abs(np.triu(penalised, 1)) > 1e-10)
    Omega, goal = likelihood(S, n)
    sm.Problem(
        goal, sm.card(sm.offdiag(Omega)) <= 0, sm.required_edges(Omega, edges.tolist())
    ).solve()
    return Omega.value


def diagonal(S: Any, n: int, _: float) -> Any:
    return np.diag(1.0 / np.diag(S))


def tuned(fit: Fit, grid: Any, X: Any, y: Any, rng: np.random.Generator) -> float:
    if len(grid) == 1:
        return float(grid[0])
    losses = np.zeros(len(grid))
    folds = np.empty(len(y), dtype=int)
    for c in (0, 1):  # both classes in every fold
        members = rng.permutation(np.flatnonzero(y == c))
        folds[members] = np.arange(members.size) % 6
    for fold in range(6):
        inside = folds != fold
        means = class_means(X[inside], y[inside])
        S = pooled(X[inside], y[inside], means)
        held = pooled(X[~inside], y[~inside], means)
        for place, Omega in enumerate(fit(S, int(inside.sum()), grid)):
            if Omega is None:
                losses[place] = np.inf
            else:
                losses[place] += np.sum(held * Omega) - np.linalg.slogdet(Omega)[1]
    return float(grid[int(np.argmin(losses))])


def classify(Omega: Any, data: Split) -> Any:
    means = class_means(data.train, data.labels)
    shares = np.bincount(data.labels) / len(data.labels)
    scores = data.test @ Omega @ means.T - 0.5 * np.sum(means @ Omega * means, axis=1)
    return np.argmax(scores + np.log(shares), axis=1)


def measures(found: Any, truth: Any) -> tuple[float, float, float]:
    tp, tn = np.sum((found == 1) & (truth == 1)), np.sum((found == 0) & (truth == 0))
    fp, fn = np.sum((found == 1) & (truth == 0)), np.sum((found == 0) & (truth == 1))
    root = np.sqrt(float(tp + fp) * float(tp + fn) * float(tn + fp) * float(tn + fn))
    mcc = float(tp * tn - fp * fn) / root if root > 0.0 else 0.0
    return float(tn / (tn + fp)), float(tp / (tp + fn)), mcc


def problems() -> dict[str, tuple[Any, Any, float]]:
    bladder, glioma = shipped("bladder22k"), shipped("glioma_meth")
    two = np.isin(glioma.y, (3, 4))
    y = (glioma.y[two] == 4).astype(int)
    return {
        "bladder": (bladder.X, bladder.y.astype(int), 5.0 / 6.0),
        "glioma": (glioma.X[two], y, 112.0 / y.size),
    }


EDGES, PENALTIES = (0.25, 0.5, 1.0, 2.0), (0.2, 0.3, 0.4, 0.5, 0.7)
METHODS: dict[str, tuple[Fit, tuple[float, ...]]] = {
    "default": (l0(None), EDGES),
    "GraHTP": (l0("precision_grahtp"), EDGES),
    "GraSP": (l0("precision_grasp"), EDGES),
    "FBS": (l0("precision_fbs"), EDGES),
    "FoBa": (l0("precision_foba"), EDGES),
    "GLasso": (one_by_one(glasso), PENALTIES),
    "GLasso, refitted": (one_by_one(refitted), PENALTIES),
    "diagonal": (one_by_one(diagonal), (0.0,)),
}
"""A method, and what is chosen from: edges per feature, or penalties."""
FEW = ("default", "GraHTP", "GLasso", "GLasso, refitted", "diagonal")
MEASURES = ("specificity", "sensitivity", "MCC", "edges", "s")


def trial(name: str, p: int, seed: int, number: int, label: str) -> dict[str, float]:
    """Return the measures of a method for a random split."""
    X, y, share = problems()[name]
    data = split(X, y, p, share, np.random.default_rng((seed, number)))
    S = pooled(data.train, data.labels, class_means(data.train, data.labels))
    fit, grid = METHODS[label]
    choice = [int(share * p) for share in grid] if grid is EDGES else grid
    rng = np.random.default_rng((seed, number, 1))
    began = time.process_time()
    value = tuned(fit, choice, data.train, data.labels, rng)
    Omega = fit(S, len(data.labels), [value])[0]
    cpu = time.process_time() - began
    density = float(np.count_nonzero(np.abs(np.triu(Omega, 1)) > 1e-10))
    found = (*measures(classify(Omega, data), data.truth), density, cpu)
    return dict(zip(MEASURES, found, strict=True))


def main(chosen: Options) -> None:
    trials = Trials(chosen, "grahtp_lda", trial)
    p, labels = (113, tuple(METHODS)) if chosen.full else (40, FEW)
    l0(None)(np.eye(3), 10, [1])  # imports are not part of the times
    rows = []
    splits = range(chosen.repeats(2, 100))
    for number, name, label in product(splits, problems(), labels):
        trials(name, p, chosen.seed, number, label)
    for name, label in product(problems(), labels):
        keys = [(name, p, chosen.seed, number, label) for number in splits]
        done = [numbers for key in keys if (numbers := trials(*key))]
        if done:
            found = np.array([[numbers[what] for what in MEASURES] for numbers in done])
            mean, spread = found.mean(axis=0).tolist(), found.std(axis=0).tolist()
            cells = [f"{m:.2f} ({s:.2f})" for m, s in zip(mean[:3], spread[:3], strict=True)]
            rows.append((name, label, len(done), *cells, round(mean[3]), mean[4]))
    header = ("data", "precision matrix", "splits", *MEASURES[:-1], "CPU s")
    table(chosen, "grahtp_lda", header, rows)
    for_the_page(chosen, "grahtp_lda", header, rows, "Means over random splits (deviation).")


if __name__ == "__main__":
    program(main, __doc__)
