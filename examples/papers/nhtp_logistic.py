"""Zhou, Xiu and Qi (2021), tables 4 and 5: sparse logistic regression, loss and time.

p features, p / 5 samples, 1 % and 5 % of the features in the model, a ridge of 1e-6 over the number
of samples; independent features (table 4) and autoregressive ones with coefficient 1/2 (table 5).
The times are CPU seconds, declaring included.

The ridge is the paper's mu ||x||^2 with mu = 1e-6 / m, which is a weight of 2 mu here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import logistic, options, table
from scipy.signal import lfilter
from scipy.special import expit

METHODS = {"NTGP": "ntgp", "IIHT": "iiht", "GraSP": "grasp", "NHTP": "nhtp", "default": None}
# The paper's loss and seconds for p = 10000: MATLAB on a desktop of 2018.
PAPER = {
    ("independent", 0.01): ((0.239, 8.403), (0.143, 1.723), (0.244, 0.488), (0.226, 0.313)),
    ("independent", 0.05): ((0.0458, 9.931), (4.76e-4, 3.094), (4.97e-3, 1.795), (6.5e-7, 0.987)),
    ("AR(1/2)", 0.01): ((0.187, 8.338), (0.0568, 4.394), (0.193, 0.471), (0.151, 0.245)),
    ("AR(1/2)", 0.05): ((0.0759, 9.101), (6.02e-4, 3.426), (0.0218, 1.875), (1.54e-6, 0.88)),
}


def instance(kind: str, p: int, k: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng((seed, p, k))
    m = p // 5
    if kind == "independent":
        y = np.where(rng.permutation(m) < m // 2, 1.0, 0.0)
        return y[:, None] * rng.standard_normal((m, 1)) + rng.standard_normal((m, p)), y
    noise = rng.standard_normal((m, p))
    noise[:, 1:] *= np.sqrt(0.75)
    A = lfilter([1.0], [1.0, -0.5], noise, axis=1)
    x = np.zeros(p)
    x[rng.choice(p, k, replace=False)] = rng.standard_normal(k)
    return A, np.where(rng.random(m) < expit(A @ x), 1.0, 0.0)


def loss(A: Any, y: Any, x: Any) -> float:
    """Return the mean logistic loss without the ridge, as the paper reports it."""
    u = A @ x
    return float(np.mean(np.logaddexp(0.0, u) - y * u))


def main() -> None:
    chosen = options(__doc__)
    dimensions = chosen.pick((4000,), range(10_000, 40_001, 5000))
    trials = chosen.repeats(1, 50)
    logistic(np.eye(4), [0, 1, 0, 1], 1, ridge=1.0)  # imports are not part of the times
    rows: list[Any] = []
    for kind in ("independent", "AR(1/2)"):
        for share in (0.01, 0.05):
            for p in dimensions:
                k = round(share * p)
                sums = {label: np.zeros(2) for label in METHODS}
                for trial in range(trials):
                    A, y = instance(kind, p, k, chosen.seed + trial)
                    for label, backend in METHODS.items():
                        answer = logistic(A, y, k, backend, ridge=2e-6 / len(y))
                        sums[label] += (loss(A, y, answer.x), answer.cpu)
                nothing = ((float("nan"),) * 2,) * len(METHODS)
                theirs = PAPER[kind, share] + nothing[:1] if p == 10_000 else nothing
                for (label, total), paper in zip(sums.items(), theirs, strict=True):
                    ours = (total / trials).tolist()
                    rows.append((kind, f"{share:.0%}", p, label, *ours, *paper))
    header = ("features", "k", "p", "method", "loss", "CPU s", "paper's loss", "paper's s")
    table(chosen, "nhtp_logistic", header, rows)


if __name__ == "__main__":
    main()
