"""`discreet federation`: found a federation, try one out, and run it as its coordinator."""
