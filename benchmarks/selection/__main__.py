"""Compare ways to choose a model, and write the page: ``python -m benchmarks.selection``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.selection.draws import NONZEROS, Case, draw
from benchmarks.selection.kept import every
from benchmarks.selection.methods import METHODS, found

SIZES = ((100, 20), (60, 120))
CORRELATIONS = (0.0, 0.7)
SNRS = (0.25, 1.0, 6.0)
NOISE = 5
"""Draws of noise alone for each draw of a case with a signal."""
PAGE = Path(__file__).parents[2] / "docs" / "benchmarks" / "selection.md"
Runs = list[tuple[float, int, bool]]
"""Risk, size, and whether the support is exact, for every draw."""
Row = dict[str, Runs]
"""Those of each method."""


_HEAD = r"""# Choosing a model: risk, size, recovery

Written by `python -m benchmarks.selection`. Data as in Hastie, Tibshirani and Tibshirani
(*Extended comparisons of best subset selection, forward stepwise selection, and the lasso*, 2017):
{nonzeros} equal coefficients at equal distances, columns of correlation $\rho^{{|i-j|}}$, noise by
the ratio of variances (SNR). Means over {repeats} draws of each case, so that differences of a few
hundredths mean little. Every method chooses what it chooses without arguments.

## Risk

$(\hat w - w)^\top \Sigma (\hat w - w) / w^\top \Sigma w$: 0 is
perfect, 1 is what no coefficients have.
"""
_SIZES = """## Size and exact recovery

Mean number of nonzeros ({nonzeros} are true), and of {repeats} draws those whose support is exactly
the true one.
"""
_NOISE = """## Noise alone

Mean number of nonzeros where there is nothing to find, and of {draws} draws those in which
nothing is chosen ([the rule](../adr/0015-how-k-and-the-ridge-are-chosen.md)).
"""


def main() -> None:
    """Draw, fit and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.selection", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="draws of each case")
    parser.add_argument("--jobs", type=int, default=2, help="draws at the same time")
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("build/selection.jsonl"),
        help="what is known of the draws; a run that was ended goes on from it",
    )
    parser.add_argument("--out", type=Path, default=PAGE, help="the page")
    arguments = parser.parse_args()
    cases = [
        Case(n, p, correlation, snr)
        for (n, p), correlation, snr in product(SIZES, CORRELATIONS, SNRS)
    ]
    cases += [Case(n, p, 0.0, 0.0) for n, p in SIZES]
    seeds = {case: range(arguments.repeats * (1 if case.snr else NOISE)) for case in cases}
    tasks = [(case, seed) for case in cases for seed in seeds[case]]
    known = every(tasks, compared, arguments.results, arguments.jobs)
    results = {
        case: {name: [known[case, seed][name] for seed in seeds[case]] for name in METHODS}
        for case in cases
    }
    arguments.out.write_text(page(results, arguments.repeats), encoding="utf-8")


def compared(case: Case, seed: int) -> dict[str, tuple[float, int, bool]]:
    """Return what each method finds in a draw."""
    data, row = draw(case, seed), {}
    for name, method in METHODS.items():
        w = found(method, data.X, data.y)
        row[name] = data.risk(w), int(np.count_nonzero(w)), data.exact(w)
    return row


def risk(row: Runs) -> float:
    """Return the mean risk."""
    return float(np.mean([one[0] for one in row]))


def size(row: Runs) -> float:
    """Return the mean number of nonzeros."""
    return float(np.mean([one[1] for one in row]))


def exact(row: Runs) -> int:
    """Return how many supports are exact."""
    return sum(one[2] for one in row)


def page(results: dict[Case, Row], repeats: int) -> str:
    """Return the page."""
    signal = {case: rows for case, rows in results.items() if case.snr > 0.0}
    noise = {case: rows for case, rows in results.items() if case.snr == 0.0}
    parts = [
        _HEAD.format(nonzeros=NONZEROS, repeats=repeats),
        _table(signal, lambda row: f"{risk(row):.3f}"),
        _overall(signal),
        _SIZES.format(nonzeros=NONZEROS, repeats=repeats),
        _table(signal, lambda row: f"{size(row):.1f}, {exact(row)}"),
        _NOISE.format(draws=NOISE * repeats),
        _table(noise, lambda row: f"{size(row):.1f}, {sum(one[1] == 0 for one in row)}"),
        _advice(signal),
    ]
    return "\n".join(parts)


def _table(results: dict[Case, Row], shown: Callable[[Runs], str]) -> str:
    lines = ["| n x p | ρ | SNR | " + " | ".join(METHODS) + " |"]
    lines.append("| --- " * (3 + len(METHODS)) + "|")
    for case, rows in results.items():
        cells = " | ".join(shown(rows[name]) for name in METHODS)
        lines.append(f"| {case.n} x {case.p} | {case.correlation:g} | {case.snr:g} | {cells} |")
    return "\n".join(lines) + "\n"


def _means(signal: dict[Case, Row]) -> dict[float, dict[str, float]]:
    """Return the mean risk of each method by SNR."""
    return {
        snr: {
            name: float(np.mean([risk(rows[name]) for c, rows in signal.items() if c.snr == snr]))
            for name in METHODS
        }
        for snr in SNRS
    }


def _overall(signal: dict[Case, Row]) -> str:
    lines = ["Means by SNR:\n", "| SNR | " + " | ".join(METHODS) + " |"]
    lines.append("| --- " * (1 + len(METHODS)) + "|")
    means = _means(signal)
    for snr, row in means.items():
        lines.append(f"| {snr:g} | " + " | ".join(f"{row[name]:.3f}" for name in METHODS) + " |")
    whole = {name: np.mean([row[name] for row in means.values()]) for name in METHODS}
    lines.append("| all | " + " | ".join(f"{whole[name]:.3f}" for name in METHODS) + " |")
    return "\n".join(lines) + "\n"


def _advice(signal: dict[Case, Row]) -> str:
    lines = ["## What to use when\n", "By this table alone:\n"]
    for snr, row in _means(signal).items():
        order = sorted(METHODS, key=row.__getitem__)
        recovered = {
            name: sum(exact(rows[name]) for c, rows in signal.items() if c.snr == snr)
            for name in METHODS
        }
        best = max(recovered.values())
        supports = " and ".join(name for name in METHODS if recovered[name] == best)
        lines.append(
            f"- SNR {snr:g}: the smallest risk has {order[0]} ({row[order[0]]:.3f}), then "
            f"{order[1]} ({row[order[1]]:.3f}); "
            + (
                f"most supports are found by {supports} ({best})."
                if best
                else "no method finds a support."
            )
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
