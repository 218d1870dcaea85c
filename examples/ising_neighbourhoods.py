"""Which pixels depend on each other?
==================================

The data are 1797 handwritten digits of eight by eight black or white pixels. Almost all pairs of
pixels are correlated, because one stroke passes through many pixels. Given its neighbours, a pixel
should be nearly independent of distant ones. In a binary Markov random field (an Ising model) the
neighbours of a pixel are the nonzero coefficients of a logistic regression on all other pixels.
Each pixel gets three neighbours here. The model does not know that the pixels form a grid.
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
# How many of the selected neighbours are adjacent to their pixel?
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
