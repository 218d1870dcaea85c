"""A backend and a loss for sparsemodel, written by somebody else."""

from sparsemodel_stranger.forward import Forward
from sparsemodel_stranger.pseudo_huber import PseudoHuberLoss

__all__ = ["Forward", "PseudoHuberLoss"]
