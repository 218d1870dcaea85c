"""An estimator's problem in the language."""

from __future__ import annotations

from functools import cached_property
from typing import Any, cast

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils import check_random_state

from sparsemodel.compiler.canonical.layout import Layout
from sparsemodel.compiler.choice.effort import checked_effort
from sparsemodel.designs import as_design
from sparsemodel.designs.tables.labels import check_names, labels_of
from sparsemodel.interfaces import FloatArray, IntArray, SparseRegression
from sparsemodel.interfaces.errors import closest
from sparsemodel.interfaces.numeric import described, whole_number
from sparsemodel.modelling import (
    Parameter,
    Path,
    Problem,
    Variable,
    card,
    minimize,
)
from sparsemodel.modelling.expressions.values import group_codes
from sparsemodel.modelling.loss_terms import loss_term, ridge
from sparsemodel.modelling.loss_terms.squared_scales import squared_scales, target_scale
from sparsemodel.modelling.loss_terms.terms import ridge_weight
from sparsemodel.selection.parts import Parts, parts_of


class Declared:
    """The estimator's problem for one set of data, any ``k`` and any ridge."""

    def __init__(
        self, model: Any, X: Any, target: FloatArray, weights: FloatArray, outputs: int
    ) -> None:
        p = X.shape[1]
        names = getattr(model, "feature_names_in_", None)
        shape: Any = p if outputs == 1 else (p, outputs)
        self._model, self._X, self._target = model, X, target
        self._intercept = bool(getattr(model, "fit_intercept", False))
        self._k = Parameter(integer=True, nonneg=True, name="k")
        self._ridge = Parameter(nonneg=True, name="ridge")
        self._w = Variable(shape, name="coef", names=names)
        self._c = Variable(() if outputs == 1 else outputs, name="intercept")
        prediction: Any = as_design(X, where="X") @ self._w
        if self._intercept:
            prediction = prediction + self._c
        loss: Any = loss_term(model._loss(), prediction, target, weights=weights, reduction="sum")
        self._scales = scales = self._ridge_scales(X, target, weights)
        counted = _counted(model.always, p, names)
        labels = model.groups
        if labels is not None:
            check_names(labels_of(labels), self._w.names, "groups", "values[list(X.columns)]")
            labels = group_codes(labels, (p,), whole=False)
        rows = 1 if self._w.ndim == 2 else None
        among: Any = self._w
        if counted.size < p:
            among, labels = self._w[counted], None if labels is None else labels[counted]
        self.units = counted.size if labels is None else len(np.unique(labels))
        self._constraints = [
            card(among, groups=labels, axis=rows) <= self._k,
            *_within(self._w, model, counted),
        ]
        self._goal = minimize(loss + ridge(self._w, self._ridge * scales))

    def _ridge_scales(self, X: Any, target: FloatArray, weights: FloatArray) -> Any:
        """Return what the ridge of each feature is multiplied by, from some samples alone."""
        if self._model.plain_ridge:
            return 1.0
        scales = squared_scales(X, centred=self._intercept, weights=weights)
        scales *= target_scale(self._model._loss(), target, weights, centred=self._intercept)
        return scales

    @cached_property
    def problem(self) -> Problem:
        """Return the problem, which is compiled for ``k`` and the ridge when it is first used."""
        return Problem(self._goal, self._constraints)

    def solve(
        self, k: Any, lam: Any, *, seed: int, start: tuple[FloatArray, Any] | None = None
    ) -> Any:
        """Solve for ``k`` and the ridge ``lam``, from coefficients and an intercept if given."""
        # More than there are features is no constraint, which is what a grid of k would mean.
        self._k.value = min(whole_number(k, where="k", minimum=0), self.units)
        self._ridge.value = ridge_weight(lam)
        model = self._model
        return self.problem.solve(
            model.backend,
            start=None if start is None else self._start(*start),
            effort=checked_effort(model.effort),
            seed=seed,
            time_limit=model.time_limit,
            verbose=bool(model.verbose),
        )

    def path(self, ks: IntArray, ridges: FloatArray) -> Path:
        """Return the solutions for all ``ks`` there are and all ``ridges``."""
        self._ridge.value = 1.0
        model = self._model
        return self.problem.path(
            self._k,
            np.unique(np.minimum(ks, self.units)),
            ridges=ridges,
            effort=checked_effort(model.effort),
            backend=model.backend,
            time_limit=model.time_limit,
        )

    @property
    def _compiled(self) -> tuple[SparseRegression, Layout]:
        """Return the problem's form and where its variables stand."""
        compiled = self.problem._compiled()
        return cast("SparseRegression", compiled.form), cast("Layout", compiled.layout)

    @cached_property
    def _parts(self) -> Parts | None:
        """Return the problem on parts of its samples, where sweeps along k know it."""
        self._k.value, self._ridge.value = self.units, 1.0
        form, layout = self._compiled
        if self._model.backend is not None or layout.changes or len(form.terms) != 1:
            return None
        if form.terms[0].weights.size != self._target.shape[0]:
            return None
        return parts_of(form)

    def fold(self, rows: IntArray, weights: FloatArray) -> Fold | None:
        """Return the problem on some of its samples, everything estimated from them.

        None where each ``k`` has to be searched on its own.

        Parameters
        ----------
        weights
            Of these samples, adding up to one.
        """
        if self._parts is None:
            return None
        form, layout = self._compiled
        own = layout.rows(self._variable(layout, self._w))
        ridge = form.ridge.copy()
        here = self._ridge_scales(self._X[rows], self._target[rows], weights)
        ridge[own] *= here / self._scales
        c = np.zeros(form.terms[0].weights.shape)
        c[rows] = weights
        free = layout.rows(self._variable(layout, self._c)) if self._intercept else None
        return Fold(self._parts, [c], ridge, own, free, self.units)

    @staticmethod
    def _variable(layout: Any, variable: Variable) -> int:
        """Return the place of a variable among those of the problem."""
        return [spec.label for spec in layout.variables].index(variable.name)

    def coefficients_at(self, path: Path, k: int, ridge: float) -> tuple[FloatArray, Any]:
        """Return the coefficients of a point of a path, with as many features as there are."""
        reached = path.k[path.k <= min(k, self.units)]  # time may have ended it before
        values = path.at(int(reached[-1] if reached.size else path.k[0]), ridge).values
        return self._shaped(values["coef"], values.get("intercept"))

    def _start(self, coef: FloatArray, intercept: Any) -> dict[Variable, Any]:
        start: dict[Variable, Any] = {self._w: coef.T}
        return start | {self._c: intercept} if self._intercept else start

    def coefficients(self) -> tuple[FloatArray, Any]:
        """Return ``(coef, intercept)``, with one row per output where there are several."""
        return self._shaped(self._w.value, self._c.value)

    def _shaped(self, coef: FloatArray, intercept: Any) -> tuple[FloatArray, Any]:
        coef = np.ascontiguousarray(coef.T)
        if self._intercept:
            return coef, intercept
        return coef, 0.0 if coef.ndim == 1 else np.zeros(coef.shape[0])


class Fold:
    """The paths of one part of the samples, each followed as far as it was asked for."""

    def __init__(
        self,
        parts: Parts,
        weights: list[FloatArray],
        ridge: FloatArray,
        own: IntArray,
        free: IntArray | None,
        units: int,
    ) -> None:
        self._parts, self._weights, self._ridge = parts, weights, ridge
        self._own, self._free, self._units = own, free, units
        self._known: dict[float, FloatArray] = {}

    def follow(self, largest: int, ridges: FloatArray) -> None:
        """Have the paths ready up to a size, from each of the ridges."""
        largest = min(largest, self._units)
        for lam in ridges.tolist():
            if lam not in self._known or len(self._known[lam]) <= largest:
                self._known[lam] = self._parts.along_k(self._weights, lam * self._ridge, largest)

    def coefficients(self, k: int, ridge: float) -> tuple[FloatArray, Any]:
        """Return ``(coef, intercept)``, with one row an output where there are several."""
        x = self._known[ridge][min(k, self._units)]
        coef = np.ascontiguousarray(x[self._own].T)
        if self._free is None:
            return coef, 0.0 if coef.ndim == 1 else np.zeros(coef.shape[0])
        level = x[self._free[0]]
        return coef, float(level) if coef.ndim == 1 else level


def _counted(always: Any, p: int, names: Any) -> IntArray:
    """Return the numbers of the features that are not always in the model."""
    chosen = np.asarray([] if always is None else always)
    if chosen.dtype.kind in "OU":
        known = [] if names is None else list(names)
        unknown = [name for name in chosen.ravel().tolist() if name not in known]
        if unknown:
            close = closest(str(unknown[0]), known)
            hint = "X has no names, so pass numbers" if names is None else f"is {close!r} meant?"
            raise ValueError(
                f"always names {unknown[0]!r}, which is not among the features"
                + (f"; {hint}" if close or names is None else ".")
            )
        chosen = np.array([known.index(name) for name in chosen.ravel().tolist()], dtype=np.intp)
    mask = chosen.dtype.kind == "b"
    whole = chosen.size == 0 or mask or chosen.dtype.kind in "iu"
    if chosen.ndim != 1 or not whole or (mask and chosen.size != p):
        raise ValueError(
            f"always must hold names or numbers of features, or {p} truth values, not "
            f"{described(always)}."
        )
    if not mask and np.any((chosen < -p) | (chosen >= p)):
        wrong = chosen[(chosen < -p) | (chosen >= p)][0]
        raise ValueError(f"always must number features 0 to {p - 1}, not {wrong}.")
    left = np.delete(np.arange(p), chosen if mask else chosen.astype(np.intp))
    if not left.size:
        raise ValueError("always holds every feature; nothing is left to choose from.")
    return left


def _within(w: Variable, model: Any, counted: IntArray) -> list[Any]:
    """Return the bounds on the coefficients."""
    pair = (None, None) if model.bounds is None else model.bounds
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise ValueError(
            "bounds must be a pair (lower, upper) of numbers, or of one number for each feature: "
            f"`([0, -1], [1, 1])` for [(0, 1), (-1, 1)]; not a {type(model.bounds).__name__} of "
            f"{len(model.bounds) if hasattr(model.bounds, '__len__') else 1}."
        )
    for end in pair:
        check_names(labels_of(end), w.names, "A bound", "values[list(X.columns)]")
    lower, upper = (None if end is None else np.asarray(end, dtype=np.float64) for end in pair)
    for end, wrong in ((lower, np.greater), (upper, np.less)):
        away = (
            np.zeros(0) if end is None else wrong(np.broadcast_to(end, w.shape[:1]), 0.0)[counted]
        )
        if away.any():
            raise ValueError(
                "bounds must have zero within for every feature that may be left out, and those of "
                f"feature {counted[int(np.argmax(away))]} have not. What must be in is listed in "
                "always; coefficients of zero or at least 0.1 are sm.semicontinuous(w, 0.1), in a "
                "sm.Problem."
            )
    if w.ndim == 2:  # a column for each output, all with the same bounds
        lower, upper = (
            end if end is None or end.ndim != 1 else np.repeat(end[:, None], w.shape[1], axis=1)
            for end in (lower, upper)
        )
    kept: list[Any] = [w >= 0.0] if model.positive else []
    if lower is not None:
        kept.append(w >= lower)
    if upper is not None:
        kept.append(w <= upper)
    return kept


def seed_of(random_state: Any) -> int:
    """Return a seed from what scikit-learn calls a random state; None is a fixed one."""
    if random_state is None:
        return 0
    return int(check_random_state(random_state).randint(2**31 - 1))


def a_number(cv: Any) -> bool:
    """Return whether a number of folds is given, or none."""
    return cv is None or isinstance(cv, (int, np.integer))


def splitter(cv: Any, seed: int, *, classes: bool = False) -> Any:
    """Return what splits samples into folds; a number, or None for five, are shuffled ones."""
    if not a_number(cv):
        return check_cv(cv)
    cls = StratifiedKFold if classes else KFold
    return cls(5 if cv is None else int(cv), shuffle=True, random_state=seed)


def candidates_of(name: str, given: Any, grid: Any) -> IntArray:
    """Return the candidates of a parameter, increasing; ``grid`` where none are given."""
    candidates = np.atleast_1d(np.asarray(grid if given is None else given))
    if candidates.ndim != 1 or candidates.dtype.kind not in "iu" or candidates.size == 0:
        raise ValueError(f"{name} must be whole numbers, for example range(21), not {given!r}.")
    if candidates.min() < 0:
        raise ValueError(f"{name} must not be negative, and the smallest is {candidates.min()}.")
    return np.unique(candidates)


def predict_linear(X: Any, coef: FloatArray, intercept: Any) -> FloatArray:
    """Return ``X @ coef.T + intercept``, at the cost of the columns with a coefficient."""
    rows = np.atleast_2d(coef)
    support = np.flatnonzero((rows != 0.0).any(axis=0))
    if 2 * support.size < rows.shape[1]:
        X, rows = X[:, support], rows[:, support]
    z = np.asarray(X @ rows.T.astype(np.float64)) + intercept
    return np.asarray(z[:, 0] if coef.ndim == 1 or coef.shape[0] == 1 else z, dtype=np.float64)
