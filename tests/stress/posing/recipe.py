"""What a random problem is made of, choice by choice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, final

import numpy as np


class Printed:
    """Prints the fields that differ from their defaults."""

    __slots__ = ()

    def __str__(self) -> str:
        given: Any = self
        told = [
            f"{f.name}={getattr(self, f.name)!r}"
            for f in fields(given)
            if getattr(self, f.name) != f.default
        ]
        return f"{type(self).__name__}({', '.join(told)})"


@final
@dataclass(frozen=True, slots=True)
class Recipe(Printed):
    """The choices behind a random problem; equal recipes make equal problems.

    Every field but ``seed`` is one of :data:`CHOICES`, the harmless one first, so that a recipe
    is printed, compared and shrunk field by field.
    """

    loss: str = "squared"
    shape: tuple[int, int] = (12, 5)
    columns: str = "gaussian"
    target: str = "planted"
    matrix_scale: float = 1.0
    target_scale: float = 1.0
    storage: str = "C order"
    k: str = "2"
    ridge: float = 0.01
    ridge_shape: str = "same"
    constraint: str = "none"
    cardinality: str = "entries"
    intercept: bool = False
    weights: str = "none"
    reduction: str = "mean"
    terms: int = 1
    start: str = "none"
    backend: str = "chosen"
    seed: int = 0


CHOICES: MappingProxyType[str, tuple[Any, ...]] = MappingProxyType(
    {
        "loss": (
            "squared",
            "logistic",
            "huber",
            "absolute",
            "quantile",
            "epsilon_insensitive",
            "hinge",
            "smoothed_hinge",
            "squared_hinge",
            "poisson",
            "gamma",
            "multinomial",
            "cox",
            "expectile",
            "negative_binomial",
            "tweedie",
        ),
        "shape": ((12, 5), (1, 1), (1, 6), (9, 1), (2, 2), (6, 9), (25, 8), (40, 12), (30, 40)),
        "columns": (
            "gaussian",
            "duplicates",
            "zero columns",
            "constant columns",
            "rank one",
            "all zero",
            "nearly equal",
            "small integers",
            "single entries",
            "huge offset",
            "mixed scales",
        ),
        "target": ("planted", "noise", "constant", "zero", "exact", "outlier", "huge offset"),
        "matrix_scale": (1.0, 1e-4, 1e4, 1e-30, 1e30, 1e-150, 1e150, 1e-310),
        "target_scale": (1.0, 1e-4, 1e4, 1e-30, 1e30, 1e-150, 1e150, 1e-310),
        "storage": (
            "C order",
            "F order",
            "strided",
            "reversed",
            "read-only",
            "float32",
            "big-endian",
            "integers",
            "nested list",
            "CSC",
            "CSR",
            "COO",
            "explicit zeros",
            "unsorted",
            "repeated entries",
            "operator",
            "data frame",
            "nullable data frame",
        ),
        "k": ("2", "0", "1", "half", "all"),
        "ridge": (0.01, 0.0, 1e-12, 1.0, 1e8, 1e-200),
        "ridge_shape": ("same", "each its own", "some zero"),
        "constraint": (
            "none",
            "nonnegative",
            "box",
            "box away from zero",
            "tiny box",
            "norm",
            "sum",
            "inequality",
        ),
        "cardinality": ("entries", "groups", "slice", "price"),
        "intercept": (False, True),
        "weights": ("none", "random", "some zero", "extreme", "integers"),
        "reduction": ("mean", "sum"),
        "terms": (1, 2),
        "start": ("none", "random", "huge", "again"),
        "backend": ("chosen", "any"),
        "seed": (0,),
    }
)
"""The choices a :class:`Recipe` has, the harmless one first."""

SEEDS = 2**31
"""Seeds of recipes are below this."""

USUAL = 0.65
"""How often a choice other than the loss and the shape is the harmless one.

Most problems then break a handful of rules at once. If every choice were free, nearly every
problem would be out of range in one way, and nothing else would be tried on it.
"""


NONSMOOTH = ("absolute", "epsilon_insensitive", "hinge", "quantile")
"""Losses whose certificates cost ten times those of the others."""

SMALL_SHAPES = ((12, 5), (1, 1), (1, 6), (9, 1), (2, 2), (6, 4), (5, 6))
"""Shapes of small problems: every support can be tried."""

CONVEX = ("norm", "sum", "inequality")
"""Constraints that are kept by general convex solvers."""

_RARE = 0.08
"""How often a small problem keeps a choice that takes long."""


def random_recipe(rng: np.random.Generator, *, small: bool = False) -> Recipe:
    """Return a random recipe: loss and shape evenly, the rest harmless two times out of three.

    ``small`` takes :data:`SMALL_SHAPES`, and losses with kinks and general constraints seldom: a
    run of them is three times as fast.
    """
    chosen = drawn(rng, CHOICES, ("loss", "shape"))
    if small:
        chosen["shape"] = SMALL_SHAPES[int(rng.integers(len(SMALL_SHAPES)))]
        if chosen["loss"] in NONSMOOTH and rng.random() > _RARE:
            chosen["loss"] = CHOICES["loss"][int(rng.integers(3))]
        if chosen["constraint"] in CONVEX and rng.random() > _RARE:
            chosen["constraint"] = "box"
    return Recipe(**(chosen | {"seed": int(rng.integers(SEEDS))}))


def drawn(
    rng: np.random.Generator, choices: Mapping[str, tuple[Any, ...]], even: tuple[str, ...]
) -> dict[str, Any]:
    """Draw a value of each choice: those named in ``even`` evenly, others as :data:`USUAL` says."""
    found = {}
    for name, values in choices.items():
        usual = name not in even and rng.random() < USUAL
        found[name] = values[0] if usual else values[int(rng.integers(len(values)))]
    return found
