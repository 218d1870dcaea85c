"""A problem written for CVXPY
===========================

With a cardinality, which CVXPY does not know, and an equality, which it does.
"""

import cvxpy as cp
import matplotlib.pyplot as plt
import numpy as np

import sparsemodel as sm
from sparsemodel.reporting import plots

rng = np.random.default_rng(16)
A = rng.standard_normal((100, 30))
b = A[:, 4] - 2.0 * A[:, 20] + 0.1 * rng.standard_normal(100)

w = cp.Variable(30, name="w")
goal = cp.Minimize(cp.sum_squares(A @ w - b) / 2 + 0.1 * cp.sum_squares(w))
problem = sm.Problem(goal, [sm.card(w) <= 2, cp.sum(w) == -1])
solution = problem.solve()
print("support", solution.support, "values", w.value[solution.support])

reference = problem.restricted(solution.support)  # a cp.Problem in two unknowns
print("CVXPY on that support", reference.solve(), "ours", solution.value)

plots.coefficients(solution.coefficients)
plt.show()
