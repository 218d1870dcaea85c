"""A sparse direction of large variance
====================================

As a custom loss: convexified inverse iteration.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsemodel as sm

rng = np.random.default_rng(11)
p = 80
direction = np.zeros(p)
direction[[5, 20, 21, 50]] = 0.5
X = rng.standard_normal((400, 1)) * 3.0 * direction + rng.standard_normal((400, p))
C = X.T @ X / 400
bound = 1.01 * np.linalg.eigvalsh(C)[-1]
G = bound * np.eye(p) - C  # convex, and small along the leading component

v = C[:, np.argmax(np.diag(C))]
for _ in range(10):  # inverse iteration: min u'Gu/2 - v'u over sparse u, then normalise
    w = sm.Variable(p, name="w")
    target = v / np.linalg.norm(v)
    loss = sm.custom_loss(
        lambda u, t=target: 0.5 * u @ G @ u - t @ u, lambda u, t=target: G @ u - t
    )
    solution = sm.Problem(sm.minimize(loss), sm.card(w) <= 4).solve("grahtp")
    v = w.value
v /= np.linalg.norm(v)
print("component", solution.support, "variance", round(float(v @ C @ v), 2))
print(f"cosine with the truth {abs(v @ direction):.3f}")

plt.stem(v * np.sign(v @ direction), markerfmt=" ", basefmt="grey", label="found")
plt.plot(np.flatnonzero(direction), direction[direction != 0.0], "o", mfc="none", label="truth")
plt.legend(loc="center right", frameon=False)
plt.xlabel("feature")
plt.ylabel("loading")
plt.show()
