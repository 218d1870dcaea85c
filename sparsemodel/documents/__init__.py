"""Documents: a description, written once, and its text, Markdown, HTML and notebook form.

A :class:`Document` is made of plain words and numbers. The renderers escape them, lay them out and
know nothing of what they are about.
"""

from sparsemodel.documents.document import (
    Bar,
    Bars,
    Block,
    Chart,
    Check,
    Checklist,
    Document,
    Facts,
    Gauge,
    Items,
    Paragraph,
    Section,
    Series,
    Table,
)
from sparsemodel.documents.notebook import as_notebook
from sparsemodel.documents.text import as_text

__all__ = [
    "Bar",
    "Bars",
    "Block",
    "Chart",
    "Check",
    "Checklist",
    "Document",
    "Facts",
    "Gauge",
    "Items",
    "Paragraph",
    "Section",
    "Series",
    "Table",
    "as_notebook",
    "as_text",
]
