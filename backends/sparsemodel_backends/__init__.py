"""The built-in backends; found through entry points like those of other packages."""
