"""Laws of designs and losses, each a plain function."""
