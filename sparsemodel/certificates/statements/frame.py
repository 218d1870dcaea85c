"""The frame of every certificate: what all kinds say, and how each is kept and shown."""

from __future__ import annotations

import math
import os
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

from sparsemodel.arguments import rejects_unknown_arguments
from sparsemodel.certificates.files.codec import decode, encode, lines_of, read_lines
from sparsemodel.certificates.files.json_document import (
    checked_body,
    json_text,
    no_other_lines,
    read_text,
    signed,
)
from sparsemodel.certificates.files.packing import MAX_BYTES, announced
from sparsemodel.certificates.files.saving import save
from sparsemodel.certificates.statements.claims import ELSEWHERE, Assumption, Claim, gap_of
from sparsemodel.documents.document import (
    Bars,
    Chart,
    Check,
    Checklist,
    Document,
    Facts,
    Gauge,
    Items,
    Paragraph,
    Section,
)
from sparsemodel.documents.documented import Documented
from sparsemodel.documents.numbers import number, percent, readings_in_words, side_by_side
from sparsemodel.documents.text import WIDTH, as_text
from sparsemodel.interfaces import CertificateError, FloatArray
from sparsemodel.interfaces.errors import NameHints

VERSION = 2
"""Of the file format; earlier ones are read."""

_MARKS = {
    Claim.OPTIMAL: "good",
    Claim.ZERO: "good",
    Claim.WITHIN_GAP: "fair",
    Claim.NONE: "bad",
}
_CHECK_MARKS = {"checked": "yes", "taken on trust": "trust", "FAILS": "no"}

_ORIGIN = "Origin, as stated by the author of the certificate (verify() does not check it)"


def _again(record: str, command: str) -> Paragraph:
    """Return how to check a certificate that is saved under a name."""
    call = f'verify("{record}", problem.form)'
    text = (
        "To check every number again from your own data: declare the problem again and call "
        f"{call} of sparsemodel.certificates, with the certificate saved as {record}."
    )
    if command:
        return Paragraph(f"To check every number again from the data: {command}", (command,))
    return Paragraph(text, (call,))


_MORE = 'certificate.save("report.html"), or .md or .txt, writes the rest of it.'


class ProblemFrame(Protocol):
    """What identifies a problem, without its data."""

    def differences(self, other: Any) -> list[tuple[str, Any, Any]]:
        """Return ``(line, mine, theirs)`` for every entry in which two problems differ."""
        ...

    def sentence(self) -> str:
        """Return the problem in a line."""
        ...


def _moment(created: str) -> str:
    """Return a date and time for reading; a text that is none as it stands."""
    return created.replace("T", " ").replace("+00:00", " UTC")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class CertificateFrame(Documented, NameHints):
    """What is proved about a point, whatever the kind of problem.

    A kind declares its own lines beside these, the facts that identify its problem, and the
    witness from which its bounds are recomputed. Values and bounds hold for the *exact* problem
    with the given float64 data: rounding allowances are on the safe side in each.
    """

    _hints_by_name: ClassVar = ELSEWHERE
    FORMAT: ClassVar[str]
    """Name of the kind in the line ``format`` of files."""
    LINES: ClassVar[tuple[str, ...]]
    """What a file says, in this order; properties among the lines follow from the fields."""
    WRITER: ClassVar[tuple[str, ...]]
    """What the writer says of itself: no data decide it, and no verification compares it."""
    MEASURE: ClassVar[str]
    """What relative gaps are shares of."""
    WITHOUT: ClassVar[str]
    """Where ``null_value`` is the objective."""

    claim: Claim
    value: float
    """``P``, the objective at the point."""
    upper: float
    """``P`` rounded up, so that it is not below the exact objective."""
    bound: float
    """``D``, not above the objective of any feasible point; ``-inf`` when none is known."""
    null_value: float
    """The objective without coefficients: at zero, or at the best matrix without edges."""
    target: float
    """Relative gap that was asked for."""
    assumptions: tuple[Assumption, ...]
    x: FloatArray
    problem: ProblemFrame
    witness: object
    backend: str
    seconds: float
    """Time the certification took."""
    created: str
    """Date and time, ISO 8601, UTC."""
    versions: dict[str, str]
    version: int = VERSION
    """Of the file that it was read from."""
    readings: float | None = 0.0
    """How often data in files were read for it; 0 for data in memory. None where that is not known:
    for Dask arrays, operators, and certificates that are read from files, which do not say."""
    bytes_read: int | None = 0
    fit: dict[str, str] = field(default_factory=dict)
    """How well the model fits, for reports of the certificate as it was made; files do not hold
    it."""

    @property
    def gap(self) -> float:
        """Return ``P - D``, rounded up; infinite without a bound."""
        return gap_of(self.upper, self.bound)

    @abstractmethod
    def misfit(self) -> str:
        """Return how the lines of a file contradict each other; empty where they agree."""

    @abstractmethod
    def headline(self) -> str:
        """Return the claim in a sentence, with the gap where there is one."""

    def _compared(self) -> tuple[str, float]:
        """Return the model that this one is compared with, in words, and its objective.

        No words where there is none.
        """
        return self.WITHOUT, self.null_value

    @abstractmethod
    def _numbers(self) -> list[tuple[str, str]]:
        """Return the numbers that the claim is about, as rows."""

    @abstractmethod
    def _sizes(self) -> tuple[str, Bars]:
        """Return what was found, coefficient by coefficient or edge by edge, under a title."""

    def _details(self) -> tuple[Section, ...]:
        """Return what else the data decide."""
        return ()

    def _origin(self) -> list[tuple[str, str]]:
        """Return what the writer says of itself, as rows."""
        return [
            *([("found by", self.backend)] if self.backend else []),
            ("requested gap", f"{percent(self.target)} of {self.MEASURE}"),
            ("certified", f"{_moment(self.created)}, in {number(self.seconds, 2)} s"),
            *readings_in_words(self.readings, self.bytes_read),
            ("versions", ", ".join(f"{k} {v}" for k, v in self.versions.items())),
        ]

    def _pictures(self) -> tuple[Chart, ...]:
        """Return pictures of how it was found."""
        return ()

    @abstractmethod
    def title(self) -> str:
        """Return the claim in a few words for people who have not read about claims."""

    def document(
        self,
        *,
        about: Mapping[str, str] | None = None,
        record: str = "certificate.json",
        command: str = "",
    ) -> Document:
        """Return the certificate in words, for every renderer.

        Parameters
        ----------
        about
            Lines about the data and the fit that stand first; no verification reads them.
        record
            The name under which the certificate itself is saved.
        command
            The command that verifies it, if there is one.
        """
        title, sizes = self._sizes()
        checks = tuple(Check(a.text, a.word, _CHECK_MARKS[a.word]) for a in self.assumptions)
        numbers = Facts([("claim", self.claim.value), *self._numbers()], ("quantity", "value"))
        again = _again(record, command)
        return Document(
            kind="Certificate",
            title=self.title(),
            headline=self.headline(),
            subject=self.problem.sentence(),
            mark=_MARKS.get(self.claim, "plain"),
            sections=(
                Section("Data and fit", (Facts([*(about or {}).items()]),), folded=False),
                Section("Numbers", (*self._gauge(), numbers), folded=False),
                Section(f"{title} ({len(sizes.rows)})", (sizes,), folded=False),
                Section(f"Assumptions ({len(checks)})", (Checklist(checks), again), folded=False),
                *self._details(),
                Section(_ORIGIN, (Facts(self._origin()), *self._pictures())),
            ),
        )

    def _gauge(self) -> tuple[Gauge, ...]:
        """Return the range from the bound to the objective of a model without features."""
        where, without = self._compared()
        if not (where and math.isfinite(self.bound) and without > self.bound):
            return ()
        share = min(1.0, max(0.0, self.gap / (without - self.bound)))
        value, bound = side_by_side(self.value, self.bound)
        null = f"objective {where}"
        marks = (("lower bound", bound), ("this model", value), (null, number(without)))
        label = f"{percent(share)} of the range from the lower bound to the {null} is open"
        caption = (
            "The best possible objective lies in the marked part on the left, between the lower "
            "bound and the objective of this model; no model lies below the bound."
        )
        if self.claim is Claim.OPTIMAL:
            caption = "The gap is closed: the lower bound and the objective agree."
        return (Gauge(share, label, marks, caption),)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.title()}>"

    def __str__(self) -> str:
        found = self.document()
        shown = (section for section in found.sections if not section.folded)
        more = Section("", (Items((_MORE,)),))
        return as_text(replace(found, sections=(*shown, more)))

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain numbers, strings, lists and dictionaries."""
        return signed(self._body())

    @rejects_unknown_arguments
    def to_json(self) -> str:
        """Return the certificate as the text of a ``.json`` file."""
        return json_text(self.to_dict())

    @rejects_unknown_arguments
    def save(self, path: str | os.PathLike[str], *, about: Mapping[str, str] | None = None) -> Path:
        """Write the certificate and return where; the ending of the name says how.

        ``.json`` holds everything and can be loaded and verified again; ``.html``, ``.md`` and
        ``.txt`` are reports for people. The file appears whole or not at all.

        Parameters
        ----------
        path
            Where to.
        about
            Lines that reports begin with, ``{"data": "golub, 38 patients"}`` for instance; files
            of certificates do not hold them. None writes how well the model fits, where that is
            known.

        Raises
        ------
        CertificateError
            When the ending is none of these.
        """
        return save(path, self._writers(self.document(about=self.fit if about is None else about)))

    def report(
        self, path: str | os.PathLike[str], *, about: Mapping[str, str], record: str, command: str
    ) -> Path:
        """Write a report beside a certificate that is saved as ``record``; see :meth:`document`."""
        return save(path, self._writers(self.document(about=about, record=record, command=command)))

    def _writers(self, document: Document) -> dict[str, Callable[[], str]]:
        from sparsemodel.documents.html import as_html
        from sparsemodel.documents.markdown import as_markdown

        return {
            ".htm": lambda: as_html(document),
            ".html": lambda: as_html(document),
            ".json": self.to_json,
            ".md": lambda: as_markdown(document),
            ".txt": lambda: as_text(document, WIDTH) + "\n",
        }

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the certificate in a ``.json`` file; nothing in it counts until it is verified.

        Raises
        ------
        CertificateError
            When the file is not a certificate of this kind; the message names the line.
        """
        text, name = read_text(path)
        return cls.from_json(text, where=name)

    @classmethod
    def from_json(cls, text: str, *, where: str = "the text") -> Self:
        """Return the certificate in a JSON text, as :meth:`load` does."""
        body = checked_body(text, cls.FORMAT, range(1, VERSION + 1), where=where)
        try:
            first = body["version"] == 1
            if first:
                body = cls._of_second_version(body)
            if announced(body.get("witness")) > MAX_BYTES // 8:
                raise CertificateError("line 'witness' holds arrays too large for a certificate.")
            found = cls(**cls._read(body), version=1 if first else VERSION)
            misfit = found.misfit() or found._no_size()
            if misfit:
                raise CertificateError(misfit)
            no_other_lines(body, found._body(), fewer=first)
            return found
        except CertificateError as error:
            raise CertificateError(f"{where}: {error}") from error
        except (TypeError, ValueError, OverflowError, LookupError, AttributeError) as error:
            raise CertificateError(f"{where} is malformed: {error}") from error

    def _body(self) -> dict[str, Any]:
        """Return the lines of a file but its digest."""
        lines = {line: self._line(line) for line in self.LINES}
        newer = getattr(self, "NEWER", ())
        kept = {line: v for line, v in lines.items() if v is not None or line not in newer}
        return {"format": self.FORMAT, "version": VERSION} | kept

    def _line(self, line: str) -> Any:
        """Return what a line of a file says."""
        if line == "writer":
            return lines_of(self, self.WRITER)
        found = encode(getattr(self, line))
        return {"x": encode(self.x)} | found if line == "witness" else found

    @classmethod
    def _read(cls, body: dict[str, Any]) -> dict[str, Any]:
        """Return the fields that a file holds."""
        groups = {"witness": ("x",), "writer": cls.WRITER}
        elsewhere = {"x", *cls.WRITER, "version", "readings", "bytes_read", "fit"}
        top = [field.name for field in fields(cls) if field.name not in elsewhere]
        found = read_lines(cls, body, "", only=top)
        for group, names in groups.items():
            if group not in body:
                raise CertificateError(f"line '{group}' is missing.")
            found |= read_lines(cls, body[group], group, only=names)
        return found | {"readings": None, "bytes_read": None}

    @classmethod
    def _of_second_version(cls, body: dict[str, Any]) -> dict[str, Any]:
        """Return a file of the first version, where what the writer says stood among the rest."""
        found = {key: value for key, value in body.items() if key not in cls.WRITER}
        found["writer"] = {key: body[key] for key in cls.WRITER if key in body}
        return found | {"version": VERSION}

    def _no_size(self) -> str:
        for line, size in (("target", self.target), ("seconds", self.seconds)):
            if not (math.isfinite(size) and size >= 0.0):
                return f"line 'writer.{line}' says {size!r}; it is never negative."
        return ""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SearchedCertificate(CertificateFrame):
    """A certificate with the record of a branch-and-bound proof, where there was one.

    Files hold the tree among what is checked, and the statistics of the search among what the
    writer says of itself.
    """

    proof: dict[str, Any] | None = None
    """``tree`` and ``summary`` of a branch-and-bound proof; None when there was none."""

    @property
    def search(self) -> Any:
        """Return what the writer says of its search over supports; empty where there was none."""
        return {} if self.proof is None else self.proof.get("summary", {})

    def _line(self, line: str) -> Any:
        found = super()._line(line)
        return {"tree": found.get("tree")} if line == "proof" and found is not None else found

    @classmethod
    def _read(cls, body: dict[str, Any]) -> dict[str, Any]:
        found = super()._read(body)
        if found.get("proof") is not None:
            search = body["writer"].get("search")
            found["proof"] = {
                "summary": decode(dict[str, str | int | float], search, "writer.search"),
                "tree": decode(dict[str, Any] | None, found["proof"].get("tree"), "proof.tree"),
            }
        return found
