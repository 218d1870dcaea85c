"""Prices with slips of the pen
============================

One in twenty of these sale prices lost its last three digits on the way: somebody wrote thousands
of dollars. Squares of so large errors rule the ordinary fit. The Huber loss counts errors beyond a
threshold by their size and not by their square, so they move the fit little.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsemodel as sm

data = sm.datasets.load_lucas()
X, clean = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0), data.y
slips = np.random.default_rng(0).random(clean.size) < 0.05
price = clean - np.log(1000) * slips  # the target is the logarithm of the price


def fit(loss, y):
    w, c = sm.Variable(X.shape[1], names=data.feature_names), sm.Variable(name="level")
    solution = sm.Problem(sm.minimize(loss(X @ w + c, y)), sm.card(w) <= 5).solve()
    return solution.support, np.exp(X @ w.value + c.value)


# %%
# Five entries of the record of a house, from clean prices and from prices with slips
ratios = {}
for name, loss, y in (
    ("squared loss, clean", sm.squared_loss, clean),
    ("squared loss, slips", sm.squared_loss, price),
    ("Huber loss, slips", lambda z, y: sm.huber_loss(z, y, delta=0.3), price),
):
    support, predicted = fit(loss, y)
    ratios[name] = predicted / np.exp(clean)
    print(f"{name}: typical ratio {np.median(ratios[name]):.2f}, from", *support)

# %%
# The squared loss takes the slips for cheap houses, and predicts too little for the others.
bins = np.linspace(0.3, 2.0, 60)
for name, ratio in ratios.items():
    plt.hist(ratio, bins, histtype="step", linewidth=1.5, label=name)
plt.axvline(1.0, color="0.5", linestyle="--")
plt.xlabel("predicted price / true price")
plt.ylabel("houses")
plt.legend()
plt.show()
