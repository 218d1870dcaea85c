"""What the compiler knows of a problem, how it came to know it, and what that cost."""
