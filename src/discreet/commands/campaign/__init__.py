"""`discreet campaign`: make, show and check what devices are told, and close a collection."""
