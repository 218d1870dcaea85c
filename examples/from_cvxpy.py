"""A problem written for CVXPY
===========================

Ten variables were measured in 442 patients with diabetes, and the progression of the disease one
year later. The problem is written in CVXPY, with prior knowledge as constraints: body mass index
and blood pressure do not slow the disease down, and high-density cholesterol does not speed it up.
The limit of four measurements is the only line to add.
"""

import cvxpy as cp
import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

import sparsemodel as sm
from sparsemodel.reporting import plots

data = load_diabetes(scaled=False)
A = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
b = data.target - data.target.mean()
bmi, pressure, hdl = (data.feature_names.index(name) for name in ("bmi", "bp", "s3"))

w = cp.Variable(10, name="w")
goal = cp.Minimize(cp.sum_squares(A @ w - b) / 2 + 10 * cp.sum_squares(w))
known = [w[bmi] >= 0, w[pressure] >= 0, w[hdl] <= 0]
print(f"all ten, by CVXPY: {cp.Problem(goal, known).solve():.0f}")

# %%
problem = sm.Problem(goal, [sm.card(w) <= 4, *known])
solution = problem.solve()
print(f"four of them: {solution.value:.0f}, {[data.feature_names[j] for j in solution.support]}")

# %%
# On the four selected variables the problem is convex. CVXPY solves it for comparison.
reference = problem.restricted(solution.support)
print(f"CVXPY on these four: {reference.solve():.0f}")
print(problem.certify().headline())

names = [data.feature_names[j] for j in solution.support]
plots.coefficients(dict(zip(names, w.value[solution.support], strict=True)))
plt.show()
