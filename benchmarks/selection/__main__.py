"""Compare ways to choose a model, and write the page: ``python -m benchmarks.selection``."""

from __future__ import annotations

import argparse
import time
from importlib import metadata
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks import machine
from benchmarks.selection.draws import Case, draw
from benchmarks.selection.kept import every
from benchmarks.selection.methods import METHODS, found
from benchmarks.selection.page import Results, Run, page

SIZES = ((60, 30), (60, 120), (40, 200))
CORRELATIONS = (0.0, 0.5, 0.9)
SNRS = (0.5, 2.0, 10.0)
NOISE = 3
"""Draws of noise alone for each draw of a case with a signal."""
PAGE = Path(__file__).parents[2] / "docs" / "benchmarks" / "selection.md"


def main() -> None:
    """Draw, fit and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.selection", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="draws of each case, 2 at least")
    parser.add_argument("--jobs", type=int, default=2, help="draws at the same time")
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("build/selection.jsonl"),
        help="what is known of the draws; a run that was ended goes on from it",
    )
    parser.add_argument("--out", type=Path, default=PAGE, help="the page")
    arguments = parser.parse_args()
    tasks = [
        (Case(*size, correlation, snr), seed)
        for seed, size, correlation, snr in product(
            range(arguments.repeats), SIZES, CORRELATIONS, SNRS
        )
    ]
    tasks += [
        (Case(*size, 0.0, 0.0), seed)
        for seed, size in product(range(NOISE * arguments.repeats), SIZES)
    ]
    tasks.sort(key=lambda task: task[1] // (1 if task[0].snr else NOISE))
    known = every(tasks, compared, arguments.results, arguments.jobs)
    results: Results = {}
    for case, seed in tasks:
        runs = {name: Run(*run) for name, run in known[case, seed].items()}
        results.setdefault(case, []).append(runs)
    here = machine.describe()
    if "abess" in METHODS:
        here["versions"]["abess"] = metadata.version("abess")
    text = page(results, here, METHODS)
    arguments.out.write_text(text, encoding="utf-8")


def compared(case: Case, seed: int) -> dict[str, Run]:
    """Return what each method finds in a draw."""
    data, row = draw(case, seed), {}
    for name, method in METHODS.items():
        began = time.process_time()
        w = found(method, data.X, data.y)
        seconds = time.process_time() - began
        row[name] = Run(data.risk(w), int(np.count_nonzero(w)), data.exact(w), seconds)
    return row


if __name__ == "__main__":
    main()
