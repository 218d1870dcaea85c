"""What a house may cost
=====================

A mean price does not show how much prices vary. The quantile loss estimates the price below which a
tenth, half or nine tenths of comparable houses are sold, here from four features of a house. Each
quantile may use different features.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsemodel as sm

data = sm.datasets.load_lucas()
X = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0)
train, test = slice(0, None, 4), slice(1, None, 4)  # the two do not share a house

quantiles = {}
for tau in (0.1, 0.5, 0.9):
    w, c = sm.Variable(X.shape[1], names=data.feature_names), sm.Variable(name="level")
    loss = sm.quantile_loss(X[train] @ w + c, data.y[train], tau=tau)
    solution = sm.Problem(sm.minimize(loss), sm.card(w) <= 4).solve()
    quantiles[tau] = X[test] @ w.value + c.value
    print(f"{tau:.0%}:", *solution.support)

# %%
# The coverage of the band on houses that were not used in the fit:
low, middle, high = (np.exp(quantiles[tau]) / 1000 for tau in quantiles)
price = np.exp(data.y[test]) / 1000
print(f"{np.mean((low <= price) & (price <= high)):.0%} of the test houses are in the band")

shown = np.argsort(middle)[::12]  # every twelfth, or the picture is full
plt.vlines(middle[shown], low[shown], high[shown], color="C0", alpha=0.4, label="band of 80 %")
plt.plot(middle[shown], price[shown], "o", color="C1", markersize=3, label="sold for")
plt.xlim(0, 250)
plt.ylim(0, 400)
plt.xlabel("predicted median (1000 $)")
plt.ylabel("price (1000 $)")
plt.legend()
plt.show()
