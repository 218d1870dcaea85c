"""Rank recipes by what they did on the measured problems that are most like this one.

The table (``data/choices.json``) is measured, not written: ``benchmarks/choosing`` runs every
backend and many plans of several stages on a corpus, and ``benchmarks.choosing.fit`` keeps what
the compiler needs to know.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, final

import numpy as np

from sparsemodel.compiler.facts.features import Features, SideBySide
from sparsemodel.interfaces import FloatArray, Prior

CLOSE = 1e-3
"""Relative excess over the best objective known that counts as as good."""

_ANALYSIS = 0.1
"""Passes that are added before logarithms are taken, so that none stays finite."""

_SECONDS_PER_ENTRY = 1e-9
"""CPU seconds of a pass for each stored entry; about right on machines of this decade."""


@final
@dataclass(frozen=True, slots=True)
class Forecast:
    """What a recipe is expected to do, and on what that rests."""

    recipe: str
    close: float
    """Share of the similar problems on which it came within 0.1 % of the best objective."""
    excess: float
    """Mean relative excess over the best objective, each at most 1."""
    passes: float
    seconds: float
    """CPU seconds, roughly."""
    cost: float
    """What is minimised: time on a logarithmic scale, and quality."""
    similar: tuple[str, ...]
    """The measured problems, most similar first; none where the backend's author declares it."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "recipe": self.recipe,
            "passes": self.passes,
            "seconds": self.seconds,
            "close": self.close,
            "excess": self.excess,
            "similar": list(self.similar),
        }


@final
@dataclass(frozen=True, slots=True)
class Settings:
    """What the fit chose beside the measurements."""

    neighbours: int
    """Measured problems that are asked."""
    reach: float
    """Distance over which the say of a measured problem falls by a factor e."""
    failure: float
    """What missing the best objective costs, in factors e of time."""
    excess: float
    """What the mean relative excess costs, in factors e of time for each 100 %."""
    unnoticed: float
    """CPU seconds that nobody notices: they are added before times are compared."""


@final
class Table:
    """Measured problems with what each recipe did on them."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.settings: Settings = Settings(**content["settings"])
        self.brief: str = content["brief"]
        """What is run where the best plan would take long: a few passes each, without swaps."""
        self.recipes: tuple[str, ...] = tuple(content["recipes"])
        rows = content["problems"]
        features = [Features(**row["features"]) for row in rows]
        self._features = SideBySide(features)
        self._names = np.array([row["name"] for row in rows], dtype=object)
        self._alphabetical = np.argsort(np.argsort(self._names.astype(str)))
        self._sizes = np.array([_growing(f) for f in features]).reshape(-1, 3)
        growth = content["recipes"].values()
        self._pass_growth = np.array([grown[0] for grown in growth]).reshape(-1, 3)
        self._other_growth = np.array([grown[1] for grown in growth]).reshape(-1, 3)
        self._price = np.array([grown[2] for grown in growth])
        # By problem and recipe; nan where it was not run. Times on a logarithmic scale.
        nothing = [np.nan] * 3
        runs = [[nothing if run is None else run for run in row["runs"]] for row in rows]
        table = np.array(runs, dtype=np.float64).reshape(len(rows), len(self.recipes), 3)
        self._regret = table[:, :, 0]
        self._passes = np.log(table[:, :, 1] + _ANALYSIS)
        self._other = np.log(table[:, :, 2])

    def rank(
        self, features: Features, recipes: frozenset[str], entries: int = 0, without: str = ""
    ) -> list[Forecast]:
        """Return a forecast for each recipe that was measured on similar problems, best first.

        Parameters
        ----------
        features
            The problem.
        recipes
            Those that can be run; others are left out.
        entries
            Stored entries of the design; ``n p`` when 0.
        without
            A measured problem to forget, so that it can be predicted from the others.
        """
        distance = self._features.distances(features)
        order = np.lexsort((self._alphabetical, distance))
        if without:
            order = order[self._names[order] != without]
        near = order[: self.settings.neighbours]
        weight = np.exp(-distance[near] / self.settings.reach)[:, None]
        known = ~np.isnan(self._regret[near])
        total = (weight * known).sum(axis=0)
        # Others were not measured on problems like this one.
        measured = (total > 0.0) & (2.0 * total >= weight.sum())
        share = weight * known / np.where(total > 0.0, total, 1.0)

        def mean(values: FloatArray) -> FloatArray:
            return np.asarray((share * np.where(known, values, 0.0)).sum(axis=0))

        larger = _growing(features) - self._sizes[near]
        passes = np.exp(mean(self._passes[near] + larger @ self._pass_growth.T))
        other = np.exp(mean(self._other[near] + larger @ self._other_growth.T))
        seconds = self._price * passes * _pass_seconds(features, entries) + other
        close = mean((self._regret[near] <= CLOSE).astype(np.float64))
        excess = mean(self._regret[near])
        cost = self._cost(seconds, close, excess)
        names = self._names[near]
        everything = tuple(names)
        everywhere = np.logical_and.reduce(known, axis=0)
        found = [
            Forecast(
                recipe,
                close=float(close[r]),
                excess=float(excess[r]),
                passes=float(passes[r]),
                seconds=float(seconds[r]),
                cost=float(cost[r]),
                similar=everything if everywhere[r] else tuple(names[known[:, r]]),
            )
            for r, recipe in enumerate(self.recipes)
            if recipe in recipes and measured[r]
        ]
        return sorted(found, key=lambda f: (f.cost, f.recipe))

    def declared(self, name: str, prior: Prior, features: Features, entries: int = 0) -> Forecast:
        """Return the forecast of a backend from what its author expects of it."""
        passes = prior.passes + prior.passes_per_unit * features.k
        seconds = passes * _pass_seconds(features, entries)
        return Forecast(
            name,
            close=prior.close,
            excess=prior.excess,
            passes=passes,
            seconds=seconds,
            cost=float(
                self._cost(np.array(seconds), np.array(prior.close), np.array(prior.excess))
            ),
            similar=(),
        )

    def _cost(self, seconds: FloatArray, close: FloatArray, excess: FloatArray) -> FloatArray:
        """Return what is minimised: the logarithm of time, and what missing the best costs."""
        known = self.settings
        missed = known.failure * (1.0 - close) + known.excess * excess
        return np.asarray(np.log(seconds + known.unnoticed) + missed)


def _pass_seconds(of: Features, entries: int) -> float:
    """Return the CPU seconds of a pass over a design with so many entries; ``n p`` when 0."""
    return _SECONDS_PER_ENTRY * (entries or of.n * of.units)


def _growing(of: Features) -> FloatArray:
    """Return the logarithms of the sizes that costs grow with: k, n and p."""
    return np.log([max(of.k, 1), max(of.n, 1), max(of.units, 1)])


@cache
def table() -> Table:
    """Return the shipped table; read once."""
    text = files("sparsemodel.compiler").joinpath("data/choices.json").read_text("utf-8")
    return Table(json.loads(text))


__all__ = ["CLOSE", "Forecast", "Settings", "Table", "table"]
