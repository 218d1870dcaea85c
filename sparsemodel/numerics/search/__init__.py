"""The search for supports: a local model prices them, the objective at its minimiser decides."""

__all__ = ["GUARD", "ROUNDING"]

GUARD = 1e-9
"""What the others must leave of a whitened column that enters: half of the digits."""
ROUNDING = 1e-10
"""Share of what is explained up to which a gain may be rounding."""
