"""Random problems that exist in the language alone: structure, parameters, changes, faults.

Each kind poses a problem to a court, which asks the library and the referee.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

import numpy as np

from tests.stress.courts.court import Court
from tests.stress.courts.proofs import proofs
from tests.stress.posing.changes import cvxpy_parameters, parameters
from tests.stress.posing.choices import (
    choices,
    links,
    mixtures,
    outputs,
)
from tests.stress.posing.few import few_observations
from tests.stress.posing.kinks import kinks
from tests.stress.posing.linked import linked
from tests.stress.posing.operators import faulty_operators
from tests.stress.posing.recipe import SEEDS
from tests.stress.posing.structures import (
    costs,
    extreme_scales,
    limits,
    offsets,
    paths,
    portfolios,
    symmetric_matrices,
    without_bound,
)

DECLARED_KINDS: Mapping[str, Callable[[Court], None]] = MappingProxyType(
    {
        "symmetric matrices": symmetric_matrices,
        "CVXPY parameters": cvxpy_parameters,
        "parameters": parameters,
        "offsets": offsets,
        "without bound": without_bound,
        "portfolios": portfolios,
        "paths": paths,
        "proofs": proofs,
        "extreme scales": extreme_scales,
        "faulty operators": faulty_operators,
        "time limits": limits,
        "kinks": kinks,
        "costs": costs,
        "choices": choices,
        "links": links,
        "mixtures": mixtures,
        "outputs": outputs,
        "linked": linked,
        "few observations": few_observations,
    }
)
"""The kinds, by name."""


@final
@dataclass(frozen=True, slots=True)
class DeclaredRecipe:
    """A kind of :data:`DECLARED_KINDS` and a seed; equal recipes make equal problems."""

    kind: str
    seed: int = 0

    @property
    def loss(self) -> str:
        """Return under which name problems of this kind are counted."""
        return self.kind


def pose(recipe: DeclaredRecipe, court: Court) -> None:
    """Pose the problem of a recipe."""
    with np.errstate(all="ignore"):
        DECLARED_KINDS[recipe.kind](court)


def declared_recipe(index: int, rng: np.random.Generator) -> DeclaredRecipe:
    """Return a recipe: the kinds in turn, with random seeds."""
    kinds = tuple(DECLARED_KINDS)
    return DeclaredRecipe(kinds[index % len(kinds)], int(rng.integers(SEEDS)))
