"""Typed access to the entries of a JSON document, with errors that name the line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, final

from sparsemodel.interfaces import CertificateError

_WORDS = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}


@final
class Reader:
    """A JSON object whose entries are asked for by name and type."""

    def __init__(self, body: Any, prefix: str = "") -> None:
        if not isinstance(body, dict):
            raise CertificateError(f"line '{prefix.rstrip('.')}' must be an object.")
        self._body = body
        self._prefix = prefix

    def all(self) -> dict[str, Any]:
        """Return a copy of the object, its entries unchecked."""
        return dict(self._body)

    def where(self, key: str) -> str:
        """Return the full name of an entry."""
        return self._prefix + key

    def has(self, key: str) -> bool:
        """Return whether an entry is there and not null."""
        return self._body.get(key) is not None

    def raw(self, key: str) -> Any:
        """Return an entry as it is."""
        if key not in self._body:
            raise CertificateError(f"line '{self.where(key)}' is missing.")
        return self._body[key]

    def at(self, key: str) -> Reader:
        """Return the object under ``key``."""
        return Reader(self.raw(key), self.where(key) + ".")

    def string(self, key: str) -> str:
        """Return a string."""
        return str(self._typed(key, str, "a text"))

    def boolean(self, key: str) -> bool:
        """Return a truth value."""
        return bool(self._typed(key, bool, "true or false"))

    def integer(self, key: str) -> int:
        """Return a whole number."""
        value = self.raw(key)
        if isinstance(value, bool) or not isinstance(value, int):
            raise CertificateError(f"line '{self.where(key)}' must be a whole number.")
        return value

    def number(self, key: str) -> float:
        """Return a float; ``"inf"``, ``"-inf"`` and ``"nan"`` stand for themselves."""
        value = self.raw(key)
        if isinstance(value, str) and value in _WORDS:
            return _WORDS[value]
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise CertificateError(f"line '{self.where(key)}' must be a number.")
        return float(value)

    def mapping(self, key: str) -> dict[str, Any]:
        """Return an object as a dictionary."""
        return dict(self._typed(key, dict, "an object"))

    def sequence(self, key: str) -> list[Any]:
        """Return a list."""
        return list(self._typed(key, list, "a list"))

    def items(self, key: str) -> Iterator[Reader]:
        """Yield the objects of a list."""
        for index, item in enumerate(self.sequence(key)):
            yield Reader(item, f"{self.where(key)}[{index}].")

    def integers(self, key: str) -> list[int]:
        """Return a list of whole numbers."""
        values = self.sequence(key)
        if any(isinstance(v, bool) or not isinstance(v, int) for v in values):
            raise CertificateError(f"line '{self.where(key)}' must hold whole numbers.")
        return values

    def strings(self, key: str) -> list[str]:
        """Return a list of strings."""
        values = self.sequence(key)
        if any(not isinstance(v, str) for v in values):
            raise CertificateError(f"line '{self.where(key)}' must hold texts.")
        return values

    def _typed(self, key: str, kind: type, words: str) -> Any:
        value = self.raw(key)
        if not isinstance(value, kind):
            raise CertificateError(f"line '{self.where(key)}' must be {words}.")
        return value


__all__ = ["Reader"]
