"""Yuan, Li and Zhang (2018), figures 4 and 5: sparse logistic regression on real data.

Objective, test error and CPU time along k, with a ridge of 1e-5, of the hard-thresholding and the
greedy methods; then GraHTP and an l1-penalised fit with as many features.
"""

from __future__ import annotations

import os
import time
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from common import (
    ROUNDED,
    Options,
    Trials,
    curve,
    for_the_page,
    headline,
    logarithmic,
    logistic,
    own_data,
    panels,
    program,
    rounded,
    save,
    shipped,
    table,
    whole,
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


UNSTABLE = ("GraHTP", "FGraHTP", "GraSP")
"""Methods that change the whole support at a time: where two entries are nearly equal, the last
digit may decide between them."""
WHAT = ("objective", "error", "s")
DIGITS, TISSUE, TEXT = "digits 4, 9 and probes", "bladder tissue", "mail"


def read(name: str, folder: str) -> tuple[Any, Any]:
    if folder:
        return own_data(Path(folder))[name]
    data = shipped({DIGITS: "mnist5k", TISSUE: "bladder22k", TEXT: "spam_text"}[name])
    from benchmarks.data.transforms import probe_features, tfidf

    if name == DIGITS:
        four_nine = np.isin(data.y, (4, 9))
        probes = probe_features(data.X[four_nine])[0] / 999.0
        return probes.astype(float), data.y[four_nine] == 9
    if name == TISSUE:
        return (data.X - data.X.mean(0)) / data.X.std(0), data.y == 1
    return tfidf(data.X), data.y == 1


@cache
def halves(name: str, folder: str, seed: int) -> tuple[Any, Any, Any, Any]:
    """Return data and labels to learn from and, a quarter of them, to test with."""
    X, y = read(name, folder)
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


def trial(
    folder: str, name: str, seed: int, label: str, size: float, data: str = ""
) -> dict[str, float]:
    """Return what a method finds with ``size`` features, or the l1 fit of this strength."""
    A, b, B, c = halves(name, folder, seed)
    A = rounded(A) if data == ROUNDED else A
    if label == "l1":
        w, cpu = l1(A, b, size * 100 / A.shape[0])
        return {"k": int(np.count_nonzero(w)), "error": error(B, c, w), "s": cpu}
    answer = logistic(A, b, int(size), METHODS[label], ridge=RIDGE)
    return dict(zip(WHAT, (answer.value, error(B, c, answer.x), answer.cpu), strict=True))


def finished(chosen: Options, trials: Trials, folder: str) -> dict[str, dict[int, Any]]:
    """Return the numbers of every method for the sizes that all of them have finished."""
    shown = chosen.pick((DIGITS, TISSUE), (DIGITS, TISSUE, TEXT))
    out = {}
    for name in tuple(own_data(chosen.data)) if chosen.data else shown:
        few = len(halves(name, folder, chosen.seed)[1]) < 100
        most, ks = (40, range(8, 41, 8)) if few else (100, range(20, 101, 20))
        if chosen.full:
            ks = range(4, most + 1, 4) if few else (20, 40, 60, 80, *range(100, 1001, 100))
        found = {
            k: {label: trials(folder, name, chosen.seed, label, k) for label in METHODS} for k in ks
        }
        out[name] = {k: numbers for k, numbers in found.items() if all(numbers.values())}
        for k in out[name] if chosen.full and name in (DIGITS, TISSUE) else ():
            for label in UNSTABLE:
                trials(folder, name, chosen.seed, label, k, ROUNDED)
    return {name: found for name, found in out.items() if found}


def main(chosen: Options) -> None:
    trials, folder = Trials(chosen, "grahtp_logistic", trial), os.fspath(chosen.data or "")
    rows: list[Any] = []
    beside: list[Any] = []
    logistic(np.eye(4), [0, 1, 0, 1], 1, ridge=1.0)  # imports are not part of the times
    sets = finished(chosen, trials, folder)
    figure, axes = panels(max(1, len(sets)), 4, width=10.5, height=2.5)
    for line, (name, found) in enumerate(sets.items()):

        def run(label: str, size: float, name: str = name) -> dict[str, float]:
            return trials(folder, name, chosen.seed, label, size)

        for k, numbers in found.items():
            rows += [(name, k, label, *each.values()) for label, each in numbers.items()]
        for place, what in enumerate(WHAT):
            for label in METHODS:
                values = [numbers[label][what] for numbers in found.values()]
                curve(axes[4 * line + place], label, list(found), values)
        points = []
        for strength in chosen.pick((0.1, 0.3, 1.0, 3.0), (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)):
            theirs = run("l1", strength)
            ours = run("GraHTP", theirs["k"]) if theirs.get("k") else {}
            if ours:
                errors, seconds = (theirs["error"], ours["error"]), (theirs["s"], ours["s"])
                points.append((theirs["k"], *errors, *seconds))
        beside += [(name, *point) for point in sorted(points)]
        for label, place in (("l1", 1), ("GraHTP", 2)):
            sizes = [point[0] for point in sorted(points)]
            curve(axes[4 * line + 3], label, sizes, [point[place] for point in sorted(points)])
        headline(axes[4 * line], name)
        for place, what in enumerate(
            ("objective", "test error, %", "CPU seconds", "test error, %")
        ):
            axes[4 * line + place].set_ylabel(what, fontsize=9)
        for place in (0, 2):
            logarithmic(axes[4 * line + place])
    headline(axes[3], "compared with l1")
    for ax in axes[-4:]:
        whole(ax)
    table(chosen, "grahtp_logistic", ("data", "k", "method", "objective", "error %", "CPU s"), rows)
    shown = [
        (*point, *(row[3] for row in rows if row[:2] == point))
        for point in dict.fromkeys(row[:2] for row in rows)
    ]
    note = f"Objectives. {trials.stability('objective')}".rstrip()
    for_the_page(chosen, "grahtp_logistic", ("data", "k", *METHODS), shown, note)
    header = ("data", "k", "l1 error %", "GraHTP error %", "l1 CPU s", "GraHTP CPU s")
    table(chosen, "grahtp_logistic_l1", header, beside)
    shown = [row[:4] for row in beside]
    for_the_page(chosen, "grahtp_logistic_l1", header[:4], shown, "Test errors.")
    save(chosen, figure, "grahtp_logistic")


if __name__ == "__main__":
    program(main, __doc__)
