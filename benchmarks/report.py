"""Tables and plots from records."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.families import NAMES

Row = dict[str, Any]


PAGE = "results-all.md"
SUMMARY = "summary.md"

JUDGED = {
    "compressed_sensing": ("error", False),
    "logistic": ("loss", False),
    "multinomial": ("loss", False),
    "recovery": ("exact", True),
    "proofs": ("gap", False),
    "text": ("test accuracy", True),
    "precision_matrices": ("objective", False),
}
"""Families with other solvers: by what an answer is judged, and whether more of it is better."""
_AS_GOOD = {"error": 1e-5, "gap": 1e-4}
"""Errors and gaps below which there is nothing left to find, however small they are."""
_ALIKE = 1e-3
"""Relative difference up to which two other figures count as the same."""


def write_page(folder: Path) -> Path:
    """Write the results in ``folder``, quality before cost, and their summary; return the page."""
    results = []
    for path in sorted(folder.glob("*-*.json")):
        family, _ = path.stem.rsplit("-", 1)
        results.append({"family": family} | json.loads(path.read_text()))
    (folder / SUMMARY).write_text("\n".join([*summary(results), ""]))
    path = folder / PAGE
    path.write_text(markdown(results))
    return path


def summary(results: list[Row]) -> list[str]:
    """Return a table of ``solve()`` and the best of the others, one row a case."""
    head = ["problem", "judged by", "sparsemodel", "best of the others", "its CPU time / ours"]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for family, (quality, more) in JUDGED.items():
        for result in results:
            if result["family"] == family and str(result["machine"]["threads"]) == "1":
                lines += _summary_rows(family, result["records"], quality, more)
    return lines


def _summary_rows(family: str, rows: list[Row], quality: str, more: bool) -> Iterator[str]:
    rows = [row for row in rows if quality in row["quality"]]
    for ours in rows:
        rivals = [r for r in rows if r["case"] == ours["case"] and r is not ours]
        if not ours["solver"].startswith("sparsemodel") or not rivals:
            continue
        if any(r["solver"] == "sparsemodel" for r in rivals):
            continue  # a backend asked for by name is one of the others
        least = _AS_GOOD.get(quality, -math.inf)

        def badness(row: Row, least: float = least) -> float:
            value = float(row["quality"][quality])
            return -value if more else max(value, least)

        best = min(map(badness, rivals))
        near = [r for r in rivals if badness(r) <= best + _ALIKE * abs(best)]
        rival = min(near, key=lambda row: float(row["timing"]["cpu"]))
        factor = rival["timing"]["cpu"] / ours["timing"]["cpu"]
        difference = badness(ours) - badness(rival)
        if abs(difference) <= _ALIKE * abs(badness(rival)):
            word = "as good"
        else:
            word = "better" if difference < 0.0 else "**worse**"
        what = f"{family.replace('_', ' ')}, {ours['case']}"
        cells = [
            what + ours["solver"].removeprefix("sparsemodel"),
            quality,
            f"{_number(ours['quality'][quality])} in {_number(ours['timing']['cpu'])} s, {word}",
            f"{rival['solver']}: {_number(rival['quality'][quality])}",
            f"{factor:.2g}",
        ]
        yield "| " + " | ".join(cells) + " |"


def markdown(results: list[Row]) -> str:
    """Return the results as Markdown: sections of families, a table for each number of threads."""
    lines: list[str] = []
    stated = ""
    for family in NAMES:
        mine = [result for result in results if result["family"] == family]
        if not mine:
            continue
        lines += [f"## {family.replace('_', ' ')}", ""]
        for result in sorted(mine, key=lambda one: int(one["machine"]["threads"])):
            machine = result["machine"]
            if (words := _machine(machine)) != stated:  # once for all that follow
                lines += [words, ""]
                stated = words
            lines += [_circumstances(machine), ""]
            why = result.get("failure", result.get("nothing"))
            if why is not None:
                lines += [f"**No result: {why}.**", ""]
            else:
                table = _table(result["records"], result["machine"]["threads"])
                name = f"The table of {family.replace('_', ' ')}"
                lines += [f"<details><summary>{name}</summary>", "", *table, "", "</details>", ""]
    seconds = [result["seconds"] for result in results if "seconds" in result]
    if seconds:
        lines += [f"All of this took {sum(seconds) / 60:.0f} minutes.", ""]
    return "\n".join(lines)


def _machine(machine: Row) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB; "
        f"{machine['system']}; Python {machine['python']}; {versions}."
    )


def _circumstances(machine: Row) -> str:
    given = machine["threads"] != "0"  # 0: not set
    threads = f"OPENBLAS_NUM_THREADS={machine['threads']}" if given else "threads: as they are"
    return f"{threads}; {machine['date']}; load average {machine['load'][0]} at the start."


def _table(rows: list[Row], threads: str) -> list[str]:
    qualities = list(dict.fromkeys(key for row in rows for key in row["quality"]))
    costs = ["CPU s", "wall s", "units", "ratio", "passes", "MB", "threads", "runs", "notes"]
    head = ["case", "solver", *qualities, *costs]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for row in rows:
        cells = [
            row["case"],
            row["solver"],
            *(_number(row["quality"].get(key)) for key in qualities),
            _number(row["timing"]["cpu"]),
            _number(row["timing"]["wall"]),
            _number(row["units"]),
            _number(_ratio(row, rows)),
            _number(row["passes"]),
            _number(row["peak_mb"]),
            threads if threads != "0" else "as they are",
            _number(row["timing"]["repeats"] or None),
            row["notes"],
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _ratio(row: Row, rows: list[Row]) -> float:
    """Return the cost in units relative to ours for the same case."""
    ours = next(
        (r for r in rows if r["case"] == row["case"] and r["solver"] == "sparsemodel"), None
    )
    return row["units"] / ours["units"] if ours else math.nan


def _number(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float):
        return f"{value:.3g}"
    return str(value)


def save(folder: Path, name: str, result: Row) -> None:
    """Write ``name.json`` and the plots that belong to the family."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(result, indent=1, default=str) + "\n")
    draw = PLOTS.get(result["family"])
    if draw is not None and result["machine"]["threads"] == "1" and result["records"]:
        draw(folder / f"{name}.svg", result["records"])


def plot_ratios(path: Path, rows: list[Row]) -> None:
    """Draw the cost in units of every solver and case as bars, where there is more than one."""
    drawn = [row for row in rows if row["units"] == row["units"] and "growth" not in row["extra"]]
    if len({row["solver"] for row in drawn}) < 2:
        return
    from matplotlib.figure import Figure

    cases = list(dict.fromkeys(row["case"] for row in drawn))
    drawn.sort(key=lambda row: cases.index(row["case"]))
    # A gap before each case sets the groups apart.
    places = [number + 0.8 * cases.index(row["case"]) for number, row in enumerate(drawn)]
    figure = Figure(figsize=(8, 0.24 * places[-1] + 1.2))
    axes = figure.subplots()
    costs = [row["units"] for row in drawn]
    colours = ["C0" if row["solver"].startswith("sparsemodel") else "0.75" for row in drawn]
    bars = axes.barh(places, costs, color=colours)
    axes.bar_label(bars, fmt="%.3g", padding=3, fontsize=8)
    axes.set_yticks(places, [row["solver"] for row in drawn], fontsize=8)
    axes.tick_params(axis="y", length=0)
    axes.set_xscale("log")
    left = min(1.0, *costs)
    axes.set_xlim(left=left)
    for case in cases:
        first = min(y for y, row in zip(places, drawn, strict=True) if row["case"] == case)
        axes.text(left, first - 0.62, f" {case}", fontsize=8, fontweight="bold", va="bottom")
    axes.margins(x=0.12)
    axes.set_ylim(places[-1] + 0.6, -1.2)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("CPU time in passes over the data (one product and one transposed product)")
    figure.savefig(path, bbox_inches="tight")


_GROWING = {"p": "features p", "n": "observations n", "k": "nonzeros k", "nnz": "stored entries"}


def plot_growth(path: Path, rows: list[Row]) -> None:
    """Draw time against what grows, with the fitted exponents."""
    grown = [row for row in rows if "growth" in row["extra"]]
    if not grown:
        return
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter

    names = list(dict.fromkeys(row["extra"]["growth"] for row in grown))
    figure = Figure(figsize=(7.2, 2.6 * ((len(names) + 1) // 2)), layout="constrained")
    panels = figure.subplots((len(names) + 1) // 2, 2, squeeze=False, sharey=True).ravel()
    for axes, name in zip(panels, names, strict=False):
        mine = [row for row in grown if row["extra"]["growth"] == name]
        size = [row["extra"]["size"] for row in mine]
        cpu = [row["timing"]["cpu"] for row in mine]
        slope = mine[-1]["extra"].get("exponent", math.nan)
        axes.loglog(size, cpu, "o-", label=f"solve: exponent {slope:.2f}")
        axes.loglog(size, [row["unit"] for row in mine], "s--", color="0.6", label="one pass")
        axes.set_xlabel(_GROWING.get(name, name))
        axes.set_xticks(size, [EngFormatter(sep="")(value) for value in size])
        axes.minorticks_off()
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(fontsize=8, frameon=False)
    for axes in panels[len(names) :]:
        axes.remove()
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
    for number, row in enumerate(curves):
        times, values = zip(*row["extra"]["curve"], strict=True)
        best = list(itertools.accumulate(values, min))  # what an interrupted run returns
        axes.step(times, best, where="post", color=f"C{number}")
        _label(axes, times[-1], best[-1], row["solver"], color=f"C{number}", ha="right", va="top")
    points = [row for row in rows if not row["extra"].get("curve") and "loss" in row["quality"]]
    for number, row in enumerate(points):
        cost, loss = row["timing"]["cpu"], row["quality"]["loss"]
        axes.plot(cost, loss, "x", color="0.4")
        _label(axes, cost, loss, row["solver"], color="0.4", va=("top", "bottom")[number % 2])
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.margins(x=0.12, y=0.08)
    axes.set_xlabel("CPU seconds")
    axes.set_ylabel("loss of the best coefficients so far")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, bbox_inches="tight")


def _label(axes: Any, x: float, y: float, text: str, **style: str) -> None:
    """Write beside the point what it is, which a legend would make the reader look up."""
    offset = (-4 if style.get("ha") == "right" else 4, -4 if style["va"] == "top" else 4)
    axes.annotate(text, (x, y), offset, textcoords="offset points", fontsize=8, **style)


PLOTS = {
    "compressed_sensing": plot_ratios,
    "growth": plot_growth,
    "logistic": plot_curves,
}
