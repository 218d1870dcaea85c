"""The value every loader returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, final

from numpy.typing import NDArray


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Dataset:
    """A data set with its names and its papers.

    Nothing is standardised and no intercept column is added: both are the caller's choice.
    Every call of a loader reads the file again, so the arrays belong to the caller.

    Examples
    --------
    >>> import sparsemodel as sm
    >>> data = sm.datasets.load_lucas()
    >>> data.X.shape, data.feature_names[0]
    ((6340, 36), 'yrbuilt')
    """

    name: str
    X: Any
    """Observations by features, shape ``(n, p)``: an array, or a SciPy sparse array."""
    y: NDArray[Any]
    """Target, shape ``(n,)``. Class labels are ``0, 1, ...`` and index :attr:`target_names`."""
    feature_names: tuple[str, ...]
    """One name per column of :attr:`X`."""
    target_names: tuple[str, ...]
    """One name per class; empty when the target is a number."""
    description: str
    """Title, meaning of the target and preprocessing, in sentences."""
    source: str
    """The package it was taken from, and the publication."""
    licence: str
    """What that package states."""
    sha256: str
    """Checksum of the file the arrays were read from."""
    extra: Mapping[str, NDArray[Any]] = field(default_factory=lambda: MappingProxyType({}))
    """What else belongs to the observations, for example ``is_test`` of a published split."""

    def __repr__(self) -> str:
        n, p = self.X.shape
        if len(self.target_names) > 6:
            classes = f", {len(self.target_names)} classes"
        else:
            classes = f", classes {', '.join(self.target_names)}" if self.target_names else ""
        return f"<Dataset {self.name}: {n} x {p}{classes}>"
