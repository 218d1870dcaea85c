"""Restricted constants, and which of the papers' theorems apply with them."""

from sparsemodel.certificates.theory.build import theory
from sparsemodel.certificates.theory.summary import Theory
from sparsemodel.interfaces.self_description import Constants, Guarantee

__all__ = ["Constants", "Guarantee", "Theory", "theory"]
