"""A price on each feature
=======================

What is a house in Lucas County, Ohio, sold for? Its record has 36 entries, from the living area to
the material of the walls. Instead of capping how many of them a model may use, put a price on
each: an entry is used where it explains more than it costs.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsemodel as sm
from sparsemodel.reporting import plots

data = sm.datasets.load_lucas()
X = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0)
y = (data.y - data.y.mean()) / data.y.std()  # the logarithm of the price
w = sm.Variable(X.shape[1], names=data.feature_names)
gamma = sm.Parameter(nonneg=True, name="gamma")
problem = sm.Problem(sm.minimize(sm.squared_loss(X @ w, y) + gamma * sm.card(w)))

# %%
# The squared loss is the half mean of squares, and the target has variance one. So an entry at a
# price of 0.01 has to explain at least 2 % of the variance.
for price in (0.1, 0.01, 0.001):
    gamma.value = price
    solution = problem.solve()
    explained = 1 - np.mean((X @ w.value - y) ** 2)
    print(f"{price:5g} each: {solution.indices.size} entries explain {explained:.0%}")

# %%
# Coefficients are changes of the logarithm of the price, for one standard deviation of the entry.
# Age counts against a house, and area for it.
print(*solution.support, sep=", ")
plots.coefficients(solution.coefficients)
plt.show()
