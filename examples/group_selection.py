"""Categories in or out as a whole
===============================

The walls of a house are of brick, wood, vinyl, ... In a table this category is seven columns of
zeros and ones. Selecting only two of them makes little sense: either the material matters or it
does not. So the columns of one category form a group, and the constraint counts groups.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsemodel as sm
from sparsemodel.reporting import plots

data = sm.datasets.load_lucas()
X = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0)
groups = [name.split("_")[0] for name in data.feature_names]  # wall_brick belongs to wall
print(len(groups), "columns in", len(set(groups)), "groups")

w, c = sm.Variable(X.shape[1], names=data.feature_names), sm.Variable(name="level")
loss = sm.squared_loss(X @ w + c, data.y) + sm.ridge(w, 1e-3)
problem = sm.Problem(sm.minimize(loss), sm.card(w, groups=groups) <= 4)

# %%
# The selection is proved: no four other groups are better by more than 0.01 %.
certificate = problem.prove()
print(f"{certificate.claim.value}: gap {certificate.relative_gap:.2%}")
print("chosen:", *dict.fromkeys(groups[j] for j in np.flatnonzero(w.value)))

# %%
# All columns of a chosen group have a coefficient: changes of the logarithm of the price, for one
# standard deviation of the column.
names = data.feature_names
plots.coefficients({names[j]: w.value[j] for j in np.flatnonzero(w.value)})
plt.show()
