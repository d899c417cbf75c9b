"""Look inside a fit: record and replay what passes the mechanisms, and read off what was paid."""
