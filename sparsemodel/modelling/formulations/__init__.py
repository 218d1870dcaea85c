"""Forms of problems: what one says of itself, and which are known."""
