"""Arithmetic with bounds on its rounding errors."""
