"""The referee's own search for better points."""
