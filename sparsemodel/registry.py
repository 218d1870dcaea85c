"""Discovery of backends through entry points; a broken plug-in never breaks the rest."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from sparsemodel.interfaces import Backend, BackendUnavailableError, Capabilities

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "sparsemodel.backends"

_lock = threading.Lock()
_entries: dict[str, EntryPoint] | None = None
_loaded: dict[str, type[Backend] | str] = {}
_distributions: dict[str, str] = {}  # by backend: a distribution parses its metadata when asked


@final
@dataclass(frozen=True, slots=True)
class BackendInfo:
    """A backend that was found: where it comes from, and why it cannot be used (if so)."""

    name: str
    distribution: str
    problem: str | None = None

    @property
    def available(self) -> bool:
        """Return whether it could be loaded."""
        return self.problem is None


def entries() -> Mapping[str, EntryPoint]:
    """Return the entry points by name; found once. Loads nothing."""
    global _entries
    from importlib.metadata import entry_points  # costs more to import than all of this package

    with _lock:
        if _entries is None:
            # Where two distributions use one name the built-in backend keeps it, and otherwise
            # the same one wins whatever the order of the search path.
            named = [(e, "" if e.dist is None else e.dist.name) for e in entry_points(group=GROUP)]
            named.sort(key=_precedence, reverse=True)
            _distributions.update((e.name, distribution) for e, distribution in named)
            _entries = {e.name: e for e, _ in named}
            _entries = dict(sorted(_entries.items()))
        return _entries


def _precedence(named: tuple[EntryPoint, str]) -> tuple[bool, str, str]:
    entry, distribution = named
    return distribution != "sparsemodel", distribution, entry.value


def refresh() -> None:
    """Forget what was found, for packages installed while the process runs."""
    global _entries
    with _lock:
        _entries = None
        _loaded.clear()
        _distributions.clear()


def backend_class(name: str) -> type[Backend]:
    """Return the backend class registered as ``name``.

    Raises
    ------
    BackendUnavailableError
        When there is none of that name (close names are suggested), or it could not be loaded.
    """
    found = _load(name)
    if isinstance(found, str):
        raise BackendUnavailableError(f"The backend {name!r} could not be loaded: {found}")
    return found


def _closest(name: str, known: Iterable[str]) -> str | None:
    """Return the name that was probably meant; exchanged letters are the likeliest slip."""
    from difflib import get_close_matches

    table = sorted(known)
    exchanged = [one for one in table if sorted(one) == sorted(name)]
    return next(iter(get_close_matches(name, exchanged or table, n=1)), None)


def _load(name: str) -> type[Backend] | str:
    table = entries()
    if name not in table:
        close = _closest(name, table)
        hint = f" Did you mean {close!r}?" if close else ""
        raise BackendUnavailableError(
            f"There is no backend {name!r}.{hint} Known: {', '.join(sorted(table)) or 'none'}."
        )
    if name not in _loaded:
        _loaded[name] = _import(table[name])
    return _loaded[name]


def _import(entry: EntryPoint) -> type[Backend] | str:
    # A plug-in is a stranger's code: whatever its import raises is its reason, not our crash.
    try:
        cls = entry.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}"
    if not (isinstance(cls, type) and issubclass(cls, Backend)):
        return f"{entry.value} is not a subclass of sparsemodel.interfaces.Backend"
    return _misfit(cls) or cls


def _misfit(cls: type[Backend]) -> str:
    """Return why planning with a class could fail, "" where nothing speaks against it."""
    from inspect import signature

    try:
        backend = cls()
        signature(backend.solve).bind(None, None)
        known = isinstance(backend.name, str) and isinstance(backend.capabilities, Capabilities)
    except Exception as error:  # noqa: BLE001 - a stranger's code
        return f"{cls.__name__} is not made as this release needs it: {error!r}"
    return "" if known else f"{cls.__name__} has no name or no Capabilities"


def available_backends() -> tuple[BackendInfo, ...]:
    """Return every discovered backend, third parties' included, with what is wrong if anything."""
    out = []
    for name in entries():
        found = _load(name)
        problem = found if isinstance(found, str) else None
        out.append(BackendInfo(name, _distributions.get(name) or "unknown", problem))
    return tuple(out)


def usable_backends() -> tuple[tuple[str, type[Backend]], ...]:
    """Return the names and classes of the backends that can be loaded."""
    loaded = [(name, _load(name)) for name in entries()]
    return tuple((name, cls) for name, cls in loaded if not isinstance(cls, str))


__all__ = [
    "GROUP",
    "BackendInfo",
    "available_backends",
    "backend_class",
    "entries",
    "refresh",
    "usable_backends",
]
