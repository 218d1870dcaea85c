"""Choosing a support: selection, insertions, removals, exchanges."""
