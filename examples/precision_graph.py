"""A graph of conditional dependences
==================================

Which variables are conditionally dependent?

Two hundred samples of twelve variables, of which eleven pairs depend on each other given all the
others. A precision matrix of high likelihood with eleven edges shows them; the lower bound says
how much better any other with eleven edges could be.
"""

import matplotlib.pyplot as plt
import numpy as np

from sparsemodel import Problem, Variable, card, gaussian_nll, minimize, offdiag
from sparsemodel.reporting import plots

rng = np.random.default_rng(7)
p, n, k = 12, 200, 11

# A chain: each variable depends on its neighbours alone.
truth = 1.5 * np.eye(p) - 0.6 * (np.eye(p, k=1) + np.eye(p, k=-1))
X = rng.multivariate_normal(np.zeros(p), np.linalg.inv(truth), size=n)
S = np.cov(X, rowvar=False)

Omega = Variable((p, p), symmetric=True, name="Omega")
problem = Problem(minimize(gaussian_nll(Omega, S)), [card(offdiag(Omega)) <= 2 * k])
solution = problem.solve("precision_swap")
print(solution)

found = {(i, j) for i, j in np.argwhere(np.triu(Omega.value, 1)).tolist()}
print("edges that are true:", len(found & {(i, i + 1) for i in range(p - 1)}), "of", k)

plots.graph(solution.graph())
plt.show()
