"""Print figures about single algorithms: ``python -m benchmarks.algorithms [FIGURE ...]``.

One BLAS thread (``OPENBLAS_NUM_THREADS=1``) makes CPU times comparable; ratios are within a run.
"""

from __future__ import annotations

import argparse

from benchmarks import machine
from benchmarks.algorithms.figures import FIGURES, Line


def main() -> int:
    """Run the figures asked for (all without any) and print their tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.algorithms", description=__doc__)
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help=", ".join(FIGURES))
    parser.add_argument("--quick", action="store_true", help="small instances, a few trials")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.figures if name not in FIGURES]
    if unknown:
        parser.error(f"unknown figure {unknown[0]!r}: choose from {', '.join(FIGURES)}")
    for key, value in machine.describe().items():
        print(f"{key}: {value}")
    for name in arguments.figures or FIGURES:
        figure = FIGURES[name]
        print(f"\n## {name}: {figure.__doc__}\n")
        print(table(figure(arguments.quick)))
    return 0


def table(lines: list[Line]) -> str:
    """Return Markdown with a column for each key of the lines."""
    columns = list(lines[0])
    rows = [[_cell(line[column]) for column in columns] for line in lines]
    head = [columns, ["---"] * len(columns)]
    return "\n".join("| " + " | ".join(row) + " |" for row in head + rows)


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    raise SystemExit(main())
