"""The backends' classes by name, for example ``sm.backends.NHTP``; loaded on first use.

Built-in and third-party backends alike are found through their entry points.
"""

from __future__ import annotations

from sparsemodel.interfaces import Backend
from sparsemodel.registry import backend_class, entries, registered


def _by_class_name() -> dict[str, str]:
    own = {cls.__name__: name for name, cls in registered().items()}
    return own | {entry.attr: name for name, entry in reversed(list(entries().items()))}


def __getattr__(name: str) -> type[Backend]:
    table = _by_class_name()
    if name in table:
        return backend_class(table[name])
    if name in entries() or name in registered():
        return backend_class(name)
    raise AttributeError(
        f"There is no backend class {name!r}; known: {', '.join(sorted(table)) or 'none'}."
    )


def __dir__() -> list[str]:
    return sorted(_by_class_name())
