"""Four kinds of tumours from the same ten genes
=============================================

Four cancers of children look alike under the microscope and are treated differently. Sixty-three
tumours with 2308 genes each are there to learn from, and twenty more were published to test with.
The coefficients are a matrix with a row for each gene and a column for each tumour. Its rows are
counted: a gene is used for all four or for none, so ten genes are all that has to be measured.
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
# The twenty tumours that were held back:
score = data.X[test] @ W.value + c.value
print(f"{np.mean(score.argmax(axis=1) == data.y[test]):.0%} of the test tumours are right")

# %%
# Every kind of tumour has genes that speak for it and genes that speak against it.
plots.coefficients(solution.coefficients, classes=data.target_names)
plt.show()
