"""Axiotis and Sviridenko (2020), figures 1 to 4: loss against sparsity on real data.

The losses are drawn in percent above the lowest; the table has the lowest.

Linear regression on house prices, logistic regression on census income and printed letters; all
columns have unit norm. As in the paper every solution has an intercept, which counts for one of the
k nonzeros. With ``--full`` ARHT abandons a guess after 20 unsuccessful runs, as there, and
otherwise after three. OMPR, ARHT and exhaustive search start from OMP.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from common import (
    Options,
    curve,
    for_the_page,
    headline,
    layered,
    least_squares,
    logistic,
    own_data,
    panels,
    program,
    save,
    shipped,
    table,
    whole,
)

import sparsemodel as sm

METHODS = {
    "OMP": "omp",
    "OMPR": "ompr",
    "ARHT": sm.backends.ARHT(),
    "exhaustive search": "local_search",
    "default": None,
}


def problems(chosen: Options) -> dict[str, tuple[Any, Any]]:
    if chosen.data is not None:
        return own_data(chosen.data)
    house, adult, letter = map(shipped, ("lucas_house", "adult", "letter"))
    rows = slice(None) if chosen.full else slice(0, None, 8)
    return {
        "house prices": (house.X[rows], house.y[rows]),
        "census income": (adult.X[rows], adult.y[rows]),
        "letters A to M": (letter.X[rows], (letter.y[rows] < 13).astype(float)),
    }


def prepared(X: Any, y: Any) -> tuple[Any, Any, bool]:
    """Return unit columns, the target, and whether there are two classes."""
    X = np.asarray(X.todense()) if hasattr(X, "todense") else np.asarray(X, dtype=float)
    X = X[:, np.ptp(X, axis=0) > 0.0]
    return X / np.linalg.norm(X, axis=0), np.asarray(y), np.unique(y).size == 2


def lasso_support(A: Any, y: Any, k: int, binary: bool) -> Any:
    """Return the support of the l1 solution with ``k`` features, or fewer, by bisection."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import Lasso, LogisticRegression

    low, high = (1e-4, 1e6) if binary else (1e-9, np.max(np.abs(A.T @ y)) / len(y))
    best = np.empty(0, dtype=int)
    for _ in range(14):
        middle = float(np.sqrt(low * high))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", (ConvergenceWarning, FutureWarning))
            if binary:
                model = LogisticRegression(
                    C=middle,
                    l1_ratio=1.0,
                    solver="liblinear",
                    intercept_scaling=100.0,
                    max_iter=1000,
                    random_state=0,
                )
            else:
                model = Lasso(alpha=middle, max_iter=1000)
            found = np.flatnonzero(model.fit(A, y).coef_)
        if best.size < found.size <= k:
            best = found
        too_many = found.size > k
        low, high = (low, middle) if too_many == binary else (middle, high)
        if best.size == k:
            break
    return best


def above_the_least(losses: tuple[float, ...]) -> list[float]:
    """Return how far losses are above the least of them, in percent to four decimals."""
    return [round(100.0 * (loss / min(losses) - 1.0), 4) for loss in losses]


def main(chosen: Options) -> None:
    methods = METHODS | {"ARHT": sm.backends.ARHT(patience=chosen.pick(3, 20))}
    rows, given = [], problems(chosen)
    figure, axes = panels(1, len(given), height=3.0)
    for ax, (name, (X, y)) in zip(axes, given.items(), strict=True):
        A, b, binary = prepared(X, y)
        widest = A.shape[1] + 1
        levels = chosen.pick(
            [k for k in (2, 4, 6, 8, 11, 14, 18, 22) if k < widest], range(2, min(31, widest))
        )
        fit = partial(logistic, ridge=0.0) if binary else least_squares
        found: dict[str, list[float]] = {label: [] for label in ("LASSO", *METHODS)}
        for k in levels:
            support = lasso_support(A, b, k - 1, binary)
            refit = None
            if support.size:
                refit = fit(A[:, support], b, support.size, "omp", intercept=True)
            found["LASSO"].append(refit.value if refit else float("nan"))
            for label, backend in methods.items():
                found[label].append(fit(A, b, k - 1, backend, intercept=True).value)
        lowest = np.nanmin(list(found.values()), axis=0)
        for place, (label, values) in enumerate(found.items()):
            excess = 100.0 * (np.array(values) / lowest - 1.0)
            curve(ax, label, levels, excess, **layered(place))
        ax.set_yscale("symlog", linthresh=0.1, linscale=0.5)
        ax.yaxis.set_major_formatter("{x:g}")
        ax.set_ylim(-0.02, 100.0)
        rows += [(name, k, *(values[i] for values in found.values())) for i, k in enumerate(levels)]
        headline(ax, name)
        whole(ax)
    axes[0].set_ylabel("mean loss, % above the lowest", fontsize=9)
    header = ("data", "k", "LASSO", *METHODS)
    table(chosen, "arht_sparsity", header, rows)
    shown = [(*row[:2], min(row[2:]), *above_the_least(row[2:])) for row in rows]
    level = sum(row[-1] == 0.0 for row in shown)
    note = (
        "Percent above the least of the mean losses; the default's is the least, or level with it, "
        f"in {level} of {len(shown)} rows."
    )
    for_the_page(chosen, "arht_sparsity", (*header[:2], "least", *header[2:]), shown, note)
    save(chosen, figure, "arht_sparsity")


if __name__ == "__main__":
    program(main, __doc__)
