"""Proofs to the end: branch and bound over supports, and how to check them again."""

from sparsemodel.certificates.proving.compiled.prove import prove

__all__ = ["prove"]
