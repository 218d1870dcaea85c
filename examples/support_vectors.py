"""A support vector machine with five features
===========================================

And how good it is at least.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsemodel as sm
from sparsemodel.reporting import plots

data = sm.datasets.load_golub()
w, c = sm.Variable(data.X.shape[1], name="w"), sm.Variable(name="intercept")
loss = sm.hinge_loss(data.X @ w + c, data.y) + sm.ridge(w, 0.05)
problem = sm.Problem(sm.minimize(loss), sm.card(w) <= 5)
print(problem.explain())
solution = problem.solve()
print(solution)
print("training errors", int(np.sum((data.X @ w.value + c.value > 0) != (data.y == 1))))

plots.coefficients(solution.coefficients)
plt.show()
