"""A graph of DNA methylation in gliomas
=====================================

Which probes depend on each other given all others?

The sixty probes that vary most over 880 tumours. EBIC chooses the number of edges along a path.
What is drawn is the skeleton, the forty edges that explain most, with partial correlations as
widths; the certificate says how much better any graph with as many edges could be. The data are in
the repository, so run it there::

    python examples/glioma_graph.py [PICTURE.png]
"""

import sys
from pathlib import Path

import numpy as np

import sparsemodel as sm
from sparsemodel.reporting import plots

sys.path.append(str(Path(sys.argv[0]).resolve().parents[1]))
from benchmarks.data.load import load  # of the repository, not of the wheel

glioma = load("glioma_meth")
# The subtypes differ in their means; dependences within them are of interest.
X = glioma.X - np.stack([glioma.X[glioma.y == c].mean(axis=0) for c in range(6)])[glioma.y]
X = X[:, np.argsort(-X.var(axis=0))[:60]]
X /= X.std(axis=0)

p = X.shape[1]
Omega = sm.Variable((p, p), symmetric=True, name="Omega", names=[f"m{j}" for j in range(p)])
k = sm.Parameter(integer=True, value=0, name="edges")
problem = sm.Problem(
    sm.minimize(sm.gaussian_nll(Omega, data=X)), sm.card(sm.offdiag(Omega)) <= 2 * k
)

path = problem.path(k, range(0, 241, 20), sweeps=0)
best = path.select("ebic")
print(best)

k.value = 40  # the skeleton: the forty edges that explain most
solution = problem.solve()
certificate = problem.certify()
print(f"{certificate.claim.value}: gap {certificate.nats_per_sample:.3g} nats per sample")

graph = solution.graph()
hubs = sorted(graph.degree, key=lambda item: -item[1])[:3]
print("most connected:", ", ".join(f"{name} ({degree})" for name, degree in hubs))

axes = plots.graph(graph)
if len(sys.argv) > 1:
    axes.figure.savefig(sys.argv[1], dpi=120)
