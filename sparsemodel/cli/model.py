"""From a table and the model options to a problem of the language."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, final

import numpy as np

from sparsemodel.cli.exits import UsageError
from sparsemodel.cli.options import ModelOptions
from sparsemodel.cli.printing import distinct
from sparsemodel.cli.reading import Table
from sparsemodel.designs import as_design
from sparsemodel.interfaces import DataError, DataFit, TargetKind
from sparsemodel.interfaces.errors import closest
from sparsemodel.modelling import Problem, Variable, card, minimize
from sparsemodel.modelling.loss_terms import loss_term, ridge
from sparsemodel.modelling.loss_terms.squared_scales import squared_scales, target_scale
from sparsemodel.registry import builtin_loss_classes, loss_class


@final
@dataclass(frozen=True, slots=True, eq=False)
class Declared:
    """A problem with what its parts are called."""

    problem: Problem
    names: tuple[str, ...]
    """One name per feature."""
    classes: tuple[str, ...]
    """Of a classification, in the order of their codes; the last of two is the modelled one."""
    target: Any
    """Numbers, or the codes of the classes."""
    loss: str
    """As it is called on the command line."""


def declare(table: Table, options: ModelOptions, k: int) -> Declared:
    """Return the problem that the options describe."""
    if table.target is None:
        raise UsageError("Name the column to predict with --target.")
    p = table.X.shape[1]
    names = table.names or tuple(f"column_{j}" for j in range(1, p + 1))
    named = options.loss or _usual_loss(table.target)
    loss = _loss(options, named)
    target, classes = _target(table.target, loss, named)
    several = loss.target_kind is TargetKind.CLASSES
    shown = distinct(names)
    w = Variable((p, len(classes)) if several else p, name="w", names=shown)
    prediction: Any = as_design(table.X, where="The features") @ w
    if not options.no_intercept:
        intercept = Variable(len(classes) if several else (), name="intercept")
        prediction = prediction + intercept
    objective: Any = loss_term(
        loss, prediction, target, weights=table.weights, weights_are=table.weights_are
    )
    if options.ridge > 0.0:
        plain, centred = options.plain_ridge, not options.no_intercept
        scales: Any = 1.0
        if not plain:
            even = np.full(len(target), 1.0 / len(target))
            scales = squared_scales(table.X, centred=centred)
            scales *= target_scale(loss, target, even, centred=centred)
        objective = objective + ridge(w, options.ridge * scales)
    constraints: list[Any] = [_cardinality(w, table.features or names, options, k)]
    if options.lower is not None:
        constraints.append(w >= options.lower)
    if options.upper is not None:
        constraints.append(w <= options.upper)
    return Declared(Problem(minimize(objective), constraints), shown, classes, target, named)


def _usual_loss(target: Any) -> str:
    """Return the loss for a target without an explicit one: text is classes."""
    if target.dtype.kind in "biuf":
        return "squared"
    return "logistic" if np.unique(target).size <= 2 else "multinomial"


def _loss(options: ModelOptions, name: str) -> DataFit:
    kind = loss_class(name)
    asked = {one.name: getattr(options.parameters, one.name) for one in fields(options.parameters)}
    given = {key: value for key, value in asked.items() if value is not None}
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    for key in given.keys() - known:
        losses = [
            other
            for other, one in builtin_loss_classes().items()
            if key in {field.name for field in fields(one)}  # type: ignore[arg-type]
        ]
        raise UsageError(f"--{key} belongs to --loss {' or '.join(losses)}.")
    try:
        made = kind(**given)
    except DataError as error:
        raise UsageError(str(error)) from error
    if made.target_kind is TargetKind.TIMES:
        raise UsageError(
            f"--loss {name} needs two columns as a target, times and events, and the "
            "command line reads one; use it from Python."
        )
    return made


def _target(target: Any, loss: DataFit, name: str) -> tuple[Any, tuple[str, ...]]:
    """Return the target, recoded for classifications, and the names of the classes."""
    text = target.dtype.kind not in "biuf"
    if loss.target_kind is TargetKind.NUMBERS:
        if text:
            raise DataError(
                f"The target is text ({_some(target)}), and --loss {name} needs numbers. "
                "For classes use --loss logistic or --loss multinomial."
            )
        return target, ()
    if not text and not np.isfinite(target).all():
        raise DataError("The target holds NaN or infinite values; drop or impute them.")
    values, codes = np.unique(target, return_inverse=True)
    classes = distinct([str(v) if text else f"{v:g}" for v in values])
    if len(classes) < 2:
        raise DataError(f"All targets are {classes[0]!r}; a classification needs two classes.")
    two = loss.target_kind is TargetKind.TWO_CLASSES
    if two and len(classes) > 2:
        raise DataError(
            f"The target has {len(classes)} different values ({_some(values)}), and --loss {name} "
            "is for two classes; use --loss multinomial, or --loss squared for numbers."
        )
    if not two and len(classes) > max(20, target.size // 2):
        raise DataError(
            f"The target has {len(classes)} different values, which are hardly classes; for "
            "numbers use --loss squared."
        )
    return codes.astype(np.float64), classes


def _some(values: Any) -> str:
    shown = [str(v) for v in values[:4]]
    return ", ".join(shown) + (", ..." if len(values) > 4 else "")


def _cardinality(w: Variable, names: tuple[str, ...], options: ModelOptions, k: int) -> Any:
    """Return the limit; columns of one name are the categories of one column of the file."""
    counted: Any = w
    kept = np.arange(len(names))
    if options.always:
        unknown = [name for name in options.always if name not in names]
        if unknown:
            close = closest(unknown[0], names)
            hint = f"; did you mean {close!r}?" if close else "."
            raise UsageError(
                f"--always names {unknown[0]!r}, which is not among the features{hint}"
            )
        kept = np.flatnonzero([name not in options.always for name in names])
        if not kept.size:
            raise UsageError("--always names every feature; nothing is left to choose from.")
        counted = w[kept]
    labels = [names[j] for j in kept]
    if options.group_prefix is not None:
        labels = [label.partition(options.group_prefix)[0] for label in labels]
    elif len(set(names)) == len(names):
        return card(counted, axis=1 if len(w.shape) == 2 else None) <= k
    return card(counted, groups=labels) <= k
