"""The built-in backends; found through entry points like anybody's."""
