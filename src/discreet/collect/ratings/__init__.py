"""Collect ratings whose value is hidden on the device; which items were rated is told."""
