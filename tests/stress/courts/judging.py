"""Solve one random problem and say what is wrong with what came back."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np

from tests.stress.courts.court import Court, plain
from tests.stress.posing import build, declared, precision
from tests.stress.posing.declared import DeclaredRecipe
from tests.stress.posing.precision import PrecisionRecipe
from tests.stress.posing.recipe import Recipe

AnyRecipe: TypeAlias = Recipe | PrecisionRecipe | DeclaredRecipe

_POSE: dict[type, Callable[[Any, Court], None]] = {
    Recipe: build.pose,
    PrecisionRecipe: precision.pose,
    DeclaredRecipe: declared.pose,
}


@final
@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a problem."""

    recipe: AnyRecipe
    outcome: str
    """``"solved"``, ``"refused"``, or ``"crashed"``."""
    reason: str = ""
    """The error of a refusal or a crash, its numbers left out."""
    faults: tuple[str, ...] = ()
    """What must not happen and did; empty for a sound run."""
    seconds: float = 0.0
    bounded: bool = False
    """Whether a finite bound was checked."""
    judged: int = 0
    """Answers that the referee judged."""
    compared: int = 0
    """Of those: answers that were compared with points which the referee found itself."""
    worse: tuple[float, ...] = ()
    """Of those: by which share of its objective a better point is known."""


def judge(recipe: AnyRecipe) -> Verdict:
    """Solve and certify the problem of a recipe, and check everything that is promised.

    Either answers that the referee lets stand, a solution that is no worse than its start and a
    certificate that survives its own verification; or an error of the library. In either case no
    warning, no changed array, no changed state of NumPy.
    """
    state, random = np.geterr(), _random_state()
    court = Court(np.random.default_rng(recipe.seed))
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _POSE[type(recipe)](recipe, court)
    court.close()
    faults = [*court.faults, *sorted({_told(w) for w in caught})]
    if np.geterr() != state or _random_state() != random:
        faults.append("changed a state of NumPy")
    judged = sum(court.judged.values())
    crashed = any(fault.startswith("crash") for fault in faults)
    return Verdict(
        recipe,
        "crashed" if crashed else "solved" if judged else "refused",
        court.refusals[0] if court.refusals and not judged else "",
        tuple(faults),
        time.perf_counter() - began,
        court.bounded,
        judged,
        court.compared,
        tuple(court.worse),
    )


def _random_state() -> tuple[Any, ...]:
    kind, keys, *rest = np.random.get_state()  # noqa: NPY002
    return (kind, np.asarray(keys).tobytes(), *rest)


def _told(warning: warnings.WarningMessage) -> str:
    where = f"{warning.filename.rpartition('/')[2]}:{warning.lineno}"
    return f"warning: {warning.category.__name__}: {plain(str(warning.message))} [{where}]"
