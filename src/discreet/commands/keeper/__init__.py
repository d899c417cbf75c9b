"""`discreet keeper`: keep the keys of masks for a federation."""
