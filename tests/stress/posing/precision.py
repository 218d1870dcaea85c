"""Random precision-matrix problems, posed to a court."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import Any, final

import numpy as np

import sparsemodel as sm
from sparsemodel.interfaces import FloatArray
from tests.referee.objective import cholesky
from tests.referee.textbook_losses import long
from tests.stress.courts.court import Court
from tests.stress.posing.recipe import SEEDS, Printed, drawn

_SECONDS = 0.5
"""Limit of a solve and of a certificate: branching could go on for minutes."""

PRECISION_CHOICES: MappingProxyType[str, tuple[Any, ...]] = MappingProxyType(
    {
        "order": (4, 1, 2, 3, 5, 6),
        "samples": (40, 1, 2, 3, 6),
        "covariance": (
            "gaussian",
            "duplicates",
            "zero variance",
            "identity",
            "rank one",
            "nearly singular",
            "mixed scales",
            "all zero",
        ),
        "scale": (1.0, 1e-6, 1e6, 1e-60, 1e60, 1e-150, 1e150),
        "given": ("covariance", "data", "shrunk", "in parts"),
        "k": ("2", "0", "1", "all"),
        "bounds": ("none", "lower", "both", "equal", "narrow", "far below", "far above"),
        "edges": ("none", "required", "forbidden", "both"),
        "backend": ("chosen", "precision_grahtp", "precision_grasp", "precision_fbs"),
        "seed": (0,),
    }
)
"""The choices a :class:`PrecisionRecipe` has, the harmless one first."""


@final
@dataclass(frozen=True, slots=True)
class PrecisionRecipe(Printed):
    """The choices behind a random precision-matrix problem, all of :data:`PRECISION_CHOICES`."""

    order: int = 4
    samples: int = 40
    covariance: str = "gaussian"
    scale: float = 1.0
    given: str = "covariance"
    k: str = "2"
    bounds: str = "none"
    edges: str = "none"
    backend: str = "chosen"
    seed: int = 0

    @property
    def loss(self) -> str:
        """Return under which name problems of this kind are counted."""
        return "precision matrix"


def random_precision_recipe(rng: np.random.Generator) -> PrecisionRecipe:
    """Return a random recipe: the order evenly, the rest harmless two times out of three."""
    chosen = drawn(rng, PRECISION_CHOICES, ("order",))
    return PrecisionRecipe(**(chosen | {"seed": int(rng.integers(SEEDS))}))


@final
@dataclass(frozen=True, slots=True, eq=False)
class PrecisionTrial:
    """A random precision-matrix problem: its arrays, and its constraints in numbers."""

    recipe: PrecisionRecipe
    data: FloatArray
    covariance: FloatArray
    effective: FloatArray
    """The matrix of the objective, shrunk where the recipe says so."""
    k: int
    low: float | None
    high: float | None
    required: tuple[tuple[int, int], ...]
    forbidden: tuple[tuple[int, int], ...]

    def arrays(self) -> list[FloatArray]:
        """Return every array of the caller's."""
        return [self.data, self.covariance]

    def problem(self) -> tuple[sm.Problem, sm.Variable]:
        """Return the problem in the language, and its variable."""
        p, given = self.recipe.order, self.recipe.given
        omega = sm.Variable((p, p), symmetric=True, name="Omega")
        objective: Any
        if given == "data":
            objective = sm.gaussian_nll(omega, data=self.data)
        elif given == "in parts":
            objective = -sm.log_det(omega) + sm.trace(self.covariance @ omega)
        else:
            shrinkage = _SHRINKAGE if given == "shrunk" else 0.0
            objective = sm.gaussian_nll(omega, self.covariance, shrinkage=shrinkage)
        constraints: list[Any] = [sm.card(sm.offdiag(omega)) <= 2 * self.k]
        if self.low is not None:
            constraints.append(omega >> self.low)
        if self.high is not None:
            constraints.append(omega << self.high)
        if self.required:
            constraints.append(sm.required_edges(omega, list(self.required)))
        if self.forbidden:
            constraints.append(sm.forbidden_edges(omega, list(self.forbidden)))
        return sm.Problem(sm.minimize(objective), constraints), omega

    def value(self, matrix: FloatArray) -> Any:
        """Return the objective of the arrays at a matrix, in extended precision."""
        factor = cholesky(long(matrix))
        if factor is None:
            return long(np.inf)
        return np.sum(long(self.effective) * long(matrix)) - 2 * np.sum(np.log(np.diag(factor)))


def pose(recipe: PrecisionRecipe, court: Court) -> None:
    """Solve and certify the problem of a recipe."""
    trial = make_precision_trial(recipe)
    court.keep(trial.arrays())
    made = court.ask("declare", trial.problem)
    if made is None:
        return
    problem, omega = made
    backend = None if recipe.backend == "chosen" else recipe.backend
    if court.answers(problem, backend=backend, time_limit=_SECONDS):
        court.same_as_declared(problem, trial.value(omega.value))


_SHRINKAGE = 0.25


def make_precision_trial(recipe: PrecisionRecipe) -> PrecisionTrial:
    """Return the problem of a recipe."""
    rng = np.random.default_rng(recipe.seed)
    p = recipe.order
    with np.errstate(all="ignore"):
        data = _data(recipe, rng) * np.sqrt(recipe.scale)
        centred = data - data.mean(axis=0)
        covariance = centred.T @ centred / len(data)
        covariance = (covariance + covariance.T) / 2.0
        size = float(np.trace(covariance)) / p
    typical = 1.0 / size if size > 0.0 and np.isfinite(size) else 1.0
    effective = covariance
    if recipe.given == "shrunk":
        effective = (1.0 - _SHRINKAGE) * covariance + _SHRINKAGE * np.diag(np.diag(covariance))
    low, high = {
        "none": (None, None),
        "lower": (0.3 * typical, None),
        "both": (0.3 * typical, 3.0 * typical),
        "equal": (typical, typical),
        "narrow": (typical, typical * (1.0 + 1e-12)),
        "far below": (None, 1e-12 * typical),
        "far above": (1e12 * typical, None),
    }[recipe.bounds]
    pairs = list(combinations(range(p), 2))
    drawn = [pairs[i] for i in rng.permutation(len(pairs)).tolist()]
    required = drawn[:1] if recipe.edges in ("required", "both") else []
    forbidden = drawn[1:3] if recipe.edges in ("forbidden", "both") else []
    units = len(pairs) - len(required) - len(forbidden)
    k = {"0": 0, "1": 1, "2": 2, "all": units}[recipe.k]
    return PrecisionTrial(
        recipe, data, covariance, effective, min(k, units), low, high, (*required,), (*forbidden,)
    )


def _data(recipe: PrecisionRecipe, rng: np.random.Generator) -> FloatArray:
    n, p, kind = recipe.samples, recipe.order, recipe.covariance
    x = rng.standard_normal((n, p)) @ (np.eye(p) + 0.4 * rng.standard_normal((p, p)))
    if kind == "duplicates":
        x[:, p // 2 :] = x[:, : p - p // 2]
    elif kind == "zero variance":
        x[:, 0] = 1.0
    elif kind == "identity":
        x = np.concatenate([np.eye(p), -np.eye(p)]) * np.sqrt(p)
    elif kind == "rank one":
        x = np.outer(rng.standard_normal(n), rng.standard_normal(p))
    elif kind == "nearly singular":
        x = x[:, :1] + 1e-6 * x
    elif kind == "mixed scales":
        x = x * np.logspace(-4.0, 4.0, p)
    elif kind == "all zero":
        x = np.zeros((n, p))
    return np.asarray(x)
