"""Why the other backends are not run, and what would change that."""

from __future__ import annotations

from collections.abc import Sequence

from sparsemodel.compiler.choice.ranking import Forecast

_NOTICED = 0.2
"""Forecast seconds from which somebody may want a quicker answer."""


def why_not(forecast: Forecast | None, chosen: Forecast | None) -> tuple[str, ...]:
    """Return why a backend that could run by itself is not run, and the figures behind it."""
    if forecast is None or chosen is None:
        return ("others are preferred, and it was not measured on similar problems",)
    worse = forecast.excess > chosen.excess or forecast.close < chosen.close
    quicker = forecast.seconds < chosen.seconds
    if worse:
        verdict = "quicker, but further from the best" if quicker else "slower and no closer"
    else:
        verdict = "as close and as quick" if quicker else "as close, but slower"
    return verdict, figures(forecast)


def expectation(forecast: Forecast) -> str:
    """Return a forecast in a sentence."""
    passes = f"about {_count(forecast.passes)} passes, " if forecast.passes else ""
    return (
        f"{passes}{seconds_words(forecast.seconds)}; as good as the best known on "
        f"{forecast.close:.0%} of similar problems, {_percent(forecast.excess)} above it on average"
    )


def figures(forecast: Forecast) -> str:
    """Return the figures of a forecast, short."""
    passes = f"{_count(forecast.passes)} passes, " if forecast.passes else ""
    above = _percent(forecast.excess)
    return f"{passes}as good on {forecast.close:.0%}, {above} above on average"


def _count(passes: float) -> str:
    return f"{passes:.2g}" if passes < 10.0 else f"{passes:.0f}"


def _percent(share: float) -> str:
    return "<0.01 %" if share < 1e-4 else f"{100.0 * share:.2g} %"


def seconds_words(seconds: float) -> str:
    """Return a forecast of CPU time in words; it is rough, and says no more than it knows."""
    if seconds < 0.01:
        return "a few milliseconds"
    return f"about {float(f'{seconds:.1g}'):g} s"


def tradeoffs(forecasts: Sequence[Forecast]) -> tuple[str, ...]:
    """Return the quicker and the more thorough plan, where there are such.

    ``forecasts`` are those of all recipes that could be run, the chosen one first.
    """
    if not forecasts:
        return ()
    chosen, *others = forecasts
    notes = []
    quicker = next((f for f in others if f.seconds <= 0.5 * chosen.seconds), None)
    if quicker is not None and chosen.seconds >= _NOTICED:
        notes.append(
            f"for a quicker answer, solve({quicker.recipe!r}), {seconds_words(quicker.seconds)}: "
            f"{figures(quicker)}"
        )
        limit = 0.5 * chosen.seconds
        notes.append(
            f"with a time limit, solve(time_limit={limit:.1g}) say, the best plan that is "
            "expected to end in time"
        )
    better = [f for f in others if f.close > chosen.close and f.excess < chosen.excess]
    if better:
        thorough = min(better, key=lambda f: (f.excess, f.recipe))
        notes.append(
            f"for a better answer, solve({thorough.recipe!r}), "
            f"{seconds_words(thorough.seconds)}: {figures(thorough)}"
        )
    return tuple(notes)


__all__ = ["expectation", "figures", "seconds_words", "tradeoffs", "why_not"]
