"""Try to break promises: how much of a promise its outputs refute."""
