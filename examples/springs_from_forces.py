"""Springs found from forces
=========================

The stiffness matrix of bodies connected by springs is symmetric, and an off-diagonal entry is
nonzero if a spring connects the two bodies. The springs are found from forces at random
displacements.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsemodel as sm

rng = np.random.default_rng(4)
bodies, springs = 12, [(0, 1), (1, 2), (2, 5), (3, 7), (4, 5), (5, 9), (6, 8), (8, 11), (9, 10)]
stiffness = np.diag(rng.uniform(1.0, 2.0, bodies))
for i, j in springs:
    k = rng.uniform(0.3, 1.0)
    stiffness[[i, j], [j, i]] -= k
    stiffness[[i, j], [i, j]] += k
moved = rng.standard_normal((40, bodies))
forces = moved @ stiffness + 0.5 * rng.standard_normal((40, bodies))

K = sm.Variable((bodies, bodies), symmetric=True, name="K")
goal = sm.minimize(sm.squared_loss(moved @ K, forces))
problem = sm.Problem(goal, sm.card(sm.offdiag(K)) <= 2 * len(springs), K @ np.ones(bodies) >= 0)
problem.solve()
found = {(int(i), int(j)) for i, j in np.argwhere(np.triu(K.value, 1))}
print(f"{len(found & set(springs))} of {len(springs)} springs found")
print(problem.prove(time_limit=10).headline())

limit = np.abs(stiffness).max()
shown = {"true": stiffness, "estimated": K.value}
figure, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
for axis, (title, matrix) in zip(axes, shown.items(), strict=True):
    image = axis.imshow(matrix, cmap="RdBu", vmin=-limit, vmax=limit)
    axis.set(title=title, xlabel="body", ylabel="body")
figure.colorbar(image, ax=axes, label="stiffness")
plt.show()
