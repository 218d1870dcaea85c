"""Larger real data sets for benchmarks: ``from benchmarks.data import load`` in the source tree."""

from benchmarks.data.load import load, names
from benchmarks.data.transforms import probe_features, tfidf

__all__ = ["load", "names", "probe_features", "tfidf"]
