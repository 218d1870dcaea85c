"""Adapters: let a backend solve what it cannot by itself, as a sequence of what it can."""
