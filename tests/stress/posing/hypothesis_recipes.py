"""Recipes for hypothesis, which shrinks a failing one choice by choice (an extra of the tests)."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from tests.stress.posing.recipe import CHOICES, SEEDS, SMALL_SHAPES, Recipe


def recipes(*, small: bool = False) -> st.SearchStrategy[Recipe]:
    """Return a strategy for recipes; ``small`` limits the shapes."""
    choices = {name: st.sampled_from(values) for name, values in CHOICES.items()}
    if small:
        choices["shape"] = st.sampled_from(SMALL_SHAPES)
    drawn = st.builds(Recipe, **choices)
    return st.builds(lambda recipe, seed: replace(recipe, seed=seed), drawn, st.integers(0, SEEDS))
