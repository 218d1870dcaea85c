"""What a certificate states, and how each statement is derived from the data."""
