"""Designs whose entries are not NumPy's: on workers, or arrays of other libraries."""
