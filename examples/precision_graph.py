"""Which measurements of a wine belong together?
=============================================

Thirteen variables were measured in 178 wines of three growers. Many are correlated, but mostly
indirectly: two variables depend on each other because both depend on a third. In a Gaussian model
an entry of the precision matrix (the inverse covariance) is zero exactly if the two variables are
independent given all others. A sparse precision matrix is therefore a graph of direct dependences.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

import sparsemodel as sm
from sparsemodel.reporting import plots

wine = load_wine()
# The growers differ in their means; dependences within the wines of each are of interest.
X = wine.data - np.stack([wine.data[wine.target == c].mean(axis=0) for c in range(3)])[wine.target]
X /= X.std(axis=0)

Omega = sm.Variable((13, 13), symmetric=True, names=wine.feature_names)
edges = sm.Parameter(integer=True, name="edges")
problem = sm.Problem(
    sm.minimize(sm.gaussian_nll(Omega, data=X)), sm.card(sm.offdiag(Omega)) <= 2 * edges
)

# %%
# How many edges?
# ---------------
path = problem.path(edges, range(0, 31, 3), sweeps=0)
best = path.select("ebic")
print(best)

# %%
# How good is the graph?
# ----------------------
# The certificate bounds how much better any graph with as many edges could explain the wines.
edges.value = best.k
solution = problem.solve()
certificate = problem.certify()
print(f"at most {certificate.nats_per_sample:.2f} nats per sample: {certificate.claim.value}")

# %%
# The width of an edge is its partial correlation.
graph = solution.graph()
hub, degree = max(graph.degree, key=lambda item: item[1])
print(f"most neighbours: {hub}, {degree}")
plots.graph(graph)
plt.show()
