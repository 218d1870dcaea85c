"""An increasing function with few steps
=====================================

At most five steps: nonnegative jumps of cumulative sums.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsemodel as sm

rng = np.random.default_rng(10)
n = 200
t = np.linspace(0.0, 1.0, n)
y = np.log1p(9.0 * t) + 0.3 * rng.standard_normal(n)
steps = np.tril(np.ones((n, n)))

w = sm.Variable(n, name="jump")
goal = sm.minimize(sm.squared_loss(steps @ w, y))
solution = sm.Problem(goal, sm.card(w[1:]) <= 5, w[1:] >= 0).solve()
print("steps before", solution.support, "heights", w.value[solution.support].round(2))

plt.plot(t, y, ".", color="0.7", label="data")
plt.step(t, np.cumsum(w.value), where="post", label="increasing steps")
plt.legend(frameon=False)
plt.xlabel("dose")
plt.ylabel("response")
plt.show()
