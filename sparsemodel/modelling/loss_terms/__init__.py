"""The losses of the language."""
