"""Recipes: plans as text, so that they can stand in tables, be measured, and be asked for.

``nhtp > local_search | gomp > local_search`` runs NHTP and swaps from where it ends, then
generalised matching pursuit from the beginning and swaps from there; the best point wins.
``best local_search`` starts from the best point so far, ``local_search:removal=all`` sets an
option.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, final

from sparsemodel.interfaces import Backend, ModelError

Start = Literal["zero", "last", "best"]


@final
@dataclass(frozen=True, slots=True)
class Step:
    """One backend of a recipe: its registered name, where it starts, its options."""

    backend: str
    start: Start
    options: dict[str, str] = field(default_factory=dict)

    def apply(self, backend: Backend) -> Backend:
        """Return ``backend`` with this step's options.

        Raises
        ------
        ModelError
            When it has no such option, or the text is not a value of the option's kind.
        """
        if not self.options:
            return backend
        known = backend.options()
        given = {
            name: _like(known, self.backend, name, text) for name, text in self.options.items()
        }
        return type(backend)(**(known | given))


def is_recipe(text: str) -> bool:
    """Return whether ``text`` is more than the name of a backend."""
    return any(mark in text for mark in ">|:")


@cache
def parse(recipe: str) -> tuple[Step, ...]:
    """Return the steps of a recipe.

    Raises
    ------
    ModelError
        When a step has no name, or an option no value.
    """
    steps = []
    for chain in recipe.split("|"):
        for position, text in enumerate(chain.split(">")):
            start: Start = "last" if position else "zero"
            word = text.strip()
            if word.startswith("best "):
                start, word = "best", word.removeprefix("best ").strip()
            name, *options = word.split(":")
            halves = (option.partition("=") for option in options)
            pairs = {key.strip(): value.strip() for key, _, value in halves}
            if not name.strip() or not all(key and value for key, value in pairs.items()):
                raise ModelError(
                    f"{recipe!r} is not a plan: write for instance 'nhtp > local_search', with "
                    "options as in 'local_search:removal=all' and '|' before a fresh start."
                )
            steps.append(Step(name.strip(), start, pairs))
    return tuple(steps)


def _like(known: dict[str, Any], backend: str, name: str, text: str) -> Any:
    """Return ``text`` as a value of the type of an option's default."""
    if name not in known:
        options = ", ".join(sorted(known)) or "none"
        raise ModelError(f"{backend} has no option {name!r}; it has {options}.")
    default = known[name]
    try:
        if isinstance(default, bool):
            return {"true": True, "false": False}[text.lower()]
        if isinstance(default, str):
            return text
        if default is None:
            return float(text) if not text.isdigit() else int(text)
        return type(default)(text)
    except (KeyError, ValueError, TypeError):
        kind = type(default).__name__
        raise ModelError(f"{backend}:{name}={text} needs a value of kind {kind}.") from None
