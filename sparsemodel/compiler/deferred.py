"""Parts of a plan that are computed when they are first read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, final

T = TypeVar("T")


@final
class Deferred(Generic[T]):
    """Several things that are found when they are first read, and kept.

    Pickled and copied with all of them, and without what they are found from.
    """

    def __init__(self, find: Callable[[], tuple[T, ...]]) -> None:
        self._find = find
        self._found: tuple[T, ...] | None = None

    @property
    def found(self) -> tuple[T, ...]:
        """Return them."""
        if self._found is None:
            self._found = self._find()
        return self._found

    def __reduce__(self) -> tuple[Any, ...]:
        return known, (self.found,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Deferred) and self.found == other.found

    def __hash__(self) -> int:
        return hash(self.found)


def known(found: tuple[T, ...]) -> Deferred[T]:
    """Return what was found already."""
    return Deferred(lambda: found)
