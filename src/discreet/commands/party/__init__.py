"""`discreet party`: take part in a federation."""
