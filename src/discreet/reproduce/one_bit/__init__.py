"""One-bit completion: the experiments. Claims and results are in `papers/one_bit`."""
