"""What the papers prove about the backends, one paper a file."""
