"""Lower bounds from dual points, evaluated with directed rounding."""
