"""Restricted constants, and which of the papers' theorems apply with them."""

from sparsemodel.certificates.theory.build import theory
from sparsemodel.certificates.theory.constants import Constants
from sparsemodel.certificates.theory.guarantees import Guarantee
from sparsemodel.certificates.theory.summary import Theory

__all__ = ["Constants", "Guarantee", "Theory", "theory"]
