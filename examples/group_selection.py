"""Features in groups
==================

Dummies of a category, say: a group is in or out as a whole.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsemodel as sm
from sparsemodel.reporting import plots

rng = np.random.default_rng(4)
groups = np.repeat([f"factor {g}" for g in "ABCDEFGHIJ"], 4)
A = rng.standard_normal((150, 40))
truth = np.where(np.isin(groups, ["factor B", "factor H"]), rng.standard_normal(40), 0.0)
b = A @ truth + 0.3 * rng.standard_normal(150)

w = sm.Variable(40, name="w")
problem = sm.Problem(
    sm.minimize(sm.squared_loss(A @ w, b) + sm.ridge(w, 1e-3)),
    sm.card(w, groups=groups) <= 2,
)
solution = problem.solve()
print("groups", *sorted(set(groups[solution.indices])), sep=", ")
print(problem.certify())

plots.coefficients(solution.coefficients)
plt.show()
