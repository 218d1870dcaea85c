"""Designs: what owns the storage of ``A`` and multiplies by it."""

from sparsemodel.designs.chunked import ChunkedDesign
from sparsemodel.designs.coerce import as_design, column_names, encode
from sparsemodel.designs.composed import StackedDesign, TransformedDesign
from sparsemodel.designs.dense import DenseDesign
from sparsemodel.designs.kronecker import KroneckerDesign
from sparsemodel.designs.operator import OperatorDesign
from sparsemodel.designs.remote.foreign import ForeignDesign
from sparsemodel.designs.sparse import SparseDesign
from sparsemodel.designs.steps import OnesDesign, StepsDesign

__all__ = [
    "ChunkedDesign",
    "DenseDesign",
    "ForeignDesign",
    "KroneckerDesign",
    "OnesDesign",
    "OperatorDesign",
    "SparseDesign",
    "StackedDesign",
    "StepsDesign",
    "TransformedDesign",
    "as_design",
    "column_names",
    "encode",
]
