"""What has to be right for a bound to hold: problem, losses, supports, bounds, trees."""
