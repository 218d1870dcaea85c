"""A support vector machine with five genes
========================================

A support vector machine separates two classes with a margin; observations beyond the margin have
no loss. Here it distinguishes two types of leukaemia from five of 3051 genes, and a certificate
bounds how much better any other five genes could be.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsemodel as sm

data = sm.datasets.load_golub()
w = sm.Variable(data.X.shape[1], names=data.feature_names)
c = sm.Variable(name="intercept")
loss = sm.squared_hinge_loss(data.X @ w + c, data.y) + sm.ridge(w, 0.5)
problem = sm.Problem(sm.minimize(loss), sm.card(w) <= 5)
print(problem.solve())

# %%
# How good are these five?
# ------------------------
certificate = problem.certify()
print(f"at most {certificate.relative_gap:.1%} above the best: {certificate.claim.value}")

# %%
# The scores of the patients. The margin lies between the dashed lines.
score = data.X @ w.value + c.value
print("training errors:", int(np.sum((score > 0) != (data.y == 1))))
for label, name in enumerate(data.target_names):
    here = np.flatnonzero(data.y == label)
    plt.plot(here, score[here], "o", label=name)
plt.axhline(0.0, color="0.5")
for margin in (-1, 1):
    plt.axhline(margin, color="0.5", linestyle="--")
plt.xlabel("patient")
plt.ylabel("score")
plt.legend()
plt.show()
