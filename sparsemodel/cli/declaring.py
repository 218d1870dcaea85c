"""Options as frozen dataclasses: a field declares an option, and holds what was parsed.

A command's options are one dataclass. Fields made by :func:`option`, :func:`flag` and
:func:`positional` are options of the command line, named like the field; fields made by
:func:`part` hold another dataclass of options. Nothing else here knows ``argparse.Namespace``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import Field, field, fields
from typing import Any, TypeVar, get_type_hints

T = TypeVar("T")


def option(
    text: str,
    *,
    metavar: str | None = None,
    kind: Callable[[str], Any] = str,
    default: Any = None,
    choices: Iterable[str] | None = None,
    required: bool = False,
    group: str | None = None,
) -> Any:
    """Declare an option with a value; ``group`` is the heading it stands under in the help."""
    arguments = {"help": text, "type": kind, "choices": choices, "metavar": metavar}
    if required:
        return field(metadata={"arguments": {**arguments, "required": True}, "group": group})
    arguments["default"] = default
    return field(default=default, metadata={"arguments": arguments, "group": group})


def flag(text: str) -> Any:
    """Declare an option without a value: False unless it is given."""
    arguments = {"help": text, "action": "store_true"}
    return field(default=False, metadata={"arguments": arguments})


def positional(
    metavar: str, text: str, *, kind: Callable[[str], Any] = str, optional: bool = False
) -> Any:
    """Declare an argument that is given by its place."""
    arguments: dict[str, Any] = {"help": text, "type": kind, "metavar": metavar}
    if optional:
        arguments["nargs"] = "?"
    return field(metadata={"arguments": arguments, "positional": True})


def part(group: str | None = None) -> Any:
    """Declare a field that holds options of its own, under a heading of the help if given."""
    return field(metadata={"part": True, "group": group})


def add_options(parser: argparse.ArgumentParser, kind: type[Any]) -> None:
    """Declare the options of the dataclass ``kind`` to a parser."""
    groups: dict[str, Any] = {}
    for spec, group in _leaves(kind, None):
        if group is not None and group not in groups:
            groups[group] = parser.add_argument_group(group)
        place = parser if group is None else groups[group]
        name = spec.name if spec.metadata.get("positional") else spelling(spec.name)
        place.add_argument(name, **spec.metadata["arguments"])


def from_namespace(kind: type[T], namespace: argparse.Namespace) -> T:
    """Return what was parsed as a value of the dataclass ``kind``."""
    return _made(kind, vars(namespace))


def parsed(kind: type[T], parser: argparse.ArgumentParser, line: Sequence[str]) -> T:
    """Return the options on ``line``, read by a parser that knows no others."""
    add_options(parser, kind)
    return from_namespace(kind, parser.parse_args(line))


def recorded(options: Any) -> list[str]:
    """Return the options that differ from their defaults, as a command line.

    This is how a certificate remembers which problem it is about.
    """
    line: list[str] = []
    for spec in fields(options):
        value = getattr(options, spec.name)
        if spec.metadata.get("part"):
            line += recorded(value)
        elif not spec.metadata.get("positional") and value not in (None, spec.default):
            shown = ",".join(value) if isinstance(value, tuple) else str(value)
            line.append(spelling(spec.name) + ("" if value is True else f"={shown}"))
    return line


def spelling(name: str) -> str:
    """Return the option of a field: ``time_limit`` is ``--time-limit``."""
    return "--" + name.replace("_", "-")


def _leaves(kind: type[Any], heading: str | None) -> Iterator[tuple[Field[Any], str | None]]:
    """Yield the fields that are options, in their order, with their headings."""
    types = get_type_hints(kind)
    for spec in fields(kind):
        group = spec.metadata.get("group") or heading
        if spec.metadata.get("part"):
            yield from _leaves(types[spec.name], group)
        else:
            yield spec, group


def _made(kind: type[T], values: dict[str, Any]) -> T:
    types = get_type_hints(kind)
    held = {
        spec.name: _made(types[spec.name], values)
        if spec.metadata.get("part")
        else values[spec.name]
        for spec in fields(kind)  # type: ignore[arg-type]
    }
    return kind(**held)
