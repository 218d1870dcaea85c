"""Numbers for reading."""

from __future__ import annotations

import math


def number(value: float, digits: int = 6) -> str:
    """Return a number for reading: ``digits`` significant ones, words where there is no number."""
    if math.isnan(value):
        return "unknown"
    if math.isinf(value):
        return "infinite" if value > 0 else "none"
    return f"{value:.{digits}g}"


def side_by_side(one: float, two: float) -> tuple[str, str]:
    """Return two nearby numbers with as many digits as it takes to tell them apart."""
    if not (math.isfinite(one) and math.isfinite(two)) or one == two:
        return number(one, 8), number(two, 8)
    scale = max(abs(one), abs(two))
    digits = 2 + math.ceil(math.log10(scale / abs(one - two))) if scale > 0.0 else 6
    digits = min(17, max(6, digits))
    return number(one, digits), number(two, digits)


def percent(share: float) -> str:
    """Return a share as a percentage with two significant digits."""
    if not math.isfinite(share):
        return "unknown"
    if share == 0.0:
        return "0 %"
    return f"{100.0 * share:.{3 if share >= 0.01 else 2}g} %"


__all__ = ["number", "percent", "side_by_side"]
