"""Four kinds of tumours from the same ten genes
=============================================

A matrix variable whose rows are counted: a gene is used for all classes or for none.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsemodel as sm

data = sm.datasets.load_khan()
train = ~data.extra["is_test"].astype(bool)
W = sm.Variable((data.X.shape[1], 4), name="gene")
c = sm.Variable(4, name="intercept")
loss = sm.multinomial_loss(data.X[train] @ W + c, data.y[train])
problem = sm.Problem(sm.minimize(loss + sm.ridge(W, 1e-2)), sm.card(W, axis=1) <= 10)
solution = problem.solve()

score = data.X[~train] @ W.value + c.value
right = np.mean(score.argmax(axis=1) == data.y[~train])
print(f"{right:.0%} of the test tumours right, with genes {solution.support}")

plt.imshow(W.value[solution.indices], cmap="RdBu", vmin=-1, vmax=1)
plt.yticks(range(10), [data.feature_names[j] for j in solution.indices])
plt.xticks(range(4), data.target_names)
plt.colorbar(label="coefficient")
plt.show()
