"""What releases cost: events, composition, the Gaussian mechanism in closed form, rounding upward."""
