"""Losses of the residual."""
