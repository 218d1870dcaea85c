"""Zhou, Xiu and Qi (2021), tables 2 and 3: error and time on large partial cosine matrices.

p unknowns, p / 4 measurements without noise, 1 % and 5 % of the unknowns not zero. The times are
CPU seconds, declaring included.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import least_squares, options, table

import sparsemodel as sm

METHODS = ("GP", "OMP", "HTP", "NIHT", "SP", "CoSaMP", "NHTP", "default")
# The paper's, for the dimension 25000: MATLAB on a desktop of 2018.
PAPER = {
    (0.01, 25_000): {"OMP": (1.12e-14, 67.13), "HTP": (1.11e-14, 2.49), "NHTP": (2.47e-15, 1.13)},
    (0.05, 25_000): {"OMP": (5.57e-4, 363.44), "HTP": (5.94e-14, 36.93), "NHTP": (2.86e-14, 6.58)},
}


def backend(label: str, m: int) -> Any:
    if label == "default":
        return None
    return sm.backends.GraHTP(step_size=float(m)) if label == "HTP" else label.lower()


def instance(p: int, s: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng((seed, p, s))
    A = np.cos(2.0 * np.pi * np.outer(rng.random(p // 4), np.arange(p)))
    A /= np.linalg.norm(A, axis=0)
    x = np.zeros(p)
    x[rng.choice(p, s, replace=False)] = rng.standard_normal(s)
    return A, x


def main() -> None:
    chosen = options(__doc__)
    dimensions = chosen.pick((5000, 10_000), (5000, 10_000, 15_000, 20_000, 25_000))
    trials = chosen.repeats(1, 50)
    least_squares(np.eye(4), np.ones(4), 1)  # imports are not part of the times
    rows: list[Any] = []
    for share in (0.01, 0.05):
        for p in dimensions:
            s = round(share * p)
            sums = {label: np.zeros(2) for label in METHODS}
            for trial in range(trials):
                A, x = instance(p, s, chosen.seed + trial)
                for label in METHODS:
                    if share > 0.01 and p > 5000 and label in ("GP", "OMP") and not chosen.full:
                        sums[label] += np.nan  # minutes
                        continue
                    answer = least_squares(A, A @ x, s, backend(label, A.shape[0]))
                    sums[label] += (np.linalg.norm(answer.x - x), answer.cpu)
            for label, total in sums.items():
                error, cpu = (total / trials).tolist()
                theirs = PAPER.get((share, p), {}).get(label, (float("nan"),) * 2)
                rows.append((f"{share:.0%}", p, label, error, cpu, *theirs))
    header = ("nonzeros", "p", "method", "error", "CPU s", "paper's error", "paper's s")
    table(chosen, "nhtp_sensing", header, rows)


if __name__ == "__main__":
    main()
