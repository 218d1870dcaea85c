"""A plan: what will be run, why, and why not the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, final

import sparsemodel.markup as markup  # not "from": the package hands out its names lazily
from sparsemodel.compiler.analysis import Fact
from sparsemodel.compiler.plan_graph import plan_graph
from sparsemodel.compiler.ranking import Forecast
from sparsemodel.interfaces import Backend


@final
@dataclass(frozen=True, slots=True)
class Stage:
    """One backend with its budget and where it starts."""

    backend: Backend
    why: str
    label: str
    """The name it was registered under."""
    start: Literal["zero", "last", "best"] = "last"
    """Where it starts: from zero (or the user's start), the last stage's result, or the best."""
    max_iter: int | None = None


@final
@dataclass(frozen=True, slots=True)
class Rejection:
    """A backend that is not used, and why."""

    backend: str
    reasons: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """What the compiler decided; made without solving anything."""

    problem: str
    """One line: what is minimised over what."""
    stages: tuple[Stage, ...]
    rejected: tuple[Rejection, ...]
    facts: tuple[Fact, ...]
    reductions: tuple[str, ...]
    restricted: str
    """How the objective is minimised on a support."""
    notes: tuple[str, ...] = ()
    """What would change the picture."""
    adapters: tuple[str, ...] = ()
    """What is done so that backends can solve what they cannot by themselves."""
    forecast: Forecast | None = None
    """What the plan did on the measured problems most like this one; None when asked for."""
    until_agreement: bool = False
    """Whether fresh starts end when two of them have come to the same objective."""
    until_clear: bool = False
    """Whether stages end when the support stands out: see :data:`sparsemodel.driver.CLEAR`."""

    @property
    def chosen(self) -> str:
        """Return the name of the first stage's backend."""
        return self.stages[0].label

    @property
    def outline(self) -> str:
        """Return the stages in one line: ``>`` hands the point on, ``|`` starts afresh."""
        text = self.stages[0].label
        for stage in self.stages[1:]:
            link = {"zero": " | ", "last": " > ", "best": " | best "}[stage.start]
            text += link + stage.label
        return text

    def __str__(self) -> str:
        lines = [f"Problem   {self.problem}", "", "Facts"]
        width = max((len(f.name) for f in self.facts), default=0)
        for fact in self.facts:
            cost = f", {fact.passes:g} passes" if fact.passes else ""
            lines.append(f"  {fact.name:<{width}}  {fact.value}  [{fact.provenance}{cost}]")
        if self.reductions:
            lines += ["", "Reductions (undone in the solution; certificates use your data)"]
            lines += [f"  {text}" for text in self.reductions]
        if self.adapters:
            lines += ["", "On the way"]
            lines += [f"  {text}" for text in self.adapters]
        lines += ["", "Plan"]
        for number, stage in enumerate(self.stages, start=1):
            lines.append(f"  {number}. {stage.label}: {stage.why}")
            if stage.backend.guarantee:
                lines.append(f"     guarantee: {stage.backend.guarantee}")
        lines.append(f"  on a support: {self.restricted}")
        if self.forecast is not None:
            lines.append(f"  expected: {self.forecast.describe()}")
            if sum(stage.start == "zero" for stage in self.stages) > 2:
                lines.append("  fresh starts end when two of them come to the same objective")
            if self.until_clear and len(self.stages) > 1:
                lines.append("  it ends early when each chosen entry is worth far more than others")
            similar = self.forecast.similar
            lines.append(
                f"     ({len(similar)} measured problems are most like this one, among them "
                f"{', '.join(similar[:3])}; as good means within 0.1 %)"
            )
        if self.rejected:
            lines += ["", "Not taken"]
            lines += _not_taken(self.rejected)
        if self.notes:
            lines += ["", "What would change this"]
            lines += [f"  {note}" for note in self.notes]
        return "\n".join(lines)

    def graph(self) -> Any:
        """Return the plan as a ``networkx.DiGraph`` from ``"problem"`` to ``"solution"``.

        Nodes carry ``kind``, ``label`` and ``detail``, edges a ``label``:
        ``sparsemodel.reporting.plots.plan`` draws it.
        """
        return plan_graph(self)

    def _repr_html_(self) -> str:
        steps = [(f"{i}. {stage.label}", stage.why) for i, stage in enumerate(self.stages, 1)]
        others = [(r.backend, "; ".join(r.reasons)) for r in self.rejected]
        return markup.panel(
            "Plan",
            self.problem,
            markup.facts([*steps, ("on a support", self.restricted), *self._expected()]),
            *(markup.sentence(note) for note in (*self.adapters, *self.notes)),
            markup.folded(
                f"What is known ({len(self.facts)})",
                markup.facts((f.name, f"{f.value} [{f.provenance}]") for f in self.facts),
            ),
            markup.folded(
                f"Reductions ({len(self.reductions)})" if self.reductions else "",
                "".join(markup.sentence(text) for text in self.reductions),
            ),
            markup.folded(f"Not taken ({len(self.rejected)})", markup.facts(others)),
        )

    def _expected(self) -> list[tuple[str, str]]:
        return [] if self.forecast is None else [("expected", self.forecast.describe())]

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data."""
        return {
            "problem": self.problem,
            "facts": [
                {"name": f.name, "value": f.value, "provenance": f.provenance, "passes": f.passes}
                for f in self.facts
            ],
            "reductions": list(self.reductions),
            "adapters": list(self.adapters),
            "stages": [
                {
                    "backend": s.label,
                    "options": s.backend.options(),
                    "start": s.start,
                    "why": s.why,
                    "guarantee": s.backend.guarantee,
                    "reference": s.backend.reference,
                }
                for s in self.stages
            ],
            "forecast": None if self.forecast is None else self.forecast.to_dict(),
            "restricted": self.restricted,
            "rejected": [{"backend": r.backend, "reasons": list(r.reasons)} for r in self.rejected],
            "notes": list(self.notes),
        }


def _not_taken(rejected: tuple[Rejection, ...]) -> list[str]:
    """Return a line for every reason, with the backends it holds for."""
    by_reason: dict[str, list[str]] = {}
    for rejection in rejected:
        by_reason.setdefault("; ".join(rejection.reasons), []).append(rejection.backend)
    alone = {reason: names[0] for reason, names in by_reason.items() if len(names) == 1}
    width = max((len(name) for name in alone.values()), default=0)
    lines = [f"  {name:<{width}}  {reason}" for reason, name in alone.items()]
    for reason, names in by_reason.items():
        if len(names) > 1:
            lines += [f"  {', '.join(names)}", f"  {'':<{width}}  {reason}"]
    return lines


__all__ = ["Plan", "Rejection", "Stage"]
