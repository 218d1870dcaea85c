"""What do the wines of three growers have in common?
==================================================

Thirteen variables were measured in 178 wines of three growers. Each grower has its own precision
matrix, and all have the same pattern of nonzeros: ``sm.card(sm.offdiag(A, B, C)) <= 2 * k``.
(See also `one matrix for all growers <precision_graph.html>`_.) The likelihoods are added.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

import sparsemodel as sm

wine = load_wine()
names = [name.split("/")[0].replace("_", " ") for name in wine.feature_names]
growers = [wine.data[wine.target == c] / wine.data.std(axis=0) for c in range(3)]

matrices = [sm.Variable((13, 13), symmetric=True, names=names, name=f"grower {c}") for c in "ABC"]
pairs = list(zip(matrices, growers, strict=True))
edges = sm.Parameter(integer=True, name="edges")
# Every wine counts the same: a likelihood is a mean over the wines of its grower.
likelihood = sum(len(X) / 178 * sm.gaussian_nll(Omega, data=X) for Omega, X in pairs)
problem = sm.Problem(sm.minimize(likelihood), sm.card(sm.offdiag(*matrices)) <= 2 * edges)

# %%
# How many edges?
# ---------------
# EBIC is the sum over the growers, and counts the choice of the pattern once.
best = problem.path(edges, range(0, 36, 5), sweeps=0).select("ebic")
print(best)

# %%
# One pattern, three strengths
# ----------------------------
edges.value = best.k
solution = problem.solve()
print(solution)

# %%
# How good is the pattern?
# ------------------------
certificate = problem.certify()
print(f"at most {certificate.nats_per_sample:.2f} nats per wine: {certificate.claim.value}")

# %%
# Where growers differ
# --------------------
graphs = [solution.graph(Omega.label) for Omega in matrices]
ends = list(graphs[0].edges)
strengths = np.array([[graph.edges[pair]["weight"] for pair in ends] for graph in graphs])
order = np.argsort(np.abs(strengths).max(axis=0))
fig, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
for grower, (values, marker) in enumerate(zip(strengths, "os^", strict=True)):
    ax.plot(values[order], range(len(ends)), marker, label=f"grower {'ABC'[grower]}")
ax.set_yticks(range(len(ends)), [" -- ".join(ends[i]) for i in order])
ax.set_xlabel("partial correlation")
ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
plt.show()
