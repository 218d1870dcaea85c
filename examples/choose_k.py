"""How many measurements of a tumour?
==================================

The data are thirty measurements of the cells of 569 breast tumours, and whether each tumour was
malignant. More measurements always fit better, so the fit cannot determine how many to use. This
example compares three alternatives: information criteria, cross-validation, and stability
selection.
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
# An information criterion adds a penalty for every measurement to the loss. The extended BIC (EBIC)
# also takes the number of possible subsets into account.
path = problem.path(k, range(8), sweeps=0)
for criterion in ("bic", "ebic"):
    print(path.select(criterion))

# %%
# Cross-validation
# ----------------
# The smallest model within one standard error of the best one:
best = path.cross_validate(folds=5, one_standard_error=True)
print(best)

# %%
# Stability selection
# -------------------
# The share of random halves of the patients in which each selected measurement is selected again.
often = path.stability(resamples=5)[best.k]
for name in best.support:
    print(f"{name:21s} {often[list(data.feature_names).index(name)]:.0%}")

path.plot(chosen=best)
plt.show()
