"""What losses share: checks of targets and parameters, intervals, exponentials."""
