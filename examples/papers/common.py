"""What the scripts of this folder share: arguments, real data, solving, pictures.

Every script regenerates the figures or tables named in its first line:

    python examples/papers/nhtp_success.py                 # --quick, within about a minute
    python examples/papers/nhtp_success.py --full          # the paper's sizes and trials
    python examples/papers/nhtp_success.py --full --trials 50    # its sizes, fewer trials
    python examples/papers/nhtp_success.py --output FOLDER

``FOLDER/NAME.png`` is the picture and ``FOLDER/NAME.csv`` the numbers behind it. Scripts with
random instances keep finished trials in ``FOLDER/NAME.jsonl``: a run that was stopped, or that
``--minutes M`` ended, goes on there when it is started again with the same folder, and tables are
made of the trials that are there. ``FOLDER/NAME.txt`` is the table of the documentation, and
``FOLDER/costs.txt`` what every run in the folder took: with ``--minutes 0`` a script says how many
trials it has without running any. Scripts on real data take ``--data FOLDER``: every ``NAME.npz``
(arrays ``X``, ``y``) and ``NAME.svm`` (svmlight) in it takes the place of the data sets of the
repository.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, ClassVar

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

import sparsemodel as sm
from sparsemodel import experiments
from sparsemodel.reporting.plots.plot_style import quiet

# One look for every method in every picture; the colours are told apart by everybody (Okabe-Ito).
LOOKS = {
    "NHTP": ("#0072b2", "o"),
    "GraHTP": ("#0072b2", "o"),
    "HTP": ("#d55e00", "s"),
    "FGraHTP": ("#56b4e9", "D"),
    "IHT": ("#56b4e9", "D"),
    "NIHT": ("#56b4e9", "D"),
    "IIHT": ("#56b4e9", "D"),
    "GraSP": ("#d55e00", "s"),
    "SP": ("#009e73", "^"),
    "PGD": ("#d55e00", "s"),
    "HT-SVRG": ("#0072b2", "o"),
    "SVR-GHT": ("#009e73", "^"),
    "CoSaMP": ("#cc79a7", "v"),
    "NTGP": ("#009e73", "^"),
    "FBS": ("#009e73", "^"),
    "OMP": ("#e69f00", "P"),
    "FoBa": ("#e69f00", "P"),
    "GP": ("#999999", "X"),
    "LASSO": ("#999999", "X"),
    "l1": ("#999999", "X"),
    "GLasso": ("#999999", "X"),
    "OMPR": ("#d55e00", "s"),
    "ARHT": ("#0072b2", "o"),
    "exhaustive search": ("#009e73", "^"),
    "DIHT": ("#0072b2", "o"),
    "SDIHT": ("#e69f00", "P"),
    "default": ("#000000", "*"),
}


@dataclass(frozen=True)
class Options:
    full: bool
    data: Path | None
    output: Path
    seed: int
    trials: int | None = None
    minutes: float = math.inf

    def pick(self, quick: Any, full: Any) -> Any:
        return full if self.full else quick

    def repeats(self, quick: int, full: int) -> int:
        """Return how many random instances a point is the mean of."""
        return int(self.pick(quick, full)) if self.trials is None else self.trials


def program(main: Callable[[Options], None], doc: str | None) -> None:
    """Run a script with the arguments it was given, and note what that took."""
    chosen, began = options(doc), time.process_time()
    main(chosen)
    spent, made = time.process_time() - began, Trials.made
    words = ["--full" if chosen.full else "--quick"]
    words += [] if chosen.trials is None else [f"--trials {chosen.trials}"]
    name, path = Path(sys.argv[0]).stem, chosen.output / "costs.json"
    costs = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    costs[f"{name} {' '.join(words)}"] = {
        "trials": sum(each.done for each in made),
        "asked": sum(len(each.asked) for each in made),
        "seconds": round(spent + sum(each.spared for each in made), 1),
        "day": date.today().isoformat(),
    }
    path.write_text(json.dumps(costs, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    header = ("program", "options", "trials", "of", "CPU s", "last run")
    rows = [
        (f"`{run.split()[0]}.py`", f"`{' '.join(run.split()[1:])}`", *_counts(cost), cost["day"])
        for run, cost in sorted(costs.items(), reverse=True)
    ]
    for_the_page(chosen, "costs", header, rows, "Programs without trials run as a whole.")


def _counts(cost: dict[str, Any]) -> tuple[Any, Any, str]:
    if not cost["asked"]:
        return "", "", f"{cost['seconds']:.0f}"
    known = cost["trials"] and math.isfinite(cost["seconds"])
    return cost["trials"], cost["asked"], f"{cost['seconds']:.0f}" if known else ""


def options(doc: str | None) -> Options:
    lines = (doc or "").strip().splitlines() or [""]
    parser = argparse.ArgumentParser(description=lines[0])
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="a minute or so (the default)")
    size.add_argument("--full", action="store_true", help="the sizes and trials of the paper")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="other data sets (real data)")
    parser.add_argument("--output", type=Path, metavar="FOLDER", default=Path("papers-output"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trials", type=int, metavar="N", help="random instances for each point")
    parser.add_argument("--minutes", type=float, metavar="M", help="begin no trial after them")
    given = parser.parse_args()
    if given.data is not None and not given.data.is_dir():
        parser.error(f"--data {given.data}: there is no such folder")
    given.output.mkdir(parents=True, exist_ok=True)
    if given.trials is not None and given.trials < 1:
        parser.error(f"--trials {given.trials}: at least one instance is needed")
    minutes = math.inf if given.minutes is None else given.minutes
    return Options(given.full, given.data, given.output, given.seed, given.trials, minutes)


class Trials(experiments.Trials):
    """The trials of a program, in ``FOLDER/NAME.jsonl``, within its minutes."""

    made: ClassVar[list[Trials]] = []

    def __init__(self, chosen: Options, name: str, trial: Callable[..., dict[str, float]]) -> None:
        super().__init__(chosen.output / f"{name}.jsonl", trial, minutes=chosen.minutes)
        self.made.append(self)

    def standing(self) -> str:
        """Return how the default compares with the best of the others, over all finished trials."""
        excess = []
        for key, line in self._done.items():
            if key[-1] == ROUNDED:
                continue
            values = {n: v for n, v in line["numbers"].items() if n.endswith(", objective")}
            own = values.pop("default, objective")
            excess.append(own / min(values.values()) - 1.0)
        level = sum(e <= 1e-6 for e in excess)
        worst = 100.0 * max([0.0, *excess])
        return (
            f"Of all {len(excess)} instances the objective of the default is the lowest, or level "
            f"with it, in {level}; at worst it is {worst:.2g} % above the best."
        )

    def stability(self, what: str) -> str:
        """Return by how much a number of each method changes where data are rounded otherwise."""
        found = {each: x for (each, name), x in changes(self._done).items() if name == what}
        listed = ", ".join(f"{each} {100.0 * found[each]:.2g} %" for each in LOOKS if each in found)
        count = sum(key[-1] == ROUNDED for key in self._done)
        return f"Largest change in {count} trials on rounded data: {listed}." if listed else ""


ROUNDED = "rounded"
"""The end of the key of a trial that is the one before it, on data in other roundings."""


def rounded(A: Any) -> Any:
    """Return data that differ from the given in the sixteenth digit."""
    return A * (1.0 + 2.0**-51 * np.random.default_rng(0).uniform(-1.0, 1.0, A.shape))


def changes(trials: Mapping[tuple[Any, ...], Mapping[str, Any]]) -> dict[tuple[str, str], float]:
    """Return the largest relative change of each method's numbers, times apart, by rounded data."""
    largest: dict[tuple[str, str], float] = {}
    for key, line in trials.items():
        if key[-1] != ROUNDED or key[:-1] not in trials:
            continue
        for name, value in trials[key[:-1]]["numbers"].items():
            if name not in line["numbers"] or name.split(", ")[-1] == "s":
                continue
            at, other = method_and_number(key, name), line["numbers"][name]
            change = abs(other - value) / max(abs(other), abs(value), 1e-300)
            largest[at] = max(change, largest.get(at, 0.0))
    return largest


def method_and_number(key: tuple[Any, ...], name: str) -> tuple[str, str]:
    """Return the method that a number of a trial is about, and what the number is of it.

    The method is part of the key, or begins the name.
    """
    label = next((part for part in (*key, *name.split(", ")) if part in LOOKS), "")
    return label, name.removeprefix(label).removeprefix(", ")


def shipped(name: str) -> Any:
    """Return a data set of the repository's ``benchmarks/data``."""
    root = str(Path(__file__).parents[2])
    if root not in sys.path:
        sys.path.append(root)
    from benchmarks.data.load import load

    return load(name)


def own_data(folder: Path) -> dict[str, tuple[Any, Any]]:
    """Return ``{name: (X, y)}`` of every data set in a folder."""
    found: dict[str, tuple[Any, Any]] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as archive:
                found[path.stem] = archive["X"], archive["y"]
        elif path.suffix in {".svm", ".libsvm"}:
            from sklearn.datasets import load_svmlight_file

            found[path.stem] = load_svmlight_file(str(path))
    if not found:
        raise SystemExit(f"{folder} has no .npz or .svm files")
    return found


@dataclass(frozen=True)
class Answer:
    x: Any
    value: float
    cpu: float
    solution: Any


def solve(objective: Any, w: Any, k: int, backend: Any = None, **limits: Any) -> Answer:
    """Minimise over the ``k``-sparse ``w``; the CPU time is that of declaring and solving."""
    began = time.process_time()
    solution = sm.Problem(sm.minimize(objective), sm.card(w) <= k).solve(backend, **limits)
    return Answer(w.value, solution.value, time.process_time() - began, solution)


def least_squares(
    A: Any, b: Any, k: int, backend: Any = None, *, intercept: bool = False, **limits: Any
) -> Answer:
    w = sm.Variable(A.shape[1])
    prediction = A @ w + sm.Variable() if intercept else A @ w
    return solve(sm.squared_loss(prediction, b), w, k, backend, **limits)


def logistic(
    A: Any,
    y: Any,
    k: int,
    backend: Any = None,
    *,
    ridge: float,
    intercept: bool = False,
    **limits: Any,
) -> Answer:
    w = sm.Variable(A.shape[1])
    prediction = sm.as_design(A) @ w
    if intercept:
        prediction = prediction + sm.Variable()
    return solve(sm.logistic_loss(prediction, y) + sm.ridge(w, ridge), w, k, backend, **limits)


def table(
    chosen: Options,
    name: str,
    header: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    show: bool = True,
) -> None:
    """Print the rows and write them to ``NAME.csv``."""
    made = experiments.Table(tuple(header), [list(row) for row in rows])
    made.save(chosen.output / f"{name}.csv")
    if show:
        print(made)


def for_the_page(
    chosen: Options, name: str, header: Sequence[str], rows: Iterable[Sequence[Any]], note: str
) -> None:
    """Write ``NAME.txt``: what was run, and a Markdown table, for the documentation to include."""
    text = experiments.Table(tuple(header), list(rows)).markdown()
    (chosen.output / f"{name}.txt").write_text(f"{note}\n\n{text}\n", encoding="utf-8")


def panels(rows: int = 1, columns: int = 1, *, width: float = 8.0, height: float = 2.9) -> Any:
    """Return a figure and a flat list of quiet axes, row by row; ``height`` is that of a row."""
    figure, grid = plt.subplots(
        rows, columns, figsize=(width, rows * height + 0.35), layout="constrained", squeeze=False
    )
    axes = list(grid.flat)
    for one in axes:
        quiet(one, grid="y")
        one.tick_params(labelsize=8)
    return figure, axes


def curve(axes: Any, label: str, x: Any, y: Any, name: str | None = None, **other: Any) -> None:
    """Draw a method's line; ``name`` is what the legend says, if not the method."""
    colour, marker = LOOKS[label]
    style: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 4.5, "linewidth": 1.6}
    axes.plot(x, y, **(style | {"label": name or label} | other))


def layered(place: int) -> dict[str, float]:
    """Return a style in which the lines that are drawn first can be seen under later ones."""
    size = 7.0 - 0.8 * place
    return {"markersize": size, "linewidth": 0.5 * size}


def whole(axes: Any, label: str = "nonzeros") -> None:
    """Label a horizontal axis of whole numbers."""
    axes.set_xlabel(label, fontsize=9)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))


def logarithmic(axes: Any, which: str = "y") -> None:
    """Make an axis logarithmic, with few and readable labels; call it after drawing."""
    if not any(np.any(np.asarray(line.get_ydata()) > 0.0) for line in axes.lines):
        return
    line = axes.yaxis if which == "y" else axes.xaxis
    axes.set(**{f"{which}scale": "log"})
    low, high = line.get_view_interval()
    line.set_minor_formatter(NullFormatter())
    if high < 100.0 * low:
        line.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        line.set_major_formatter("{x:g}")


def headline(axes: Any, text: str) -> None:
    axes.set_title(text, loc="left", fontsize=9.5, fontweight="bold")


def save(
    chosen: Options, figure: Any, name: str, *, legend: bool = True, colours: int = 64
) -> None:
    """Write ``NAME.png``, with one legend above all axes."""
    if legend:
        entries = {}
        for axes in figure.axes:
            handles, labels = axes.get_legend_handles_labels()
            entries.update(zip(labels, handles, strict=True))
        figure.legend(
            entries.values(),
            entries.keys(),
            loc="outside upper left",
            ncols=len(entries),
            frameon=False,
            fontsize=8.5,
            handlelength=1.6,
            columnspacing=1.2,
        )
    path = chosen.output / f"{name}.png"
    figure.savefig(path, dpi=125)
    plt.close(figure)
    from PIL import Image

    with Image.open(path) as picture:
        few = picture.convert("RGB").quantize(colors=colours, dither=Image.Dither.NONE)
    few.save(path, optimize=True)
    print(path)
