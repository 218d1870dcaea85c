"""Draw the picture of the home page: ``python docs/_scripts/draw_home.py`` (some seconds).

Writes ``docs/pictures/home.svg``: objective and lower bound of the leukaemia example along ``k``.
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
    figure = Figure(figsize=(7.2, 3.0), layout="constrained")
    axes = figure.subplots()
    values, bounds = [c.value for c in found], [c.bound for c in found]
    axes.fill_between(KS, bounds, values, color="#b9cfe8", label="the best model lies here")
    axes.plot(KS, values, "o-", color="#1f5fa8", ms=4, label="model found")
    axes.plot(KS, bounds, "s--", color="#1d7a4a", ms=3, label="lower bound")
    axes.set(xlabel="genes in the model, k", ylabel="objective", xlim=(0.7, 15.3), ylim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(PICTURE, metadata={"Date": None}, facecolor="white")


if __name__ == "__main__":
    draw()
