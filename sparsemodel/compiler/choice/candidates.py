"""The backends that can solve a form, by what they say of themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np

from sparsemodel.compiler.adapters.adapt import Adapted, adapt
from sparsemodel.compiler.choice.effort import Effort, patience
from sparsemodel.compiler.choice.recipes import Start
from sparsemodel.compiler.plans.stage import Stage
from sparsemodel.interfaces import Backend, Form, Role
from sparsemodel.registry import usable_backends


@final
@dataclass(frozen=True, slots=True)
class Choice:
    """The stages that are run."""

    stages: tuple[Stage, ...]
    clear_from: float = np.inf
    """The plan may end where each unit is worth more than so many times what another gains."""
    notes: tuple[str, ...] = ()
    """What is not run by default, and how to request it."""


@final
class Candidates:
    """The usable backends; each is made and judged when it is first needed.

    Parameters
    ----------
    form
        The reduced form.
    effort, time_limit
        How long searches go on without improvement, and what is run at all.
    """

    def __init__(
        self, form: Form, effort: Effort = "medium", time_limit: float | None = None
    ) -> None:
        self._form, self._patience = form, patience(effort, time_limit)
        self.patient = effort == "high" or time_limit is not None
        """Whether also what takes long by forecast is run."""
        self.quick = effort == "low"
        """Whether one good run is all that is wanted, so that supports are not enumerated."""
        self._known: dict[str, type[Backend]] = dict(usable_backends())
        self._adapted: dict[str, Adapted] = {}

    def stage(
        self,
        name: str,
        why: str = "",
        start: Start = "zero",
        *,
        share: float = 1.0,
        max_iter: int | None = None,
    ) -> Stage:
        """Return a stage that runs a backend, with the adapters that the form needs.

        ``why`` defaults to what the backend is for; ``share`` is a factor on its patience, and
        ``max_iter`` a limit of its iterations.
        """
        factor = share * self._patience
        made = self._usual(name)
        if factor != 1.0:
            made = adapt(self._known[name]().with_patience(factor), self._form)
        return Stage(made.backend, why or self.purpose(name), name, start, max_iter)

    def purpose(self, name: str) -> str:
        """Return what a backend is for."""
        return self._known[name].purpose or "the first that can"

    def objections(self, name: str) -> tuple[str, ...]:
        """Return why a backend cannot solve the form; empty where it can."""
        return self._usual(name).objections

    def _usual(self, name: str) -> Adapted:
        """Return a backend with its defaults, and the adapters that the form needs."""
        if name not in self._adapted:
            self._adapted[name] = adapt(self._known[name](), self._form)
        return self._adapted[name]

    def able(self, role: Role) -> Iterator[str]:
        """Yield the backends that take a role here, the one that promises most first."""
        return self._promising(role)

    def best(self, role: Role) -> str | None:
        """Return the backend that takes a role here and promises most; None where none can."""
        return next(self.able(role), None)

    def fallback(self) -> Choice | None:
        """Return the one backend that promises most, whatever its roles; None where none can."""
        name = next(self._promising(None), None)
        return None if name is None else Choice((self.stage(name),))

    def names(self) -> list[str]:
        """Return all names, sorted."""
        return sorted(self._known)

    def _promising(self, role: Role | None) -> Iterator[str]:
        """Yield those that can, by their priors; backends without one last, ties by name."""
        ordered = _by_promise(tuple(self._known.items()), role)
        return (name for name in ordered if not self.objections(name))


@lru_cache(maxsize=64)
def _by_promise(known: tuple[tuple[str, type[Backend]], ...], role: Role | None) -> list[str]:
    """Return the names of the backends that take a role, or of all, by their priors.

    A backend with several names is there once, by its own.
    """

    def expected(item: tuple[str, type[Backend]]) -> tuple[float, float, str]:
        prior = item[1].prior
        ends = (np.inf, np.inf) if prior is None else (-prior.close, prior.excess)
        return (*ends, item[0])

    once = {item[1]: item for item in sorted(known, key=lambda item: item[0] == item[1].name)}
    taking = [item for item in once.values() if role is None or role in item[1].roles]
    return [name for name, _ in sorted(taking, key=expected)]
