"""Which pixels depend on each other?
==================================

Eight by eight pixels, black or white, of 1797 handwritten digits. Almost all pairs of pixels are
correlated, as one stroke passes through many. Given its neighbours, though, a pixel should tell
little about one on the other side. In a binary Markov field (an Ising model) the neighbours of a
pixel are the nonzero coefficients of a logistic regression of it on all others. Here each pixel may
name three. Nothing is said about where pixels are: that they lie on a grid has to be found.
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
from sklearn.datasets import load_digits

import sparsemodel as sm

ink = np.where(load_digits().data >= 8, 1.0, -1.0)
varies = np.flatnonzero(np.abs(ink.mean(axis=0)) < 0.95)  # pixels that are not always white
print(varies.size, "of 64 pixels vary")

# %%
# The problem is the same for each pixel, so it is declared once and its data are exchanged.
graph = nx.DiGraph()
graph.add_nodes_from(varies.tolist())
for pixel in varies:
    others = varies[varies != pixel]
    w, c = sm.Variable(others.size), sm.Variable(name="level")
    loss = sm.logistic_loss(ink[:, others] @ w + c, ink[:, pixel]) + sm.ridge(w, 1e-2)
    solution = sm.Problem(sm.minimize(loss), sm.card(w) <= 3).solve()
    graph.add_edges_from((int(pixel), int(others[j])) for j in solution.support)

# %%
# How many of the neighbours that were named touch the pixel that named them?
steps = np.array([[abs(i // 8 - j // 8), abs(i % 8 - j % 8)] for i, j in graph.edges])
touch = steps.max(axis=1) == 1
pairs = [(i, j) for i in varies for j in varies if i != j]
chance = np.mean([max(abs(i // 8 - j // 8), abs(i % 8 - j % 8)) == 1 for i, j in pairs])
print(f"{touch.mean():.0%} of {touch.size} touch; of all pairs {chance:.0%} do")

places = {i: (i % 8, -(i // 8)) for i in graph}
nx.draw_networkx_nodes(graph, places, node_color="#d3e3f5", node_size=120)
nx.draw_networkx_edges(graph, places, edge_color="#1f5fa8", arrowsize=7, node_size=120)
plt.axis("equal")
plt.axis("off")
plt.show()
