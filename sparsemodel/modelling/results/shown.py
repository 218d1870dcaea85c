"""Problems and paths as notebooks show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparsemodel import markup

_MOST = 30


def problem_panel(goal: Any, constraints: Sequence[Any], variables: Sequence[Any]) -> str:
    """Return what was declared."""
    sizes = (
        (v.label, " x ".join(map(str, v.shape)) + " unknowns" if v.shape else "a number")
        for v in variables
    )
    rows = [("subject to" if i == 0 else "", repr(c)) for i, c in enumerate(constraints)]
    return markup.panel("Problem", repr(goal), markup.facts([*rows, *sizes]))


def path_panel(ks: Sequence[int], objectives: Sequence[float], supports: Sequence[Any]) -> str:
    """Return the objective at each k, and what the largest model is made of."""
    rows = [(f"k = {k}", value) for k, value in zip(ks, objectives, strict=True)]
    last = ", ".join(str(name) for name in supports[-1])
    return markup.panel(
        "Path",
        f"{len(ks)} models, k = {ks[0]} to {ks[-1]}",
        markup.bars(rows[:_MOST], more=len(rows) - _MOST),
        markup.folded(f"Support at k = {ks[-1]}", markup.sentence(last)),
    )


__all__ = ["path_panel", "problem_panel"]
