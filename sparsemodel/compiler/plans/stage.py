"""The stages of a plan, and the backends that are not used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

from sparsemodel.compiler.adapters.adapt import innermost
from sparsemodel.interfaces import Backend

LINKS = {"zero": " | ", "last": " > ", "best": " | best "}
"""What stands before a stage in a recipe, by where it starts."""

_FROM = {"zero": "from the start, ", "last": "from there, ", "best": "from the best so far, "}


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

    @property
    def options(self) -> str:
        """Return the options that are not the defaults, as recipes write them."""
        backend = innermost(self.backend)
        usual = type(backend)().options()
        given = {name: v for name, v in backend.options().items() if v != usual[name]}
        if self.max_iter is not None:
            given["max_iter"] = self.max_iter
        return "".join(f":{name}={value}" for name, value in given.items())

    def words(self, *, first: bool = False) -> str:
        """Return where the stage starts and why it is run."""
        return self.why if first else f"{_FROM[self.start]}{self.why}"


@final
@dataclass(frozen=True, slots=True)
class Rejection:
    """A backend that is not used, and why."""

    backend: str
    reasons: tuple[str, ...]
    able: bool = False
    """Whether it could solve the problem, and another plan is preferred."""
