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
from math import exp, log
from typing import Any, final

from sparsemodel.compiler.features import Features

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
    """The measured problems, most similar first."""

    def describe(self) -> str:
        """Return the forecast in words."""
        return (
            f"about {_count(self.passes)} passes; as good as the best known on {self.close:.0%} of "
            f"similar problems, {_percent(self.excess)} above it on average"
        )

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
class _Run:
    """What a recipe did on a measured problem; times on a logarithmic scale."""

    regret: float
    passes: float
    other: float
    """CPU seconds beside the passes."""

    @classmethod
    def of(cls, regret: float, passes: float, seconds: float) -> _Run:
        return cls(regret, log(passes + _ANALYSIS), log(seconds))


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
        self.settings = Settings(**content["settings"])
        self._growth: dict[str, Any] = content["recipes"]
        self.recipes = tuple(self._growth)
        self._problems = [
            (
                row["name"],
                Features(**row["features"]),
                {
                    recipe: _Run.of(*run)
                    for recipe, run in zip(self.recipes, row["runs"], strict=True)
                    if run is not None
                },
            )
            for row in content["problems"]
        ]

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
        near = sorted(
            (features.distance(other), name, other, runs)
            for name, other, runs in self._problems
            if name != without
        )[: self.settings.neighbours]
        pass_seconds = _SECONDS_PER_ENTRY * (entries or features.n * features.units)
        found = (
            self._forecast(recipe, features, near, pass_seconds)
            for recipe in self.recipes
            if recipe in recipes
        )
        return sorted((f for f in found if f is not None), key=lambda f: (f.cost, f.recipe))

    def _forecast(
        self, recipe: str, features: Features, near: list[Any], pass_seconds: float
    ) -> Forecast | None:
        known = [
            (exp(-d / self.settings.reach), name, other, runs[recipe])
            for d, name, other, runs in near
            if recipe in runs
        ]
        everything = sum(exp(-d / self.settings.reach) for d, *_ in near)
        if 2.0 * sum(weight for weight, *_ in known) < everything or not known:
            return None  # not measured on problems like this one
        pass_growth, other_growth, price = self._growth[recipe]
        total = close = excess = passes = other = 0.0
        for weight, _, of, run in known:
            k = log(max(features.k, 1) / max(of.k, 1))
            n = log(features.n / of.n)
            total += weight
            close += weight * (run.regret <= CLOSE)
            excess += weight * run.regret
            passes += weight * (run.passes + pass_growth[0] * k + pass_growth[1] * n)
            other += weight * (run.other + other_growth[0] * k + other_growth[1] * n)
        expected = exp(passes / total)
        seconds = price * expected * pass_seconds + exp(other / total)
        missed = self.settings.failure * (1.0 - close / total)
        return Forecast(
            recipe,
            close=close / total,
            excess=excess / total,
            passes=expected,
            seconds=seconds,
            cost=log(seconds + self.settings.unnoticed)
            + missed
            + self.settings.excess * excess / total,
            similar=tuple(name for _, name, _, _ in known),
        )


def _percent(share: float) -> str:
    """Return a share in per cent, short."""
    return "less than 0.01 %" if share < 1e-4 else f"{100.0 * share:.2g} %"


def _count(passes: float) -> str:
    """Return a number of passes, rounded as forecasts deserve."""
    return f"{passes:.1f}" if passes < 10.0 else f"{passes:.0f}"


@cache
def table() -> Table:
    """Return the shipped table; read once."""
    text = files("sparsemodel.compiler").joinpath("data/choices.json").read_text("utf-8")
    return Table(json.loads(text))


__all__ = ["CLOSE", "Forecast", "Settings", "Table", "table"]
