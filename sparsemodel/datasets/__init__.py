"""Small real data sets for examples and tests, with source, licence and checksum of each."""

from importlib.util import find_spec
from typing import Any

from sparsemodel.datasets.dataset import Dataset
from sparsemodel.datasets.shipped import load_ecg, load_golub, load_khan, load_lucas

__all__ = ["Dataset", "load_ecg", "load_golub", "load_khan", "load_lucas"]


def __getattr__(name: str) -> Any:
    message = f"module {__name__!r} has no attribute {name!r}"
    if not name.startswith("_") and find_spec(f"{__name__}.{name}") is None:
        message += f". The data sets are {', '.join(n for n in __all__ if n.startswith('load_'))}."
    raise AttributeError(message, name=name)
