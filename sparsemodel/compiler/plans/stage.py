"""The stages of a plan, and the backends that are none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, final

from sparsemodel.compiler.adapters import innermost
from sparsemodel.interfaces import Backend

_FROM = {"zero": "afresh, ", "last": "from there, ", "best": "from the best so far, "}


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


@final
class Others:
    """The backends that are not used; found when somebody reads them."""

    def __init__(self, find: Callable[[], tuple[Rejection, ...]]) -> None:
        self._find = find
        self._found: tuple[Rejection, ...] | None = None

    @property
    def found(self) -> tuple[Rejection, ...]:
        """Return them."""
        if self._found is None:
            self._found = self._find()
        return self._found

    def __reduce__(self) -> tuple[Any, ...]:
        return _those, (self.found,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Others) and self.found == other.found

    def __hash__(self) -> int:
        return hash(self.found)


def _those(found: tuple[Rejection, ...]) -> Others:
    return Others(lambda: found)


__all__ = ["Others", "Rejection", "Stage"]
