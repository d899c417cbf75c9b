"""One fuzz target for each parser: bytes from a stranger end in a value or in one sentence."""
