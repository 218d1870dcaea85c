"""Prices with recording errors
============================

One in twenty of these sale prices is recorded in thousands of dollars by mistake. The squares of
such large errors dominate a least-squares fit. The Huber loss grows linearly beyond a threshold, so
that outliers have little influence.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsemodel as sm

data = sm.datasets.load_lucas()
X, clean = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0), data.y
errors = np.random.default_rng(0).random(clean.size) < 0.05
price = clean - np.log(1000) * errors  # the target is the logarithm of the price


def fit(loss, y):
    w, c = sm.Variable(X.shape[1], names=data.feature_names), sm.Variable(name="level")
    solution = sm.Problem(sm.minimize(loss(X @ w + c, y)), sm.card(w) <= 5).solve()
    return solution.support, np.exp(X @ w.value + c.value)


# %%
# Five features of a house, selected from clean prices and from prices with errors
ratios = {}
for name, loss, y in (
    ("squared loss, clean", sm.squared_loss, clean),
    ("squared loss, errors", sm.squared_loss, price),
    ("Huber loss, errors", lambda z, y: sm.huber_loss(z, y, delta=0.3), price),
):
    support, predicted = fit(loss, y)
    ratios[name] = predicted / np.exp(clean)
    print(f"{name}: typical ratio {np.median(ratios[name]):.2f}, from", *support)

# %%
# With the squared loss the errors bias the predictions for all other houses downwards.
bins = np.linspace(0.3, 2.0, 60)
for name, ratio in ratios.items():
    plt.hist(ratio, bins, histtype="step", linewidth=1.5, label=name)
plt.axvline(1.0, color="0.5", linestyle="--")
plt.xlabel("predicted price / true price")
plt.ylabel("houses")
plt.legend()
plt.show()
