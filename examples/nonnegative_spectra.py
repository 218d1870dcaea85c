"""What is in the sample?
======================

The absorption spectrum of a mixture is a sum of the spectra of its substances, in proportion to
their amounts. With a library of the spectra of pure substances the amounts are coefficients:
nonnegative, and few of them nonzero, because a sample contains only a few of the sixty substances
in the library. The spectra overlap, so that different mixtures look similar. The library and the
sample are simulated here, so that the true composition is known.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsemodel as sm

rng = np.random.default_rng(5)
wave = np.linspace(0.0, 1.0, 300)
peaks, widths = rng.uniform(0.0, 1.0, (60, 3)), rng.uniform(0.01, 0.05, (60, 3))
library = sum(np.exp(-0.5 * ((wave[:, None] - peaks[:, j]) / widths[:, j]) ** 2) for j in range(3))
amounts = np.zeros(60)
amounts[[7, 21, 33, 48]] = 1.0, 0.6, 0.4, 0.8
spectrum = library @ amounts + 0.02 * rng.standard_normal(300)

w = sm.Variable(60, name="amount")
goal = sm.minimize(sm.squared_loss(library @ w, spectrum))
problem = sm.Problem(goal, sm.card(w) <= 4, w >= 0)
solution = problem.solve()
print("substances", solution.support, "amounts", w.value[solution.support].round(2))

# %%
# Could four other substances explain the spectrum better? The proof covers all choices.
proof = problem.prove()
print(proof.headline())

# %%
figure, axes = plt.subplots(layout="constrained")
axes.plot(wave, spectrum, ".", color="0.6", label="measured")
axes.plot(wave, library @ w.value, color="black", linewidth=1, label="explained")
for j, colour in zip(solution.support, ("C0", "C1", "C2", "C3"), strict=True):
    axes.plot(wave, library[:, j] * w.value[j], "--", color=colour, label=f"substance {j}")
figure.legend(loc="outside right upper", frameon=False)
axes.set(xlabel="wavelength (relative)", ylabel="absorbance (relative)")
plt.show()
