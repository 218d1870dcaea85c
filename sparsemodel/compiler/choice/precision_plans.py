"""Plans for sparse precision matrices, chosen by what they did on measured graphs.

The table (``data/precision.json``) is written by ``benchmarks.precision_plans``. Quality comes
first: the plan with the lowest mean excess over the best on similar problems is taken, unless it
would take long by forecast.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any, final

import numpy as np

from sparsemodel.compiler.choice.portfolios import PATIENCE, Choice, stages_of
from sparsemodel.compiler.choice.ranking import CLOSE, Forecast
from sparsemodel.compiler.choice.recipes import backends_of
from sparsemodel.compiler.facts.fact_sheet import FactSheet
from sparsemodel.interfaces import Backend, FloatArray
from sparsemodel.interfaces.precision import SparsePrecision

_NEIGHBOURS = 12
"""Measured problems that are asked: about as many as there are of one order."""

_WEIGHTS = np.array([1.0, 0.5, 0.5])
"""What differences in ``ln p``, ``ln(n/p)`` and ``ln(k/p)`` count."""

_WITHOUT_SAMPLES = 2.0
"""``n/p`` where nobody said how many observations there are."""


@final
class PrecisionTable:
    """Measured problems with what each recipe did on them."""

    def __init__(self, content: dict[str, Any]) -> None:
        rows = content["problems"]
        self.recipes: tuple[str, ...] = tuple(rows[0]["runs"])
        """What was measured, on every problem."""
        self._names = tuple(row["name"] for row in rows)
        self._places = np.array([_place(row["p"], row["n"], row["k"]) for row in rows])
        self._excess = {r: np.array([row["runs"][r][0] for row in rows]) for r in self.recipes}
        seconds = {r: np.array([row["runs"][r][1] for row in rows]) for r in self.recipes}
        # ln(seconds) is linear in the place: least squares over all measured problems.
        design = np.column_stack([np.ones(len(rows)), self._places])
        self._growth = {
            r: np.linalg.lstsq(design, np.log(np.maximum(s, 1e-3)), rcond=None)[0]
            for r, s in seconds.items()
        }

    def rank(self, p: int, n: int | None, k: int, able: Iterable[str]) -> list[Forecast]:
        """Return a forecast for each recipe whose backends are able, the closest first."""
        names = frozenset(able)
        place = np.array(_place(p, round(_WITHOUT_SAMPLES * p) if n is None else n, k))
        distance = np.abs(self._places - place) @ _WEIGHTS
        near = np.argsort(distance, kind="stable")[:_NEIGHBOURS]
        found = []
        for recipe in self.recipes:
            if not backends_of(recipe) <= names:
                continue
            excess = self._excess[recipe][near]
            growth = self._growth[recipe]
            seconds = float(np.exp(min(growth[0] + growth[1:] @ place, 50.0)))
            forecast = Forecast(
                recipe,
                close=float(np.mean(excess <= CLOSE)),
                excess=float(np.mean(excess)),
                passes=0.0,
                seconds=seconds,
                cost=float(np.mean(excess)),
                similar=tuple(self._names[i] for i in near.tolist()),
            )
            found.append(forecast)
        return sorted(found, key=lambda f: (f.cost, f.seconds, f.recipe))


def _place(p: int, n: int, k: int) -> tuple[float, float, float]:
    p = max(p, 1)
    return float(np.log(p)), float(np.log(max(n, 1) / p)), float(np.log(max(k, 1) / p))


def choose_precision(
    form: SparsePrecision,
    able: dict[str, Backend],
    facts: FactSheet,
    gradient: FloatArray | None = None,
    time_limit: float | None = None,
) -> Choice:
    """Return the stages for ``form``: the closest plan by forecast that does not take long."""
    ranked = precision_table().rank(form.order, form.samples, form.sparsity.budget, able)
    if not ranked:
        name = min(able)
        return Choice(stages_of(name, form))
    limit = PATIENCE if time_limit is None else time_limit
    in_time = [forecast for forecast in ranked if forecast.seconds <= limit]
    chosen = in_time[0] if in_time else min(ranked, key=lambda f: (f.seconds, f.cost))
    others = tuple(forecast for forecast in ranked if forecast is not chosen)
    return Choice(stages_of(chosen.recipe, form), (chosen, *others))


@cache
def precision_table() -> PrecisionTable:
    """Return the shipped table; read once."""
    text = files("sparsemodel.compiler").joinpath("data/precision.json").read_text("utf-8")
    return PrecisionTable(json.loads(text))


__all__ = ["PrecisionTable", "choose_precision", "precision_table"]
