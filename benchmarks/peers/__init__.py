"""Other people's solvers, run by an interpreter of their own (see ``make_environment.py``)."""
