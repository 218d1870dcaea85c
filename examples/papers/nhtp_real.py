"""Zhou, Xiu and Qi (2021), figures 5 and 6: sparse logistic regression on genes and text.

Training loss, loss on held-out samples and CPU time along the sparsity, with a ridge of 1e-6 over
the number of samples. Gene expressions are standardised by column, text is weighted by term rarity.

The ridge is the paper's mu ||x||^2 with mu = 1e-6 / m, which is a weight of 2 mu here.
"""

from __future__ import annotations

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

import sparsemodel as sm

METHODS = {"NTGP": "ntgp", "IIHT": "iiht", "GraSP": "grasp", "NHTP": "nhtp", "default": None}


def problems(chosen: Options) -> dict[str, tuple[Any, Any, Any]]:
    """Return ``{name: (X, y, test rows)}``."""
    if chosen.data is not None:
        given = own_data(chosen.data)
        return {name: (X, y, every_fourth(len(y))) for name, (X, y) in given.items()}
    khan, golub, bladder = sm.datasets.load_khan(), sm.datasets.load_golub(), shipped("bladder22k")
    from benchmarks.data.transforms import tfidf

    found = {
        "leukaemia": (golub.X, golub.y == 1, every_fourth(golub.y.size)),
        "tumours": (khan.X, khan.y == 1, khan.extra["is_test"]),
        "bladder tissue": (bladder.X, bladder.y == 1, every_fourth(bladder.y.size)),
    }
    found = {
        name: ((X - X[~test].mean(0)) / (X[~test].std(0) + 1e-12), y, test)
        for name, (X, y, test) in found.items()
    }
    if chosen.full:
        mail = shipped("spam_text")
        found["mail"] = (tfidf(mail.X), mail.y == 1, every_fourth(mail.y.size))
    return found


def every_fourth(n: int) -> Any:
    return np.arange(n) % 4 == 3


def loss(A: Any, y: Any, x: Any) -> float:
    u = A @ x
    return float(np.mean(np.logaddexp(0.0, u) - y * u))


def main(chosen: Options) -> None:
    given = problems(chosen)
    logistic(np.eye(4), [0, 1, 0, 1], 1, ridge=1.0)  # imports are not part of the times
    rows: list[Any] = []
    figure, axes = panels(3, len(given), height=2.1)
    for column, (name, (X, y, test)) in enumerate(given.items()):
        X = sp.csr_array(X) if sp.issparse(X) else X
        y = np.asarray(y, dtype=float)
        A, b, B, c = X[~test], y[~test], X[test], y[test]
        large = A.shape[0] > 1000
        levels = range(100, 1001, 300) if large else chosen.pick(range(2, 15, 3), range(2, 31, 2))
        found: dict[str, list[tuple[float, float, float]]] = {label: [] for label in METHODS}
        for k in levels:
            for label, backend in METHODS.items():
                answer = logistic(A, b, k, backend, ridge=2e-6 / len(b))
                numbers = loss(A, b, answer.x), loss(B, c, answer.x), answer.cpu
                found[label].append(numbers)
                rows.append((name, k, label, *numbers))
        for label, numbers in found.items():
            for line, values in enumerate(zip(*numbers, strict=True)):
                curve(axes[line * len(given) + column], label, levels, values)
        headline(axes[column], name)
        nonzeros(axes[2 * len(given) + column])
    for place, ax in enumerate(axes):
        logarithmic(ax)
        if place % len(given) == 0:
            what = ("training loss", "test loss", "CPU seconds")[place // len(given)]
            ax.set_ylabel(what, fontsize=9)
    header = ("data", "k", "method", "training loss", "test loss", "CPU s")
    table(chosen, "nhtp_real", header, rows)
    shown = [
        (*point, *(row[3] for row in rows if row[:2] == point))
        for point in dict.fromkeys(row[:2] for row in rows)
    ]
    for_the_page(chosen, "nhtp_real", ("data", "k", *METHODS), shown, "Training losses.")
    save(chosen, figure, "nhtp_real")


if __name__ == "__main__":
    program(main, __doc__)
