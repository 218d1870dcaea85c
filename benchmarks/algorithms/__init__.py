"""Figures about single algorithms: recovery, passes, epochs, swaps."""
