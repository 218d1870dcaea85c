"""Products of features, and the features that they are made of
============================================================

Ten variables were measured in 442 patients with diabetes, and the progression of the disease one
year later. Products of two features describe interactions, and squares nonlinear effects. There are
54 of them. Interactions are easier to interpret if the model also contains their main effects: a
hierarchy.
"""

from itertools import combinations_with_replacement

import numpy as np
from sklearn.datasets import load_diabetes

import sparsemodel as sm

data = load_diabetes(scaled=False)
names, X = data.feature_names, (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
pairs = [pair for pair in combinations_with_replacement(range(10), 2) if pair != (1, 1)]
first, second = np.array(pairs).T  # sex has two values: its square says nothing
products = X[:, first] * X[:, second]
A = np.hstack([X, (products - products.mean(axis=0)) / products.std(axis=0)])
names = [*names, *(f"{names[i]} x {names[j]}" for i, j in pairs)]

# %%
# An entry of ``z`` is one if its coefficient is in the model. A product requires both of its
# features (strong), at least one of them (weak), or none. Weaker rules fit at least as well.
w, c = sm.Variable(64, names=names), sm.Variable()
z, k = sm.chosen(w), 10
goal = sm.minimize(sm.squared_loss(A @ w + c, data.target) + sm.ridge(w, 0.02))
rules = {
    "strong": [z[10:] <= z[first], z[10:] <= z[second]],
    "weak": [z[10:] <= z[first] + z[second]],
    "none": [],
}
for rule, constraints in rules.items():
    problem = sm.Problem(goal, sm.card(w) <= k, constraints)
    solution = problem.solve()
    print(f"{rule:7} {solution.value:.1f}  {', '.join(np.array(names)[solution.indices])}")

# %%
# A proof says how much better a model of ten coefficients with a strong hierarchy could be at most.
certificate = sm.Problem(goal, sm.card(w) <= k, rules["strong"]).prove(gap=0.02)
print(f"at most {certificate.relative_gap:.1%} better")
