"""What one person adds to a sum: a bounded vector in whole steps, added up exactly in any order."""
