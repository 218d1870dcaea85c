"""Labels of rows and of entries: data whose labels stand in another order are refused."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsemodel.interfaces import DataError


def labels_of(values: Any) -> Any:
    """Return the index of a DataFrame or Series of pandas; None for what has no labels."""
    index = getattr(values, "index", None)
    return index if type(index).__module__.partition(".")[0] == "pandas" else None


def check_names(
    labels: Any, names: tuple[str, ...] | None, what: str, advice: str = "values[list(w.names)]"
) -> None:
    """Refuse labels that are the names of a variable's entries in another order.

    Other labels say nothing about the order, and numbers without labels are taken by position.

    Raises
    ------
    DataError
        The message names the first entry that differs.
    """
    given = None if names is None or labels is None else tuple(map(str, labels))
    if given is None or names is None or given == names or sorted(given) != sorted(names):
        return
    j = next(j for j, pair in enumerate(zip(given, names, strict=True)) if pair[0] != pair[1])
    raise DataError(
        f"{what} has the names of the variable in another order: {given[j]!r} stands at place {j}, "
        f"where the variable has {names[j]!r}. Write `{advice}`."
    )


def check_rows(rows: Any, labels: Any, what: str) -> None:
    """Refuse observations that are labelled otherwise than the rows of the data.

    Rows that are numbered 0, 1, 2, ... on one side go by position, unless the other side has the
    same numbers in another order.

    Raises
    ------
    DataError
        The message names the first row that differs.
    """
    if rows is None or labels is None or rows is labels or len(rows) != len(labels):
        return
    if rows.equals(labels):
        return
    same = bool(np.all(labels.isin(rows)) and np.all(rows.isin(labels)))
    if not same and (_numbered(rows) or _numbered(labels)):
        return
    j = next(j for j, pair in enumerate(zip(rows, labels, strict=True)) if pair[0] != pair[1])
    others = (
        "in another order: take them in that of the data, `y.loc[df.index]`"
        if same
        else "others: drop the same rows of both, `df.loc[rows]` and `y.loc[rows]`"
    )
    raise DataError(
        f"{what}: row {j} is labelled {str(labels[j])!r}, and {str(rows[j])!r} in the data. The "
        f"labels are {others}; or, where the order is right as it is, pass `y.to_numpy()`."
    )


def _numbered(index: Any) -> bool:
    return index.dtype.kind in "iu" and bool(np.all(index.to_numpy() == np.arange(len(index))))
