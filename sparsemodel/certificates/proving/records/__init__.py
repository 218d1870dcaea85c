"""The tree of a proof in a file: written while it grows, evaluated again, gone on with."""
