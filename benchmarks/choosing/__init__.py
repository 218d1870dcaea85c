"""How well the compiler chooses: a corpus, what every backend does on it, the fitted table."""
