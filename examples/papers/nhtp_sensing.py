"""Zhou, Xiu and Qi (2021), tables 2 and 3: error and time on large partial cosine matrices.

p unknowns, p / 4 measurements without noise, 1 % and 5 % of the unknowns not zero. The times are
CPU seconds, declaring included.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import Options, Trials, for_the_page, least_squares, program, table

import sparsemodel as sm

METHODS = ("GP", "OMP", "HTP", "NIHT", "SP", "CoSaMP", "NHTP", "default")
# The paper's errors and seconds of the methods in this order: MATLAB on a desktop of 2018.
PAPER = {
    (0.01, 5000): (
        (2.78e-15, 2.4e-15, 2.97e-15, 2.42e-7, 1.12e-5, 1.12e-5, 4.59e-16),
        (0.69, 0.48, 0.09, 0.3, 0.07, 0.05, 0.06),
    ),
    (0.01, 10_000): (
        (5.21e-15, 4.75e-15, 5.7e-15, 3.26e-7, 3.59e-5, 3.59e-5, 1.1e-15),
        (4.47, 3.7, 0.33, 1.21, 0.31, 0.25, 0.16),
    ),
    (0.01, 25_000): (
        (1.15e-14, 1.12e-14, 1.11e-14, 5.32e-7, 1.78e-4, 1.78e-4, 2.47e-15),
        (68.94, 67.13, 2.49, 37.03, 20.11, 4.18, 1.13),
    ),
    (0.05, 5000): (
        (1.28e-3, 1.4e-3, 1.26e-14, 4.8e-7, 9.07e-5, 9.07e-5, 5.94e-15),
        (3.52, 3.22, 0.23, 1.29, 0.9, 1.43, 0.28),
    ),
    (0.05, 10_000): (
        (7.91e-4, 3.56e-4, 2.44e-14, 6.86e-7, 1.77e-4, 1.77e-4, 1.18e-14),
        (19.84, 23.55, 1.52, 4.63, 6.02, 15.56, 0.79),
    ),
    (0.05, 25_000): (
        (1.24e-3, 5.57e-4, 5.94e-14, 1.01e-6, 2.59e-4, 2.59e-4, 2.86e-14),
        (312.57, 363.44, 36.93, 78.69, 153.52, 307.53, 6.58),
    ),
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


def trial(p: int, s: int, seed: int) -> dict[str, float]:
    """Return error and CPU seconds of every method."""
    A, x = instance(p, s, seed)
    numbers = {}
    for label in METHODS:
        answer = least_squares(A, A @ x, s, backend(label, A.shape[0]))
        numbers[label] = float(np.linalg.norm(answer.x - x))
        numbers[f"{label}, s"] = answer.cpu
    return numbers


def main(chosen: Options) -> None:
    trials = Trials(chosen, "nhtp_sensing", trial)
    dimensions = chosen.pick((5000, 10_000), (5000, 10_000, 15_000, 20_000, 25_000))
    least_squares(np.eye(4), np.ones(4), 1)  # imports are not part of the times
    rows: list[Any] = []
    for share in (0.01, 0.05):
        for p in dimensions:
            seeds = range(chosen.seed, chosen.seed + chosen.repeats(1, 50))
            means = trials.means((p, round(share * p), seed) for seed in seeds)
            if not means:
                continue
            theirs = PAPER.get((share, p), ((), ()))
            for what, unit, paper in zip(("error", "CPU s"), ("", ", s"), theirs, strict=True):
                ours = [means[label + unit] for label in METHODS]
                rows.append((p, f"{share:.0%}", means["trials"], f"{what}, here", *ours))
                if paper:
                    rows.append(("", "", "", f"{what}, paper", *paper, ""))
    header = ("p", "nonzeros", "trials", "", *METHODS)
    table(chosen, "nhtp_sensing", header, rows)
    for_the_page(chosen, "nhtp_sensing", header, rows, "Means over the trials.")


if __name__ == "__main__":
    program(main, __doc__)
