"""Survival with ovarian cancer
============================

Twenty-six women with ovarian cancer were followed for up to three years after their operation.
Twelve died; the survival times of the others are censored. The Cox loss handles censoring: at each
death, it compares the patient with all patients still at risk. Four variables are known, and the
question is which of them matters most.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsemodel as sm

# Days followed, died, age, tumour left behind, second drug, in need of care: the trial of Edmonson
# et al. (1979), Cancer Treatment Reports 63.
rows = """59 1 72.3315 1 0 0  115 1 74.4932 1 0 0  156 1 66.4658 1 0 1  421 0 53.3644 1 1 0
431 1 50.3397 1 0 0  448 0 56.4301 0 0 1  464 1 56.9370 1 1 1  475 1 59.8548 1 1 1
477 0 64.1753 1 0 0  563 1 55.1781 0 1 1  638 1 56.7562 0 0 1  744 0 50.1096 0 1 0
769 0 59.6301 1 1 1  770 0 57.0521 1 1 0  803 0 39.2712 0 0 0  855 0 43.1233 0 0 1
1040 0 38.8932 1 0 1  1106 0 44.6000 0 0 0  1129 0 53.9068 0 1 0  1206 0 44.2055 1 1 0
1227 0 59.5890 0 1 1  268 1 74.5041 1 0 1  329 1 43.1370 1 0 0  353 1 63.2192 0 1 1
365 1 64.4247 1 1 0  377 0 58.3096 0 1 0"""
table = np.array(rows.split(), dtype=float).reshape(-1, 6)
names = ["age", "tumour left", "second drug", "care"]
times, facts = table[:, :2], table[:, 2:]
facts[:, 0] = (facts[:, 0] - facts[:, 0].mean()) / 10.0  # ten years older than the average

# %%
# A hazard ratio of ten means ten times the risk of dying in the next month.
w, k = sm.Variable(4, names=names), sm.Parameter(integer=True)
problem = sm.Problem(sm.minimize(sm.cox_loss(facts @ w, times)), sm.card(w) <= k)
path = problem.path(k, range(5))
for size in range(5):
    point = path.at(size)
    ratios = ", ".join(f"{n} {np.exp(v):.2f}" for n, v in point.coefficients.items())
    print(f"k = {size}: {ratios or 'nothing'}")
best = path.select("bic")
print("BIC, with the twelve deaths as its observations, chooses k =", best.k)

# %%
# Kaplan-Meier estimates of the survival of women older and younger than the average. The picture
# needs no model, and shows why age is selected first.
for old, label in ((True, "older than 56"), (False, "younger")):
    seen = times[(facts[:, 0] > 0.0) == old]
    seen = seen[np.argsort(seen[:, 0])]
    alive = np.cumprod(1.0 - seen[:, 1] / np.arange(len(seen), 0, -1))
    plt.step(np.append(0.0, seen[:, 0]), np.append(1.0, alive), where="post", label=label)
plt.ylim(0.0, 1.05)
plt.xlabel("days after the operation")
plt.ylabel("share alive")
plt.legend(frameon=False)
plt.show()
