"""Random problems of every kind."""
