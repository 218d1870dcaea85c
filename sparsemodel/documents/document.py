"""What a document is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

MOST_BARS = 1000
"""Bars of a chart that are written out; the rest is counted."""


@final
@dataclass(frozen=True, slots=True)
class Paragraph:
    """A text; the pieces of it in ``code`` are to be typed."""

    text: str
    code: tuple[str, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Items:
    """Texts under each other."""

    texts: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True)
class Facts:
    """Names and values."""

    rows: Sequence[tuple[str, str]]
    header: tuple[str, str] = ("what", "value")
    """For tables that need one."""


@final
@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under a header."""

    header: tuple[str, ...]
    rows: Sequence[Sequence[str]]


@final
@dataclass(frozen=True, slots=True)
class Bar:
    """A named size; ``drawn`` says whether it is on the scale of the others."""

    name: str
    size: float
    text: str
    drawn: bool = True
    note: str = ""


@final
@dataclass(frozen=True, slots=True)
class Bars:
    """Named sizes, the most important ones first; renderers may leave out the last ones."""

    rows: Sequence[Bar]
    header: tuple[str, str] = ("name", "value")
    empty: str = ""
    """The text where there are none."""
    scale: float | None = None
    """The size of a full bar; None is the largest."""


@final
@dataclass(frozen=True, slots=True)
class Check:
    """Something that was checked or taken on trust; ``mark`` is yes, no or trust."""

    text: str
    word: str
    mark: str


@final
@dataclass(frozen=True, slots=True)
class Checklist:
    """What something rests on."""

    checks: tuple[Check, ...]


@final
@dataclass(frozen=True, slots=True)
class Series:
    """A line of a chart; ``style`` is a class of the style sheet."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    style: str
    steps: bool = False


@final
@dataclass(frozen=True, slots=True)
class Chart:
    """A picture of numbers, for renderers that draw."""

    series: tuple[Series, ...]
    title: str
    x_label: str
    y_label: str
    caption: str
    log: bool = False


@final
@dataclass(frozen=True, slots=True)
class Gauge:
    """A share of a range, for renderers that draw: marked ends and middle, with their values."""

    share: float
    label: str
    marks: tuple[tuple[str, str], ...]
    caption: str


Block = Paragraph | Items | Facts | Table | Bars | Checklist | Chart | Gauge


@final
@dataclass(frozen=True, slots=True)
class Section:
    """Blocks under a title."""

    title: str
    blocks: tuple[Block, ...]
    folded: bool = True
    """Whether a notebook shows the title alone until it is opened."""


@final
@dataclass(frozen=True, slots=True)
class Document:
    """A text with a title, in parts that every renderer knows."""

    kind: str
    """What the thing is: a certificate, a plan."""
    title: str
    """The main thing in a few words."""
    sections: tuple[Section, ...]
    headline: str = ""
    """The main thing in a sentence."""
    subject: str = ""
    """The problem that it is about, in a line."""
    mark: str = "plain"
    """How good the news is, for renderers with colours: good, fair, plain or bad."""
