"""Yuan, Li and Zhang (2018), figures 4 and 5: sparse logistic regression on real data.

Objective, test error and CPU time along k, with a ridge of 1e-5, of the hard-thresholding and the
greedy methods; then GraHTP beside an l1-penalised fit with as many features.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import (
    Options,
    curve,
    for_the_page,
    headline,
    logarithmic,
    logistic,
    nonzeros,
    own_data,
    panels,
    program,
    save,
    shipped,
    table,
)

RIDGE = 1e-5
METHODS = {
    "GraHTP": "grahtp",
    "FGraHTP": "fgrahtp",
    "GraSP": "grasp",
    "FBS": "omp",
    "FoBa": "foba",
    "default": None,
}


def problems(chosen: Options) -> dict[str, tuple[Any, Any]]:
    if chosen.data is not None:
        return own_data(chosen.data)
    digits, bladder = shipped("mnist5k"), shipped("bladder22k")
    from benchmarks.data.transforms import probe_features, tfidf

    four_nine = np.isin(digits.y, (4, 9))
    probes = probe_features(digits.X[four_nine])[0] / 999.0
    found = {
        "digits 4, 9 and probes": (probes.astype(float), digits.y[four_nine] == 9),
        "bladder tissue": ((bladder.X - bladder.X.mean(0)) / bladder.X.std(0), bladder.y == 1),
    }
    if chosen.full:
        mail = shipped("spam_text")
        found["mail"] = (tfidf(mail.X), mail.y == 1)
    return found


def halves(X: Any, y: Any, seed: int) -> tuple[Any, Any, Any, Any]:
    order = np.random.default_rng(seed).permutation(len(y))
    test, train = np.sort(order[: len(y) // 4]), np.sort(order[len(y) // 4 :])
    X = sp.csr_array(X) if sp.issparse(X) else X
    return X[train], y[train].astype(float), X[test], y[test].astype(float)


def error(X: Any, y: Any, w: Any) -> float:
    return 100.0 * float(np.mean((X @ w > 0.0) != (y > 0.5)))


def l1(X: Any, y: Any, strength: float) -> tuple[Any, float]:
    """Return the coefficients of an l1-penalised fit and its CPU seconds."""
    from sklearn.linear_model import LogisticRegression

    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegression(
            C=strength,
            l1_ratio=1.0,
            solver="liblinear",
            fit_intercept=False,
            max_iter=300,
            random_state=0,  # it goes through coordinates in random order, and is not at the end
        ).fit(X, y)
    return model.coef_[0], time.process_time() - began


def beside_l1(chosen: Options, A: Any, b: Any, B: Any, c: Any) -> list[tuple[float, ...]]:
    """Return sizes of l1 fits, the test errors and CPU seconds of these and of GraHTP."""
    points = []
    for strength in chosen.pick((0.1, 0.3, 1.0, 3.0), (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)):
        w, cpu = l1(A, b, strength * 100 / A.shape[0])
        if k := int(np.count_nonzero(w)):
            answer = logistic(A, b, k, "grahtp", ridge=RIDGE)
            points.append((k, error(B, c, w), error(B, c, answer.x), cpu, answer.cpu))
    return sorted(points)


def main(chosen: Options) -> None:
    given = problems(chosen)
    rows, beside = [], []
    figure, axes = panels(len(given), 4, width=10.5, height=2.5)
    for line, (name, (X, y)) in enumerate(given.items()):
        A, b, B, c = halves(X, y, chosen.seed)
        most = 40 if A.shape[0] < 100 else 100
        ks = (
            range(100, 1001, 100)
            if chosen.full and most == 100
            else range(most // 5, most + 1, most // 5)
        )
        found: dict[str, list[tuple[float, float, float]]] = {label: [] for label in METHODS}
        logistic(A[:20, :20], b[:20], 1, ridge=1.0)  # imports are not part of the times
        for k in ks:
            for label, backend in METHODS.items():
                answer = logistic(A, b, k, backend, ridge=RIDGE)
                found[label].append((answer.value, error(B, c, answer.x), answer.cpu))
                rows.append((name, k, label, *found[label][-1]))
        for label, numbers in found.items():
            for place, values in enumerate(zip(*numbers, strict=True)):
                curve(axes[4 * line + place], label, ks, values)
        points = beside_l1(chosen, A, b, B, c)
        beside += [(name, *point) for point in points]
        sizes, theirs, ours, *_ = zip(*points, strict=True)
        curve(axes[4 * line + 3], "l1", sizes, theirs)
        curve(axes[4 * line + 3], "GraHTP", sizes, ours)
        headline(axes[4 * line], name)
        for place, what in enumerate(
            ("objective", "test error, %", "CPU seconds", "test error, %")
        ):
            axes[4 * line + place].set_ylabel(what, fontsize=9)
        for place in (0, 2):
            logarithmic(axes[4 * line + place])
    headline(axes[3], "beside l1")
    for ax in axes[-4:]:
        nonzeros(ax)
    table(chosen, "grahtp_logistic", ("data", "k", "method", "objective", "error %", "CPU s"), rows)
    shown = [
        (*point, *(row[3] for row in rows if row[:2] == point))
        for point in dict.fromkeys(row[:2] for row in rows)
    ]
    for_the_page(chosen, "grahtp_logistic", ("data", "k", *METHODS), shown, "Objectives.")
    header = ("data", "k", "l1 error %", "GraHTP error %", "l1 CPU s", "GraHTP CPU s")
    table(chosen, "grahtp_logistic_l1", header, beside)
    shown = [row[:4] for row in beside]
    for_the_page(chosen, "grahtp_logistic_l1", header[:4], shown, "Test errors.")
    save(chosen, figure, "grahtp_logistic")


if __name__ == "__main__":
    program(main, __doc__)
