"""Make the compiler's table from what was measured: ``python -m benchmarks.choosing.fit``.

Keeps, for every problem that is not held out, its features and for every recipe worth choosing
its regret, its passes and its CPU seconds beside them; drops recipes that no problem needs; fits
how passes and seconds grow with k, n and p by least squares on logarithms.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any, cast

import numpy as np

import sparsemodel as sm
import sparsemodel.compiler
from benchmarks import machine
from benchmarks.choosing.corpus import cases, held_out
from benchmarks.choosing.runs import candidates
from benchmarks.choosing.scores import is_single, scores
from sparsemodel.compiler import Facts
from sparsemodel.compiler.choice.ranking import Table
from sparsemodel.compiler.facts.features import Features
from sparsemodel.interfaces import SparseRegression

TARGET = Path(sparsemodel.compiler.__file__).parent / "data" / "choices.json"

BRIEF = "nhtp:patience=10 | gomp"
"""What is run where the best plan would take long; neither depends on swaps."""

SETTINGS = {"neighbours": 40, "reach": 1.0, "failure": 8.0, "excess": 30.0, "unnoticed": 0.003}
"""Chosen with ``--tune``: quality first, then time."""

GRID = [
    SETTINGS | {"reach": reach, "failure": failure, "excess": excess, "unnoticed": unnoticed}
    for reach in (0.7, 1.0, 2.0)
    for failure in (4.0, 8.0, 16.0)
    for excess in (10.0, 30.0)
    for unnoticed in (0.003, 0.03)
]
"""What ``--tune`` tries."""

Row = dict[str, Any]


def features_of(problem: sm.Problem) -> Row:
    """Return the features of a problem as the compiler sees them, as plain data."""
    facts, reduced = problem._compiled().analysis()
    found = cast("Facts", facts).features(cast("SparseRegression", reduced.form), reduced.gradient)
    return {k: round(v, 3) if isinstance(v, float) else v for k, v in found.to_dict().items()}


def rows(folder: Path, names: frozenset[str] | None = None) -> list[Row]:
    """Return features and scores of the measured cases (of ``names`` alone where given)."""
    out = []
    for case in cases():
        file = folder / f"{case.name}.json"
        if not file.exists() or (names is not None and case.name not in names):
            continue
        record = json.loads(file.read_text())
        problem = case.problem()
        current = set(candidates(problem, large=case.large))
        record["runs"] = {r: run for r, run in record["runs"].items() if r in current}
        found = scores(record)
        out.append(
            {
                "name": case.name,
                "family": case.family,
                "features": features_of(problem),
                "unit": record["unit"],
                "runs": {
                    r: [
                        s.regret if s.regret > 1e-6 else 0.0,
                        s.passes,
                        s.cpu,
                    ]
                    for r, s in found.items()
                },
            }
        )
    return out


def growth(data: list[Row], recipe: str) -> list[Any]:
    """Return how passes and other seconds grow, and what a pass costs: two triples and a number.

    The triples are exponents of k, n and p, by least squares on logarithms, shrunk towards none
    by a ridge. Passes that are made as products of matrices take less than a unit each: their price
    is the lowest of the measured times over the passes' own.
    """
    mine = [row for row in data if recipe in row["runs"]]
    shares = [row["runs"][recipe][2] / max(_own(row, recipe), 1e-9) for row in mine]
    price = float(np.clip(min(shares), 0.1, 1.0))
    sizes = np.array([[row["features"][s] for s in ("k", "n", "units")] for row in mine], float)
    X = np.log(np.maximum(sizes, 1.0))
    X = X - X.mean(axis=0)
    Y = np.log([[max(row["runs"][recipe][1], 0.1), _other(row, recipe, price)] for row in mine])
    Y = Y - Y.mean(axis=0)
    exponents = np.linalg.solve(X.T @ X + np.eye(3), X.T @ Y).T
    triples = [[round(float(v), 2) for v in np.clip(line, 0.0, 2.0)] for line in exponents]
    return [*triples, round(price, 2)]


def _own(row: Row, recipe: str) -> float:
    """Return the CPU seconds of as many passes, one after the other."""
    return float(row["runs"][recipe][1] * row["unit"])


def _other(row: Row, recipe: str, price: float) -> float:
    """Return the CPU seconds beside the passes."""
    return max(float(row["runs"][recipe][2]) - price * _own(row, recipe), 1e-5)


def table(data: list[Row], recipes: list[str], about: Row) -> Row:
    """Return the table as plain data."""
    grown = {recipe: growth(data, recipe) for recipe in recipes}

    def run(row: Row, recipe: str) -> list[float] | None:
        if recipe not in row["runs"]:
            return None
        regret, passes, _ = row["runs"][recipe]
        values = (regret, passes, _other(row, recipe, grown[recipe][2]))
        return [float(f"{v:.2g}") for v in values]

    return {
        "about": about,
        "brief": BRIEF,
        "settings": SETTINGS,
        "recipes": grown,
        "problems": [
            {
                "name": row["name"],
                "features": row["features"],
                # In the order of the recipes, null where one could not be run.
                "runs": [run(row, recipe) for recipe in recipes],
            }
            for row in data
        ],
    }


def chosen(by: Table, row: Row, *, honest: bool = True) -> str:
    """Return the recipe that would be taken for a measured problem."""
    left_out = row["name"] if honest else ""
    ranked = by.rank(Features(**row["features"]), frozenset(row["runs"]), without=left_out)
    return ranked[0].recipe


def judge(made: Row, data: list[Row], *, honest: bool) -> str:
    """Return shares of close choices, of those that are fast or better, and the mean excess.

    ``honest`` predicts each problem from the others.
    """
    close, fast, regret = 0, 0, 0.0
    whole = Table(made)
    for row in data:
        mine = row["runs"][chosen(whole, row, honest=honest)]
        singles = {r: v for r, v in row["runs"].items() if is_single(r)}
        best = min(v[0] for v in singles.values())
        regret += max(mine[0] - best, 0.0)
        if mine[0] <= best + 1e-3:
            close += 1
            rivals = [v[2] for v in singles.values() if v[0] <= best + 1e-3]
            fast += mine[2] <= 2.0 * min(rivals) or mine[0] < best - 1e-3
    count = len(data)
    return f"{close / count:.1%} {fast / count:.1%} {regret / count:.2%}"


def worth_keeping(data: list[Row], made: Row) -> list[str]:
    """Return the single backends, and the recipes that are taken for at least two problems."""
    whole = Table(made)
    taken = Counter(chosen(whole, row) for row in data)
    often = {recipe for recipe, times in taken.items() if times > 1}
    return sorted(often | {recipe for recipe in made["recipes"] if is_single(recipe)})


def main() -> None:
    """Fit the table and write it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.choosing.fit")
    parser.add_argument("--from", dest="folder", type=Path, default="benchmark-results/choosing")
    parser.add_argument("--to", type=Path, default=TARGET)
    parser.add_argument("--tune", action="store_true", help="try other settings, too")
    arguments = parser.parse_args()
    away = held_out(cases())
    every = rows(arguments.folder)
    data = [row for row in every if row["name"] not in away]
    about = machine.describe() | {"problems": len(data)}
    recipes = sorted({recipe for row in data for recipe in row["runs"]})
    made = table(data, recipes, about)
    print("as good, fast or better, mean excess: predicted from the other problems, and from all")
    for settings in GRID if arguments.tune else [SETTINGS]:
        tried = made | {"settings": settings}
        shown = judge(tried, data, honest=True), judge(tried, data, honest=False)
        print(*settings.values(), *shown, sep="  ")
    recipes = worth_keeping(data, made)
    made = table(data, recipes, about)
    print(f"{len(recipes)} recipes:", judge(made, data, honest=True))
    arguments.to.parent.mkdir(exist_ok=True)
    arguments.to.write_text(json.dumps(made, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
