"""Small real data sets for examples and tests, with source, licence and checksum of each."""

from sparsemodel.datasets.dataset import Dataset
from sparsemodel.datasets.shipped import load_ecg, load_golub, load_khan, load_lucas

__all__ = ["Dataset", "load_ecg", "load_golub", "load_khan", "load_lucas"]
