"""Random precision-matrix problems, and what a sound answer to one of them is."""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import combinations
from types import MappingProxyType
from typing import Any, final

import numpy as np

import sparsemodel as sm
from sparsemodel.certificates import PrecisionCertificate, verify
from sparsemodel.interfaces import FloatArray
from sparsemodel.testing.referee.feasible_matrices import inside, newton
from sparsemodel.testing.referee.objective import cholesky
from sparsemodel.testing.referee.textbook_losses import long
from sparsemodel.testing.stress.courts.court import referee_faults
from sparsemodel.testing.stress.posing.recipe import SEEDS

_SECONDS = 0.5
"""Limit of a solve and of a certificate: branching could go on for minutes."""
_SUPPORTS = 30
_EPS = np.finfo(np.longdouble).eps

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
class PrecisionRecipe:
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

    def __str__(self) -> str:
        changed = [
            f"{f.name}={getattr(self, f.name)!r}"
            for f in fields(self)
            if getattr(self, f.name) != f.default
        ]
        return f"PrecisionRecipe({', '.join(changed)})"


def random_precision_recipe(rng: np.random.Generator, usual: float) -> PrecisionRecipe:
    """Return a random recipe; a choice is the harmless one with probability ``usual`` or more."""
    chosen: dict[str, Any] = {}
    for name, choices in PRECISION_CHOICES.items():
        harmless = name != "order" and rng.random() < usual
        chosen[name] = choices[0] if harmless else choices[int(rng.integers(len(choices)))]
    return PrecisionRecipe(**(chosen | {"seed": int(rng.integers(SEEDS))}))


@final
@dataclass(frozen=True, slots=True, eq=False)
class PrecisionRun:
    """What the library returned."""

    matrix: FloatArray
    low: float
    high: float
    """The eigenvalue bounds in force: a problem without them gets some, which it names."""
    solution: sm.Solution
    certificate: Any


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

    def run(self, faults: list[str]) -> PrecisionRun:
        """Solve and certify with the library."""
        problem, omega = self.problem()
        backend = None if self.recipe.backend == "chosen" else self.recipe.backend
        solution = problem.solve(backend, time_limit=_SECONDS)
        certificate: Any = problem.certify(time_limit=_SECONDS)
        faults += referee_faults(problem, solution, certificate)
        if not (str(solution) and repr(solution) and str(certificate)):
            faults.append("cannot be printed")
        try:
            verify(PrecisionCertificate.from_json(certificate.to_json()), problem.form)
        except sm.CertificateError as error:
            faults.append(f"its own certificate does not verify: {error}")
        form: Any = problem.form
        matrix = np.array(omega.value, dtype=np.float64)
        return PrecisionRun(matrix, form.alpha, form.beta, solution, certificate)

    def check(self, run: PrecisionRun, faults: list[str]) -> tuple[bool, int]:
        """Find what is wrong; return whether there was a bound, and how many points it met."""
        matrix, solution, certificate = run.matrix, run.solution, run.certificate
        if broken := self._violation(run):
            faults.append(f"infeasible: {broken}")
            return False, 0
        value, error = self.value(matrix)
        size = 1e-8 * float(np.sum(np.abs(self.effective * matrix)) + len(matrix)) + 2**14 * error
        if not abs(float(value) - solution.value) <= size + 1e-8 * abs(float(value)):
            faults.append(f"wrong value: says {solution.value!r}, it is {float(value)!r}")
        if value - error > certificate.upper:
            faults.append(f"invalid upper: {certificate.upper!r}, it is {float(value)!r}")
        bounds = {"solution.bound": solution.bound, "certificate.bound": certificate.bound}
        if any(not bound < np.inf for bound in bounds.values()):
            faults.append(f"invalid bound: {bounds}")
        finite = {name: bound for name, bound in bounds.items() if np.isfinite(bound)}
        compared = 0
        for point in [matrix, *(self._witnesses(run) if finite else ())]:
            lowest, margin = self.value(point)
            if not np.isfinite(lowest):
                continue
            compared += 1
            for name, bound in finite.items():
                if np.longdouble(bound) > lowest + margin:
                    faults.append(
                        f"invalid bound: {name} = {bound!r} and a feasible point has "
                        f"{float(lowest)!r} (+- {float(margin):.1g})"
                    )
                    return True, compared
        return bool(finite), compared

    def value(self, matrix: FloatArray) -> tuple[Any, Any]:
        """Return the exact objective at a matrix up to an error, and the error."""
        factor = cholesky(long(matrix))
        if factor is None:
            return long(np.inf), long(0.0)
        logs = np.log(np.diag(factor))
        products = long(self.effective) * long(matrix)
        eigenvalues = np.linalg.eigvalsh(matrix)
        condition = abs(float(eigenvalues[-1])) / max(abs(float(eigenvalues[0])), 1e-300)
        p = len(matrix)
        error = (np.sum(np.abs(products)) + 2 * np.sum(np.abs(logs)) + p * p * condition) * _EPS
        if self.recipe.given in ("data", "shrunk"):  # what the library computes in float64
            error += 2.0**-48 * np.sum(np.abs(products))
        return np.sum(products) - 2 * np.sum(logs), 64 * error

    def _violation(self, run: PrecisionRun) -> str:
        matrix = run.matrix
        if not np.all(np.isfinite(matrix)):
            return "not finite"
        if not np.array_equal(matrix, matrix.T):
            return "not symmetric"
        edges = {(int(i), int(j)) for i, j in np.argwhere(np.triu(matrix, 1) != 0.0)}
        if len(edges - set(self.required)) > self.k:
            return f"{len(edges)} edges"
        if edges & set(self.forbidden):
            return "a forbidden edge"
        least, largest = np.linalg.eigvalsh(matrix)[[0, -1]]
        slack = 1e-9 * largest
        if least < run.low * (1.0 - 1e-9) - slack or largest > run.high * (1.0 + 1e-9):
            return f"eigenvalues {least!r} to {largest!r}, not in [{run.low!r}, {run.high!r}]"
        return ""

    def _witnesses(self, run: PrecisionRun) -> list[FloatArray]:
        """Return feasible matrices, among them good ones of every support."""
        p = self.recipe.order
        allowed = [
            pair
            for pair in combinations(range(p), 2)
            if pair not in self.forbidden and pair not in self.required
        ]
        rng = np.random.default_rng(self.recipe.seed)
        every = list(combinations(allowed, min(self.k, len(allowed))))
        found = []
        for i in rng.permutation(len(every))[:_SUPPORTS].tolist():
            mask = np.eye(p, dtype=bool)
            for a, b in (*every[i], *self.required):
                mask[a, b] = mask[b, a] = True
            with np.errstate(all="ignore"):
                matrix = inside(newton(self.effective, mask), run.low, run.high)
            if matrix is not None:
                found.append(matrix)
        return found


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
