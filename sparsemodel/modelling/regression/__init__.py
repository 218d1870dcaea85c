"""Regressions: from the language to the compiler and back."""
