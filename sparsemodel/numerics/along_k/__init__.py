"""Supports of one, two, three, ... units, each from those of other sizes."""
