"""A backend is a small frozen value with a name. These checks need no problem."""

from __future__ import annotations

import dataclasses
import pickle
import re

from sparsemodel.interfaces import Backend, Capabilities, Cardinality, Form
from sparsemodel.testing.report import check


def is_described(backend: Backend) -> None:
    """A lower-case name, capabilities, a reference and what is proved, all strings."""
    check(
        re.fullmatch(r"[a-z][a-z0-9_]*", str(backend.name)),
        f"name is {backend.name!r}: it must be lower case, digits and underscores",
    )
    check(isinstance(backend.capabilities, Capabilities), "capabilities are missing")
    check(bool(type(backend).__doc__), "the class has no docstring")
    check(bool(backend.reference), "the reference is missing")
    check("\n" not in backend.reference + backend.guarantee, "more than one line in a description")


def is_a_frozen_value(backend: Backend) -> None:
    """Immutable, hashable, equal to another of the same options, with a telling repr."""
    check(dataclasses.is_dataclass(backend), "not a dataclass")
    options = backend.options()
    twin = type(backend)(**options)
    check(twin == backend, "not equal to a backend of the same options")
    check(hash(twin) == hash(backend), "equal backends have different hashes")
    shown = repr(backend)
    check(type(backend).__name__ in shown, f"repr {shown!r} does not name the class")
    for name, value in options.items():
        check(f"{name}={value!r}" in shown, f"repr {shown!r} does not show {name}")
        try:
            setattr(backend, name, value)
        except (AttributeError, TypeError):
            continue
        check(False, f"the option {name} can be set: use @dataclass(frozen=True)")


def can_be_pickled(backend: Backend) -> None:
    """A copy through pickle is equal."""
    for protocol in (2, pickle.HIGHEST_PROTOCOL):
        copy = pickle.loads(pickle.dumps(backend, protocol))
        check(copy == backend, f"pickle protocol {protocol} gives {copy!r}")


class _Unheard(Form):
    """A form that no backend knows."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        return (3,)

    @property
    def cardinality(self) -> Cardinality:
        return Cardinality(3, 1)


def objects_to_unknown_forms(backend: Backend) -> None:
    """A form it does not list is refused with words."""
    reasons = backend.objections(_Unheard())
    check(reasons, "accepts a form that it cannot know")
    check(all(str(reason) == reason for reason in reasons), f"objections: {reasons}")
