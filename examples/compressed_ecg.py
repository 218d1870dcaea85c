"""A heartbeat from 400 numbers instead of 1024
============================================

A battery-powered recorder should store little data. Instead of the 1024 samples of an
electrocardiogram, 400 random sums of the samples with random signs are stored. The signal has few
large cosine coefficients, so these sums are enough to find them: the sixty cosines that explain
the sums best reconstruct the heartbeat.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsemodel as sm

ecg = sm.datasets.load_ecg()
signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(400, 1024))
sums = signs @ ecg.y  # all that is stored

# %%
# A row for each sum, a column for each cosine.
w = sm.Variable(1024, names=ecg.feature_names)
loss = sm.squared_loss(signs @ ecg.X @ w, sums)
sm.Problem(sm.minimize(loss), sm.card(w) <= 60).solve()
drawn = ecg.X @ w.value

# %%
# How close can sixty cosines come? With all samples known, the sixty largest coefficients are the
# best approximation.
exact = ecg.X.T @ ecg.y
kept = np.where(abs(exact) >= np.sort(abs(exact))[-60], exact, 0.0)
size = np.linalg.norm(ecg.y)
print(f"relative error from 400 sums:         {np.linalg.norm(drawn - ecg.y) / size:.0%}")
print(f"the best 60 cosines, all samples known: {np.linalg.norm(exact - kept) / size:.0%}")

plt.plot(ecg.y, color="0.7", linewidth=2.5, label="heartbeats")
plt.plot(drawn, color="C1", linewidth=1, label="from 400 sums")
plt.xlabel("sample")
plt.ylabel("units of the converter")
plt.legend()
plt.show()
