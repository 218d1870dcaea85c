"""Survival times with censoring
=============================

Which of 100 genes affect survival? Sparse Cox regression.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsemodel as sm
from sparsemodel.reporting import plots

rng = np.random.default_rng(8)
A = rng.standard_normal((300, 100))
hazard = np.exp(1.0 * A[:, 10] - 0.8 * A[:, 60] + 0.6 * A[:, 90])
life, end = rng.exponential(1.0 / hazard), rng.exponential(2.0, size=300)
time, event = np.minimum(life, end), (life <= end).astype(float)
print(f"{event.mean():.0%} of the patients died within the study")

w = sm.Variable(100, name="gene")
loss = sm.cox_loss(A @ w, np.column_stack([time, event]))
solution = sm.Problem(sm.minimize(loss + sm.ridge(w, 1e-3)), sm.card(w) <= 3).solve()
for name, value in solution.coefficients.items():
    print(f"{name}: log hazard ratio {value:+.2f}")

plots.coefficients(solution.coefficients)
plt.show()
