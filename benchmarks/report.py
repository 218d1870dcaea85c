"""Tables and plots from records."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def markdown(rows: list[Row], machine: dict[str, Any]) -> str:
    """Return the results as Markdown, a table a family, quality before cost."""
    lines = [_heading(machine), ""]
    for family in dict.fromkeys(row["family"] for row in rows):
        mine = [row for row in rows if row["family"] == family]
        lines += [f"## {family.replace('_', ' ')}", "", *_table(mine), ""]
    return "\n".join(lines)


def _heading(machine: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB; "
        f"{machine['system']}; Python {machine['python']}; {versions}; "
        f"OPENBLAS_NUM_THREADS={machine['threads']}; {machine['date']}; "
        f"load average {machine['load'][0]} at the start."
    )


def _table(rows: list[Row]) -> list[str]:
    qualities = list(dict.fromkeys(key for row in rows for key in row["quality"]))
    head = ["case", "solver", *qualities, "CPU s", "wall s", "units", "ratio", "passes", "notes"]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for row in rows:
        ours = next(
            (r for r in rows if r["case"] == row["case"] and r["solver"] == "sparsemodel"), None
        )
        ratio = row["units"] / ours["units"] if ours and row["units"] == row["units"] else math.nan
        cells = [
            row["case"],
            row["solver"],
            *(_number(row["quality"].get(key)) for key in qualities),
            _number(row["timing"]["cpu"]),
            _number(row["timing"]["wall"]),
            _number(row["units"]),
            _number(ratio),
            _number(row["passes"]),
            row["notes"],
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _number(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float):
        return f"{value:.3g}"
    return str(value)


def save(folder: Path, name: str, rows: list[Row], machine: dict[str, Any]) -> None:
    """Write ``name.json``, ``name.md`` and the plots its records ask for."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(
        json.dumps({"machine": machine, "records": rows}, indent=1, default=str) + "\n"
    )
    (folder / f"{name}.md").write_text(markdown(rows, machine) + "\n")
    plot_ratios(folder / f"{name}.svg", rows)
    plot_growth(folder / f"{name}-growth.svg", rows)
    plot_curves(folder / f"{name}-curve.svg", rows)


def plot_ratios(path: Path, rows: list[Row]) -> None:
    """Draw the cost in units of every solver and case as bars, where there is more than one."""
    drawn = [row for row in rows if row["units"] == row["units"] and "growth" not in row["extra"]]
    if len({row["solver"] for row in drawn}) < 2:
        return
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 0.3 * len(drawn) + 1))
    axes = figure.subplots()
    labels = [f"{row['case']}  {row['solver']}" for row in drawn]
    colours = ["C0" if row["solver"].startswith("sparsemodel") else "0.7" for row in drawn]
    bars = axes.barh(range(len(drawn)), [row["units"] for row in drawn], color=colours)
    axes.bar_label(bars, fmt="%.3g", padding=3, fontsize=7)
    axes.set_yticks(range(len(drawn)), labels, fontsize=7)
    axes.set_xscale("log")
    axes.set_xlim(left=min(1.0, *(row["units"] for row in drawn)))
    axes.margins(x=0.12, y=0.01)
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("CPU time in passes over the data (one product and one transposed product)")
    figure.savefig(path, bbox_inches="tight")


def plot_growth(path: Path, rows: list[Row]) -> None:
    """Draw time against what grows, with the fitted exponents."""
    grown = [row for row in rows if "growth" in row["extra"]]
    if not grown:
        return
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter

    names = list(dict.fromkeys(row["extra"]["growth"] for row in grown))
    figure = Figure(figsize=(3.2 * len(names), 3.2), layout="constrained")
    for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        mine = [row for row in grown if row["extra"]["growth"] == name]
        size = [row["extra"]["size"] for row in mine]
        cpu = [row["timing"]["cpu"] for row in mine]
        slope = mine[-1]["extra"].get("exponent", math.nan)
        axes.loglog(size, cpu, "o-", label=f"solve: exponent {slope:.2f}")
        axes.loglog(size, [row["unit"] for row in mine], "s--", color="0.6", label="one pass")
        axes.set_xlabel(name)
        axes.set_xticks(size, [EngFormatter(sep="")(value) for value in size])
        axes.minorticks_off()
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(fontsize=7)
    figure.supylabel("CPU seconds", fontsize=9)
    figure.savefig(path, bbox_inches="tight")


def plot_curves(path: Path, rows: list[Row]) -> None:
    """Draw loss against time; solvers that report only their end are points."""
    curves = [row for row in rows if row["extra"].get("curve")]
    if not curves:
        return
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4))
    axes = figure.subplots()
    for row in curves:
        times, values = zip(*row["extra"]["curve"], strict=True)
        best = list(itertools.accumulate(values, min))  # what an interrupted run returns
        axes.step(times, best, where="post", label=row["solver"])
    for row in rows:
        if not row["extra"].get("curve") and "loss" in row["quality"]:
            axes.plot(row["timing"]["cpu"], row["quality"]["loss"], "x", label=row["solver"])
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("CPU seconds")
    axes.set_ylabel("loss of the best coefficients so far")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=7)
    figure.savefig(path, bbox_inches="tight")
