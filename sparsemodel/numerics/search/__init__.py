"""The search for supports: a local model prices them, the objective at its minimiser decides."""
