"""A plan: what will be run, why, and why not the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, final

import sparsemodel.markup as markup  # not "from": the package hands out its names lazily
from sparsemodel.compiler.choice.ranking import Forecast
from sparsemodel.compiler.facts.fact_sheet import Fact, Told
from sparsemodel.compiler.plans.explain import explanation, option_words, source_words, stage_words
from sparsemodel.compiler.plans.graph import plan_graph
from sparsemodel.compiler.plans.reasons import expectation
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
    able: bool = False
    """Whether it could solve the problem, and another plan is preferred."""


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """What the compiler decided; made without solving anything."""

    problem: str
    """One line: what is minimised over what."""
    stages: tuple[Stage, ...]
    rejected: tuple[Rejection, ...]
    told: Told
    """What is known; the rest of it is found when somebody reads :attr:`facts`."""
    reductions: tuple[str, ...]
    restricted: str
    """How the objective is minimised on a support."""
    notes: tuple[str, ...] = ()
    """What would change the picture."""
    adapters: tuple[str, ...] = ()
    """What is done so that backends can solve what they cannot by themselves."""
    forecast: Forecast | None = None
    """What the plan did on the measured problems most like this one; None when asked for."""
    closeness: str = ""
    """What the forecast's quality is relative to."""
    until_agreement: bool = False
    """Whether fresh starts end when two of them have come to the same objective."""
    until_clear: bool = False
    """Whether stages end when the support stands out, as ``sparsemodel.driver`` judges it."""

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Return what is known of the problem; what no decision needed is found when first read."""
        return self.told.facts

    @property
    def chosen(self) -> str:
        """Return the name of the first stage's backend."""
        return self.stages[0].label

    @property
    def outline(self) -> str:
        """Return the stages as a recipe, which ``solve`` takes.

        ``>`` hands the point on, ``|`` starts afresh, options that are not the defaults follow a
        colon.
        """
        text = ""
        for stage in self.stages:
            link = {"zero": " | ", "last": " > ", "best": " | best "}[stage.start] if text else ""
            text += link + stage.label + option_words(stage)
        return text

    def outlook(self) -> list[tuple[str, str]]:
        """Return what the plan is expected to do and when it ends early; empty when asked for."""
        rows: list[tuple[str, str]] = []
        if self.forecast is not None:
            similar = self.forecast.similar
            rows.append(("expected", expectation(self.forecast)))
            text = f"the {len(similar)} measured problems most like this one, among them "
            text += f"{', '.join(similar[:3])}; {self.closeness}"
            if not similar:
                text = f"what the author of {self.stages[0].label} expects; {self.closeness}"
            rows.append(("judged from", text))
        ends = []
        if self.until_agreement and sum(stage.start == "zero" for stage in self.stages) > 2:
            ends.append("two fresh starts come to the same objective")
        if self.until_clear and len(self.stages) > 1:
            ends.append("each chosen entry is worth far more than any other")
        if ends:
            rows.append(("ends early", f"where {', or where '.join(ends)}"))
        return rows

    def __str__(self) -> str:
        return explanation(self)

    def graph(self) -> Any:
        """Return the plan as a ``networkx.DiGraph`` from ``"problem"`` to ``"solution"``.

        Nodes carry ``kind``, ``label`` and ``detail``, edges a ``label``:
        ``sparsemodel.reporting.plots.plan`` draws it.
        """
        return plan_graph(self)

    def _repr_html_(self) -> str:
        steps = [
            (f"{i}. {stage.label}{option_words(stage)}", stage_words(stage, first=i == 1))
            for i, stage in enumerate(self.stages, 1)
        ]
        others = [(r.backend, "; ".join(r.reasons)) for r in self.rejected]
        return markup.panel(
            "Plan",
            self.problem,
            markup.facts([*steps, ("on a support", self.restricted), *self.outlook()]),
            *(markup.sentence(note) for note in (*self.adapters, *self.notes)),
            markup.folded(
                f"What is known ({len(self.facts)})",
                markup.facts((f.name, f"{f.value} {source_words(f)}") for f in self.facts),
            ),
            markup.folded(
                f"Reductions ({len(self.reductions)})" if self.reductions else "",
                "".join(markup.sentence(text) for text in self.reductions),
            ),
            markup.folded(f"Not taken ({len(self.rejected)})", markup.facts(others)),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data."""
        return {
            "problem": self.problem,
            "facts": [
                {
                    "name": f.name,
                    "value": f.value,
                    "provenance": f.provenance,
                    "source": f.source,
                    "passes": f.passes,
                }
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
            "rejected": [
                {"backend": r.backend, "able": r.able, "reasons": list(r.reasons)}
                for r in self.rejected
            ],
            "notes": list(self.notes),
        }


__all__ = ["Plan", "Rejection", "Stage"]
