"""Bounds of nodes from a Gram matrix, compiled: squared losses and plain cardinalities."""
