"""Which backends are run, in which order, and what is expected of them."""
