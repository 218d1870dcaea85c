"""The graph of a binary Markov field
==================================

A logistic regression for every node, with at most two neighbours.
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

import sparsemodel as sm

rng = np.random.default_rng(7)
p, n = 12, 1500
ring = nx.cycle_graph(p)
state = rng.choice([-1.0, 1.0], size=(n, p))
for _ in range(60):  # Gibbs sampling of the field with couplings of one half
    for j in range(p):
        field = 0.5 * state[:, list(ring[j])].sum(axis=1)
        state[:, j] = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-2.0 * field)), 1.0, -1.0)

found = nx.empty_graph(p)  # in the order of the ring, for the picture
for j in range(p):
    others = np.delete(np.arange(p), j)
    w, c = sm.Variable(p - 1, name="w"), sm.Variable(name="c")
    loss = sm.logistic_loss(state[:, others] @ w + c, state[:, j]) + sm.ridge(w, 1e-3)
    solution = sm.Problem(sm.minimize(loss), sm.card(w) <= 2).solve()
    found.add_edges_from((j, int(others[i])) for i in solution.support)

missing = set(map(frozenset, ring.edges)) ^ set(map(frozenset, found.edges))
print(f"{found.number_of_edges()} edges found, {len(missing)} differ from the ring")

nx.draw_circular(found, with_labels=True, node_color="#d3e3f5", edge_color="#1f5fa8")
plt.show()
