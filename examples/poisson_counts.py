"""Which ships does the sea damage?
================================

Waves damage the forward section of cargo ships. Lloyd's Register counted the incidents for five
types of ships, built in four periods and operated in two. A type with more ships at sea has more
incidents, so the model is for the rate per month at sea: the logarithm of the months is
an offset in a Poisson regression. Main effects and their products are 27 columns for 34 rows. Few
of them are needed.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsemodel as sm
from sparsemodel.reporting import plots

# Months at sea and incidents of each type (rows); built 1960, 1965, 1970, 1975, and operated from
# 1960 or from 1975 (columns): McCullagh and Nelder (1989), Generalized Linear Models, page 205.
at_sea = """127 63 1095 1095 1512 3353 0 2244  44882 17176 28609 20370 7064 13099 0 7117
    1179 552 781 676 783 1948 0 274  251 105 288 192 349 1208 0 2051
    45 0 789 437 1157 2161 0 542"""
found = """0 0 3 4 6 18 0 11  39 29 58 53 12 44 0 18  1 1 0 1 6 2 0 1  0 0 0 0 2 11 0 4
    0 0 7 7 5 12 0 1"""
months = np.array(at_sea.split(), dtype=float)
incidents = np.array(found.split(), dtype=float)
kind, built, since = (i.ravel() for i in np.indices((5, 4, 2)))

# %%
# The reference levels are the first type, the first period and the first years of operation.
factors = {
    "type": {f"type {t}": kind == i for i, t in enumerate("BCDE", 1)},
    "built": {f"built {1960 + 5 * i}": built == i for i in (1, 2, 3)},
    "since": {"since 1975": since == 1},
}
columns = {name: column for factor in factors.values() for name, column in factor.items()}
for first, second in (("type", "built"), ("type", "since"), ("built", "since")):
    for a, x in factors[first].items():
        columns |= {f"{a}, {b}": x & y for b, y in factors[second].items()}
sailed = months > 0.0
X = np.column_stack(list(columns.values())).astype(float)[sailed]
print(*X.shape)

w, c = sm.Variable(len(columns), names=list(columns)), sm.Variable(name="rate")
loss = sm.poisson_loss(X @ w + c + np.log(months[sailed]), incidents[sailed])
problem = sm.Problem(sm.minimize(loss + sm.ridge(w, 1e-3)), sm.card(w) <= 4)
solution = problem.solve()
print(solution)

# %%
# Coefficients are logarithms of rate ratios.
effects = {name: value for name, value in solution.coefficients.items() if name != "rate"}
for name, value in effects.items():
    print(f"{name}: {np.exp(value):.2f} times the rate")
plots.coefficients(effects)
plt.show()
