"""Proofs of global optimality: branch and bound on the perspective relaxation, for all losses."""

from sparsemodel.certificates.proving.branch_and_bound.prove import prove, wrote
from sparsemodel.certificates.proving.branch_and_bound.search import Standing

__all__ = ["Standing", "prove", "wrote"]
