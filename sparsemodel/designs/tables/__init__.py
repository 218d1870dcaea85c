"""Tables of named columns as arrays of numbers."""
