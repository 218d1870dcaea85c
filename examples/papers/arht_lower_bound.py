"""Axiotis and Sviridenko (2020), section 5.1: a table of what greedy methods find on its instance.

n - 2 unit vectors and two columns whose sum is a multiple of the target b, so that two columns fit
it exactly, and so do the n - 2; the gradient of every other unit vector is larger than that of the
two until all n - 2 are in. The paper takes its matrix from another (Foster, Karloff and Thaler);
the one here has the properties that the section requires.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from common import Options, Trials, for_the_page, least_squares, program, table

import sparsemodel as sm

METHODS: dict[str, Any] = {
    "OMP": "omp",
    "OMPR": "ompr",
    "IHT": "iht",
    "GraHTP": "grahtp",
    "exhaustive search": "local_search",
    "ARHT": "arht",
    "default": None,
}


def instance(n: int) -> tuple[Any, Any]:
    """Return the matrix with columns of length one, and the target."""
    size = n - 2
    b = np.ones(size + 1)
    b[-1] = 0.0
    lean = 0.9 / np.sqrt(size)  # below 1 / sqrt(n - 2), so that unit vectors look better
    pair = np.outer(b / np.linalg.norm(b), [lean, lean])
    pair[-1] = np.sqrt(1.0 - lean**2) * np.array([1.0, -1.0])
    return np.column_stack([np.eye(size + 1)[:, :size], pair]), b


def trial(n: int, k: int, rounds: int) -> dict[str, float]:
    """Return half the squared residual of every method, n being the number of columns."""
    A, b = instance(n)
    numbers = {}
    for label, backend in METHODS.items():
        own = sm.backends.ARHT(repeats=rounds) if label == "ARHT" else backend
        r = A @ least_squares(A, b, k, own).x - b
        numbers[label] = float(0.5 * r @ r)
    return numbers


def main(chosen: Options) -> None:
    trials = Trials(chosen, "arht_lower_bound", trial)
    rounds = chosen.pick(3, 20)
    keys = [
        (n, k) for n in chosen.pick((12, 22), (12, 22, 42, 82)) for k in (2, n // 2, n - 3, n - 2)
    ]
    rows = [
        # Squares of rounding errors are zero.
        (*key, *(0 if value < 1e-20 else value for value in numbers.values()))
        for key in keys
        if (numbers := trials(*key, rounds))
    ]
    header = ("columns", "k", *METHODS)
    table(chosen, "arht_lower_bound", header, rows)
    note = "Half the squared residual, of which 0 is the least for every k."
    for_the_page(chosen, "arht_lower_bound", header, rows, note)


if __name__ == "__main__":
    program(main, __doc__)
