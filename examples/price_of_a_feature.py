"""A penalty for each feature
==========================

Which features determine the price of a house in Lucas County, Ohio? Its record has 36 entries,
from the living area to the material of the walls. Instead of limiting their number, add a penalty
for each (an L0 penalty): an entry is used if it explains more than the penalty.
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
# The squared loss is half of the mean square, and the target has variance one. So with a penalty of
# 0.01 an entry has to explain at least 2 % of the variance.
for price in (0.1, 0.01, 0.001):
    gamma.value = price
    solution = problem.solve()
    explained = 1 - np.mean((X @ w.value - y) ** 2)
    print(f"{price:5g} each: {solution.indices.size} selected explain {explained:.0%}")

# %%
# Coefficients are changes of the logarithm of the price, in its standard deviations, for one
# standard deviation of the entry. Older houses are cheaper, and larger houses more expensive.
print(*solution.support, sep=", ")
plots.coefficients(solution.coefficients)
plt.show()
