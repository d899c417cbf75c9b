"""Account for releases: events, composition, the Gaussian mechanism in closed form, rounding upward."""
