"""Variables, parameters, affine expressions and constraints."""
