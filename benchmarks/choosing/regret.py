"""Measure regret: ``python -m benchmarks.choosing.regret [--again RECIPE ...] [--out FOLDER]``.

Runs every able backend, the recipes and ``solve()`` on the corpus, and compares. What was
measured is kept in the folder, so an interrupted run goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine
from benchmarks.choosing.corpus import cases
from benchmarks.choosing.runs import CHOSEN, run_case
from benchmarks.choosing.scores import CLOSE, TIMES, Line, Verdict, lines, verdict

DRAWN = ("exchange", "nhtp", "local_search", "omp", "gp")
"""Single backends of the picture, beside ``solve()``."""


def main() -> None:
    """Run what is missing and write the report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.choosing.regret")
    parser.add_argument("--out", type=Path, default=Path("benchmark-results/choosing"))
    parser.add_argument("--again", nargs="*", default=[], help="recipes to measure anew")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--openings", action="store_true", help="also before the finish")
    arguments = parser.parse_args()
    again = frozenset(arguments.again)
    chosen = [case for case in cases() if arguments.only in case.name]
    if chosen:
        chosen[0].problem().solve()  # what is imported and compiled once is nobody's time
    verdicts = []
    for case in chosen:
        began = time.process_time()
        verdicts.append(
            verdict(run_case(case, arguments.out, again=again, openings=arguments.openings))
        )
        print(f"{case.name}: {time.process_time() - began:.1f} s", flush=True)
    summary = lines(verdicts)
    about = machine.describe()
    text = markdown(summary, about)
    print(text)
    report: dict[str, Any] = {"machine": about, "lines": [asdict(item) for item in summary]}
    (arguments.out / "report").mkdir(parents=True, exist_ok=True)
    (arguments.out / "report" / "regret.json").write_text(json.dumps(report, indent=1) + "\n")
    (arguments.out / "report" / "regret.md").write_text(text + "\n")
    draw(verdicts, arguments.out / "report" / "regret.svg")


def markdown(summary: list[Line], about: dict[str, Any]) -> str:
    """Return the report as a table with the machine above it."""
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    head = (
        "problems",
        "`solve()` as good as the best backend",
        "mean excess",
        "better than all",
        "best fixed backend",
        "as good",
        "mean excess",
        "time ratio (median)",
        f"within {TIMES:g} times",
        "that, or better than all",
    )
    rows = [
        f"{about['processor']}, one thread; Python {about['python']}; {versions}; {about['date']}.",
        "",
        "| family | " + " | ".join(head) + " |",
        "| --- |" + " ---: |" * len(head),
    ]
    for item in summary:
        cells = (
            item.label,
            str(item.problems),
            f"{item.close:.0%}",
            _percent(item.mean_excess),
            f"{item.better:.0%}",
            item.fixed,
            f"{item.fixed_close:.0%}",
            _percent(item.fixed_mean_excess),
            "" if math.isnan(item.median_ratio) else f"{item.median_ratio:.1f}",
            f"{item.fast:.0%}",
            f"{item.fast_or_better:.0%}",
        )
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share >= 5e-5 else "0"


def draw(verdicts: list[Verdict], path: Path) -> None:
    """Draw the share of problems on which each is within a distance of the best backend."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 3.6), layout="constrained")
    axes = figure.subplots()
    grid = np.logspace(-4, 0, 200)
    for name in (CHOSEN, *DRAWN):
        found = np.array([v.excess.get(name, 1.0) for v in verdicts])
        share = [(found <= x).mean() for x in grid]
        style = {"linewidth": 2.4, "color": "C0"} if name == CHOSEN else {"linewidth": 1.0}
        axes.plot(grid, share, label=name, **style)
    axes.axvline(CLOSE, color="0.7", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_ylim(0.0, 1.02)
    axes.set_xlabel("objective above the best backend's, relative")
    axes.set_ylabel(f"share of {len(verdicts)} problems")
    axes.legend(fontsize=8, frameon=False, loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
