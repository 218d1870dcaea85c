"""The result of :func:`theory`: constants and theorems, in words, numbers and HTML."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, final

from sparsemodel.arguments import rejects_unknown_arguments
from sparsemodel.documents.document import Document, Facts, Paragraph, Section, Table
from sparsemodel.documents.documented import Documented
from sparsemodel.interfaces.self_description import Constants, Guarantee

_SIDES = (
    "The ranges contain the constants. The lower end for M and the upper end for m are attained on "
    "some support; the other ends hold for every support."
)


@final
@dataclass(frozen=True, slots=True)
class Theory(Documented):
    """Restricted constants of a problem, and which theorems of the papers apply to it.

    The theorems' conditions are sufficient ones: where they fail, the algorithms may work all the
    same, and a certificate says how well they did.

    Statements that cannot be evaluated as printed are left out. GraHTP, Proposition 12, assumes
    what makes the labels of its model independent of the features. NHTP, (30), needs the Lipschitz
    constant of the Hessian around the limit, which is not known.
    """

    k: int
    coordinates: int
    """How many coordinates are counted."""
    observations: int
    ridge: tuple[float, float]
    """Smallest and largest ridge of the counted coordinates."""
    constants: tuple[Constants, ...]
    """By sparsity level; empty when a loss has no second derivative."""
    guarantees: tuple[Guarantee, ...]
    complete: bool = True
    """False where a time limit ended the search: the constants may be wider than they need be."""

    @rejects_unknown_arguments
    def level(self, s: int) -> Constants:
        """Return the constants of a level among those that were computed.

        Raises
        ------
        KeyError
            When there are none; the message lists the levels.
        """
        for c in self.constants:
            if c.level == s:
                return c
        known = ", ".join(str(c.level) for c in self.constants) or "none"
        raise KeyError(f"no constants of level {s}; computed were {known}")

    @rejects_unknown_arguments
    def applies(self, source: str) -> bool:
        """Return whether the theorem's condition holds, ``"NHTP, Theorem 9"`` for instance."""
        found = {g.source: g.status == "holds" for g in self.guarantees}
        if source not in found:
            raise KeyError(f"no theorem {source!r}; there are {', '.join(found)}")
        return found[source]

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings, lists and dictionaries (infinity as a string)."""
        plain: dict[str, Any] = _plain(asdict(self))
        for entry, c in zip(plain["constants"], self.constants, strict=True):
            entry["condition"] = _plain(list(c.condition))
        return plain

    def document(self) -> Document:
        """Return the constants and the theorems in words."""
        held = sum(g.status == "holds" for g in self.guarantees)
        header = ("level", "smoothness M", "strong convexity m", "condition M/m")
        late = "time was up: the constants may be wider than they need be"
        constants = (Table(header, self._rows()), Paragraph(_SIDES)) if self.constants else ()
        subject = (
            f"k = {self.k} of {self.coordinates} coordinates, {self.observations} observations"
        )
        return Document(
            kind="Theory",
            title=f"{held} of {len(self.guarantees)} theorems apply",
            subject=f"{subject}, ridge {_pair(self.ridge)}",
            sections=(
                Section("", (Paragraph(late),) if not self.complete else (), folded=False),
                Section("Restricted constants", constants, folded=False),
                Section(
                    "Theorems (sufficient conditions)",
                    (Facts([(g.source, _words(g)) for g in self.guarantees]),),
                    folded=False,
                ),
            ),
        )

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (str(c.level), _pair(c.smoothness), _pair(c.convexity), _pair(c.condition))
            for c in self.constants
        ]


def _words(g: Guarantee) -> str:
    words = f"{g.status}: {g.condition}"
    if g.status == "holds":
        words += f"; so {g.conclusion}"
    numbers = [f"{name} {value:.6g}" for name, value in g.numbers.items()]
    return "; ".join([words, *numbers, *(f"not checked: {each}" for each in g.unchecked)])


def _pair(pair: tuple[float, float]) -> str:
    low, high = pair
    if low == high or abs(high - low) <= 1e-9 * abs(high):
        return f"{high:.4g}"
    return f"{low:.4g} .. {high:.4g}"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value
