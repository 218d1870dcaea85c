"""A plan: what will be run, why, and why not the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast, final

import numpy as np

from sparsemodel.arguments import rejects_unknown_arguments
from sparsemodel.compiler.deferred import Deferred
from sparsemodel.compiler.facts.fact_sheet import Fact
from sparsemodel.compiler.plans.stage import LINKS, Rejection, Stage
from sparsemodel.documents.document import Document, Facts, Items, Section
from sparsemodel.documents.documented import Documented
from sparsemodel.documents.text import as_text
from sparsemodel.loading import networkx

_SEEN = ("loss", "design", "covariance", "samples", "correlation")
_COSTS = ("memory of the data", "memory of a solve")
_STEPS = 6
_MORE = (
    "explain(full=True) adds the reasons, all facts, reductions and theorems; problem.certify() "
    "bounds how far the result is from the best."
)
_AFTERWARDS = (
    "problem.certify() bounds how far the result is from the best, without these assumptions"
)


@final
class Words(NamedTuple):
    """What a plan says of the problem."""

    problem: str
    """One line: what is minimised over what."""
    reductions: tuple[str, ...]
    restricted: str
    """How the objective is minimised on a support."""
    notes: tuple[str, ...]
    """What would change the picture."""
    adapters: tuple[str, ...]
    """What is done so that backends can solve what they cannot by themselves."""


@final
@dataclass(frozen=True, slots=True, repr=False)
class Plan(Documented):
    """What the compiler decided; made without solving anything."""

    stages: tuple[Stage, ...]
    others: Deferred[Rejection]
    """The backends that are not used; read them as :attr:`rejected`."""
    known: Deferred[Fact]
    """What is known; the rest of it is computed when :attr:`facts` is read."""
    said: Deferred[Any]
    """What it says of the problem; read as :attr:`words`."""
    until_agreement: bool = False
    """Whether fresh starts end when two of them have come to the same objective."""
    clear_from: float = np.inf
    """Stages end where each chosen unit is worth more than so many times what another gains."""

    def from_near(self) -> Plan:
        """Return what is left of the plan from a start near a solution: its last stage.

        The stages before it only bring it near a solution. A plan of several fresh starts stays.
        """
        last = self.stages[-1]
        return self if last.start == "zero" else replace(self, stages=(last,))

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Return what is known of the problem; what no decision needed is found when first read."""
        return self.known.found

    @property
    def words(self) -> Words:
        """Return what the plan says of the problem."""
        return cast("Words", self.said.found)

    @property
    def rejected(self) -> tuple[Rejection, ...]:
        """Return the backends that are not used, and why."""
        return self.others.found

    @property
    def chosen(self) -> str:
        """Return the name of the first stage's backend."""
        return self.stages[0].label

    @property
    def outline(self) -> str:
        """Return the stages as a recipe, which ``solve`` takes.

        ``>`` hands the point on, ``|`` starts again, options that are not the defaults follow a
        colon.
        """
        text = ""
        for stage in self.stages:
            text += (LINKS[stage.start] if text else "") + stage.label + stage.options
        return text

    def outlook(self) -> list[tuple[str, str]]:
        """Return when the plan ends early."""
        rows: list[tuple[str, str]] = []
        ends = []
        if self.until_agreement and sum(stage.start == "zero" for stage in self.stages) > 2:
            ends.append("two starts in a row reach the same objective")
        if np.isfinite(self.clear_from) and len(self.stages) > 1:
            ends.append(f"each chosen entry is worth {self.clear_from:g} times what another gains")
        if ends:
            rows.append(("ends early", f"if {', or if '.join(ends)}"))
        return rows

    def document(self) -> Document:
        """Return what was seen, what is run and why, what is not, and what would change it."""
        seen = [(f.name, f"{f.value}  {f.words}") for f in self.facts]
        steps = tuple(
            f"{i}. {stage.label}{stage.options}: {stage.words(first=i == 1)}"
            for i, stage in enumerate(self.stages, 1)
        )
        runs = [("on a support", self.words.restricted), *self.outlook()]
        return Document(
            kind="Plan",
            title="",
            subject=self.words.problem,
            sections=(
                Section("Facts", (Facts(seen),)),
                Section(
                    "Reductions (undone in the solution; certificates use your data)",
                    (Items(self.words.reductions),),
                ),
                Section("On the way", (Items(self.words.adapters),)),
                Section("Plan", (Items(steps), Facts(runs)), folded=False),
                Section("What is proved, each under its own assumptions", (Facts(self._proved()),)),
                *self._not_taken(),
                Section("What would change this", (Items(self.words.notes),), folded=False),
            ),
        )

    def _proved(self) -> list[tuple[str, str]]:
        proved = {stage.label: stage.backend.guarantee for stage in self.stages}
        rows = [(label, text) for label, text in proved.items() if text]
        if self.words.adapters and not rows:
            rows.append(("beforehand", "nothing, since the backends work on an easier objective"))
        return [*rows, ("afterwards", _AFTERWARDS)]

    def _not_taken(self) -> list[Section]:
        """Return the backends that could run by what speaks against them, and those that cannot."""
        able: dict[str, list[tuple[str, str]]] = {}
        unable: dict[str, list[str]] = {}
        for rejection in self.rejected:
            first, rest = rejection.reasons[0], "; ".join(rejection.reasons[1:])
            if rejection.able:
                able.setdefault(first, []).append((rejection.backend, rest))
            else:
                unable.setdefault("; ".join(rejection.reasons), []).append(rejection.backend)
        parts = []
        for reason, rows in able.items():
            alone = Facts([row for row in rows if row[1]])
            together = ", ".join(name for name, rest in rows if not rest)
            others = Items((together,) if together else ())
            parts.append(Section(f"Not chosen: {reason}", (alone, others)))
        cannot = [(", ".join(names), reason) for reason, names in unable.items()]
        return [*parts, Section("Not applicable", (Facts(cannot),))]

    def summary(self, more: str = _MORE) -> Document:
        """Return the plan in a few lines: what was seen, what is run and why, what it costs.

        ``more`` says how to learn more; by default in words of Python.
        """
        facts = {fact.name: fact for fact in self.facts}
        seen = [(name, facts[name].value) for name in _SEEN if name in facts]
        memory = [facts[name].value for name in _COSTS if name in facts]
        if memory:
            seen.append(("memory", " for the data, ".join(memory) + " for a solve"))
        steps = [
            f"{i}. {stage.label}{stage.options}: {stage.words(first=i == 1)}"
            for i, stage in enumerate(self.stages, 1)
        ]
        if len(steps) > _STEPS:
            steps = [*steps[: _STEPS - 1], f"... and {len(steps) - _STEPS + 1} more"]
        proved = {s.label: s.backend.always for s in self.stages if s.backend.always}
        able = sum(rejection.able for rejection in self.rejected)
        backends = "backend is" if able == 1 else "backends are"
        others = f"{able} other {backends} applicable, {len(self.rejected) - able} not."
        return Document(
            kind="Plan",
            title="",
            subject=self.words.problem,
            sections=(
                Section("Data", (Facts(seen),)),
                Section("Plan", (Items(tuple(steps)), Facts(self.outlook())), folded=False),
                Section("Proved for any data", (Facts([*proved.items()]),)),
                Section("What would change this", (Items(self.words.notes),)),
                Section("More", (Items((f"{others} {more}",)),)),
            ),
        )

    def __repr__(self) -> str:
        return f"<Plan: {self.outline}>"

    def text(self, *, full: bool = False) -> str:
        """Return the summary, or all of the document, as text."""
        return as_text(self.document() if full else self.summary())

    def __str__(self) -> str:
        return self.text()

    @rejects_unknown_arguments
    def graph(self) -> Any:
        """Return the plan as a ``networkx.DiGraph`` from ``"problem"`` to ``"solution"``.

        Nodes carry ``kind``, ``label`` and ``detail``, edges a ``label``:
        ``sparsemodel.reporting.plots.plan`` draws it.
        """
        return plan_graph(
            self.words.problem, self.words.reductions, self.stages, self.words.restricted
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data."""
        return {
            "problem": self.words.problem,
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
            "reductions": list(self.words.reductions),
            "adapters": list(self.words.adapters),
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
            "restricted": self.words.restricted,
            "rejected": [
                {"backend": r.backend, "able": r.able, "reasons": list(r.reasons)}
                for r in self.rejected
            ],
            "notes": list(self.words.notes),
        }


def plan_graph(
    problem: str, reductions: Sequence[str], steps: Sequence[Stage], restricted: str
) -> Any:
    """Return a ``networkx.DiGraph`` from ``"problem"`` to ``"solution"``.

    Nodes carry ``kind`` (``"problem"``, ``"reduction"``, ``"stage"``, ``"choice"``, ``"step"``),
    ``label`` and ``detail``; stages also carry ``chain``, counted from 0 (None where they start
    from the best of several). An edge from one stage to another hands over a point, and its
    ``label`` says which.
    """
    nx = networkx()
    graph = nx.DiGraph()
    graph.add_node("problem", kind="problem", label="problem", detail=problem)
    last = "problem"
    for number, text in enumerate(reductions, start=1):
        node = f"reduction {number}"
        graph.add_node(node, kind="reduction", label=f"reduce: {text}", detail=text)
        graph.add_edge(last, node, label="")
        last = node
    stages: list[str] = []
    chain: int | None = None
    for number, stage in enumerate(steps, start=1):
        node = f"stage {number}"
        if stage.start == "best" and stages:
            chain = None
        elif stage.start == "zero" or chain is None:
            chain = sum(1 for earlier in steps[: number - 1] if earlier.start == "zero")
        label = f"{number}. {stage.label}{stage.options}"
        graph.add_node(node, kind="stage", label=label, detail=stage.why, chain=chain)
        if not stages or stage.start == "zero":
            graph.add_edge(last, node, label="from the start")
        elif stage.start == "last":
            graph.add_edge(stages[-1], node, label="its point")
        else:
            for earlier in stages:
                graph.add_edge(earlier, node, label="the best point")
        stages.append(node)
    end = stages[-1]
    leaves = [node for node in stages if graph.out_degree(node) == 0]
    if len(leaves) > 1:
        graph.add_node("best", kind="choice", label="the best point", detail="lowest objective")
        graph.add_edges_from(((node, "best") for node in leaves), label="")
        end = "best"
    graph.add_node("polish", kind="step", label="minimise on its support", detail=restricted)
    graph.add_edge(end, "polish", label="")
    graph.add_node("solution", kind="step", label="solution on your data", detail="checked again")
    graph.add_edge("polish", "solution", label="")
    return graph
