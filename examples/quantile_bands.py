"""Quantile regression
===================

A band that holds 80 % of the observations, from the same five features.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsemodel as sm

rng = np.random.default_rng(2)
t = np.sort(rng.uniform(0.0, 1.0, size=300))
y = np.sin(4.0 * t) + (0.1 + 0.5 * t) * rng.standard_normal(300)
A = np.column_stack([np.cos(np.pi * j * t) for j in range(1, 13)])  # a dictionary of waves

plt.plot(t, y, ".", color="0.7")
for tau in (0.1, 0.5, 0.9):
    w, c = sm.Variable(12, name="w"), sm.Variable(name="c")
    loss = sm.quantile_loss(A @ w + c, y, tau=tau)
    solution = sm.Problem(sm.minimize(loss), sm.card(w) <= 3).solve()
    below = np.mean(y < A @ w.value + c.value)
    print(f"tau {tau}: waves {solution.support}, {100 * below:.0f} % of the data below")
    plt.plot(t, A @ w.value + c.value, label=f"{tau:.0%}")
plt.legend(title="quantile", frameon=False)
plt.xlabel("time")
plt.ylabel("measurement")
plt.show()
