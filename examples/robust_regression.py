"""Robust regression
=================

A tenth of the observations are gross errors, and three features matter.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsemodel as sm

rng = np.random.default_rng(0)
A = rng.standard_normal((200, 50))
truth = np.zeros(50)
truth[[3, 17, 40]] = 2.0, -1.5, 1.0
b = A @ truth + 0.2 * rng.standard_normal(200)
b[:20] += 30.0 * rng.standard_normal(20)

estimates = {}
for name, loss in {"squared": sm.squared_loss, "Huber": sm.huber_loss}.items():
    w = sm.Variable(50, name="w")
    solution = sm.Problem(sm.minimize(loss(A @ w, b)), sm.card(w) <= 3).solve()
    estimates[name] = w.value
    print(f"{name:8s} support {solution.support}, error {np.linalg.norm(w.value - truth):.3f}")

nonzero = np.flatnonzero(truth)
plt.stem(nonzero, truth[nonzero], linefmt="k-", markerfmt="ko", basefmt=" ", label="truth")
plt.axhline(0.0, color="0.7", linewidth=1)
for marker, (name, value) in zip("x+", estimates.items(), strict=True):
    plt.plot(np.flatnonzero(value), value[value != 0.0], marker, markersize=10, label=name)
plt.xlabel("feature")
plt.ylabel("coefficient")
plt.legend(frameon=False)
plt.show()
