"""Precision matrices: from the language to the compiler and back."""
