"""Zhou, Xiu and Qi (2021), figures 5 and 6: sparse logistic regression on genes and text.

Training loss, loss on held-out samples and CPU time along the sparsity, with a ridge of 1e-6 over
the number of samples. Gene expressions are standardised by column, text is weighted by term rarity.

The ridge is the paper's mu ||x||^2 with mu = 1e-6 / m, which is a weight of 2 mu here.
"""

from __future__ import annotations

import os
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

import sparsemodel as sm

METHODS = {"NTGP": "ntgp", "IIHT": "iiht", "GraSP": "grasp", "NHTP": "nhtp", "default": None}
UNSTABLE = ("NTGP", "IIHT", "GraSP", "NHTP")
"""Methods that change the whole support at a time: where two entries are nearly equal, the last
digit may decide between them."""
WHAT = ("training loss", "test loss", "s")
GENES, TEXT = ("leukaemia", "tumours", "bladder tissue"), "mail"
SHIPPED = {"bladder tissue": "bladder22k", TEXT: "spam_text"}


@cache
def problem(name: str, folder: str) -> tuple[Any, Any, Any, Any]:
    """Return data and labels to learn from and to test with."""
    if folder:
        X, y = own_data(Path(folder))[name]
        test = every_fourth(len(y))
    elif name == "tumours":
        khan = sm.datasets.load_khan()
        X, y, test = khan.X, khan.y == 1, khan.extra["is_test"]
    else:
        golub = name == "leukaemia"
        data = sm.datasets.load_golub() if golub else shipped(SHIPPED[name])
        X, y, test = data.X, data.y == 1, every_fourth(data.y.size)
    if not folder and name != TEXT:
        X = (X - X[~test].mean(0)) / (X[~test].std(0) + 1e-12)
    elif not folder:
        from benchmarks.data.transforms import tfidf

        X = tfidf(X)
    X = sp.csr_array(X) if sp.issparse(X) else X
    y = np.asarray(y, dtype=float)
    return X[~test], y[~test], X[test], y[test]


def every_fourth(n: int) -> Any:
    return np.arange(n) % 4 == 3


def loss(A: Any, y: Any, x: Any) -> float:
    u = A @ x
    return float(np.mean(np.logaddexp(0.0, u) - y * u))


def trial(folder: str, name: str, k: int, label: str, data: str = "") -> dict[str, float]:
    """Return both losses and the CPU seconds of a method."""
    A, b, B, c = problem(name, folder)
    A = rounded(A) if data == ROUNDED else A
    answer = logistic(A, b, k, METHODS[label], ridge=2e-6 / len(b))
    return dict(zip(WHAT, (loss(A, b, answer.x), loss(B, c, answer.x), answer.cpu), strict=True))


def main(chosen: Options) -> None:
    trials, folder = Trials(chosen, "nhtp_real", trial), os.fspath(chosen.data or "")
    names = tuple(own_data(chosen.data)) if chosen.data else chosen.pick(GENES, (*GENES, TEXT))
    logistic(np.eye(4), [0, 1, 0, 1], 1, ridge=1.0)  # imports are not part of the times
    rows: list[Any] = []
    finished = {}
    for name in names:
        large = len(problem(name, folder)[1]) > 1000
        levels = range(100, 1001, 100) if large else chosen.pick(range(2, 15, 3), range(2, 31, 2))
        found = {k: {label: trials(folder, name, k, label) for label in METHODS} for k in levels}
        found = {k: numbers for k, numbers in found.items() if all(numbers.values())}
        if found:
            finished[name] = found
        for k in found if chosen.full and name in GENES else ():
            for label in UNSTABLE:
                trials(folder, name, k, label, ROUNDED)
    wide = max(1, len(finished))
    figure, axes = panels(3, wide, height=2.1)
    for column, (name, found) in enumerate(finished.items()):
        for k, numbers in found.items():
            rows += [(name, k, label, *each.values()) for label, each in numbers.items()]
        for line, what in enumerate(WHAT):
            for label in METHODS:
                values = [numbers[label][what] for numbers in found.values()]
                curve(axes[line * wide + column], label, list(found), values)
        headline(axes[column], name)
        whole(axes[2 * wide + column])
    for place, ax in enumerate(axes):
        logarithmic(ax)
        if place % wide == 0:
            what = ("training loss", "test loss", "CPU seconds")[place // wide]
            ax.set_ylabel(what, fontsize=9)
    header = ("data", "k", "method", "training loss", "test loss", "CPU s")
    table(chosen, "nhtp_real", header, rows)
    shown = [
        (*point, *(row[3] for row in rows if row[:2] == point))
        for point in dict.fromkeys(row[:2] for row in rows)
    ]
    note = f"Training losses. {trials.stability('training loss')}".rstrip()
    for_the_page(chosen, "nhtp_real", ("data", "k", *METHODS), shown, note)
    save(chosen, figure, "nhtp_real")


if __name__ == "__main__":
    program(main, __doc__)
