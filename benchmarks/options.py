"""What a run can be asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """``quick`` takes the smallest case of each family, for trying the harness."""

    quick: bool = False
    repeats: int = 5
    peers: Path | None = None
    """The interpreter of the peers' environment, or None to leave them out."""
    scratch: Path = Path()
    """A folder for large temporary files."""
    gigabytes: float = 4.0
    """Size of the out-of-core file."""
