"""How many measurements of a tumour?
==================================

Thirty measurements of the cells of 569 breast tumours, and whether each was malignant. More of
them always fit better, so the fit cannot say how many to use. Three other things can: information
criteria, patients that were held back, and how often a measurement comes back when half of the
patients are left out.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

import sparsemodel as sm

data = load_breast_cancer()
X = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
w = sm.Variable(30, names=data.feature_names)
c, k = sm.Variable(name="intercept"), sm.Parameter(integer=True)
loss = sm.logistic_loss(X @ w + c, data.target == 0) + sm.ridge(w, 1e-3)
problem = sm.Problem(sm.minimize(loss), sm.card(w) <= k)

# %%
# One model for every k
# ---------------------
# A criterion adds a price for every measurement to the loss. The extended one (EBIC) also counts
# how many sets of so many there are to choose from.
path = problem.path(k, range(8), sweeps=0)
for criterion in ("bic", "ebic"):
    print(path.select(criterion))

# %%
# Patients that were held back
# ----------------------------
# The smallest model that predicts as well as the best one, up to the noise of the folds:
best = path.cross_validate(folds=5, one_standard_error=True)
print(best)

# %%
# Other halves of the patients
# ----------------------------
# The share of the halves in which each chosen measurement was chosen again.
often = path.stability(resamples=5)[best.k]
for name in best.support:
    print(f"{name:21s} {often[list(data.feature_names).index(name)]:.0%}")

path.plot(chosen=best)
plt.show()
