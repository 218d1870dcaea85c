"""Experiments with many random instances: trials that resume, sweeps, tables, phase diagrams.

A trial is a function of a point (a number of samples, of nonzeros, ...) and of a number that seeds
its random draws; it returns named numbers. :class:`Trials` keeps every finished one in a file, a
line each, so that a run that was stopped goes on where it ended. :func:`sweep` runs them over a
grid and returns a :class:`Table` of means.
"""

from __future__ import annotations

import csv
import io
import json
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product, zip_longest
from os import PathLike
from pathlib import Path
from typing import Any, cast, final

import numpy as np

from sparsemodel.interfaces import DataError, ModelError
from sparsemodel.interfaces.errors import closest
from sparsemodel.reporting.plots.plot_style import new_axes, quiet


class Trials:
    """The finished trials of an experiment, a line of JSON for each in a file.

    Parameters
    ----------
    path
        The file; it is made, or continued. A last line that was cut off does not count.
    trial
        ``trial(*key)`` returns a dictionary of numbers. The key (numbers and texts) has everything
        in it that they depend on, the seed included.
    minutes
        No trial is begun that many minutes after this object was made.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "squares.jsonl"
    >>> trials = Trials(path, lambda n, number: {"square": float(n * n + number)})
    >>> trials(3, 0)
    {'square': 9.0}
    >>> Trials(path, lambda *key: {}).means([(3, 0)])  # it is not computed again
    {'square': 9.0, 'trials': 1}
    """

    def __init__(
        self,
        path: str | PathLike[str],
        trial: Callable[..., Mapping[str, float]],
        *,
        minutes: float = math.inf,
    ) -> None:
        self._path, self._trial = Path(path), trial
        self._end = time.monotonic() + 60.0 * minutes
        self._done = read_trials(self._path)
        self._earlier = set(self._done)
        self.asked: set[tuple[Any, ...]] = set()
        """The keys that were asked for so far."""

    def __call__(self, *key: Any) -> dict[str, float]:
        """Return the numbers of a trial, computed once; ``{}`` where the minutes are over."""
        self.asked.add(key)
        if key not in self._done:
            if time.monotonic() > self._end:
                return {}
            began = time.process_time()
            numbers = dict(self._trial(*key))
            line = {"trial": key, "numbers": numbers, "seconds": time.process_time() - began}
            self._done[key] = line
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        return cast("dict[str, float]", self._done[key]["numbers"])

    @property
    def done(self) -> int:
        """Return how many of the trials that were asked for are there."""
        return len(self.asked & self._done.keys())

    @property
    def spared(self) -> float:
        """Return the CPU seconds of the trials that were asked for and run earlier, if known."""
        earlier = self.asked & self._earlier
        return float(sum(self._done[key].get("seconds", math.nan) for key in earlier))

    @property
    def finished(self) -> list[tuple[Any, ...]]:
        """Return the keys of all finished trials, of earlier runs as well."""
        return list(self._done)

    def in_rounds(self, points: Iterable[Iterable[Sequence[Any]]]) -> None:
        """Run the first trial of every point, then the second of each, and so on.

        A run that ends early has about as many everywhere then. A point is given by its keys.
        """
        for keys in zip_longest(*points):
            for key in keys:
                if key is not None:
                    self(*key)

    def means(self, several: Iterable[Sequence[Any]]) -> dict[str, float]:
        """Return the mean of every number over trials, and how many there are as ``"trials"``."""
        finished = [numbers for key in several if (numbers := self(*key))]
        names = finished[0] if finished else {}
        means = {name: float(np.mean([numbers[name] for numbers in finished])) for name in names}
        return means | {"trials": len(finished)} if finished else {}


def read_trials(path: Path) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return the lines of finished trials by their keys; a last one that was cut off is removed."""
    if not path.exists():
        return {}
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    try:
        lines = [json.loads(line) for line in whole.splitlines()]
        return {tuple(line["trial"]): line for line in lines}
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise DataError(
            f"{path} is no file of trials ({error}): every line is an object with the entries "
            "'trial' and 'numbers'. Give the trials a file of their own."
        ) from error


@final
@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a header, to read, to save and to print.

    Examples
    --------
    >>> table = Table(("n", "recovered"), [(20, 0.5), (40, 1.0)])
    >>> print(table.markdown())
    | n | recovered |
    | --- | --- |
    | 20 | 0.5 |
    | 40 | 1 |
    >>> table.column("recovered")
    [0.5, 1.0]
    """

    header: tuple[str, ...]
    rows: Sequence[Sequence[Any]]

    def column(self, name: str) -> list[Any]:
        """Return the entries under a name.

        Raises
        ------
        ModelError
            When there is no such column; the message lists them.
        """
        if name not in self.header:
            near = closest(name, self.header)
            hint = f" Is {near!r} meant?" if near else ""
            raise ModelError(
                f"The table has no column {name!r}.{hint} It has {', '.join(self.header)}."
            )
        place = self.header.index(name)
        return [row[place] for row in self.rows]

    def markdown(self) -> str:
        """Return the table in Markdown."""
        lines = [self.header, ["---"] * len(self.header), *self._cells()]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)

    def latex(self) -> str:
        """Return the table as a ``tabular`` of LaTeX, with the rules of booktabs."""
        lines = [" & ".join(map(_escaped, line)) + r" \\" for line in [self.header, *self._cells()]]
        columns = "r" * len(self.header)
        body = [r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule"]
        return "\n".join([rf"\begin{{tabular}}{{{columns}}}", *body, r"\end{tabular}"])

    def csv(self) -> str:
        """Return the table as comma-separated values, with all digits."""
        file = io.StringIO()
        csv.writer(file, lineterminator="\n").writerows([self.header, *self.rows])
        return file.getvalue()

    def save(self, path: str | PathLike[str]) -> None:
        """Write the table, as what the name ends in says: ``.md``, ``.tex`` or ``.csv``."""
        kinds = {".md": self.markdown, ".tex": self.latex, ".csv": self.csv}
        end = Path(path).suffix
        if end not in kinds:
            raise ModelError(f"A table is saved as .md, .tex or .csv, and {str(path)!r} is none.")
        Path(path).write_text(kinds[end]().rstrip("\n") + "\n", encoding="utf-8")

    def _cells(self) -> list[list[str]]:
        return [[_cell(value) for value in row] for row in self.rows]

    def __str__(self) -> str:
        """Return the table with columns flush right."""
        lines = [list(self.header), *self._cells()]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        aligned = (
            "  ".join(f"{cell:>{width}}" for cell, width in zip(line, widths, strict=True))
            for line in lines
        )
        return "\n".join(aligned)


def sweep(
    trials: Trials,
    axes: Mapping[str, Iterable[Any]],
    *,
    repeats: int,
    seed: int = 0,
) -> Table:
    """Run a trial at every point of a grid, and return the means.

    The first instance of every point comes first, then the second of each: a run that ends early,
    by the ``minutes`` of its trials or by Ctrl-C, has about as many everywhere.

    Parameters
    ----------
    trials
        Their function is called with a value for each axis, in order, and with a number that its
        random draws are seeded with: ``seed``, ``seed + 1``, ...
    axes
        The values of each axis by its name.
    repeats
        Instances at each point.
    seed
        The number of the first.

    Returns
    -------
    Table
        A row for each point with a finished trial: the values, how many trials, the mean of each
        number that they return.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "sums.jsonl"
    >>> trials = Trials(path, lambda n, k, number: {"sum": float(n + k + number)})
    >>> print(sweep(trials, {"n": [10, 20], "k": [1]}, repeats=3))
     n  k  trials  sum
    10  1       3   12
    20  1       3   22
    """
    points = list(product(*(list(values) for values in axes.values())))
    trials.in_rounds([(*point, n) for n in range(seed, seed + repeats)] for point in points)
    means = {
        point: shares
        for point in points
        if (shares := trials.means((*point, n) for n in range(seed, seed + repeats)))
    }
    names = [name for name in next(iter(means.values()), {}) if name != "trials"]
    return Table(
        (*axes, "trials", *names),
        [(*p, shares["trials"], *(shares[name] for name in names)) for p, shares in means.items()],
    )


def transition(xs: Sequence[float], shares: Sequence[float], wanted: float) -> float:
    """Return where shares along ``xs``, interpolated, first reach a wanted one; NaN if nowhere.

    Examples
    --------
    >>> transition([10, 20, 30], [0.0, 0.5, 1.0], 0.75)
    25.0
    """
    enough = np.flatnonzero(np.asarray(shares, dtype=float) >= wanted)
    if not enough.size:
        return math.nan
    i = int(enough[0])
    if i == 0:
        return float(xs[0])
    return float(np.interp(wanted, list(shares[i - 1 : i + 1]), list(xs[i - 1 : i + 1])))


def phase_diagram(table: Table, x: str, y: str, value: str, axes: Any = None) -> Any:
    """Draw a column of shares, from 0 to 1, over two others of a sweep; returns Matplotlib's axes.

    Parameters
    ----------
    table
        The result of :func:`sweep`. Points without a trial stay white.
    x, y, value
        Names of its columns.
    axes
        Where to draw; None makes a figure.
    """
    xs, ys = sorted(set(table.column(x))), sorted(set(table.column(y)))
    grid = np.full((len(ys), len(xs)), np.nan)
    for at_x, at_y, share in zip(
        table.column(x), table.column(y), table.column(value), strict=True
    ):
        grid[ys.index(at_y), xs.index(at_x)] = share
    axes = new_axes(axes)
    quiet(axes)
    image = axes.pcolormesh(xs, ys, grid, cmap="cividis", vmin=0.0, vmax=1.0, shading="nearest")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(value, loc="left", fontsize=10, fontweight="bold")
    axes.figure.colorbar(image, ax=axes)
    return axes


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.3g}"
    return str(value)


def _escaped(text: str) -> str:
    return "".join("\\" + c if c in "&%$#_{}" else c for c in text)
