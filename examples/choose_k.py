"""How many genes?
===============

A path over k, information criteria, cross-validation and stability.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsemodel as sm

data = sm.datasets.load_khan()
tumour = data.y == 1  # one kind against the rest
w = sm.Variable(data.X.shape[1], name="gene", names=data.feature_names)
c, k = sm.Variable(name="intercept"), sm.Parameter(integer=True)
loss = sm.logistic_loss(data.X @ w + c, tumour) + sm.ridge(w, 1e-2)
problem = sm.Problem(sm.minimize(loss), sm.card(w) <= k)

path = problem.path(k, range(1, 13))
print(path, f"at the cost of {path.passes:.0f} passes over the data")
for criterion in ("bic", "ebic"):
    print(path.select(criterion))
best = path.cross_validate(folds=5)
print(best, best.support)
often = path.stability(resamples=10)[best.k - 1]
print("chosen in most halves of the data:", int(np.sum(often > 0.5)), "genes")

path.plot()
plt.axvline(best.k, linestyle="--", color="0.5")
plt.show()
