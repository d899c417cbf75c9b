"""Who is who: keys, certificates and what all sides of a run agreed on."""
