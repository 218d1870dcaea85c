"""Compiled code of nodes with a Gram matrix, and the records it takes."""
