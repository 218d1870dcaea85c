"""Draw the picture of the home page: ``python docs/_scripts/draw_home.py`` (some seconds).

Writes ``docs/pictures/home.svg``: objective, lower bound and relative gap of the leukaemia example
along ``k``.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

import sparsemodel as sm
from sparsemodel.datasets import load_golub

PICTURE = Path(__file__).parents[1] / "pictures" / "home.svg"
KS = range(1, 16)


def draw() -> None:
    """Certify the models with one gene to fifteen, and draw what is known of each."""
    data = load_golub()
    w, c = sm.Variable(data.X.shape[1], name="gene", names=data.feature_names), sm.Variable()
    k = sm.Parameter(integer=True, name="k")
    goal = sm.minimize(sm.logistic_loss(data.X @ w + c, data.y) + sm.ridge(w, 1e-2))
    problem = sm.Problem(goal, sm.card(w) <= k)
    found = []
    for k.value in KS:
        found.append(problem.certify())
    matplotlib.rcParams["svg.hashsalt"] = "home"
    figure = Figure(figsize=(7.2, 2.8), layout="constrained")
    axes, shares = figure.subplots(1, 2, width_ratios=(3, 2))
    values, bounds = [c.value for c in found], [c.bound for c in found]
    axes.fill_between(KS, bounds, values, color="#b9cfe8", label="the best model lies here")
    axes.plot(KS, values, "o-", color="#1f5fa8", ms=3.5, lw=1.2, label="model found", zorder=3)
    axes.plot(KS, bounds, "s-", color="#7fbf9e", ms=6, lw=3.5, label="lower bound")
    axes.set(xlabel="genes in the model, k", ylabel="objective", xlim=(0.5, 15.5), ylim=(0, None))
    axes.legend(frameon=False)
    shares.bar(KS, [100.0 * c.relative_gap for c in found], color="#b9cfe8", edgecolor="#1f5fa8")
    shares.set(xlabel="genes in the model, k", ylabel="gap, % of the objective", xlim=(0.3, 15.7))
    for ax in (axes, shares):
        ax.set_xticks(range(1, 16, 2))
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(PICTURE, metadata={"Date": None}, facecolor="white")


if __name__ == "__main__":
    draw()
