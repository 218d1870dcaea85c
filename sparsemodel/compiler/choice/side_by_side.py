"""The forecast of a plan that was not measured as a whole, from those of its parts."""

from __future__ import annotations

from collections.abc import Sequence

from sparsemodel.compiler.choice.ranking import Forecast
from sparsemodel.compiler.choice.recipes import parse


def together(recipe: str, measured: Sequence[Forecast]) -> Forecast | None:
    """Return what is expected of fresh starts side by side, None where one was not measured.

    The lowest point wins, so the plan is at least as close as its best part; costs add up.
    Options of the parts are not looked at.
    """
    known = {forecast.recipe: forecast for forecast in measured}
    parts = [known.get(step.backend) for step in parse(recipe) if step.start == "zero"]
    found = [part for part in parts if part is not None]
    if not found or len(found) < len(parse(recipe)):
        return None
    best = max(found, key=lambda part: part.close)
    return Forecast(
        recipe,
        close=best.close,
        excess=min(part.excess for part in found),
        passes=sum(part.passes for part in found),
        seconds=sum(part.seconds for part in found),
        cost=min(part.cost for part in found),
        similar=best.similar,
    )


__all__ = ["together"]
