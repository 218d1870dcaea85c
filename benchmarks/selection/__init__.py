"""How well models are chosen without arguments: risk, size and recovery beside other methods."""
