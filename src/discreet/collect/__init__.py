"""Collect ratings that are private before they leave the device, and read what they say together."""
