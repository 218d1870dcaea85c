"""A plan in words, as ``print(problem.explain())`` shows it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from textwrap import wrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sparsemodel.compiler.facts.fact_sheet import Fact
    from sparsemodel.compiler.plans.plan import Plan, Rejection, Stage

WIDTH = 100
"""Columns of the text."""

_CODE = re.compile(r"[\w.]+\([^()]*\)|\d+(\.\d+)? %")
_JOINED = "\0"

_AFTERWARDS = (
    "problem.certify() bounds how far the result is from the best, and assumes none of that"
)

_FROM = {"zero": "afresh, ", "last": "from there, ", "best": "from the best so far, "}


def explanation(plan: Plan) -> str:
    """Return what was seen, what is run and why, what is not and why, and what would change it."""
    parts = [[f"Problem   {plan.problem}"], _section("Facts", map(_fact, plan.facts))]
    if plan.reductions:
        title = "Reductions (undone in the solution; certificates use your data)"
        parts.append(_section(title, ((text, "") for text in plan.reductions)))
    if plan.adapters:
        parts.append(_section("On the way", ((text, "") for text in plan.adapters)))
    parts.append(_what_runs(plan))
    proved = {stage.label: stage.backend.guarantee for stage in plan.stages}
    rows = [(label, text) for label, text in proved.items() if text]
    if plan.adapters and not rows:
        rows.append(("beforehand", "nothing, since the backends work on an easier objective"))
    parts.append(_section("What is proved", [*rows, ("afterwards", _AFTERWARDS)]))
    parts += _not_taken(plan.rejected)
    if plan.notes:
        parts.append(_section("What would change this", (("", note) for note in plan.notes)))
    return "\n\n".join("\n".join(part) for part in parts)


def stage_words(stage: Stage, *, first: bool = False) -> str:
    """Return where a stage starts and why it is run."""
    return stage.why if first else f"{_FROM[stage.start]}{stage.why}"


def option_words(stage: Stage) -> str:
    """Return the options of a stage that are not the defaults, as recipes write them."""
    backend = getattr(stage.backend, "inner", stage.backend)
    usual = type(backend)().options()
    given = {name: v for name, v in backend.options().items() if v != usual[name]}
    return "".join(f":{name}={value}" for name, value in given.items())


def source_words(fact: Fact) -> str:
    """Return how a fact was come by, and what it cost."""
    cost = f", {max(fact.passes, 0.001):.2g} passes" if fact.passes else ""
    return f"[{fact.provenance}: {fact.source}{cost}]"


def _fact(fact: Fact) -> tuple[str, str]:
    return fact.name, f"{fact.value}  {source_words(fact)}"


def _what_runs(plan: Plan) -> list[str]:
    lines = ["Plan"]
    for number, stage in enumerate(plan.stages, start=1):
        text = f"{number}. {stage.label}{option_words(stage)}: "
        text += stage_words(stage, first=number == 1)
        lines += _wrapped(text, "  ", "     ")
    return [*lines, *_rows([("on a support", plan.restricted), *plan.outlook()])]


def _not_taken(rejected: tuple[Rejection, ...]) -> list[list[str]]:
    """Return the backends that could run by what speaks against them, and those that cannot."""
    parts = []
    able: dict[str, list[tuple[str, str]]] = {}
    unable: dict[str, list[str]] = {}
    for rejection in rejected:
        first, rest = rejection.reasons[0], "; ".join(rejection.reasons[1:])
        if rejection.able:
            able.setdefault(first, []).append((rejection.backend, rest))
        else:
            unable.setdefault("; ".join(rejection.reasons), []).append(rejection.backend)
    for reason, rows in able.items():
        alone = [row for row in rows if row[1]]
        together = ", ".join(name for name, rest in rows if not rest)
        parts.append(
            _section(f"Not taken: {reason}", [*alone, *([("", together)] * bool(together))])
        )
    if unable:
        rows = [(", ".join(names), reason) for reason, names in unable.items()]
        parts.append(_section("Cannot be taken", rows))
    return parts


def _section(title: str, rows: Iterable[tuple[str, str]]) -> list[str]:
    return [title, *_rows(list(rows))]


def _rows(rows: list[tuple[str, str]], longest: int = 24) -> list[str]:
    """Return names and texts in two columns; long names have their text on the next line."""
    width = max((len(name) for name, _ in rows if len(name) <= longest), default=0)
    lines: list[str] = []
    for name, text in rows:
        start = f"  {name:<{width}}  " if name and text else "  "
        indent = " " * (width + 4) if name and text else "    "
        if len(name) > longest and text:
            lines += _wrapped(name, "  ", "  ")
            lines += _wrapped(text, indent, indent)
            continue
        lines += _wrapped(text or name, start, indent)
    return lines


def _wrapped(text: str, first: str, indent: str) -> list[str]:
    """Break a text into lines, but no code: what can be typed stays in one piece."""
    whole = _CODE.sub(lambda code: code[0].replace(" ", _JOINED), text)
    lines = wrap(
        whole,
        WIDTH,
        initial_indent=first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_JOINED, " ") for line in lines]


__all__ = ["explanation", "option_words", "source_words", "stage_words"]
