"""Judge every answer that is given while a watch is kept."""

from __future__ import annotations

import functools
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any, final

from sparsemodel.certificates import Certificate, PrecisionCertificate
from sparsemodel.certificates import certify as _certify
from sparsemodel.certificates import verify as _verify
from sparsemodel.certificates.statements.claims import Claim
from sparsemodel.driver import LowerBound
from sparsemodel.interfaces.precision import JointPrecision, SparsePrecision
from sparsemodel.modelling.formulations.declaration import Declaration
from sparsemodel.modelling.problem import Problem
from sparsemodel.modelling.results.solution import Solution
from tests.referee.judge import RefereeError, Ruling, rule

_form: Any = Problem.form.fget  # type: ignore[attr-defined]

_EFFORT = 0.25
"""Supports that are tried, relative to a judgement that was asked for."""

_LIBRARY = (
    "sparsemodel.certificates",
    "sparsemodel.certificates.certify",
    "sparsemodel.certificates.verify",
    "sparsemodel.cli.commands.verify",
)
"""Modules of the library where ``certify`` and ``verify`` of a form have names."""


@final
@dataclass(slots=True)
class Watch:
    """The counts of a watch."""

    judged: Counter[str] = field(default_factory=Counter)
    """Answers by kind, and by what was judged of them: ``"solution"``, ``"solution: bound"``."""
    unjudged: Counter[str] = field(default_factory=Counter)
    """What could not be judged: ``"solution: two variables have one name"``."""
    seconds: float = 0.0
    """Time of the processor that the judgements took."""
    certifying: bool = False
    """Whether ``Problem.certify`` runs, whose answer is judged when it returns."""

    def add(self, name: str, ruling: Ruling) -> None:
        """Count a ruling."""
        if ruling.judged:
            self.judged[name] += 1
        for what in set(ruling.judged):
            self.judged[f"{name}: {what}"] += 1
        for reason in set(ruling.unjudged):
            self.unjudged[f"{name}: {reason}"] += 1

    def hear(self, name: str, problem: Problem, answer: Any) -> None:
        """Judge an answer and count it; raise RefereeError for a fault."""
        began = time.thread_time()
        if isinstance(answer, Solution):  # by the bound that it has: to look for one costs time
            lower = LowerBound(answer.lower.value, answer.lower.optimal)
            answer = replace(answer, lower=lower)
        ruling = rule(problem, answer, effort=_EFFORT)
        self.seconds += time.thread_time() - began
        self.add(name, ruling)
        if ruling.faults:
            raise RefereeError(f"The {name} of {problem!r} is not what it says", ruling.faults)


@final
@dataclass(frozen=True, slots=True)
class Seen:
    """Whose form is whose, for functions that are handed the form alone."""

    problems: dict[int, tuple[Any, Problem]]

    def add(self, problem: Problem, form: Any) -> None:
        """Remember a form; it is kept, so that no other gets its identity."""
        self.problems[id(form)] = (form, problem)

    def problem(self, form: Any) -> Problem | None:
        """Return the problem that has the form now; None when its parameters have changed."""
        _, problem = self.problems.get(id(form), (None, None))
        return problem if problem is not None and problem._compiled().form is form else None


@contextmanager
def watching(modules: Iterable[ModuleType] = ()) -> Iterator[Watch]:
    """Judge what ``solve``, ``path``, ``certify``, ``prove`` and ``verify`` return in the block.

    Parameters
    ----------
    modules
        Modules that have imported :func:`sparsemodel.certificates.verify` by name.

    Yields
    ------
    Watch
        What was judged and what was not, counted.
    """
    watch, seen = Watch(), Seen({})
    undo: list[tuple[Any, str, Any]] = []

    def put(owner: Any, name: str, new: Any) -> None:
        undo.append((owner, name, vars(owner)[name]))
        setattr(owner, name, new)

    def form(self: Problem) -> Any:
        found = _form(self)
        seen.add(self, found)
        return found

    put(Declaration, "form", property(form, doc=Problem.form.__doc__))
    kinds = {"solve": "solution", "path": "path", "certify": "certificate", "prove": "proof"}
    for method, kind in kinds.items():
        put(Problem, method, _heard(getattr(Problem, method), kind, watch, seen))
    watched = {id(_verify): _verified(watch, seen), id(_certify): _certified(watch, seen)}
    places = [sys.modules[name] for name in _LIBRARY if name in sys.modules]
    for module in (*places, *modules):
        for name, bound in list(vars(module).items()):
            if id(bound) in watched:
                put(module, name, watched[id(bound)])
    try:
        yield watch
    finally:
        for owner, name, old in reversed(undo):
            setattr(owner, name, old)


def _heard(method: Callable[..., Any], name: str, watch: Watch, seen: Seen) -> Callable[..., Any]:
    @functools.wraps(method)
    def watched(self: Problem, *args: Any, **options: Any) -> Any:
        before, watch.certifying = watch.certifying, name == "certificate"
        try:
            answer = method(self, *args, **options)
        finally:
            watch.certifying = before
        seen.add(self, self._kept and self._kept.form)
        watch.hear(name, self, answer)
        return answer

    return watched


def _verified(watch: Watch, seen: Seen) -> Callable[..., Any]:
    @functools.wraps(_verify)
    def verified(certificate: Any, form: Any, **options: Any) -> Any:
        answer = _verify(certificate, form, **options)
        if not hasattr(certificate, "claim"):
            graph = isinstance(form, (SparsePrecision, JointPrecision))
            certificate = (PrecisionCertificate if graph else Certificate).load(certificate)
        _of_form(watch, seen, "verification", form, certificate)
        order = list(Claim)
        weaker = order.index(answer.claim) < order.index(certificate.claim)
        # Files of the first version may claim less than their numbers support.
        if weaker or (answer.claim is not certificate.claim and certificate.version > 1):
            raise RefereeError("The verification", [f"{answer.claim}, {certificate.claim}"])
        return answer

    return verified


def _certified(watch: Watch, seen: Seen) -> Callable[..., Any]:
    @functools.wraps(_certify)
    def certified(form: Any, *args: Any, **options: Any) -> Any:
        answer = _certify(form, *args, **options)
        if not watch.certifying:
            _of_form(watch, seen, "certificate", form, answer)
        return answer

    return certified


def _of_form(watch: Watch, seen: Seen, name: str, form: Any, answer: Any) -> None:
    problem = seen.problem(form)
    if problem is None:
        watch.unjudged[f"{name}: of a form that no problem has"] += 1
    else:
        watch.hear(name, problem, answer)
