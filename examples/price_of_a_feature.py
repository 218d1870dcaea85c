"""A price on each feature
=======================

Penalise the number of features instead of capping it: the cheaper each feature, the more are
selected.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsemodel as sm
from sparsemodel.reporting import plots

data = sm.datasets.load_lucas()
X = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0)
y = (data.y - data.y.mean()) / data.y.std()
w = sm.Variable(X.shape[1], name="w", names=data.feature_names)
gamma = sm.Parameter(nonneg=True, name="gamma")
problem = sm.Problem(sm.minimize(sm.squared_loss(X @ w, y) + gamma * sm.card(w)))
for price in (0.1, 0.01, 0.001):
    gamma.value = price
    solution = problem.solve()
    print(f"at {price:g} each: {solution.indices.size} features, {list(solution.support)[:6]}")
print("variance explained", round(1 - np.mean((X @ w.value - y) ** 2), 3))

plots.coefficients(solution.coefficients)
plt.show()
