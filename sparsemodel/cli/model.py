"""From a table and the model options to a problem of the language."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sparsemodel.cli.exits import UsageError
from sparsemodel.cli.options import LOSSES
from sparsemodel.cli.plain import distinct
from sparsemodel.cli.reading import Table
from sparsemodel.designs import as_design
from sparsemodel.interfaces import DataError, DataFit
from sparsemodel.modelling import Problem, Variable, card, loss_term, minimize, ridge

_TWO_CLASSES = frozenset({"logistic", "hinge", "smoothed-hinge", "squared-hinge"})


@final
@dataclass(frozen=True, slots=True, eq=False)
class Declared:
    """A problem with what its parts are called."""

    problem: Problem
    names: tuple[str, ...]
    """One name per feature."""
    classes: tuple[str, ...]
    """Of a classification, in the order of their codes; the last of two is the modelled one."""


def declare(table: Table, arguments: argparse.Namespace, k: int) -> Declared:
    """Return the problem that the options describe."""
    if table.target is None:
        raise UsageError("Name the column to predict with --target.")
    p = table.X.shape[1]
    names = table.names or tuple(f"column_{j}" for j in range(1, p + 1))
    target, classes = _target(table.target, arguments.loss)
    loss = _loss(arguments)
    several = arguments.loss == "multinomial"
    shown = distinct(names)
    w = Variable((p, len(classes)) if several else p, name="w", names=shown)
    prediction: Any = as_design(table.X, where="The features") @ w
    if not arguments.no_intercept:
        intercept = Variable(len(classes) if several else (), name="intercept")
        prediction = prediction + intercept
    objective: Any = loss_term(loss, prediction, target, weights=table.weights)
    if arguments.ridge > 0.0:
        scales = 1.0 if arguments.plain_ridge else _squared_scales(table.X, arguments)
        objective = objective + ridge(w, arguments.ridge * scales)
    constraints: list[Any] = [_cardinality(w, names, arguments, k)]
    if arguments.lower is not None:
        constraints.append(w >= arguments.lower)
    if arguments.upper is not None:
        constraints.append(w <= arguments.upper)
    return Declared(Problem(minimize(objective), constraints), shown, classes)


def _loss(arguments: argparse.Namespace) -> DataFit:
    from sparsemodel import losses

    options: dict[str, float] = {}
    for option, loss in (("tau", "quantile"), ("delta", "huber")):
        value = getattr(arguments, option)
        if value is not None and arguments.loss != loss:
            raise UsageError(f"--{option} belongs to --loss {loss}.")
        if value is not None:
            options[option] = value
    made: DataFit = getattr(losses, LOSSES[arguments.loss])(**options)
    return made


def _target(target: Any, loss: str) -> tuple[Any, tuple[str, ...]]:
    """Return the target, recoded for classifications, and the names of the classes."""
    text = target.dtype.kind not in "biuf"
    if loss not in _TWO_CLASSES and loss != "multinomial":
        if text:
            raise DataError(
                f"The target is text ({_some(target)}), and --loss {loss} needs numbers. "
                "For classes use --loss logistic or --loss multinomial."
            )
        return target, ()
    if not text and not np.isfinite(target).all():
        raise DataError("The target holds NaN or infinite values; drop or impute them.")
    values, codes = np.unique(target, return_inverse=True)
    classes = distinct([str(v) if text else f"{v:g}" for v in values])
    if len(classes) < 2:
        raise DataError(f"All targets are {classes[0]!r}; a classification needs two classes.")
    if loss in _TWO_CLASSES and len(classes) > 2:
        raise DataError(
            f"The target has {len(classes)} different values ({_some(values)}), and --loss {loss} "
            "is for two classes; use --loss multinomial, or --loss squared for numbers."
        )
    if loss == "multinomial" and len(classes) > max(20, target.size // 2):
        raise DataError(
            f"The target has {len(classes)} different values, which are hardly classes; for "
            "numbers use --loss squared."
        )
    return codes.astype(np.float64), classes


def _some(values: Any) -> str:
    shown = [str(v) for v in values[:4]]
    return ", ".join(shown) + (", ..." if len(values) > 4 else "")


def _squared_scales(X: Any, arguments: argparse.Namespace) -> Any:
    """Return the columns' variances (mean squares without an intercept) to three digits."""
    if isinstance(X, np.ndarray):
        mean = X.mean(axis=0, dtype=np.float64)
        squares = np.einsum("ij,ij->j", X, X, dtype=np.float64) / X.shape[0]
    else:
        mean = np.asarray(X.mean(axis=0)).ravel()
        squares = np.asarray(X.multiply(X).mean(axis=0)).ravel()
    if arguments.no_intercept:
        scales = squares
    else:
        scales = squares - np.square(mean)
        if isinstance(X, np.ndarray) and np.any(scales < 1e-6 * squares):  # cancellation
            scales = X.var(axis=0, dtype=np.float64)
    return _same_everywhere(np.where(scales > 1e-14 * squares, scales, 1.0))  # constants keep 1


def _same_everywhere(values: Any) -> Any:
    """Return positive numbers to three digits, the same on machines that round sums otherwise.

    A certificate is about one ridge, bit by bit. Rounding up from an odd share of a step leaves
    no value that real data would hit exactly between two results.
    """
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.floor(mantissa * 2048.0 + 0.4142135623730951), exponent - 11)


def _cardinality(w: Variable, names: tuple[str, ...], arguments: argparse.Namespace, k: int) -> Any:
    counted: Any = w
    kept = np.arange(len(names))
    if arguments.always:
        unknown = [name for name in arguments.always if name not in names]
        if unknown:
            raise UsageError(f"--always names {unknown[0]!r}, which is not among the features.")
        kept = np.flatnonzero([name not in arguments.always for name in names])
        if not kept.size:
            raise UsageError("--always names every feature; nothing is left to choose from.")
        counted = w[kept]
    if arguments.group_prefix is None:
        return card(counted, axis=1 if len(w.shape) == 2 else None) <= k
    labels = [names[j].partition(arguments.group_prefix)[0] for j in kept]
    return card(counted, groups=labels) <= k


__all__ = ["Declared", "declare"]
