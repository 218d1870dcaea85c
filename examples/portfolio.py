"""A portfolio of few assets
=========================

Portfolios of at most four, eight and sixteen of sixty assets: fully invested, no short sales,
limits on positions. At the end a smaller one, four of twenty assets, is proved to be within 0.01 %
of the best: the proof takes the budget ``v.sum() == 1`` into account with a multiplier.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsemodel as sm

rng = np.random.default_rng(6)
market = 0.01 * rng.standard_normal((500, 1))
returns = market * rng.uniform(0.5, 1.5, 60) + 0.02 * rng.standard_normal((500, 60))
index = returns.mean(axis=1)  # track the equally weighted index

w = sm.Variable(60, name="share")
tracking = sm.squared_loss(returns @ w, index)
constraints = [w.sum() == 1, w >= 0, w <= 0.25]
risks = []
for k in (4, 8, 16):
    problem = sm.Problem(sm.minimize(10_000 * tracking), sm.card(w) <= k, constraints)
    solution = problem.solve()
    risks.append(np.std(returns @ w.value - index))
    print(f"k = {k}: tracking error {risks[-1]:.2e}, invested {w.value.sum():.6f}")
print(problem.explain())

v = sm.Variable(20, name="share")
goal = sm.minimize(10_000 * sm.squared_loss(returns[:, :20] @ v, index))
few = sm.Problem(goal, sm.card(v) <= 4, v.sum() == 1, v >= 0)
print(few.prove(time_limit=10).headline())

plt.bar(solution.indices, w.value[solution.indices])
plt.xlabel("asset")
plt.ylabel("share")
plt.show()
