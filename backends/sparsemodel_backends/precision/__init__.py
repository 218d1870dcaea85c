"""Backends for sparse precision matrices."""

from sparsemodel_backends.precision.exchange import PrecisionExchange
from sparsemodel_backends.precision.fbs import PrecisionFBS
from sparsemodel_backends.precision.foba import PrecisionFoBa
from sparsemodel_backends.precision.grahtp import PrecisionGraHTP
from sparsemodel_backends.precision.grasp import PrecisionGraSP
from sparsemodel_backends.precision.swap import PrecisionSwap

__all__ = [
    "PrecisionExchange",
    "PrecisionFBS",
    "PrecisionFoBa",
    "PrecisionGraHTP",
    "PrecisionGraSP",
    "PrecisionSwap",
]
