"""`discreet collect`: learn from what a service has collected."""
