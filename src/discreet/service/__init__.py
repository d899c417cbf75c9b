"""Collect reports and answer for models over HTTP; the page and the device for browsers lie in `web`."""
