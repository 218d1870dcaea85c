"""What has a document: its text is printed, notebooks show it laid out."""

from __future__ import annotations

from abc import ABC, abstractmethod

from sparsemodel.documents.document import Document
from sparsemodel.documents.notebook import as_notebook
from sparsemodel.documents.text import as_text


class Documented(ABC):
    """A result with a description in words, :meth:`document`."""

    __slots__ = ()

    @abstractmethod
    def document(self) -> Document:
        """Return the description, for every renderer."""

    def __str__(self) -> str:
        return as_text(self.document())

    def _repr_html_(self) -> str:
        return as_notebook(self.document())
