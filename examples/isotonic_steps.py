"""A monotone risk in few steps
============================

In 442 patients the progression of diabetes was measured one year after the body mass index. For
practical use a table is better than a curve: a few classes of the index, with an expected
progression that increases from class to class. The coefficients are the jumps between patients that
are neighbours in the index: nonnegative, and at most four of them nonzero.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

import sparsemodel as sm

data = load_diabetes(scaled=False)
order = np.argsort(data.data[:, 2], kind="stable")
index, progress = data.data[order, 2], data.target[order]
limits = np.unique(index)  # a step may come at each value of the index, and the first is the level
steps = (index[:, None] >= limits).astype(float)

jump = sm.Variable(limits.size, name="jump")
goal = sm.minimize(sm.squared_loss(steps @ jump, progress))
solution = sm.Problem(goal, sm.card(jump[1:]) <= 4, jump[1:] >= 0).solve()

# %%
# The resulting table:
print(f"below {limits[solution.indices[solution.indices > 0]][0]:4.1f}: {jump.value[0]:.0f}")
for j in solution.indices[solution.indices > 0]:
    print(f"from  {limits[j]:4.1f}: {jump.value[: j + 1].sum():.0f}")

plt.plot(index, progress, "o", color="0.7", markersize=3, label="patients")
plt.step(limits, np.cumsum(jump.value), where="post", label="four steps up")
plt.xlabel("body mass index")
plt.ylabel("progress in a year")
plt.legend()
plt.show()
