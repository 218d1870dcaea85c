"""Yuan, Liu, Wang, Liu and Metaxas (2020), figures 1 to 4: duality gaps on simulated data.

The gap between the best k-sparse objective and the best dual bound for linear regression: against
lambda N at several N (figure 1), against the noise at N = d (figure 2), against the condition
number (figure 3); objective and estimation error of DIHT, IHT and HTP on badly conditioned data
against N (figure 4). (d, k) = (30, 5) and (500, 50), as in the paper.

Coefficients are +-1. The paper's lambda N ends at 20; figure 1 goes on until the gap is zero
(drawn at 1e-6, as in the paper). The dual is maximised by the certificate's relaxation. At d = 30
the primal is minimised by a proof; at d = 500 by the default solver, so that the gap drawn is an
upper bound on the optimal one.
"""

from __future__ import annotations

import math
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
    whole,
)

import sparsemodel as sm
from sparsemodel.certificates.relaxation import relax

FLOOR = 1e-6
STYLES = (
    {"color": "#0072b2", "marker": "o"},
    {"color": "#d55e00", "marker": "s"},
    {"color": "#009e73", "marker": "^"},
)
SIZES = ((30, 5), (500, 50))


def made_up(rng: Any, n: int, d: int, k: int, sigma: float, root: Any = None) -> tuple[Any, ...]:
    """Return data of a sparse linear model; ``root @ root.T`` is the covariance of a row."""
    w = np.zeros(d)
    w[rng.choice(d, k, replace=False)] = rng.choice([-1.0, 1.0], k)
    X = rng.standard_normal((n, d))
    X = X if root is None else X @ root.T
    return X, X @ w + sigma * rng.standard_normal(n), w


def trial(
    n: int, d: int, k: int, sigma: float, kappa: float, lam: float, seed: int, number: int
) -> dict[str, float]:
    """Return the least objective known minus the best dual value; ``kappa`` is 0 for rows of I."""
    rng = np.random.default_rng([seed, number])
    root = root_of(rng, d, kappa, lam) if kappa else None
    X, y, _ = made_up(rng, n, d, k, sigma, root)
    w = sm.Variable(d)
    problem = sm.Problem(sm.minimize(sm.squared_loss(X @ w, y) + sm.ridge(w, lam)), sm.card(w) <= k)
    value = problem.solve().value
    if d <= 30:
        value = problem.prove(gap=1e-7, time_limit=30.0).value
    dual = relax(problem.form, w.value, tolerance=1e-9)
    if isinstance(dual, str):
        raise SystemExit(dual)
    return {"gap": max(0.0, value - dual.bound)}


def median_gap(chosen: Options, trials: Trials, count: int, *point: float) -> float:
    """Return the median over the trials of a point, which has all numbers but the seed."""
    keys = [(*point, chosen.seed, number) for number in range(count)]
    found = [numbers["gap"] for key in keys if (numbers := trials(*key))]
    return max(float(np.median(found)), FLOOR) if found else float("nan")


def strong_duality(chosen: Options, trials: Trials, rows: list[Any]) -> None:
    """Figure 1: the gap closes as lambda N grows, whatever N is."""
    figure, axes = panels(1, 2)
    grid = (0.01, 0.1, 1.0, 10.0, 20.0, 100.0, 1000.0)
    for ax, (d, k) in zip(axes, SIZES, strict=True):
        count = chosen.repeats(5 if d < 100 else 3, 20 if d < 100 else 5)
        for share, style in zip((0.2, 0.5, 1.0), STYLES, strict=False):
            n = int(share * d)
            ys = [median_gap(chosen, trials, count, n, d, k, 1.0, 0.0, lam / n) for lam in grid]
            rows += [("1", d, k, f"N/d = {share}", x, v) for x, v in zip(grid, ys, strict=True)]
            curve(ax, "default", grid, ys, f"N/d = {share}", **style)
        finish(ax, f"d = {d}, k = {k}", "λN")
        logarithmic(ax, "x")
    save(chosen, figure, "diht_strong_duality")


def approximate_duality(chosen: Options, trials: Trials, rows: list[Any]) -> None:
    """Figure 2: the gap grows with the noise."""
    figure, axes = panels(1, 2)
    grid = (0.001, 1.0, 5.0, 10.0, 25.0, 50.0)
    for ax, (d, k) in zip(axes, SIZES, strict=True):
        count = chosen.repeats(5 if d < 100 else 1, 20 if d < 100 else 5)
        for lam0, style in zip((0.01, 0.1, 1.0), STYLES, strict=False):
            lam = lam0 / math.sqrt(d)
            ys = [median_gap(chosen, trials, count, d, d, k, sigma, 0.0, lam) for sigma in grid]
            rows += [("2", d, k, f"lambda0 = {lam0}", x, v) for x, v in zip(grid, ys, strict=True)]
            curve(ax, "default", grid, ys, f"λ = {lam0:g}/√N", **style)
        finish(ax, f"d = N = {d}, k = {k}", "standard deviation of the noise")
    save(chosen, figure, "diht_noise")


def condition_number(chosen: Options, trials: Trials, rows: list[Any]) -> None:
    """Figure 3: hardly any effect of the condition number of the Hessian."""
    figure, axes = panels(1, 2)
    grid = (2.0, 10.0, 50.0, 100.0, 200.0)
    for ax, (d, k) in zip(axes, SIZES, strict=True):
        count = chosen.repeats(5 if d < 100 else 1, 20 if d < 100 else 5)
        for lam0, style in zip((0.1, 1.0, 10.0), STYLES, strict=False):
            lam = lam0 / math.sqrt(d)
            ys = [median_gap(chosen, trials, count, d, d, k, 0.1, kappa, lam) for kappa in grid]
            rows += [("3", d, k, f"lambda0 = {lam0}", x, v) for x, v in zip(grid, ys, strict=True)]
            curve(ax, "default", grid, ys, f"λ = {lam0:g}/√N", **style)
        finish(ax, f"d = N = {d}, k = {k}", "condition number")
    save(chosen, figure, "diht_condition")


def root_of(rng: Any, d: int, kappa: float, lam: float) -> Any:
    """Return a root of a covariance S with cond(S + lam I) = kappa, by the paper's footnote 3."""
    q, _ = np.linalg.qr(rng.standard_normal((d, d)))
    values = np.linspace(0.0, (2.0 * kappa - 1.0) * lam, d) + lam * kappa / (kappa - 1.0)
    return q * np.sqrt(values)


def badly_conditioned(chosen: Options, rows: list[Any]) -> None:
    """Figure 4: DIHT against IHT and HTP, heavy correlations across the support."""
    d, k = 500, 50
    sizes = chosen.pick((100, 300, 500), (100, 200, 300, 400, 500))
    figure, axes = panels(2, 2)
    for row, lam0 in enumerate((1.0, 10.0)):
        found: dict[str, list[tuple[float, float]]] = {"DIHT": [], "IHT": [], "HTP": []}
        for n in sizes:
            rng = np.random.default_rng([chosen.seed, n])
            w0 = np.zeros(d)
            support = rng.choice(d, k, replace=False)
            w0[support] = rng.choice([-1.0, 1.0], k)
            outside = rng.choice(np.setdiff1d(np.arange(d), support), k // 2, replace=False)
            mixed = np.concatenate([support[: k // 2], outside])
            covariance = np.eye(d)
            covariance[np.ix_(mixed, mixed)] = 0.5 + 0.5 * np.eye(k)
            X = rng.standard_normal((n, d)) @ np.linalg.cholesky(covariance).T
            y = X @ w0 + 0.1 * rng.standard_normal(n)
            for name, backend in (("DIHT", "diht"), ("IHT", "iht"), ("HTP", "grahtp")):
                w = sm.Variable(d)
                goal = sm.minimize(sm.squared_loss(X @ w, y) + sm.ridge(w, lam0 / math.sqrt(n)))
                value = sm.Problem(goal, sm.card(w) <= k).solve(backend).value
                found[name].append((value, float(np.linalg.norm(w.value - w0))))
        for name, values in found.items():
            for column in (0, 1):
                ys = [v[column] for v in values]
                curve(axes[2 * row + column], name, sizes, ys)
            rows += [
                ("4", d, k, f"{name}, lambda0 = {lam0}", n, *v)
                for n, v in zip(sizes, values, strict=True)
            ]
        headline(axes[2 * row], f"objective, λ = {lam0:g}/√N")
        headline(axes[2 * row + 1], f"estimation error, λ = {lam0:g}/√N")
    for ax in axes:
        whole(ax, "observations N")
    save(chosen, figure, "diht_ill_conditioned")


def finish(ax: Any, title: str, label: str) -> None:
    logarithmic(ax)
    headline(ax, title)
    ax.set_xlabel(label, fontsize=9)
    ax.set_ylabel("primal-dual gap", fontsize=9)


def main(chosen: Options) -> None:
    rows: list[Any] = []
    trials = Trials(chosen, "diht_gaps", trial)
    strong_duality(chosen, trials, rows)
    approximate_duality(chosen, trials, rows)
    condition_number(chosen, trials, rows)
    badly_conditioned(chosen, rows)
    header = ("figure", "d", "k", "curve", "x", "gap or objective", "error")
    table(chosen, "diht_gaps", header, [[*row, ""][:7] for row in rows], show=False)
    steps = [
        (d, name, gaps[200.0] / gaps[50.0])
        for d, name in sorted({(row[1], row[3]) for row in rows if row[0] == "3"})
        if (gaps := {row[4]: row[5] for row in rows if (row[0], row[1], row[3]) == ("3", d, name)})
    ]
    header = ("d", "ridge", "gap at condition number 200 over that at 50")
    for_the_page(chosen, "diht_gaps", header, steps, "Figure 3.")


if __name__ == "__main__":
    program(main, __doc__)
