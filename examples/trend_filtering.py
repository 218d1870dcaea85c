"""A signal with few jumps
=======================

Cumulative sums turn jumps into sparse coefficients.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse.linalg import LinearOperator

import sparsemodel as sm

rng = np.random.default_rng(3)
n = 500
signal = np.repeat([0.0, 2.0, -1.0, 0.5], [120, 180, 90, 110])
y = signal + 0.4 * rng.standard_normal(n)

# Column j is one from observation j on; its products are cumulative sums, never a matrix.
steps = LinearOperator(
    (n, n), matvec=np.cumsum, rmatvec=lambda r: np.cumsum(r[::-1])[::-1], dtype=float
)
w = sm.Variable(n, name="w")
goal = sm.minimize(sm.squared_loss(sm.as_design(steps) @ w, y))
solution = sm.Problem(goal, sm.card(w[1:]) <= 3).solve()  # the first level is free
print("jumps before", solution.support, "truth [120 300 390]")

plt.plot(y, ".", color="0.7", label="data")
plt.plot(np.cumsum(w.value), label="fit")
plt.plot(signal, "k--", linewidth=1, label="truth")
plt.legend(frameon=False)
plt.xlabel("time")
plt.ylabel("level")
plt.show()
