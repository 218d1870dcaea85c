"""Counts with exposures
=====================

Which of 40 features drive the rate? A Poisson loss with an offset.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsemodel as sm
from sparsemodel.reporting import plots

rng = np.random.default_rng(1)
A = rng.standard_normal((400, 40))
exposure = rng.uniform(0.5, 5.0, size=400)
counts = rng.poisson(exposure * np.exp(0.3 + 0.8 * A[:, 2] - 0.5 * A[:, 11]))

w, c = sm.Variable(40, name="w"), sm.Variable(name="intercept")
loss = sm.poisson_loss(A @ w + c + np.log(exposure), counts)
problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 1e-3)), sm.card(w) <= 2)
solution = problem.solve()
print(solution)
print(f"a unit of feature 2 multiplies the rate by {np.exp(w.value[2]):.2f} (truth 2.23)")

plots.coefficients(solution.coefficients)
plt.show()
