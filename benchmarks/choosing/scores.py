"""Regret from records: quality first, then time."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

from benchmarks.choosing.runs import CHOSEN

CLOSE = 1e-3
"""Relative excess of the objective that counts as the same quality."""

FLOOR = 1e-6
"""Share of the objective at zero below which differences do not count (exact recovery)."""

TIMES = 2.0
"""Factor of time that counts as as fast."""


@dataclass(frozen=True)
class Score:
    """How a recipe did on a problem."""

    regret: float
    """Objective above the best of all runs, relative to it; at most 1, which is failure too."""
    cpu: float
    passes: float


def scores(record: dict[str, Any]) -> dict[str, Score]:
    """Return the score of every recipe that ran on a problem."""
    values = [run["value"] for run in record["runs"].values() if "value" in run]
    best = min(values)
    unit = max(abs(best), FLOOR * abs(record["zero"]), 1e-300)
    out = {}
    for recipe, run in record["runs"].items():
        if "value" in run:
            regret = min((run["value"] - best) / unit, 1.0)
            out[recipe] = Score(regret, run["cpu"], run["passes"])
        else:
            out[recipe] = Score(1.0, run["cpu"], 0.0)
    return out


def is_single(recipe: str) -> bool:
    """Return whether a recipe is a backend with its own settings."""
    return recipe != CHOSEN and not any(mark in recipe for mark in (">", "|", ":"))


@dataclass(frozen=True)
class Verdict:
    """``solve()`` against the single backends on one problem."""

    name: str
    family: str
    excess: dict[str, float]
    """Above the best single backend, of each of them and of ``solve()``; at least 0."""
    ratio: float | None
    """CPU time of ``solve()`` over that of the fastest backend as good as the best; None where
    ``solve()`` is not as good."""
    better: bool
    """Whether ``solve()`` is better than every backend by more than :data:`CLOSE`."""

    @property
    def close(self) -> bool:
        return self.excess[CHOSEN] <= CLOSE

    @property
    def fast(self) -> bool:
        return self.ratio is not None and self.ratio <= TIMES

    @property
    def fast_or_better(self) -> bool:
        """Whether no backend of the same quality takes less than half the time."""
        return self.fast or self.better


def verdict(record: dict[str, Any]) -> Verdict:
    """Compare ``solve()`` with the single backends."""
    found = scores(record)
    single = {recipe: score for recipe, score in found.items() if is_single(recipe)}
    best = min(score.regret for score in single.values())
    excess = {r: max(s.regret - best, 0.0) for r, s in (single | {CHOSEN: found[CHOSEN]}).items()}
    ratio = None
    if excess[CHOSEN] <= CLOSE:
        ratio = found[CHOSEN].cpu / min(s.cpu for r, s in single.items() if excess[r] <= CLOSE)
    better = found[CHOSEN].regret < best - CLOSE
    return Verdict(record["case"], record["family"], excess, ratio, better)


@dataclass(frozen=True)
class Line:
    """One line of the report."""

    label: str
    problems: int
    close: float
    mean_excess: float
    better: float
    fixed: str
    """The single backend that would have been best throughout."""
    fixed_close: float
    fixed_mean_excess: float
    median_ratio: float
    fast: float
    fast_or_better: float


def line(label: str, verdicts: list[Verdict]) -> Line:
    """Summarise the problems of a family."""
    backends = set.intersection(*(set(v.excess) for v in verdicts)) - {CHOSEN}
    fixed = min(sorted(backends), key=lambda b: mean(v.excess[b] for v in verdicts))
    ratios = [v.ratio for v in verdicts if v.ratio is not None]
    return Line(
        label=label,
        problems=len(verdicts),
        close=mean(v.close for v in verdicts),
        mean_excess=mean(v.excess[CHOSEN] for v in verdicts),
        better=mean(v.better for v in verdicts),
        fixed=fixed,
        fixed_close=mean(v.excess[fixed] <= CLOSE for v in verdicts),
        fixed_mean_excess=mean(v.excess[fixed] for v in verdicts),
        median_ratio=median(ratios) if ratios else float("nan"),
        fast=mean(v.fast for v in verdicts),
        fast_or_better=mean(v.fast_or_better for v in verdicts),
    )


def lines(verdicts: list[Verdict]) -> list[Line]:
    """Return a line for each family, and one for everything."""
    families: dict[str, list[Verdict]] = defaultdict(list)
    for v in verdicts:
        families[v.family].append(v)
    return [line(family, of) for family, of in (families | {"all": verdicts}).items() if of]
