"""The page that compares ways to choose a model: means, and differences on the same draws."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from benchmarks.selection.draws import NONZEROS, Case


class Run(NamedTuple):
    """What a method finds in a draw."""

    risk: float
    size: int
    exact: bool
    seconds: float
    """Of the processor."""


Results = dict[Case, list[dict[str, Run]]]
"""What each method finds, for each draw of each case."""

DEFAULT, ALONE, SIMPLEST = "subset + ridge", "subset", "one standard error"
"""What is chosen without arguments, without a ridge to choose, and by the rule that is off."""

_LEVEL = 0.05
"""Of the two-sided t test by which a difference is one."""

_HEAD = r"""# Choosing a model: risk, size, recovery

Written by `python -m benchmarks.selection` on {date}, with {versions}.
Data as in Hastie, Tibshirani and Tibshirani
(*Extended comparisons of best subset selection, forward stepwise selection, and the lasso*, 2017):
{nonzeros} equal coefficients at equal distances, and columns with the correlation
$\rho^{{|i-j|}}$. SNR is the signal-to-noise ratio, a ratio of variances. There are {repeats} draws
of each of {cases} cases, with the seeds 0 to {last}. Every method has the same draws, and draws of
one seed and shape share their random numbers. Every method runs with its default arguments.

Risk is $(\hat w - w)^\top \Sigma (\hat w - w) / w^\top \Sigma w$: 0 is
perfect, 1 is the risk of the model without coefficients.
"""
_PAIRED = """## Differences of risk

The table shows the risk minus that of {default} on the same draws, with the standard error of the
mean; draws that share random numbers count as one. Differences in bold are significant in a t test
at 5 %; if they are positive, {default} is better. With {repeats} draws for each of {shapes} shapes
the test finds only large differences.
"""
_SIZES = """## Size and exact recovery

The mean number of nonzeros ({nonzeros} are true) and, after the comma, in how many of {repeats}
draws the support is exactly the true one.
"""
_NOISE = """## Noise alone

The mean number of nonzeros if all coefficients are zero and, after the comma, in how many of
{draws} draws no feature is selected ([the rule](../adr/0015-how-k-and-the-ridge-are-chosen.md)).
"""
_COST = """## What the ridge costs

The CPU time for choosing `k` and one of three ridges, divided by that for `k` alone on the same
draw: the median of {draws} draws is {median:.1f}, the 5th and the 95th percentile are {low:.1f} and
{high:.1f}, and the ratio of the totals is {total:.1f}.
"""
_RULE = """## The one-standard-error rule

It is off by default. Its risk minus that of the best mean is {mean} on the same draws. Its models
have {size:.1f} nonzeros on average in place of {default:.1f}, and {exact} of {draws} supports are
exactly right in place of {right}.
"""


def page(results: Results, machine: dict[str, Any], methods: Iterable[str]) -> str:
    """Return the page."""
    names = list(methods)
    signal = {case: draws for case, draws in results.items() if case.snr > 0.0}
    noise = {case: draws for case, draws in results.items() if case.snr == 0.0}
    repeats = len(next(iter(signal.values())))
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    head = _HEAD.format(
        date=machine["date"],
        versions=versions,
        nonzeros=NONZEROS,
        repeats=repeats,
        cases=len(signal),
        last=repeats - 1,
    )
    chosen = "{:.1f}, {}"
    return "\n".join(
        [
            head,
            _by_kind(signal, names, lambda part, name: f"{_risk(part, name):.3f}"),
            _by_case(signal, names, lambda part, name: f"{_risk(part, name):.3f}"),
            _PAIRED.format(default=DEFAULT, repeats=repeats, shapes=len({c[:2] for c in signal})),
            _by_kind(
                signal, [n for n in names if n != DEFAULT], lambda p, n: _shown(p, n, DEFAULT)
            ),
            _SIZES.format(nonzeros=NONZEROS, repeats=repeats),
            _by_case(signal, names, lambda p, n: chosen.format(_size(p, n), _exact(p, n))),
            _NOISE.format(draws=len(next(iter(noise.values())))),
            _by_case(noise, names, lambda p, n: chosen.format(_size(p, n), _none(p, n))),
            _cost(signal),
            _rule(signal),
            _advice(signal, names),
        ]
    )


# ---- numbers -------------------------------------------------------------------------------------


def difference(results: Results, name: str, other: str) -> tuple[float, float]:
    """Return the mean difference of risk on the same draws, and its standard error.

    Draws of one seed and shape share their random numbers and are averaged first.
    """
    apart: dict[tuple[int, int], list[list[float]]] = {}
    for case, draws in results.items():
        risks = [draw[name].risk - draw[other].risk for draw in draws]
        apart.setdefault((case.n, case.p), []).append(risks)
    means = [np.mean(rows, axis=0) for rows in apart.values()]  # one number for each seed
    mean = float(np.mean([row.mean() for row in means]))
    error = float(np.sqrt(sum(row.var(ddof=1) / row.size for row in means))) / len(means)
    return mean, error


def _all(results: Results, name: str) -> list[Run]:
    return [draw[name] for draws in results.values() for draw in draws]


def _risk(results: Results, name: str) -> float:
    return float(np.mean([run.risk for run in _all(results, name)]))


def _size(results: Results, name: str) -> float:
    return float(np.mean([run.size for run in _all(results, name)]))


def _exact(results: Results, name: str) -> int:
    return sum(run.exact for run in _all(results, name))


def _none(results: Results, name: str) -> int:
    return sum(run.size == 0 for run in _all(results, name))


def _shown(results: Results, name: str, other: str) -> str:
    mean, error = difference(results, name, other)
    text = f"{mean:+.3f} ± {error:.3f}"
    return f"**{text}**" if _apart(results, mean, error) else text


def _apart(results: Results, mean: float, error: float) -> bool:
    """Return whether the t test finds a mean apart from zero."""
    draws = len(next(iter(results.values())))
    degrees = (draws - 1) * len({(case.n, case.p) for case in results})
    return abs(mean) > float(stdtrit(degrees, 1.0 - _LEVEL / 2.0)) * error


# ---- tables --------------------------------------------------------------------------------------

Cell = Callable[[Results, str], str]
"""Shows a method by some of the results."""


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _by_case(results: Results, names: list[str], cell: Cell) -> str:
    rows = [
        [
            f"{case.n} x {case.p}",
            f"{case.correlation:g}",
            f"{case.snr:g}",
            *(cell({case: draws}, name) for name in names),
        ]
        for case, draws in results.items()
    ]
    return _table(["n x p", "ρ", "SNR", *names], rows)


def _by_kind(results: Results, names: list[str], cell: Cell) -> str:
    """Return a table by ratio, correlation and shape."""
    kinds: list[tuple[str, Callable[[Case], str]]] = [
        ("SNR", lambda case: f"{case.snr:g}"),
        ("ρ", lambda case: f"{case.correlation:g}"),
        ("n / p", lambda case: f"{case.n / case.p:g}"),
        ("all", lambda case: ""),
    ]
    rows = []
    for kind, of in kinds:
        for value in dict.fromkeys(of(case) for case in results):
            part = {case: draws for case, draws in results.items() if of(case) == value}
            rows.append([f"{kind} {value}".strip(), *(cell(part, name) for name in names)])
    return _table(["means", *names], rows)


# ---- sentences -----------------------------------------------------------------------------------


def _cost(results: Results) -> str:
    pairs = zip(_all(results, DEFAULT), _all(results, ALONE), strict=True)
    both, alone = np.array([(one.seconds, other.seconds) for one, other in pairs]).T
    low, median, high = np.quantile(both / alone, [0.05, 0.5, 0.95])
    total = both.sum() / alone.sum()
    return _COST.format(draws=both.size, low=low, median=median, high=high, total=total)


def _rule(results: Results) -> str:
    return _RULE.format(
        mean=_shown(results, SIMPLEST, DEFAULT),
        size=_size(results, SIMPLEST),
        default=_size(results, DEFAULT),
        exact=_exact(results, SIMPLEST),
        right=_exact(results, DEFAULT),
        draws=len(_all(results, DEFAULT)),
    )


def _advice(results: Results, names: list[str]) -> str:
    lines = ["## What to use when\n", "By these draws alone:\n"]
    for snr in dict.fromkeys(case.snr for case in results):
        part = {case: draws for case, draws in results.items() if case.snr == snr}
        order = sorted(names, key=lambda name: _risk(part, name))
        level = [name for name in order[1:] if not _worse(part, name, order[0])]
        found = {name: _exact(part, name) for name in names}
        most = max(found.values())
        supports = _listed([name for name in names if found[name] == most])
        lines.append(
            f"- SNR {snr:g}: {order[0]} has the smallest risk ({_risk(part, order[0]):.3f}); "
            + (f"not significantly worse {_are(level)}; " if level else "")
            + (
                f"{supports} found the most supports ({most} of {len(_all(part, names[0]))})."
                if most
                else "no method found a support."
            )
        )
    return "\n".join(lines) + "\n"


def _worse(results: Results, name: str, best: str) -> bool:
    return _apart(results, *difference(results, name, best))


def _are(names: list[str]) -> str:
    return ("is " if len(names) == 1 else "are ") + _listed(names)


def _listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


__all__ = ["ALONE", "DEFAULT", "SIMPLEST", "Results", "Run", "difference", "page"]
