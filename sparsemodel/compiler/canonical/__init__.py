"""The canonical form: from a declaration to coordinates, terms, limits and regions."""
