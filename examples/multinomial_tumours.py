"""Four kinds of tumours from the same ten genes
=============================================

Four childhood cancers look similar under the microscope but are treated differently. The data are
expressions of 2308 genes in 63 training and 20 test tumours. The coefficients are a matrix with a
row for each gene and a column for each type of tumour. The constraint counts rows: a gene is used
for all four types or for none, so that only ten genes have to be measured.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsemodel as sm
from sparsemodel.reporting import plots

data = sm.datasets.load_khan()
train, test = ~data.extra["is_test"], data.extra["is_test"]
W = sm.Variable((data.X.shape[1], 4), names=data.feature_names)
c = sm.Variable(4, name="intercept")
loss = sm.multinomial_loss(data.X[train] @ W + c, data.y[train])
problem = sm.Problem(sm.minimize(loss + sm.ridge(W, 1e-2)), sm.card(W, axis=1) <= 10)
solution = problem.solve()

# %%
# The twenty test tumours:
score = data.X[test] @ W.value + c.value
print(f"{np.mean(score.argmax(axis=1) == data.y[test]):.0%} of the test tumours are right")

# %%
# Positive coefficients are evidence for a type of tumour, negative ones against it.
plots.coefficients(solution.coefficients, classes=data.target_names)
plt.show()
