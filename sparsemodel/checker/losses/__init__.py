"""The built-in losses, from the names and parameters in a certificate."""

from sparsemodel.checker.losses.coupled import FORMULAS, Coupled, loss_of
from sparsemodel.checker.losses.separate import Family, widened

__all__ = ["FORMULAS", "Coupled", "Family", "loss_of", "widened"]
