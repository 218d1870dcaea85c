"""From a recipe to arrays and to a problem in the language, posed to a court."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

import sparsemodel as sm
from sparsemodel.interfaces import FloatArray, IntArray
from sparsemodel.modelling.expressions.objective_terms import LossTerm
from tests.referee.objective import constant_of
from tests.referee.textbook_losses import Long, long, total
from tests.stress.courts.court import Court
from tests.stress.posing.recipe import Recipe
from tests.stress.posing.storage import multiplies, parts, stored

_LABELLED = frozenset({"logistic", "hinge", "smoothed_hinge", "squared_hinge"})
_CLASSES = 3
_PRICE = 0.01
_PARAMETERS: dict[str, dict[str, float]] = {
    "multinomial": {"classes": _CLASSES},
    "huber": {"delta": 0.7},
    "quantile": {"tau": 0.3},
    "expectile": {"tau": 0.3},
    "negative_binomial": {"theta": 2.0},
    "tweedie": {"power": 1.5},
    "epsilon_insensitive": {"epsilon": 0.2},
    "smoothed_hinge": {"gamma": 0.5},
}


@final
@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """One loss term: what the user hands over, and the same in extended precision."""

    matrix: Any
    target: Any
    weights: Any
    entries: Long
    targets: Long
    factors: Long
    """What each observation's loss is multiplied by, the mean included."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """A random problem: its arrays, and its constraints in numbers."""

    recipe: Recipe
    blocks: tuple[Block, ...]
    ridge: Any
    k: int
    price: float
    groups: IntArray | None
    always: int
    """How many of the first entries are not counted."""
    box: tuple[float, float]
    start: FloatArray | None
    backend: str | None

    @property
    def coordinates(self) -> int:
        """Return the number of entries (rows) of the variable."""
        return int(self.blocks[0].entries.shape[1])

    @property
    def matrix(self) -> bool:
        """Return whether the variable is a matrix."""
        return self.recipe.loss == "multinomial"

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the variable."""
        return (self.coordinates, _CLASSES) if self.matrix else (self.coordinates,)

    def arrays(self) -> list[Any]:
        """Return every array of the caller's, sparse matrices in their parts."""
        found: list[Any] = [self.start, self.groups, self.ridge]
        for block in self.blocks:
            found += [block.target, block.weights, *parts(block.matrix)]
        return [array for array in found if isinstance(array, np.ndarray)]

    def problem(self) -> tuple[sm.Problem, sm.Variable, sm.Variable | None]:
        """Return the problem in the language, its variable and its intercept."""
        recipe = self.recipe
        w = sm.Variable(self.shape, name="w")
        shape = (_CLASSES,) if self.matrix else ()
        c = sm.Variable(shape, name="c") if recipe.intercept else None
        loss = getattr(sm, f"{recipe.loss}_loss")
        objective: Any = sm.ridge(w, self.ridge)
        for block in self.blocks:
            u = block.matrix @ w if multiplies(block.matrix) else sm.as_design(block.matrix) @ w
            objective = objective + loss(
                u if c is None else u + c,
                block.target,
                weights=block.weights,
                reduction=recipe.reduction,
                **_PARAMETERS.get(recipe.loss, {}),
            )
        if self.price:
            objective = objective + self.price * self._card(w)
        return sm.Problem(sm.minimize(objective), self._constraints(w)), w, c

    def _card(self, counted: Any) -> sm.card:
        return sm.card(counted, groups=self.groups, axis=1 if counted.ndim == 2 else None)

    def _constraints(self, w: sm.Variable) -> list[Any]:
        counted: Any = w[self.always :] if self.always else w
        found: list[Any] = [] if self.price else [self._card(counted) <= self.k]
        low, high = self.box
        if np.isfinite(low):
            found.append(w >= low)
        if np.isfinite(high):
            found.append(w <= high)
        ones = np.ones((1, self.coordinates))
        extra: dict[str, Callable[[], Any]] = {
            "norm": lambda: sm.norm(w) <= 1.0,
            "sum": lambda: ones @ w == np.ones(1),
            "inequality": lambda: ones @ w <= np.full(1, 0.5),
        }
        if self.recipe.constraint in extra:
            found.append(extra[self.recipe.constraint]())
        return found

    def count(self, x: FloatArray) -> int:
        """Return the number of counted entries, rows or groups that are not zero."""
        nonzero = (x != 0.0).reshape(len(x), -1).any(axis=1)
        if self.groups is not None:
            return len(set(self.groups[nonzero].tolist()))
        return int(nonzero[self.always :].sum())

    def value(self, problem: sm.Problem, x: FloatArray, c: Any) -> Any:
        """Return the objective of the arrays, of which the language only says which loss it is."""
        loss = next(t.loss for t in problem.goal.objective.terms if isinstance(t, LossTerm))
        exact = long(x)
        with np.errstate(all="ignore"):
            squares = (exact * exact).reshape(len(x), -1).sum(axis=1)
            found = np.sum(long(self.ridge) * squares) / 2 + long(self.price) * self.count(x)
            for block in self.blocks:
                u = block.entries @ exact + long(c)
                found = found + total(loss, u, block.targets, block.factors)
            terms = [t for t in problem.goal.objective.terms if isinstance(t, LossTerm)]
            for term, block in zip(terms, self.blocks, strict=True):
                found = found + constant_of(term, long(block.targets))
        return found


def pose(recipe: Recipe, court: Court) -> None:
    """Solve and certify the problem of a recipe, from a start in some."""
    trial = make_trial(recipe)
    court.keep(trial.arrays())
    made = court.ask("declare", trial.problem)
    if made is None:
        return
    problem, w, c = made
    start: Any = None if trial.start is None else {w: trial.start}
    first = {v: np.zeros(v.shape) for v in problem.variables} | (start or {})
    if recipe.start == "again":
        if court.ask("solve", problem.solve) is None:
            return
        start, first = "value", {v: np.array(v.value) for v in problem.variables}
    if court.answers(problem, backend=trial.backend, start=start):
        shift = 0.0 if c is None else c.value
        court.same_as_declared(problem, trial.value(problem, np.array(w.value), shift))
        court.no_worse_than(problem, {id(v): value for v, value in first.items()})


# ---- making the arrays -----------------------------------------------------------------------


def make_trial(recipe: Recipe) -> Trial:
    """Return the problem of a recipe."""
    rng = np.random.default_rng(recipe.seed)
    n, p = recipe.shape
    with np.errstate(all="ignore"):
        array = _columns(recipe, rng)
        target = _target(recipe, array, rng)
        array = array * recipe.matrix_scale
        weights = _weights(recipe, n, rng)
        cuts = [slice(0, n)] if recipe.terms == 1 or n < 2 else [slice(0, n // 2), slice(n // 2, n)]
        blocks = tuple(_block(recipe, array[rows], target[rows], weights, rows) for rows in cuts)
    always = 1 if recipe.cardinality == "slice" and p > 1 else 0
    groups = np.arange(p) // 2 if recipe.cardinality == "groups" else None
    units = p - always if groups is None else int(groups[-1]) + 1
    k = {"0": 0, "1": 1, "2": 2, "half": (units + 1) // 2, "all": units}[recipe.k]
    trial = Trial(
        recipe=recipe,
        blocks=blocks,
        ridge=_ridge(recipe, p, rng),
        k=min(k, units),
        price=_PRICE if recipe.cardinality == "price" else 0.0,
        groups=groups,
        always=always,
        box={
            "nonnegative": (0.0, np.inf),
            "box": (-0.5, 0.75),
            "box away from zero": (0.25, 2.0),
            "tiny box": (-1e-12, 1e-12),
        }.get(recipe.constraint, (-np.inf, np.inf)),
        start=None,
        backend=None,
    )
    names = [info.name for info in sm.available_backends() if "precision" not in info.name]
    backend = None if recipe.backend == "chosen" else names[int(rng.integers(len(names)))]
    return replace(trial, start=_start(trial, rng), backend=backend)


def _columns(recipe: Recipe, rng: np.random.Generator) -> FloatArray:
    n, p = recipe.shape
    a = rng.standard_normal((n, p))
    kind = recipe.columns
    if kind == "duplicates":
        a[:, p // 2 :] = a[:, : p - p // 2] * rng.choice([-1.0, 1.0], size=p - p // 2)
    elif kind == "zero columns":
        a[:, ::2] = 0.0
    elif kind == "constant columns":
        a[:, ::2] = 1.0
    elif kind == "rank one":
        a = np.outer(rng.standard_normal(n), rng.standard_normal(p))
    elif kind == "all zero":
        a = np.zeros((n, p))
    elif kind == "nearly equal":
        a = a[:, :1] + 1e-9 * a
    elif kind == "small integers":
        a = np.round(2.0 * a)
    elif kind == "single entries":
        a = np.where(rng.random((n, p)) < 1.0 / max(n, 1), a, 0.0)
    elif kind == "huge offset":
        a = a + 1e8
    elif kind == "mixed scales":
        a = a * np.logspace(-8.0, 8.0, p)
    return np.asarray(a)


def _target(recipe: Recipe, array: FloatArray, rng: np.random.Generator) -> Any:
    n, p = recipe.shape
    kind, loss = recipe.target, recipe.loss
    size = np.sqrt(np.mean(np.square(array))) or 1.0
    u = array[:, :: max(1, p // 2)].sum(axis=1) / size
    noise = rng.standard_normal(n)
    u = {
        "planted": u + 0.3 * noise,
        "noise": noise,
        "constant": np.full(n, 3.0),
        "zero": np.zeros(n),
        "exact": u,
        "outlier": np.where(np.arange(n) == n - 1, 1e6, noise),
        "huge offset": noise + 1e10,
    }[kind]
    if loss in _LABELLED:
        return np.where(u > 0.0, 1.0, -1.0) if kind != "noise" else _both_signs(noise)
    if loss == "multinomial":
        return np.clip(np.round(np.abs(u)), 0, _CLASSES - 1).astype(np.intp)
    if loss in ("poisson", "negative_binomial"):
        return np.floor(np.minimum(np.abs(u), 1e6))
    if loss == "cox":
        time = np.abs(u) if kind != "planted" else np.round(4.0 * np.abs(u))
        event = rng.random(n) < (0.0 if kind == "zero" else 0.6)
        if kind == "planted" and rng.random() < 0.5:
            # Observations enter late: start, stop, event and stratum.
            start = np.floor(rng.random(n) * time)
            return np.column_stack([start, time + 1.0, event, np.zeros(n)])
        return np.column_stack([time, event])
    scaled = u * recipe.target_scale
    if loss == "tweedie":
        return np.maximum(scaled, 0.0)
    return np.abs(scaled) if loss == "gamma" else scaled


def _both_signs(noise: FloatArray) -> FloatArray:
    labels = np.where(noise > 0.0, 1.0, -1.0)
    labels[:2] = [1.0, -1.0][: len(labels[:2])]
    return labels


def _weights(recipe: Recipe, n: int, rng: np.random.Generator) -> Any:
    drawn = rng.uniform(0.2, 3.0, n)
    return {
        "none": None,
        "random": drawn,
        "some zero": np.where(np.arange(n) % 3 == 1, 0.0, drawn),
        "extreme": np.where(np.arange(n) % 2 == 0, drawn * 1e12, drawn * 1e-12),
        "integers": np.ceil(drawn).astype(np.int32),
    }[recipe.weights]


def _ridge(recipe: Recipe, p: int, rng: np.random.Generator) -> Any:
    if recipe.ridge_shape == "same":
        return recipe.ridge
    each = recipe.ridge * rng.uniform(0.5, 2.0, p)
    if recipe.ridge_shape == "some zero":
        each[::2] = 0.0
    return each


def _start(trial: Trial, rng: np.random.Generator) -> FloatArray | None:
    if trial.recipe.start in ("none", "again"):
        return None
    x = rng.standard_normal(trial.shape) * (1e6 if trial.recipe.start == "huge" else 1.0)
    order = rng.permutation(trial.coordinates)
    low, high = trial.box
    x = np.clip(x, low, high)
    for j in order:
        if trial.price or trial.count(x) <= trial.k:
            break
        if j >= trial.always:
            x[j] = 0.0
    return np.asarray(x)


def _block(recipe: Recipe, array: FloatArray, target: Any, weights: Any, rows: slice) -> Block:
    matrix, entries = stored(recipe.storage, array)
    some = None if weights is None else weights[rows]
    count = len(target)
    factors = long(np.ones(count) if some is None else some)
    if recipe.reduction == "mean":
        factors = factors / count
    return Block(matrix, target, some, entries, long(target), factors)
