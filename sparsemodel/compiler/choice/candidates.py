"""The backends that can solve a form, by what they say of themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from sparsemodel.compiler.adapters import adapt
from sparsemodel.compiler.choice.recipes import Start
from sparsemodel.compiler.plans.stage import Stage
from sparsemodel.interfaces import Backend, Form, Role
from sparsemodel.registry import usable_backends


@final
@dataclass(frozen=True, slots=True)
class Choice:
    """The stages that are run."""

    stages: tuple[Stage, ...]
    until_clear: bool = False
    """Whether the plan may end where the support stands out."""
    notes: tuple[str, ...] = ()
    """What is not run unasked, and how to ask for it."""


@final
class Candidates:
    """The usable backends; one is made and judged when somebody asks for it.

    Parameters
    ----------
    form
        The reduced form.
    patience
        A factor on how long searches go on in vain.
    """

    def __init__(self, form: Form, patience: float = 1.0) -> None:
        self._form, self._patience = form, patience
        self._known: dict[str, type[Backend]] = dict(usable_backends())

    def stage(
        self, name: str, why: str = "", start: Start = "zero", *, share: float = 1.0
    ) -> Stage:
        """Return a stage that runs a backend, with the adapters that the form asks for.

        ``why`` defaults to what the backend is for; ``share`` is a factor on its patience.
        """
        value = self._known[name]().with_patience(share * self._patience)
        return Stage(adapt(value, self._form).backend, why or self.purpose(name), name, start=start)

    def purpose(self, name: str) -> str:
        """Return what a backend is for."""
        return self._known[name].purpose or "the first that can"

    def objections(self, name: str) -> tuple[str, ...]:
        """Return why a backend cannot solve the form; empty where it can."""
        return adapt(self._known[name](), self._form).objections

    def able(self, role: Role) -> list[str]:
        """Return the backends that take a role here, the one that promises most first."""
        taking = sorted(n for n, cls in self._known.items() if role in cls.roles)
        return [n for n in sorted(taking, key=self._expected) if not self.objections(n)]

    def best(self, role: Role) -> str | None:
        """Return the backend that takes a role here and promises most; None where none can."""
        taking = sorted(n for n, cls in self._known.items() if role in cls.roles)
        ordered = sorted(taking, key=self._expected)
        return next((n for n in ordered if not self.objections(n)), None)

    def fallback(self) -> Choice | None:
        """Return the one backend that promises most, whatever its roles; None where none can."""
        ordered = sorted(sorted(self._known), key=self._expected)
        name = next((n for n in ordered if not self.objections(n)), None)
        return None if name is None else Choice((self.stage(name),))

    def names(self) -> list[str]:
        """Return all names, sorted."""
        return sorted(self._known)

    def _expected(self, name: str) -> tuple[float, float]:
        """Return what sorts backends by their priors, those without one last."""
        prior = self._known[name].prior
        return (np.inf, np.inf) if prior is None else (-prior.close, prior.excess)


__all__ = ["Candidates", "Choice"]
