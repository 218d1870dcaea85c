"""A sparse, positive definite covariance
======================================

A sample covariance of the returns of a few days is noisy in every entry. The nearest matrix
with few covariances may have a negative eigenvalue, that is, a portfolio of negative variance. A
bound on the eigenvalues prevents this, and the proof takes the bound into account.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsemodel as sm

rng = np.random.default_rng(3)
shares, days, pairs = 10, 12, 9
truth = np.eye(shares)
for i, j in [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (6, 7), (7, 8), (8, 9)]:
    truth[i, j] = truth[j, i] = 0.6
truth += 0.1 * np.eye(shares)
S = np.cov(rng.multivariate_normal(np.zeros(shares), truth, days).T)

W = sm.Variable((shares, shares), symmetric=True, name="W")
nearest = sm.minimize(sm.norm(W - S) ** 2)
few = sm.card(sm.offdiag(W)) <= 2 * pairs

sm.Problem(nearest, few).solve()
without, least = W.value, 0.05
print(f"nearest: smallest eigenvalue {np.linalg.eigvalsh(without)[0]:.3f}")

problem = sm.Problem(nearest, few, W >> least)
problem.solve()
print(f"bounded: smallest eigenvalue {np.linalg.eigvalsh(W.value)[0]:.3f}")
print(problem.prove(time_limit=10).headline())

limit = np.abs(S).max()
shown = {"sample": S, "nearest": without, "with the bound": W.value}
figure, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
for axis, (title, matrix) in zip(axes, shown.items(), strict=True):
    image = axis.imshow(matrix, cmap="RdBu", vmin=-limit, vmax=limit)
    axis.set(title=title, xlabel="share", xticks=range(0, 10, 3), yticks=range(0, 10, 3))
axes[0].set_ylabel("share")
figure.colorbar(image, ax=axes, label="covariance")
plt.show()
